//! Whether the wallet is in a database.

use std::any::Any;

use bsv_invoicing::{PostgresWalletStore, Wallet};

/// The database that the wallet is in, if it is in one.
pub(crate) fn database(wallet: &Wallet) -> Option<&PostgresWalletStore> {
    let store: &dyn Any = wallet.store();
    store.downcast_ref()
}
