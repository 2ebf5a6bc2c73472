//! Miner identities.

mod documents;
mod identities;
mod import;
mod keys;
mod revoke;
pub(crate) mod scan;
mod vctx;
mod verify;

use clap::Subcommand;

pub(crate) use self::documents::{
    BlindSigningArguments, ContactArguments, DataRefsArguments, ExtensionsArguments, KeyValue,
    ScriptArguments,
};
#[cfg(test)]
pub(super) use self::identities::COLUMNS;
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
    /// Create an identity with its first key
    Create(CreateArguments),
    /// List all identities
    List(ListArguments),
    /// Show an identity in full
    Show(identities::ShowArguments),
    /// Print the current key of an identity
    Id(IdArguments),
    /// Set up the validity check transaction (VCTx) of an identity (0.2)
    ///
    /// On regtest, the node's wallet funds it, and blocks are mined to confirm it. On other
    /// networks, this prints the address to fund and the least amount. Run the command again after
    /// funding the address.
    Vctx(VctxArguments),
    /// Print the output script that carries an identity in a block
    Script(ScriptArguments),
    /// Set or show the contact information of a miner (minerContact)
    ///
    /// For example: bsv-cli miner contact pool email=ops@pool.example
    Contact(ContactArguments),
    /// Give an identity a new key
    Rotate(RotateArguments),
    /// Change the revocation key of an identity (1.0)
    #[command(subcommand)]
    RevocationKey(RevocationKeyCommand),
    /// Revoke keys of an identity, or the whole identity
    ///
    /// For protocol 0.2, this spends the VCTx, which ends the identity. For protocol 1.0, --back-to
    /// revokes the current key and the earlier ones back to a compromised key, and makes a new key;
    /// --all revokes all keys, which ends the identity. Documents announce the revocation. The node
    /// is told, and tells other nodes. If the node cannot be told, the command fails; run the
    /// command again.
    Revoke(RevokeArguments),
    /// Delete an identity that is revoked for good
    ///
    /// The keys of the identity stay in the keystore unless --with-keys is given. Revocation keys
    /// always stay. The alias cannot be used again.
    Delete(revoke::DeleteArguments),
    /// Mark all announcements of an identity as seen in a block, if no node can tell (1.0)
    Confirm(ConfirmArguments),
    /// Upgrade an identity of protocol 0.2 to 1.0, with a revocation key
    Upgrade(UpgradeArguments),
    /// Allow an identity to sign any hash (sign, pksign), or only documents
    BlindSigning(BlindSigningArguments),
    /// Set the extensions of documents (1.0)
    Extensions(ExtensionsArguments),
    /// Set the data that documents refer to; an empty list of refs removes the data (1.0)
    DataRefs(DataRefsArguments),
    /// Import the identities of an older generator's home directory
    ///
    /// An alias that already exists stays unchanged. With a node, this checks whether the key of
    /// each VCTx owns its output. An output that the key does not own is not imported.
    Import(ImportArguments),
    /// Verify the miner identity in anybody's block
    ///
    /// This prints line by line what holds, what does not and what could not be checked, and
    /// whether nodes take the identity. The exit code is 0 if the identity is valid, and 1 if it is
    /// invalid, undecided or missing.
    Verify(Box<VerifyArguments>),
    /// Scan the node's chain and print who mined which block, following rotations and revocations
    ///
    /// After an interruption, run the command again to continue.
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
