//! Tables that more than one migration uses, and the format of their rows.

use redb::TableDefinition;

/// Id, satoshis, times of creation, expiry, payment and deletion, reference, description.
pub(super) type InvoiceRow =
    ([u8; 12], u64, u64, u64, Option<u64>, Option<u64>, Option<&'static str>, Option<&'static str>);
pub(super) const INVOICES: TableDefinition<'_, u64, InvoiceRow> = TableDefinition::new("invoices");
/// Txid, purpose, number of the invoice or payment, state, satoshis, time of arrival, and height
/// and hash of the block. The states were 1 in flight, 2 settled, 3 displaced and 4 dropped.
pub(super) type TransactionRow = ([u8; 32], u8, u64, u8, u64, u64, Option<(u32, [u8; 32])>);
pub(super) const TRANSACTIONS: TableDefinition<'_, u64, TransactionRow> =
    TableDefinition::new("transactions");
pub(super) const SPENDABLE: TableDefinition<'_, (u8, u64, u32), u64> =
    TableDefinition::new("spendable");
/// A payment by the wallet in version 6: with the previous payment to the same URL, and without the
/// state, which is in the transaction's row.
pub(super) type OutgoingRow6 = (
    u64,
    Option<u64>,
    Option<u64>,
    &'static str,
    u64,
    u64,
    u64,
    u64,
    &'static str,
    Option<(&'static str, &'static str, &'static str, &'static str)>,
);
pub(super) const OUTGOING_6: TableDefinition<'_, u64, OutgoingRow6> =
    TableDefinition::new("outgoing payments");
/// Satoshis; account, chain and index of the key; the number of the spending transaction.
pub(super) type ReceiptRow = (u64, u32, u8, u32, Option<u64>);
pub(super) const RECEIPTS: TableDefinition<'_, (u64, u32), ReceiptRow> =
    TableDefinition::new("receipts");
pub(super) const FIGURES_6: TableDefinition<'_, (), [u64; 11]> =
    TableDefinition::new("all figures");
pub(super) const SETTLED: u8 = 2;
/// The states whose receipts count since version 6: seen or mined, and contested.
pub(super) const COUNTING: [u8; 3] = [SETTLED, 7, 8];
pub(super) const CHANGE: u8 = 1;
/// The offset of the buckets for the unconfirmed coins of strangers.
pub(super) const OF_STRANGERS: u8 = 64;
/// The time, the kind, and the number of the subject.
pub(super) const EVENTS: TableDefinition<'_, u64, (u64, u8, u64)> = TableDefinition::new("events");
