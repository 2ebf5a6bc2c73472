//! Where identities are kept: the trait that a back end implements, and the one that there is.

mod identity_store;
mod key_events;
mod record_json;
mod redb;

pub use self::identity_store::{FoundIdentity, IdentityStore, IdentityStoreError};
pub use self::redb::{OpenStoreError, RedbIdentityStore};
