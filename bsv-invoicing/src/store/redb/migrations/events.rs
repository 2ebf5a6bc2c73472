//! Changes the subject of payment events from transactions to invoices.

use bsv_store::StoreError;
use redb::{ReadableTable, Table, TableDefinition, WriteTransaction};

use super::super::rows::create_tables;
use super::tables::{
    EVENTS, INVOICES, InvoiceRow, RECEIPTS, ReceiptRow, TRANSACTIONS, TransactionRow,
};
use super::watching::{AccountWithKeys, accounts_of};

/// The time, the kind, the number of the subject, the details, and height and hash of the block.
type EventRow = (u64, u8, u64, Vec<u64>, Vec<(u32, [u8; 32])>);
const TOLD_EVENTS: TableDefinition<'_, u64, EventRow> = TableDefinition::new("told events");
const FIGURES: TableDefinition<'_, (), [u64; 17]> = TableDefinition::new("kept figures");
const UNASSIGNED: TableDefinition<'_, (u64, u32), ()> = TableDefinition::new("unassigned");
const USERS: TableDefinition<'_, u64, UserRow> = TableDefinition::new("users");
type UserRow = (&'static str, &'static str, &'static str, &'static str, &'static str);

/// The kinds of events of payments to the wallet, and the offsets to the kinds for a receipt of no
/// invoice and for a transaction.
const OF_PAYMENTS: std::ops::RangeInclusive<u8> = 19..=26;
const OF_RECEIPT: u8 = 13;
const OF_TRANSACTION: u8 = 21;
/// The first detail says what the others are. `SATOSHIS` is the place of the amount in those of a
/// payment.
const PAYMENT: u64 = 2;
const SATOSHIS: usize = 2;
const RECEIPT: u64 = 3;
/// The place of the number of the last event among the figures.
const LAST_EVENT: usize = 2;

/// An event of a transaction becomes one event for each invoice that the transaction pays. The
/// numbers of events change; older versions did not show them to anybody. The sums that invoices
/// had received and the blocks of payments are not known for these events.
pub(super) fn tell_events_by_invoice(transaction: &WriteTransaction) -> Result<(), StoreError> {
    create_tables(transaction)?;
    let mut figures = transaction.open_table(FIGURES)?;
    let kept = figures.get(())?.map(|row| row.value());
    let last = tell_again(transaction, &kept.unwrap_or([0; 17]))?;
    if let Some(mut row) = kept {
        row[LAST_EVENT] = last;
        figures.insert((), row)?;
    }
    transaction.delete_table(EVENTS)?;
    Ok(())
}

/// Writes the events anew and returns the number of the last one.
fn tell_again(transaction: &WriteTransaction, figures: &[u64]) -> Result<u64, StoreError> {
    let payments = Payments {
        accounts: accounts_of(transaction, figures)?,
        transactions: transaction.open_table(TRANSACTIONS)?,
        receipts: transaction.open_table(RECEIPTS)?,
        invoices: transaction.open_table(INVOICES)?,
        unassigned: transaction.open_table(UNASSIGNED)?,
        users: transaction.open_table(USERS)?,
    };
    let mut told = transaction.open_table(TOLD_EVENTS)?;
    let mut last = 0;
    for row in transaction.open_table(EVENTS)?.iter()? {
        let (at, kind, subject) = row?.1.value();
        let events = match OF_PAYMENTS.contains(&kind) {
            true => payments.told(kind, subject)?,
            false => vec![(kind, subject, Vec::new())],
        };
        for (kind, subject, details) in events {
            last += 1;
            told.insert(last, (at, kind, subject, details, Vec::new()))?;
        }
    }
    Ok(last)
}

/// The tables that events of payments refer to.
struct Payments<'t> {
    accounts: Vec<AccountWithKeys>,
    transactions: Table<'t, u64, TransactionRow>,
    receipts: Table<'t, (u64, u32), ReceiptRow>,
    invoices: Table<'t, u64, InvoiceRow>,
    unassigned: Table<'t, (u64, u32), ()>,
    users: Table<'t, u64, UserRow>,
}

/// Kind, subject and details of an event.
type Told = (u8, u64, Vec<u64>);

impl Payments<'_> {
    /// The events that replace an event of a transaction.
    fn told(&self, kind: u8, number: u64) -> Result<Vec<Told>, StoreError> {
        let came_at = self.transactions.get(number)?.map_or(0, |row| row.value().5);
        let mut events: Vec<Told> = Vec::new();
        for row in self.receipts.range((number, 0)..=(number, u32::MAX))? {
            let (key, row) = row?;
            let (satoshis, account, chain, index, _) = row.value();
            let path = (account, chain, index);
            if let Some((invoice, expires_at)) = self.invoice_of(path)? {
                let is_same = |it: &&mut Told| (it.0, it.1) == (kind, invoice);
                if let Some((_, _, details)) = events.iter_mut().find(is_same) {
                    details[SATOSHIS] = details[SATOSHIS].saturating_add(satoshis);
                } else {
                    let late = u64::from(came_at >= expires_at);
                    events.push((kind, invoice, vec![PAYMENT, number, satoshis, late]));
                }
            } else if self.unassigned.get(key.value())?.is_some() {
                let mut details = vec![RECEIPT, u64::from(key.value().1), satoshis];
                details.extend(self.user_of(path)?);
                events.push((kind + OF_RECEIPT, number, details));
            }
        }
        if events.is_empty() {
            events.push((kind + OF_TRANSACTION, number, Vec::new()));
        }
        Ok(events)
    }

    /// The invoice that a key is for, and when it expires.
    fn invoice_of(&self, path: (u32, u8, u32)) -> Result<Option<(u64, u64)>, StoreError> {
        let Some(number) = self.accounts.iter().find_map(|it| it.invoice_of(path)) else {
            return Ok(None);
        };
        Ok(self.invoices.get(number)?.map(|row| (number, row.value().3)))
    }

    /// The user that a key belongs to.
    fn user_of(&self, path: (u32, u8, u32)) -> Result<Option<u64>, StoreError> {
        let Some(id) = self.accounts.iter().find_map(|it| it.user_of(path)) else {
            return Ok(None);
        };
        Ok(self.users.get(id)?.map(|_| id))
    }
}
