//! What goes wrong with a database, and what follows from it.

use std::error::Error as StdError;
use std::io;
use std::sync::Arc;

use bsv_store::{EngineError, ServerError, StoreError};
use thiserror::Error;
use tokio_postgres::error::{Severity, SqlState};

use crate::ledger::rows::Damaged;

/// Why a transaction has failed. It has changed nothing.
#[derive(Clone, Debug)]
pub(super) enum Failure {
    /// It may succeed soon if it is tried again.
    Passing(EngineError),
    /// It fails each time.
    Lasting(StoreError),
}

/// Why a database is not used, though it answers.
#[derive(Debug, Error)]
pub(super) enum Unfit {
    #[error(
        "the database does not know step {0} of the wallet as this server saw it: it has lost what was committed, as \
         an old primary or a restored copy has. Connect to the right one, or accept the loss"
    )]
    GoneBack(i64),
    #[error("another server uses the wallet in the database, and is alive: stop it first")]
    InUse,
    #[error("other servers have taken over what this one did, as it was silent for too long")]
    Overtaken,
    #[error("the role may not use schema {schema} of the database: make the role its owner")]
    Forbidden { schema: String },
    #[error(
        "the database is reached through a pooler that gives each transaction another session, and the wallet needs \
         sessions of its own: let the pooler keep them (PgBouncer: pool_mode = session), or connect past it"
    )]
    Pooled,
    #[error("schema {schema} of the database holds another wallet than this server has opened")]
    OtherWallet { schema: String },
    #[error("schema {schema} of the database is not a {expected} store")]
    OtherSchema { schema: String, expected: &'static str },
    #[error("schema {schema} of the database was made by an unreleased build; make a new one")]
    Unreleased { schema: String },
    #[error(
        "the wallet in the database has version {found}, this program knows versions up to {known}: it was written by \
         a newer version of this software"
    )]
    NewerSchema { found: i32, known: i32 },
}

impl Failure {
    pub(super) fn slow() -> Self {
        Self::Passing(away("the database does not answer in time".to_owned()))
    }

    /// What failed has nothing to do with the database.
    pub(super) fn of(error: &impl ToString) -> Self {
        Self::Lasting(StoreError::Engine(Arc::new(io::Error::other(error.to_string()))))
    }

    /// A commit was answered with a warning.
    pub(super) fn warned() -> Self {
        Self::Passing(away("the database has given a warning while it committed".to_owned()))
    }

    /// Writes it to the log, where no caller is to be told.
    pub(super) fn log(self) {
        match self {
            Self::Passing(error) => tracing::debug!("{error}"),
            Self::Lasting(error) => tracing::warn!("{error}"),
        }
    }

    /// What callers are told.
    pub(super) fn into_store_error(self) -> StoreError {
        match self {
            Self::Passing(error) => StoreError::Engine(error),
            Self::Lasting(error) => error,
        }
    }

    /// What went wrong, whether it lasts or not.
    pub(super) fn into_error(self) -> EngineError {
        match self {
            Self::Passing(error) | Self::Lasting(StoreError::Engine(error)) => error,
            Self::Lasting(error) => Arc::new(error),
        }
    }
}

fn away(text: String) -> EngineError {
    Arc::new(ServerError { text, is_away: true })
}

fn unfit(text: String) -> EngineError {
    Arc::new(ServerError { text, is_away: false })
}

/// What a database says when a transaction was not committed.
impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        let text = describe(&error);
        let Some(state) = error.code() else { return Self::Passing(away(text)) };
        match state.code() {
            "53100" => {
                let full = io::Error::new(io::ErrorKind::StorageFull, text);
                Self::Lasting(StoreError::Engine(Arc::new(full)))
            }
            "XX001" | "XX002" => Self::Lasting(StoreError::damaged(text)),
            "23505" if is_taken_row(&error) => Self::Lasting(StoreError::damaged(text)),
            _ if is_passing(state) => Self::Passing(away(text)),
            _ => Self::Lasting(StoreError::Engine(unfit(text))),
        }
    }
}

impl From<Unfit> for StoreError {
    fn from(reason: Unfit) -> Self {
        Self::Engine(unfit(reason.to_string()))
    }
}

impl From<Unfit> for Failure {
    fn from(reason: Unfit) -> Self {
        Self::Lasting(reason.into())
    }
}

impl From<Damaged> for Failure {
    fn from(Damaged(reason): Damaged) -> Self {
        Self::Lasting(StoreError::Damaged(reason))
    }
}

/// Whether a statement that failed with this error may succeed when it is tried again: another transaction was in its
/// way, or the server stops, starts, or is no longer the primary.
fn is_passing(state: &SqlState) -> bool {
    let code = state.code();
    let of_class = |class: &str| code.starts_with(class);
    // The connection failed; resources are lacking (a full disk is handled before); the server cancels, stops or starts.
    of_class("08")
        || of_class("53")
        || of_class("57")
        // A serialization failure, a deadlock, a lock that is not available, a key that another writer took first.
        || matches!(code, "40001" | "40P01" | "55P03" | "23505")
        // A transaction that was idle for too long, cannot write, or has failed.
        || matches!(code, "25P03" | "25006" | "25P02")
}

/// Whether a row that must be new is there already, though no other writer has made it: the database was restored in
/// parts, or changed by hand. Two writers meet at a step, which each adds first, or at a schema that both make.
fn is_taken_row(error: &tokio_postgres::Error) -> bool {
    error.as_db_error().is_some_and(|answer| {
        answer.schema() != Some("pg_catalog") && answer.table().is_some_and(|table| table != "step")
    })
}

/// Whether an error has undone the transaction. After a panic or the end of a session, nobody knows whether a commit has
/// happened.
pub(super) fn has_undone(error: &tokio_postgres::Error) -> bool {
    error.as_db_error().is_some_and(|it| it.parsed_severity() == Some(Severity::Error))
}

/// Whether this answer to a commit means that the commit has not happened.
pub(super) fn is_refused_commit(error: &tokio_postgres::Error) -> bool {
    let refused = |state: &SqlState| {
        let code = state.code();
        let of_class = |class: &str| code.starts_with(class);
        // 40003: statement completion unknown.
        code != "40003" && (of_class("40") || of_class("23") || of_class("53"))
    };
    has_undone(error) && error.code().is_some_and(refused)
}

fn describe(error: &tokio_postgres::Error) -> String {
    if let Some(answer) = error.as_db_error() {
        return format!("the database says: {} ({})", answer.message(), answer.code().code());
    }
    let mut text = format!("the database cannot be reached: {error}");
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}
