use bsv_store::{AuditCheck, AuditEntry, KeyEvent, StoreError};
use bsv_tx::{OutPoint, Transaction};
use thiserror::Error;

use crate::alias::Alias;
use crate::operator_members::OperatorMembers;
use crate::store::{IdentityRecord, KeyRecord, MinerInfoChange, VctxView};

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

/// A durable store of identities. Each method that changes something is one use case's atomic step
/// and answers the identity as it stands afterwards; when it has answered, the change has reached
/// the disk.
pub trait IdentityStore: Send + Sync + 'static {
    /// All identities.
    fn identities(&self) -> Result<Vec<(Alias, IdentityRecord)>, IdentityStoreError>;

    /// One identity.
    fn identity(&self, alias: &Alias) -> Result<IdentityRecord, IdentityStoreError>;

    /// Begins identities, whose keys were made or, as `origin` may say too, imported: all of them or
    /// none. As with all that changes keys, the audit log tells of it.
    fn create(
        &self,
        identities: &[(Alias, IdentityRecord)],
        origin: KeyEvent,
    ) -> Result<(), IdentityStoreError>;

    /// Makes `key` the current key, provided that the key numbered `from` is it until then.
    fn rotate(
        &self,
        alias: &Alias,
        from: u32,
        key: KeyRecord,
    ) -> Result<IdentityRecord, IdentityStoreError>;

    /// Replaces what the operator adds to documents.
    fn set_operator(
        &self,
        alias: &Alias,
        operator: &OperatorMembers,
    ) -> Result<IdentityRecord, IdentityStoreError>;

    /// Switches on or off that the identity signs any digest.
    fn set_blind_signing(
        &self,
        alias: &Alias,
        is_on: bool,
    ) -> Result<IdentityRecord, IdentityStoreError>;

    /// Notes that the key of the validity check output is on the disk and its address waits for
    /// coins. Repeating it changes nothing.
    fn await_vctx_funding(&self, alias: &Alias) -> Result<IdentityRecord, IdentityStoreError>;

    /// Notes the validity check transaction that is about to be broadcast.
    fn begin_vctx(
        &self,
        alias: &Alias,
        transaction: &Transaction,
    ) -> Result<IdentityRecord, IdentityStoreError>;

    /// Goes back to waiting for coins, after the network refused the transaction.
    fn abandon_vctx(&self, alias: &Alias) -> Result<IdentityRecord, IdentityStoreError>;

    /// Notes the validity check output, which the network has accepted.
    fn record_vctx(
        &self,
        alias: &Alias,
        outpoint: OutPoint,
    ) -> Result<IdentityRecord, IdentityStoreError>;

    /// Notes the transaction that spends the validity check output, which is about to be broadcast.
    fn revoke_vctx(
        &self,
        alias: &Alias,
        spending: &Transaction,
    ) -> Result<IdentityRecord, IdentityStoreError>;

    /// Changes an identity of generation 1.0, or makes one of generation 0.2 into one.
    fn change_miner_info(
        &self,
        alias: &Alias,
        change: &MinerInfoChange,
    ) -> Result<IdentityRecord, IdentityStoreError>;

    /// Notes what the chain shows of validity check outputs. Those that are not the identity's
    /// own any more are passed over.
    fn note_vctx_views(
        &self,
        views: &[(Alias, OutPoint, VctxView)],
    ) -> Result<(), IdentityStoreError>;

    /// Adds to the audit log what happens to a key besides.
    fn note_key_event(&self, event: KeyEvent, subject: &str) -> Result<(), IdentityStoreError>;

    /// Up to `limit` entries of the audit log after the one of this number, in order.
    fn audit_log(&self, after: u64, limit: usize) -> Result<Vec<AuditEntry>, IdentityStoreError>;

    /// Reads the audit log from its beginning, off the disk.
    fn verify_audit_log(&self) -> Result<AuditCheck, IdentityStoreError>;

    /// Notes that documents of these key numbers have been handed out since their rotation.
    fn note_handed_out(&self, keys: &[(Alias, u32)]) -> Result<(), IdentityStoreError>;
}
