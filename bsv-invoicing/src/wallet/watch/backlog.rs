//! The backlog of keys to watch whose hashes are not stored yet: keys that may have been given out
//! after a backup was made, and those beyond each one of them that is found.

use std::sync::Arc;

use bsv_tx::KeyError;

use crate::error::Error;
use crate::ledger::{GetWatchBacklog, WatchBacklogged};
use crate::model::coin::KeyPath;
use crate::store::{WalletStore, WalletStoreError};
use crate::wallet::Wallet;

/// How many keys are derived at once.
const KEYS_AT_ONCE: u32 = 1000;

impl Wallet {
    /// Watches all keys of the backlog. Returns how often that was done since the wallet was opened.
    pub(in crate::wallet) async fn watch_backlog(&self) -> Result<u64, Error> {
        let mut times = self.watching.backlog.lock().await;
        while let Some((from, end)) = self.store.get(GetWatchBacklog).await? {
            let until = from.index.saturating_add(KEYS_AT_ONCE).min(end);
            let keys = Arc::clone(&self.keys);
            let derive = move || -> Result<Vec<_>, KeyError> {
                let paths = (from.index..until).map(|index| KeyPath { index, ..from });
                paths.map(|path| keys.coin_hash(path)).collect()
            };
            let hashes = tokio::task::spawn_blocking(derive).await;
            let hashes = hashes.map_err(|_| bsv_store::StoreError::Panicked);
            let hashes = hashes.map_err(WalletStoreError::from)??;
            self.watching.filter.add(hashes.iter().map(<[u8; 20]>::as_slice));
            self.watching.look_at_all_again();
            self.store.execute(WatchBacklogged { from, hashes }).await?;
            *times += 1;
        }
        Ok(*times)
    }
}
