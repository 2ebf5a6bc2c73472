//! Sets up and operates the Bitcoin SV wallet and miner identity service.
//!
//! Every operation is a request to the service: over the control socket if a server runs on the
//! data directory, otherwise in this process. Only commands that read nothing but the chain
//! (verifying identities) ask the node directly.
//!
//! Exit codes: 0 success, 1 refused or failed (the reason is on standard error) or not valid, 2
//! wrong usage.

mod arguments;
mod commands;
mod consent;
mod context;
mod error;
mod files;
mod output;
mod revocation_keystore;
mod secret;
mod service;
mod shared_arguments;

use std::process::ExitCode;

use bsv_server::LogForm;
use clap::CommandFactory;
use clap::error::ErrorKind;

use crate::arguments::Arguments;
use crate::error::CliError;

fn main() -> ExitCode {
    let arguments = Arguments::read().unwrap_or_else(|error| wrong_usage(&error));
    bsv_server::log_to_stderr(arguments.common.log_level(), LogForm::Text);
    let context = arguments.common.context();
    let done = tokio::runtime::Runtime::new()
        .map_err(CliError::from)
        .and_then(|runtime| runtime.block_on(arguments.run(&context)));
    match done {
        Err(CliError::WrongUsage(message)) => {
            wrong_usage(&Arguments::command().error(ErrorKind::ArgumentConflict, message))
        }
        Err(error) if !error.is_reader_gone() => {
            error.tell(context.is_json, context.is_quiet, context.colors);
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}

/// Prints the requested help, or the error in the arguments.
fn wrong_usage(error: &clap::Error) -> ! {
    let wants_json = std::env::args_os().any(|argument| argument == "--json");
    if !wants_json || !error.use_stderr() {
        error.exit();
    }
    let message = error.to_string();
    let message = message.trim_start_matches("error: ").trim_end();
    eprintln!("{}", error::told_to_programs("wrong-usage", message, None));
    std::process::exit(error.exit_code());
}
