//! Creating a data directory.

use bsv_server::{Create, are_identities_in, is_wallet_in};
use clap::Args;
use serde_json::json;

use crate::context::{Context, Stores};
use crate::error::CliError;

#[derive(Debug, Args)]
pub(crate) struct InitArguments {}

impl InitArguments {
    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        let config = context.config()?;
        let dir = config.network_dir.display();
        let (has_wallet, has_identities) = (config.wallet.is_some(), config.minerid.is_some());
        let what = match (has_wallet, has_identities) {
            (true, true) => "a wallet and a store of identities",
            (true, false) => "a wallet",
            (false, true) => "a store of identities",
            (false, false) => {
                let reason = "neither wallet.enabled nor minerid.enabled is set";
                return Err(CliError::Unfitting(reason.to_owned()));
            }
        };
        if is_wallet_in(&config) || are_identities_in(&config) {
            return Err(CliError::ThereAlready(config.network_dir));
        }
        let waiting = context.wait("creating the stores");
        context.service_after(Create::All, Stores::All).await?;
        drop(waiting);
        let is_sealed = config.keystore.passphrase.is_some();
        let json = json!({
            "dataDir": config.network_dir,
            "keystore": config.keystore.dir,
            "isSealed": is_sealed,
            "wallet": has_wallet,
            "minerid": has_identities,
        });
        let sealed = if is_sealed { "sealed" } else { "NOT sealed" };
        let keystore = config.keystore.dir.display();
        context.print(json, || {
            format!("There is {what} in {dir}\nThe keys are in {keystore}, {sealed}\n")
        })?;
        if !is_sealed {
            context.advise("Seal the keys:                 bsv-cli keystore passphrase")?;
        }
        if has_wallet {
            context.advise("Print the words to write down: bsv-cli wallet words")?;
        }
        if has_identities {
            context.advise("Begin an identity:             bsv-cli miner create --name ALIAS")?;
        }
        context.advise(
            "Start the server:              bsv-server, with the same --data-dir and --config",
        )
    }
}
