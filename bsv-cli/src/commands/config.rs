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
    /// What to set of its minerContact, such as email=me@example.com; nothing shows what is set
    #[arg(value_name = "KEY=VALUE")]
    pairs: Vec<KeyValue>,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Check the settings and print them as they count: a TOML file, without secrets
    Show,
    /// The same; or, with --node, ask the node whether it fits them
    Check(CheckArguments),
}

#[derive(Debug, Args)]
struct CheckArguments {
    /// Ask the node of the settings, and print line by line what fits, what does not, and what cannot be asked;
    /// the exit code is 1 if something does not
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
