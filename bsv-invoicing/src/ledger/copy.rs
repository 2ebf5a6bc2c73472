//! Rows as they are, from one store to another. Nothing of this is a rule: what is copied was made by them.

use bsv_store::AuditEntry;

use crate::ledger::figures::Figures;
use crate::ledger::queries::GetFigures;
use crate::ledger::rows::{
    Change, Engine, Invoices, KeyRange, NewAuditEntry, Order, Owner, RawRow, Table, Transactions,
    WalletStoreError, next_key,
};
use crate::ledger::{Books, Command, Query};

/// How many rows are copied at once.
const PAGE: usize = 1_000;
/// How many bytes of rows that may be long are copied at once. The last row may go beyond them.
const PAGE_LEN: usize = 1 << 20;

/// Hands over all rows, some at a time, until they are not taken any more.
pub(crate) struct EachPage<F>(pub(crate) F);

/// Some rows of a table.
#[derive(Clone, Debug)]
pub(crate) struct RowPage {
    pub(crate) table: Table,
    pub(crate) rows: Vec<RawRow>,
}

/// Sets rows as they are in another store.
#[derive(Clone, Debug)]
pub(crate) struct PutRows(pub(crate) RowPage);

/// Adds entries of the audit log as they are in another store.
#[derive(Clone, Debug)]
pub(crate) struct PutAudit(pub(crate) Vec<AuditEntry>);

impl<F: FnMut(RowPage) -> bool + Send + 'static> Query for EachPage<F> {
    type Answer = ();

    fn run(mut self, rows: &dyn Engine) -> Result<(), WalletStoreError> {
        // The owner comes last: until then a store belongs to nobody.
        let others = Table::ALL.iter().filter(|table| **table != Table::Owner);
        for table in others.chain([&Table::Owner]) {
            let mut range = KeyRange::all(*table);
            loop {
                let page = read_page(rows, &mut range)?;
                if page.is_empty() {
                    break;
                }
                // A row that nobody can read is not copied as if it were in order.
                for (key, row) in &page {
                    table.check(key, row)?;
                }
                if !(self.0)(RowPage { table: *table, rows: page }) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

/// The next rows of a range, which then begins after them. Rows that may be long are read one at a
/// time.
fn read_page(rows: &dyn Engine, range: &mut KeyRange) -> Result<Vec<RawRow>, WalletStoreError> {
    let (mut page, mut page_len) = (Vec::new(), 0);
    let at_once = if range.table.has_long_rows() { 1 } else { PAGE };
    while page.len() < PAGE && page_len < PAGE_LEN {
        let read = rows.scan(range, at_once)?;
        let Some((last, _)) = read.last() else { break };
        range.from = next_key(last.clone());
        page_len += read.iter().map(|(_, row)| row.len()).sum::<usize>();
        page.extend(read);
    }
    Ok(page)
}

impl Command for PutRows {
    type Answer = ();

    fn run(&self, books: &mut Books<'_>) -> Result<(), WalletStoreError> {
        for (key, row) in &self.0.rows {
            books.rows.write(self.0.table, key.clone(), Change::Set(row.clone()))?;
        }
        Ok(())
    }

    fn weight(&self) -> usize {
        let has_long_rows = self.0.table.has_long_rows();
        self.0.rows.iter().filter(|_| has_long_rows).map(|(_, row)| row.len()).sum()
    }
}

impl Command for PutAudit {
    type Answer = ();

    fn run(&self, books: &mut Books<'_>) -> Result<(), WalletStoreError> {
        let mut entries = self.0.iter();
        Ok(entries.try_for_each(|it| books.rows.append_audit(NewAuditEntry::Copied(it)))?)
    }
}

/// Whether a store holds nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IsEmpty;

impl Query for IsEmpty {
    type Answer = bool;

    fn run(self, rows: &dyn Engine) -> Result<bool, WalletStoreError> {
        let figures = GetFigures.run(rows)?;
        Ok(figures == Figures::default()
            && rows.get::<Owner>(&())?.is_none()
            && rows.first::<Transactions>(.., Order::Ascending, 1)?.is_empty()
            && rows.first::<Invoices>(.., Order::Ascending, 1)?.is_empty())
    }
}
