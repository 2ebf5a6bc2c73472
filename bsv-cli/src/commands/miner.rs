//! Miner identities.

mod documents;
mod identities;
mod import;
mod keys;
mod revoke;
pub(crate) mod scan;
mod vctx;
mod verify;

use bsv_minerid::Alias;
use clap::{Args, Subcommand};

pub(crate) use self::documents::{
    BlindSigningArguments, ContactArguments, DataRefsArguments, ExtensionsArguments, KeyValue,
    ScriptArguments,
};
pub(crate) use self::identities::{CreateArguments, ListArguments};
pub(crate) use self::import::ImportArguments;
pub(crate) use self::keys::{
    ConfirmArguments, IdArguments, RotateArguments, RotateRevocationKeyArguments, UpgradeArguments,
};
pub(crate) use self::revoke::{RevokeArguments, Revoked};
pub(crate) use self::scan::ScanArguments;
pub(crate) use self::vctx::VctxArguments;
pub(crate) use self::verify::VerifyArguments;
use crate::context::Context;
use crate::error::CliError;

#[derive(Debug, Subcommand)]
pub(crate) enum MinerCommand {
    /// Begin an identity: make its first key
    Create(CreateArguments),
    /// List all identities
    List(ListArguments),
    /// Show all that is known of an identity
    Show(identities::ShowArguments),
    /// Print the current key of an identity
    Id(IdArguments),
    /// Set up the validity check transaction (VCTx) of an identity (0.2)
    ///
    /// On regtest the node's wallet funds it, and blocks are mined to confirm it. On other networks
    /// this prints the address to fund and the least amount; run it again once it is funded.
    Vctx(VctxArguments),
    /// Print the output script that carries an identity in a block
    Script(ScriptArguments),
    /// Set or show what an identity tells about its miner (minerContact)
    ///
    /// For example: bsv-cli miner contact --name pool email=ops@pool.example
    Contact(ContactArguments),
    /// Give an identity a new key
    Rotate(RotateArguments),
    /// Change the revocation key of an identity (1.0)
    #[command(subcommand)]
    RevocationKey(RevocationKeyCommand),
    /// Revoke keys of an identity, or all of it
    ///
    /// Of protocol 0.2: spends the VCTx, which ends the identity. Of protocol 1.0: with --back-to, revokes
    /// the current key and those before it back to a compromised one, and goes on with a new key; with
    /// --all, revokes all keys, which ends the identity. Documents announce it, and the node is told,
    /// which tells others. Where the node cannot be told this fails; the same command again tells it.
    Revoke(RevokeArguments),
    /// Delete an identity that is revoked for good
    ///
    /// Its keys stay in the keystore unless --with-keys is given, and revocation keys stay where they are. Its name is
    /// not given to another identity.
    Delete(revoke::DeleteArguments),
    /// Take all that an identity announces for seen in a block, where no node tells (1.0)
    Confirm(ConfirmArguments),
    /// Turn an identity of protocol 0.2 into one of 1.0, with a revocation key
    Upgrade(UpgradeArguments),
    /// Let an identity sign any hash that it is asked to sign (sign, pksign), or documents only
    BlindSigning(BlindSigningArguments),
    /// Set the extensions of documents (1.0)
    Extensions(ExtensionsArguments),
    /// Set the data that documents refer to; an empty list of refs takes it away (1.0)
    DataRefs(DataRefsArguments),
    /// Take over the identities of an older generator's home directory
    ///
    /// An alias that is here already stays as it is. With a node, this looks whether the key of each VCTx owns it;
    /// an output that it does not own is not taken over.
    Import(ImportArguments),
    /// Verify the miner identity that a block carries, whoever mined it
    ///
    /// Says line by line what holds, what does not, and what could not be checked, and whether nodes
    /// take the identity. Exit code 0 if it is valid, 1 if it is not, cannot be told or is not there.
    Verify(Box<VerifyArguments>),
    /// Walk the node's chain and print who mined what, following rotations and revocations
    ///
    /// Interrupted, it goes on where it was when it is run again.
    Scan(ScanArguments),
}

#[derive(Debug, Subcommand)]
pub(crate) enum RevocationKeyCommand {
    /// Give an identity a new revocation key
    Rotate(RotateRevocationKeyArguments),
}

impl MinerCommand {
    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        match self {
            Self::Create(arguments) => arguments.run(context).await,
            Self::List(arguments) => arguments.run(context).await,
            Self::Show(arguments) => arguments.run(context).await,
            Self::Id(arguments) => arguments.run(context).await,
            Self::Vctx(arguments) => arguments.run(context).await,
            Self::Script(arguments) => arguments.run(context).await,
            Self::Contact(arguments) => arguments.run(context).await,
            Self::Rotate(arguments) => arguments.run(context).await,
            Self::RevocationKey(RevocationKeyCommand::Rotate(arguments)) => {
                arguments.run(context).await
            }
            Self::Revoke(arguments) => arguments.run(context).await,
            Self::Delete(arguments) => arguments.run(context).await,
            Self::Confirm(arguments) => arguments.run(context).await,
            Self::Upgrade(arguments) => arguments.run(context).await,
            Self::BlindSigning(arguments) => arguments.run(context).await,
            Self::Extensions(arguments) => arguments.run(context).await,
            Self::DataRefs(arguments) => arguments.run(context).await,
            Self::Import(arguments) => arguments.run(context).await,
            Self::Verify(arguments) => arguments.run(context).await,
            Self::Scan(arguments) => arguments.run(context).await,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Name {
    /// The alias of the identity
    #[arg(long = "name", short = 'n', value_name = "ALIAS")]
    pub(crate) alias: Alias,
}
