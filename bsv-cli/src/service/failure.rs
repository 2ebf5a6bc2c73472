use std::io;

use bsv_server::OpenError;
use bsv_server::http::BrokenOff;
use serde_json::Value;
use thiserror::Error;

/// A refusal of the service.
#[derive(Debug, Error)]
#[error("{reason}")]
pub(crate) struct Refusal {
    /// The stable code.
    pub(crate) code: String,
    /// The reason, which may quote text of strangers.
    pub(crate) reason: String,
    /// The whole answer.
    pub(crate) problem: Value,
}

/// Why the service could not be reached.
#[derive(Debug, Error)]
pub(crate) enum ReachError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("the server broke off before it answered, and may or may not have done it: {0}")]
    BrokenOff(#[from] hyper::Error),
    #[error(transparent)]
    Answer(#[from] BrokenOff),
    #[error("the answer of the service makes no sense: {0}")]
    Nonsense(serde_json::Error),
    #[error("cannot ask the service: {0}")]
    Io(#[from] io::Error),
}

impl Refusal {
    /// Parses a problem document.
    pub(super) fn new(body: &str) -> Self {
        let problem: Value = serde_json::from_str(body).unwrap_or_default();
        let code = problem["code"].as_str().unwrap_or("internal-error").to_owned();
        let reason = problem["detail"].as_str().unwrap_or(body).to_owned();
        Self { code, reason, problem }
    }
}
