use thiserror::Error;

/// Why a node did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NodeError {
    /// No complete answer: the node does not run, is too busy, or did not answer in time. Unless
    /// the connection was refused, the node may still have done what it was asked.
    #[error("no answer from the node at {address}: {reason}")]
    Unreachable {
        /// The node's host and port.
        address: String,
        /// What happened.
        reason: String,
    },
    /// The node does not accept the user name and the password (HTTP 401), or refuses RPC from
    /// this machine (HTTP 403).
    #[error("the node refuses the RPC user name and password, or RPC from this machine")]
    Unauthorized,
    /// The node is starting and does not answer calls yet (code -28).
    #[error("the node is still starting")]
    Starting,
    /// The node has seen a long fork, and takes no transactions until somebody has looked at it
    /// (code -2). That says nothing about any of them.
    #[error("the node is in safe mode: {0}")]
    SafeMode(String),
    /// The node understood the call and refused it.
    #[error("the node refused {method}: {message} (code {code})")]
    Rejected {
        /// The RPC method.
        method: String,
        /// The node's error code, negative.
        code: i64,
        /// The node's words.
        message: String,
    },
    /// The answer is not one that a Bitcoin SV node gives to this call.
    #[error("the answer to {method} makes no sense: {reason}")]
    Unexpected {
        /// The RPC method.
        method: String,
        /// What is wrong with the answer.
        reason: String,
    },
}

impl NodeError {
    /// Whether the node cannot be used at present, whatever it is asked: it is away, starting, in safe
    /// mode, or does not let us in. The same call may succeed later.
    pub fn is_unavailable(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Unauthorized | Self::Starting | Self::SafeMode(_) => {
                true
            }
            Self::Rejected { .. } | Self::Unexpected { .. } => false,
        }
    }

    /// The node's words, if it refused a transaction for what the transaction is or spends: it cannot be
    /// decoded (code -22), what it spends is missing (-25), or it breaks a rule (-26). Other codes are about
    /// the node.
    pub fn verdict(&self) -> Option<&str> {
        match self {
            Self::Rejected { code: -26 | -25 | -22, message, .. } => Some(message),
            _ => None,
        }
    }

    pub(crate) fn unexpected(method: &str, reason: String) -> Self {
        Self::Unexpected { method: method.to_owned(), reason }
    }
}
