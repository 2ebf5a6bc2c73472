//! Commands under the names that they had before each noun had its own command.

use bsv_tx::PublicKey;
use clap::{Args, Subcommand};

use super::{miner, outgoing, wallet};
use crate::consent::Consent;
use crate::context::{Context, Unattended};
use crate::error::CliError;
use crate::revocation_keystore::RevocationKeystore;

#[derive(Debug, Subcommand)]
pub(crate) enum FormerCommand {
    #[command(name = "generateminerid", hide = true)]
    GenerateMinerId(miner::CreateArguments),
    #[command(name = "generatevctx", hide = true)]
    GenerateVctx(miner::VctxArguments),
    #[command(name = "rotateminerid", hide = true)]
    RotateMinerId(miner::RotateArguments),
    #[command(name = "rotaterevocationkey", hide = true)]
    RotateRevocationKey(miner::RotateRevocationKeyArguments),
    #[command(name = "revokemineridpartially", hide = true)]
    RevokeMinerIdPartially(RevokePartiallyArguments),
    #[command(name = "revokemineridcompletely", hide = true)]
    RevokeMinerIdCompletely(RevokeCompletelyArguments),
    #[command(name = "revokeminerid", hide = true)]
    RevokeMinerId(RevokeVctxArguments),
    #[command(name = "confirmminerid", hide = true)]
    ConfirmMinerId(miner::ConfirmArguments),
    #[command(name = "upgrademinerid", hide = true)]
    UpgradeMinerId(miner::UpgradeArguments),
    #[command(hide = true)]
    Extensions(miner::ExtensionsArguments),
    #[command(name = "datarefs", hide = true)]
    DataRefs(miner::DataRefsArguments),
    #[command(name = "getcurrentminerid", hide = true)]
    GetCurrentMinerId(miner::IdArguments),
    #[command(name = "opreturn", hide = true)]
    OpReturn(miner::ScriptArguments),
    #[command(name = "blindsigning", hide = true)]
    BlindSigning(miner::BlindSigningArguments),
    #[command(name = "importminerid", hide = true)]
    ImportMinerId(miner::ImportArguments),
    #[command(name = "listminerids", hide = true)]
    ListMinerIds(miner::ListArguments),
    #[command(name = "verifyminerid", hide = true)]
    VerifyMinerId(Box<miner::VerifyArguments>),
    #[command(name = "scanminerids", hide = true)]
    ScanMinerIds(miner::ScanArguments),
    #[command(hide = true)]
    Balance(wallet::BalanceArguments),
    #[command(hide = true, subcommand)]
    Payment(outgoing::OutgoingCommand),
    #[command(hide = true)]
    Faucet(wallet::FaucetArguments),
}

#[derive(Debug, Args)]
pub(crate) struct RevokePartiallyArguments {
    #[command(flatten)]
    name: miner::Name,
    /// The oldest key that is compromised
    #[arg(long = "minerid", short, value_name = "KEY")]
    miner_id: PublicKey,
    #[command(flatten)]
    revocation_keystore: RevocationKeystore,
    #[command(flatten)]
    consent: Consent,
}

#[derive(Debug, Args)]
pub(crate) struct RevokeCompletelyArguments {
    #[command(flatten)]
    name: miner::Name,
    #[command(flatten)]
    revocation_keystore: RevocationKeystore,
    #[command(flatten)]
    consent: Consent,
}

#[derive(Debug, Args)]
pub(crate) struct RevokeVctxArguments {
    #[command(flatten)]
    name: miner::Name,
    #[command(flatten)]
    consent: Consent,
}

impl FormerCommand {
    /// Scripts that use these names cannot answer questions. Only what ends keys needs `--yes`.
    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        let context = &context.with_unattended(Unattended::GoOn);
        match self {
            Self::GenerateMinerId(arguments) => arguments.run(context).await,
            Self::GenerateVctx(arguments) => arguments.run(context).await,
            Self::RotateMinerId(arguments) => arguments.run(context).await,
            Self::RotateRevocationKey(arguments) => arguments.run(context).await,
            Self::RevokeMinerIdPartially(arguments) => arguments.current().run(context).await,
            Self::RevokeMinerIdCompletely(arguments) => arguments.current().run(context).await,
            Self::RevokeMinerId(arguments) => arguments.current().run(context).await,
            Self::ConfirmMinerId(arguments) => arguments.run(context).await,
            Self::UpgradeMinerId(arguments) => arguments.run(context).await,
            Self::Extensions(arguments) => arguments.run(context).await,
            Self::DataRefs(arguments) => arguments.run(context).await,
            Self::GetCurrentMinerId(arguments) => arguments.run(context).await,
            Self::OpReturn(arguments) => arguments.run(context).await,
            Self::BlindSigning(arguments) => arguments.run(context).await,
            Self::ImportMinerId(arguments) => arguments.run(context).await,
            Self::ListMinerIds(arguments) => arguments.run(context).await,
            Self::VerifyMinerId(arguments) => arguments.run(context).await,
            Self::ScanMinerIds(arguments) => arguments.run(context).await,
            Self::Balance(arguments) => arguments.run(context).await,
            Self::Payment(command) => command.run(context).await,
            Self::Faucet(arguments) => arguments.run(context).await,
        }
    }
}

impl RevokePartiallyArguments {
    fn current(self) -> miner::RevokeArguments {
        let Self { name, miner_id, revocation_keystore, consent } = self;
        let revoked = miner::Revoked::BackTo(miner_id);
        miner::RevokeArguments::new(name, revoked, revocation_keystore, consent)
    }
}

impl RevokeCompletelyArguments {
    fn current(self) -> miner::RevokeArguments {
        let Self { name, revocation_keystore, consent } = self;
        miner::RevokeArguments::new(name, miner::Revoked::All, revocation_keystore, consent)
    }
}

impl RevokeVctxArguments {
    fn current(self) -> miner::RevokeArguments {
        let Self { name, consent } = self;
        let no_keystore = RevocationKeystore::default();
        miner::RevokeArguments::new(name, miner::Revoked::Vctx, no_keystore, consent)
    }
}
