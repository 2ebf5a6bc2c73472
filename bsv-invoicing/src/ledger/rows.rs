//! The rows that the rules of money work on, and the operations that a back end provides: get, put,
//! remove, and read a range of one kind.

use std::fmt::Debug;
use std::ops::{Bound, RangeBounds};

use bsv_store::{AuditEntry, KeyEvent};
use bsv_tx::{BlockHash, Txid};

pub use crate::ledger::damaged::Damaged;

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
use crate::model::settlement::{PaymentRules, Received};
use crate::model::time::Timestamp;
use crate::model::transaction::{FollowedUntil, FoundProof, TransactionRecord};
use crate::model::user::UserDraft;
use crate::model::webhook::{Webhook, WebhookId};
use crate::model::withdrawal::WithdrawalRecord;

/// A kind of row.
pub trait Kind: 'static {
    /// Identifies a row of the kind. Ranges are in the order of keys.
    type Key: Clone + Ord + Debug + Send;
    /// What a row holds.
    type Row: Clone + PartialEq + Debug + Send;
}

/// The part of a back end that all kinds of rows share.
pub trait Engine {
    /// Why a row cannot be read or written, or a command is refused.
    type Error: From<Damaged> + From<Refusal>;
}

/// The order in which a range is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// From the lowest key on.
    Ascending,
    /// From the highest key on.
    Descending,
}

/// A range of keys.
pub type KeyRange<'k, K> = (Bound<&'k <K as Kind>::Key>, Bound<&'k <K as Kind>::Key>);
/// The rows of a range, with their keys.
pub type RowsOf<K> = Vec<(<K as Kind>::Key, <K as Kind>::Row)>;

/// Reads rows of one kind.
pub trait ReadTable<K: Kind>: Engine {
    /// The row with this key.
    fn read(&self, key: &K::Key) -> Result<Option<K::Row>, Self::Error>;

    /// Up to `limit` rows of a range.
    fn scan(
        &self,
        range: KeyRange<'_, K>,
        order: Order,
        limit: usize,
    ) -> Result<RowsOf<K>, Self::Error>;
}

/// Writes rows of one kind.
pub trait Table<K: Kind>: ReadTable<K> {
    /// Sets the row of a key.
    fn write(&mut self, key: &K::Key, row: &K::Row) -> Result<(), Self::Error>;

    /// Sets the row of a key that has none. A back end need not look whether it has one.
    fn write_new(&mut self, key: &K::Key, row: &K::Row) -> Result<(), Self::Error> {
        self.write(key, row)
    }

    /// Removes the row of a key. Returns whether there was one.
    fn erase(&mut self, key: &K::Key) -> Result<bool, Self::Error>;
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
    ($($(#[$doc:meta])* $kind:ident: $key:ty => $row:ty;)*) => {
        $(
            $(#[$doc])*
            #[derive(Debug)]
            pub enum $kind {}

            impl Kind for $kind {
                type Key = $key;
                type Row = $row;
            }
        )*

        /// The number of kinds of rows.
        pub const KINDS: usize = [$(stringify!($kind)),*].len();

        /// Rows of all kinds, all as of one moment.
        pub trait ReadRows: Engine $(+ ReadTable<$kind>)* {
            /// The row with this key.
            fn get<K: Kind>(&self, key: &K::Key) -> Result<Option<K::Row>, Self::Error>
            where
                Self: ReadTable<K>,
            {
                ReadTable::<K>::read(self, key)
            }

            /// All rows of a range.
            fn range<K: Kind>(
                &self,
                range: impl RangeBounds<K::Key>,
            ) -> Result<RowsOf<K>, Self::Error>
            where
                Self: ReadTable<K>,
            {
                self.first::<K>(range, Order::Ascending, usize::MAX)
            }

            /// Up to `limit` rows of a range.
            fn first<K: Kind>(
                &self,
                range: impl RangeBounds<K::Key>,
                order: Order,
                limit: usize,
            ) -> Result<RowsOf<K>, Self::Error>
            where
                Self: ReadTable<K>,
            {
                ReadTable::<K>::scan(
                    self,
                    (range.start_bound(), range.end_bound()),
                    order,
                    limit,
                )
            }
        }

        impl<T: Engine $(+ ReadTable<$kind>)*> ReadRows for T {}

        /// Rows of all kinds, and an audit log, that a batch of commands changes.
        pub trait Rows: ReadRows + AuditLog $(+ Table<$kind>)* {
            /// Sets the row of a key.
            fn put<K: Kind>(&mut self, key: K::Key, row: &K::Row) -> Result<(), Self::Error>
            where
                Self: Table<K>,
            {
                Table::<K>::write(self, &key, row)
            }

            /// Sets the row of a key that has none, such as one with a number that was just given out.
            fn add<K: Kind>(&mut self, key: K::Key, row: &K::Row) -> Result<(), Self::Error>
            where
                Self: Table<K>,
            {
                Table::<K>::write_new(self, &key, row)
            }

            /// Removes the row of a key. Returns whether there was one.
            fn remove<K: Kind>(&mut self, key: K::Key) -> Result<bool, Self::Error>
            where
                Self: Table<K>,
            {
                Table::<K>::erase(self, &key)
            }
        }

        impl<T: ReadRows + AuditLog $(+ Table<$kind>)*> Rows for T {}
    };
}

/// The log of what happened to keys.
pub trait AuditLog: Engine {
    /// Adds an entry.
    fn append_audit(&mut self, event: KeyEvent, subject: &str) -> Result<(), Self::Error>;

    /// Adds an entry as it is in another log, which all entries before are of.
    fn put_audit(&mut self, entry: &AuditEntry) -> Result<(), Self::Error>;
}

kinds! {
    /// Number to invoice. The fields that payments set (`refund_to`, `in_flight`) are in rows of
    /// their own.
    Invoices: u64 => Invoice;
    /// Reference and number of an invoice.
    InvoicesByReference: (String, u64) => ();
    /// Id to user.
    Users: u64 => UserDraft;
    /// Number to event.
    Events: u64 => EventRow;
    /// The name of the log of events.
    EventLog: () => LogName;
    /// Id to webhook.
    Webhooks: WebhookId => Webhook;
    /// How often the owner has changed webhooks or asked for events again, here or in another process.
    WebhookChanges: () => u64;
    /// Id of a webhook and number of an event to the delivery.
    Deliveries: (WebhookId, u64) => Delivery;
    /// Id of a webhook, whether the delivery is over, the time of its next attempt or of the last
    /// one, and the number of the event.
    DeliveriesByTime: (WebhookId, bool, Timestamp, u64) => ();
    /// The time at which an invoice expires, and its number. A sweep looks at the invoice at that
    /// time. A payment does not remove the row, which saves the payment writing another page.
    Expiries: (Timestamp, u64) => ();
    /// Route and idempotency key to the answer.
    IdempotentAnswers: (Route, String) => Answered;
    /// The time at which a route and a key were used.
    IdempotencyAges: (Timestamp, Route, String) => ();
    /// Figures about the whole wallet.
    AllFigures: () => Figures;
    /// The fingerprint of the wallet that the store belongs to.
    Owner: () => [u8; 20];
    /// The block up to which the wallet has followed the chain.
    FollowedTip: () => FollowedBlock;
    /// How many reorganisations the wallet has followed.
    Reorganisations: () => u64;
    /// Present if the books are an earlier copy: the height up to which they had followed the
    /// chain, if it is known.
    CatchUp: () => Option<u32>;
    /// Number of an account to the beginning of its numbers.
    Accounts: u32 => AccountStart;
    /// The rules that decide whether an invoice is paid.
    Rules: () => PaymentRules;
    /// Hash of a public key whose P2PKH script is watched to the path of the key.
    Watched: [u8; 20] => KeyPath;
    /// The hashes that were added to those most recently, if several processes share the store. The
    /// last one stays.
    NewlyWatched: u64 => [u8; 20];
    /// Keys that will be watched, and whose hashes are not stored yet: the first key to the index
    /// after the last one.
    WatchBacklog: KeyPath => u32;
    /// The place from which on blocks must be read again.
    Rescan: () => RescanFrom;
    /// Number to transaction.
    Transactions: u64 => TransactionRecord;
    /// Txid and number of a transaction. A transaction has several numbers if the books learned of
    /// its outputs at different times.
    TransactionNumbers: (Txid, u64) => ();
    /// Number of a transaction to its bytes.
    RawTransactions: u64 => Vec<u8>;
    /// Number of a followed transaction to its ancestors that were unconfirmed when it arrived, as
    /// its payer sent them: one after the other, parents before their children.
    Ancestors: u64 => Vec<u8>;
    /// The outputs that pay scripts of the wallet.
    Receipts: ReceiptKey => Receipt;
    /// Spendable receipts: their trust, amounts and keys.
    Spendable: (Trust, u64, ReceiptKey) => ();
    /// The height of the tip from which on a receipt of a coinbase transaction can be spent, and
    /// the receipt.
    Immature: (u32, ReceiptKey) => ();
    /// The receipts that pay no invoice and are not change.
    Unassigned: ReceiptKey => ();
    /// Number of a deleted invoice whose receipts are still to be listed as unassigned to the first
    /// one that may not be listed yet.
    Unlisted: u64 => ReceiptKey;
    /// Number of a transaction, and a receipt that it spends.
    Spends: (u64, ReceiptKey) => ();
    /// Number of an invoice, and number of a transaction that pays its script, to what it pays.
    Incoming: (u64, u64) => Paid;
    /// Number of an invoice to the sums of its payments that count.
    ReceivedFor: u64 => Received;
    /// Number of an invoice, height of the block of a payment that counts, or
    /// [`OUTSIDE_BLOCKS`], and number of its transaction.
    Counted: (u64, u32, u64) => ();
    /// Number of an invoice, and number of a transaction that counts as its payment and whose payer
    /// says where refunds go.
    Wishes: (u64, u64) => ();
    /// Number of an invoice that its owner has marked as paid to the time of that.
    Marked: u64 => Timestamp;
    /// Number of an invoice to the number of the transaction that is being offered for it.
    InFlight: u64 => u64;
    /// Number of a transaction to the place where its payer wants refunds.
    Refunds: u64 => String;
    /// Number to payment by the wallet.
    Outgoing: u64 => OutgoingRecord;
    /// Number of a payment by the wallet to the message to its payee.
    Messages: u64 => Vec<u8>;
    /// Number of a payment by the wallet to the URL that its message is posted to, if that is not
    /// the payment URL.
    PostingUrls: u64 => String;
    /// Hash of a payment URL to the number of the last payment by the wallet to it.
    OutgoingByUrl: [u8; 32] => u64;
    /// Number of an invoice to the number of its last refund, a payment by the wallet.
    LastRefunds: u64 => u64;
    /// Number to withdrawal.
    Withdrawals: u64 => WithdrawalRecord;
    /// Number that a future transaction will have to the receipts that are reserved for it.
    Reservations: u64 => Vec<ReceiptKey>;
    /// The processes that have the wallet open.
    Processes: ProcessId => ();
    /// What a process alone does at the moment.
    Claims: Task => Claimed;
    /// Number of a followed transaction to the time until which it is followed.
    FollowedTransactions: u64 => FollowedUntil;
    /// Number of a transaction and number of a proof, from 1, to the proof.
    Proofs: (u64, u32) => FoundProof;
    /// Height of a block, and number of a transaction in it.
    MinedAt: (u32, u64) => ();
}

/// Stands for the height of a payment that is in no block.
pub const OUTSIDE_BLOCKS: u32 = u32::MAX;

/// What a transaction pays to an invoice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paid {
    /// The index of the first output that pays the invoice.
    pub first: u32,
    /// The sum of these outputs.
    pub satoshis: u64,
}

/// A block up to which the wallet has followed the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FollowedBlock {
    /// Its height.
    pub height: u32,
    /// Its hash.
    pub hash: BlockHash,
}

/// The place from which on blocks are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RescanFrom {
    /// The block of this height.
    Height(u32),
    /// The first block that is not older than this time.
    Time(Timestamp),
}

/// The beginning of the numbers of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountStart {
    /// The last invoice whose key comes from an earlier account.
    pub last_invoice_before: u64,
    /// The last user whose key comes from an earlier account.
    pub last_user_before: u64,
}
