//! The script of a key is watched from the first time that the key is shown.

use bsv_tx::Script;

use crate::error::Error;
use crate::ledger::{IsWatched, Watch};
use crate::model::coin::KeyPath;
use crate::store::WalletStore;
use crate::wallet::Wallet;

impl Wallet {
    /// The script that the invoice with this number is paid to. Call this before showing it.
    pub(crate) async fn show_destination(&self, invoice: u64) -> Result<Script, Error> {
        let (script, key) = self.keys.destination(invoice)?;
        if let Some(hash) = script.public_key_hash() {
            self.watch_script(*hash, key).await?;
        }
        Ok(script)
    }

    /// Watches the script of a key before the key is shown. Only the first call changes something.
    pub(crate) async fn watch_script(&self, hash: [u8; 20], key: KeyPath) -> Result<(), Error> {
        if self.store.get(IsWatched(hash)).await? {
            return Ok(());
        }
        // A payment may arrive as soon as the script is shown.
        self.watching.filter.add(std::iter::once(hash.as_slice()));
        Ok(self.store.execute(Watch { keys: vec![(hash, key)] }).await?)
    }
}
