//! Which wallet owns the store, and what happens to its keys.

use bsv_store::KeyEvent;

use crate::ledger::rows::{NewAuditEntry, Owner, WalletStoreError};
use crate::ledger::{Books, Command, Refusal};

/// The name of the seed in the keystore and in the audit log.
pub(crate) const SEED_NAME: &str = "wallet.seed";

/// Makes the wallet with this fingerprint the owner of the store, unless another wallet owns it.
/// The first time, the audit log records where the seed comes from.
#[derive(Clone, Copy, Debug)]
pub struct Adopt {
    /// Identifies the wallet.
    pub fingerprint: [u8; 20],
    /// Where the seed comes from.
    pub origin: KeyEvent,
}

impl Command for Adopt {
    type Answer = ();

    fn run(&self, books: &mut Books<'_>) -> Result<(), WalletStoreError> {
        match books.rows.get::<Owner>(&())? {
            None => {
                books.rows.put::<Owner>((), &self.fingerprint)?;
                Ok(books.rows.append_audit(NewAuditEntry::Next(self.origin, SEED_NAME))?)
            }
            Some(owner) if owner == self.fingerprint => Ok(()),
            Some(_) => Err(Refusal::OtherWallet.into()),
        }
    }
}

/// Adds an entry about a key to the audit log.
#[derive(Clone, Debug)]
pub struct NoteKeyEvent {
    /// What happens.
    pub event: KeyEvent,
    /// The name of the key.
    pub subject: String,
}

impl Command for NoteKeyEvent {
    type Answer = ();

    fn run(&self, books: &mut Books<'_>) -> Result<(), WalletStoreError> {
        Ok(books.rows.append_audit(NewAuditEntry::Next(self.event, &self.subject))?)
    }
}
