//! The settings.

mod example;
mod node;
mod services;

use bsv_minerid::Alias;
use bsv_server::{
    Config, Create, OpenError, Outcome, ShownSettings, Verdict, Verdicts, check_config,
};
use bsv_tx::Network;
use clap::{Args, Subcommand};
use serde_json::json;

use crate::commands::config::example::ExampleArguments;
use crate::commands::miner::{ContactArguments, KeyValue};
use crate::context::{Context, Stores, service_of};
use crate::error::CliError;
use crate::output::{counted, printable};
use crate::service::ReachError;

#[derive(Debug, Args)]
pub(crate) struct ConfigArguments {
    #[command(subcommand)]
    command: Option<ConfigCommand>,
    /// The alias of the identity
    #[arg(long, short, value_name = "ALIAS")]
    name: Option<Alias>,
    /// Members of the minerContact to set, such as email=me@example.com. Without any, the
    /// minerContact is shown
    #[arg(value_name = "KEY=VALUE")]
    pairs: Vec<KeyValue>,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Print the effective settings: a TOML file, without secrets
    Show,
    /// Print line by line what the server would refuse, and what is risky
    ///
    /// Nothing is created, and the server may be running. The exit code is 1 if a line fails.
    Check(CheckArguments),
    /// Print an example of a TOML file of settings, with comments
    Example(ExampleArguments),
}

#[derive(Debug, Args)]
struct CheckArguments {
    /// Ask the node too: what fits the settings, what does not, and what cannot be checked
    #[arg(long)]
    node: bool,
    /// Ask the services too: each broadcaster and each source of block headers
    #[arg(long)]
    services: bool,
    /// Let warnings count: the exit code is 1 if there are any
    #[arg(long)]
    strict: bool,
}

impl ConfigArguments {
    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        match (self.command, self.name) {
            (Some(ConfigCommand::Check(arguments)), _) => arguments.run(context).await,
            (Some(ConfigCommand::Show), _) => show(context),
            (Some(ConfigCommand::Example(arguments)), _) => arguments.run(context),
            (None, Some(alias)) => ContactArguments::new(alias, self.pairs).run(context).await,
            (None, None) => {
                Err(CliError::WrongUsage("config needs show, check, example or --name ALIAS"))
            }
        }
    }
}

impl CheckArguments {
    async fn run(self, context: &Context) -> Result<(), CliError> {
        let waiting = context.wait("checking");
        let (config, mut verdicts) = check_config(&context.sources)?;
        check_backup(&mut verdicts, &config).await;
        if self.node {
            node::check(&mut verdicts, &config).await?;
        }
        if self.services {
            services::check(&mut verdicts, &config).await?;
        }
        drop(waiting);
        context.print(json!(verdicts), || {
            let line = |verdict: &Verdict| format!("{}\n", printable(&verdict.to_string()));
            verdicts.all().iter().map(line).collect()
        })?;
        let (faults, warnings) = (verdicts.count(Outcome::Fails), verdicts.count(Outcome::Warns));
        match (faults, warnings) {
            (0, 0) => Ok(()),
            (0, _) if !self.strict => Ok(()),
            (0, _) => Err(CliError::CheckFailed(counted(warnings as u64, "warning", "warnings"))),
            _ => Err(CliError::CheckFailed(counted(faults as u64, "fault", "faults"))),
        }
    }
}

/// Checks that there is a backup, where something has a value.
async fn check_backup(verdicts: &mut Verdicts, config: &Config) {
    const CHECK: &str = "backup";
    if config.network == Network::Regtest {
        return verdicts.holds(CHECK, "none is needed: nothing on regtest has a value");
    }
    let last = match service_of(config.clone(), Create::Nothing, Stores::All).await {
        Ok(mut service) => service.get("/control/status").await.and_then(|answer| answer.value()),
        Err(CliError::Reach(ReachError::Open(OpenError::Nothing { what, .. }))) => {
            return verdicts.holds(CHECK, format!("there is {what} yet"));
        }
        Err(error) => return verdicts.unchecked(CHECK, error.to_string()),
    };
    match last.map(|status| status["lastBackup"]["at"].as_str().map(str::to_owned)) {
        Ok(Some(at)) => verdicts.holds(CHECK, format!("the last one was made at {at}")),
        Ok(None) => verdicts.warns(CHECK, "there is none: run bsv-cli backup FILE"),
        Err(error) => verdicts.unchecked(CHECK, error.to_string()),
    }
}

fn show(context: &Context) -> Result<(), CliError> {
    let settings = ShownSettings::load(&context.sources)?;
    context.print_exactly(settings.to_json(), || settings.to_toml())
}
