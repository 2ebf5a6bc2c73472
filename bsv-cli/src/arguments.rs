use std::path::PathBuf;

use bsv_minerid::Alias;
use bsv_server::ConfigSources;
use clap::{ArgAction, Args, ColorChoice, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::commands::completions::CompletionsArguments;
use crate::commands::older_generator::OlderGeneratorCommand;
use crate::commands::{Command, miner};
use crate::context::Context;
use crate::error::CliError;
use crate::output::Colors;
use crate::shared_arguments::height;

/// Sets up and operates the Bitcoin SV wallet and miner identity service.
///
/// Commands work with and without a bsv-server on the data directory.
#[derive(Debug, Parser)]
#[command(
    version = bsv_server::version(),
    arg_required_else_help = true,
    max_term_width = 100,
    after_help = "Examples:\n  \
                  bsv-cli init\n  \
                  bsv-cli invoice create --satoshis 1000 --expires-in 24h\n  \
                  bsv-cli miner create --name pool\n\n\
                  Exit codes: 0 success, 1 refused, failed or not valid, 2 wrong usage."
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) common: CommonArguments,
    #[arg(long, short = 't', hide = true, value_name = "N", value_parser = height(), requires = "name")]
    height: Option<u32>,
    #[arg(long, short, hide = true, value_name = "ALIAS", requires = "height")]
    name: Option<Alias>,
    #[command(subcommand)]
    command: Option<AnyCommand>,
}

#[derive(Debug, Subcommand)]
enum AnyCommand {
    #[command(flatten)]
    Current(Command),
    #[command(flatten)]
    OlderGenerator(OlderGeneratorCommand),
    /// Print a shell script that completes commands and options
    ///
    /// For bash: bsv-cli completions bash > ~/.local/share/bash-completion/completions/bsv-cli
    Completions(CompletionsArguments),
}

/// The options of every command.
#[derive(Debug, Args)]
#[command(next_help_heading = "Options of every command")]
pub(crate) struct CommonArguments {
    /// A TOML file of settings. The environment variable BSV_CONFIG, a JSON object, overrides the
    /// file
    #[arg(long, global = true, env = "BSV_CONFIG_FILE", value_name = "FILE")]
    config: Option<PathBuf>,
    /// The directory for all data [default: $XDG_DATA_HOME/bsv-server or ~/.local/share/bsv-server]
    #[arg(long, global = true, env = "BSV_DATA_DIR", value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Print JSON, for errors too
    #[arg(long, global = true)]
    json: bool,
    /// Show colours; auto does in a terminal, unless NO_COLOR is set
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = ColorChoice::Auto,
          hide_possible_values = true, help = "Show colours: auto (in a terminal, unless NO_COLOR is set), always or never")]
    color: ColorChoice,
    /// Do not ask. Outside a terminal, a command that would ask needs this, or the setting
    /// cli.assumeYes
    #[arg(long, global = true)]
    yes: bool,
    /// Print only results: no progress, no advice, no hints
    #[arg(long, short, global = true, conflicts_with = "verbose")]
    quiet: bool,
    /// Show tables whole and times exactly, and log to standard error; twice for more detail
    #[arg(long, short, global = true, action = ArgAction::Count)]
    verbose: u8,
}

impl CommonArguments {
    pub(crate) fn context(&self) -> Context {
        Context {
            sources: ConfigSources { file: self.config.clone(), data_dir: self.data_dir.clone() },
            is_json: self.json,
            is_quiet: self.quiet,
            is_verbose: self.verbose > 0,
            colors: Colors::new(self.color),
            yes: self.yes,
        }
    }

    /// The level of the log, unless BSV_LOG sets another one. With `--json`, programs find only
    /// errors on standard error.
    pub(crate) fn log_level(&self) -> &'static str {
        match self.verbose {
            0 if self.json => "off",
            0 => "error",
            1 => "info",
            _ => "debug",
        }
    }
}

impl Arguments {
    /// Parses the arguments of this process.
    pub(crate) fn read() -> Result<Self, clap::Error> {
        let mut command = with_negative_numbers(Self::command());
        let read = Self::from_arg_matches(&command.try_get_matches_from_mut(std::env::args_os())?);
        read.map_err(|error| error.format(&mut command))
    }

    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        match (self.command, self.height, self.name) {
            (None, Some(height), Some(alias)) => {
                miner::ScriptArguments::new(alias, height).run(context).await
            }
            (Some(AnyCommand::Current(command)), None, None) => command.run(context).await,
            (Some(AnyCommand::OlderGenerator(command)), None, None) => command.run(context).await,
            (Some(AnyCommand::Completions(arguments)), None, None) => {
                arguments.run(&Self::command())
            }
            (None, None, None) => Err(CliError::WrongUsage("a command is missing")),
            _ => Err(CliError::WrongUsage("--height and --name must follow their command")),
        }
    }
}

/// Lets negative numbers be values, so that an error names the option that does not take them.
fn with_negative_numbers(command: clap::Command) -> clap::Command {
    let command = command.mut_args(|argument| match argument.get_action().takes_values() {
        true => argument.allow_negative_numbers(true),
        false => argument,
    });
    command.mut_subcommands(with_negative_numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_do_not_contradict_each_other() {
        with_negative_numbers(Arguments::command()).debug_assert();
    }

    #[test]
    fn each_help_fits_80_columns() {
        fn check(command: &mut clap::Command) {
            for help in [command.render_help(), command.render_long_help()] {
                for line in help.to_string().lines() {
                    assert!(line.chars().count() <= 80, "{line}");
                }
            }
            command.get_subcommands_mut().for_each(check);
        }
        let mut command = Arguments::command().term_width(80);
        command.build();
        check(&mut command);
    }
}
