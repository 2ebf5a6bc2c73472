//! The first time that somebody is shown a key, its script is watched.

use bsv_tx::Script;

use crate::error::Error;
use crate::ledger::{IsWatched, Watch};
use crate::model::coin::KeyPath;
use crate::store::WalletStore;
use crate::wallet::Wallet;

impl<S: WalletStore> Wallet<S> {
    /// The script that the invoice of this number is paid to, for its payer to see.
    pub(crate) async fn show_destination(&self, invoice: u64) -> Result<Script, Error> {
        let (script, key) = self.keys.destination(invoice)?;
        if let Some(hash) = script.public_key_hash() {
            self.watch_script(*hash, key).await?;
        }
        Ok(script)
    }

    /// Watches the script of a key that is going to be shown. Only the first time changes something.
    pub(crate) async fn watch_script(&self, hash: [u8; 20], key: KeyPath) -> Result<(), Error> {
        if self.store.get(IsWatched(hash)).await? {
            return Ok(());
        }
        // What pays it may come as soon as it is shown.
        self.watching.filter.add(std::iter::once(hash.as_slice()));
        Ok(self.store.execute(Watch { keys: vec![(hash, key)] }).await?)
    }
}
