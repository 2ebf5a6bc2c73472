//! Adds what is kept about the payments of invoices that count.

use bsv_store::StoreError;
use redb::{ReadableTable, TableDefinition, WriteTransaction};

use super::holdings::FIGURES;
use super::tables::{COUNTING, INVOICES, RECEIPTS, SETTLED, TRANSACTIONS};
use super::watching::{RECEIVED_IN_PARTS, accounts_of};
use super::{INCOMING, REFUNDS_6};
use crate::store::stored::WAS_SEEN;

/// The key is the numbers of an invoice and of a transaction. The value is the first output that
/// pays the invoice, and the sum.
const INCOMING_PAYMENTS: TableDefinition<'_, (u64, u64), (u32, u64)> =
    TableDefinition::new("incoming payments");
/// The number of an invoice, the height of a block, and the number of a transaction.
const COUNTED: TableDefinition<'_, (u64, u32, u64), ()> = TableDefinition::new("counted payments");
/// Stands for the height of a payment that is in no block.
const OUTSIDE_BLOCKS: u32 = u32::MAX;
const WISHES: TableDefinition<'_, (u64, u64), ()> = TableDefinition::new("wishes");

pub(super) fn keep_payments(transaction: &WriteTransaction) -> Result<(), StoreError> {
    sum_what_is_paid(transaction)?;
    count_payments(transaction)?;
    transaction.delete_table(INCOMING)?;
    Ok(())
}

fn sum_what_is_paid(transaction: &WriteTransaction) -> Result<(), StoreError> {
    let figures = transaction.open_table(FIGURES)?.get(())?.map_or([0; 17], |row| row.value());
    let accounts = accounts_of(transaction, &figures)?;
    let listed = transaction.open_table(INCOMING)?;
    let mut incoming = transaction.open_table(INCOMING_PAYMENTS)?;
    for row in transaction.open_table(RECEIPTS)?.iter()? {
        let (key, row) = row?;
        let ((maker, vout), (satoshis, account, chain, index, _)) = (key.value(), row.value());
        let invoice = accounts.iter().find_map(|it| it.invoice_of((account, chain, index)));
        let Some(invoice) = invoice else { continue };
        if listed.get((invoice, maker))?.is_some() {
            let before = incoming.get((invoice, maker))?.map(|row| row.value());
            let (first, sum) = before.unwrap_or((vout, 0));
            incoming.insert((invoice, maker), (first, sum.saturating_add(satoshis)))?;
        }
    }
    Ok(())
}

fn count_payments(transaction: &WriteTransaction) -> Result<(), StoreError> {
    let transactions = transaction.open_table(TRANSACTIONS)?;
    let invoices = transaction.open_table(INVOICES)?;
    let refunds = transaction.open_table(REFUNDS_6)?;
    let mut received = transaction.open_table(RECEIVED_IN_PARTS)?;
    let mut counted = transaction.open_table(COUNTED)?;
    let mut wishes = transaction.open_table(WISHES)?;
    let mut last_wish = None;
    for row in transaction.open_table(INCOMING_PAYMENTS)?.iter()? {
        let (invoice, number) = row?.0.value();
        let of = transactions.get(number)?.map(|row| row.value());
        let state_and_block = of.map(|row| (row.3 & !WAS_SEEN, row.6));
        let Some((state, block)) = state_and_block.filter(|(it, _)| COUNTING.contains(it)) else {
            continue;
        };
        if invoices.get(invoice)?.is_none() {
            continue;
        }
        let height = block.map_or(OUTSIDE_BLOCKS, |(height, _)| height);
        counted.insert((invoice, height, number), ())?;
        let mut row = received.get(invoice)?.map_or([0; 10], |row| row.value());
        let [.., payments, contested, with_wish, changes] = &mut row;
        *payments += 1;
        *contested += u64::from(state != SETTLED);
        if let Some(wish) = refunds.get(number)?.map(|row| row.value().to_owned()) {
            wishes.insert((invoice, number), ())?;
            *with_wish += 1;
            let is_another = |(of, last): &(u64, String)| *of == invoice && *last != wish;
            *changes += u64::from(last_wish.as_ref().is_some_and(is_another));
            last_wish = Some((invoice, wish));
        }
        received.insert(invoice, row)?;
    }
    Ok(())
}
