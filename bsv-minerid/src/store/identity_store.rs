use bsv_store::{AuditCheck, AuditEntry, AuditPage, KeyEvent, StoreError};
use thiserror::Error;

use crate::alias::Alias;
use crate::state::{Change, IdentityRecord};

/// Why a change was not made. A failed change leaves nothing behind.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum IdentityStoreError {
    /// The identity does not exist.
    #[error("alias \"{0}\" does not exist")]
    Unknown(Alias),
    /// The identity already exists.
    #[error("alias \"{0}\" exists already")]
    Exists(Alias),
    /// The identity is not in the state that the change expects.
    #[error("alias \"{alias}\" has changed meanwhile: {reason}")]
    Conflict {
        /// The identity.
        alias: Alias,
        /// What does not match.
        reason: &'static str,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// An identity in a store, with its record or why the record cannot be read.
pub type FoundIdentity = (Alias, Result<IdentityRecord, StoreError>);

/// A durable store of identities. Each method that changes something is one atomic step, which is
/// durable when it has answered. A method that changes an identity answers the changed record.
pub trait IdentityStore: Send + Sync + 'static {
    /// All identities, including deleted ones. An unreadable record does not affect the others.
    fn identities(&self) -> Result<Vec<FoundIdentity>, IdentityStoreError>;

    /// One identity.
    fn identity(&self, alias: &Alias) -> Result<IdentityRecord, IdentityStoreError>;

    /// Creates identities: all of them or none. `origin` tells whether their keys were made or
    /// imported. The audit log records it, as it does every change of keys.
    fn create(
        &self,
        identities: &[(Alias, IdentityRecord)],
        origin: KeyEvent,
    ) -> Result<(), IdentityStoreError>;

    /// Changes one identity.
    fn change(&self, alias: &Alias, change: &Change) -> Result<IdentityRecord, IdentityStoreError>;

    /// Changes several identities in one step. Identities that do not exist are skipped.
    fn change_all(&self, changes: &[(Alias, Change)]) -> Result<(), IdentityStoreError>;

    /// Adds another event of a key to the audit log.
    fn note_key_event(&self, event: KeyEvent, subject: &str) -> Result<(), IdentityStoreError>;

    /// Up to `limit` entries of a page of the audit log, in order.
    fn audit_log(
        &self,
        page: AuditPage,
        limit: usize,
    ) -> Result<Vec<AuditEntry>, IdentityStoreError>;

    /// Reads the audit log from the disk, from its beginning, and checks it.
    fn verify_audit_log(&self) -> Result<AuditCheck, IdentityStoreError>;
}
