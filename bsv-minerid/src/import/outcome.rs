//! The outcome of an import.

use crate::state::VctxView;

/// What happened to an alias of a home directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Import {
    /// The alias was imported, with this finding about its validity check output.
    TakenOver(VctxFinding),
    /// An identity with this alias exists, and was left unchanged.
    Known {
        /// Whether it has all keys of the home directory.
        has_keys: bool,
    },
    /// An identity with this alias was deleted, and is not imported again.
    Deleted,
}

/// What is known of the validity check output that a home directory names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VctxFinding {
    /// The home directory names no output.
    None,
    /// No node was asked, or the node did not answer.
    NotAsked,
    /// The node finds the transaction in no block of its chain.
    NotFound,
    /// The output is unspent at this height of the chain, and the identity's key owns it.
    Unspent(u32),
    /// The output is spent at this height of the chain, which revokes the identity.
    Spent(u32),
    /// The identity's key does not own the output, so the output is not used.
    Foreign,
}

impl VctxFinding {
    pub(super) fn view(self) -> VctxView {
        match self {
            Self::Unspent(height) => {
                VctxView { last_seen: Some(height), gone_since: None, is_spent: false }
            }
            Self::Spent(height) => {
                VctxView { last_seen: Some(height), gone_since: Some(height), is_spent: true }
            }
            Self::None | Self::NotAsked | Self::NotFound | Self::Foreign => VctxView::default(),
        }
    }
}
