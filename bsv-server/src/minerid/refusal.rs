use std::borrow::Cow;

use bsv_minerid::{Coinbase2Error, Error};
use bsv_store::{KeystoreError, StoreError};
use hyper::StatusCode;

use crate::http::{Answer, Problem, answer};
use crate::request_id::RequestId;

/// A refused request. The status and the text are those of the older generator, if it has them.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    /// The stable name for programs, if the status is not enough. Only answers on the control
    /// socket have it.
    pub(crate) code: Option<&'static str>,
    pub(crate) text: Cow<'static, str>,
}

impl Refusal {
    pub(crate) fn bad_request(text: impl Into<Cow<'static, str>>) -> Self {
        Self { status: StatusCode::BAD_REQUEST, code: None, text: text.into() }
    }

    pub(crate) fn unprocessable(text: impl Into<Cow<'static, str>>) -> Self {
        Self { status: StatusCode::UNPROCESSABLE_ENTITY, code: None, text: text.into() }
    }

    pub(crate) fn not_found() -> Self {
        Self { status: StatusCode::NOT_FOUND, code: None, text: "Not Found".into() }
    }

    pub(crate) fn unknown_alias(alias: &str) -> Self {
        Error::UnknownAlias(alias.to_owned()).into()
    }

    pub(crate) fn into_text(self) -> Answer {
        let Self { status, text, .. } = self;
        match text {
            Cow::Borrowed(text) => answer::text(status, text),
            Cow::Owned(text) => answer::text(status, text),
        }
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let Refusal { status, code, text } = refusal;
        match code {
            Some(code) => Self::new(status, code, text),
            None => Self::of_status(status, text),
        }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let code = code(&error);
        let refuse = |status, text: String| Self { status, code, text: text.into() };
        let unprocessable = |text: &str| refuse(StatusCode::UNPROCESSABLE_ENTITY, text.to_owned());
        match &error {
            Error::UnknownAlias(alias) => unprocessable(&unknown_alias(alias)),
            Error::BlindSigningOff(alias) => {
                refuse(StatusCode::FORBIDDEN, format!("Blind signing is off for alias \"{alias}\""))
            }
            Error::InvalidHeight => unprocessable("Must enter a valid height"),
            Error::NoVctx(alias) => {
                unprocessable(&format!("Alias \"{alias}\" has no VCTx, run generatevctx"))
            }
            Error::Revoked { alias, outpoint } => unprocessable(&format!(
                "Alias \"{alias}\" is revoked: its VCTx {outpoint} is spent"
            )),
            Error::Closed(alias) => unprocessable(&format!(
                "Alias \"{alias}\" is closed: all its miner ids are revoked"
            )),
            Error::NotClosed(_) => unprocessable(&error.to_string()),
            Error::VctxNeeded(_) | Error::NothingToSweep(_) => {
                unprocessable(&capitalise(&error.to_string()))
            }
            Error::OtherProtocol { alias, protocol } => unprocessable(&format!(
                "Alias \"{alias}\" is of protocol {protocol}, which does not support this"
            )),
            Error::NoData(alias) => unprocessable(&format!(
                "Alias \"{alias}\" has no data to refer to, set it with datarefs"
            )),
            Error::Coinbase2(Coinbase2Error::Malformed) => unprocessable(
                "Invalid Coinbase 2: it does not read as the end of a coinbase transaction from any offset up to 100",
            ),
            Error::Coinbase2(Coinbase2Error::Ambiguous(first, second)) => unprocessable(&format!(
                "Invalid Coinbase 2: it reads as the end of a coinbase transaction from offset {first} and from \
                 offset {second}"
            )),
            Error::Coinbase2(Coinbase2Error::NoOutput) => {
                unprocessable("Invalid Coinbase 2: it has no output")
            }
            Error::Coinbase2(Coinbase2Error::AlreadyIdentified) => {
                unprocessable("Invalid Coinbase 2: it holds an identity output already")
            }
            Error::Broken { .. } | Error::Signer(_) => {
                refuse(StatusCode::SERVICE_UNAVAILABLE, capitalise(&error.to_string()))
            }
            Error::Unseen { .. }
            | Error::NodeNeeded { .. }
            | Error::UnknownToNode(_)
            | Error::StaleCopy(_)
            | Error::UpgradeUnseen(_) => {
                refuse(StatusCode::CONFLICT, capitalise(&error.to_string()))
            }
            Error::AliasExists(_)
            | Error::AliasDeleted(_)
            | Error::Conflict { .. }
            | Error::KeyTaken(_) => refuse(StatusCode::CONFLICT, error.to_string()),
            Error::Import { .. }
            | Error::BadFunding { .. }
            | Error::NotRevocable { .. }
            | Error::ForeignKey { .. }
            | Error::Operator(_)
            | Error::NoRevocationKeystore => unprocessable(&error.to_string()),
            Error::Keystore(KeystoreError::Missing(_)) => unprocessable(&error.to_string()),
            // The holder of the keystore is asked to write it.
            Error::Keystore(KeystoreError::Unwritten(_)) => {
                refuse(StatusCode::CONFLICT, error.to_string())
            }
            Error::Node(_) | Error::RevocationUntold { .. } | Error::SweepUnseen { .. } => {
                refuse(StatusCode::SERVICE_UNAVAILABLE, error.to_string())
            }
            Error::Store(_) | Error::Keystore(_) | Error::Unsettled(_) => {
                tracing::error!(request = RequestId::current(), "{error}");
                let cause = match &error {
                    Error::Store(StoreError::DamagedFile { .. } | StoreError::Damaged(_)) => {
                        "The store is damaged: see the log of the server"
                    }
                    _ if error.is_out_of_space() => "No space left on the disk",
                    _ => "The disk cannot be written to",
                };
                let effect = match error {
                    Error::Unsettled(_) => "the change may or may not have been made",
                    _ => "nothing was changed",
                };
                refuse(StatusCode::SERVICE_UNAVAILABLE, format!("{cause}: {effect}"))
            }
            _ => {
                tracing::error!(request = RequestId::current(), "{error}");
                let text = "Internal error: see the log of the server";
                refuse(StatusCode::INTERNAL_SERVER_ERROR, text.to_owned())
            }
        }
    }
}

/// The stable name of an error that programs distinguish.
fn code(error: &Error) -> Option<&'static str> {
    Some(match error {
        Error::UnknownAlias(_) => "unknown-alias",
        Error::BlindSigningOff(_) => "blind-signing-off",
        Error::InvalidHeight => "invalid-height",
        Error::NoVctx(_) => "no-vctx",
        Error::Revoked { .. } => "revoked",
        Error::Closed(_) => "closed",
        Error::NotClosed(_) => "not-closed",
        Error::OtherProtocol { .. } => "other-protocol",
        Error::NoData(_) => "no-data",
        Error::Coinbase2(_) => "invalid-coinbase2",
        Error::VctxNeeded(_) => "vctx-needed",
        Error::UpgradeUnseen(_) => "upgrade-unseen",
        Error::NothingToSweep(_) => "nothing-to-sweep",
        Error::SweepUnseen { .. } => "sweep-unseen",
        Error::Unseen { .. } => "key-unseen",
        Error::NodeNeeded { .. } => "node-needed",
        Error::UnknownToNode(_) => "unknown-to-node",
        Error::StaleCopy(_) => "stale-copy",
        Error::Broken { .. } => "alias-broken",
        Error::Signer(_) => "key-does-not-sign",
        Error::AliasExists(_) => "alias-exists",
        Error::AliasDeleted(_) => "alias-deleted",
        Error::KeyTaken(_) => "key-taken",
        Error::Node(_) => "network-unavailable",
        Error::RevocationUntold { .. } => "revocation-untold",
        Error::Store(StoreError::DamagedFile { .. } | StoreError::Damaged(_)) => "store-damaged",
        Error::Store(_) | Error::Keystore(_) | Error::Unsettled(_) => {
            match error.is_out_of_space() {
                true => "disk-full",
                false => "disk-failed",
            }
        }
        _ => return None,
    })
}

fn unknown_alias(alias: &str) -> String {
    format!("Alias \"{alias}\" doesn't exist")
}

/// Makes a sentence of an error's text.
pub(super) fn capitalise(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
