//! Where the wallet keeps what it knows: the changes that can happen, and the trait that a back end
//! implements.

mod redb;

use std::time::Duration;

use bsv_store::{AuditCheck, AuditEntry, KeyEvent, StoreError};
use bsv_tx::{KeyError, Transaction};
use thiserror::Error;

use crate::dpp::PeerChannel;
use crate::model::coin::Spending;
use crate::model::event::Event;
use crate::model::idempotency::IdempotencyKey;
use crate::model::invoice::{Invoice, InvoiceDraft, InvoicePage, InvoiceQuery};
use crate::model::invoice_id::InvoiceId;
use crate::model::payment::{
    Begun, BlockPlace, Followed, FoundProof, IncomingPayment, NewIncoming, NewOutgoing,
    OutgoingPayment, OutgoingState, Proof, Recovered, Selection, UsedNumbers,
};
use crate::model::time::Timestamp;
use crate::model::user::UserDraft;
use crate::wallet::books::LedgerItem;

pub use self::redb::{OpenWalletStoreError, RedbWalletStore};

/// Why a change was not made. Nothing of it is left behind, unless the store failed to commit
/// ([`StoreError::Commit`]).
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WalletStoreError {
    /// There is no invoice of this number, or it is deleted.
    #[error("there is no invoice of number {0}")]
    UnknownInvoice(u64),
    /// The invoice of this number is paid.
    #[error("the invoice of number {0} is paid, and stays")]
    Paid(u64),
    /// The invoice of this number is not paid in time.
    #[error("the invoice of number {0} is expired")]
    Expired(u64),
    /// A payment of the invoice of this number is on its way to the network.
    #[error("a payment of the invoice of number {0} is on its way")]
    InFlight(u64),
    /// The transaction of this number is not one whose outcome is open.
    #[error("the transaction of number {0} is not on its way")]
    NotInFlight(u64),
    /// There is no transaction of this number.
    #[error("there is no transaction of number {0}")]
    UnknownTransaction(u64),
    /// There is no payment by the wallet of this number.
    #[error("there is no payment {0}")]
    UnknownPayment(u64),
    /// The outcome of the payment of this number is known already.
    #[error("payment {0} is {name}", name = .1.name())]
    NotOpen(u64, OutgoingState),
    /// The coins that can be spent are worth too little, or too many of them are small.
    #[error("{needed} satoshis are needed, fee included, and {spendable} can be spent")]
    InsufficientFunds {
        /// What is needed, with the least fee.
        needed: u64,
        /// What the coins are worth that can be spent in one transaction.
        spendable: u64,
    },
    /// A key could not be derived.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The invoice would have expired before it was created.
    #[error("the invoice would have expired before it was created")]
    AlreadyExpired,
    /// The idempotency key came with another request before.
    #[error("this idempotency key came with another request before")]
    KeyReused,
    /// No further number can be given out.
    #[error("the wallet is full: it has {0} of them")]
    Full(u64),
    /// The store belongs to a wallet of another seed.
    #[error("the store belongs to another wallet")]
    OtherWallet,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// An invoice that is to be created.
#[derive(Clone, Debug)]
pub struct NewInvoice {
    /// What it is made of.
    pub draft: InvoiceDraft,
    /// For how long it can be paid, if the draft does not say.
    pub expiry: Duration,
    /// The time. An invoice is never created before the last event.
    pub now: Timestamp,
    /// If this is known already, the invoice that was created first is answered.
    pub idempotency: Option<IdempotencyKey>,
}

/// A user as stored: the id and the details.
pub type UserRecord = (u64, UserDraft);

/// A durable store of one wallet. Each method that changes something is one use case's atomic step,
/// which includes the events that tell of it; when it has answered, the change has reached the
/// disk. Reading does not wait for changes.
pub trait WalletStore: Send + Sync + 'static {
    /// The fingerprint of the wallet that this store belongs to, once it belongs to one.
    fn owner(&self) -> impl Future<Output = Result<Option<[u8; 20]>, WalletStoreError>> + Send;

    /// Makes the store belong to the wallet of this fingerprint, if it belongs to no other. The first
    /// time, the audit log tells where the seed comes from.
    fn adopt(
        &self,
        fingerprint: [u8; 20],
        origin: KeyEvent,
    ) -> impl Future<Output = Result<(), WalletStoreError>> + Send;

    /// Creates an invoice of the next number, from which `id` makes its id.
    fn create_invoice(
        &self,
        invoice: NewInvoice,
        id: impl FnOnce(u64) -> InvoiceId + Send + 'static,
    ) -> impl Future<Output = Result<Invoice, WalletStoreError>> + Send;

    /// Deletes the invoice of this number, which is not paid.
    fn delete_invoice(
        &self,
        number: u64,
        now: Timestamp,
    ) -> impl Future<Output = Result<(), WalletStoreError>> + Send;

    /// Tells by events which invoices have expired at `now`, and forgets idempotency keys that are
    /// older than [`IDEMPOTENCY_PERIOD`](crate::IDEMPOTENCY_PERIOD): up to `limit` of both. Answers
    /// how many it has looked at, of which some may have been paid in time.
    fn sweep(
        &self,
        now: Timestamp,
        limit: usize,
    ) -> impl Future<Output = Result<usize, WalletStoreError>> + Send;

    /// Creates a user of the next id, or answers the one that was created with this key.
    fn create_user(
        &self,
        details: UserDraft,
        now: Timestamp,
        idempotency: Option<IdempotencyKey>,
    ) -> impl Future<Output = Result<UserRecord, WalletStoreError>> + Send;

    /// The invoice of this number, also a deleted one.
    fn invoice(
        &self,
        number: u64,
    ) -> impl Future<Output = Result<Option<Invoice>, WalletStoreError>> + Send;

    /// A page of invoices, in their states at `now`.
    fn invoices(
        &self,
        query: InvoiceQuery,
        now: Timestamp,
    ) -> impl Future<Output = Result<InvoicePage, WalletStoreError>> + Send;

    /// The user of this id.
    fn user(
        &self,
        id: u64,
    ) -> impl Future<Output = Result<Option<UserRecord>, WalletStoreError>> + Send;

    /// Notes a payment that is going to be broadcast. At most one is in flight for an invoice.
    fn begin_payment(
        &self,
        payment: NewIncoming,
    ) -> impl Future<Output = Result<Begun, WalletStoreError>> + Send;

    /// Notes that the network refuses the payment that is in flight with the transaction of this
    /// number: its invoice can be paid again.
    fn refuse_payment(
        &self,
        transaction: u64,
    ) -> impl Future<Output = Result<(), WalletStoreError>> + Send;

    /// Notes that the network has taken the transaction of this number, whatever was known of it
    /// before. The invoice that it pays is paid, coins come and go, the balance moves, and what
    /// contradicts it is displaced.
    fn settle(
        &self,
        transaction: u64,
        now: Timestamp,
    ) -> impl Future<Output = Result<(), WalletStoreError>> + Send;

    /// Chooses coins for a payment and reserves them, with the transaction that `build` makes of them
    /// and the message to the payee. Answers the payment with the same idempotency key, or an open or
    /// settled one to the same URL, if there is one. One that was in vain cannot be mined besides, as
    /// far as one of its coins can be chosen.
    fn reserve_coins(
        &self,
        payment: NewOutgoing,
        build: impl FnOnce(&Selection) -> Result<(Transaction, Vec<u8>), KeyError> + Send + 'static,
    ) -> impl Future<Output = Result<OutgoingPayment, WalletStoreError>> + Send;

    /// Notes that the payee has accepted the payment of this number, with a memo and a channel, or
    /// that the network knows it.
    fn settle_outgoing(
        &self,
        payment: u64,
        answer: Option<(String, Option<PeerChannel>)>,
        now: Timestamp,
    ) -> impl Future<Output = Result<OutgoingPayment, WalletStoreError>> + Send;

    /// Notes that the payee refuses the payment of this number, which the network does not know: its
    /// coins can be spent again.
    fn refuse_outgoing(
        &self,
        payment: u64,
        reason: String,
        now: Timestamp,
    ) -> impl Future<Output = Result<OutgoingPayment, WalletStoreError>> + Send;

    /// Notes the transaction that `build` makes of one of the coins of the open payment of this
    /// number, to take it back. Answers its number, or that of the one made before.
    fn begin_cancellation(
        &self,
        payment: u64,
        spending: Spending,
        now: Timestamp,
        build: impl FnOnce(&Selection) -> Result<Transaction, KeyError> + Send + 'static,
    ) -> impl Future<Output = Result<u64, WalletStoreError>> + Send;

    /// Notes that another transaction has taken the place of the one of this number: what it did is
    /// undone, after what the wallet's later transactions did with its coins.
    fn displace(
        &self,
        transaction: u64,
        now: Timestamp,
    ) -> impl Future<Output = Result<(), WalletStoreError>> + Send;

    /// Notes that the transaction of this number is in a block of the main chain.
    fn prove(
        &self,
        transaction: u64,
        proof: Proof,
        now: Timestamp,
    ) -> impl Future<Output = Result<(), WalletStoreError>> + Send;

    /// Notes that a block is no longer in the main chain: what it held is to be looked after again.
    fn forget_block(
        &self,
        block: BlockPlace,
    ) -> impl Future<Output = Result<(), WalletStoreError>> + Send;

    /// Notes that the time is over for which the transaction of this number was to be looked after. If
    /// it could still be mined, another such time begins.
    fn unfollow(
        &self,
        transaction: u64,
    ) -> impl Future<Output = Result<(), WalletStoreError>> + Send;

    /// Notes whether the payer has read a proof for the transaction of this number. Answers whether
    /// there is such a proof.
    fn mark_read(
        &self,
        transaction: u64,
        sequence: u32,
        is_read: bool,
    ) -> impl Future<Output = Result<bool, WalletStoreError>> + Send;

    /// The payments towards the invoice of this number, in the order in which they came.
    fn incoming(
        &self,
        invoice: u64,
    ) -> impl Future<Output = Result<Vec<IncomingPayment>, WalletStoreError>> + Send;

    /// The payment by the wallet of this number, and the message to its payee while it is open.
    fn outgoing(
        &self,
        payment: u64,
    ) -> impl Future<Output = Result<Option<(OutgoingPayment, Vec<u8>)>, WalletStoreError>> + Send;

    /// The transaction of the payment by the wallet of this number.
    fn outgoing_transaction(
        &self,
        payment: u64,
    ) -> impl Future<Output = Result<Transaction, WalletStoreError>> + Send;

    /// The open or settled payment by the wallet that a request stands for: the one that was made first
    /// with its key, or else the last one to its URL, which its key stands for from now on.
    fn outgoing_to(
        &self,
        url: &str,
        idempotency: Option<IdempotencyKey>,
        now: Timestamp,
    ) -> impl Future<Output = Result<Option<OutgoingPayment>, WalletStoreError>> + Send;

    /// Up to `limit` payments by the wallet before the one of this number, the newest first.
    fn outgoing_before(
        &self,
        payment: u64,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<OutgoingPayment>, WalletStoreError>> + Send;

    /// Up to `limit` transactions after the one of this number that are to be looked after, in the
    /// order of their numbers.
    fn followed(
        &self,
        after: u64,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<Followed>, WalletStoreError>> + Send;

    /// The transaction of this number.
    fn transaction(
        &self,
        transaction: u64,
    ) -> impl Future<Output = Result<Option<Transaction>, WalletStoreError>> + Send;

    /// The blocks from this height on that hold transactions of the wallet.
    fn blocks(
        &self,
        from: u32,
    ) -> impl Future<Output = Result<Vec<BlockPlace>, WalletStoreError>> + Send;

    /// What proves that the transaction of this number is in a block: the proofs found so far, in
    /// that order.
    fn proofs(
        &self,
        transaction: u64,
    ) -> impl Future<Output = Result<Vec<FoundProof>, WalletStoreError>> + Send;

    /// The balance, in satoshis.
    fn balance(&self) -> impl Future<Output = Result<u64, WalletStoreError>> + Send;

    /// Up to `limit` events after the one of this number, in order.
    fn events(
        &self,
        after: u64,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<Event>, WalletStoreError>> + Send;

    /// Adds to the audit log what happens to a key.
    fn note_key_event(
        &self,
        event: KeyEvent,
        subject: String,
    ) -> impl Future<Output = Result<(), WalletStoreError>> + Send;

    /// Up to `limit` entries of the audit log after the one of this number, in order.
    fn audit_log(
        &self,
        after: u64,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<AuditEntry>, WalletStoreError>> + Send;

    /// Reads the audit log from its beginning, off the disk.
    fn verify_audit_log(&self)
    -> impl Future<Output = Result<AuditCheck, WalletStoreError>> + Send;

    /// Hands all that there is about money to `step`, off the disk and as of one moment, after which it
    /// answers what `step` has made of it.
    fn fold_ledger<A: Send + 'static>(
        &self,
        start: A,
        step: impl FnMut(&mut A, LedgerItem) + Send + 'static,
    ) -> impl Future<Output = Result<A, WalletStoreError>> + Send;

    /// Takes over transactions that were found in the chain, in the order of their numbers.
    fn recover(
        &self,
        found: Vec<Recovered>,
    ) -> impl Future<Output = Result<(), WalletStoreError>> + Send;

    /// Notes which numbers of keys are not to be given out.
    fn pass_over(
        &self,
        used: UsedNumbers,
    ) -> impl Future<Output = Result<(), WalletStoreError>> + Send;

    /// The time of the last event, or the beginning of 1970.
    fn last_event_at(&self) -> impl Future<Output = Result<Timestamp, WalletStoreError>> + Send;
}
