//! The rows that the rules of money work on.
//!
//! An [`Engine`] stores bytes. A [`Kind`] of row says how its keys and rows become bytes.

use std::fmt::Debug;
use std::ops::{Bound, RangeBounds};

use bsv_store::{AuditEntry, KeyEvent, StoreError};
use bsv_tx::{OutPoint, Txid};
use thiserror::Error;

pub use crate::ledger::codec::{Damaged, Row, RowKey};
pub use crate::model::stored::{
    AccountStart, CopyEnd, FollowedBlock, Paid, Reorganised, RescanFrom,
};

use crate::ledger::Refusal;
use crate::ledger::events::EventRow;
use crate::ledger::figures::Figures;
use crate::ledger::idempotency::{Answered, Route};
use crate::model::coin::{KeyPath, Trust};
use crate::model::delivery::Delivery;
use crate::model::event::LogName;
use crate::model::invoice::Invoice;
use crate::model::outgoing::OutgoingRecord;
use crate::model::process::{Claimed, ProcessId, Task};
use crate::model::receipt::{Receipt, ReceiptKey};
use crate::model::settlement::{PaymentRules, Received, Shallowness};
use crate::model::time::Timestamp;
use crate::model::transaction::{FollowedUntil, FoundProof, TransactionRecord};
use crate::model::user::UserDraft;
use crate::model::webhook::{Webhook, WebhookId};
use crate::model::withdrawal::WithdrawalRecord;

/// Why a command or query failed. It has changed nothing, except perhaps after
/// [`StoreError::Commit`].
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WalletStoreError {
    /// The rules refuse it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<Damaged> for WalletStoreError {
    fn from(Damaged(reason): Damaged) -> Self {
        StoreError::Damaged(reason).into()
    }
}

/// A key and its row, in bytes.
pub type RawRow = (Vec<u8>, Vec<u8>);

/// Stores rows. It knows nothing of what they mean.
pub trait Engine {
    /// The row of a key.
    fn read(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError>;

    /// Up to `limit` rows of a range, in its order.
    fn scan(&self, range: &KeyRange, limit: usize) -> Result<Vec<RawRow>, StoreError>;

    /// Changes the row of a key.
    fn write(&mut self, table: Table, key: Vec<u8>, change: Change) -> Result<(), StoreError>;

    /// Adds an entry to the log of what happened to keys.
    fn append_audit(&mut self, entry: NewAuditEntry<'_>) -> Result<(), StoreError>;
}

/// The change of the row of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The key has no row, and gets this one. An engine need not look whether it has one.
    New(Vec<u8>),
    /// The key gets this row, whether it has one or not.
    Set(Vec<u8>),
    /// The key has no row afterwards.
    Gone,
}

impl Change {
    /// The row afterwards.
    pub fn row(&self) -> Option<&Vec<u8>> {
        match self {
            Self::New(row) | Self::Set(row) => Some(row),
            Self::Gone => None,
        }
    }
}

/// A new entry of the log of what happened to keys.
#[derive(Clone, Copy, Debug)]
pub enum NewAuditEntry<'e> {
    /// It goes on from the last one: what happened, and to which key.
    Next(KeyEvent, &'e str),
    /// It is one of another log, which all entries before it are of.
    Copied(&'e AuditEntry),
}

/// The order in which a range is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Order {
    /// From the lowest key on.
    Ascending,
    /// From the highest key on.
    Descending,
}

/// A range of keys of a table, and the order in which it is read. Keys are compared as bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeyRange {
    /// The table.
    pub table: Table,
    /// The lowest key that may be in it.
    pub from: Vec<u8>,
    /// The lowest key that is beyond it. Without one, it goes on to the last key.
    pub to: Option<Vec<u8>>,
    /// The order.
    pub order: Order,
}

impl KeyRange {
    /// All keys of a table, in their order.
    pub fn all(table: Table) -> Self {
        Self { table, from: Vec::new(), to: None, order: Order::Ascending }
    }

    /// The range of these keys of a kind.
    pub(crate) fn of<K: Kind>(range: &impl RangeBounds<K::Key>, order: Order) -> Self {
        let from = match range.start_bound() {
            Bound::Included(key) => encoded(key),
            Bound::Excluded(key) => next_key(encoded(key)),
            Bound::Unbounded => Vec::new(),
        };
        let to = match range.end_bound() {
            Bound::Included(key) => Some(next_key(encoded(key))),
            Bound::Excluded(key) => Some(encoded(key)),
            Bound::Unbounded => None,
        };
        Self { table: K::TABLE, from, to, order }
    }

    /// Whether no key can be in it.
    pub fn is_empty(&self) -> bool {
        self.to.as_ref().is_some_and(|to| *to <= self.from)
    }

    /// Whether a key is in it.
    pub fn contains(&self, key: &[u8]) -> bool {
        *key >= *self.from && self.to.as_ref().is_none_or(|to| *key < **to)
    }

    /// Its ends.
    pub fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        let to = self.to.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        (Bound::Included(&self.from), to)
    }
}

/// The lowest key after another one.
pub fn next_key(mut key: Vec<u8>) -> Vec<u8> {
    key.push(0);
    key
}

fn encoded<K: RowKey>(key: &K) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(24);
    key.encode(&mut bytes);
    bytes
}

/// A kind of row.
pub trait Kind: 'static {
    /// The table of its rows.
    const TABLE: Table;
    /// Identifies a row of the kind. Ranges are in the order of keys.
    type Key: RowKey;
    /// A row.
    type Row: Row;

    /// A key in bytes.
    fn key(key: &Self::Key) -> Vec<u8> {
        encoded(key)
    }
}

/// The rows of a range, with their keys.
pub type RowsOf<K> = Vec<(<K as Kind>::Key, <K as Kind>::Row)>;

/// Rows of all kinds, all as of one moment.
impl dyn Engine + '_ {
    /// The row with this key.
    pub fn get<K: Kind>(&self, key: &K::Key) -> Result<Option<K::Row>, WalletStoreError> {
        let row = self.read(K::TABLE, &encoded(key))?;
        Ok(row.map(|row| K::Row::decode(&row)).transpose()?)
    }

    /// All rows of a range.
    pub fn range<K: Kind>(
        &self,
        range: impl RangeBounds<K::Key>,
    ) -> Result<RowsOf<K>, WalletStoreError> {
        self.first::<K>(range, Order::Ascending, usize::MAX)
    }

    /// Up to `limit` rows of a range.
    pub fn first<K: Kind>(
        &self,
        range: impl RangeBounds<K::Key>,
        order: Order,
        limit: usize,
    ) -> Result<RowsOf<K>, WalletStoreError> {
        let rows = self.scan(&KeyRange::of::<K>(&range, order), limit)?;
        let read = |(key, row): RawRow| Ok((read_key(&key)?, K::Row::decode(&row)?));
        rows.into_iter().map(read).collect()
    }

    /// Sets the row of a key.
    pub fn put<K: Kind>(&mut self, key: K::Key, row: &K::Row) -> Result<(), WalletStoreError> {
        Ok(self.write(K::TABLE, encoded(&key), Change::Set(row.encode()))?)
    }

    /// Sets the row of a key that has none, such as one with a number that was just given out.
    pub fn add<K: Kind>(&mut self, key: K::Key, row: &K::Row) -> Result<(), WalletStoreError> {
        Ok(self.write(K::TABLE, encoded(&key), Change::New(row.encode()))?)
    }

    /// Removes the row of a key. Returns whether there was one.
    pub fn remove<K: Kind>(&mut self, key: K::Key) -> Result<bool, WalletStoreError> {
        let key = encoded(&key);
        if self.read(K::TABLE, &key)?.is_none() {
            return Ok(false);
        }
        self.write(K::TABLE, key, Change::Gone)?;
        Ok(true)
    }
}

/// A key of these bytes, and no more.
fn read_key<K: RowKey>(mut bytes: &[u8]) -> Result<K, Damaged> {
    let key = K::decode(&mut bytes)?;
    if bytes.is_empty() { Ok(key) } else { Err(Damaged("a key that is too long".to_owned())) }
}

/// What `attempt` makes of each item. It goes on after an error, and fails with the first one at the end. A back end may
/// run a query or a command on the rows that it has, and take others for absent, to learn which rows to read. One run
/// then names the rows of all items.
pub(crate) fn try_all<I: IntoIterator, T, E>(
    items: I,
    attempt: impl FnMut(I::Item) -> Result<T, E>,
) -> Result<Vec<T>, E> {
    let all: Vec<_> = items.into_iter().map(attempt).collect();
    all.into_iter().collect()
}

macro_rules! kinds {
    ($($(#[doc = $doc:literal])* $kind:ident = $number:literal, $name:literal: $key:ty => $row:ty;)*) => {
        $(
            $(#[doc = $doc])*
            #[derive(Debug)]
            pub enum $kind {}

            impl Kind for $kind {
                const TABLE: Table = Table::$kind;

                type Key = $key;
                type Row = $row;
            }
        )*

        /// The table of a kind of rows.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Table { $($(#[doc = $doc])* $kind = $number,)* }

        impl Table {
            /// All tables.
            pub const ALL: &'static [Self] = &[$(Self::$kind),*];

            /// Its name in a store.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)*
                }
            }

            /// The meaning of its rows.
            pub fn meaning(self) -> &'static str {
                match self {
                    $(Self::$kind => concat!($($doc),*).trim_ascii_start(),)*
                }
            }

            /// Fails if a key and its row cannot be read.
            pub(crate) fn check(self, key: &[u8], row: &[u8]) -> Result<(), Damaged> {
                match self {
                    $(Self::$kind => {
                        read_key::<$key>(key)?;
                        <$row as Row>::decode(row).map(drop)
                    })*
                }
            }

            /// A key and its row as text. Bytes of transactions and messages are hexadecimal digits. Fails if
            /// they cannot be read.
            pub fn show(self, key: &[u8], row: &[u8]) -> Result<(String, String), Damaged> {
                match self {
                    $(Self::$kind => {
                        let key: $key = read_key(key)?;
                        let shown = <$row as Row>::decode(row)?;
                        Ok((format!("{key:?}"), match self.has_long_rows() {
                            true => hex::encode(row),
                            false => format!("{shown:?}"),
                        }))
                    })*
                }
            }
        }
    };
}

impl Table {
    /// Whether strangers choose how long its rows are.
    pub fn has_long_rows(self) -> bool {
        matches!(self, Self::RawTransactions | Self::Ancestors | Self::Messages)
    }
}

kinds! {
    /// Number to invoice. The fields that payments set (`refund_to`, `in_flight`) are in rows of
    /// their own.
    Invoices = 1, "invoices": u64 => Invoice;
    /// Reference and number of an invoice.
    InvoicesByReference = 2, "invoices_by_reference": (String, u64) => ();
    /// Id to user.
    Users = 3, "users": u64 => UserDraft;
    /// Number to event.
    Events = 4, "events": u64 => EventRow;
    /// The name of the log of events.
    EventLog = 5, "event_log": () => LogName;
    /// Id to webhook.
    Webhooks = 6, "webhooks": WebhookId => Webhook;
    /// How often the owner has changed webhooks or asked for events again, here or in another process.
    WebhookChanges = 7, "webhook_changes": () => u64;
    /// Id of a webhook and number of an event to the delivery.
    Deliveries = 8, "deliveries": (WebhookId, u64) => Delivery;
    /// Id of a webhook, whether the delivery is over, the time of its next attempt or of the last
    /// one, and the number of the event.
    DeliveriesByTime = 9, "deliveries_by_time": (WebhookId, bool, Timestamp, u64) => ();
    /// The time at which an invoice expires, and its number. A sweep looks at the invoice at that
    /// time. A payment does not remove the row, which saves the payment writing another page.
    Expiries = 10, "expiries": (Timestamp, u64) => ();
    /// Route and idempotency key to the answer.
    IdempotentAnswers = 11, "idempotent_answers": (Route, String) => Answered;
    /// The time at which a route and a key were used.
    IdempotencyAges = 12, "idempotency_ages": (Timestamp, Route, String) => ();
    /// Figures about the whole wallet.
    AllFigures = 13, "figures": () => Figures;
    /// The fingerprint of the wallet that the store belongs to.
    Owner = 14, "owner": () => [u8; 20];
    /// The block up to which the wallet has followed the chain.
    FollowedTip = 15, "followed_tip": () => FollowedBlock;
    /// The reorganisations that the wallet has followed.
    Reorganisations = 16, "reorganisations": () => Reorganised;
    /// Present if the books are an earlier copy: where that copy ends.
    CatchUp = 17, "catch_up": () => CopyEnd;
    /// Number of an account to the beginning of its numbers.
    Accounts = 18, "accounts": u32 => AccountStart;
    /// The rules that decide whether an invoice is paid.
    Rules = 19, "rules": () => PaymentRules;
    /// Hash of a public key whose P2PKH script is watched to the path of the key.
    Watched = 20, "watched": [u8; 20] => KeyPath;
    /// The hashes that were added to those most recently, if several processes share the store. The
    /// last one stays.
    NewlyWatched = 21, "newly_watched": u64 => [u8; 20];
    /// Keys that will be watched, and whose hashes are not stored yet: the first key to the index
    /// after the last one. If there are none, the index of both is the one after the last key that is
    /// watched.
    WatchBacklog = 22, "watch_backlog": KeyPath => u32;
    /// The place from which on blocks must be read again.
    Rescan = 23, "rescan": () => RescanFrom;
    /// Number to transaction.
    Transactions = 24, "transactions": u64 => TransactionRecord;
    /// Txid and number of a transaction. A transaction has several numbers if the books learned of
    /// its outputs at different times.
    TransactionNumbers = 25, "transaction_numbers": (Txid, u64) => ();
    /// Number of a transaction to its bytes.
    RawTransactions = 26, "raw_transactions": u64 => Vec<u8>;
    /// Number of a followed transaction to its ancestors that were unconfirmed when it arrived, as
    /// its payer sent them: one after the other, parents before their children.
    Ancestors = 27, "ancestors": u64 => Vec<u8>;
    /// The outputs that pay scripts of the wallet.
    Receipts = 28, "receipts": ReceiptKey => Receipt;
    /// Spendable receipts: their trust, amounts and keys.
    Spendable = 29, "spendable": (Trust, u64, ReceiptKey) => ();
    /// The height of the tip from which on a receipt of a coinbase transaction can be spent, and
    /// the receipt.
    Immature = 30, "immature": (u32, ReceiptKey) => ();
    /// The receipts that pay no invoice and are not change.
    Unassigned = 31, "unassigned": ReceiptKey => ();
    /// Number of a deleted invoice whose receipts are still to be listed as unassigned to the first
    /// one that may not be listed yet.
    Unlisted = 32, "unlisted": u64 => ReceiptKey;
    /// Number of a transaction, and a receipt that it spends.
    Spends = 33, "spends": (u64, ReceiptKey) => ();
    /// Number of an invoice, and number of a transaction that pays its script, to what it pays.
    Incoming = 34, "incoming": (u64, u64) => Paid;
    /// Number of an invoice to the sums of its payments that count.
    ReceivedFor = 35, "received_for": u64 => Received;
    /// Number of an invoice, height of the block of a payment that counts, or
    /// [`OUTSIDE_BLOCKS`], and number of its transaction.
    Counted = 36, "counted": (u64, u32, u64) => ();
    /// Number of an invoice, and number of a transaction that counts as its payment and whose payer
    /// says where refunds go.
    Wishes = 37, "wishes": (u64, u64) => ();
    /// Number of an invoice that its owner has marked as paid to the time of that.
    Marked = 38, "marked": u64 => Timestamp;
    /// Number of an invoice to the number of the transaction that is being offered for it.
    InFlight = 39, "in_flight": u64 => u64;
    /// Number of a transaction to the place where its payer wants refunds.
    Refunds = 40, "refunds": u64 => String;
    /// Number to payment by the wallet.
    Outgoing = 41, "outgoing": u64 => OutgoingRecord;
    /// Number of a payment by the wallet to the message to its payee.
    Messages = 42, "messages": u64 => Vec<u8>;
    /// Number of a payment by the wallet to the URL that its message is posted to, if that is not
    /// the payment URL.
    PostingUrls = 43, "posting_urls": u64 => String;
    /// Hash of a payment URL to the number of the last payment by the wallet to it.
    OutgoingByUrl = 44, "outgoing_by_url": [u8; 32] => u64;
    /// Number of an invoice to the number of its last refund, a payment by the wallet.
    LastRefunds = 45, "last_refunds": u64 => u64;
    /// Number to withdrawal.
    Withdrawals = 46, "withdrawals": u64 => WithdrawalRecord;
    /// Number that a future transaction will have to the receipts that are reserved for it.
    Reservations = 47, "reservations": u64 => Vec<ReceiptKey>;
    /// The processes that have the wallet open.
    Processes = 48, "processes": ProcessId => ();
    /// What a process alone does at the moment.
    Claims = 49, "claims": Task => Claimed;
    /// Number of a followed transaction to the time until which it is followed.
    FollowedTransactions = 50, "followed_transactions": u64 => FollowedUntil;
    /// Number of a transaction and number of a proof, from 1, to the proof.
    Proofs = 51, "proofs": (u64, u32) => FoundProof;
    /// Height of a block, and number of a transaction in it.
    MinedAt = 52, "mined_at": (u32, u64) => ();
    /// Number of an invoice that may hold money which leaves its owner a decision.
    Attention = 53, "attention": u64 => ();
    /// Number of an invoice, and number of a transaction that counts as its payment and that the
    /// network no longer shows, to the height up to which the chain was followed when that began.
    Contested = 54, "contested": (u64, u64) => u32;
    /// Height of the block of a payment that does not count yet because its block is not deep enough,
    /// number of the invoice, and number of the transaction.
    Shallow = 55, "shallow": (u32, u64, u64) => Shallowness;
    /// Coin that a transaction spends of which only services tell, and number of that transaction. It is
    /// in no block, and not lost.
    UnprovenCoins = 56, "unproven_coins": (OutPoint, u64) => ();
    /// Height of the block of a transaction, or [`OUTSIDE_BLOCKS`], and number of that transaction to the
    /// sum of its receipts that count by the word of services alone, or did so before the block.
    Exposed = 57, "exposed": (u32, u64) => u64;
}

/// Stands for the height of a payment that is in no block.
pub const OUTSIDE_BLOCKS: u32 = u32::MAX;
