//! Where the wallet is stored.

use std::fs;
use std::path::PathBuf;

use bsv_invoicing::PostgresOptions;
use bsv_server::{MoveTarget, accept_loss, move_wallet};
use clap::{Args, Subcommand};
use serde_json::json;

use crate::context::Context;
use crate::error::CliError;
use crate::output::counted;

#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Move the wallet from its file to a PostgreSQL database, or back to the file
    ///
    /// The server must be stopped. The settings are to name the database afterwards (wallet.store.url), or to
    /// name none. For example: bsv-cli store move --to postgresql://wallet@localhost/shop
    Move(MoveArguments),
    /// Use a database although it has lost changes that this server has seen
    ///
    /// What was lost is lost: payments may have been made that the books do not have. Run bsv-cli books
    /// verify --from-height afterwards.
    AcceptLoss(AcceptLossArguments),
}

#[derive(Debug, Args)]
pub(crate) struct MoveArguments {
    /// The URL of the database, or the word file
    #[arg(long, value_name = "URL|file")]
    to: String,
    /// The file that holds the password of the database
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct AcceptLossArguments {}

impl StoreCommand {
    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        match self {
            Self::Move(arguments) => arguments.run(context).await,
            Self::AcceptLoss(arguments) => arguments.run(context),
        }
    }
}

impl MoveArguments {
    async fn run(self, context: &Context) -> Result<(), CliError> {
        let target = self.target()?;
        let is_file = matches!(target, MoveTarget::File);
        let effect = "The wallet cannot be used where it lies now any more, by no server.";
        context.ask(effect, "Move it?", "moved")?;
        let config = context.config()?;
        let waiting = context.wait("copying the wallet");
        let rows = move_wallet(&config, target).await?;
        drop(waiting);
        context.print(json!({ "rows": rows }), || {
            format!("The wallet is moved: {}\n", counted(rows, "row", "rows"))
        })?;
        context.advise(if is_file {
            "Remove wallet.store from the settings before you start the server."
        } else {
            "Set wallet.store.url before you start the server. The file is kept as wallet.redb.moved."
        })
    }

    fn target(&self) -> Result<MoveTarget, CliError> {
        let unfitting = |error: &dyn std::fmt::Display| CliError::Unfitting(error.to_string());
        if self.to == "file" {
            return Ok(MoveTarget::File);
        }
        let options = PostgresOptions::from_url(&self.to).map_err(|error| unfitting(&error))?;
        if options.has_password() {
            let reason =
                "the URL holds a password: put it in a file, and name that with --password-file";
            return Err(CliError::WrongUsage(reason));
        }
        let Some(path) = &self.password_file else {
            return Ok(MoveTarget::Database(Box::new(options)));
        };
        let password = fs::read_to_string(path).map_err(|error| {
            CliError::Secret(format!("cannot read {}: {error}", path.display()))
        })?;
        let options = options.with_password(password.trim_end_matches(['\r', '\n']));
        Ok(MoveTarget::Database(Box::new(options)))
    }
}

impl AcceptLossArguments {
    fn run(self, context: &Context) -> Result<(), CliError> {
        let effect = "Changes that the database has lost are taken for never made.";
        context.ask(effect, "Accept that?", "accepted")?;
        let was_known = accept_loss(&context.config()?)?;
        context.print(json!({ "accepted": was_known }), || match was_known {
            true => "The server takes the database as it is\n".to_owned(),
            false => "There was nothing to accept\n".to_owned(),
        })
    }
}
