//! Transactions that the wallet has to do with: where each stands, and what follows from that.

use bsv_tx::{BlockHash, MerkleBranch, Transaction, Txid};

use crate::model::time::Timestamp;

/// The block that a transaction is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockPlace {
    /// Its hash.
    pub hash: BlockHash,
    /// Its height.
    pub height: u32,
}

/// That a transaction is in a block of the main chain, checked against the block's header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// The block.
    pub block: BlockPlace,
    /// The way from the transaction to the Merkle root of the block.
    pub branch: MerkleBranch,
}

/// A proof as the payer can read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundProof {
    /// Its number among the transaction's proofs, from 1 on.
    pub sequence: u32,
    /// The proof.
    pub proof: Proof,
    /// When it was found.
    pub found_at: Timestamp,
    /// Whether the payer has read it.
    pub is_read: bool,
}

/// What a transaction is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// It was offered as a payment of the invoice of this number.
    Incoming(u64),
    /// It is the payment by the wallet of this number.
    Outgoing(u64),
    /// It takes a coin back from the payment by the wallet of this number.
    Cancellation(u64),
    /// The network showed it, and nobody had offered it.
    Found,
    /// It is the coinbase transaction of a block: what it makes can be spent [`COINBASE_MATURITY`] blocks later.
    Coinbase,
}

/// How many blocks later than the block of a coinbase transaction one may be that spends what it makes.
pub const COINBASE_MATURITY: u32 = 100;

/// Where a transaction stands. The table in the documentation of the ledger says what each state means
/// for receipts and coins, and what leads from one to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionState {
    /// Its bytes are stored, and the network has not shown it.
    Offered,
    /// The payee has agreed to this payment by the wallet, and the network has not shown it.
    Unseen,
    /// It is in the mempool, but its fee may be too low for it to be mined.
    Waiting,
    /// It is in the mempool, and its fee is sufficient.
    Seen,
    /// It is in this block of the main chain.
    Mined(BlockPlace),
    /// The network showed it once. Now it is neither in the mempool nor in a block, and nothing in the
    /// chain spends what it spends.
    Contested {
        /// Whether an event has told so.
        told: bool,
    },
    /// Another transaction in the chain spends what it spends.
    Displaced,
    /// The network refused it for itself at several tips in a row; or had shown it, and refused it when it was
    /// offered once more.
    Invalid,
    /// It was not taken: by the network, or by the payee.
    Refused,
    /// One of its coins was spent otherwise, on purpose.
    Cancelled,
}

impl TransactionState {
    /// Whether its receipts count to the balance, and to what is paid of invoices.
    pub fn counts(self) -> bool {
        matches!(self, Self::Seen | Self::Mined(_) | Self::Contested { .. })
    }

    /// Whether its receipts can be spent.
    pub fn can_be_spent(self) -> bool {
        matches!(self, Self::Seen | Self::Mined(_))
    }

    /// Whether the coins that it spends are spent.
    pub fn spends(self) -> bool {
        self == Self::Waiting || self.counts()
    }

    /// Whether its bytes may be on their way, and the network has not shown it yet.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Offered | Self::Unseen)
    }

    /// Whether it is taken for lost. The network's word still brings it back.
    pub fn is_lost(self) -> bool {
        matches!(self, Self::Displaced | Self::Invalid | Self::Refused | Self::Cancelled)
    }

    /// The block that it is in.
    pub fn block(self) -> Option<BlockPlace> {
        match self {
            Self::Mined(block) => Some(block),
            _ => None,
        }
    }
}

/// A transaction's id and bytes, as they are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedTransaction {
    /// Its id.
    pub txid: Txid,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

impl From<&Transaction> for EncodedTransaction {
    fn from(transaction: &Transaction) -> Self {
        Self { txid: transaction.txid(), bytes: transaction.to_bytes() }
    }
}

impl Purpose {
    /// Whether it came from outside: this wallet has not made it.
    pub fn is_from_outside(self) -> bool {
        matches!(self, Self::Incoming(_) | Self::Found | Self::Coinbase)
    }
}

/// What is known of a transaction, besides its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransactionRecord {
    /// The transaction.
    pub txid: Txid,
    /// What it is for.
    pub purpose: Purpose,
    /// Where it stands.
    pub state: TransactionState,
    /// Whether the network has shown it at any time.
    pub was_seen: bool,
    /// What it pays to scripts of the wallet, or to the payee, in satoshis.
    pub satoshis: u64,
    /// When it came, or was made.
    pub at: Timestamp,
}

impl TransactionRecord {
    /// Whether it keeps others from spending the coins that it spends.
    pub fn holds_coins(&self) -> bool {
        let is_payment = matches!(self.purpose, Purpose::Outgoing(_));
        self.state.spends() || (is_payment && self.state.is_open())
    }
}

/// Until when a transaction is looked after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FollowedUntil {
    /// This moment.
    Time(Timestamp),
    /// A block holds it.
    Mined,
}

/// A transaction of the wallet that has to be looked after: it is not known yet whether the network
/// takes it, or there is no proof yet that it is in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Followed {
    /// The number of the transaction.
    pub number: u64,
    /// The transaction.
    pub record: TransactionRecord,
    /// Until when it is looked after.
    pub until: FollowedUntil,
}
