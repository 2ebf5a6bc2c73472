use bsv_store::StoreError;
use bsv_tx::{BlockHash, MerkleBranch, Txid};
use sha2::{Digest, Sha256};

use super::{FOR_EVER, OutgoingRow, ProofRow, TransactionRow};
use crate::dpp::PeerChannel;
use crate::model::coin::Chain;
use crate::model::payment::{
    BlockPlace, Followed, FoundProof, IncomingPayment, IncomingState, OutgoingPayment,
    OutgoingState, Proof, Purpose, TransactionState,
};
use crate::model::time::Timestamp;

/// A row of [`TRANSACTIONS`](super::TRANSACTIONS).
pub(in crate::store::redb) struct TransactionRecord {
    pub(super) number: u64,
    pub(super) txid: Txid,
    pub(super) purpose: Purpose,
    pub(super) state: TransactionState,
    /// What it pays to the invoice, or to the payee, or brings back.
    pub(super) satoshis: u64,
    pub(super) at: Timestamp,
    pub(super) block: Option<BlockPlace>,
}

impl TransactionRecord {
    pub(in crate::store::redb) fn from_row(
        number: u64,
        row: TransactionRow,
    ) -> Result<Self, StoreError> {
        let (txid, purpose, subject, state, satoshis, at, block) = row;
        Ok(Self {
            number,
            txid: Txid::from_bytes(txid),
            purpose: match purpose {
                1 => Purpose::Incoming(subject),
                2 => Purpose::Outgoing(subject),
                3 => Purpose::Cancellation(subject),
                4 => Purpose::Recovered,
                _ => return Err(StoreError::damaged("a transaction of an unknown purpose")),
            },
            state: match state {
                1 => TransactionState::InFlight,
                2 => TransactionState::Settled,
                3 => TransactionState::Displaced,
                4 => TransactionState::Dropped,
                _ => return Err(StoreError::damaged("a transaction in an unknown state")),
            },
            satoshis,
            at: Timestamp::from_micros(at),
            block: block
                .map(|(height, hash)| BlockPlace { hash: BlockHash::from_bytes(hash), height }),
        })
    }

    pub(super) fn to_row(&self) -> TransactionRow {
        let (purpose, subject) = match self.purpose {
            Purpose::Incoming(invoice) => (1, invoice),
            Purpose::Outgoing(payment) => (2, payment),
            Purpose::Cancellation(payment) => (3, payment),
            Purpose::Recovered => (4, 0),
        };
        let state = match self.state {
            TransactionState::InFlight => 1,
            TransactionState::Settled => 2,
            TransactionState::Displaced => 3,
            TransactionState::Dropped => 4,
        };
        let block = self.block.map(|place| (place.height, *place.hash.as_bytes()));
        let at = self.at.as_micros();
        (*self.txid.as_bytes(), purpose, subject, state, self.satoshis, at, block)
    }

    pub(in crate::store::redb) fn followed(&self, until: u64) -> Followed {
        let Self { number, txid, purpose, state, .. } = *self;
        let until = (until != FOR_EVER).then(|| Timestamp::from_micros(until));
        Followed { number, txid, purpose, state, until }
    }

    pub(in crate::store::redb) fn incoming(&self) -> IncomingPayment {
        IncomingPayment {
            number: self.number,
            txid: self.txid,
            satoshis: self.satoshis,
            state: match (self.state, self.block) {
                (TransactionState::InFlight, _) => IncomingState::InFlight,
                (TransactionState::Settled, None) => IncomingState::Accepted,
                (TransactionState::Settled, Some(_)) => IncomingState::Mined,
                (TransactionState::Displaced | TransactionState::Dropped, _) => {
                    IncomingState::Displaced
                }
            },
            received_at: self.at,
            block: self.block,
        }
    }
}

/// A row of [`OUTGOING`](super::OUTGOING).
pub(in crate::store::redb) struct OutgoingRecord {
    pub(super) number: u64,
    pub(in crate::store::redb) transaction: u64,
    pub(super) cancellation: Option<u64>,
    pub(super) url: String,
    pub(super) satoshis: u64,
    pub(super) fee: u64,
    pub(super) state: OutgoingState,
    pub(super) created_at: Timestamp,
    pub(super) expires_at: Timestamp,
    pub(super) memo: String,
    pub(super) channel: Option<PeerChannel>,
}

impl OutgoingRecord {
    pub(in crate::store::redb) fn from_row(
        number: u64,
        row: OutgoingRow<'_>,
    ) -> Result<Self, StoreError> {
        let (
            transaction,
            cancellation,
            url,
            satoshis,
            fee,
            state,
            created_at,
            expires_at,
            memo,
            channel,
        ) = row;
        Ok(Self {
            number,
            transaction,
            cancellation,
            url: url.to_owned(),
            satoshis,
            fee,
            state: OUTGOING_STATES
                .into_iter()
                .find(|known| *known as u8 == state)
                .ok_or_else(|| StoreError::damaged("a payment in an unknown state"))?,
            created_at: Timestamp::from_micros(created_at),
            expires_at: Timestamp::from_micros(expires_at),
            memo: memo.to_owned(),
            channel: channel.map(|(host, path, id, token)| PeerChannel {
                host: host.to_owned(),
                path: path.to_owned(),
                channel_id: id.to_owned(),
                token: token.to_owned(),
            }),
        })
    }

    pub(super) fn to_row(&self) -> OutgoingRow<'_> {
        let channel = self.channel.as_ref();
        let channel = channel.map(|PeerChannel { host, path, channel_id, token }| {
            (host.as_str(), path.as_str(), channel_id.as_str(), token.as_str())
        });
        (
            self.transaction,
            self.cancellation,
            &self.url,
            self.satoshis,
            self.fee,
            self.state as u8,
            self.created_at.as_micros(),
            self.expires_at.as_micros(),
            &self.memo,
            channel,
        )
    }

    pub(in crate::store::redb) fn into_payment(
        self,
        transaction: &TransactionRecord,
    ) -> OutgoingPayment {
        OutgoingPayment {
            number: self.number,
            txid: transaction.txid,
            url: self.url,
            satoshis: self.satoshis,
            fee: self.fee,
            state: self.state,
            created_at: self.created_at,
            expires_at: self.expires_at,
            memo: self.memo,
            channel: self.channel,
            block: transaction.block,
        }
    }
}

const OUTGOING_STATES: [OutgoingState; 6] = [
    OutgoingState::Open,
    OutgoingState::Cancelling,
    OutgoingState::Settled,
    OutgoingState::Refused,
    OutgoingState::Cancelled,
    OutgoingState::Displaced,
];

pub(super) fn chain_of(chain: u8) -> Result<Chain, StoreError> {
    [Chain::Receive, Chain::Change]
        .into_iter()
        .find(|known| *known as u8 == chain)
        .ok_or_else(|| StoreError::damaged("a coin of an unknown chain"))
}

pub(in crate::store::redb) fn url_hash(url: &str) -> [u8; 32] {
    Sha256::digest(url).into()
}

pub(in crate::store::redb) fn found_proof(
    sequence: u32,
    (height, hash, found_at, is_read, branch): ProofRow<'_>,
) -> Result<FoundProof, StoreError> {
    let branch = MerkleBranch::from_bytes(branch)
        .map_err(|error| StoreError::damaged(format!("a Merkle branch: {error}")))?;
    let block = BlockPlace { hash: BlockHash::from_bytes(hash), height };
    let found_at = Timestamp::from_micros(found_at);
    Ok(FoundProof { sequence, proof: Proof { block, branch }, found_at, is_read })
}
