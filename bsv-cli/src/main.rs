//! Sets up and operates the Bitcoin SV wallet and miner identity service.
//!
//! Every operation is a request to the service: over the control socket when a server runs on the
//! data directory, answered in this process when none does. Only what reads nothing but the chain
//! (verifying identities) asks the node itself.
//!
//! Exit codes: 0 done, 1 refused or failed (the reason is on standard error) or not valid, 2 wrong
//! usage.

mod args;
mod invoices;
mod keeping;
mod operation;
mod output;
mod reach;
mod scan;
mod verification;

use std::process::ExitCode;

use bsv_network::NodeError;
use bsv_server::{
    Config, ConfigError, ConfigSources, Create, LogForm, RestoreError, ShownSettings,
};
use bsv_store::{ArchiveError, FileError};
use bsv_tx::BlockHash;
use clap::Parser;
use thiserror::Error;

use crate::args::{Arguments, Task};
use crate::invoices::InvoiceList;
use crate::operation::Operation;
use crate::reach::{Answer, ReachError, Request, Service};
use crate::scan::ScanError;

/// Why an operation was not done.
#[derive(Debug, Error)]
enum CliError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Reach(#[from] ReachError),
    #[error("not confirmed, so that nothing was printed")]
    NotConfirmed,
    /// A check has found something.
    #[error("{0}")]
    Found(String),
    /// A secret cannot be had.
    #[error("{0}")]
    Secret(String),
    #[error(transparent)]
    File(#[from] FileError),
    #[error("the backup cannot be read again: {0}")]
    Archive(#[from] ArchiveError),
    #[error("nothing was restored: {0}")]
    Restore(#[from] RestoreError),
    /// What the service says.
    #[error("{0}")]
    Refused(String),
    #[error("no node is configured: set rpcUser and rpcPassword")]
    NoNode,
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

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    bsv_server::log_to_stderr("error", LogForm::Text);
    match run(&arguments) {
        Ok(code) => code,
        Err(CliError::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("bsv-cli: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<ExitCode, CliError> {
    let is_json = arguments.json;
    let load = || Config::load(&arguments.sources());
    match arguments.task() {
        Task::CheckConfig => check_config(&arguments.sources(), is_json)?,
        Task::ListInvoices(list) => list_invoices(load()?, list, is_json)?,
        Task::Keep(task) => task.run(load()?, is_json)?,
        Task::Operate(operation) => operate(load()?, &operation, is_json)?,
        Task::Verify(source) => return verification::run(source, load, is_json),
        Task::Scan(arguments) => scan::run(&arguments, &load()?, is_json)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn check_config(sources: &ConfigSources, is_json: bool) -> Result<(), CliError> {
    let shown = ShownSettings::load(sources)?;
    let text = if is_json { format!("{}\n", shown.to_json()) } else { shown.to_toml() };
    Ok(output::print(&text)?)
}

fn operate(config: Config, operation: &Operation, is_json: bool) -> Result<(), CliError> {
    if let Operation::BackupWords { is_confirmed: false } = operation
        && !output::confirm("Whoever sees the words can take the money. Print them?")
            .unwrap_or(false)
    {
        return Err(CliError::NotConfirmed);
    }
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        let mut service = Service::reach(operation.restrict(config), operation.creates()).await?;
        let answer = ask(&mut service, &operation.request()).await?;
        let text = if is_json { operation.json(&answer) } else { operation.text(&answer) };
        Ok(output::print(&text)?)
    })
}

fn list_invoices(config: Config, list: InvoiceList, is_json: bool) -> Result<(), CliError> {
    tokio::runtime::Runtime::new()?.block_on(async {
        let mut service =
            Service::reach(Config { minerid: None, ..config }, Create::Nothing).await?;
        list.print(&mut service, is_json).await
    })
}

/// Asks for something that the service may refuse.
async fn ask(service: &mut Service, request: &Request) -> Result<Answer, CliError> {
    let answer = service.ask(request).await?;
    if answer.status.is_success() {
        return Ok(answer);
    }
    Err(CliError::Refused(output::reason(&answer.body)))
}
