//! Where identities are kept: the records, the changes that can happen to them, and the trait that
//! a back end implements.

mod identity_store;
mod key_events;
mod key_record;
mod miner_info_change;
mod miner_info_record;
mod record;
mod record_json;
mod redb;
mod vctx_record;

pub use self::identity_store::{IdentityStore, IdentityStoreError};
pub use self::key_record::KeyRecord;
pub use self::miner_info_change::{Announcement, MinerIdView, MinerInfoChange};
pub use self::miner_info_record::{MinerInfoRecord, RevocationRecord};
pub use self::record::{IdentityRecord, Protocol};
pub use self::redb::{OpenStoreError, RedbIdentityStore};
pub use self::vctx_record::{Vctx, VctxView};
