//! Commands under the names of the older generator, which the specification uses too.

use bsv_tx::PublicKey;
use clap::{Args, Subcommand};

use super::miner;
use crate::context::Context;
use crate::error::CliError;
use crate::revocation_keystore::RevocationKeystore;
use crate::shared_arguments::Name;

#[derive(Debug, Subcommand)]
pub(crate) enum OlderGeneratorCommand {
    /// The older generator's name of bsv-cli miner create
    #[command(name = "generateminerid", hide = true)]
    GenerateMinerId(miner::CreateArguments),
    /// The older generator's name of bsv-cli miner vctx
    #[command(name = "generatevctx", hide = true)]
    GenerateVctx(miner::VctxArguments),
    /// The older generator's name of bsv-cli miner rotate
    #[command(name = "rotateminerid", hide = true)]
    RotateMinerId(miner::RotateArguments),
    /// The older generator's name of bsv-cli miner revocation-key rotate
    #[command(name = "rotaterevocationkey", hide = true)]
    RotateRevocationKey(miner::RotateRevocationKeyArguments),
    /// The older generator's name of bsv-cli miner revoke --back-to
    #[command(
        name = "revokemineridpartially",
        hide = true,
        override_usage = "bsv-cli revokemineridpartially --minerid <KEY> <ALIAS|--name <ALIAS>>"
    )]
    RevokeMinerIdPartially(RevokePartiallyArguments),
    /// The older generator's name of bsv-cli miner revoke --all
    #[command(name = "revokemineridcompletely", hide = true)]
    RevokeMinerIdCompletely(RevokeCompletelyArguments),
    /// The older generator's name of bsv-cli miner upgrade
    #[command(name = "upgrademinerid", hide = true)]
    UpgradeMinerId(miner::UpgradeArguments),
    /// The older generator's name of bsv-cli miner id
    #[command(name = "getcurrentminerid", hide = true)]
    GetCurrentMinerId(miner::IdArguments),
    /// Stands for bsv-cli miner import, among the older generator's names
    #[command(name = "importminerid", hide = true)]
    ImportMinerId(miner::ImportArguments),
}

#[derive(Debug, Args)]
pub(crate) struct RevokePartiallyArguments {
    #[command(flatten)]
    name: Name,
    /// The oldest key that is compromised
    #[arg(long = "minerid", short, value_name = "KEY")]
    miner_id: PublicKey,
    #[command(flatten)]
    revocation_keystore: RevocationKeystore,
}

#[derive(Debug, Args)]
pub(crate) struct RevokeCompletelyArguments {
    #[command(flatten)]
    name: Name,
    #[command(flatten)]
    revocation_keystore: RevocationKeystore,
}

impl OlderGeneratorCommand {
    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        match self {
            Self::GenerateMinerId(arguments) => arguments.run(context).await,
            Self::GenerateVctx(arguments) => arguments.run(context).await,
            Self::RotateMinerId(arguments) => arguments.run(context).await,
            Self::RotateRevocationKey(arguments) => arguments.run(context).await,
            Self::RevokeMinerIdPartially(arguments) => arguments.current().run(context).await,
            Self::RevokeMinerIdCompletely(arguments) => arguments.current().run(context).await,
            Self::UpgradeMinerId(arguments) => arguments.run(context).await,
            Self::GetCurrentMinerId(arguments) => arguments.run(context).await,
            Self::ImportMinerId(arguments) => arguments.run(context).await,
        }
    }
}

impl RevokePartiallyArguments {
    fn current(self) -> miner::RevokeArguments {
        let Self { name, miner_id, revocation_keystore } = self;
        let revoked = miner::Revoked::BackTo(miner_id);
        miner::RevokeArguments::new(name, revoked, revocation_keystore)
    }
}

impl RevokeCompletelyArguments {
    fn current(self) -> miner::RevokeArguments {
        let Self { name, revocation_keystore } = self;
        miner::RevokeArguments::new(name, miner::Revoked::All, revocation_keystore)
    }
}
