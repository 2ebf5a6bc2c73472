use clap::{Args, Command};
use clap_complete::{Shell, generate};

use crate::error::CliError;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct CompletionsArguments {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

impl CompletionsArguments {
    /// Prints the script for a whole program.
    pub(crate) fn run(&self, program: &Command) -> Result<(), CliError> {
        let mut script = Vec::new();
        generate(self.shell, &mut without_hidden(program), "bsv-cli", &mut script);
        Ok(output::print(&String::from_utf8_lossy(&script))?)
    }
}

/// The same command without its hidden parts.
fn without_hidden(command: &Command) -> Command {
    let arguments = command.get_arguments().filter(|argument| !argument.is_hide_set());
    let commands = command.get_subcommands().filter(|command| !command.is_hide_set());
    Command::new(command.get_name().to_owned())
        .about(command.get_about().cloned().unwrap_or_default())
        .allow_missing_positional(command.is_allow_missing_positional_set())
        .args(arguments)
        .subcommands(commands.map(without_hidden))
}
