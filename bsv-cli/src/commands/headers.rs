//! The block headers that are validated here.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use bsv_network::headers::{CatchUpError, CaughtUp, Checkpoint, Extended, HeaderChain};
use bsv_server::open_headers;
use bsv_store::DirLock;
use bsv_tx::BlockHeader;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::commands::status::{age, block};
use crate::context::{Context, Stores};
use crate::error::CliError;
use crate::output::{elements, printable, text};
use crate::service::Service;
use crate::shared_arguments::height;

#[derive(Debug, Subcommand)]
pub(crate) enum HeadersCommand {
    /// Show the newest block, and the sources that give headers
    Status(StatusArguments),
    /// Verify a file of headers of 80 bytes each, of which the first 147 are trusted
    ///
    /// The exit code is 1 if a header is not valid. For example: bsv-cli headers verify FILE
    /// --height 900000
    Verify(VerifyArguments),
    /// Ask each source once for all headers that it has, without a server
    ///
    /// This takes ten minutes at most. What has come is kept.
    Sync(SyncArguments),
}

#[derive(Debug, Args)]
pub(crate) struct StatusArguments {}

#[derive(Debug, Args)]
pub(crate) struct VerifyArguments {
    /// The file
    file: PathBuf,
    /// The height of the first header in it
    #[arg(long, value_name = "H", value_parser = height())]
    height: u32,
}

#[derive(Debug, Args)]
pub(crate) struct SyncArguments {}

/// How many headers the difficulty of the next one depends on.
const TRUSTED: usize = 147;
/// How long sources may take to give all headers.
const SYNC_TIMEOUT: Duration = Duration::from_secs(600);

impl HeadersCommand {
    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        match self {
            Self::Status(StatusArguments {}) => status(context).await,
            Self::Verify(arguments) => arguments.run(context),
            Self::Sync(SyncArguments {}) => sync(context).await,
        }
    }
}

async fn status(context: &Context) -> Result<(), CliError> {
    let status = context.service(Stores::All).await?.get("/control/status").await?.value()?;
    let (headers, services) = (&status["headers"], &status["services"]);
    if headers.is_null() {
        return Err(no_source());
    }
    context.print(json!({ "headers": headers, "services": services }), || {
        let source = |it: &Value| {
            let [kind, host, state] = ["kind", "host", "state"].map(|name| text(it, name));
            let last = it["lastAnswerAgeSeconds"].as_u64();
            let last = last.map(|seconds| format!(", last answer {} ago", age(seconds)));
            format!("{kind} {host}: {state}{}\n", last.unwrap_or_default())
        };
        let sources: String = elements(services).iter().map(source).collect();
        format!("{}\n{sources}", block(context, headers))
    })
}

impl VerifyArguments {
    fn run(self, context: &Context) -> Result<(), CliError> {
        let network = context.config()?.network;
        let unfitting = |reason: String| CliError::Unfitting(reason);
        let bytes = fs::read(&self.file)
            .map_err(|error| unfitting(format!("cannot read {}: {error}", self.file.display())))?;
        let (trusted, rest) = bytes
            .split_at_checked(TRUSTED * BlockHeader::LEN)
            .filter(|(_, rest)| rest.len() % BlockHeader::LEN == 0)
            .ok_or_else(|| unfitting("the file holds no 147 headers of 80 bytes".to_owned()))?;
        let last = self.height.saturating_add(TRUSTED as u32 - 1);
        let checkpoint = Checkpoint::from_headers(network, last, trusted, 0)
            .map_err(|error| CliError::CheckFailed(error.to_string()))?;
        let headers = rest.chunks_exact(BlockHeader::LEN).map(BlockHeader::from_bytes);
        let headers: Vec<_> =
            headers.map(|header| header.expect("each 80 bytes are a header")).collect();
        let mut parent = checkpoint.hash();
        let follows = |header: &&BlockHeader| {
            let is_next = header.previous_block == parent;
            parent = header.block_hash();
            is_next
        };
        let linked = headers.iter().take_while(follows).count();
        let mut chain = HeaderChain::new(network, &checkpoint);
        let Extended { valid, refusal, .. } = chain.extend(&headers[..linked], u64::MAX);
        let why = match refusal {
            Some(refusal) => Some(refusal.to_string()),
            None => (linked < headers.len())
                .then(|| "the header does not follow the one before it".to_owned()),
        };
        if let Some(why) = why {
            let bad = last.saturating_add(valid as u32 + 1);
            return Err(CliError::CheckFailed(format!("the header at height {bad}: {why}")));
        }
        let height = chain.tip().height;
        context.print(json!({ "valid": valid, "height": height }), || {
            format!("{valid} headers after the trusted ones are valid, up to block {height}\n")
        })
    }
}

async fn sync(context: &Context) -> Result<(), CliError> {
    let config = context.config()?;
    if Service::of_server(&config.network_dir).await?.is_some() {
        let reason = "a server runs and keeps the headers: see bsv-cli headers status".to_owned();
        return Err(CliError::Unfitting(reason));
    }
    let _lock = DirLock::acquire(&config.network_dir, "bsv-cli")?;
    let opened = open_headers(&config).map_err(|error| CliError::Unfitting(error.to_string()))?;
    let headers = opened.ok_or_else(no_source)?;
    let waiting = context.wait("asking for headers");
    let answers = headers.catch_up(SYNC_TIMEOUT).await;
    drop(waiting);
    let failures: Vec<_> = answers.iter().filter_map(failure).collect();
    if failures.len() == answers.len() {
        return Err(CliError::CheckFailed(failures.join("; ")));
    }
    let tip = headers.file().chain().tip();
    let hash = tip.hash.to_string();
    let json = json!({ "height": tip.height, "hash": hash, "failures": failures });
    context.print(json, || {
        let failures: String = failures.iter().map(|failure| format!("{failure}\n")).collect();
        format!("block {} {}\n{failures}", tip.height, context.key(hash.clone()))
    })
}

/// Why a source has not given all headers.
fn failure((name, answer): &(String, Result<CaughtUp, CatchUpError>)) -> Option<String> {
    match answer {
        Err(error) => Some(printable(&error.to_string())),
        Ok(CaughtUp { is_ahead: true, .. }) => Some(format!(
            "{} has headers more than two hours ahead of this machine's clock: check the clock",
            printable(name)
        )),
        Ok(_) => None,
    }
}

fn no_source() -> CliError {
    CliError::Unfitting("no headers are kept: add [services.headers] to the settings".to_owned())
}
