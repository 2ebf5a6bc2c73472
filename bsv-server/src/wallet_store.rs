//! Where the wallet is stored: in a file of the data directory, or in a database.

use std::any::Any;
use std::fs::File;
use std::path::Path;

use bsv_invoicing::{PostgresWalletStore, RedbWalletStore, Wallet};
use bsv_store::StoreError;

use crate::backup::BackupError;
use crate::store_move::copy_as_file;

/// The database that the wallet is in, if it is in one.
pub(crate) fn database(wallet: &Wallet) -> Option<&PostgresWalletStore> {
    let store: &dyn Any = wallet.store();
    store.downcast_ref()
}

/// A copy of the wallet as it is at one moment: a file without a name, of the form of the wallet's file.
pub(crate) async fn copy(wallet: &Wallet, network_dir: &Path) -> Result<File, BackupError> {
    if let Some(database) = database(wallet) {
        return Ok(copy_as_file(database, network_dir).await?);
    }
    let store: &dyn Any = wallet.store();
    let file: &RedbWalletStore =
        store.downcast_ref().ok_or_else(|| StoreError::damaged("it is no file"))?;
    Ok(file.copy().await?.into_file()?)
}
