//! Sets up and operates the Bitcoin SV wallet and miner identity service.
//!
//! Every operation is a request to the service: over the control socket when a server runs on the
//! data directory, answered in this process when none does.
//!
//! Exit codes: 0 done, 1 refused or failed (the reason is on standard error), 2 wrong usage.

mod args;
mod invoices;
mod operation;
mod output;
mod reach;

use std::process::ExitCode;

use bsv_server::{Config, ConfigError};
use clap::Parser;
use thiserror::Error;

use crate::args::{Arguments, Task};
use crate::invoices::InvoiceList;
use crate::operation::Operation;
use crate::reach::{Answer, ReachError, Request, Service};

/// Why an operation was not done.
#[derive(Debug, Error)]
enum CliError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Reach(#[from] ReachError),
    #[error("not confirmed, so that nothing was printed")]
    NotConfirmed,
    /// What the service says.
    #[error("{0}")]
    Refused(String),
    #[error("cannot write the result: {0}")]
    Output(#[from] std::io::Error),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    bsv_server::log_to_stderr("error");
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(CliError::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("bsv-cli: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), CliError> {
    let config = Config::load(&arguments.sources())?;
    let text = match arguments.task() {
        Task::CheckConfig if arguments.json => format!("{}\n", config.to_json()),
        Task::CheckConfig => output::settings(&config.to_json()),
        Task::ListInvoices(list) => return list_invoices(config, list, arguments.json),
        Task::Operate(operation) => return operate(config, &operation, arguments.json),
    };
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
        let mut service = Service::reach(operation.restrict(config)).await?;
        let answer = ask(&mut service, &operation.request()).await?;
        let text = if is_json { operation.json(&answer) } else { operation.text(&answer) };
        Ok(output::print(&text)?)
    })
}

fn list_invoices(config: Config, list: InvoiceList, is_json: bool) -> Result<(), CliError> {
    tokio::runtime::Runtime::new()?.block_on(async {
        let mut service = Service::reach(Config { minerid: None, ..config }).await?;
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
