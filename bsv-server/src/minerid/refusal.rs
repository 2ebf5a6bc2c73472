use std::borrow::Cow;

use bsv_minerid::{Coinbase2Error, Error};
use bsv_store::{KeystoreError, StoreError};
use hyper::StatusCode;
use hyper::header::WWW_AUTHENTICATE;

use crate::access::Denied;
use crate::http::{Answer, answer};

/// A request that is not fulfilled: the status and the text that callers of the older generator
/// know, where it had one.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) text: Cow<'static, str>,
}

impl Refusal {
    pub(crate) fn bad_request(text: impl Into<Cow<'static, str>>) -> Self {
        Self { status: StatusCode::BAD_REQUEST, text: text.into() }
    }

    pub(crate) fn unprocessable(text: impl Into<Cow<'static, str>>) -> Self {
        Self { status: StatusCode::UNPROCESSABLE_ENTITY, text: text.into() }
    }

    pub(crate) fn not_found() -> Self {
        Self { status: StatusCode::NOT_FOUND, text: "Not Found".into() }
    }

    pub(crate) fn unknown_alias(alias: &str) -> Self {
        Self::unprocessable(format!("Alias \"{alias}\" doesn't exist"))
    }

    pub(crate) fn into_text(self) -> Answer {
        let Self { status, text } = self;
        match text {
            Cow::Borrowed(text) => answer::text(status, text),
            Cow::Owned(text) => answer::text(status, text),
        }
    }
}

/// Turns a caller away who lacks a token, or whose token is not for this.
pub(crate) fn deny(denied: &Denied) -> Answer {
    let status = denied.status();
    let title = status.canonical_reason().unwrap_or_default();
    let mut answer = answer::text(status, format!("{title}: {denied}"));
    answer.headers_mut().insert(WWW_AUTHENTICATE, denied.challenge());
    answer
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        match &error {
            Error::UnknownAlias(alias) => Self::unknown_alias(alias),
            Error::BlindSigningOff(alias) => Self {
                status: StatusCode::FORBIDDEN,
                text: format!("Blind signing is off for alias \"{alias}\"").into(),
            },
            Error::InvalidHeight => Self::unprocessable("Must enter a valid height"),
            Error::NoVctx(alias) => {
                Self::unprocessable(format!("Alias \"{alias}\" has no VCTx, run generatevctx"))
            }
            Error::Revoked { alias, outpoint } => Self::unprocessable(format!(
                "Alias \"{alias}\" is revoked: its VCTx {outpoint} is spent"
            )),
            Error::Closed(alias) => Self::unprocessable(format!(
                "Alias \"{alias}\" is closed: all its miner ids are revoked"
            )),
            Error::OtherProtocol { alias, protocol } => Self::unprocessable(format!(
                "Alias \"{alias}\" is of protocol {protocol}, which has no such thing"
            )),
            Error::NoData(alias) => Self::unprocessable(format!(
                "Alias \"{alias}\" has no data to refer to, set it with datarefs"
            )),
            Error::Coinbase2(Coinbase2Error::Malformed(_)) => {
                Self::unprocessable("Invalid Coinbase 2")
            }
            Error::Coinbase2(Coinbase2Error::NoOutput) => {
                Self::unprocessable("Invalid Coinbase 2: it has no output")
            }
            Error::Coinbase2(Coinbase2Error::AlreadyIdentified) => {
                Self::unprocessable("Invalid Coinbase 2: it holds an identity output already")
            }
            Error::Unseen { .. } => {
                Self { status: StatusCode::CONFLICT, text: capitalise(&error.to_string()).into() }
            }
            Error::AliasExists(_) | Error::Conflict { .. } | Error::KeyTaken(_) => {
                Self { status: StatusCode::CONFLICT, text: error.to_string().into() }
            }
            Error::Import { .. }
            | Error::BadFunding { .. }
            | Error::NotRevocable { .. }
            | Error::ForeignKey { .. }
            | Error::Operator(_)
            | Error::NoRevocationKeystore => Self::unprocessable(error.to_string()),
            Error::Keystore(KeystoreError::Missing(_)) => Self::unprocessable(error.to_string()),
            Error::Node(_) | Error::RevocationUntold { .. } => {
                Self { status: StatusCode::SERVICE_UNAVAILABLE, text: error.to_string().into() }
            }
            Error::Store(_) | Error::Keystore(_) | Error::Unsettled(_) => {
                tracing::error!("{error}");
                let cause = match &error {
                    Error::Store(StoreError::DamagedFile { .. } | StoreError::Damaged(_)) => {
                        "The store is damaged, as the log of the server tells"
                    }
                    _ if error.is_out_of_space() => "No space left on the disk",
                    _ => "The disk cannot be written",
                };
                let effect = match error {
                    Error::Unsettled(_) => "the change may or may not have been made",
                    _ => "nothing was changed",
                };
                let text = format!("{cause}: {effect}").into();
                Self { status: StatusCode::SERVICE_UNAVAILABLE, text }
            }
            _ => {
                tracing::error!("{error}");
                Self {
                    status: StatusCode::INTERNAL_SERVER_ERROR,
                    text: "Internal error: see the log of the server".into(),
                }
            }
        }
    }
}

/// A sentence of an error's words.
pub(super) fn capitalise(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
