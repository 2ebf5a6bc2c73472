//! The settings.

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
    #[command(visible_alias = "check")]
    Show,
}

impl ConfigArguments {
    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        match (self.command, self.name) {
            (Some(ConfigCommand::Show), _) => show(context),
            (None, Some(alias)) => ContactArguments::new(alias, self.pairs).run(context).await,
            (None, None) => Err(CliError::WrongUsage("config needs show, check or --name ALIAS")),
        }
    }
}

fn show(context: &Context) -> Result<(), CliError> {
    let settings = ShownSettings::load(&context.sources)?;
    context.print(settings.to_json(), || settings.to_toml())
}
