use clap::Args;
use clap_complete::{Shell, generate};

use crate::arguments::current_commands;
use crate::error::CliError;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct CompletionsArguments {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

impl CompletionsArguments {
    pub(crate) fn run(&self) -> Result<(), CliError> {
        let mut script = Vec::new();
        generate(self.shell, &mut current_commands(), "bsv-cli", &mut script);
        Ok(output::print(&String::from_utf8_lossy(&script))?)
    }
}
