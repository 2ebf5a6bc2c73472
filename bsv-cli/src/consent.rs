//! Asking before an action that cannot be undone.

use std::io::{self, BufRead, IsTerminal, Read, Write};

use bsv_minerid::Alias;
use clap::Args;

use crate::context::{Context, Unattended};
use crate::error::CliError;

#[derive(Debug, Default, Args)]
pub(crate) struct Consent {
    /// Do not ask. Required outside a terminal
    #[arg(long)]
    yes: bool,
}

impl Consent {
    pub(crate) fn new(yes: bool) -> Self {
        Self { yes }
    }

    /// Whether the user would be asked.
    pub(crate) fn would_ask(&self) -> bool {
        !self.yes && is_attended()
    }

    /// Says what would happen and asks for consent. `done` names the action in one word, such as
    /// "revoked".
    pub(crate) fn ask(
        &self,
        context: &Context,
        effect: &str,
        question: &str,
        done: &'static str,
    ) -> Result<(), CliError> {
        let question = format!("{effect} {question} [y/N] ");
        self.ask_for(context, &question, &["y", "Y", "yes"], done)
    }

    /// Says what would happen and asks for the alias, which nobody types out of habit. Outside a
    /// terminal this needs `--yes`, whatever the name of the command.
    pub(crate) fn ask_for_alias(
        &self,
        context: &Context,
        effect: &str,
        alias: &Alias,
        done: &'static str,
    ) -> Result<(), CliError> {
        let context = &context.with_unattended(Unattended::Refuse);
        let question = format!("{effect} Type the alias to continue: ");
        self.ask_for(context, &question, &[alias.as_str()], done)
    }

    fn ask_for(
        &self,
        context: &Context,
        question: &str,
        consenting: &[&str],
        done: &'static str,
    ) -> Result<(), CliError> {
        if !self.would_ask() {
            let is_refused = !self.yes && context.unattended == Unattended::Refuse;
            return if is_refused { Err(CliError::NeedsYes(done)) } else { Ok(()) };
        }
        match answer_to(question) {
            Ok(answer) if consenting.contains(&answer.trim()) => Ok(()),
            Ok(_) | Err(_) => Err(CliError::NotConfirmed(done)),
        }
    }
}

fn is_attended() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Longer than any accepted answer, which may be an alias.
const MAX_ANSWER_LEN: u64 = 2 + Alias::MAX_LEN as u64;

/// Asks a question.
fn answer_to(question: &str) -> io::Result<String> {
    let mut out = io::stderr().lock();
    write!(out, "{question}")?;
    out.flush()?;
    let mut answer = String::new();
    io::stdin().lock().take(MAX_ANSWER_LEN).read_line(&mut answer)?;
    if !answer.ends_with('\n') {
        writeln!(out)?;
    }
    Ok(answer)
}
