use std::fmt;

use bsv_tx::PublicKey;

use super::miner::KeyState;
use crate::verify::RevocationKeys;

/// What a block came to for the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What happened.
    pub event: Event,
    /// Who mined the block: an index into [`Ledger::miners`](crate::Ledger::miners).
    pub miner: Option<usize>,
    /// The revocation keys, where the block announces a new one.
    pub revocation_key_roll: Option<RevocationKeys>,
}

/// What happened to an identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The block carries no identity that a node takes.
    NoIdentity,
    /// A miner that was not known before.
    First,
    /// The current miner id of a known miner.
    Continued,
    /// A new miner id of a known miner.
    Rotated {
        /// The one before.
        from: PublicKey,
    },
    /// The announcement of the last rotation once more.
    RotationRepeated {
        /// The miner id before.
        from: PublicKey,
    },
    /// A new miner id; some of those before it are revoked.
    RevokedPartially {
        /// The one before.
        from: PublicKey,
        /// What this block has revoked: nothing, where an earlier block had done so.
        revoked: Vec<PublicKey>,
    },
    /// All miner ids of a miner are revoked.
    RevokedCompletely {
        /// These.
        revoked: Vec<PublicKey>,
    },
    /// The identity is sound in itself, but does not go with what was seen before.
    Refused(Refusal),
}

impl Event {
    /// The stable name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::NoIdentity => "no-identity",
            Self::First => "first",
            Self::Continued => "continued",
            Self::Rotated { .. } => "rotated",
            Self::RotationRepeated { .. } => "rotation-repeated",
            Self::RevokedPartially { .. } => "revoked-partially",
            Self::RevokedCompletely { .. } => "revoked-completely",
            Self::Refused(_) => "refused",
        }
    }
}

/// Why an identity does not go with what was seen before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The miner id that is rotated or revoked was never seen.
    UnknownPrevious(PublicKey),
    /// A miner id is used or rotated that is not current any more.
    NotCurrent {
        /// The miner id.
        miner_id: PublicKey,
        /// What it is.
        state: KeyState,
    },
    /// The previous revocation key is not the one that was last seen.
    RevocationKey {
        /// The one that was last seen.
        expected: PublicKey,
    },
    /// An upgrade from an older generation comes with a new revocation key.
    RollWithUpgrade,
    /// A revocation comes with a new revocation key.
    RollWithRevocation,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownPrevious(miner_id) => write!(f, "miner id {miner_id} was never seen"),
            Self::NotCurrent { miner_id, state } => {
                write!(f, "miner id {miner_id} is {}", state.name())
            }
            Self::RevocationKey { expected } => {
                write!(f, "the previous revocation key is not {expected}, which was last seen")
            }
            Self::RollWithUpgrade => {
                f.write_str("an upgrade from an older generation comes with a new revocation key")
            }
            Self::RollWithRevocation => f.write_str("a revocation comes with a new revocation key"),
        }
    }
}
