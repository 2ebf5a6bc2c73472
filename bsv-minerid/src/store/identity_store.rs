use bsv_store::{AuditCheck, AuditEntry, KeyEvent, StoreError};
use thiserror::Error;

use crate::alias::Alias;
use crate::state::{Change, IdentityRecord};

/// Why a change was not made. Nothing of it is left behind.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum IdentityStoreError {
    /// There is no such identity.
    #[error("alias \"{0}\" does not exist")]
    Unknown(Alias),
    /// There is such an identity already.
    #[error("alias \"{0}\" exists already")]
    Exists(Alias),
    /// The identity is not in the state that the change starts from.
    #[error("alias \"{alias}\" has changed meanwhile: {reason}")]
    Conflict {
        /// The identity.
        alias: Alias,
        /// What does not fit.
        reason: &'static str,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// An identity in a store, and its record or why that cannot be read.
pub type FoundIdentity = (Alias, Result<IdentityRecord, StoreError>);

/// A durable store of identities. Each method that changes something is one atomic step, which has reached
/// the disk when it has answered. A change of an identity answers it as it stands afterwards.
pub trait IdentityStore: Send + Sync + 'static {
    /// All identities, those that are deleted with them. A record that cannot be read keeps no other from being answered.
    fn identities(&self) -> Result<Vec<FoundIdentity>, IdentityStoreError>;

    /// One identity.
    fn identity(&self, alias: &Alias) -> Result<IdentityRecord, IdentityStoreError>;

    /// Begins identities, whose keys were made or, as `origin` may say too, imported: all of them or
    /// none. As with all that changes keys, the audit log tells of it.
    fn create(
        &self,
        identities: &[(Alias, IdentityRecord)],
        origin: KeyEvent,
    ) -> Result<(), IdentityStoreError>;

    /// Makes a change of one identity.
    fn change(&self, alias: &Alias, change: &Change) -> Result<IdentityRecord, IdentityStoreError>;

    /// Makes changes of several identities in one step. Those of identities that do not exist are passed over.
    fn change_all(&self, changes: &[(Alias, Change)]) -> Result<(), IdentityStoreError>;

    /// Adds to the audit log what happens to a key besides.
    fn note_key_event(&self, event: KeyEvent, subject: &str) -> Result<(), IdentityStoreError>;

    /// Up to `limit` entries of the audit log after the one of this number, in order.
    fn audit_log(&self, after: u64, limit: usize) -> Result<Vec<AuditEntry>, IdentityStoreError>;

    /// Reads the audit log from its beginning, off the disk.
    fn verify_audit_log(&self) -> Result<AuditCheck, IdentityStoreError>;
}
