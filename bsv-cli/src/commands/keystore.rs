//! The keys and their passphrase.

use std::path::PathBuf;

use bsv_server::wire::{KeysCheck, Nothing};
use bsv_server::{Config, OpenError};
use bsv_store::Keystore;
use clap::{Args, Subcommand};
use secrecy::ExposeSecret;
use serde_json::json;

use crate::context::{Context, Stores};
use crate::error::CliError;
use crate::output::{self, counted, printable};
use crate::revocation_keystore;
use crate::secret::SecretSource;
use crate::service::ReachError;

#[derive(Debug, Subcommand)]
pub(crate) enum KeystoreCommand {
    /// Seal the keys with a new passphrase
    ///
    /// The new passphrase comes from --new-passphrase-file or the environment variable
    /// BSV_NEW_KEYSTORE_PASSPHRASE, or is typed in. Set it as keystorePassphraseFile or
    /// BSV_KEYSTORE_PASSPHRASE before the next start.
    Passphrase(PassphraseArguments),
    /// Check that every key can be read
    ///
    /// This reads revocation keys in the keystore's directory and in the directory of
    /// --revocation-keystore. With this option, a revocation key that is in neither is a fault.
    /// Without it, this names the aliases whose revocation keys were not found.
    Verify(VerifyArguments),
}

#[derive(Debug, Args)]
pub(crate) struct PassphraseArguments {
    /// A file with the new passphrase, or - for standard input
    #[arg(long, value_name = "FILE")]
    new_passphrase_file: Option<PathBuf>,
    /// Another keystore of revocation keys that gets the new passphrase. The one in the keystore's
    /// directory gets it in any case
    #[arg(long, value_name = "DIR")]
    revocation_keystore: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArguments {
    /// Another keystore of revocation keys to read
    #[arg(long, value_name = "DIR")]
    revocation_keystore: Option<PathBuf>,
}

impl KeystoreCommand {
    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        match self {
            Self::Passphrase(arguments) => arguments.run(context).await,
            Self::Verify(arguments) => arguments.run(context).await,
        }
    }
}

impl PassphraseArguments {
    async fn run(self, context: &Context) -> Result<(), CliError> {
        let passphrase = SecretSource {
            name: "new passphrase of the keys",
            file: self.new_passphrase_file.as_deref(),
            variable: "BSV_NEW_KEYSTORE_PASSPHRASE",
            is_new: true,
        };
        let passphrase = passphrase.read()?;
        let mut service = context.service(Stores::All).await?;
        let waiting = context.wait("sealing the keys");
        let body = json!({ "passphrase": passphrase.expose_secret() });
        let (dir, path) = (self.revocation_keystore.as_deref(), "/control/keystore/passphrase");
        revocation_keystore::post(context, dir, &mut service, path, body).await?;
        drop(waiting);
        context.print(json!({ "changed": true }), || {
            "The keys have the new passphrase. Set it as keystorePassphraseFile or \
             BSV_KEYSTORE_PASSPHRASE before the next start.\n"
                .to_owned()
        })
    }
}

impl VerifyArguments {
    async fn run(self, context: &Context) -> Result<(), CliError> {
        let dir = self.revocation_keystore.as_deref();
        let check = match context.service(Stores::All).await {
            Ok(mut service) => {
                let _waiting = context.wait("reading the keys");
                let path = "/control/keystore/check";
                revocation_keystore::post(context, dir, &mut service, path, Nothing {})
                    .await?
                    .read()?
            }
            Err(CliError::Reach(ReachError::Open(
                error @ (OpenError::Wallet(_) | OpenError::MinerId(_) | OpenError::Keystore(_)),
            ))) => check_alone(&context.config()?, &error)?,
            Err(error) => return Err(error),
        };
        context.print(output::json(&check), || describe(&check))?;
        match check.faults.len() {
            0 => Ok(()),
            count => Err(CliError::CheckFailed(counted(
                count as u64,
                "fault in the keystore",
                "faults in the keystore",
            ))),
        }
    }
}

/// The result, with a line for each fault and for each alias whose revocation key may be in another
/// keystore.
fn describe(check: &KeysCheck) -> String {
    let faults = check.faults.iter().map(|fault| printable(fault) + "\n");
    let unchecked = check.unchecked.iter().map(|alias| {
        format!(
            "the revocation key of alias \"{alias}\" was not checked: name its keystore with \
             --revocation-keystore\n"
        )
    });
    let readable = check.readable.len();
    let not_looked_at = match check.unchecked.len() {
        0 => String::new(),
        1 => ", 1 revocation key was not checked".to_owned(),
        count => format!(", {count} revocation keys were not checked"),
    };
    faults.chain(unchecked).collect::<String>()
        + &format!("{} can be read{not_looked_at}\n", counted(readable as u64, "key", "keys"))
}

/// Reads the keys, except revocation keys, if the service cannot be opened.
fn check_alone(config: &Config, cause: &OpenError) -> Result<KeysCheck, CliError> {
    let keys = &config.keystore;
    let check = keys
        .stretched_passphrase()
        .and_then(|it| Keystore::open(&keys.dir, it.as_ref(), keys.plain_keys, "bsv-cli"))
        .and_then(|keystore| keystore.check())
        .map_err(|error| CliError::CheckFailed(error.to_string()))?;
    let mut faults: Vec<_> = check.faults.iter().map(ToString::to_string).collect();
    if faults.is_empty() {
        faults.push(cause.to_string());
    }
    faults
        .push("revocation keys were not checked, because the service cannot be opened".to_owned());
    let readable = check.readable.into_iter().collect();
    Ok(KeysCheck { faults, readable, unchecked: Vec::new() })
}
