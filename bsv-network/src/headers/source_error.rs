use thiserror::Error;

use crate::service::shown;

/// Why a source gives no headers.
#[derive(Debug, Error)]
pub enum SourceError {
    /// There is no complete answer.
    #[error("{name} does not answer: {reason}")]
    Unreachable {
        /// The source.
        name: String,
        /// What happened.
        reason: String,
    },
    /// The answer is not what the question asks for.
    #[error("{name} answers nonsense: {reason}")]
    Nonsense {
        /// The source.
        name: String,
        /// What is wrong with the answer, and its first bytes.
        reason: String,
    },
}

impl SourceError {
    /// What is wrong with an answer.
    pub(super) fn nonsense(name: &str, reason: &str, answer: &[u8]) -> Self {
        Self::Nonsense { name: name.to_owned(), reason: format!("{reason}: {}", shown(answer)) }
    }
}
