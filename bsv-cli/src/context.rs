//! The context of every command.

use std::fmt::Display;
use std::io::{self, IsTerminal};
use std::time::Duration;

use bsv_server::{Config, ConfigError, ConfigSources, Create};
use console::Term;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::error::CliError;
use crate::output::{self, Colors, Column, Table, terminal_width};
use crate::service::Service;

/// The sources of the settings, and the form of results.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    pub(crate) sources: ConfigSources,
    pub(crate) is_json: bool,
    pub(crate) is_quiet: bool,
    /// Whether everything is shown in full.
    pub(crate) is_verbose: bool,
    pub(crate) colors: Colors,
    /// Whether `--yes` is given.
    pub(crate) yes: bool,
}

/// The stores that a command opens. The command opens no other store.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stores {
    Identities,
    Wallet,
    All,
    /// The store of the tokens: the wallet's if the wallet is in a database, otherwise none.
    Tokens,
}

impl Context {
    /// The effective settings.
    pub(crate) fn config(&self) -> Result<Config, ConfigError> {
        Config::load(&self.sources)
    }

    /// The service with the stores, which must exist.
    pub(crate) async fn service(&self, stores: Stores) -> Result<Service, CliError> {
        self.service_after(Create::Nothing, stores).await
    }

    /// The service with the stores. Creates missing parts first.
    pub(crate) async fn service_after(
        &self,
        create: Create,
        stores: Stores,
    ) -> Result<Service, CliError> {
        service_of(self.config()?, create, stores).await
    }

    /// Prints a result: to programs as JSON, to people as text whose lines fit the terminal.
    pub(crate) fn print(
        &self,
        json: impl Display,
        text: impl FnOnce() -> String,
    ) -> Result<(), CliError> {
        self.print_exactly(json, || self.fitted(&text()))
    }

    /// Prints a result like [`print`](Self::print), but leaves the lines of the text as they are. This
    /// is for text that programs can read, too.
    pub(crate) fn print_exactly(
        &self,
        json: impl Display,
        text: impl FnOnce() -> String,
    ) -> Result<(), CliError> {
        match self.is_json {
            true => output::print_json(&format!("{json}\n"))?,
            false => output::print(&text())?,
        }
        Ok(())
    }

    /// The text with lines that fit the terminal.
    pub(crate) fn fitted(&self, text: &str) -> String {
        output::wrapped(text, self.width())
    }

    /// Prints advice to people, besides the result.
    pub(crate) fn advise(&self, text: &str) -> Result<(), CliError> {
        match self.is_json || self.is_quiet {
            true => Ok(()),
            false => Ok(output::print(&self.fitted(&format!("{text}\n")))?),
        }
    }

    /// An empty table for standard output.
    pub(crate) fn table(&self, columns: &'static [Column]) -> Table {
        Table::new(columns, self.colors.stdout, self.width()).quiet(self.is_quiet)
    }

    /// The width that lines are made to fit, if any.
    pub(crate) fn width(&self) -> Option<usize> {
        terminal_width(&Term::stdout()).filter(|_| self.is_brief())
    }

    /// Whether a person reads the result, and has not asked for everything in full.
    pub(crate) fn is_brief(&self) -> bool {
        !self.is_verbose && io::stdout().is_terminal()
    }

    /// A key or a hash: to a person shortened in the middle.
    pub(crate) fn key(&self, whole: String) -> String {
        if self.is_brief() { output::short_key(&whole) } else { whole }
    }

    /// A time: to a person in short, such as 28 Nov 11:09.
    pub(crate) fn time(&self, exact: &str) -> String {
        match exact.parse().ok().filter(|_| self.is_brief()) {
            Some(moment) => output::short_time(moment, Timestamp::now(), TimeZone::system()),
            None => exact.to_owned(),
        }
    }

    /// Shows on a terminal that work is going on, until dropped.
    pub(crate) fn wait(&self, what: &'static str) -> Wait {
        let bar = self.progress_bar(0, "{spinner} {msg}, {elapsed}").with_message(what);
        bar.enable_steady_tick(Duration::from_millis(200));
        Wait(bar)
    }

    /// A bar on standard error, if that is a terminal.
    pub(crate) fn progress_bar(&self, len: u64, template: &str) -> ProgressBar {
        let target = match self.is_quiet || !io::stderr().is_terminal() {
            true => ProgressDrawTarget::hidden(),
            false => ProgressDrawTarget::stderr(),
        };
        let style = ProgressStyle::with_template(template);
        ProgressBar::with_draw_target(Some(len), target)
            .with_style(style.expect("the template is valid"))
    }
}

/// The service of these settings with the stores. Creates missing parts first.
pub(crate) async fn service_of(
    mut config: Config,
    create: Create,
    stores: Stores,
) -> Result<Service, CliError> {
    match stores {
        Stores::Identities if config.minerid.is_none() => {
            return Err(CliError::Disabled("miner identity service"));
        }
        Stores::Wallet if config.wallet.is_none() => return Err(CliError::Disabled("wallet")),
        _ => {}
    }
    if !matches!(stores, Stores::Identities | Stores::All) {
        config.minerid = None;
    }
    let is_wallet_used = match stores {
        Stores::Wallet | Stores::All => true,
        Stores::Identities => false,
        Stores::Tokens => config.wallet.as_ref().is_some_and(|wallet| wallet.store.is_some()),
    };
    if !is_wallet_used {
        config.wallet = None;
    }
    Ok(Service::reach(config, create).await?)
}

/// Shows that work is going on, until dropped.
pub(crate) struct Wait(ProgressBar);

impl Wait {
    /// Shows how far the work has come.
    pub(crate) fn show(&self, what: &str, height: u32, last: u32) {
        self.0.set_message(format!("{what}, block {height} of {last}"));
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
