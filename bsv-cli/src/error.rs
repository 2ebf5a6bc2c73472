//! Errors, and how they are printed.

use std::io::ErrorKind;
use std::path::PathBuf;

use bsv_network::NodeError;
use bsv_server::{ConfigError, MoveError, OpenError, RestoreError};
use bsv_store::{ArchiveError, FileError, KeystoreError, LockError};
use bsv_tx::BlockHash;
use console::Term;
use serde_json::{Value, json};
use thiserror::Error;

use crate::commands::miner::scan::ScanError;
use crate::output::{Colors, ERROR, HINT, painted, printable, terminal_width, wrapped};
use crate::service::{ReachError, Refusal};

/// Why a command failed.
#[derive(Debug, Error)]
pub(crate) enum CliError {
    /// Arguments do not fit together.
    #[error("{0}")]
    WrongUsage(&'static str),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Reach(#[from] ReachError),
    #[error("the {0} is disabled")]
    Disabled(&'static str),
    /// The service's answer.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A question was not answered with yes.
    #[error("not confirmed: nothing was {0}")]
    NotConfirmed(&'static str),
    #[error("nothing was {0}: outside a terminal, this needs --yes or the setting cli.assumeYes")]
    NeedsYes(&'static str),
    /// Arguments fit together, but do not fit the object of the command.
    #[error("{0}")]
    Unfitting(String),
    #[error("{} already holds a wallet or identities, and nothing was changed", .0.display())]
    ThereAlready(PathBuf),
    /// A check has found something.
    #[error("{0}")]
    CheckFailed(String),
    /// The output already tells the problem.
    #[error("not well")]
    Told,
    /// The followed events have ended.
    #[error("the server has stopped: continue after event {0} when it runs again")]
    ServerStopped(u64),
    /// A secret is not available.
    #[error("{0}")]
    Secret(String),
    #[error(transparent)]
    File(#[from] FileError),
    /// Another process uses a directory that the command line needs.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The command line cannot read a keystore.
    #[error(transparent)]
    Keystore(#[from] KeystoreError),
    /// A home directory of the older generator cannot be read.
    #[error(transparent)]
    Home(#[from] bsv_minerid::Error),
    #[error("the backup cannot be read again: {0}")]
    Archive(#[from] ArchiveError),
    #[error("the backup is incomplete: {0}")]
    BackupCutShort(std::io::Error),
    #[error("nothing was restored: {0}")]
    Restore(#[from] RestoreError),
    #[error(
        "the wallet is restored in a file, and not in the database that the settings name: {0}. Remove wallet.store \
         from the settings, run bsv-cli store move --to URL, and put it back"
    )]
    RestoredInFile(MoveError),
    #[error("nothing was changed: {0}")]
    Move(#[from] MoveError),
    #[error("no node is configured: set rpcUser and rpcPassword, or rpcCookieFile")]
    NoNode,
    #[error(
        "no services are configured: bsv-cli config example --services prints settings that name some"
    )]
    NoServices,
    #[error(transparent)]
    Node(#[from] NodeError),
    #[error("the node does not know block {0}")]
    UnknownBlock(BlockHash),
    #[error("the node's chain ends before height {0}")]
    BeyondTip(u32),
    #[error(transparent)]
    Scan(#[from] ScanError),
    #[error("cannot write the result: {0}")]
    Output(#[from] std::io::Error),
}

impl CliError {
    /// Whether the reader of the result is gone, which is not an error.
    pub(crate) fn is_reader_gone(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == ErrorKind::BrokenPipe)
    }

    /// The stable name for programs.
    fn code(&self) -> &str {
        match self {
            Self::WrongUsage(_) => "wrong-usage",
            Self::Config(_) => "bad-settings",
            Self::Reach(ReachError::Open(OpenError::Lock(LockError::Held { .. }))) => "in-use",
            Self::Reach(ReachError::Open(OpenError::Nothing { .. })) => "nothing-there",
            Self::Reach(ReachError::Open(error)) if error.is_store_away() => "store-away",
            Self::Reach(ReachError::Open(_)) => "cannot-open",
            Self::Reach(ReachError::BrokenOff(_) | ReachError::Answer(_)) => "outcome-unknown",
            Self::Reach(ReachError::Nonsense(_) | ReachError::Io(_)) => "cannot-ask",
            Self::Disabled(_) => "disabled",
            Self::Refused(refusal) => &refusal.code,
            Self::NotConfirmed(_) => "not-confirmed",
            Self::NeedsYes(_) => "needs-yes",
            Self::Unfitting(_) => "unfitting",
            Self::ThereAlready(_) => "there-already",
            Self::CheckFailed(_) | Self::Told => "check-failed",
            Self::ServerStopped(_) => "server-stopped",
            Self::Secret(_) => "no-secret",
            Self::Lock(_) => "in-use",
            Self::File(_) | Self::Keystore(_) | Self::Home(_) => "file-failed",
            Self::Archive(_) | Self::BackupCutShort(_) => "backup-failed",
            Self::Restore(_) => "not-restored",
            Self::Move(MoveError::Lock(LockError::Held { .. })) => "in-use",
            Self::Move(_) | Self::RestoredInFile(_) => "not-moved",
            Self::NoNode => "no-node",
            Self::NoServices => "no-services",
            Self::Node(_) => "node-failed",
            Self::UnknownBlock(_) => "unknown-block",
            Self::BeyondTip(_) => "beyond-tip",
            Self::Scan(ScanError::Interrupted { .. }) => "interrupted",
            Self::Scan(_) => "scan-failed",
            Self::Output(_) => "cannot-write",
        }
    }

    /// What to do next, if the error does not say it.
    fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Config(_) => {
                Some("correct the settings, then check them with bsv-cli config show")
            }
            Self::Reach(ReachError::Open(OpenError::Lock(LockError::Held { .. }))) => {
                Some("wait until it ends, or stop it; then run this command again")
            }
            Self::Reach(ReachError::Open(OpenError::Nothing { .. })) => Some(
                "name the right directory with --data-dir, or create the data there with bsv-cli init or \
                 bsv-cli restore",
            ),
            Self::Reach(ReachError::Open(error)) if error.is_store_away() => hint_for("store-away"),
            Self::ThereAlready(_) => Some("see it with bsv-cli status, or start bsv-server"),
            Self::Reach(ReachError::BrokenOff(_) | ReachError::Answer(_)) => {
                Some("find out whether it was done before you run this command again")
            }
            Self::Disabled(_) => Some("enable it with minerid.enabled or wallet.enabled"),
            Self::Refused(refusal) => hint_for(&refusal.code),
            Self::Node(_) => Some("start the node, or set rpcHost and rpcPort to its address"),
            _ => None,
        }
    }

    /// Prints the error on standard error: to programs as a JSON object, to people as a sentence
    /// and the next step.
    pub(crate) fn tell(&self, is_json: bool, is_quiet: bool, colors: Colors) {
        if matches!(self, Self::Told) {
            return;
        }
        let hint = self.hint().filter(|_| !is_quiet);
        // The message may quote a node, a file or a path.
        let message = printable(&self.to_string());
        if is_json {
            eprintln!("{}", told_to_programs(self.code(), &message, hint));
            return;
        }
        let mut told = format!("{} {message}\n", painted("bsv-cli:", ERROR, colors.stderr));
        if let Some(hint) = hint {
            told += &format!("{} {hint}\n", painted("hint:", HINT, colors.stderr));
        }
        eprint!("{}", wrapped(&told, terminal_width(&Term::stderr())));
    }
}

/// What to do after some refusals of the service.
fn hint_for(code: &str) -> Option<&'static str> {
    match code {
        "unknown-alias" => Some("list the identities with bsv-cli miner list"),
        "unknown-invoice" => Some("list the invoices with bsv-cli invoice list"),
        "unknown-user" => Some("bsv-cli user create tells the id, and so does bsv-cli event list"),
        "unknown-token" => Some("list the tokens with bsv-cli token list"),
        "unknown-webhook" => Some("list the webhooks with bsv-cli webhook list"),
        "unknown-payment" => Some("list the payments with bsv-cli outgoing list"),
        "no-vctx" => Some("set it up with bsv-cli miner vctx"),
        "no-data" => Some("set them with bsv-cli miner data-refs"),
        "key-unseen" => Some(
            "wait until a block shows it; if no node can tell, confirm it with bsv-cli miner confirm \
             (protocol 1.0)",
        ),
        "node-needed" => Some("start the node, or skip the key with bsv-cli miner rotate --force"),
        "unknown-to-node" => {
            Some("compare the node with others, or begin anew with bsv-cli miner rotate --force")
        }
        "insufficient-funds" => Some("see bsv-cli wallet balance"),
        "payment-outcome-unknown" => Some("follow it with bsv-cli outgoing list"),
        "earlier-payment-open" => Some("cancel the earlier one with bsv-cli outgoing cancel"),
        "network-unavailable" | "unavailable" | "internal-error" => {
            Some("find the cause with bsv-cli status and in the log of bsv-server")
        }
        "store-away" => {
            Some("look whether the database of wallet.store.url runs and can be reached")
        }
        "store-damaged" => Some("stop bsv-server, put the data directory aside, and restore"),
        _ => None,
    }
}

/// An error as a JSON object.
pub(crate) fn told_to_programs(code: &str, message: &str, hint: Option<&str>) -> Value {
    let mut error = json!({ "code": code, "message": message });
    if let Some(hint) = hint {
        error["hint"] = hint.into();
    }
    error
}
