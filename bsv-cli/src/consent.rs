//! Asking before an action that cannot be undone.

use std::io::{self, BufRead, IsTerminal, Read, Write};

use bsv_minerid::Alias;
use console::measure_text_width;

use crate::context::Context;
use crate::error::CliError;

impl Context {
    /// Whether the answer is yes without a question: by `--yes`, or by the settings if standard input
    /// is no terminal. A person at a terminal is asked, or refused if the question cannot be seen.
    pub(crate) fn has_consent(&self) -> Result<bool, CliError> {
        Ok(self.yes || (!io::stdin().is_terminal() && self.config()?.assume_yes))
    }

    /// Says what would happen and asks for consent. `done` names the action in one word, such as
    /// "revoked".
    pub(crate) fn ask(
        &self,
        effect: &str,
        question: &str,
        done: &'static str,
    ) -> Result<(), CliError> {
        self.ask_for(effect, &format!("{question} [y/N] "), &["y", "Y", "yes"], done)
    }

    /// Says what would happen and asks for the alias, which nobody types out of habit.
    pub(crate) fn ask_for_alias(
        &self,
        effect: &str,
        alias: &Alias,
        done: &'static str,
    ) -> Result<(), CliError> {
        self.ask_for(effect, "Type the alias to continue: ", &[alias.as_str()], done)
    }

    fn ask_for(
        &self,
        effect: &str,
        question: &str,
        consenting: &[&str],
        done: &'static str,
    ) -> Result<(), CliError> {
        if self.has_consent()? {
            return Ok(());
        }
        if !is_attended() {
            return Err(CliError::NeedsYes(done));
        }
        // The question and its answer stand in one line.
        let is_wide = |width| measure_text_width(effect) + 1 + measure_text_width(question) > width;
        let gap = if self.width().is_some_and(is_wide) { "\n" } else { " " };
        match answer_to(&format!("{}{gap}{question}", self.fitted(effect))) {
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
