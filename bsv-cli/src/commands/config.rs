//! The settings.

mod node;

use bsv_minerid::Alias;
use bsv_server::ShownSettings;
use clap::{Args, Subcommand};

use crate::commands::miner::{ContactArguments, KeyValue};
use crate::context::Context;
use crate::error::CliError;

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
    /// Check the settings and print the effective ones: a TOML file, without secrets
    Show,
    /// The same as show; with --node, check the node against the settings
    Check(CheckArguments),
}

#[derive(Debug, Args)]
struct CheckArguments {
    /// Ask the node, and print line by line what fits the settings, what does not, and what cannot
    /// be checked. The exit code is 1 if something does not fit
    #[arg(long)]
    node: bool,
}

impl ConfigArguments {
    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        match (self.command, self.name) {
            (Some(ConfigCommand::Check(CheckArguments { node: true })), _) => {
                node::check(context).await
            }
            (Some(_), _) => show(context),
            (None, Some(alias)) => ContactArguments::new(alias, self.pairs).run(context).await,
            (None, None) => Err(CliError::WrongUsage("config needs show, check or --name ALIAS")),
        }
    }
}

fn show(context: &Context) -> Result<(), CliError> {
    let settings = ShownSettings::load(&context.sources)?;
    context.print(settings.to_json(), || settings.to_toml())
}
