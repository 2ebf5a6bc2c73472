//! What every command is handed.

use std::fmt::Display;
use std::io::{self, IsTerminal};
use std::time::Duration;

use bsv_server::{Config, ConfigError, ConfigSources, Create};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::error::CliError;
use crate::output::{self, Colors, Table};
use crate::service::Service;

/// Where settings come from, and how results are shown.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    pub(crate) sources: ConfigSources,
    pub(crate) is_json: bool,
    pub(crate) is_quiet: bool,
    pub(crate) colors: Colors,
    pub(crate) unattended: Unattended,
}

/// What a question does where nobody can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unattended {
    /// It needs `--yes`.
    Refuse,
    /// It counts as answered with yes.
    GoOn,
    /// Its answer is read from standard input.
    Read,
}

/// Which stores a command opens: another one is not opened for it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stores {
    Identities,
    Wallet,
    All,
    /// That of the tokens: the wallet's if that lies in a database, or else none.
    Tokens,
}

impl Context {
    /// The effective settings.
    pub(crate) fn config(&self) -> Result<Config, ConfigError> {
        Config::load(&self.sources)
    }

    /// The same, where questions are dealt with otherwise.
    pub(crate) fn with_unattended(&self, unattended: Unattended) -> Self {
        Self { unattended, ..self.clone() }
    }

    /// The service that has the stores, which must be there.
    pub(crate) async fn service(&self, stores: Stores) -> Result<Service, CliError> {
        self.service_after(Create::Nothing, stores).await
    }

    /// The service that has the stores, after what is missing is created.
    pub(crate) async fn service_after(
        &self,
        create: Create,
        stores: Stores,
    ) -> Result<Service, CliError> {
        let mut config = self.config()?;
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

    /// Prints a result: to programs as JSON, to people as text that ends its lines.
    pub(crate) fn print(
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

    /// Prints to people what is good to know besides the result.
    pub(crate) fn advise(&self, text: &str) -> Result<(), CliError> {
        match self.is_json || self.is_quiet {
            true => Ok(()),
            false => Ok(output::print(&format!("{text}\n"))?),
        }
    }

    /// An empty table for standard output.
    pub(crate) fn table(&self, header: &[&str]) -> Table {
        Table::new(header, self.colors.stdout)
    }

    /// Shows on a terminal that something goes on, until it is dropped.
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
            .with_style(style.expect("templates name only what there is"))
    }
}

/// Something goes on until this is dropped.
pub(crate) struct Wait(ProgressBar);

impl Drop for Wait {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
