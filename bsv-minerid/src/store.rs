//! The stores of identities: the trait that a back end implements, and its implementation.

mod identity_store;
#[cfg(feature = "store")]
mod key_events;
#[cfg(feature = "store")]
mod record_json;
#[cfg(feature = "store")]
mod redb;

pub use self::identity_store::{FoundIdentity, IdentityStore, IdentityStoreError};
#[cfg(feature = "store")]
pub use self::redb::{OpenStoreError, RedbIdentityStore};
