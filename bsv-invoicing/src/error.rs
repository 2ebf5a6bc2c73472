use bsv_store::{FileError, KeystoreError, StoreError};
use bsv_tx::{BeefError, BeefVerificationError, KeyError, OutPoint, Txid};
use thiserror::Error;

use crate::ledger::Refusal;
use crate::model::fields::{BodyError, FieldErrors};
use crate::model::idempotency::BadIdempotencyKey;
use crate::model::invoice::NOT_IN_THE_FUTURE;
use crate::model::invoice_id::InvoiceIdParseError;
use crate::store::WalletStoreError;

/// Why the wallet refused or failed. The call has changed nothing, except perhaps after
/// [`StoreError::Commit`].
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// A body is not a JSON object.
    #[error("{0}")]
    Malformed(String),
    /// Fields are invalid.
    #[error("{0}")]
    Invalid(FieldErrors),
    /// There is no such invoice, or it is deleted.
    #[error("there is no invoice {0}")]
    UnknownInvoice(String),
    /// There is no such webhook.
    #[error("there is no webhook {0}")]
    UnknownWebhook(String),
    /// The key of the keystore does not decrypt the secret of a webhook.
    #[error(
        "this keystore cannot decrypt the secret of webhook {0}: delete the webhook and create it \
         again"
    )]
    BadWebhookSecret(String),
    /// There is no such user.
    #[error("there is no user {0}")]
    UnknownUser(u64),
    /// The invoice is paid, so it takes no further payment. A payment that comes now is not sent to
    /// the network.
    #[error(
        "invoice {0} is paid already and takes no further payment: do not pay again, and if your \
         wallet has sent another payment all the same, ask the payee for a refund"
    )]
    Paid(String),
    /// A paid invoice cannot be deleted.
    #[error("invoice {0} is paid and cannot be deleted")]
    PaidForever(String),
    /// The invoice was not paid in time.
    #[error("invoice {0} is expired")]
    Expired(String),
    /// The wallet has sent a payment of the invoice to the network and does not know the outcome
    /// yet.
    #[error("a payment of invoice {0} is on its way")]
    InFlight(String),
    /// The bytes are not a transaction that can pay.
    #[error("the transaction cannot be read: {0}")]
    BadTransaction(String),
    /// A transaction does not pay what is asked for.
    #[error("{0}")]
    WrongOutputs(String),
    /// A transaction spends an output that the network does not know or that is already spent.
    #[error(
        "input {index} spends {outpoint}, which the network does not know or which is already spent"
    )]
    UnknownInput {
        /// The index of the input.
        index: usize,
        /// What it spends.
        outpoint: OutPoint,
    },
    /// A transaction came with its ancestors, and one of them spends an output that the network
    /// does not know or that is already spent.
    #[error(
        "its ancestor {txid} spends {outpoint}, which the network does not know or which is \
         already spent"
    )]
    UnknownAncestorInput {
        /// The ancestor.
        txid: Txid,
        /// What it spends.
        outpoint: OutPoint,
    },
    /// The ancestors and proofs that came with a transaction do not prove where its coins come
    /// from.
    #[error("the ancestors of the transaction are not proven: {0}")]
    BadAncestry(BeefVerificationError),
    /// A proof that came with a transaction names a block that the node does not have yet.
    #[error(
        "a proof refers to the block at height {height}, which our node does not have yet: send \
         the payment again later"
    )]
    UnknownBlock {
        /// The height.
        height: u32,
    },
    /// The fee of a transaction is too low to be mined.
    #[error("the fee of {paid} satoshis is too low: {needed} are needed")]
    FeeTooLow {
        /// What it pays, in satoshis.
        paid: u64,
        /// What it must pay.
        needed: u64,
    },
    /// The fee of an ancestor that came with a transaction is too low. With services, each transaction
    /// pays for itself.
    #[error("the fee of its ancestor {txid}, {paid} satoshis, is too low: {needed} are needed")]
    AncestorFeeTooLow {
        /// The ancestor.
        txid: Txid,
        /// What it pays, in satoshis.
        paid: u64,
        /// What it must pay.
        needed: u64,
    },
    /// A transaction has too many unconfirmed ancestors.
    #[error("the transaction has more than {limit} ancestors that are in no block yet")]
    TooManyAncestors {
        /// How many unconfirmed ancestors it may have.
        limit: usize,
    },
    /// A transaction has too many unconfirmed ancestors whose own fees are too low.
    #[error(
        "the transaction has more than {limit} ancestors that are in no block yet and whose own \
         fees are too low"
    )]
    TooManyCheapAncestors {
        /// How many such ancestors it may have.
        limit: usize,
    },
    /// A transaction is time-locked. Until that time, another transaction can replace it.
    #[error(
        "the transaction is not final: its lock time {lock_time} is not reached, and not all of \
         its sequence numbers are final"
    )]
    NotFinal {
        /// Its lock time: a height, or a Unix time if it is 500,000,000 or more.
        lock_time: u32,
    },
    /// The network has the payment, but it does not pay the whole invoice.
    #[error("the payment is recorded, but {due} satoshis of the invoice are still due")]
    Underpaid {
        /// What is still due, in satoshis.
        due: u64,
    },
    /// The network has the payment, but the wallet first saw it after the invoice had expired.
    #[error(
        "the payment is recorded, but it came after the invoice had expired: the payee decides \
         about it"
    )]
    Late,
    /// The network has the payment, but its fee is too low, or services alone cannot show that it is
    /// good: it counts once it is mined.
    #[error(
        "the payment is recorded and counts once a block holds it: its fee is too low, or only a block can \
         show that it is good"
    )]
    Waiting,
    /// The network refuses a transaction.
    #[error("the network refuses the transaction: {0}")]
    RefusedByNetwork(String),
    /// The network refuses a transaction because of its fee.
    #[error("the network refuses the transaction, because its fee is too low: {0}")]
    FeeRefused(String),
    /// The wallet does not know whether a payment went through.
    #[error(
        "it is not known whether the payment went through ({0}): the wallet follows it, and you \
         may send it again"
    )]
    OutcomeUnknown(String),
    /// The node does not answer, or the wallet has no node. Nothing was changed.
    #[error("the network is not available: {0}")]
    NetworkAway(String),
    /// There is no such channel, or the token is not valid for it.
    #[error("there is no such channel, or the token is not valid for it")]
    UnknownChannel,
    /// Another call is making this payment at this moment.
    #[error("this payment is being made at this moment")]
    PaymentRunning,
    /// The payee's answer cannot be understood.
    #[error("{0}")]
    PayeeNonsense(String),
    /// The payee does not answer. Nothing was changed.
    #[error("the payee cannot answer now: {0}")]
    PayeeAway(String),
    /// The payee refuses the payment, or asks for something that this wallet does not support.
    #[error("{0}")]
    PayeeRefuses(String),
    /// The wallet of the node that plays a faucet has too few coins. With the node's words.
    #[error(
        "the wallet of the node has too few coins ({0}): on regtest, bitcoin-cli generate 101 mines some"
    )]
    EmptyFaucet(String),
    /// The payee asks for outputs that the network does not accept.
    #[error("the terms cannot be paid: {0}")]
    UnpayableTerms(String),
    /// A payment would cost more than may be paid at once.
    #[error("the payment would cost {asked} satoshis, and the limit is {limit}")]
    OverLimit {
        /// What it would cost, fee included.
        asked: u64,
        /// What may be paid.
        limit: u64,
    },
    /// The payee, or the node, wants a higher fee rate than is allowed.
    #[error(
        "the payment needs a fee of {asked} satoshis per 1000 bytes, and at most {limit} are \
         allowed"
    )]
    FeeTooHigh {
        /// What is asked for.
        asked: u64,
        /// What is allowed.
        limit: u64,
    },
    /// An output would hold less than the fee to spend it.
    #[error(
        "the least that can be sent is {smallest} satoshis: spending less costs more than it is \
         worth"
    )]
    TooSmall {
        /// The least that an output must hold, in satoshis.
        smallest: u64,
    },
    /// There is no such withdrawal.
    #[error("there is no withdrawal {0}")]
    UnknownWithdrawal(u64),
    /// The invoice has no payment that could be refunded, or everything is already refunded.
    #[error(
        "nothing that was paid to invoice {0} is left to refund: name an amount, or refund in \
         full"
    )]
    NothingToRefund(String),
    /// The wallet does not know where a refund goes.
    #[error("{}: give --to ADDRESS (`to` in the API)", match is_any_named {
        true => "the payers did not all name the same address that this wallet can pay to",
        false => "nobody named an address",
    })]
    RefundToNeeded {
        /// Whether any payer has named a place.
        is_any_named: bool,
    },
    /// The wallet cannot make a BEEF of a transaction.
    #[error("the ancestors of the transaction cannot be collected: {0}")]
    NoBeef(String),
    /// An idempotency key is empty, too long, or not printable ASCII.
    #[error(transparent)]
    BadIdempotencyKey(#[from] BadIdempotencyKey),
    /// No key could be made or derived.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The keystore failed.
    #[error(transparent)]
    Keystore(#[from] KeystoreError),
    /// The store belongs to a wallet whose seed is missing from the keystore.
    #[error("the keystore has no seed for this wallet (wallet.seed.key): restore it from a backup")]
    SeedMissing,
    /// The store is new, but the seed was already used with another store.
    #[error(
        "the wallet's store is missing: restore wallet.redb, or remove wallet.adopted.key from the \
         keystore to begin an empty wallet that uses the keys of earlier invoices again"
    )]
    StoreMissing,
    /// The seed in the keystore does not belong to the wallet in the store.
    #[error("the seed in the keystore is not that of this wallet")]
    OtherSeed,
    /// The seed in the keystore is not 24 words of BIP39.
    #[error("the seed in the keystore is damaged: it is not 24 BIP39 words")]
    BadSeed,
    /// The words are not those of a wallet.
    #[error("these are not 24 BIP39 words with a right checksum")]
    BadWords,
    /// The blocks that the node answers do not fit together.
    #[error("the chain cannot be walked: {0}")]
    BadChain(String),
    /// The rules of money refused it.
    #[error(transparent)]
    Refused(Refusal),
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Error {
    /// Whether the disk is full.
    pub fn is_out_of_space(&self) -> bool {
        match self {
            Self::Store(error) => error.is_out_of_space(),
            Self::File(error) | Self::Keystore(KeystoreError::File(error)) => {
                error.is_out_of_space()
            }
            _ => false,
        }
    }
}

impl From<BodyError> for Error {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::Malformed(reason) => Self::Malformed(reason),
            BodyError::Invalid(errors) => Self::Invalid(errors),
        }
    }
}

impl From<InvoiceIdParseError> for Error {
    fn from(InvoiceIdParseError(id): InvoiceIdParseError) -> Self {
        Self::UnknownInvoice(id)
    }
}

impl From<BeefError> for Error {
    fn from(error: BeefError) -> Self {
        Self::NoBeef(error.to_string())
    }
}

impl From<BeefVerificationError> for Error {
    fn from(error: BeefVerificationError) -> Self {
        match error {
            BeefVerificationError::AboveTip { height } => Self::UnknownBlock { height },
            error => Self::BadAncestry(error),
        }
    }
}

impl From<WalletStoreError> for Error {
    fn from(error: WalletStoreError) -> Self {
        match error {
            WalletStoreError::Refused(refusal) => refusal.into(),
            WalletStoreError::Store(error) => Self::Store(error),
        }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::UnknownInvoice(number) => Self::UnknownInvoice(number.to_string()),
            Refusal::Paid(number) => Self::Paid(number.to_string()),
            Refusal::AlreadyExpired => {
                let mut errors = FieldErrors::default();
                errors.add("expiresAt", NOT_IN_THE_FUTURE);
                Self::Invalid(errors)
            }
            Refusal::Expired(number) => Self::Expired(number.to_string()),
            Refusal::InFlight(number) => Self::InFlight(number.to_string()),
            Refusal::NotReserved(_) => Self::PaymentRunning,
            Refusal::OtherWallet => Self::OtherSeed,
            Refusal::UnknownWebhook(id) => Self::UnknownWebhook(id.to_string()),
            Refusal::Reorganised => Self::NetworkAway(refusal.to_string()),
            refusal => Self::Refused(refusal),
        }
    }
}
