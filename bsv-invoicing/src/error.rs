use bsv_store::{FileError, KeystoreError, StoreError};
use bsv_tx::{BeefError, BeefVerificationError, KeyError, OutPoint, Txid};
use thiserror::Error;

use crate::ledger::Refusal;
use crate::model::fields::{BodyError, FieldErrors};
use crate::model::idempotency::BadIdempotencyKey;
use crate::model::invoice::NOT_IN_THE_FUTURE;
use crate::model::invoice_id::InvoiceIdParseError;
use crate::model::outgoing::OutgoingState;
use crate::model::time::Timestamp;
use crate::store::WalletStoreError;

/// Why the wallet did not do what it was asked for. Nothing of it is left behind, unless the store
/// failed to commit ([`StoreError::Commit`]).
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// A body is not a JSON object.
    #[error("{0}")]
    Malformed(String),
    /// Fields are not as they should be.
    #[error("{0}")]
    Invalid(FieldErrors),
    /// There is no such invoice, or it is deleted.
    #[error("there is no invoice {0}")]
    UnknownInvoice(String),
    /// Events are asked for after one that there is not: the log is shorter than it was, as after a backup was
    /// restored.
    #[error("there is no event {after}: the last one is {last}, as after a backup was restored")]
    CursorAhead {
        /// The number of the event after which they are asked for.
        after: u64,
        /// The number of the last event.
        last: u64,
    },
    /// There is no such webhook.
    #[error("there is no webhook {0}")]
    UnknownWebhook(String),
    /// An event was not sent to a webhook, or that is forgotten.
    #[error("nothing is known of a delivery of event {number} to webhook {webhook}")]
    UnknownDelivery {
        /// The id of the webhook.
        webhook: String,
        /// The number of the event.
        number: u64,
    },
    /// No further webhook can be made.
    #[error("there are {0} webhooks already: delete one first")]
    TooManyWebhooks(usize),
    /// Two secrets of a webhook sign already.
    #[error("the secret before this one still signs until {0}: wait until then to make another")]
    TwoSecrets(Timestamp),
    /// The secret of a webhook cannot be opened.
    #[error(
        "the secret of webhook {0} does not open with this keystore: delete the webhook, and make it anew"
    )]
    BadWebhookSecret(String),
    /// There is no such user.
    #[error("there is no user {0}")]
    UnknownUser(u64),
    /// A paid invoice cannot be deleted.
    #[error("invoice {0} is paid, and stays")]
    Paid(String),
    /// The invoice was not paid in time.
    #[error("invoice {0} is expired")]
    Expired(String),
    /// A payment of the invoice is on its way to the network, and it is not known yet whether it gets
    /// there.
    #[error("a payment of invoice {0} is on its way")]
    InFlight(String),
    /// The transaction of this number is not one whose outcome is open.
    #[error("transaction {0} is not on its way")]
    NotInFlight(u64),
    /// There is no transaction of this number: it was refused meanwhile.
    #[error("there is no transaction {0}")]
    UnknownTransaction(u64),
    /// The bytes are not a transaction that could pay anything.
    #[error("the transaction cannot be read: {0}")]
    BadTransaction(String),
    /// A transaction does not pay what is asked for.
    #[error("{0}")]
    WrongOutputs(String),
    /// The network does not know what a transaction spends, or it is spent already.
    #[error("input {index} spends {outpoint}, which is unknown to the network or spent already")]
    UnknownInput {
        /// The index of the input.
        index: usize,
        /// What it spends.
        outpoint: OutPoint,
    },
    /// The network does not know what an ancestor spends that came with a transaction, or it is spent already.
    #[error(
        "its ancestor {txid} spends {outpoint}, which is unknown to the network or spent already"
    )]
    UnknownAncestorInput {
        /// The ancestor.
        txid: Txid,
        /// What it spends.
        outpoint: OutPoint,
    },
    /// What came with a transaction does not show where its coins are from.
    #[error("what the transaction builds on cannot be relied on: {0}")]
    BadAncestry(BeefVerificationError),
    /// The node does not have a block yet that what came with a transaction is said to be in.
    #[error(
        "the transaction builds on a block at height {height}, which our node does not have yet: \
         send it again later"
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
    /// A transaction builds on too many that are in no block.
    #[error("the transaction builds on more than {limit} that are in no block yet")]
    TooManyAncestors {
        /// How many it may build on.
        limit: usize,
    },
    /// A transaction is time-locked: until its time, another one can take its place.
    #[error(
        "the transaction is not final: its lock time, {lock_time}, is not reached, and not all of \
         its sequence numbers are final"
    )]
    NotFinal {
        /// Its lock time: a height, or from 500,000,000 on a time.
        lock_time: u32,
    },
    /// The network has a payment, which leaves something of the invoice unpaid.
    #[error("the payment is noted, and {due} satoshis of the invoice are still due")]
    Underpaid {
        /// What is still due, in satoshis.
        due: u64,
    },
    /// The network has a payment that was first seen after its invoice had expired.
    #[error(
        "the payment is noted. The invoice had expired before it came, so that its owner decides \
         about it"
    )]
    Late,
    /// The network has a payment whose fee is too low for it to count before it is mined.
    #[error(
        "the payment is noted, and counts once it is mined: its fee is too low for it to be sure"
    )]
    Waiting,
    /// The network refuses a transaction.
    #[error("the network refuses the transaction: {0}")]
    RefusedByNetwork(String),
    /// It is not known whether a payment went through.
    #[error(
        "it is not known whether the payment went through ({0}): it is looked after, and may be \
         sent again"
    )]
    OutcomeUnknown(String),
    /// The node does not answer, or none is configured. Nothing was changed.
    #[error("the network is not available: {0}")]
    NetworkAway(String),
    /// Nobody may read this channel with this token, or there is no such channel.
    #[error("there is no such channel, or the token is not the one for it")]
    UnknownChannel,
    /// This payment is being made already.
    #[error("this payment is being made at this moment")]
    PaymentRunning,
    /// The payee's answer makes no sense.
    #[error("{0}")]
    PayeeNonsense(String),
    /// The payee does not answer. Nothing was changed.
    #[error("the payee cannot answer now: {0}")]
    PayeeAway(String),
    /// The payee refuses to be paid, or wants what this wallet does not do.
    #[error("{0}")]
    PayeeRefuses(String),
    /// The payee asks for outputs that our own node would not take.
    #[error("the terms cannot be paid: {0}")]
    UnpayableTerms(String),
    /// An earlier payment for the same purpose can still be mined, and no coin is free that would keep both from
    /// being mined.
    #[error(
        "payment {0} for the same purpose can still be mined, and none of its coins is free: try \
         again after the next block"
    )]
    EarlierAttempt(u64),
    /// The payee asks for more than may be paid at once.
    #[error("the payment would cost {asked} satoshis, and the limit is {limit}")]
    OverLimit {
        /// What the payee asks for, with the fee if that is known.
        asked: u64,
        /// What may be paid.
        limit: u64,
    },
    /// The payee, or the node, wants a higher fee rate than is allowed.
    #[error("a fee of {asked} satoshis per 1000 bytes is asked for, and maxFeeRate is {limit}")]
    FeeTooHigh {
        /// What is asked for.
        asked: u64,
        /// What is allowed.
        limit: u64,
    },
    /// The coins that can be spent are worth too little.
    #[error("{needed} satoshis are needed, fee included, and {spendable} can be spent")]
    InsufficientFunds {
        /// What is needed, with the least fee.
        needed: u64,
        /// What the coins are worth that can be spent in one transaction.
        spendable: u64,
    },
    /// An output would hold less than the fee for spending it.
    #[error(
        "{smallest} satoshis is the least that can be sent: less is not worth the fee to spend it"
    )]
    TooSmall {
        /// The least that an output must hold, in satoshis.
        smallest: u64,
    },
    /// There are too many coins for one withdrawal of all.
    #[error(
        "there are more than {0} coins, which one withdrawal cannot send: consolidate them first"
    )]
    TooManyCoins(usize),
    /// There is no such withdrawal.
    #[error("there is no withdrawal {0}")]
    UnknownWithdrawal(u64),
    /// Nothing was paid to an invoice that could go back, or it has gone back already.
    #[error(
        "nothing that was paid to invoice {0} is left to refund: name an amount, or refund in full"
    )]
    NothingToRefund(String),
    /// More is to go back than was paid, and has not gone back yet.
    #[error("{satoshis} satoshis cannot be refunded: {left} can")]
    RefundTooLarge {
        /// What is to go back.
        satoshis: u64,
        /// What can.
        left: u64,
    },
    /// The transaction that paid is in no block, and the refund cannot spend what it paid.
    #[error("transaction {0}, which paid, is in no block yet: refund it once it is mined")]
    RefundMustWait(Txid),
    /// It is not known where a refund goes.
    #[error("the payers have not all named the same address for refunds: say where it goes (to)")]
    RefundToNeeded,
    /// There is no such payment by the wallet.
    #[error("there is no payment {0}")]
    UnknownPayment(u64),
    /// No BEEF can be made of a transaction.
    #[error("what the transaction builds on cannot be told: {0}")]
    NoBeef(String),
    /// The outcome of a payment by the wallet is known already.
    #[error("payment {0} is {name}", name = .1.name())]
    NotOpen(u64, OutgoingState),
    /// An idempotency key is empty, too long, or not printable ASCII.
    #[error(transparent)]
    BadIdempotencyKey(#[from] BadIdempotencyKey),
    /// An idempotency key came with another request before.
    #[error("this idempotency key came with another request before")]
    KeyReused,
    /// All numbers that keys can be derived for are used up.
    #[error("the wallet is full: it has {0} of them")]
    Full(u64),
    /// No key could be made or derived.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The keystore failed.
    #[error(transparent)]
    Keystore(#[from] KeystoreError),
    /// The store belongs to a wallet whose seed is missing from the keystore.
    #[error("the keystore has no seed for this wallet (wallet.seed.key): restore it from a backup")]
    SeedMissing,
    /// The store is new, and the seed had another one before.
    #[error(
        "the wallet's store is missing: restore wallet.redb, or remove wallet.adopted.key from the \
         keystore to begin an empty wallet whose invoices have the keys of earlier ones"
    )]
    StoreMissing,
    /// The keystore has the seed of another wallet than the store.
    #[error("the seed in the keystore is not that of this wallet")]
    OtherSeed,
    /// The seed in the keystore is not 24 words of BIP39.
    #[error("the seed in the keystore is damaged: it is not 24 BIP39 words")]
    BadSeed,
    /// These are not the words of a wallet.
    #[error("these are not 24 words of BIP39 whose checksum is right")]
    BadWords,
    /// A walk of the chain found what does not fit.
    #[error("the chain cannot be walked: {0}")]
    BadChain(String),
    /// The store's writer cannot be started.
    #[error(transparent)]
    File(#[from] FileError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Error {
    /// Whether the reason is that there is no room left on the disk.
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
            Refusal::NotInFlight(number) => Self::NotInFlight(number),
            Refusal::UnknownTransaction(number) => Self::UnknownTransaction(number),
            Refusal::UnknownPayment(number) => Self::UnknownPayment(number),
            Refusal::NotOpen(number, state) => Self::NotOpen(number, state),
            Refusal::InsufficientFunds { needed, spendable } => {
                Self::InsufficientFunds { needed, spendable }
            }
            Refusal::EarlierAttempt(number) => Self::EarlierAttempt(number),
            Refusal::TooManyCoins(most) => Self::TooManyCoins(most),
            Refusal::RefundTooLarge { satoshis, left } => Self::RefundTooLarge { satoshis, left },
            Refusal::RefundMustWait(txid) => Self::RefundMustWait(txid),
            Refusal::NotReserved(_) => Self::PaymentRunning,
            Refusal::Key(error) => Self::Key(error),
            Refusal::KeyReused => Self::KeyReused,
            Refusal::Full(count) => Self::Full(count),
            Refusal::OtherWallet => Self::OtherSeed,
            Refusal::CursorAhead { after, last } => Self::CursorAhead { after, last },
            Refusal::UnknownWebhook(id) => Self::UnknownWebhook(id.to_string()),
            Refusal::UnknownDelivery { id, number } => {
                Self::UnknownDelivery { webhook: id.to_string(), number }
            }
            Refusal::TooManyWebhooks(most) => Self::TooManyWebhooks(most),
            Refusal::TwoSecrets(until) => Self::TwoSecrets(until),
            refusal @ (Refusal::NothingDue | Refusal::WebhookIdTaken(_)) => {
                Self::Malformed(refusal.to_string())
            }
        }
    }
}
