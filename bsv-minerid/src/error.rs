use std::path::PathBuf;

#[cfg(feature = "node")]
use bsv_network::NodeError;
use bsv_store::{KeystoreError, StoreError};
use bsv_tx::{KeyError, OutPoint, PublicKey};
use thiserror::Error;

use crate::alias::Alias;
use crate::coinbase2::Coinbase2Error;
use crate::operator_members::OperatorMembersError;
use crate::signer::SignerError;
use crate::state::Announcement;
use crate::store::IdentityStoreError;

/// Why an operation on miner identities failed. What failed has left nothing behind, unless it is
/// [`Unsettled`](Self::Unsettled).
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no such alias.
    #[error("alias \"{0}\" does not exist")]
    UnknownAlias(String),
    /// There is such an alias already.
    #[error("alias \"{0}\" exists already")]
    AliasExists(Alias),
    /// There was such an alias, and it is not used again.
    #[error("alias \"{0}\" was deleted, and is not used again: take another name")]
    AliasDeleted(Alias),
    /// The identity is there, and cannot be used.
    #[error("alias \"{alias}\" cannot be used: {reason}")]
    Broken {
        /// The identity.
        alias: Alias,
        /// What is missing or damaged.
        reason: String,
    },
    /// The identity signs nothing but documents.
    #[error("blind signing is off for alias \"{0}\"")]
    BlindSigningOff(Alias),
    /// A key does not sign.
    #[error(transparent)]
    Signer(#[from] SignerError),
    /// A height that no block can have: 0, or beyond 2,147,483,647.
    #[error("the height must be from 1 to 2147483647")]
    InvalidHeight,
    /// Documents need a validity check output.
    #[error("alias \"{0}\" has no VCTx")]
    NoVctx(Alias),
    /// The validity check output is spent, which revokes the identity.
    #[error("alias \"{alias}\" is revoked: its VCTx {outpoint} is spent")]
    Revoked {
        /// The identity.
        alias: Alias,
        /// The output that is spent.
        outpoint: OutPoint,
    },
    /// The identity is of generation 0.2, which spending its validity check output would revoke.
    #[error(
        "alias \"{0}\" is of protocol 0.2 and needs its VCTx: spending it would revoke the identity"
    )]
    VctxNeeded(Alias),
    /// No block of the main chain shows the identity with a document of generation 1.0.
    #[error(
        "no block shows alias \"{0}\" with a document of protocol 1.0 yet: until then others go by its \
         documents of 0.2. Mine a block that carries it first"
    )]
    UpgradeUnseen(Alias),
    /// No coins are found that the key of the validity check output owns.
    #[error(
        "no coins of a VCTx of alias \"{0}\" are found that are worth a fee: name an output that the \
         node's wallet does not find"
    )]
    NothingToSweep(Alias),
    /// A sweep is recorded, and the node has not shown it.
    #[cfg(feature = "node")]
    #[error(
        "the transaction that takes the coins out of the VCTx of alias \"{alias}\" is recorded, but the \
         node does not show it: {source}; it is sent again when the sweep is asked for again"
    )]
    SweepUnseen {
        /// The identity.
        alias: Alias,
        /// Why not.
        #[source]
        source: NodeError,
    },
    /// All miner ids of the identity are revoked, and a block has shown it.
    #[error("alias \"{0}\" is closed: all its miner ids are revoked")]
    Closed(Alias),
    /// What is deleted has to be revoked for good before.
    #[error("alias \"{0}\" is not closed: revoke it first")]
    NotClosed(Alias),
    /// What was asked for is there in the other generation of the protocol only.
    #[error("alias \"{alias}\" is of protocol {protocol}, which has no such thing")]
    OtherProtocol {
        /// The identity.
        alias: Alias,
        /// The generation that it is of.
        protocol: &'static str,
    },
    /// Another copy of the identity has gone further.
    #[error(
        "alias \"{0}\" is an older copy: the node knows a later key of it, or its end. \
         Go on with the newest copy of the data directory, or restore the newest backup"
    )]
    StaleCopy(Alias),
    /// Documents can announce one thing at a time.
    #[error(
        "{} of alias \"{alias}\" has not been seen in a block yet: \
         until then nothing else can be announced", announcement.in_words()
    )]
    Unseen {
        /// The identity.
        alias: Alias,
        /// What is announced.
        announcement: Announcement,
    },
    /// The operator publishes no data that a document could refer to.
    #[error("alias \"{0}\" has no data to refer to")]
    NoData(Alias),
    /// Miner ids cannot be revoked like this.
    #[error("miner id {miner_id} of alias \"{alias}\" cannot be revoked: {reason}")]
    NotRevocable {
        /// The identity.
        alias: Alias,
        /// The miner id.
        miner_id: PublicKey,
        /// Why not.
        reason: &'static str,
    },
    /// A key is not one of the identity's.
    #[error("{key} is no key of alias \"{alias}\"")]
    ForeignKey {
        /// The identity.
        alias: Alias,
        /// The key.
        key: PublicKey,
    },
    /// A revocation is recorded, and the node has not taken it.
    #[cfg(feature = "node")]
    #[error(
        "the revocation of alias \"{alias}\" is recorded, but the node was not told: {source}; \
         it is told as soon as it answers, and when the revocation is asked for again"
    )]
    RevocationUntold {
        /// The identity.
        alias: Alias,
        /// Why not.
        #[source]
        source: NodeError,
    },
    /// What the operator would add to documents cannot be added.
    #[error(transparent)]
    Operator(#[from] OperatorMembersError),
    /// An identity output cannot be added to a coinbase2.
    #[error(transparent)]
    Coinbase2(#[from] Coinbase2Error),
    /// A private key does not belong to the public key that is on record.
    #[error("key {0} in the keystore is not the one on record")]
    OtherKey(String),
    /// A key of that name, but of another content, is there already.
    #[error("key {0} is in the keystore already, with another content")]
    KeyTaken(String),
    /// A key in the keystore does not read as one.
    #[error("key {name} in the keystore: {source}")]
    BadKey {
        /// The key's name.
        name: String,
        /// What is wrong with it.
        #[source]
        source: KeyError,
    },
    /// A file of the older generator does not have the form it should have.
    #[error("cannot import {}: {reason}", path.display())]
    Import {
        /// The file or directory.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// No key could be made.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The keystore failed.
    #[error(transparent)]
    Keystore(#[from] KeystoreError),
    /// The identity changed while something else was done with it: it can be tried again.
    #[error("alias \"{alias}\" has changed meanwhile: {reason}")]
    Conflict {
        /// The identity.
        alias: Alias,
        /// What does not fit.
        reason: &'static str,
    },
    /// Revocation keys would be taken over, and there is no keystore for them.
    #[error("the home directory holds revocation keys, and no keystore is given for them")]
    NoRevocationKeystore,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The store failed while the change was committed: the change may have been made. Ask again
    /// what is there.
    #[error("{0}; the change may have been made all the same")]
    Unsettled(#[source] StoreError),
    /// The node cannot be reached, or refuses.
    #[cfg(feature = "node")]
    #[error(transparent)]
    Node(#[from] NodeError),
    /// The output to be spent is unknown, spent already, or not the identity's.
    #[error("{outpoint} cannot be spent: {reason}")]
    BadFunding {
        /// The output.
        outpoint: OutPoint,
        /// What is wrong with it.
        reason: &'static str,
    },
}

impl Error {
    /// Whether the reason is that there is no room left on the disk.
    pub fn is_out_of_space(&self) -> bool {
        match self {
            Self::Store(error) | Self::Unsettled(error) => error.is_out_of_space(),
            Self::Keystore(KeystoreError::File(error)) => error.is_out_of_space(),
            _ => false,
        }
    }
}

impl From<IdentityStoreError> for Error {
    fn from(error: IdentityStoreError) -> Self {
        match error {
            IdentityStoreError::Unknown(alias) => Self::UnknownAlias(alias.to_string()),
            IdentityStoreError::Exists(alias) => Self::AliasExists(alias),
            IdentityStoreError::Conflict { alias, reason } => Self::Conflict { alias, reason },
            IdentityStoreError::Store(error) => Self::Store(error),
        }
    }
}
