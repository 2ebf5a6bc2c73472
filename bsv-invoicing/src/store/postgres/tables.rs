//! Which table holds rows of which kind, and the names of its columns.

use std::sync::LazyLock;

use super::cells::{Cell, Cells, ColumnType, Columns, cells_of, read_cells, types_of};
use crate::ledger::rows::{
    Accounts, AllFigures, Ancestors, CatchUp, Claims, Counted, Damaged, Deliveries,
    DeliveriesByTime, EventLog, Events, Expiries, FollowedTip, FollowedTransactions,
    IdempotencyAges, IdempotentAnswers, Immature, InFlight, Incoming, Invoices,
    InvoicesByReference, LastRefunds, Marked, Messages, MinedAt, NewlyWatched, Outgoing,
    OutgoingByUrl, Owner, PostingUrls, Processes, Proofs, RawTransactions, Receipts, ReceivedFor,
    Refunds, Reorganisations, Rescan, Reservations, Rules, Spendable, Spends, TransactionNumbers,
    Transactions, Unassigned, Unlisted, Users, WatchBacklog, Watched, WebhookChanges, Webhooks,
    Wishes, Withdrawals,
};
use crate::store::stored::StoredKind;

/// A table of rows.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) name: &'static str,
    pub(super) key: Vec<Column>,
    /// The other columns.
    pub(super) row: Vec<Column>,
}

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) column_type: ColumnType,
}

/// A kind of row that has a table.
pub(super) trait SqlKind: StoredKind<StoredKey: Columns, StoredRow: Columns> {
    const TABLE_ID: TableId;

    fn key_cells(key: &Self::Key) -> Cells {
        or_one(cells_of::<Self::StoredKey>(&Self::store_key(key)))
    }

    fn row_cells(row: &Self::Row) -> Cells {
        Self::store_row(row, |row| cells_of::<Self::StoredRow>(&row))
    }

    fn key_of(cells: &[Cell]) -> Result<Self::Key, Damaged> {
        let is_one = types_of::<Self::StoredKey>().is_empty();
        Self::read_key(read_cells::<Self::StoredKey>(if is_one { &[] } else { cells })?)
    }

    fn row_of(key: &Self::Key, cells: &[Cell]) -> Result<Self::Row, Damaged> {
        Self::read_row(key, read_cells::<Self::StoredRow>(cells)?)
    }
}

/// The key of the only row of a table.
const ONE: &str = "one";

/// The key of the only row of a table, as cells.
pub(super) fn one() -> Cells {
    vec![Cell::Flag(true)]
}

fn or_one(cells: Cells) -> Cells {
    if cells.is_empty() { one() } else { cells }
}

macro_rules! sql_tables {
    ($($kind:ident in $name:literal: $($key:ident),* => $($row:ident),*;)*) => {
        /// A table, by its number.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(super) enum TableId {
            $($kind,)*
        }

        $(impl SqlKind for $kind {
            const TABLE_ID: TableId = TableId::$kind;
        })*

        static TABLES: LazyLock<Vec<Table>> = LazyLock::new(|| vec![
            $(table_of::<$kind>($name, &[$(stringify!($key)),*], &[$(stringify!($row)),*]),)*
        ]);
    };
}

sql_tables! {
    // Its rows are the steps: see `step.rs`.
    AllFigures in "step": =>
        last_invoice, last_user, last_event, last_event_at, last_transaction, last_payment, last_change,
        account, last_invoice_before, last_user_before, confirmed, unconfirmed, waiting, reserved,
        contested, immature, coins;
    Invoices in "invoice": number =>
        id, satoshis, created_at, expires_at, paid_at, deleted_at, reference, description;
    InvoicesByReference in "invoice_of_reference": reference, number => ;
    Users in "wallet_user": id => name, email, avatar, address, phone_number;
    Events in "event": number => at, kind, subject, details, block;
    EventLog in "event_log": => name;
    Webhooks in "webhook": id =>
        url, types, description, in_order, state, created_at, cursor, last_sent, holding, secret,
        former_secret, former_secret_until, last_success_at, failing_since, failures;
    WebhookChanges in "webhook_changes": => count;
    Deliveries in "delivery": webhook, event => previous, state, next_attempt_at, tries, attempts;
    DeliveriesByTime in "delivery_by_time": webhook, is_over, at, event => ;
    Expiries in "expiry": at, invoice => ;
    IdempotentAnswers in "idempotency": route, key => request_hash, number, at;
    IdempotencyAges in "idempotency_age": at, route, key => ;
    Owner in "owner": what => fingerprint;
    FollowedTip in "followed_tip": => height, hash;
    Reorganisations in "reorganisation": => count;
    CatchUp in "catch_up": => height;
    Accounts in "account": number => last_invoice_before, last_user_before;
    Rules in "rules": => underpaid_tolerance, accepts_late, zero_conf_limit;
    Watched in "watched": hash => account, chain, index;
    NewlyWatched in "newly_watched": number => hash;
    WatchBacklog in "watch_backlog": account, chain, index => until;
    Rescan in "rescan": => is_height, start;
    Transactions in "tx": number =>
        txid, purpose, subject, state, satoshis, at, block_height, block_hash;
    TransactionNumbers in "tx_of_txid": txid, number => ;
    RawTransactions in "raw_tx": number => bytes;
    Ancestors in "ancestor": tx => bytes;
    Receipts in "receipt": maker, vout => satoshis, account, chain, index, spender;
    Spendable in "spendable": trust, satoshis, maker, vout => ;
    Immature in "immature": height, maker, vout => ;
    Unassigned in "unassigned": maker, vout => ;
    Unlisted in "unlisted": invoice => maker, vout;
    Spends in "spent": spender, maker, vout => ;
    Incoming in "incoming": invoice, tx => first, satoshis;
    ReceivedFor in "received_for": invoice =>
        unconfirmed, unmined, mined, late_unconfirmed, late_unmined, late_mined, payments, contested,
        wishes, changes;
    Counted in "counted": invoice, height, tx => ;
    Wishes in "wish": invoice, tx => ;
    Marked in "marked": invoice => at;
    InFlight in "in_flight": invoice => tx;
    Refunds in "refund_to": tx => address;
    Outgoing in "outgoing": number =>
        tx, cancellation, previous, purpose, purpose_number, purpose_text, satoshis, fee, created_at,
        expires_at, memo, channel_host, channel_path, channel_id, channel_token;
    Messages in "message": outgoing => bytes;
    PostingUrls in "posting_url": outgoing => url;
    OutgoingByUrl in "outgoing_of_url": url_hash => outgoing;
    LastRefunds in "last_refund": invoice => outgoing;
    Withdrawals in "withdrawal": number => recipient, reference, first_payment, payments, created_at;
    Reservations in "reservation": tx => coins;
    Processes in "process": id => ;
    Claims in "claim": task, subject => holder, number;
    FollowedTransactions in "followed": tx => until;
    Proofs in "proof": tx, sequence => height, hash, found_at, is_read, branch;
    MinedAt in "mined": height, tx => ;
}

impl TableId {
    pub(super) fn table(self) -> &'static Table {
        &TABLES[self as usize]
    }
}

impl Table {
    /// All columns, those of the key first.
    pub(super) fn columns(&self) -> impl Iterator<Item = Column> {
        self.key.iter().chain(&self.row).copied()
    }
}

fn table_of<K: SqlKind>(name: &'static str, key: &[&'static str], row: &[&'static str]) -> Table {
    let mut key_types = types_of::<K::StoredKey>();
    let key = if key_types.is_empty() {
        key_types.push(ColumnType::Flag);
        columns(&[ONE], &key_types)
    } else {
        columns(key, &key_types)
    };
    Table { name, key, row: columns(row, &types_of::<K::StoredRow>()) }
}

fn columns(names: &[&'static str], types: &[ColumnType]) -> Vec<Column> {
    assert_eq!(names.len(), types.len(), "each column has a name: {names:?}");
    let columns = names.iter().zip(types);
    columns.map(|(name, column_type)| Column { name, column_type: *column_type }).collect()
}
