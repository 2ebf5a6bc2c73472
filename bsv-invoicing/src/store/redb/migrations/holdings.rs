//! Adds the sums of what the wallet holds, and the list of receipts that pay no invoice.

use bsv_store::StoreError;
use redb::{ReadableTable, TableDefinition, WriteTransaction};

use super::super::rows::create_tables;
use super::tables::{CHANGE, COUNTING, FIGURES_6, INVOICES, RECEIPTS, SETTLED, TRANSACTIONS};
use super::watching::accounts_with_keys;
use crate::store::stored::WAS_SEEN;

/// The earlier figures without the balance, which was the eighth. Then the sums of confirmed,
/// unconfirmed, waiting, reserved, contested and immature receipts, and the number of coins.
pub(super) const FIGURES: TableDefinition<'_, (), [u64; 17]> = TableDefinition::new("kept figures");
const BALANCE: usize = 7;
const IMMATURE: TableDefinition<'_, (u32, u64, u32), ()> = TableDefinition::new("immature");
const SPENT: TableDefinition<'_, (u64, u64, u32), ()> = TableDefinition::new("spent");
const UNASSIGNED: TableDefinition<'_, (u64, u32), ()> = TableDefinition::new("unassigned");

const WAITING: u8 = 6;
/// The purposes of transactions that were found in the mempool or in blocks.
const OF_NOBODY: [u8; 2] = [4, 5];
const COINBASE: u8 = 5;
/// How many blocks the tip is above the block of a coinbase transaction when its outputs can be
/// spent.
const MATURE_AFTER: u32 = 99;

pub(super) fn keep_holdings(transaction: &WriteTransaction) -> Result<(), StoreError> {
    create_tables(transaction)?;
    list_unassigned(transaction)?;
    let old = transaction.open_table(FIGURES_6)?.get(())?.map_or([0; 11], |row| row.value());
    let kept = old.into_iter().enumerate().filter(|(place, _)| *place != BALANCE);
    let sums = sum_receipts(transaction)?;
    let mut figures = [0; 17];
    for (figure, value) in figures.iter_mut().zip(kept.map(|(_, value)| value).chain(sums)) {
        *figure = value;
    }
    transaction.open_table(FIGURES)?.insert((), figures)?;
    transaction.delete_table(FIGURES_6)?;
    Ok(())
}

/// The sums of confirmed, unconfirmed, waiting, reserved, contested and immature receipts, and the
/// number of coins.
fn sum_receipts(transaction: &WriteTransaction) -> Result<[u64; 7], StoreError> {
    let transactions = transaction.open_table(TRANSACTIONS)?;
    let immature = transaction.open_table(IMMATURE)?;
    let mut sums = [0_u64; 7];
    for row in transaction.open_table(RECEIPTS)?.iter()? {
        let (key, row) = row?;
        let (maker_number, vout) = key.value();
        let (satoshis, .., spender) = row.value();
        let state_of = |number: u64| {
            let row = transactions.get(number)?.map(|row| row.value());
            Ok::<_, StoreError>(row.map(|row| (row.3 & !WAS_SEEN, row.1, row.6)))
        };
        let Some((state, purpose, block)) = state_of(maker_number)? else { continue };
        let spender_state = spender.map(state_of).transpose()?.flatten();
        let is_spent =
            spender_state.is_some_and(|(it, ..)| it == WAITING || COUNTING.contains(&it));
        if is_spent || !(state == WAITING || COUNTING.contains(&state)) {
            continue;
        }
        let is_immature = match block.filter(|_| purpose == COINBASE) {
            Some((height, _)) => {
                let mature_at = height.saturating_add(MATURE_AFTER);
                immature.get((mature_at, maker_number, vout))?.is_some()
            }
            None => false,
        };
        let slot = match (state, block) {
            (WAITING, _) => 2,
            _ if spender.is_some() => 3,
            (SETTLED, Some(_)) if is_immature => 5,
            (SETTLED, Some(_)) => 0,
            (SETTLED, None) => 1,
            _ => 4,
        };
        sums[slot] = sums[slot].saturating_add(satoshis);
        sums[6] += u64::from(state != WAITING);
    }
    Ok(sums)
}

/// Lists receipts that nobody announced and that pay no invoice, except change.
fn list_unassigned(transaction: &WriteTransaction) -> Result<(), StoreError> {
    let accounts = accounts_with_keys(transaction)?;
    let transactions = transaction.open_table(TRANSACTIONS)?;
    let invoices = transaction.open_table(INVOICES)?;
    let spent = transaction.open_table(SPENT)?;
    let mut unassigned = transaction.open_table(UNASSIGNED)?;
    for row in transaction.open_table(RECEIPTS)?.iter()? {
        let (key, row) = row?;
        let (maker, vout) = key.value();
        let (_, account, chain, index, _) = row.value();
        let purpose = transactions.get(maker)?.map(|row| row.value().1);
        if !purpose.is_some_and(|purpose| OF_NOBODY.contains(&purpose)) {
            continue;
        }
        let invoice = accounts.iter().find_map(|it| it.invoice_of((account, chain, index)));
        let is_invoices = match invoice {
            Some(number) => invoices.get(number)?.is_some(),
            None => false,
        };
        let spends = || spent.range((maker, 0, 0)..=(maker, u64::MAX, u32::MAX));
        let is_change = chain == CHANGE && spends()?.next().is_some();
        if !is_invoices && !is_change {
            unassigned.insert((maker, vout), ())?;
        }
    }
    Ok(())
}
