//! Adds purposes to payments by the wallet, an index of coins by amount, and an index of invoices
//! by reference.

use bsv_store::StoreError;
use redb::{ReadableTable, TableDefinition, WriteTransaction};

use super::super::rows::create_tables;
use super::tables::{INVOICES, OF_STRANGERS, OUTGOING_6, SPENDABLE, TRANSACTIONS};

/// The row of version 6 with a purpose (kind, number, text) instead of the URL, and with an
/// optional expiry.
type OutgoingRow = (
    u64,
    Option<u64>,
    Option<u64>,
    (u8, u64, &'static str),
    u64,
    u64,
    u64,
    Option<u64>,
    &'static str,
    Option<(&'static str, &'static str, &'static str, &'static str)>,
);
const OUTGOING: TableDefinition<'_, u64, OutgoingRow> = TableDefinition::new("outgoing by purpose");
/// Whether the coin is a stranger's unconfirmed one (1) or not (0), satoshis, and number and output
/// of the maker.
const SPENDABLE_BY_AMOUNT: TableDefinition<'_, (u8, u64, u64, u32), ()> =
    TableDefinition::new("spendable by amount");

const INVOICES_BY_REFERENCE: TableDefinition<'_, (&str, u64), ()> =
    TableDefinition::new("invoices by reference");

const PAYS_URL: u8 = 1;
/// The purpose of a transaction that was found in the chain.
const FOUND: u8 = 4;

pub(super) fn give_payments_purposes(transaction: &WriteTransaction) -> Result<(), StoreError> {
    create_tables(transaction)?;
    index_references(transaction)?;
    let mut moved = transaction.open_table(OUTGOING)?;
    for row in transaction.open_table(OUTGOING_6)?.iter()? {
        let (number, row) = row?;
        let (of, cancellation, previous, url, satoshis, fee, created, expires, memo, channel) =
            row.value();
        let (purpose, expires) = ((PAYS_URL, 0, url), Some(expires));
        moved.insert(
            number.value(),
            (of, cancellation, previous, purpose, satoshis, fee, created, expires, memo, channel),
        )?;
    }
    drop(moved);
    let transactions = transaction.open_table(TRANSACTIONS)?;
    let mut ordered = transaction.open_table(SPENDABLE_BY_AMOUNT)?;
    for row in transaction.open_table(SPENDABLE)?.iter()? {
        let (key, satoshis) = row?;
        let (bucket, maker, vout) = key.value();
        let row = transactions.get(maker)?.map(|row| row.value());
        let is_unconfirmed_find = row.is_some_and(|row| row.1 == FOUND && row.6.is_none());
        let is_strangers = u8::from(bucket >= OF_STRANGERS || is_unconfirmed_find);
        ordered.insert((is_strangers, satoshis.value(), maker, vout), ())?;
    }
    drop((ordered, transactions));
    transaction.delete_table(OUTGOING_6)?;
    transaction.delete_table(SPENDABLE)?;
    Ok(())
}

fn index_references(transaction: &WriteTransaction) -> Result<(), StoreError> {
    let mut by_reference = transaction.open_table(INVOICES_BY_REFERENCE)?;
    for row in transaction.open_table(INVOICES)?.iter()? {
        let (number, row) = row?;
        if let (.., Some(reference), _) = row.value() {
            by_reference.insert((reference, number.value()), ())?;
        }
    }
    Ok(())
}
