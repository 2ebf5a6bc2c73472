//! Where the wallet keeps what it knows: the changes that can happen, and the trait that a back end
//! implements.

mod redb;

use std::time::Duration;

use bsv_store::StoreError;
use thiserror::Error;

use crate::event::Event;
use crate::idempotency::IdempotencyKey;
use crate::invoice::{Invoice, InvoiceDraft, InvoicePage, InvoiceQuery};
use crate::invoice_id::InvoiceId;
use crate::time::Timestamp;
use crate::user::UserDraft;

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

    /// Makes the store belong to the wallet of this fingerprint, if it belongs to no other.
    fn adopt(
        &self,
        fingerprint: [u8; 20],
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
    /// how many there were.
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

    /// The balance, in satoshis.
    fn balance(&self) -> impl Future<Output = Result<u64, WalletStoreError>> + Send;

    /// Up to `limit` events after the one of this number, in order.
    fn events(
        &self,
        after: u64,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<Event>, WalletStoreError>> + Send;

    /// The time of the last event, or the beginning of 1970.
    fn last_event_at(&self) -> impl Future<Output = Result<Timestamp, WalletStoreError>> + Send;
}
