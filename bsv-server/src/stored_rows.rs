//! The rows of a wallet as they are stored, whether or not the wallet can be opened.

use bsv_invoicing::ledger::rows::{KeyRange, RawRow};
use bsv_invoicing::store::OpenWalletStoreError;
use bsv_invoicing::{PostgresWalletStore, RedbWalletStore};
use bsv_store::DirLock;

use crate::config::{Config, WalletConfig};
use crate::opening::OpenError;

/// Up to `limit` rows of a range, from the file or the database of the wallet. Nothing is changed. The server of a file
/// must be stopped. This blocks.
pub fn stored_rows(
    config: &Config,
    wallet: &WalletConfig,
    range: KeyRange,
    limit: usize,
) -> Result<Vec<RawRow>, OpenError> {
    let rows = match &wallet.store {
        Some(database) => PostgresWalletStore::peek(database.clone(), range, limit),
        None => {
            let lock = DirLock::acquire(&config.network_dir, "bsv-cli")?;
            RedbWalletStore::peek(&lock, &range, limit)
        }
    };
    Ok(rows.map_err(OpenWalletStoreError::from)?)
}
