//! The audit log: what happens to keys.

use bsv_store::{AuditCheck, AuditEntry, AuditPage, KeyEvent};

use crate::error::Error;
use crate::ledger::{NoteKeyEvent, SEED_NAME};
use crate::store::WalletStore;
use crate::wallet::Wallet;
use crate::wallet::seed::WalletSeed;

impl Wallet {
    /// Returns the seed, after the export is in the audit log. Whoever has its words has the money.
    pub async fn export_seed(&self) -> Result<WalletSeed, Error> {
        let seed = WalletSeed::load(&self.keystore)?.ok_or(Error::SeedMissing)?;
        self.note_key_event(KeyEvent::Exported, SEED_NAME).await?;
        tracing::info!(target: "bsv_audit", subject = SEED_NAME, "{}", KeyEvent::Exported.name());
        Ok(seed)
    }

    /// Adds an entry to the audit log.
    pub async fn note_key_event(&self, event: KeyEvent, subject: &str) -> Result<(), Error> {
        let subject = subject.to_owned();
        Ok(self.store.execute(NoteKeyEvent { event, subject }).await?)
    }

    /// Up to `limit` entries of a page of the audit log, in order.
    pub async fn audit_log(&self, page: AuditPage, limit: usize) -> Result<Vec<AuditEntry>, Error> {
        Ok(self.store.audit_log(page, limit).await?)
    }

    /// Reads the whole audit log from the disk and checks that its entries fit together.
    pub async fn verify_audit_log(&self) -> Result<AuditCheck, Error> {
        Ok(self.store.verify_audit_log().await?)
    }
}
