use std::fmt;

use bsv_tx::PublicKey;

use super::miner::KeyState;
use crate::verify::RevocationKeys;

/// What a block changed in the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What happened.
    pub event: Event,
    /// Who mined the block: an index into [`Ledger::miners`](crate::ledger::Ledger::miners).
    pub miner: Option<usize>,
    /// The revocation keys, if the block announces a new one.
    pub revocation_key_roll: Option<RevocationKeys>,
}

/// What happened to an identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The block carries no identity that a node takes.
    NoIdentity,
    /// The first block of an unknown miner.
    First,
    /// The current miner id of a known miner.
    Continued,
    /// A new miner id of a known miner.
    Rotated {
        /// The previous miner id.
        from: PublicKey,
    },
    /// A repetition of the last rotation's announcement.
    RotationRepeated {
        /// The miner id before.
        from: PublicKey,
    },
    /// A new miner id, and the revocation of some earlier ones.
    RevokedPartially {
        /// The previous miner id.
        from: PublicKey,
        /// The miner ids that this block revoked. Empty if an earlier block had revoked them.
        revoked: Vec<PublicKey>,
    },
    /// All miner ids of a miner are revoked.
    RevokedCompletely {
        /// The revoked miner ids.
        revoked: Vec<PublicKey>,
    },
    /// The identity is valid by itself, but contradicts earlier blocks.
    Refused(Refusal),
}

impl Event {
    /// The stable name of the event.
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

/// Why an identity contradicts earlier blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The miner id that is rotated or revoked was never seen.
    UnknownPrevious(PublicKey),
    /// A miner id is used or rotated that is no longer current.
    NotCurrent {
        /// The miner id.
        miner_id: PublicKey,
        /// The state of the miner id.
        state: KeyState,
    },
    /// The previous revocation key is not the last one that was seen.
    RevocationKey {
        /// The last revocation key that was seen.
        expected: PublicKey,
    },
    /// An upgrade from an older generation carries a new revocation key.
    RollWithUpgrade,
    /// A revocation carries a new revocation key.
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
