//! The state of an identity, its possible changes, and the contents of its documents in each state.
//! Nothing here does any I/O: a store keeps [`IdentityRecord`]s and applies [`Change`]s to them.
//!
//! Keys of generation 1.0. Documents name a previous key and the current one. The key *k₁* is the
//! last that a block of the main chain has shown; *k₂* and *k₃* are newer:
//!
//! | state | change | state after it | previous | current |
//! | --- | --- | --- | --- | --- |
//! | nothing announced | - | - | k₁ | k₁ |
//! | nothing announced | [`Change::Rotate`], the current key vouches for the new one | rotation | k₁ | k₂ |
//! | no key known to anybody | [`Change::Rotate`], the key is replaced | nothing announced | k₂ | k₂ |
//! | nothing announced, or rotation, and nodes know no key | [`Change::Rotate`], it begins anew | nothing announced | k₃ | k₃ |
//! | rotation | [`Change::Rotate`], k₂ is skipped | rotation | k₁ | k₃ |
//! | rotation | [`Change::Observe`], a block shows k₂ | nothing announced | k₂ | k₂ |
//! | nothing announced, or rotation | [`Change::BeginRevocation`], partial | partial revocation | k₁ | k₃ |
//! | partial revocation | [`Change::Observe`], a block shows k₃ | nothing announced | k₃ | k₃ |
//! | nothing announced, or rotation | [`Change::BeginRevocation`], complete | complete revocation | k₁ | k₁ |
//! | complete revocation | [`Change::Observe`], a block shows it | closed | no documents | |
//! | no key known to anybody | [`Change::Close`] | closed | no documents | |
//! | nothing announced, or rotation | [`Change::Observe`], only lost blocks have shown any key | nothing announced | k₂ | k₂ |
//! | any of these | [`Change::Observe`], that block leaves the chain | the state before it | as there | as there |
//!
//! Revocation keys, in the same way (*r₁*, *r₂*), beside any state of keys without a revocation:
//!
//! | state | change | state after it | previous | current |
//! | --- | --- | --- | --- | --- |
//! | nothing announced | [`Change::RollRevocationKey`] | revocation key | r₁ | r₂ |
//! | revocation key | [`Change::Observe`], a block shows r₂ | nothing announced | r₂ | r₂ |
//! | revocation key | [`Change::BeginRevocation`] | revocation, then revocation key | r₁ | r₁, then r₂ |
//! | nothing announced | [`Change::Observe`], that block leaves the chain | revocation key | r₁ | r₂ |
//! | none, in generation 0.2 | [`Change::Upgrade`] | revocation key | r₁ | r₁ |
//! | revocation key, after an upgrade | [`Change::Observe`], a block shows r₁ | nothing announced | r₁ | r₁ |
//!
//! In generation 0.2, documents name the key before the current one, whether or not a block has shown
//! the current key. That matters only for the next rotation: until then, a rotation may skip that
//! key. If a block shows a skipped key, documents name it as the previous one.

mod announcement;
mod chain_view;
mod change;
mod key;
mod miner_id_info;
mod miner_info_record;
mod record;
mod sightings;
mod vctx;

pub use self::announcement::Announcement;
pub use self::chain_view::{BlockRef, ChainView, Shown};
pub use self::change::{Change, Rotation};
pub use self::key::KeyRecord;
pub use self::miner_id_info::{MinerIdInfo, MinerIdState};
pub use self::miner_info_record::{MinerInfoRecord, Reference, RevocationRecord};
pub use self::record::{Exposure, IdentityRecord, Protocol};
pub use self::sightings::{Sighted, Sighting, Sightings, Unseen};
pub use self::vctx::{LeftVctx, Vctx, VctxView};

#[cfg(test)]
mod tests;
