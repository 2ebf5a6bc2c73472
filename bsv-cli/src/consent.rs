//! Asking before something is done that cannot be undone.

use std::io::{self, BufRead, IsTerminal, Read, Write};

use clap::Args;

use crate::context::{Context, Unattended};
use crate::error::CliError;

#[derive(Debug, Default, Args)]
pub(crate) struct Consent {
    /// Do not ask; outside a terminal nothing is done without it
    #[arg(long)]
    yes: bool,
}

impl Consent {
    pub(crate) fn new(yes: bool) -> Self {
        Self { yes }
    }

    /// Whether somebody is there who would be asked.
    pub(crate) fn would_ask(&self, context: &Context) -> bool {
        !self.yes && (is_attended() || context.unattended == Unattended::Read)
    }

    /// Says what would happen and asks whether it may. `done` names that in one word, such as "revoked".
    pub(crate) fn ask(
        &self,
        context: &Context,
        effect: &str,
        question: &str,
        done: &'static str,
    ) -> Result<(), CliError> {
        if !self.would_ask(context) {
            let is_refused = !self.yes && context.unattended == Unattended::Refuse;
            return if is_refused { Err(CliError::NeedsYes(done)) } else { Ok(()) };
        }
        match confirm(&format!("{effect} {question}")) {
            Ok(true) => Ok(()),
            Ok(false) | Err(_) => Err(CliError::NotConfirmed(done)),
        }
    }
}

fn is_attended() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks a question; only a clear yes counts.
fn confirm(question: &str) -> io::Result<bool> {
    let mut out = io::stderr().lock();
    write!(out, "{question} [y/N] ")?;
    out.flush()?;
    let mut answer = String::new();
    io::stdin().lock().take(16).read_line(&mut answer)?;
    if !answer.ends_with('\n') {
        writeln!(out)?;
    }
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
