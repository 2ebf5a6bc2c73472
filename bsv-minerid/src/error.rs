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

/// Why an operation on miner identities failed. A failed operation changes nothing, except in the
/// cases that say otherwise.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The alias does not exist.
    #[error("alias \"{0}\" does not exist")]
    UnknownAlias(String),
    /// The alias already exists.
    #[error("alias \"{0}\" exists already")]
    AliasExists(Alias),
    /// An identity with this alias was deleted. The alias cannot be used again.
    #[error("alias \"{0}\" was deleted and cannot be used again: choose another name")]
    AliasDeleted(Alias),
    /// The identity exists but cannot be used.
    #[error("alias \"{alias}\" cannot be used: {reason}")]
    Broken {
        /// The identity.
        alias: Alias,
        /// What is missing or damaged.
        reason: String,
    },
    /// The identity signs only documents.
    #[error("blind signing is off for alias \"{0}\"")]
    BlindSigningOff(Alias),
    /// A key cannot sign.
    #[error(transparent)]
    Signer(#[from] SignerError),
    /// The height is not one that a block can have: 0, or above 2,147,483,647.
    #[error("the height must be from 1 to 2147483647")]
    InvalidHeight,
    /// The identity has no validity check output, which documents need.
    #[error("alias \"{0}\" has no VCTx")]
    NoVctx(Alias),
    /// The validity check output is spent, which revokes the identity.
    #[error("alias \"{alias}\" is revoked: its VCTx {outpoint} is spent")]
    Revoked {
        /// The identity.
        alias: Alias,
        /// The spent output.
        outpoint: OutPoint,
    },
    /// The identity is of generation 0.2. Spending its validity check output would revoke the
    /// identity.
    #[error(
        "alias \"{0}\" is of protocol 0.2 and needs its VCTx: spending it would revoke the identity"
    )]
    VctxNeeded(Alias),
    /// No block of the main chain shows a document of generation 1.0 of the identity.
    #[error(
        "no block shows alias \"{0}\" with a document of protocol 1.0 yet, so others still use its documents of \
         0.2. Mine a block that carries it first"
    )]
    UpgradeUnseen(Alias),
    /// The node finds no coins of the validity check output's key.
    #[error(
        "found no coins of a VCTx of alias \"{0}\" that are worth a fee: name an output if the node's wallet \
         does not find it"
    )]
    NothingToSweep(Alias),
    /// A sweep is recorded, but the node does not show its transaction.
    #[cfg(feature = "node")]
    #[error(
        "the transaction that takes the coins out of the VCTx of alias \"{alias}\" is recorded, but the \
         node does not show it: {source}; repeat the sweep to send it again"
    )]
    SweepUnseen {
        /// The identity.
        alias: Alias,
        /// The node's error.
        #[source]
        source: NodeError,
    },
    /// All miner ids of the identity are revoked, and a block shows the revocation.
    #[error("alias \"{0}\" is closed: all its miner ids are revoked")]
    Closed(Alias),
    /// Only a revoked identity can be deleted.
    #[error("alias \"{0}\" is not closed: revoke it first")]
    NotClosed(Alias),
    /// The operation exists only in the other generation of the protocol.
    #[error("alias \"{alias}\" is of protocol {protocol}, which does not support this")]
    OtherProtocol {
        /// The identity.
        alias: Alias,
        /// The protocol of the identity.
        protocol: &'static str,
    },
    /// Another copy of the identity is newer than this one.
    #[error(
        "alias \"{0}\" is an older copy: the node knows a later key or the revocation of this identity. \
         Use the newest copy of the data directory, or restore the newest backup"
    )]
    StaleCopy(Alias),
    /// Another announcement has to be seen in a block first.
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
    /// No block is known to have shown the current key, and the node cannot tell now.
    #[cfg(feature = "node")]
    #[error(
        "alias \"{alias}\" cannot be rotated now: no block is known to have shown its current key, and the \
         node cannot tell: {reason}. Rotate again when the node answers, or force the rotation: it skips the \
         current key"
    )]
    NodeNeeded {
        /// The identity.
        alias: Alias,
        /// Why the node cannot tell.
        reason: String,
    },
    /// The node has read all blocks and knows no key of an identity that blocks have shown
    /// according to its record.
    #[cfg(feature = "node")]
    #[error(
        "the node has read all blocks and knows no key of alias \"{0}\", although blocks have shown it. Compare the \
         node with another one first: its data may be an old copy. If no node knows a key, force the rotation: \
         documents then begin with the new key"
    )]
    UnknownToNode(Alias),
    /// The operator has set no data for documents to refer to.
    #[error("alias \"{0}\" has no data to refer to")]
    NoData(Alias),
    /// These miner ids cannot be revoked.
    #[error("miner id {miner_id} of alias \"{alias}\" cannot be revoked: {reason}")]
    NotRevocable {
        /// The identity.
        alias: Alias,
        /// The miner id.
        miner_id: PublicKey,
        /// Why not.
        reason: &'static str,
    },
    /// The key does not belong to the identity.
    #[error("{key} is no key of alias \"{alias}\"")]
    ForeignKey {
        /// The identity.
        alias: Alias,
        /// The key.
        key: PublicKey,
    },
    /// A revocation is recorded, but the node has not accepted it.
    #[cfg(feature = "node")]
    #[error(
        "the revocation of alias \"{alias}\" is recorded, but the node was not told: {source}; \
         the node is told as soon as it answers, or when the revocation is repeated"
    )]
    RevocationUntold {
        /// The identity.
        alias: Alias,
        /// The node's error.
        #[source]
        source: NodeError,
    },
    /// The operator's members cannot be added to documents.
    #[error(transparent)]
    Operator(#[from] OperatorMembersError),
    /// An identity output cannot be added to a coinbase2.
    #[error(transparent)]
    Coinbase2(#[from] Coinbase2Error),
    /// A private key does not match the recorded public key.
    #[error("key {0} in the keystore is not the one on record")]
    OtherKey(String),
    /// The keystore already has a key with this name and other contents.
    #[error("key {0} is already in the keystore, with other contents")]
    KeyTaken(String),
    /// The contents of a key file are not a key.
    #[error("key {name} in the keystore: {source}")]
    BadKey {
        /// The key's name.
        name: String,
        /// What is wrong with the key.
        #[source]
        source: KeyError,
    },
    /// A file of the older generator has an unexpected format.
    #[error("cannot import {}: {reason}", path.display())]
    Import {
        /// The file or directory.
        path: PathBuf,
        /// What is wrong with the file or directory.
        reason: String,
    },
    /// No key could be made.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The keystore failed.
    #[error(transparent)]
    Keystore(#[from] KeystoreError),
    /// The identity changed during the operation. Try again.
    #[error("alias \"{alias}\" has changed meanwhile: {reason}")]
    Conflict {
        /// The identity.
        alias: Alias,
        /// What does not fit.
        reason: &'static str,
    },
    /// The import includes revocation keys, but there is no keystore for them.
    #[error("the home directory holds revocation keys, but no keystore is given for them")]
    NoRevocationKeystore,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The store failed during the commit. The change may have been made: read the identity to find
    /// out.
    #[error("{0}; the change may have been made nevertheless")]
    Unsettled(#[source] StoreError),
    /// The node cannot be reached, or refuses.
    #[cfg(feature = "node")]
    #[error(transparent)]
    Node(#[from] NodeError),
    /// The output to spend is unknown, already spent, or not the identity's.
    #[error("{outpoint} cannot be spent: {reason}")]
    BadFunding {
        /// The output.
        outpoint: OutPoint,
        /// What is wrong with the output.
        reason: &'static str,
    },
}

impl Error {
    /// Whether the cause is a lack of room on the disk.
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
