//! Adds the watching of all scripts whose keys were given out, and the sums that invoices have
//! received.

use std::collections::HashMap;

use bsv_store::StoreError;
use redb::{ReadableTable, TableDefinition, WriteTransaction};

use super::super::rows::create_tables;
use super::tables::{CHANGE, COUNTING, FIGURES_6, INVOICES, RECEIPTS, SETTLED, TRANSACTIONS};
use crate::store::stored::WAS_SEEN;

const ACCOUNTS: TableDefinition<'_, u32, (u64, u64)> = TableDefinition::new("accounts");
const TRANSACTION_NUMBERS: TableDefinition<'_, ([u8; 32], u64), ()> =
    TableDefinition::new("transaction numbers");
/// Received in time: unconfirmed and mined. Received late: unconfirmed and mined.
const RECEIVED_FOR: TableDefinition<'_, u64, [u64; 4]> = TableDefinition::new("received for");
/// The same, with a part that was in blocks between both parts. Then how many payments count, how
/// many of them are contested, how many have wishes for refunds, and how often the wish changes.
pub(super) const RECEIVED_IN_PARTS: TableDefinition<'_, u64, [u64; 10]> =
    TableDefinition::new("received for invoices");
/// The key is the account, chain and index of the first key. The value is the index after the last
/// key.
const WATCH_BACKLOG: TableDefinition<'_, (u32, u8, u32), u32> =
    TableDefinition::new("watch backlog");
/// Whether the number is a height (true) or a time (false), and the number.
const RESCAN: TableDefinition<'_, (), (bool, u64)> = TableDefinition::new("rescan");

const RECEIVE: u8 = 0;
const USER: u8 = 2;
/// How many keys of an earlier account may have been given out after the backup that was restored.
const UNKNOWN_KEYS: u64 = 100_000;
const UNKNOWN_CHANGE_KEYS: u64 = 1_000;

/// Watches all scripts whose keys may have been given out, and reads the blocks since the first
/// invoice.
pub(super) fn watch_scripts(transaction: &WriteTransaction) -> Result<(), StoreError> {
    create_tables(transaction)?;
    number_transactions(transaction)?;
    let accounts = accounts_with_keys(transaction)?;
    sum_what_was_received(transaction, &accounts)?;
    put_keys_in_backlog(transaction, &accounts)?;
    if let Some(row) = transaction.open_table(INVOICES)?.first()? {
        let created_at = row.1.value().2;
        transaction.open_table(RESCAN)?.insert((), (false, created_at))?;
    }
    Ok(())
}

/// Tells payments that were in blocks from those that never were. Those of older versions count as
/// if they never were.
pub(super) fn tell_unmined_apart(transaction: &WriteTransaction) -> Result<(), StoreError> {
    let mut in_parts = transaction.open_table(RECEIVED_IN_PARTS)?;
    for row in transaction.open_table(RECEIVED_FOR)?.iter()? {
        let (invoice, row) = row?;
        let [unconfirmed, mined, late_unconfirmed, late_mined] = row.value();
        let row = [unconfirmed, 0, mined, late_unconfirmed, 0, late_mined, 0, 0, 0, 0];
        in_parts.insert(invoice.value(), row)?;
    }
    drop(in_parts);
    transaction.delete_table(RECEIVED_FOR)?;
    Ok(())
}

fn number_transactions(transaction: &WriteTransaction) -> Result<(), StoreError> {
    let mut numbers = transaction.open_table(TRANSACTION_NUMBERS)?;
    for row in transaction.open_table(TRANSACTIONS)?.iter()? {
        let (number, row) = row?;
        numbers.insert((row.value().0, number.value()), ())?;
    }
    Ok(())
}

/// An account, and the keys of it that were given out.
pub(super) struct AccountWithKeys {
    number: u32,
    last_invoice_before: u64,
    last_invoice: u64,
    last_user_before: u64,
    last_user: u64,
    /// The number of keys used for change, if new keys come from this account.
    last_change: Option<u64>,
}

impl AccountWithKeys {
    /// The number of the invoice that a key (account, chain, index) of this account is for.
    pub(super) fn invoice_of(&self, (account, chain, index): (u32, u8, u32)) -> Option<u64> {
        let number = self.last_invoice_before + u64::from(index);
        let is_invoices = (account, chain) == (self.number, RECEIVE) && number <= self.last_invoice;
        is_invoices.then_some(number)
    }

    /// The id of the user whose key (account, chain, index) of this account is.
    pub(super) fn user_of(&self, (account, chain, index): (u32, u8, u32)) -> Option<u64> {
        let id = self.last_user_before + u64::from(index);
        let is_users = (account, chain) == (self.number, USER) && id <= self.last_user;
        is_users.then_some(id)
    }
}

pub(super) fn accounts_with_keys(
    transaction: &WriteTransaction,
) -> Result<Vec<AccountWithKeys>, StoreError> {
    let figures = transaction.open_table(FIGURES_6)?.get(())?.map_or([0; 11], |row| row.value());
    accounts_of(transaction, &figures)
}

/// The accounts. The first seven of `figures` are those of version 6.
pub(super) fn accounts_of(
    transaction: &WriteTransaction,
    figures: &[u64],
) -> Result<Vec<AccountWithKeys>, StoreError> {
    let figure = |place: usize| figures.get(place).copied().unwrap_or(0);
    let [last_invoice, last_user, last_change] = [0, 1, 6].map(figure);
    let mut starts = vec![(0, (0, 0))];
    for row in transaction.open_table(ACCOUNTS)?.iter()? {
        let (number, start) = row?;
        starts.push((number.value(), start.value()));
    }
    let mut accounts = Vec::new();
    for (place, (number, (last_invoice_before, last_user_before))) in starts.iter().enumerate() {
        let next = starts.get(place + 1);
        accounts.push(AccountWithKeys {
            number: *number,
            last_invoice_before: *last_invoice_before,
            last_invoice: next.map_or(last_invoice, |(_, start)| start.0),
            last_user_before: *last_user_before,
            last_user: next.map_or(last_user, |(_, start)| start.1),
            last_change: next.is_none().then_some(last_change),
        });
    }
    Ok(accounts)
}

fn sum_what_was_received(
    transaction: &WriteTransaction,
    accounts: &[AccountWithKeys],
) -> Result<(), StoreError> {
    let transactions = transaction.open_table(TRANSACTIONS)?;
    let invoices = transaction.open_table(INVOICES)?;
    let mut sums = transaction.open_table(RECEIVED_FOR)?;
    for row in transaction.open_table(RECEIPTS)?.iter()? {
        let (key, row) = row?;
        let (satoshis, account, chain, index, _) = row.value();
        let invoice = accounts.iter().find_map(|it| it.invoice_of((account, chain, index)));
        let Some(invoice) = invoice else { continue };
        let Some(expires_at) = invoices.get(invoice)?.map(|row| row.value().3) else { continue };
        let maker = transactions.get(key.value().0)?.map(|row| row.value());
        let Some((_, _, _, state, _, came_at, block)) =
            maker.filter(|row| COUNTING.contains(&(row.3 & !WAS_SEEN)))
        else {
            continue;
        };
        let mut sum = sums.get(invoice)?.map_or([0; 4], |row| row.value());
        let slot = 2 * usize::from(came_at >= expires_at)
            + usize::from(block.is_some() && state & !WAS_SEEN == SETTLED);
        sum[slot] = sum[slot].saturating_add(satoshis);
        sums.insert(invoice, sum)?;
    }
    Ok(())
}

fn put_keys_in_backlog(
    transaction: &WriteTransaction,
    accounts: &[AccountWithKeys],
) -> Result<(), StoreError> {
    let mut last_change = HashMap::new();
    for row in transaction.open_table(RECEIPTS)?.iter()? {
        let (_, account, chain, index, _) = row?.1.value();
        if chain == CHANGE {
            let end: &mut u64 = last_change.entry(account).or_default();
            *end = (*end).max(u64::from(index) + 1);
        }
    }
    let mut backlog = transaction.open_table(WATCH_BACKLOG)?;
    for it in accounts {
        let invoices = it.last_invoice - it.last_invoice_before;
        let users = it.last_user - it.last_user_before;
        let (unknown, change) = match it.last_change {
            Some(change) => (0, change),
            None => {
                let used = last_change.get(&it.number).copied().unwrap_or(0);
                (UNKNOWN_KEYS, used + UNKNOWN_CHANGE_KEYS)
            }
        };
        let keys =
            [(RECEIVE, 1, invoices + unknown + 1), (CHANGE, 0, change), (USER, 1, users + 1)];
        for (chain, first, end) in keys {
            let end = u32::try_from(end.min(1 << 31)).expect("it is at most 2^31");
            if end > first {
                backlog.insert((it.number, chain, first), end)?;
            }
        }
    }
    Ok(())
}
