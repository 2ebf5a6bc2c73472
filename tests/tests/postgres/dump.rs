//! All rows of a store, as text.

use bsv_invoicing::ledger::Query;
use bsv_invoicing::ledger::rows::{AllFigures, Claims, Engine, KeyRange, Table};
use bsv_invoicing::store::WalletStoreError;

/// All rows, table by table, in the order of their keys.
#[derive(Clone)]
pub(crate) struct Dump;

impl Query for Dump {
    type Answer = Vec<String>;

    fn run(self, rows: &dyn Engine) -> Result<Vec<String>, WalletStoreError> {
        // All kinds but the figures, and what differs because only one process has a file.
        let differing = [Table::AllFigures, Table::Processes, Table::NewlyWatched, Table::Claims];
        let mut all = Vec::new();
        for table in Table::ALL.iter().filter(|table| !differing.contains(table)) {
            for (key, row) in rows.scan(&KeyRange::all(*table), usize::MAX)? {
                let (key, row) = table.show(&key, &row)?;
                all.push(format!("{} {key}: {row}", table.name()));
            }
        }
        for (task, claimed) in rows.range::<Claims>(..)? {
            all.push(format!("claims {task:?}: {}", claimed.number));
        }
        Ok(all)
    }
}

/// The figures.
pub(crate) struct DumpFigures;

impl Query for DumpFigures {
    type Answer = String;

    fn run(self, rows: &dyn Engine) -> Result<String, WalletStoreError> {
        Ok(format!("{:?}", rows.get::<AllFigures>(&())?.unwrap_or_default()))
    }
}
