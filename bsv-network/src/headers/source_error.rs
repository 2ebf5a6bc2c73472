use std::time::Duration;

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
        /// How long the source asks to be left alone, an hour at most.
        retry_after: Option<Duration>,
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
    /// There is no complete answer, and the source does not say when it would give one.
    pub(super) fn unreachable(name: &str, reason: String) -> Self {
        Self::Unreachable { name: name.to_owned(), reason, retry_after: None }
    }

    /// How long the source asks to be left alone.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Unreachable { retry_after, .. } => *retry_after,
            Self::Nonsense { .. } => None,
        }
    }

    /// What is wrong with an answer.
    pub(super) fn nonsense(name: &str, reason: &str, answer: &[u8]) -> Self {
        Self::Nonsense { name: name.to_owned(), reason: format!("{reason}: {}", shown(answer)) }
    }
}
