//! The rows that the rules of money work on, and what a back end has to do with them: get, put, remove,
//! and read a range of one kind.

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
use crate::model::receipt::{Receipt, ReceiptKey};
use crate::model::settlement::{PaymentRules, Received};
use crate::model::time::Timestamp;
use crate::model::transaction::{FollowedUntil, FoundProof, TransactionRecord};
use crate::model::user::UserDraft;
use crate::model::webhook::{Webhook, WebhookId};
use crate::model::withdrawal::WithdrawalRecord;

/// A kind of row.
pub trait Kind: 'static {
    /// What tells rows of the kind apart. Their order is that of a range.
    type Key: Clone + Ord + Debug + Send;
    /// What a row holds.
    type Row: Clone + PartialEq + Debug + Send;
}

/// What all kinds of rows of a back end have in common.
pub trait Engine {
    /// Why a row cannot be read or written, or a command is refused.
    type Error: From<Damaged> + From<Refusal>;
}

/// In which order a range is read.
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
    /// The row of this key.
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

    /// Removes the row of a key. Answers whether there was one.
    fn erase(&mut self, key: &K::Key) -> Result<bool, Self::Error>;
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

        /// How many kinds of rows there are.
        pub const KINDS: usize = [$(stringify!($kind)),*].len();

        /// Rows of all kinds, as they are at one moment.
        pub trait ReadRows: Engine $(+ ReadTable<$kind>)* {
            /// The row of this key.
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

            /// Removes the row of a key. Answers whether there was one.
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
    /// Number to invoice. What payments add to it (`refund_to`, `in_flight`) are rows of their own.
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
    /// Id of a webhook and number of an event to what became of it there.
    Deliveries: (WebhookId, u64) => Delivery;
    /// Id of a webhook, whether a delivery is over, when it is tried again or was tried last, and the number of the
    /// event.
    DeliveriesByTime: (WebhookId, bool, Timestamp, u64) => ();
    /// The time at which an invoice expires, and its number: those that a sweep has to look at then.
    /// That an invoice is paid changes nothing here, which spares who pays it the pages.
    Expiries: (Timestamp, u64) => ();
    /// What was answered to a request with an idempotency key.
    IdempotentAnswers: (Route, String) => Answered;
    /// The time, and the route and key that were used then.
    IdempotencyAges: (Timestamp, Route, String) => ();
    /// Figures that are kept up to date.
    AllFigures: () => Figures;
    /// The fingerprint of the wallet that the store belongs to.
    Owner: () => [u8; 20];
    /// The block up to which the chain was followed.
    FollowedTip: () => FollowedBlock;
    /// That the books are a copy of some earlier day, and the height that they had followed the chain to, if
    /// that is known.
    CatchUp: () => Option<u32>;
    /// An account, and where its numbers begin.
    Accounts: u32 => AccountStart;
    /// What decides whether an invoice is paid.
    Rules: () => PaymentRules;
    /// Hash of a public key, whose P2PKH script is watched, to the key.
    Watched: [u8; 20] => KeyPath;
    /// The first of some keys that are to be watched, and whose hashes are not stored yet, to the index after
    /// the last of them.
    WatchBacklog: KeyPath => u32;
    /// From where on blocks are to be read once more.
    Rescan: () => RescanFrom;
    /// Number to transaction.
    Transactions: u64 => TransactionRecord;
    /// Txid to the numbers of the transaction. It has more than one if the books learned of some of its outputs
    /// later than of others.
    TransactionNumbers: (Txid, u64) => ();
    /// Number of a transaction to its bytes.
    RawTransactions: u64 => Vec<u8>;
    /// Number of a transaction that is looked after to the transactions that it builds on and that were in no block
    /// when it came, as its payer has sent them: one behind the other, parents before their children.
    Ancestors: u64 => Vec<u8>;
    /// The outputs that pay scripts of the wallet.
    Receipts: ReceiptKey => Receipt;
    /// Receipts that can be spent: how sure they are, their amounts, and which they are.
    Spendable: (Trust, u64, ReceiptKey) => ();
    /// The height of the tip from which on a receipt of a coinbase transaction can be spent, and the receipt.
    Immature: (u32, ReceiptKey) => ();
    /// The receipts that pay no invoice, and are no change.
    Unassigned: ReceiptKey => ();
    /// Number of a transaction, and a receipt that it spends.
    Spends: (u64, ReceiptKey) => ();
    /// Number of an invoice, and numbers of the transactions that pay its script.
    Incoming: (u64, u64) => ();
    /// Number of an invoice to what counts of what was paid to it.
    ReceivedFor: u64 => Received;
    /// Number of an invoice that its owner has marked as paid to when that was.
    Marked: u64 => Timestamp;
    /// Number of an invoice to the number of the transaction that is being offered for it.
    InFlight: u64 => u64;
    /// Number of a transaction to where its payer wants refunds.
    Refunds: u64 => String;
    /// Number to payment by the wallet.
    Outgoing: u64 => OutgoingRecord;
    /// Number of a payment by the wallet to what the payee is sent.
    Messages: u64 => Vec<u8>;
    /// Hash of a payment URL to the number of the last payment by the wallet to it.
    OutgoingByUrl: [u8; 32] => u64;
    /// Number of an invoice to the number of its last refund, a payment by the wallet.
    LastRefunds: u64 => u64;
    /// Number to withdrawal.
    Withdrawals: u64 => WithdrawalRecord;
    /// Number that a transaction will have to the receipts that are reserved for it.
    Reservations: u64 => Vec<ReceiptKey>;
    /// Number of a transaction that is to be looked after to the time until which that is done.
    FollowedTransactions: u64 => FollowedUntil;
    /// Number of a transaction, and numbers from 1 on, to proofs.
    Proofs: (u64, u32) => FoundProof;
    /// Height, and number of a transaction that is in a block there.
    MinedAt: (u32, u64) => ();
}

/// A block up to which the chain was followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FollowedBlock {
    /// Its height.
    pub height: u32,
    /// Its hash.
    pub hash: BlockHash,
}

/// From where on blocks are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RescanFrom {
    /// The block of this height.
    Height(u32),
    /// The first block that is not older than this.
    Time(Timestamp),
}

/// Where the numbers of an account begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountStart {
    /// The last invoice whose key is of an earlier account.
    pub last_invoice_before: u64,
    /// The last user whose key is of an earlier account.
    pub last_user_before: u64,
}
