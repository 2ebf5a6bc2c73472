//! The answers to errors of identities. The status and the text are those of the older generator, if it has them.

use bsv_minerid::Error;
use bsv_minerid::formats::Coinbase2Error;
use bsv_store::{KeystoreError, StoreError};
use hyper::StatusCode;

use crate::http::Problem;
use crate::request_id::RequestId;

const UNPROCESSABLE: StatusCode = StatusCode::UNPROCESSABLE_ENTITY;
const CONFLICT: StatusCode = StatusCode::CONFLICT;
const UNAVAILABLE: StatusCode = StatusCode::SERVICE_UNAVAILABLE;
const INTERNAL: StatusCode = StatusCode::INTERNAL_SERVER_ERROR;

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let (status, code) = status_and_code(&error);
        let text = text(&error, status);
        match code {
            Some(code) => Self::new(status, code, text),
            None => Self::of_status(status, text),
        }
    }
}

/// The status of an error, and its stable name if programs distinguish it.
fn status_and_code(error: &Error) -> (StatusCode, Option<&'static str>) {
    let (status, code) = match error {
        Error::UnknownAlias(_) => (UNPROCESSABLE, "unknown-alias"),
        Error::BlindSigningOff(_) => (StatusCode::FORBIDDEN, "blind-signing-off"),
        Error::InvalidHeight => (UNPROCESSABLE, "invalid-height"),
        Error::NoVctx(_) => (UNPROCESSABLE, "no-vctx"),
        Error::Revoked { .. } => (UNPROCESSABLE, "revoked"),
        Error::Closed(_) => (UNPROCESSABLE, "closed"),
        Error::NotClosed(_) => (UNPROCESSABLE, "not-closed"),
        Error::OtherProtocol { .. } => (UNPROCESSABLE, "other-protocol"),
        Error::NoData(_) => (UNPROCESSABLE, "no-data"),
        Error::Coinbase2(Coinbase2Error::Unfaithful) => (INTERNAL, "invalid-coinbase2"),
        Error::Coinbase2(_) => (UNPROCESSABLE, "invalid-coinbase2"),
        Error::VctxNeeded(_) => (UNPROCESSABLE, "vctx-needed"),
        Error::NothingToSweep(_) => (UNPROCESSABLE, "nothing-to-sweep"),
        Error::Import { .. }
        | Error::BadFunding { .. }
        | Error::NotRevocable { .. }
        | Error::ForeignKey { .. }
        | Error::Operator(_)
        | Error::NoRevocationKeystore => return (UNPROCESSABLE, None),
        Error::UpgradeUnseen(_) => (CONFLICT, "upgrade-unseen"),
        Error::Unseen { .. } => (CONFLICT, "key-unseen"),
        Error::NodeNeeded { .. } => (CONFLICT, "node-needed"),
        Error::UnknownToNode(_) => (CONFLICT, "unknown-to-node"),
        Error::StaleCopy(_) => (CONFLICT, "stale-copy"),
        Error::AliasExists(_) => (CONFLICT, "alias-exists"),
        Error::AliasDeleted(_) => (CONFLICT, "alias-deleted"),
        Error::KeyTaken(_) => (CONFLICT, "key-taken"),
        Error::Conflict { .. } => return (CONFLICT, None),
        Error::Broken { .. } => (UNAVAILABLE, "alias-broken"),
        Error::Signer(_) => (UNAVAILABLE, "key-does-not-sign"),
        Error::Node(_) => (UNAVAILABLE, "network-unavailable"),
        Error::RevocationUntold { .. } => (UNAVAILABLE, "revocation-untold"),
        Error::SweepUnseen { .. } => (UNAVAILABLE, "sweep-unseen"),
        Error::Store(StoreError::DamagedFile { .. } | StoreError::Damaged(_)) => {
            (UNAVAILABLE, "store-damaged")
        }
        Error::Keystore(KeystoreError::Missing(_)) => (UNPROCESSABLE, "disk-failed"),
        // The holder of the keystore is asked to write it.
        Error::Keystore(KeystoreError::Unwritten(_)) => (CONFLICT, "disk-failed"),
        _ if error.is_out_of_space() => (UNAVAILABLE, "disk-full"),
        Error::Store(_) | Error::Keystore(_) | Error::Unsettled(_) => (UNAVAILABLE, "disk-failed"),
        _ => return (INTERNAL, None),
    };
    (status, Some(code))
}

/// The text of an error, which is the older generator's if it has one.
fn text(error: &Error, status: StatusCode) -> String {
    match error {
        Error::UnknownAlias(alias) => format!("Alias \"{alias}\" doesn't exist"),
        Error::InvalidHeight => "Must enter a valid height".to_owned(),
        Error::NoVctx(alias) => format!("Alias \"{alias}\" has no VCTx, run generatevctx"),
        Error::NoData(alias) => {
            format!(
                "Alias \"{alias}\" has no data to refer to, set it with bsv-cli miner data-refs"
            )
        }
        Error::Coinbase2(error) => {
            let reason = match error {
                Coinbase2Error::Malformed => {
                    "it does not read as the end of a coinbase transaction from any offset up to 100"
                }
                Coinbase2Error::Ambiguous(first, second) => &format!(
                    "it reads as the end of a coinbase transaction from offset {first} and from offset {second}"
                ),
                Coinbase2Error::NoOutput => "it has no output",
                Coinbase2Error::AlreadyIdentified => "it holds an identity output already",
                _ => return internal(error),
            };
            format!("Invalid Coinbase 2: {reason}")
        }
        Error::AliasExists(_)
        | Error::AliasDeleted(_)
        | Error::NotClosed(_)
        | Error::KeyTaken(_)
        | Error::Conflict { .. }
        | Error::Import { .. }
        | Error::BadFunding { .. }
        | Error::NotRevocable { .. }
        | Error::ForeignKey { .. }
        | Error::Operator(_)
        | Error::NoRevocationKeystore
        | Error::Keystore(KeystoreError::Missing(_) | KeystoreError::Unwritten(_))
        | Error::Node(_)
        | Error::RevocationUntold { .. }
        | Error::SweepUnseen { .. } => error.to_string(),
        Error::Store(_) | Error::Keystore(_) | Error::Unsettled(_) => disk_failed(error),
        _ if status == INTERNAL => internal(error),
        _ => capitalise(&error.to_string()),
    }
}

fn disk_failed(error: &Error) -> String {
    tracing::error!(request = RequestId::current(), "{error}");
    let cause = match error {
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
    format!("{cause}: {effect}")
}

fn internal(error: &dyn std::error::Error) -> String {
    tracing::error!(request = RequestId::current(), "{error}");
    "Internal error: see the log of the server".to_owned()
}

/// Makes a sentence of an error's text.
pub(super) fn capitalise(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
