//! The state of an identity, its possible changes, and the contents of its documents in each state.
//! Nothing here does any I/O: a store keeps [`IdentityRecord`]s and applies [`Change`]s to them.
//!
//! An identity is a list of [`Step`]s, each with what the chain shows of it ([`Seen`]). Everything
//! else follows from them. A lost block changes only `seen`, so the state before that block is back.
//!
//! Documents name a previous key and the current one. The key *k₁* is the last that a block of the
//! main chain has shown; *k₂* and *k₃* are newer, in this order:
//!
//! | state | change | state after it | documents of 1.0 | documents of 0.2 |
//! | --- | --- | --- | --- | --- |
//! | nothing announced | - | - | k₁, k₁ | k₀, k₁ with the key before it; k₁, k₁ for the first |
//! | nothing announced | [`Change::Rotate`], the current key vouches for the new one | rotation | k₁, k₂ | k₁, k₂ |
//! | rotation | [`Change::Rotate`], the current key vouches for the new one | rotation | k₁, k₃ | k₂, k₃ |
//! | rotation | [`Change::Rotate`], k₂ is skipped | rotation | k₁, k₃ | k₁, k₃ |
//! | no key known to anybody | [`Change::Rotate`], the key is replaced | nothing announced | k₂, k₂ | k₂, k₂ |
//! | nothing announced, or rotation, and nodes know no key | [`Change::Rotate`], it begins anew | nothing announced | k₃, k₃ | k₃, k₃ |
//! | rotation | [`Change::Observe`], a block shows the current key k₂ | nothing announced | k₂, k₂ | k₁, k₂ |
//! | rotation to k₃ | [`Change::Observe`], a block shows the skipped key k₂ | rotation | k₂, k₃ | k₂, k₃ |
//! | nothing announced, or rotation | [`Change::Observe`], only lost blocks have shown any key | nothing announced | k₂, k₂ | k₂, k₂ |
//! | nothing announced: a block shows k₂ | [`Change::Observe`], that block leaves the chain | rotation | k₁, k₂ | k₁, k₂ |
//! | rotation to k₃ after k₂ | [`Change::Observe`], the block that shows k₂ leaves the chain | rotation | k₁, k₃ | k₁, k₃ |
//! | nothing announced, or rotation | [`Change::BeginRevocation`], partial | partial revocation | k₁, k₃ | none |
//! | partial revocation | [`Change::Observe`], a block shows k₃ | nothing announced | k₃, k₃ | none |
//! | partial revocation by k₂ | [`Change::Observe`], the block that shows k₂ leaves the chain | rotation | k₁, k₃ | none |
//! | nothing announced, or rotation | [`Change::BeginRevocation`], complete | complete revocation | k₁, k₁ | none |
//! | complete revocation by k₁ | [`Change::Observe`], the block that shows k₁ leaves the chain | complete revocation | k₁, k₁ | none |
//! | complete revocation | [`Change::Observe`], a block shows it | closed | no documents | none |
//! | closed by a block | [`Change::Observe`], that block leaves the chain | complete revocation | k₁, k₁ | none |
//! | no key known to anybody | [`Change::Close`] | closed | no documents | none |
//! | any of these | [`Change::Confirm`] | as if a block showed what is announced | as there | none |
//! | any of 0.2, k₁ and k₂ in documents | [`Change::Upgrade`] | rotation | k₁, k₂ | |
//!
//! Generation 0.2 has no revocation and no confirmation: its validity check output revokes an
//! identity. Revocation keys of generation 1.0 (*r₁*, *r₂*), beside any state of keys:
//!
//! | state | change | state after it | documents |
//! | --- | --- | --- | --- |
//! | nothing announced | [`Change::RollRevocationKey`] | revocation key | r₁, r₂ |
//! | revocation key | [`Change::Observe`], a block shows r₂ | nothing announced | r₂, r₂ |
//! | revocation key | [`Change::BeginRevocation`] | revocation, then revocation key | r₁, r₁, then r₁, r₂ |
//! | nothing announced: a block shows r₂ | [`Change::Observe`], that block leaves the chain | revocation key | r₁, r₂ |
//! | revocation by r₂ | [`Change::Observe`], the block that shows r₂ leaves the chain | rotation and revocation key | r₁, r₂ |
//! | none, in generation 0.2 | [`Change::Upgrade`] | revocation key | r₁, r₁ |
//! | revocation key, after an upgrade | [`Change::Observe`], a block shows r₁ | nothing announced | r₁, r₁ |
//!
//! In generation 0.2 a rotation without a node makes the current key vouch for the new one, whether
//! or not a block has shown it.

mod announcement;
mod chain_view;
mod change;
mod key;
mod miner_id_info;
mod miner_info_record;
mod record;
mod revocation_keys;
mod sighting;
mod step;
mod vctx;

pub use self::announcement::Announcement;
pub use self::chain_view::{BlockRef, ChainView, Shown};
pub use self::change::{Change, Rotation};
pub use self::key::KeyRecord;
pub use self::miner_id_info::{MinerIdInfo, MinerIdState};
pub use self::miner_info_record::{MinerInfoRecord, Reference, RevocationKeyRecord};
pub use self::record::{Exposure, IdentityRecord, Protocol};
pub use self::sighting::{Sighted, Sighting, Unseen};
pub use self::step::{Deed, RevocationRecord, Seen, Step};
pub use self::vctx::{LeftVctx, Vctx, VctxView};

#[cfg(test)]
mod tests;
