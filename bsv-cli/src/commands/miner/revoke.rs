//! Revoking keys and identities.

use bsv_minerid::Alias;
use bsv_server::wire;
use bsv_tx::PublicKey;
use clap::Args;
use serde_json::{Value, json};

use crate::context::{Context, Stores};
use crate::error::CliError;
use crate::output::{self, field, text};
use crate::revocation_keystore::RevocationKeystore;
use crate::shared_arguments::Name;

#[derive(Debug, Args)]
pub(crate) struct RevokeArguments {
    #[command(flatten)]
    name: Name,
    /// The oldest compromised key: it and all later keys are revoked (1.0)
    #[arg(long, value_name = "KEY", conflicts_with = "all")]
    back_to: Option<PublicKey>,
    /// Revoke all keys (1.0)
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    revocation_keystore: RevocationKeystore,
}

#[derive(Debug, Args)]
pub(crate) struct DeleteArguments {
    #[command(flatten)]
    name: Name,
    /// Also delete the keys, except the key of a VCTx, which may own coins
    #[arg(long)]
    with_keys: bool,
}

/// What a command revokes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Revoked {
    /// The VCTx of an identity of protocol 0.2, and with it the identity.
    Vctx,
    /// The keys back to this one, of an identity of protocol 1.0.
    BackTo(PublicKey),
    /// All keys of an identity of protocol 1.0.
    All,
}

impl RevokeArguments {
    pub(crate) fn new(
        name: Name,
        revoked: Revoked,
        revocation_keystore: RevocationKeystore,
    ) -> Self {
        let (back_to, all) = match revoked {
            Revoked::Vctx => (None, false),
            Revoked::BackTo(key) => (Some(key), false),
            Revoked::All => (None, true),
        };
        Self { name, back_to, all, revocation_keystore }
    }

    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        let revoked = match (self.back_to, self.all) {
            (Some(key), _) => Revoked::BackTo(key),
            (None, true) => Revoked::All,
            (None, false) => Revoked::Vctx,
        };
        let alias = &self.name.alias();
        let mut service = context.service(Stores::Identities).await?;
        let identity = service.get(format!("/control/minerids/{alias}")).await?.value()?;
        check_protocol(alias, revoked, &identity)?;
        context.ask_for_alias(&revoked.effect(alias), alias, "revoked")?;

        let (action, body) = match revoked {
            Revoked::Vctx => ("revoke", json!({})),
            Revoked::BackTo(key) => {
                ("revoke-partially", json!(wire::RevokedBackTo { miner_id: key.to_string() }))
            }
            Revoked::All => ("revoke-completely", json!({})),
        };
        let path = format!("/control/minerids/{alias}/{action}");
        let waiting = context.wait("telling the node");
        let answer = self.revocation_keystore.post(context, &mut service, path, body).await?;
        drop(waiting);
        let identity = answer.value()?;
        context.print(&answer.body, || revoked.describe(alias, &identity))?;
        match revoked {
            Revoked::Vctx => Ok(()),
            Revoked::BackTo(_) => {
                context.advise("The identity's next block announces the revocation.")
            }
            Revoked::All => {
                context.advise("Documents announce the revocation until a block shows it.")
            }
        }
    }
}

impl DeleteArguments {
    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        let (alias, with_keys) = (self.name.alias(), self.with_keys);
        let keys = if with_keys { "its keys are deleted" } else { "its keys stay in the keystore" };
        let effect = format!("Alias \"{alias}\" is deleted and cannot be used again; {keys}.");
        context.ask_for_alias(&effect, &alias, "deleted")?;
        let mut service = context.service(Stores::Identities).await?;
        let path = format!("/control/minerids/{alias}/delete");
        service.post(path, output::json(&wire::Deletion { with_keys })).await?;
        let told = json!({ "alias": alias.as_str(), "deleted": true, "withKeys": with_keys });
        context.print(told, || format!("Alias \"{alias}\" is deleted; {keys}\n"))
    }
}

/// Refuses flags that do not fit the protocol of the identity.
fn check_protocol(alias: &Alias, revoked: Revoked, identity: &Value) -> Result<(), CliError> {
    let protocol = text(identity, "protocol");
    let needed = match (revoked, protocol.as_str()) {
        (Revoked::Vctx, "1.0") => "use miner revoke with --back-to KEY or --all",
        (Revoked::BackTo(_) | Revoked::All, "0.2") => {
            "use miner revoke without --back-to and --all"
        }
        _ => return Ok(()),
    };
    Err(CliError::Unfitting(format!("alias \"{alias}\" is of protocol {protocol}: {needed}")))
}

impl Revoked {
    fn effect(self, alias: &Alias) -> String {
        match self {
            Self::Vctx => {
                format!("The VCTx of alias \"{alias}\" is spent, which ends the identity for good.")
            }
            Self::BackTo(key) => format!(
                "The keys of alias \"{alias}\" back to {key} are revoked for good. The alias gets a new \
                 key."
            ),
            Self::All => format!(
                "All keys of alias \"{alias}\" are revoked, which ends the identity for good."
            ),
        }
    }

    fn describe(self, alias: &Alias, identity: &Value) -> String {
        match self {
            Self::Vctx => [
                format!("Alias \"{alias}\" is revoked\n"),
                field("VCTx", &identity["vctx"]["outpoint"]),
                field("spent by", &identity["vctx"]["txid"]),
            ]
            .concat(),
            Self::BackTo(_) => [
                format!("Miner ids of alias \"{alias}\" are revoked, and the node has been told\n"),
                field("back to", &identity["compromisedMinerId"]),
                field("new miner id", &identity["minerId"]),
            ]
            .concat(),
            Self::All => format!(
                "All miner ids of alias \"{alias}\" are revoked, and the node has been told\n"
            ),
        }
    }
}
