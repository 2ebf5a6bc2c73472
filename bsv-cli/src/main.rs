//! Sets up and operates the Bitcoin SV miner identity service.
//!
//! Every operation is a request to the service: over the control socket when a server runs on the
//! data directory, answered in this process when none does.
//!
//! Exit codes: 0 done, 1 refused or failed (the reason is on standard error), 2 wrong usage.

mod args;
mod operation;
mod output;
mod reach;

use std::process::ExitCode;

use bsv_server::{Config, ConfigError};
use clap::Parser;
use thiserror::Error;

use crate::args::{Arguments, Task};
use crate::operation::Operation;
use crate::reach::ReachError;

/// Why an operation was not done.
#[derive(Debug, Error)]
enum CliError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Reach(#[from] ReachError),
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
        Task::Operate(operation) => {
            let answer = ask(config, &operation)?;
            if arguments.json { operation.json(&answer) } else { operation.text(&answer) }
        }
    };
    Ok(output::print(&text)?)
}

fn ask(config: Config, operation: &Operation) -> Result<String, CliError> {
    let runtime = tokio::runtime::Runtime::new()?;
    let answer = runtime.block_on(reach::ask(config, &operation.request()))?;
    if answer.status.is_success() {
        return Ok(answer.body);
    }
    Err(CliError::Refused(output::reason(&answer.body)))
}
