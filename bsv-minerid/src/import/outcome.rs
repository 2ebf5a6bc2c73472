//! What becomes of a home directory.

use crate::state::VctxView;

/// What became of an alias of a home directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Import {
    /// It was taken over, with its validity check output if that was found like this.
    TakenOver(VctxFinding),
    /// There is such an alias already, which was left as it is.
    Known {
        /// Whether it has all keys that the home directory has of it.
        has_keys: bool,
    },
    /// There was such an alias, which is not taken over again.
    Deleted,
}

/// What is known of a validity check output that a home directory names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VctxFinding {
    /// It names none.
    None,
    /// No node was asked, or it did not answer.
    NotAsked,
    /// The node has the transaction in no block of its chain.
    NotFound,
    /// The output is unspent in the chain with its tip at this height, and the key owns it.
    Unspent(u32),
    /// The output is spent there, which revokes the identity.
    Spent(u32),
    /// The key does not own the output, which is not taken for a validity check output.
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
