//! The tables of coins, transactions and payments. [`records`] reads and writes their rows,
//! [`changes`] are what commands do to them.
//!
//! A coin belongs to the balance while the transaction that made it is settled, and none that is
//! settled spends it. It can be spent while, besides, no transaction is in flight that spends it.

mod changes;
mod ledger;
mod records;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bsv_store::{LazyReadTable, LazyTable, StoreError};
use bsv_tx::{OutPoint, Transaction, Txid};
use redb::{ReadTransaction, ReadableTable, TableDefinition, WriteTransaction};

pub(super) use self::ledger::read_ledger;
use self::records::{OutgoingRecord, TransactionRecord, chain_of};
pub(super) use self::records::{found_proof, url_hash};
use crate::model::coin::{Coin, KeyPath, Spending, bucket};
use crate::model::payment::{BlockPlace, OutgoingPayment, TransactionState};

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
/// Height, and number of a transaction that is in a block there. In which one, the transaction tells.
pub(super) const MINED: TableDefinition<'_, (u32, u64), ()> = TableDefinition::new("mined at");
/// The same with the hash of the block, as versions 3 and 4 kept it.
const MINED_WITH_HASHES: TableDefinition<'_, (u32, u64), [u8; 32]> = TableDefinition::new("mined");

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
    transaction.open_table(TRANSACTIONS)?;
    transaction.open_table(RAW)?;
    transaction.open_table(COINS)?;
    transaction.open_table(SPENDABLE)?;
    transaction.open_table(SPENT)?;
    transaction.open_table(INCOMING)?;
    transaction.open_table(IN_FLIGHT)?;
    transaction.open_table(REFUNDS)?;
    transaction.open_table(OUTGOING)?;
    transaction.open_table(MESSAGES)?;
    transaction.open_table(OUTGOING_BY_URL)?;
    transaction.open_table(FOLLOWED)?;
    transaction.open_table(PROOFS)?;
    transaction.open_table(MINED_WITH_HASHES)?;
    Ok(())
}

pub(super) fn forget_hashes_of_mined(transaction: &WriteTransaction) -> Result<(), StoreError> {
    let mut mined = transaction.open_table(MINED)?;
    for row in transaction.open_table(MINED_WITH_HASHES)?.iter()? {
        mined.insert(row?.0.value(), ())?;
    }
    transaction.delete_table(MINED_WITH_HASHES)?;
    Ok(())
}

/// The tables, as a batch of commands uses them.
pub(super) struct MoneyTables<'t> {
    transactions: LazyTable<'t, u64, TransactionRow>,
    raw: LazyTable<'t, u64, &'static [u8]>,
    coins: LazyTable<'t, (u64, u32), CoinRow>,
    spendable: LazyTable<'t, (u8, u64, u32), u64>,
    spent: LazyTable<'t, (u64, u64, u32), ()>,
    incoming: LazyTable<'t, (u64, u64), ()>,
    in_flight: LazyTable<'t, u64, u64>,
    refunds: LazyTable<'t, u64, &'static str>,
    outgoing: LazyTable<'t, u64, OutgoingRow<'static>>,
    messages: LazyTable<'t, u64, &'static [u8]>,
    outgoing_by_url: LazyTable<'t, [u8; 32], u64>,
    followed: LazyTable<'t, u64, u64>,
    proofs: LazyTable<'t, (u64, u32), ProofRow<'static>>,
    mined: LazyTable<'t, (u32, u64), ()>,
}

impl<'t> MoneyTables<'t> {
    pub(super) fn new(transaction: &'t WriteTransaction) -> Self {
        Self {
            transactions: LazyTable::new(transaction, TRANSACTIONS),
            raw: LazyTable::new(transaction, RAW),
            coins: LazyTable::new(transaction, COINS),
            spendable: LazyTable::new(transaction, SPENDABLE),
            spent: LazyTable::new(transaction, SPENT),
            incoming: LazyTable::new(transaction, INCOMING),
            in_flight: LazyTable::new(transaction, IN_FLIGHT),
            refunds: LazyTable::new(transaction, REFUNDS),
            outgoing: LazyTable::new(transaction, OUTGOING),
            messages: LazyTable::new(transaction, MESSAGES),
            outgoing_by_url: LazyTable::new(transaction, OUTGOING_BY_URL),
            followed: LazyTable::new(transaction, FOLLOWED),
            proofs: LazyTable::new(transaction, PROOFS),
            mined: LazyTable::new(transaction, MINED),
        }
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
    transactions: LazyReadTable<u64, TransactionRow>,
    pub(super) raw: LazyReadTable<u64, &'static [u8]>,
    pub(super) incoming: LazyReadTable<(u64, u64), ()>,
    pub(super) outgoing: LazyReadTable<u64, OutgoingRow<'static>>,
    pub(super) messages: LazyReadTable<u64, &'static [u8]>,
    pub(super) outgoing_by_url: LazyReadTable<[u8; 32], u64>,
    pub(super) followed: LazyReadTable<u64, u64>,
    pub(super) proofs: LazyReadTable<(u64, u32), ProofRow<'static>>,
}

impl ReadMoney {
    pub(super) fn new(transaction: &Arc<ReadTransaction>) -> Self {
        Self {
            transactions: LazyReadTable::new(transaction, TRANSACTIONS),
            raw: LazyReadTable::new(transaction, RAW),
            incoming: LazyReadTable::new(transaction, INCOMING),
            outgoing: LazyReadTable::new(transaction, OUTGOING),
            messages: LazyReadTable::new(transaction, MESSAGES),
            outgoing_by_url: LazyReadTable::new(transaction, OUTGOING_BY_URL),
            followed: LazyReadTable::new(transaction, FOLLOWED),
            proofs: LazyReadTable::new(transaction, PROOFS),
        }
    }

    pub(super) fn transaction(&self, number: u64) -> Result<TransactionRecord, StoreError> {
        let row = self.transactions.get(number)?;
        let row = row.ok_or_else(|| StoreError::damaged("a transaction is missing"))?;
        TransactionRecord::from_row(number, row.value())
    }

    /// The block of a transaction that is in one.
    pub(super) fn block_of(&self, number: u64) -> Result<BlockPlace, StoreError> {
        let block = self.transaction(number)?.block;
        block.ok_or_else(|| {
            StoreError::damaged("a transaction is in no block that is listed as mined")
        })
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
