//! The tables of coins, transactions and payments, and the changes that commands make to them.
//!
//! A coin belongs to the balance while the transaction that made it is settled, and none that is
//! settled spends it. It can be spent while, besides, no transaction is in flight that spends it.

use std::collections::HashMap;
use std::time::Duration;

use bsv_store::StoreError;
use bsv_tx::{BlockHash, KeyError, MerkleBranch, OutPoint, Transaction, Txid};
use redb::{
    ReadOnlyTable, ReadTransaction, ReadableTable, Table, TableDefinition, WriteTransaction,
};
use sha2::{Digest, Sha256};

use super::tables::{
    INVOICE_PAID, INVOICE_PAYMENT_DISPLACED, OpenTables, Outcome, PAYMENT_CANCELLED,
    PAYMENT_DISPLACED, PAYMENT_REFUSED, PAYMENT_SETTLED, PAYMENT_STARTED, Route, invoice_row,
};
use crate::coin::{Chain, Coin, KeyPath, Spending, bucket, encoded_len};
use crate::dpp::PeerChannel;
use crate::idempotency::IdempotencyKey;
use crate::invoice::InvoiceState;
use crate::payment::{
    Begun, BlockPlace, Followed, FoundProof, IncomingPayment, IncomingState, NewIncoming,
    NewOutgoing, OutgoingPayment, OutgoingState, Proof, Purpose, Selection, TransactionState,
};
use crate::store::WalletStoreError;
use crate::time::Timestamp;

/// Number to transaction.
pub(super) const TRANSACTIONS: TableDefinition<'_, u64, TransactionRow> =
    TableDefinition::new("transactions");
/// Number of a transaction to its bytes.
pub(super) const RAW: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("raw transactions");
/// Number of the transaction that made a coin, and index of the output, to the coin.
pub(super) const COINS: TableDefinition<'_, (u64, u32), CoinRow> = TableDefinition::new("coins");
/// Bucket, and key of a coin that can be spent, to its amount. Within a bucket, coins that are made
/// later come later.
const SPENDABLE: TableDefinition<'_, (u8, u64, u32), u64> = TableDefinition::new("spendable");
/// Number of a transaction, and keys of the coins that it spends.
const SPENT: TableDefinition<'_, (u64, u64, u32), ()> = TableDefinition::new("spent");
/// Number of an invoice, and numbers of the transactions that pay it.
pub(super) const INCOMING: TableDefinition<'_, (u64, u64), ()> = TableDefinition::new("incoming");
/// Number of an invoice to the number of the transaction that is in flight for it.
pub(super) const IN_FLIGHT: TableDefinition<'_, u64, u64> = TableDefinition::new("in flight");
/// Number of an invoice to where its payer wants refunds.
pub(super) const REFUNDS: TableDefinition<'_, u64, &str> = TableDefinition::new("refunds");
/// Number to payment by the wallet.
pub(super) const OUTGOING: TableDefinition<'_, u64, OutgoingRow<'static>> =
    TableDefinition::new("outgoing");
/// Number of a payment by the wallet to what the payee is sent.
pub(super) const MESSAGES: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("messages");
/// Hash of a payment URL to the number of the last payment by the wallet to it.
pub(super) const OUTGOING_BY_URL: TableDefinition<'_, [u8; 32], u64> =
    TableDefinition::new("outgoing by url");
/// Number of a transaction that is to be looked after to the time until which that is done, or
/// [`FOR_EVER`].
pub(super) const FOLLOWED: TableDefinition<'_, u64, u64> = TableDefinition::new("followed");
const FOR_EVER: u64 = u64::MAX;
/// Number of a transaction, and numbers from 1 on, to proofs.
pub(super) const PROOFS: TableDefinition<'_, (u64, u32), ProofRow<'static>> =
    TableDefinition::new("proofs");
/// Height, and number of a transaction that is in a block there, to the hash of the block.
pub(super) const MINED: TableDefinition<'_, (u32, u64), [u8; 32]> = TableDefinition::new("mined");

/// Txid, purpose and number of the invoice or payment, state, satoshis, when it came, and height and
/// hash of its block.
pub(super) type TransactionRow = ([u8; 32], u8, u64, u8, u64, u64, Option<(u32, [u8; 32])>);
/// Satoshis, chain and index of the key, and the number of the transaction that spends it.
type CoinRow = (u64, u8, u32, Option<u64>);
/// Transaction, the one that cancels it, URL, satoshis, fee, state, when it began, when it expires,
/// memo, and the channel: host, path, id, token.
pub(super) type OutgoingRow<'a> =
    (u64, Option<u64>, &'a str, u64, u64, u8, u64, u64, &'a str, Option<ChannelRow<'a>>);
type ChannelRow<'a> = (&'a str, &'a str, &'a str, &'a str);
/// Height and hash of the block, when it was found, whether the payer has read it, and the branch.
pub(super) type ProofRow<'a> = (u32, [u8; 32], u64, bool, &'a [u8]);

/// The most coins that one transaction spends.
const MAX_INPUTS: usize = 500;
/// How many coins of a bucket are looked at to find one that fits best.
const MAX_COMPARED: usize = 64;
/// For how long a transaction is looked after that was given up, or whose place was taken: a day, in
/// which nodes bury or forget it.
const AFTERCARE: Duration = Duration::from_secs(24 * 60 * 60);
/// How many numbers of keys there are in a chain.
const MAX_CHANGE: u64 = (1 << 31) - 1;

pub(super) fn create_tables(transaction: &WriteTransaction) -> Result<(), StoreError> {
    MoneyTables::open(transaction).map(drop)
}

/// The tables, opened for a batch in which a command needs them.
pub(super) struct MoneyTables<'t> {
    transactions: Table<'t, u64, TransactionRow>,
    raw: Table<'t, u64, &'static [u8]>,
    coins: Table<'t, (u64, u32), CoinRow>,
    spendable: Table<'t, (u8, u64, u32), u64>,
    spent: Table<'t, (u64, u64, u32), ()>,
    incoming: Table<'t, (u64, u64), ()>,
    in_flight: Table<'t, u64, u64>,
    refunds: Table<'t, u64, &'static str>,
    outgoing: Table<'t, u64, OutgoingRow<'static>>,
    messages: Table<'t, u64, &'static [u8]>,
    outgoing_by_url: Table<'t, [u8; 32], u64>,
    followed: Table<'t, u64, u64>,
    proofs: Table<'t, (u64, u32), ProofRow<'static>>,
    mined: Table<'t, (u32, u64), [u8; 32]>,
}

impl<'t> MoneyTables<'t> {
    pub(super) fn open(transaction: &'t WriteTransaction) -> Result<Self, StoreError> {
        Ok(Self {
            transactions: transaction.open_table(TRANSACTIONS)?,
            raw: transaction.open_table(RAW)?,
            coins: transaction.open_table(COINS)?,
            spendable: transaction.open_table(SPENDABLE)?,
            spent: transaction.open_table(SPENT)?,
            incoming: transaction.open_table(INCOMING)?,
            in_flight: transaction.open_table(IN_FLIGHT)?,
            refunds: transaction.open_table(REFUNDS)?,
            outgoing: transaction.open_table(OUTGOING)?,
            messages: transaction.open_table(MESSAGES)?,
            outgoing_by_url: transaction.open_table(OUTGOING_BY_URL)?,
            followed: transaction.open_table(FOLLOWED)?,
            proofs: transaction.open_table(PROOFS)?,
            mined: transaction.open_table(MINED)?,
        })
    }

    pub(super) fn in_flight(&self, invoice: u64) -> Result<Option<u64>, StoreError> {
        Ok(self.in_flight.get(invoice)?.map(|row| row.value()))
    }

    fn transaction(&self, number: u64) -> Result<TransactionRecord, StoreError> {
        let row = self.transactions.get(number)?;
        let row = row.ok_or_else(|| StoreError::damaged("a transaction is missing"))?;
        TransactionRecord::from_row(number, row.value())
    }

    fn put_transaction(&mut self, record: &TransactionRecord) -> Result<(), StoreError> {
        self.transactions.insert(record.number, record.to_row())?;
        Ok(())
    }

    fn set_state(&mut self, number: u64, state: TransactionState) -> Result<(), StoreError> {
        let mut record = self.transaction(number)?;
        record.state = state;
        self.put_transaction(&record)
    }

    fn coin_row(&self, (maker, vout): (u64, u32)) -> Result<CoinRow, StoreError> {
        let row = self.coins.get((maker, vout))?;
        Ok(row.ok_or_else(|| StoreError::damaged("a coin is missing"))?.value())
    }

    /// The keys of the coins that a transaction makes.
    fn made_by(&self, number: u64) -> Result<Vec<(u64, u32)>, StoreError> {
        let rows = self.coins.range((number, 0)..=(number, u32::MAX))?;
        rows.map(|row| Ok(row?.0.value())).collect()
    }

    /// The keys of the coins that a transaction spends.
    fn spent_by(&self, number: u64) -> Result<Vec<(u64, u32)>, StoreError> {
        let rows = self.spent.range((number, 0, 0)..=(number, u64::MAX, u32::MAX))?;
        rows.map(|row| {
            let (_, maker, vout) = row?.0.value();
            Ok((maker, vout))
        })
        .collect()
    }

    fn is_settled(&self, number: u64) -> Result<bool, StoreError> {
        Ok(self.transaction(number)?.state == TransactionState::Settled)
    }

    /// Makes a coin spendable, or not.
    fn set_spendable(&mut self, key: (u64, u32), spendable: bool) -> Result<(), StoreError> {
        let (satoshis, ..) = self.coin_row(key)?;
        let place = (bucket(satoshis), key.0, key.1);
        if spendable {
            self.spendable.insert(place, satoshis)?;
        } else {
            self.spendable.remove(place)?;
        }
        Ok(())
    }

    /// Notes which transaction spends a coin.
    fn set_spender(&mut self, key: (u64, u32), spender: Option<u64>) -> Result<(), StoreError> {
        let (satoshis, chain, index, _) = self.coin_row(key)?;
        self.coins.insert(key, (satoshis, chain, index, spender))?;
        Ok(())
    }

    /// Reserves the coins that a transaction spends.
    fn reserve(&mut self, number: u64, keys: &[(u64, u32)]) -> Result<(), StoreError> {
        for key in keys {
            self.set_spendable(*key, false)?;
            self.set_spender(*key, Some(number))?;
            self.spent.insert((number, key.0, key.1), ())?;
        }
        Ok(())
    }

    /// Lets go of the coins that a transaction has reserved.
    fn release(&mut self, number: u64) -> Result<(), StoreError> {
        for key in self.spent_by(number)? {
            if self.coin_row(key)?.3 == Some(number) {
                self.set_spender(key, None)?;
                let is_settled = self.is_settled(key.0)?;
                self.set_spendable(key, is_settled)?;
            }
        }
        Ok(())
    }

    /// The coins of these keys.
    fn coins(&self, keys: &[(u64, u32)]) -> Result<Vec<Coin>, StoreError> {
        keys.iter()
            .map(|key| {
                let (satoshis, chain, index, _) = self.coin_row(*key)?;
                let txid = self.transaction(key.0)?.txid;
                let key_path = KeyPath { chain: chain_of(chain)?, index };
                Ok(Coin { outpoint: OutPoint { txid, vout: key.1 }, satoshis, key: key_path })
            })
            .collect()
    }

    /// Chooses coins: one if one is enough, the smallest that fits as far as few are compared; else as
    /// few as possible, the largest first. If `first` is given, it is among them. Answers what can be
    /// spent if that is too little.
    fn choose(
        &self,
        spending: &Spending,
        first: Option<(u64, u32)>,
    ) -> Result<Result<Chosen, u64>, StoreError> {
        let mut keys = Vec::new();
        let mut total = 0_u64;
        let one = first.map_or_else(|| self.one_coin(spending.needed(1)), |key| Ok(Some(key)))?;
        if let Some(key) = one {
            keys.push(key);
            (total, ..) = self.coin_row(key)?;
            if total >= spending.needed(1) {
                return Ok(Ok((keys, total)));
            }
        }
        for row in self.spendable.iter()?.rev().take(MAX_INPUTS) {
            let (place, satoshis) = row?;
            let (_, maker, vout) = place.value();
            if first == Some((maker, vout)) {
                continue;
            }
            keys.push((maker, vout));
            total = total.saturating_add(satoshis.value());
            if total >= spending.needed(keys.len()) {
                return Ok(Ok((keys, total)));
            }
        }
        Ok(Err(total))
    }

    /// A coin of at least this amount.
    fn one_coin(&self, needed: u64) -> Result<Option<(u64, u32)>, StoreError> {
        let own_bucket = bucket(needed);
        let mut best: Option<(u64, (u64, u32))> = None;
        let own = (own_bucket, 0, 0)..=(own_bucket, u64::MAX, u32::MAX);
        for row in self.spendable.range(own)?.take(MAX_COMPARED) {
            let (place, satoshis) = row?;
            let ((_, maker, vout), satoshis) = (place.value(), satoshis.value());
            if satoshis >= needed && best.is_none_or(|(least, _)| satoshis < least) {
                best = Some((satoshis, (maker, vout)));
            }
        }
        if let Some((_, key)) = best {
            return Ok(Some(key));
        }
        let larger = self.spendable.range((own_bucket + 1, 0, 0)..)?.next().transpose()?;
        Ok(larger.map(|(place, _)| {
            let (_, maker, vout) = place.value();
            (maker, vout)
        }))
    }

    /// A coin that the last payment to this URL was to spend. Of that payment, which was in vain, and
    /// another one that spends the coin, the payee can have one mined only.
    fn coin_to_repeat(&self, url: &str) -> Result<Option<(u64, u32)>, StoreError> {
        let Some(last) = self.outgoing_by_url.get(url_hash(url))? else { return Ok(None) };
        let missing = || StoreError::damaged("a payment is missing");
        let transaction = self.outgoing(last.value())?.ok_or_else(missing)?.transaction;
        for key in self.in_order(transaction)? {
            let (satoshis, ..) = self.coin_row(key)?;
            if self.spendable.get((bucket(satoshis), key.0, key.1))?.is_some() {
                return Ok(Some(key));
            }
        }
        Ok(None)
    }

    /// The keys of the coins that a transaction spends, in the order of its inputs.
    fn in_order(&self, number: u64) -> Result<Vec<(u64, u32)>, StoreError> {
        let missing = || StoreError::damaged("a transaction is missing");
        let bytes = self.raw.get(number)?.ok_or_else(missing)?;
        let transaction = Transaction::from_bytes(bytes.value())
            .map_err(|error| StoreError::damaged(format!("a transaction: {error}")))?;
        let mut keys = HashMap::new();
        for key in self.spent_by(number)? {
            let outpoint = OutPoint { txid: self.transaction(key.0)?.txid, vout: key.1 };
            keys.insert(outpoint, key);
        }
        let inputs = transaction.inputs.iter();
        Ok(inputs.filter_map(|input| keys.get(&input.previous_output).copied()).collect())
    }

    /// Whether a transaction cannot be mined any more that spends coins: others have taken one of them.
    fn is_void(&self, number: u64) -> Result<bool, StoreError> {
        let keys = self.spent_by(number)?;
        for key in &keys {
            let spender = self.coin_row(*key)?.3;
            let spender = spender.map(|spender| self.transaction(spender)).transpose()?;
            if spender.is_some_and(|it| it.block.is_some()) || !self.is_settled(key.0)? {
                return Ok(true);
            }
        }
        Ok(keys.is_empty())
    }

    fn outgoing(&self, number: u64) -> Result<Option<OutgoingRecord>, StoreError> {
        let row = self.outgoing.get(number)?;
        row.map(|row| OutgoingRecord::from_row(number, row.value())).transpose()
    }

    fn put_outgoing(&mut self, record: &OutgoingRecord) -> Result<(), StoreError> {
        self.outgoing.insert(record.number, record.to_row())?;
        Ok(())
    }

    fn payment(&self, record: OutgoingRecord) -> Result<OutgoingPayment, StoreError> {
        let transaction = self.transaction(record.transaction)?;
        Ok(record.into_payment(&transaction))
    }

    /// The payment by the wallet of this number, unless it was in vain.
    fn lasting_payment(&self, number: u64) -> Result<Option<OutgoingPayment>, StoreError> {
        let missing = || StoreError::damaged("a payment is missing");
        let record = self.outgoing(number)?.ok_or_else(missing)?;
        record.state.lasts().then(|| self.payment(record)).transpose()
    }

    /// The payment of an invoice with this transaction.
    fn payment_with(
        &self,
        invoice: u64,
        txid: &Txid,
    ) -> Result<Option<TransactionRecord>, StoreError> {
        for row in self.incoming.range((invoice, 0)..=(invoice, u64::MAX))? {
            let record = self.transaction(row?.0.value().1)?;
            if record.txid == *txid {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    fn is_paid(&self, invoice: u64) -> Result<bool, StoreError> {
        for row in self.incoming.range((invoice, 0)..=(invoice, u64::MAX))? {
            if self.is_settled(row?.0.value().1)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The keys of chosen coins, and what they are worth together.
type Chosen = (Vec<(u64, u32)>, u64);

/// The tables of which single rows are read.
pub(super) struct ReadMoney {
    transactions: ReadOnlyTable<u64, TransactionRow>,
    pub(super) raw: ReadOnlyTable<u64, &'static [u8]>,
    pub(super) incoming: ReadOnlyTable<(u64, u64), ()>,
    pub(super) outgoing: ReadOnlyTable<u64, OutgoingRow<'static>>,
    pub(super) messages: ReadOnlyTable<u64, &'static [u8]>,
    pub(super) outgoing_by_url: ReadOnlyTable<[u8; 32], u64>,
    pub(super) followed: ReadOnlyTable<u64, u64>,
    pub(super) proofs: ReadOnlyTable<(u64, u32), ProofRow<'static>>,
}

impl ReadMoney {
    pub(super) fn open(transaction: &ReadTransaction) -> Result<Self, StoreError> {
        Ok(Self {
            transactions: transaction.open_table(TRANSACTIONS)?,
            raw: transaction.open_table(RAW)?,
            incoming: transaction.open_table(INCOMING)?,
            outgoing: transaction.open_table(OUTGOING)?,
            messages: transaction.open_table(MESSAGES)?,
            outgoing_by_url: transaction.open_table(OUTGOING_BY_URL)?,
            followed: transaction.open_table(FOLLOWED)?,
            proofs: transaction.open_table(PROOFS)?,
        })
    }

    pub(super) fn transaction(&self, number: u64) -> Result<TransactionRecord, StoreError> {
        let row = self.transactions.get(number)?;
        let row = row.ok_or_else(|| StoreError::damaged("a transaction is missing"))?;
        TransactionRecord::from_row(number, row.value())
    }

    pub(super) fn payment(&self, number: u64) -> Result<Option<OutgoingPayment>, StoreError> {
        let row = self.outgoing.get(number)?;
        row.map(|row| self.with_transaction(number, row.value())).transpose()
    }

    pub(super) fn with_transaction(
        &self,
        number: u64,
        row: OutgoingRow<'_>,
    ) -> Result<OutgoingPayment, StoreError> {
        let record = OutgoingRecord::from_row(number, row)?;
        let transaction = self.transaction(record.transaction)?;
        Ok(record.into_payment(&transaction))
    }
}

/// A row of [`TRANSACTIONS`].
pub(super) struct TransactionRecord {
    number: u64,
    txid: Txid,
    purpose: Purpose,
    state: TransactionState,
    /// What it pays to the invoice, or to the payee, or brings back.
    satoshis: u64,
    at: Timestamp,
    block: Option<BlockPlace>,
}

impl TransactionRecord {
    pub(super) fn from_row(number: u64, row: TransactionRow) -> Result<Self, StoreError> {
        let (txid, purpose, subject, state, satoshis, at, block) = row;
        Ok(Self {
            number,
            txid: Txid::from_bytes(txid),
            purpose: match purpose {
                1 => Purpose::Incoming(subject),
                2 => Purpose::Outgoing(subject),
                3 => Purpose::Cancellation(subject),
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

    fn to_row(&self) -> TransactionRow {
        let (purpose, subject) = match self.purpose {
            Purpose::Incoming(invoice) => (1, invoice),
            Purpose::Outgoing(payment) => (2, payment),
            Purpose::Cancellation(payment) => (3, payment),
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

    pub(super) fn followed(&self, until: u64) -> Followed {
        let Self { number, txid, purpose, state, .. } = *self;
        let until = (until != FOR_EVER).then(|| Timestamp::from_micros(until));
        Followed { number, txid, purpose, state, until }
    }

    pub(super) fn incoming(&self) -> IncomingPayment {
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

/// A row of [`OUTGOING`].
pub(super) struct OutgoingRecord {
    number: u64,
    pub(super) transaction: u64,
    cancellation: Option<u64>,
    url: String,
    satoshis: u64,
    fee: u64,
    state: OutgoingState,
    created_at: Timestamp,
    expires_at: Timestamp,
    memo: String,
    channel: Option<PeerChannel>,
}

impl OutgoingRecord {
    pub(super) fn from_row(number: u64, row: OutgoingRow<'_>) -> Result<Self, StoreError> {
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

    fn to_row(&self) -> OutgoingRow<'_> {
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

    pub(super) fn into_payment(self, transaction: &TransactionRecord) -> OutgoingPayment {
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

fn chain_of(chain: u8) -> Result<Chain, StoreError> {
    [Chain::Receive, Chain::Change]
        .into_iter()
        .find(|known| *known as u8 == chain)
        .ok_or_else(|| StoreError::damaged("a coin of an unknown chain"))
}

pub(super) fn url_hash(url: &str) -> [u8; 32] {
    Sha256::digest(url).into()
}

pub(super) fn found_proof(
    sequence: u32,
    (height, hash, found_at, is_read, branch): ProofRow<'_>,
) -> Result<FoundProof, StoreError> {
    let branch = MerkleBranch::from_bytes(branch)
        .map_err(|error| StoreError::damaged(format!("a Merkle branch: {error}")))?;
    let block = BlockPlace { hash: BlockHash::from_bytes(hash), height };
    let found_at = Timestamp::from_micros(found_at);
    Ok(FoundProof { sequence, proof: Proof { block, branch }, found_at, is_read })
}

impl OpenTables<'_> {
    /// Notes a payment that is going to be broadcast.
    pub(super) fn begin_payment(&mut self, new: NewIncoming) -> Outcome<Begun> {
        let NewIncoming { invoice: number, transaction, vout, refund_to, now } = new;
        let invoice = match self.invoice(number)? {
            Ok(Some(invoice)) if invoice.deleted_at.is_none() => invoice,
            Ok(_) => return Ok(Err(WalletStoreError::UnknownInvoice(number))),
            Err(refusal) => return Ok(Err(refusal)),
        };
        let at = self.next_event_at(now);
        let txid = transaction.txid();
        let before = self.money()?.payment_with(number, &txid)?;
        match before.as_ref().map(|record| (record.state, record.incoming())) {
            Some((TransactionState::Settled, payment)) => return Ok(Ok(Begun::Before(payment))),
            Some((TransactionState::InFlight, payment)) => {
                return Ok(Ok(Begun::InFlight(payment)));
            }
            _ => {}
        }
        if invoice.in_flight {
            return Ok(Err(WalletStoreError::InFlight(number)));
        }
        match invoice.state(at) {
            InvoiceState::Pending => {}
            InvoiceState::Paid => return Ok(Err(WalletStoreError::Paid(number))),
            InvoiceState::Expired => return Ok(Err(WalletStoreError::Expired(number))),
        }
        let purpose = Purpose::Incoming(number);
        let record = match before {
            Some(displaced) => self.money()?.begin_again(displaced, at)?,
            None => self.insert_transaction(&transaction, purpose, invoice.satoshis, at)?,
        };
        let index = u32::try_from(number).expect("keys are derived for the numbers of invoices");
        let money = self.money()?;
        money.incoming.insert((number, record.number), ())?;
        money.in_flight.insert(number, record.number)?;
        if let Some(refund_to) = &refund_to {
            money.refunds.insert(number, refund_to.as_str())?;
        }
        let coin = (invoice.satoshis, Chain::Receive as u8, index, None);
        money.coins.insert((record.number, vout), coin)?;
        self.expiries.remove((invoice.expires_at.as_micros(), number))?;
        Ok(Ok(Begun::InFlight(record.incoming())))
    }

    /// Notes that the network refuses a payment that is in flight: the invoice can be paid again.
    pub(super) fn refuse_payment(&mut self, number: u64) -> Outcome<()> {
        let money = self.money()?;
        if money.transactions.get(number)?.is_none() {
            return Ok(Err(WalletStoreError::UnknownTransaction(number)));
        }
        let record = money.transaction(number)?;
        let (TransactionState::InFlight, Purpose::Incoming(invoice)) =
            (record.state, record.purpose)
        else {
            return Ok(Err(WalletStoreError::NotInFlight(number)));
        };
        if money.was_displaced(number)? {
            money.set_state(number, TransactionState::Displaced)?;
        } else {
            for key in money.made_by(number)? {
                money.coins.remove(key)?;
            }
            money.transactions.remove(number)?;
            money.raw.remove(number)?;
            money.followed.remove(number)?;
            money.incoming.remove((invoice, number))?;
        }
        money.in_flight.remove(invoice)?;
        money.refunds.remove(invoice)?;
        self.make_payable(invoice)?;
        Ok(Ok(()))
    }

    /// Lets an invoice expire again that nothing pays.
    fn make_payable(&mut self, number: u64) -> Result<(), StoreError> {
        let invoice = self.invoice(number)?.map_err(StoreError::damaged)?;
        if let Some(invoice) = invoice.filter(|invoice| invoice.deleted_at.is_none()) {
            self.expiries.insert((invoice.expires_at.as_micros(), number), ())?;
        }
        Ok(())
    }

    /// The payment that a request stands for, if there is one that was not in vain: the one that was
    /// made first with its key, or the last one to its URL, which its key stands for from now on.
    pub(super) fn payment_before(
        &mut self,
        url: &str,
        idempotency: Option<&IdempotencyKey>,
        now: Timestamp,
    ) -> Outcome<Option<OutgoingPayment>> {
        if let Some((number, is_same_request)) = self.remembered(Route::Pay, idempotency, now)?
            && let Some(payment) = self.money()?.lasting_payment(number)?
        {
            return Ok(match is_same_request {
                true => Ok(Some(payment)),
                false => Err(WalletStoreError::KeyReused),
            });
        }
        let money = self.money()?;
        let last = money.outgoing_by_url.get(url_hash(url))?.map(|row| row.value());
        let Some(number) = last else { return Ok(Ok(None)) };
        let payment = money.lasting_payment(number)?;
        if payment.is_some() {
            self.remember(Route::Pay, idempotency.cloned(), number, now)?;
        }
        Ok(Ok(payment))
    }

    /// Chooses coins for a payment, and reserves them for the transaction that `build` makes of them,
    /// with the message to the payee.
    pub(super) fn reserve_coins(
        &mut self,
        new: &NewOutgoing,
        build: impl FnOnce(&Selection) -> Result<(Transaction, Vec<u8>), KeyError>,
    ) -> Outcome<OutgoingPayment> {
        match self.payment_before(&new.url, new.idempotency.as_ref(), new.now)? {
            Ok(Some(payment)) => return Ok(Ok(payment)),
            Ok(None) => {}
            Err(refusal) => return Ok(Err(refusal)),
        }
        let at = self.next_event_at(new.now);
        let money = self.money()?;
        let satoshis = new.outputs.iter().map(|output| output.satoshis).sum();
        let output_bytes = encoded_len(&new.outputs);
        let spending = Spending { satoshis, output_bytes, fee_rate: new.fee_rate };
        let first = money.coin_to_repeat(&new.url)?;
        let (keys, total) = match money.choose(&spending, first)? {
            Ok(chosen) => chosen,
            Err(spendable) => {
                let needed = spending.needed(1);
                return Ok(Err(WalletStoreError::InsufficientFunds { needed, spendable }));
            }
        };
        let coins = money.coins(&keys)?;
        let change = spending.change(keys.len(), total);
        let change = match self.change_key(change) {
            Ok(change) => change,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let selection = Selection { coins, change };
        let (transaction, message) = match build(&selection) {
            Ok(built) => built,
            Err(error) => return Ok(Err(error.into())),
        };
        if change.is_some() {
            self.figures.last_change += 1;
        }
        self.figures.last_payment += 1;
        let number = self.figures.last_payment;
        let record =
            self.insert_transaction(&transaction, Purpose::Outgoing(number), satoshis, at)?;
        let change_vout = transaction.outputs.len() - 1;
        let money = self.money()?;
        money.insert_change(record.number, change_vout, change)?;
        money.reserve(record.number, &keys)?;
        let payment = OutgoingRecord {
            number,
            transaction: record.number,
            cancellation: None,
            url: new.url.clone(),
            satoshis,
            fee: total - satoshis - change.map_or(0, |(satoshis, _)| satoshis),
            state: OutgoingState::Open,
            created_at: at,
            expires_at: new.expires_at,
            memo: String::new(),
            channel: None,
        };
        money.put_outgoing(&payment)?;
        money.messages.insert(number, message.as_slice())?;
        money.outgoing_by_url.insert(url_hash(&new.url), number)?;
        self.append_event(at, PAYMENT_STARTED, number)?;
        self.remember(Route::Pay, new.idempotency.clone(), number, new.now)?;
        Ok(Ok(payment.into_payment(&record)))
    }

    fn change_key(&self, change: Option<u64>) -> Result<Option<(u64, u32)>, WalletStoreError> {
        let Some(satoshis) = change else { return Ok(None) };
        let index = self.figures.last_change;
        let index = u32::try_from(index).ok().filter(|index| u64::from(*index) < MAX_CHANGE);
        Ok(Some((satoshis, index.ok_or(WalletStoreError::Full(MAX_CHANGE))?)))
    }

    /// Notes that the payee has accepted a payment, or that the network knows it.
    pub(super) fn settle_outgoing(
        &mut self,
        number: u64,
        answer: Option<(String, Option<PeerChannel>)>,
        now: Timestamp,
    ) -> Outcome<OutgoingPayment> {
        let money = self.money()?;
        let Some(mut record) = money.outgoing(number)? else {
            return Ok(Err(WalletStoreError::UnknownPayment(number)));
        };
        if let Some((memo, channel)) = answer {
            record.memo = memo;
            record.channel = channel;
            money.put_outgoing(&record)?;
        }
        let transaction = record.transaction;
        self.settle(transaction, now)?;
        let money = self.money()?;
        let record = money.outgoing(number)?.expect("it was just there");
        Ok(Ok(money.payment(record)?))
    }

    /// Notes that the payee refuses a payment, which the network does not know either.
    pub(super) fn refuse_outgoing(
        &mut self,
        number: u64,
        reason: &str,
        now: Timestamp,
    ) -> Outcome<OutgoingPayment> {
        let at = self.next_event_at(now);
        let money = self.money()?;
        let Some(mut record) = money.outgoing(number)? else {
            return Ok(Err(WalletStoreError::UnknownPayment(number)));
        };
        if record.state != OutgoingState::Open {
            return Ok(Ok(money.payment(record)?));
        }
        record.state = OutgoingState::Refused;
        record.memo = reason.to_owned();
        money.put_outgoing(&record)?;
        money.drop_transaction(record.transaction, at)?;
        money.messages.remove(number)?;
        let payment = money.payment(record)?;
        self.append_event(at, PAYMENT_REFUSED, number)?;
        Ok(Ok(payment))
    }

    /// Notes the transaction that `build` makes of one of the coins of an open payment: it takes the
    /// coin back. Answers the number of that transaction.
    pub(super) fn begin_cancellation(
        &mut self,
        number: u64,
        spending: &Spending,
        now: Timestamp,
        build: impl FnOnce(&Selection) -> Result<Transaction, KeyError>,
    ) -> Outcome<u64> {
        let at = self.next_event_at(now);
        let money = self.money()?;
        let Some(mut record) = money.outgoing(number)? else {
            return Ok(Err(WalletStoreError::UnknownPayment(number)));
        };
        match (record.state, record.cancellation) {
            (OutgoingState::Cancelling, Some(cancellation)) => return Ok(Ok(cancellation)),
            (OutgoingState::Open, _) => {}
            (state, _) => return Ok(Err(WalletStoreError::NotOpen(number, state))),
        }
        let keys = money.spent_by(record.transaction)?;
        let mut coins = money.coins(&keys)?;
        let dearest = (0..coins.len()).max_by_key(|index| coins[*index].satoshis);
        let index = dearest.ok_or_else(|| StoreError::damaged("a payment without coins"))?;
        let (key, coin) = (keys[index], coins.swap_remove(index));
        let left = spending.change(1, coin.satoshis).unwrap_or(1);
        let change = match self.change_key(Some(left)) {
            Ok(change) => change,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let transaction = match build(&Selection { coins: vec![coin], change }) {
            Ok(transaction) => transaction,
            Err(error) => return Ok(Err(error.into())),
        };
        self.figures.last_change += 1;
        let cancellation =
            self.insert_transaction(&transaction, Purpose::Cancellation(number), left, at)?;
        let money = self.money()?;
        money.insert_change(cancellation.number, 0, change)?;
        // Until one of the two wins, the coin stays reserved for the payment.
        money.spent.insert((cancellation.number, key.0, key.1), ())?;
        record.state = OutgoingState::Cancelling;
        record.cancellation = Some(cancellation.number);
        money.put_outgoing(&record)?;
        Ok(Ok(cancellation.number))
    }

    /// Runs a change of the transaction of this number, if there is one.
    pub(super) fn of_transaction(
        &mut self,
        number: u64,
        change: impl FnOnce(&mut Self) -> Result<(), StoreError>,
    ) -> Outcome<()> {
        if self.money()?.transactions.get(number)?.is_none() {
            return Ok(Err(WalletStoreError::UnknownTransaction(number)));
        }
        change(self).map(Ok)
    }

    /// Notes that the network has taken a transaction of the wallet, whatever was known of it before:
    /// invoices are paid by it, coins come and go, and what contradicts it gives way.
    pub(super) fn settle(&mut self, number: u64, now: Timestamp) -> Result<(), StoreError> {
        let at = self.next_event_at(now);
        let record = self.money()?.transaction(number)?;
        if record.state == TransactionState::Settled {
            return Ok(());
        }
        if let Purpose::Cancellation(payment) = record.purpose {
            // Before the payment gives way, which is displaced otherwise.
            self.set_outgoing_state(payment, OutgoingState::Cancelled)?;
        }
        for key in self.money()?.spent_by(number)? {
            if let Some(other) = self.money()?.coin_row(key)?.3.filter(|other| *other != number) {
                self.give_way(other, at)?;
            }
            let money = self.money()?;
            money.set_spendable(key, false)?;
            money.set_spender(key, Some(number))?;
            if money.is_settled(key.0)? {
                let (satoshis, ..) = money.coin_row(key)?;
                self.lower_balance(satoshis)?;
            }
        }
        let money = self.money()?;
        money.set_state(number, TransactionState::Settled)?;
        if money.followed.get(number)?.is_none_or(|until| until.value() != FOR_EVER) {
            money.followed.insert(number, FOR_EVER)?;
        }
        for key in money.made_by(number)? {
            let money = self.money()?;
            let (satoshis, _, _, spender) = money.coin_row(key)?;
            money.set_spendable(key, spender.is_none())?;
            let is_spent = spender.map(|spender| money.is_settled(spender)).transpose()?;
            if is_spent != Some(true) {
                self.raise_balance(satoshis)?;
            }
        }
        match record.purpose {
            Purpose::Incoming(invoice) => self.note_paid(invoice, &record, at),
            Purpose::Outgoing(payment) => {
                self.set_outgoing_state(payment, OutgoingState::Settled)?;
                self.give_up_cancellation(payment, at)?;
                self.append_event(at, PAYMENT_SETTLED, payment)
            }
            Purpose::Cancellation(payment) => self.append_event(at, PAYMENT_CANCELLED, payment),
        }
    }

    fn note_paid(
        &mut self,
        number: u64,
        record: &TransactionRecord,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let missing = || StoreError::damaged("a paid invoice is missing");
        let money = self.money()?;
        if money.in_flight(number)? == Some(record.number) {
            money.in_flight.remove(number)?;
        }
        let invoice = self.invoice(number)?.map_err(StoreError::damaged)?;
        let mut invoice = invoice.ok_or_else(missing)?;
        if invoice.payment_received_at.is_some() || invoice.deleted_at.is_some() {
            // Another transaction has paid it since this one was displaced.
            return Ok(());
        }
        self.expiries.remove((invoice.expires_at.as_micros(), number))?;
        invoice.payment_received_at = Some(at);
        self.invoices.insert(number, invoice_row(&invoice))?;
        self.append_event(at, INVOICE_PAID, number)
    }

    fn set_outgoing_state(&mut self, number: u64, state: OutgoingState) -> Result<(), StoreError> {
        let money = self.money()?;
        let missing = || StoreError::damaged("a payment is missing");
        let mut record = money.outgoing(number)?.ok_or_else(missing)?;
        record.state = state;
        money.put_outgoing(&record)?;
        if !state.is_open() {
            money.messages.remove(number)?;
        }
        Ok(())
    }

    /// The coin that was to be taken back is spent.
    fn give_up_cancellation(&mut self, payment: u64, at: Timestamp) -> Result<(), StoreError> {
        let money = self.money()?;
        let cancellation = money.outgoing(payment)?.and_then(|record| record.cancellation);
        if let Some(number) = cancellation
            && money.transaction(number)?.state == TransactionState::InFlight
        {
            money.drop_transaction(number, at)?;
        }
        Ok(())
    }

    /// Notes that another transaction has taken the place of one of the wallet: what it did is undone,
    /// after what the wallet's later transactions did with its coins.
    pub(super) fn displace(&mut self, number: u64, now: Timestamp) -> Result<(), StoreError> {
        self.give_way(number, self.next_event_at(now))
    }

    fn give_way(&mut self, number: u64, at: Timestamp) -> Result<(), StoreError> {
        // Each is undone after all that spend its coins.
        let mut path = vec![number];
        while let Some(&number) = path.last() {
            let money = self.money()?;
            let mut spender = None;
            for key in money.made_by(number)? {
                spender = spender.or(money.coin_row(key)?.3);
            }
            match spender {
                Some(spender) => path.push(spender),
                None => {
                    self.undo(number, at)?;
                    path.pop();
                }
            }
        }
        Ok(())
    }

    /// Undoes what a transaction did whose coins nothing spends.
    fn undo(&mut self, number: u64, at: Timestamp) -> Result<(), StoreError> {
        let money = self.money()?;
        let mut record = money.transaction(number)?;
        let was_settled = record.state == TransactionState::Settled;
        if !was_settled && record.state != TransactionState::InFlight {
            return Ok(());
        }
        for key in money.made_by(number)? {
            let money = self.money()?;
            money.set_spendable(key, false)?;
            let (satoshis, ..) = money.coin_row(key)?;
            if was_settled {
                self.lower_balance(satoshis)?;
            }
        }
        let money = self.money()?;
        for key in money.spent_by(number)? {
            let money = self.money()?;
            let (satoshis, _, _, spender) = money.coin_row(key)?;
            if was_settled && spender == Some(number) && money.is_settled(key.0)? {
                self.raise_balance(satoshis)?;
            }
        }
        let money = self.money()?;
        money.release(number)?;
        if let Some(place) = record.block.take() {
            money.mined.remove((place.height, number))?;
        }
        record.state = TransactionState::Displaced;
        money.put_transaction(&record)?;
        money.followed.insert(number, at.after(AFTERCARE).as_micros())?;
        match record.purpose {
            Purpose::Incoming(invoice) => {
                if money.in_flight(invoice)? == Some(number) {
                    money.in_flight.remove(invoice)?;
                }
                match money.is_paid(invoice)? {
                    true => Ok(()),
                    false => self.note_unpaid(invoice, at),
                }
            }
            Purpose::Outgoing(payment) => {
                let state = money.outgoing(payment)?.map(|record| record.state);
                if state == Some(OutgoingState::Cancelled) {
                    return Ok(());
                }
                self.set_outgoing_state(payment, OutgoingState::Displaced)?;
                self.give_up_cancellation(payment, at)?;
                self.append_event(at, PAYMENT_DISPLACED, payment)
            }
            // What takes its place says what becomes of the payment.
            Purpose::Cancellation(_) => Ok(()),
        }
    }

    fn note_unpaid(&mut self, number: u64, at: Timestamp) -> Result<(), StoreError> {
        let missing = || StoreError::damaged("a paid invoice is missing");
        self.money()?.refunds.remove(number)?;
        let invoice = self.invoice(number)?.map_err(StoreError::damaged)?;
        let mut invoice = invoice.ok_or_else(missing)?;
        invoice.payment_received_at = None;
        self.invoices.insert(number, invoice_row(&invoice))?;
        self.make_payable(number)?;
        self.append_event(at, INVOICE_PAYMENT_DISPLACED, number)
    }

    /// Notes that a transaction is in a block of the main chain.
    pub(super) fn prove(
        &mut self,
        number: u64,
        proof: &Proof,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.settle(number, now)?;
        let at = self.next_event_at(now);
        let money = self.money()?;
        let mut record = money.transaction(number)?;
        let Proof { block, branch } = proof;
        if record.block == Some(*block) {
            return Ok(());
        }
        let mut bytes = Vec::new();
        branch.encode(&mut bytes);
        let last = money.proofs.range((number, 0)..=(number, u32::MAX))?.next_back();
        let last = last.transpose()?.map_or(0, |(key, _)| key.value().1);
        let row = (block.height, *block.hash.as_bytes(), at.as_micros(), false, bytes.as_slice());
        money.proofs.insert((number, last + 1), row)?;
        if let Some(old) = record.block.replace(*block) {
            money.mined.remove((old.height, number))?;
        }
        money.put_transaction(&record)?;
        money.mined.insert((block.height, number), *block.hash.as_bytes())?;
        money.followed.remove(number)?;
        Ok(())
    }

    /// Notes that a block is no longer in the main chain: what it held has to be proved again.
    pub(super) fn forget_block(&mut self, block: &BlockPlace) -> Result<(), StoreError> {
        let money = self.money()?;
        let height = block.height;
        let rows = money.mined.range((height, 0)..=(height, u64::MAX))?;
        let mut gone = Vec::new();
        for row in rows {
            let (key, hash) = row?;
            if hash.value() == *block.hash.as_bytes() {
                gone.push(key.value().1);
            }
        }
        for number in &gone {
            money.mined.remove((height, *number))?;
            let mut record = money.transaction(*number)?;
            record.block = None;
            money.put_transaction(&record)?;
            money.followed.insert(*number, FOR_EVER)?;
        }
        Ok(())
    }

    /// Looks after a transaction no longer whose time is over, or for another while if it could still be
    /// mined.
    pub(super) fn unfollow(&mut self, number: u64) -> Result<(), StoreError> {
        let money = self.money()?;
        let until = money.followed.get(number)?.map(|until| until.value());
        let Some(until) = until.filter(|until| *until != FOR_EVER) else { return Ok(()) };
        if money.is_void(number)? {
            money.followed.remove(number)?;
        } else {
            let until = Timestamp::from_micros(until).after(AFTERCARE);
            money.followed.insert(number, until.as_micros())?;
        }
        Ok(())
    }

    /// Notes whether the payer has read a proof. Answers whether there is such a proof.
    pub(super) fn mark_read(
        &mut self,
        number: u64,
        sequence: u32,
        is_read: bool,
    ) -> Result<bool, StoreError> {
        let proofs = &mut self.money()?.proofs;
        let Some((height, hash, at, branch)) = proofs.get((number, sequence))?.map(|row| {
            let (height, hash, at, _, branch) = row.value();
            (height, hash, at, branch.to_owned())
        }) else {
            return Ok(false);
        };
        proofs.insert((number, sequence), (height, hash, at, is_read, branch.as_slice()))?;
        Ok(true)
    }

    fn insert_transaction(
        &mut self,
        transaction: &Transaction,
        purpose: Purpose,
        satoshis: u64,
        at: Timestamp,
    ) -> Result<TransactionRecord, StoreError> {
        self.figures.last_transaction += 1;
        let record = TransactionRecord {
            number: self.figures.last_transaction,
            txid: transaction.txid(),
            purpose,
            state: TransactionState::InFlight,
            satoshis,
            at,
            block: None,
        };
        let money = self.money()?;
        money.put_transaction(&record)?;
        money.raw.insert(record.number, transaction.to_bytes().as_slice())?;
        money.followed.insert(record.number, FOR_EVER)?;
        Ok(record)
    }

    fn raise_balance(&mut self, satoshis: u64) -> Result<(), StoreError> {
        let sum = self.figures.balance.checked_add(satoshis);
        self.figures.balance =
            sum.ok_or_else(|| StoreError::damaged("the balance is too large"))?;
        Ok(())
    }

    fn lower_balance(&mut self, satoshis: u64) -> Result<(), StoreError> {
        let rest = self.figures.balance.checked_sub(satoshis);
        self.figures.balance =
            rest.ok_or_else(|| StoreError::damaged("the balance is too small"))?;
        Ok(())
    }
}

impl MoneyTables<'_> {
    fn insert_change(
        &mut self,
        number: u64,
        vout: usize,
        change: Option<(u64, u32)>,
    ) -> Result<(), StoreError> {
        let Some((satoshis, index)) = change else { return Ok(()) };
        let vout = u32::try_from(vout).expect("a payment has few outputs");
        self.coins.insert((number, vout), (satoshis, Chain::Change as u8, index, None))?;
        Ok(())
    }

    /// Puts a transaction in flight once more that was displaced. It is not looked after for ever, by
    /// which it can be told that it was displaced.
    fn begin_again(
        &mut self,
        mut record: TransactionRecord,
        at: Timestamp,
    ) -> Result<TransactionRecord, StoreError> {
        record.state = TransactionState::InFlight;
        self.put_transaction(&record)?;
        self.followed.insert(record.number, at.after(AFTERCARE).as_micros())?;
        Ok(record)
    }

    fn was_displaced(&self, in_flight: u64) -> Result<bool, StoreError> {
        Ok(self.followed.get(in_flight)?.is_some_and(|until| until.value() != FOR_EVER))
    }

    /// Gives up a transaction that the network does not know; that is looked after for a while longer.
    fn drop_transaction(&mut self, number: u64, at: Timestamp) -> Result<(), StoreError> {
        self.release(number)?;
        self.set_state(number, TransactionState::Dropped)?;
        self.followed.insert(number, at.after(AFTERCARE).as_micros())?;
        Ok(())
    }
}
