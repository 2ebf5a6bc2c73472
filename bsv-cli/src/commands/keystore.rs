//! The keys and their passphrase.

use std::path::PathBuf;

use bsv_server::{Config, OpenError};
use bsv_store::Keystore;
use clap::{Args, Subcommand};
use secrecy::ExposeSecret;
use serde_json::{Value, json};

use crate::context::{Context, Stores};
use crate::error::CliError;
use crate::files::absolute;
use crate::output::{elements, printable};
use crate::secret::SecretSource;
use crate::service::ReachError;

#[derive(Debug, Subcommand)]
pub(crate) enum KeystoreCommand {
    /// Seal the keys with another passphrase, or for the first time
    ///
    /// The new passphrase comes from --new-passphrase-file, the environment variable
    /// BSV_NEW_KEYSTORE_PASSPHRASE, or is typed in. Set it as keystorePassphraseFile or
    /// BSV_KEYSTORE_PASSPHRASE before the next start.
    Passphrase(PassphraseArguments),
    /// Prove that every key can be read
    Verify,
}

#[derive(Debug, Args)]
pub(crate) struct PassphraseArguments {
    /// A file that holds the new passphrase, or - for standard input
    #[arg(long, value_name = "FILE")]
    new_passphrase_file: Option<PathBuf>,
    /// A keystore of revocation keys elsewhere that gets the passphrase too, as the one in the
    /// keystore's directory does anyway
    #[arg(long, value_name = "DIR")]
    revocation_keystore: Option<PathBuf>,
}

impl KeystoreCommand {
    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        match self {
            Self::Passphrase(arguments) => arguments.run(context).await,
            Self::Verify => verify(context).await,
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
        let body = json!({
            "passphrase": passphrase.expose_secret(),
            "revocationKeystore": absolute(self.revocation_keystore.as_deref()),
        });
        service.post("/control/keystore/passphrase", body).await?;
        drop(waiting);
        context.print(json!({ "changed": true }), || {
            "The keys have the new passphrase. Set it as keystorePassphraseFile or \
             BSV_KEYSTORE_PASSPHRASE before the next start.\n"
                .to_owned()
        })
    }
}

/// Where a service does not open, at least its keys are looked at.
async fn verify(context: &Context) -> Result<(), CliError> {
    let (check, cause) = match context.service(Stores::All).await {
        Ok(mut service) => {
            let _waiting = context.wait("reading the keys");
            (service.get("/control/keystore").await?.value()?, None)
        }
        Err(CliError::Reach(ReachError::Open(
            error @ (OpenError::Wallet(_) | OpenError::MinerId(_) | OpenError::Keystore(_)),
        ))) => (check_alone(&context.config()?)?, Some(error.to_string())),
        Err(error) => return Err(error),
    };
    let (readable, mut faults) = (&check["readable"], elements(&check["faults"]).to_vec());
    if faults.is_empty() {
        faults.extend(cause.map(Value::from));
    }
    context.print(json!({ "readable": readable, "faults": faults }), || {
        let lines = faults.iter().map(|fault| printable(fault.as_str().unwrap_or_default()) + "\n");
        lines.collect::<String>() + &format!("{} keys can be read\n", elements(readable).len())
    })?;
    match faults.len() {
        0 => Ok(()),
        count => Err(CliError::CheckFailed(format!("{count} faults in the keystore"))),
    }
}

fn check_alone(config: &Config) -> Result<Value, CliError> {
    let keys = &config.keystore;
    let check = keys
        .stretched_passphrase()
        .and_then(|it| Keystore::open(&keys.dir, it.as_ref(), keys.plain_keys, "bsv-cli"))
        .and_then(|keystore| keystore.check())
        .map_err(|error| CliError::CheckFailed(error.to_string()))?;
    let faults: Vec<_> = check.faults.iter().map(ToString::to_string).collect();
    Ok(json!({ "readable": check.readable, "faults": faults }))
}
