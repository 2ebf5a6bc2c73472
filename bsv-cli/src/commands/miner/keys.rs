//! The keys of an identity.

use bsv_server::wire;
use bsv_tx::PublicKey;
use clap::Args;
use serde_json::json;

use crate::context::{Context, Stores};
use crate::error::CliError;
use crate::output::{self, printable, text};
use crate::revocation_keystore::RevocationKeystore;
use crate::shared_arguments::Name;

#[derive(Debug, Args)]
pub(crate) struct IdArguments {
    #[command(flatten)]
    name: Name,
}

#[derive(Debug, Args)]
pub(crate) struct RotateArguments {
    #[command(flatten)]
    name: Name,
    /// Rotate even if no block was seen to show the last new key. Documents skip that key (1.0)
    #[arg(long)]
    force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RotateRevocationKeyArguments {
    #[command(flatten)]
    name: Name,
    #[command(flatten)]
    revocation_keystore: RevocationKeystore,
}

#[derive(Debug, Args)]
pub(crate) struct ConfirmArguments {
    #[command(flatten)]
    name: Name,
}

#[derive(Debug, Args)]
pub(crate) struct UpgradeArguments {
    #[command(flatten)]
    name: Name,
    /// The first key of the identity [default: the key numbered 1]
    #[arg(long, alias = "firstminerid", short, value_name = "KEY")]
    first_key: Option<PublicKey>,
    #[command(flatten)]
    revocation_keystore: RevocationKeystore,
}

impl IdArguments {
    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        let alias = self.name.alias();
        let mut service = context.service(Stores::Identities).await?;
        let key = service.get(format!("/minerid/{alias}")).await?.body;
        let json = json!({ "alias": alias.as_str(), "minerId": key });
        context.print(json, || format!("{}\n", printable(&key)))
    }
}

impl RotateArguments {
    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        let alias = self.name.alias();
        if self.force {
            let effect = format!(
                "Alias \"{alias}\" gets a new key, which the last key seen in a block vouches for. Keys announced \
                 since then are skipped for good."
            );
            context.ask_for_alias(&effect, &alias, "rotated")?;
        }
        let mut service = context.service(Stores::Identities).await?;
        let how = output::json(&wire::Rotation { force: self.force });
        let answer = service.post(format!("/control/minerids/{alias}/rotate"), how).await?;
        let identity = answer.value()?;
        context.print(&answer.body, || {
            format!("Alias \"{alias}\" now has the miner id\n  {}\n", text(&identity, "minerId"))
        })?;
        context.advise(
            "The identity's next block announces the rotation. Earlier backups lack the new key.",
        )
    }
}

impl RotateRevocationKeyArguments {
    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        let alias = self.name.alias();
        let mut service = context.service(Stores::Identities).await?;
        let path = format!("/control/minerids/{alias}/revocation-key");
        let keystore = self.revocation_keystore;
        let answer = keystore.post(context, &mut service, path, wire::Nothing {}).await?;
        let identity = answer.value()?;
        context.print(&answer.body, || {
            let key = text(&identity, "revocationKey");
            format!("Alias \"{alias}\" now has the revocation key\n  {key}\n")
        })?;
        context.advise("The identity's next block announces the new key.")
    }
}

impl ConfirmArguments {
    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        let alias = self.name.alias();
        let effect = format!(
            "Alias \"{alias}\" stops announcing its changes: nodes that have not seen them in a block \
             will not accept its later documents."
        );
        context.ask_for_alias(&effect, &alias, "confirmed")?;
        let mut service = context.service(Stores::Identities).await?;
        let answer = service.post(format!("/control/minerids/{alias}/confirm"), "{}").await?;
        context.print(&answer.body, || {
            format!("All that alias \"{alias}\" announced counts as seen in a block\n")
        })
    }
}

impl UpgradeArguments {
    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        let alias = self.name.alias();
        let effect =
            format!("Alias \"{alias}\" is then of protocol 1.0, and cannot go back to 0.2.");
        context.ask(&effect, "Upgrade it?", "upgraded")?;
        let mut service = context.service(Stores::Identities).await?;
        let upgrade = wire::Upgrade { first_miner_id: self.first_key.map(|key| key.to_string()) };
        let path = format!("/control/minerids/{alias}/upgrade");
        let answer = self.revocation_keystore.post(context, &mut service, path, upgrade).await?;
        let identity = answer.value()?;
        context.print(&answer.body, || {
            let key = text(&identity, "revocationKey");
            format!("Alias \"{alias}\" is of protocol 1.0 now, with the revocation key\n  {key}\n")
        })
    }
}
