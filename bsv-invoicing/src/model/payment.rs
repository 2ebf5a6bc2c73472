//! Payments to the wallet and by it.

use std::fmt;

use bsv_tx::{BlockHash, MerkleBranch, Transaction, TxOut, Txid};

use serde::{Deserialize, Deserializer, Serialize};

use crate::model::coin::{Coin, KeyPath};
use crate::model::idempotency::IdempotencyKey;
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

/// A payment towards an invoice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IncomingPayment {
    /// The number of its transaction among all that the wallet has to do with, from 1 on.
    pub number: u64,
    /// The transaction.
    pub txid: Txid,
    /// What it pays to the invoice.
    pub satoshis: u64,
    /// Where it stands.
    pub state: IncomingState,
    /// When it arrived.
    pub received_at: Timestamp,
    /// The block it is in, once there is a proof of that.
    pub block: Option<BlockPlace>,
}

/// Where a payment to the wallet stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IncomingState {
    /// It is not known yet whether the network takes it.
    InFlight,
    /// The network has taken it.
    Accepted,
    /// It is in a block.
    Mined,
    /// Another transaction has taken its place.
    Displaced,
}

impl IncomingState {
    /// The name that the API uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::InFlight => "in-flight",
            Self::Accepted => "accepted",
            Self::Mined => "mined",
            Self::Displaced => "displaced",
        }
    }
}

/// A payment by the wallet to somebody's payment URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutgoingPayment {
    /// Its number, from 1 on.
    pub number: u64,
    /// The transaction.
    pub txid: Txid,
    /// The payment URL.
    pub url: String,
    /// What the payee gets.
    pub satoshis: u64,
    /// What the miner gets.
    pub fee: u64,
    /// Where it stands.
    pub state: OutgoingState,
    /// When it began.
    pub created_at: Timestamp,
    /// Until when the payee takes it.
    pub expires_at: Timestamp,
    /// What the payee says.
    pub memo: String,
    /// Where the payee offers the proof.
    pub channel: Option<PeerChannel>,
    /// The block it is in, once there is a proof of that.
    pub block: Option<BlockPlace>,
}

/// Where a payment by the wallet stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OutgoingState {
    /// The payee's answer is not known.
    Open,
    /// One of its coins is being spent otherwise.
    Cancelling,
    /// The payee has accepted it, or the network knows it.
    Settled,
    /// The payee has refused it.
    Refused,
    /// One of its coins was spent otherwise.
    Cancelled,
    /// Another transaction has taken its place.
    Displaced,
}

impl OutgoingState {
    /// The name that the API uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Cancelling => "cancelling",
            Self::Settled => "settled",
            Self::Refused => "refused",
            Self::Cancelled => "cancelled",
            Self::Displaced => "displaced",
        }
    }

    /// Whether its outcome is not known.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Open | Self::Cancelling)
    }

    /// Whether the payee is paid, or may be.
    pub(crate) fn lasts(self) -> bool {
        self.is_open() || self == Self::Settled
    }
}

/// Where a payee leaves messages for a payer, to be had with
/// `GET {scheme}://{host}{path}/api/v1/channel/{channel_id}` and the token. `Debug` does not show the
/// token.
#[derive(Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct PeerChannel {
    /// The host, and the port where it is not the scheme's own.
    pub host: String,
    /// What goes before `/api`; mostly empty.
    #[serde(default, deserialize_with = "text_or_null")]
    pub path: String,
    /// The channel.
    pub channel_id: String,
    /// What `Authorization: Bearer` is to show.
    pub token: String,
}

impl fmt::Debug for PeerChannel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, path, channel_id, token: _ } = self;
        write!(f, "PeerChannel({host}{path}, {channel_id})")
    }
}

fn text_or_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// A payment that has arrived and is to be broadcast.
#[derive(Clone, Debug)]
pub struct NewIncoming {
    /// The number of the invoice.
    pub invoice: u64,
    /// The transaction.
    pub transaction: Transaction,
    /// Which of its outputs pays the invoice.
    pub vout: u32,
    /// Where the payer wants refunds.
    pub refund_to: Option<String>,
    /// The time.
    pub now: Timestamp,
}

/// What became of a payment that was to begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Begun {
    /// It has begun, or is under way: it has to be broadcast.
    InFlight(IncomingPayment),
    /// It was accepted before.
    Before(IncomingPayment),
}

/// A payment that is to be made.
#[derive(Clone, Debug)]
pub struct NewOutgoing {
    /// The payment URL.
    pub url: String,
    /// What the payee asks for.
    pub outputs: Vec<TxOut>,
    /// The fee rate, in satoshis per 1000 bytes.
    pub fee_rate: u64,
    /// Until when the payee takes it.
    pub expires_at: Timestamp,
    /// The time.
    pub now: Timestamp,
    /// If this is known already, the payment that was made first is answered.
    pub idempotency: Option<IdempotencyKey>,
}

/// The coins that a transaction spends, and what comes back of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// The coins.
    pub coins: Vec<Coin>,
    /// What comes back, and the number of its key among those for change.
    pub change: Option<(u64, u32)>,
}

/// A transaction of the wallet that has to be looked after: it is not known yet whether the network
/// takes it, or there is no proof yet that it is in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Followed {
    /// The number of the transaction.
    pub number: u64,
    /// The transaction.
    pub txid: Txid,
    /// What it is for.
    pub purpose: Purpose,
    /// Where it stands.
    pub state: TransactionState,
    /// Until when it is looked after, if not for as long as it takes.
    pub until: Option<Timestamp>,
}

/// What a transaction is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// It pays the invoice of this number.
    Incoming(u64),
    /// It is the payment by the wallet of this number.
    Outgoing(u64),
    /// It takes a coin back from the payment by the wallet of this number.
    Cancellation(u64),
    /// It was found in the chain with the words of the wallet alone, so that nobody knows what for.
    Recovered,
}

/// A transaction that was found with the words of the wallet alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// Its number: those that are found are numbered from 1 on without a gap.
    pub number: u64,
    /// The transaction.
    pub transaction: Transaction,
    /// That it is in a block; none while it is in the mempool.
    pub proof: Option<Proof>,
    /// Its outputs that are the wallet's, and their keys.
    pub coins: Vec<(u32, KeyPath)>,
    /// The numbers of transactions, and indexes of outputs, of the wallet's coins that it spends.
    pub spends: Vec<(u64, u32)>,
    /// When it was mined, or found.
    pub at: Timestamp,
}

/// Which numbers of keys are not to be given out, since somebody may know the keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsedNumbers {
    /// Those of invoices up to this.
    pub invoices: u32,
    /// Those of users up to this.
    pub users: u32,
    /// How many of change.
    pub change: u32,
}

/// Where a transaction stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TransactionState {
    /// It is not known whether the network takes it.
    InFlight,
    /// The network has taken it.
    Settled,
    /// Another transaction has taken its place.
    Displaced,
    /// It was given up before the network took it.
    Dropped,
}
