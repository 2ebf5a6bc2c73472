//! The stores of identities: the trait that a back end implements, its implementation, and the
//! records and changes that they store.

mod identity_store;
#[cfg(feature = "store")]
mod key_events;
#[cfg(feature = "store")]
mod record_json;
#[cfg(feature = "store")]
mod redb;

pub use crate::state::{
    Announcement, BlockRef, ChainView, Change, Deed, Exposure, IdentityRecord, KeyRecord, LeftVctx,
    MinerIdInfo, MinerIdState, MinerInfoRecord, Protocol, Reference, RevocationKeyRecord,
    RevocationRecord, Rotation, Seen, Shown, Sighted, Sighting, Step, Unseen, Vctx, VctxView,
};

pub use self::identity_store::{FoundIdentity, IdentityStore, IdentityStoreError};
#[cfg(feature = "store")]
pub use self::redb::{OpenStoreError, RedbIdentityStore};
