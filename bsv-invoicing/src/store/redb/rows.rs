//! Rows in the tables of a redb file.

use std::sync::Arc;

use bsv_store::{
    AuditEntry, KeyEvent, LazyReadTable, LazyTable, StoreError, View, append_to_audit_log,
    copy_to_audit_log,
};
use redb::{Range, ReadTransaction, StorageError, WriteTransaction};

use crate::ledger::rows::{
    Accounts, AllFigures, Ancestors, AuditLog, CatchUp, Claims, Counted, Deliveries,
    DeliveriesByTime, Engine, EventLog, Events, Expiries, FollowedTip, FollowedTransactions,
    IdempotencyAges, IdempotentAnswers, Immature, InFlight, Incoming, Invoices,
    InvoicesByReference, KeyRange, LastRefunds, Marked, Messages, MinedAt, NewlyWatched, Order,
    Outgoing, OutgoingByUrl, Owner, PostingUrls, Processes, Proofs, RawTransactions, ReadTable,
    Receipts, ReceivedFor, Refunds, Reorganisations, Rescan, Reservations, RowsOf, Rules,
    Spendable, Spends, Table, TransactionNumbers, Transactions, Unassigned, Unlisted, Users,
    WatchBacklog, Watched, WebhookChanges, Webhooks, Wishes, Withdrawals,
};
use crate::store::WalletStoreError;
use crate::store::stored::{Stored, StoredKind};

/// Finds the table of a kind.
pub(super) trait Place: StoredKind {
    fn to_write<'r, 't>(
        rows: &'r RowsToWrite<'t>,
    ) -> &'r LazyTable<'t, Self::StoredKey, Self::StoredRow>;
    fn to_write_mut<'r, 't>(
        rows: &'r mut RowsToWrite<'t>,
    ) -> &'r mut LazyTable<'t, Self::StoredKey, Self::StoredRow>;
    fn to_read(rows: &RowsToRead) -> &LazyReadTable<Self::StoredKey, Self::StoredRow>;
}

macro_rules! tables {
    ($($table:ident: $kind:ident,)*) => {
        /// The tables, as a batch of commands uses them.
        pub(super) struct RowsToWrite<'t> {
            transaction: &'t WriteTransaction,
            /// Whether the audit log has new entries.
            has_audit: bool,
            $($table: LazyTable<
                't,
                <$kind as StoredKind>::StoredKey,
                <$kind as StoredKind>::StoredRow,
            >,)*
        }

        /// The tables, as queries use them.
        pub(super) struct RowsToRead {
            $($table: LazyReadTable<
                <$kind as StoredKind>::StoredKey,
                <$kind as StoredKind>::StoredRow,
            >,)*
        }

        impl<'t> RowsToWrite<'t> {
            pub(super) fn new(transaction: &'t WriteTransaction) -> Self {
                Self {
                    transaction,
                    has_audit: false,
                    $($table: LazyTable::new(transaction, $kind::TABLE),)*
                }
            }

            /// Whether any row has changed.
            pub(super) fn have_changed(&self) -> bool {
                self.has_audit $(|| self.$table.has_changed())*
            }
        }

        impl RowsToRead {
            pub(super) fn new(transaction: &Arc<ReadTransaction>) -> Self {
                Self { $($table: LazyReadTable::new(transaction, $kind::TABLE),)* }
            }
        }

        /// Creates the tables that do not exist.
        pub(super) fn create_tables(transaction: &WriteTransaction) -> Result<(), StoreError> {
            $(transaction.open_table($kind::TABLE)?;)*
            Ok(())
        }

        $(impl Place for $kind {
            fn to_write<'r, 't>(
                rows: &'r RowsToWrite<'t>,
            ) -> &'r LazyTable<'t, Self::StoredKey, Self::StoredRow> {
                &rows.$table
            }

            fn to_write_mut<'r, 't>(
                rows: &'r mut RowsToWrite<'t>,
            ) -> &'r mut LazyTable<'t, Self::StoredKey, Self::StoredRow> {
                &mut rows.$table
            }

            fn to_read(rows: &RowsToRead) -> &LazyReadTable<Self::StoredKey, Self::StoredRow> {
                &rows.$table
            }
        })*
    };
}

tables! {
    invoices: Invoices,
    invoices_by_reference: InvoicesByReference,
    users: Users,
    events: Events,
    event_log: EventLog,
    webhooks: Webhooks,
    webhook_changes: WebhookChanges,
    deliveries: Deliveries,
    deliveries_by_time: DeliveriesByTime,
    expiries: Expiries,
    idempotent_answers: IdempotentAnswers,
    idempotency_ages: IdempotencyAges,
    figures: AllFigures,
    owner: Owner,
    followed_tip: FollowedTip,
    reorganisations: Reorganisations,
    catch_up: CatchUp,
    accounts: Accounts,
    rules: Rules,
    watched: Watched,
    newly_watched: NewlyWatched,
    watch_backlog: WatchBacklog,
    rescan: Rescan,
    transactions: Transactions,
    transaction_numbers: TransactionNumbers,
    raw_transactions: RawTransactions,
    ancestors: Ancestors,
    receipts: Receipts,
    spendable: Spendable,
    immature: Immature,
    unassigned: Unassigned,
    unlisted: Unlisted,
    spends: Spends,
    incoming: Incoming,
    received_for: ReceivedFor,
    counted: Counted,
    wishes: Wishes,
    marked: Marked,
    in_flight: InFlight,
    refunds: Refunds,
    outgoing: Outgoing,
    messages: Messages,
    posting_urls: PostingUrls,
    outgoing_by_url: OutgoingByUrl,
    last_refunds: LastRefunds,
    withdrawals: Withdrawals,
    reservations: Reservations,
    processes: Processes,
    claims: Claims,
    followed: FollowedTransactions,
    proofs: Proofs,
    mined_at: MinedAt,
}

impl View for RowsToRead {
    fn open(transaction: &Arc<ReadTransaction>) -> Result<Self, StoreError> {
        Ok(Self::new(transaction))
    }
}

impl Engine for RowsToWrite<'_> {
    type Error = WalletStoreError;
}

impl Engine for RowsToRead {
    type Error = WalletStoreError;
}

impl AuditLog for RowsToWrite<'_> {
    fn append_audit(&mut self, event: KeyEvent, subject: &str) -> Result<(), WalletStoreError> {
        self.has_audit = true;
        Ok(append_to_audit_log(self.transaction, [(event, subject)])?)
    }

    fn put_audit(&mut self, entry: &AuditEntry) -> Result<(), WalletStoreError> {
        self.has_audit = true;
        Ok(copy_to_audit_log(self.transaction, entry)?)
    }
}

impl<K: Place> ReadTable<K> for RowsToWrite<'_> {
    fn read(&self, key: &K::Key) -> Result<Option<K::Row>, WalletStoreError> {
        let row = K::to_write(self).get(K::store_key(key))?;
        Ok(row.map(|row| K::read_row(key, row.value())).transpose()?)
    }

    fn scan(
        &self,
        (from, to): KeyRange<'_, K>,
        order: Order,
        limit: usize,
    ) -> Result<RowsOf<K>, WalletStoreError> {
        let range = (from.map(K::store_key), to.map(K::store_key));
        collect::<K>(K::to_write(self).range::<Stored<'_, K::StoredKey>>(range)?, order, limit)
    }
}

impl<K: Place> Table<K> for RowsToWrite<'_> {
    fn write(&mut self, key: &K::Key, row: &K::Row) -> Result<(), WalletStoreError> {
        let table = K::to_write_mut(self);
        K::store_row(row, |row| table.insert(K::store_key(key), row))?;
        Ok(())
    }

    fn erase(&mut self, key: &K::Key) -> Result<bool, WalletStoreError> {
        Ok(K::to_write_mut(self).remove(K::store_key(key))?)
    }
}

impl<K: Place> ReadTable<K> for RowsToRead {
    fn read(&self, key: &K::Key) -> Result<Option<K::Row>, WalletStoreError> {
        let row = K::to_read(self).get(K::store_key(key))?;
        Ok(row.map(|row| K::read_row(key, row.value())).transpose()?)
    }

    fn scan(
        &self,
        (from, to): KeyRange<'_, K>,
        order: Order,
        limit: usize,
    ) -> Result<RowsOf<K>, WalletStoreError> {
        let range = (from.map(K::store_key), to.map(K::store_key));
        collect::<K>(K::to_read(self).range::<Stored<'_, K::StoredKey>>(range)?, order, limit)
    }
}

fn collect<K: StoredKind>(
    rows: Range<'_, K::StoredKey, K::StoredRow>,
    order: Order,
    limit: usize,
) -> Result<RowsOf<K>, WalletStoreError> {
    match order {
        Order::Ascending => rows.take(limit).map(read_entry::<K>).collect(),
        Order::Descending => rows.rev().take(limit).map(read_entry::<K>).collect(),
    }
}

type Entry<'t, K> = (
    redb::AccessGuard<'t, <K as StoredKind>::StoredKey>,
    redb::AccessGuard<'t, <K as StoredKind>::StoredRow>,
);

fn read_entry<K: StoredKind>(
    entry: Result<Entry<'_, K>, StorageError>,
) -> Result<(K::Key, K::Row), WalletStoreError> {
    let (key, row) = entry.map_err(StoreError::from)?;
    let key = K::read_key(key.value())?;
    let row = K::read_row(&key, row.value())?;
    Ok((key, row))
}
