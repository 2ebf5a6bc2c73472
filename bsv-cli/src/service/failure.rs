use std::io;

use bsv_server::OpenError;
use bsv_server::http::BrokenOff;
use serde::Deserialize;
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
    pub(crate) problem: String,
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
    pub(super) fn new(body: String) -> Self {
        #[derive(Deserialize)]
        struct Problem {
            code: String,
            detail: String,
        }
        let Problem { code, detail } = serde_json::from_str(&body).unwrap_or_else(|_| Problem {
            code: "internal-error".to_owned(),
            detail: body.clone(),
        });
        Self { code, reason: detail, problem: body }
    }
}
