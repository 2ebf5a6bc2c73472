//! What is asked of a source of the network, and what it answers.

use bsv_tx::{BlockHash, ExtendedTransaction, Transaction, Txid};
use thiserror::Error;

use crate::error::NodeError;
use crate::rpc::{MempoolEntry, TransactionPlace};

/// Why a source does not answer a question.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The node does not answer.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// Only a node can answer the question.
    #[error("this needs a node")]
    NeedsNode,
    /// Services take a transaction only together with the outputs that it spends.
    #[error("the outputs that the transaction {0} spends are not known")]
    NeedsSpentOutputs(Txid),
}

/// A transaction that is offered to the network.
#[derive(Clone, Debug)]
pub enum Package<'t> {
    /// The transaction alone. A node knows what it spends.
    Plain(&'t Transaction),
    /// The transaction with what it spends, for any source.
    Extended(Box<ExtendedPackage>),
}

/// A transaction that is offered to services, which do not know what it spends.
#[derive(Clone, Debug)]
pub struct ExtendedPackage {
    /// Its ancestors that are not proven to be in blocks, parents before their children.
    pub ancestors: Vec<ExtendedTransaction>,
    /// The transaction.
    pub transaction: ExtendedTransaction,
    /// Whether everything that it and its ancestors spend is proven to come from transactions in
    /// blocks.
    pub is_proven: bool,
    /// The height of the newest block that makes a coin which it or its ancestors spend, as far as is
    /// known.
    pub newest_block: Option<u32>,
}

/// Where the network has a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Nobody shows it. It may be in a block off the main chain, or time-locked.
    Nowhere,
    /// It can be mined.
    Unmined,
    /// In this block of the main chain.
    Mined(BlockHash),
    /// Another transaction spends a coin of it, and only a block decides between the two.
    Disputed,
}

/// What became of a transaction that was offered to the network once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Offered {
    /// It can be mined.
    Unmined(Sight),
    /// It is in a block of the main chain.
    Mined,
    /// The network has not refused it, but does not show it as one that can be mined at once. It
    /// may be mined, time-locked, or not validated yet.
    NotShown,
    /// The network refuses it. It may have taken it before.
    Refused(Verdict),
    /// Another transaction spends a coin of it, and only a block decides between the two.
    Disputed,
    /// Nobody says what became of it.
    Unknown,
}

/// Where the network shows a transaction that was offered to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shown {
    /// It can be mined.
    Unmined(Sight),
    /// It is in a block of the main chain.
    Mined,
    /// The network does not have it, and refuses it.
    Refused(Verdict),
    /// Another transaction spends a coin of it, and only a block decides between the two.
    Disputed {
        /// Whether every service refuses the transaction. Otherwise one may have it.
        is_refused: bool,
    },
    /// The network has heard of it but does not show it. It may be time-locked, or not validated
    /// yet.
    Nowhere,
}

/// An unmined transaction as a source sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sight {
    /// What its fee depends on. Services have no common mempool: each transaction pays for itself, so
    /// the entry has no parents.
    pub entry: MempoolEntry,
    /// What stands behind it.
    pub evidence: Evidence,
}

/// Why the network refuses a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The words of the source.
    pub reason: String,
    /// Whether the transaction itself breaks a rule. Otherwise it conflicts with another one, its
    /// inputs are missing, it has too many unmined ancestors, or it is already known.
    pub is_for_itself: bool,
    /// Whether a higher fee would do, as far as the source tells. A node does not.
    pub is_fee_too_low: bool,
}

/// What stands behind the words of a source about a transaction that no block holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// A node has judged the transaction, and holds no other one that spends the same coins.
    Judged,
    /// Services say that the network has it, and the coins that it spends come from transactions in
    /// blocks. Another transaction may spend the same coins.
    Word,
    /// Services say that the network has it. It is not known where the coins that it spends come from,
    /// or what the newest block is. It counts by this as little as without it.
    Hearsay,
}

/// What the network knows about the coins of a transaction that it does not show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The transaction may still be mined.
    Unclear,
    /// The network does not know a coin that it spends.
    Orphaned,
    /// Another transaction in the main chain has spent one of its coins.
    Displaced,
}

impl From<TransactionPlace> for Place {
    fn from(place: TransactionPlace) -> Self {
        match place {
            TransactionPlace::Nowhere => Self::Nowhere,
            TransactionPlace::Mempool => Self::Unmined,
            TransactionPlace::Block(block) => Self::Mined(block),
        }
    }
}

impl Package<'_> {
    /// The transaction.
    pub fn transaction(&self) -> &Transaction {
        match self {
            Self::Plain(transaction) => transaction,
            Self::Extended(package) => package.transaction.transaction(),
        }
    }
}
