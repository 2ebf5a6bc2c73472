use thiserror::Error;

/// Why a call to a node failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NodeError {
    /// No complete answer: the node does not run, is too busy, or did not answer in time. Unless
    /// the connection was refused, the node may still have done what the call asked for.
    #[error("no answer from the node at {address}: {reason}")]
    Unreachable {
        /// The node's host and port.
        address: String,
        /// What happened.
        reason: String,
    },
    /// The node rejects the user name or password (HTTP 401), or RPC from this machine (HTTP 403).
    #[error("the node rejects the RPC user name or password, or RPC from this machine")]
    Unauthorized,
    /// The node is starting and does not answer calls yet (code -28).
    #[error("the node is still starting")]
    Starting,
    /// The node has seen a long fork. The node accepts no transactions until an operator has
    /// examined the fork (code -2). This error says nothing about the transaction that was sent.
    #[error("the node is in safe mode: {0}")]
    SafeMode(String),
    /// The node understood the call and refused it.
    #[error("the node refused {method}: {message} (code {code})")]
    Rejected {
        /// The RPC method.
        method: String,
        /// The node's error code, negative.
        code: i64,
        /// The node's message.
        message: String,
    },
    /// The answer does not have the form of a Bitcoin SV node's answer to this call.
    #[error("the answer to {method} makes no sense: {reason}")]
    Unexpected {
        /// The RPC method.
        method: String,
        /// What is wrong with the answer.
        reason: String,
    },
}

impl NodeError {
    /// Whether the node is unusable for every call at present: it is unreachable, starting, in safe
    /// mode, or refuses the credentials. The same call may succeed later.
    pub fn is_unavailable(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Unauthorized | Self::Starting | Self::SafeMode(_) => {
                true
            }
            Self::Rejected { .. } | Self::Unexpected { .. } => false,
        }
    }

    /// The node's message, if the node refused a transaction because of what the transaction is or
    /// spends: it cannot be decoded (code -22), an output that it spends is missing (-25), or it
    /// breaks a rule (-26). Other codes, and the refusals of a full mempool, concern the node: it
    /// may take the same transaction later.
    pub fn verdict(&self) -> Option<&str> {
        match self {
            Self::Rejected { code: -26 | -25 | -22, message, .. } if !is_of_pool(message) => {
                Some(message)
            }
            _ => None,
        }
    }

    pub(crate) fn unexpected(method: &str, reason: String) -> Self {
        Self::Unexpected { method: method.to_owned(), reason }
    }
}

/// The words of a node whose pools have no room for a transaction at the moment (node 1.0.13). A
/// chain of too many ancestors is a verdict: if they pay too little, no block ends it.
const OF_POOLS: [&str; 3] = ["mempool min fee not met", "mempool full", "non-final-pool-full"];

fn is_of_pool(message: &str) -> bool {
    OF_POOLS.iter().any(|words| message.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_mempool_says_nothing_about_a_transaction() {
        for (code, message, is_verdict) in [
            (-26, "66: mempool min fee not met", false),
            (-26, "66: mempool full", false),
            (-25, "mempool full", false),
            (-26, "64: too-long-mempool-chain", true),
            (-26, "258: txn-mempool-conflict", true),
            (-26, "64: too-long-validation-time", true),
            (-26, "256: absurdly-high-fee", true),
            (-25, "Missing inputs", true),
            (-22, "TX decode failed", true),
            (-10, "Bitcoin is downloading blocks...", false),
        ] {
            let (method, message) = ("sendrawtransaction".to_owned(), message.to_owned());
            let error = NodeError::Rejected { method, code, message: message.clone() };
            assert_eq!(error.verdict(), is_verdict.then_some(message.as_str()));
        }
    }
}
