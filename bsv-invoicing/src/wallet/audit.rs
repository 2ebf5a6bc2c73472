//! The log of what happens to keys.

use bsv_store::{AuditCheck, AuditEntry, KeyEvent};

use crate::error::Error;
use crate::ledger::{NoteKeyEvent, SEED_NAME};
use crate::store::WalletStore;
use crate::wallet::Wallet;
use crate::wallet::seed::WalletSeed;

impl<S: WalletStore> Wallet<S> {
    /// The seed: whoever has its words has the money. The audit log tells of it first.
    pub async fn export_seed(&self) -> Result<WalletSeed, Error> {
        let seed = WalletSeed::load(&self.keystore)?.ok_or(Error::SeedMissing)?;
        self.note_key_event(KeyEvent::Exported, SEED_NAME).await?;
        tracing::info!(target: "bsv_audit", subject = SEED_NAME, "{}", KeyEvent::Exported.name());
        Ok(seed)
    }

    /// Adds to the audit log what happens to keys that the wallet has a part in.
    pub async fn note_key_event(&self, event: KeyEvent, subject: &str) -> Result<(), Error> {
        let subject = subject.to_owned();
        Ok(self.store.execute(NoteKeyEvent { event, subject }).await?)
    }

    /// Up to `limit` entries of the audit log after the one of this number, in order.
    pub async fn audit_log(&self, after: u64, limit: usize) -> Result<Vec<AuditEntry>, Error> {
        Ok(self.store.audit_log(after, limit).await?)
    }

    /// Reads the audit log from its beginning, off the disk, and looks whether its entries fit.
    pub async fn verify_audit_log(&self) -> Result<AuditCheck, Error> {
        Ok(self.store.verify_audit_log().await?)
    }
}
