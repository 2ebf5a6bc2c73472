//! The information on a miner and on its miner ids.

use bsv_tx::{BlockHash, PublicKey};
use serde::{Deserialize, Serialize};

use crate::verify::Claim;

/// A miner: a series of miner ids that vouch for one another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Miner {
    /// The first block that it mined under a miner id.
    pub first_block: BlockHash,
    /// The last such block.
    pub last_block: BlockHash,
    /// The miner id that the miner introduced last.
    pub latest_miner_id: PublicKey,
}

/// A miner id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Key {
    /// The miner id.
    pub miner_id: PublicKey,
    /// The index of the miner in [`Ledger::miners`](crate::ledger::Ledger::miners).
    pub miner: usize,
    /// The state of the miner id.
    pub state: KeyState,
    /// The previous miner id; for a first one, itself.
    pub previous: PublicKey,
    /// The miner id that it was rotated to.
    pub next: Option<PublicKey>,
    /// The block that introduced it.
    pub creation_block: BlockHash,
    /// The height of that block.
    pub creation_height: u32,
    /// The version of its last document.
    pub version: String,
    /// The revocation key of its last document (1.0).
    pub revocation_key: Option<PublicKey>,
    /// The miner's name in its last document.
    pub name: Option<String>,
}

/// The states of a miner id, as nodes name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum KeyState {
    /// In use.
    Current,
    /// Replaced by a later one.
    Rotated,
    /// Never to be used again.
    Revoked,
}

impl KeyState {
    /// The name that nodes print.
    pub fn name(self) -> &'static str {
        match self {
            Self::Current => "CURRENT",
            Self::Rotated => "ROTATED",
            Self::Revoked => "REVOKED",
        }
    }
}

/// Where a block is.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) block: BlockHash,
    pub(super) height: u32,
}

impl Key {
    pub(super) fn new(miner: usize, Place { block, height }: Place, claim: &Claim) -> Self {
        Self {
            miner_id: claim.miner_id,
            miner,
            state: KeyState::Current,
            previous: claim.previous_miner_id,
            next: None,
            creation_block: block,
            creation_height: height,
            version: claim.version.clone(),
            revocation_key: claim.revocation_keys.map(|keys| keys.current),
            name: claim.name.clone(),
        }
    }

    /// Adopts the contents of the latest document.
    pub(super) fn adopt(&mut self, claim: &Claim) {
        self.version.clone_from(&claim.version);
        self.revocation_key = claim.revocation_keys.map(|keys| keys.current);
        self.name.clone_from(&claim.name);
    }
}
