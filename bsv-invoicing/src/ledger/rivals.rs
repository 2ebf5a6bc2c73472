//! Rivals: transactions that spend one coin, as long as only a block can decide between them.
//!
//! A node holds only one of them. Services may tell of both. So the coins of all transactions that
//! only services tell of are listed until a block holds the transaction, or it is lost.

use std::collections::BTreeSet;

use bsv_tx::{OutPoint, Txid};

use crate::ledger::effects::{spent_by, transaction};
use crate::ledger::notice::{records_of, view};
use crate::ledger::rows::Order::Descending;
use crate::ledger::rows::{
    Damaged, Engine, RawTransactions, Spends, Transactions, UnprovenCoins, WalletStoreError,
    try_all,
};
use crate::ledger::see::lost_as;
use crate::ledger::{Books, Command};
use crate::model::receipt::ReceiptKey;
use crate::model::time::Timestamp;
use crate::model::transaction::{EncodedTransaction, TransactionRecord};

/// How many coins of a transaction are listed. A payment spends at most as many. One that spends more
/// counts as one that has a rival.
const MAX_COINS: usize = 1_000;
/// How many transactions that spend one coin are looked at. If there are two, those that came before
/// have their marks.
const MAX_RIVALS: usize = 100;

/// Services know another transaction that spends a coin of this one. It counts only while a block
/// holds it, until a node shows it.
#[derive(Clone, Copy, Debug)]
pub struct NoteRival {
    /// The number of the transaction.
    pub transaction: u64,
    /// The time.
    pub now: Timestamp,
}

impl Command for NoteRival {
    type Answer = ();

    fn run(&self, books: &mut Books<'_>) -> Result<(), WalletStoreError> {
        let txid = books.known_transaction(self.transaction)?.txid;
        let at = books.next_event_at(self.now);
        let numbers = records_of(&books.rows, &txid)?;
        try_all(numbers, |(number, _)| books.mark_rival(number, at)).map(drop)
    }
}

impl Books<'_> {
    /// Records that a transaction has a rival. If it is still being offered, its invoices take another
    /// payment.
    pub(crate) fn mark_rival(
        &mut self,
        number: u64,
        at: Timestamp,
    ) -> Result<(), WalletStoreError> {
        self.free_invoices(number)?;
        let before = self.transaction(number)?;
        if before.has_rival() {
            return Ok(());
        }
        let after = before.with_rival(&before);
        if before.state.block().is_some() {
            // The mark matters once the block has left the chain.
            return self.rows.put::<Transactions>(number, &after);
        }
        let spent = self.spent_by(number)?;
        self.change_record(number, before, &spent, after, at)
    }

    /// Lists the coins of a transaction. Others that spend one of them are marked. Returns whether the
    /// transaction itself has a rival.
    pub(crate) fn list_coins(
        &mut self,
        number: u64,
        txid: &Txid,
        at: Timestamp,
    ) -> Result<bool, WalletStoreError> {
        let marked = records_of(&self.rows, txid)?.into_iter().any(|(_, it)| it.has_rival());
        let (coins, are_all) = outpoints_of(&self.rows, number, txid)?;
        let rivals = try_all(&coins[..coins.len().min(MAX_COINS)], |coin| {
            let rivals = self.rivals_for(*coin, txid)?;
            if self.rows.get::<UnprovenCoins>(&(*coin, number))?.is_none() {
                self.rows.put::<UnprovenCoins>((*coin, number), &())?;
                self.figures.unproven_coins += 1;
            }
            Ok::<_, WalletStoreError>(rivals)
        })?;
        let rivals: BTreeSet<_> = rivals.into_iter().flatten().collect();
        let has_rival = marked || !are_all || coins.len() > MAX_COINS || !rivals.is_empty();
        try_all(rivals, |rival| self.mark_rival(rival, at))?;
        Ok(has_rival)
    }

    /// Takes the coins of a transaction from the list.
    pub(crate) fn unlist_coins(
        &mut self,
        number: u64,
        txid: &Txid,
    ) -> Result<(), WalletStoreError> {
        let (coins, _) = outpoints_of(&self.rows, number, txid)?;
        let removed = try_all(coins.into_iter().take(MAX_COINS), |coin| {
            self.rows.remove::<UnprovenCoins>((coin, number))
        })?;
        let removed = removed.into_iter().filter(|was_there| *was_there).count() as u64;
        let wrong = || Damaged("more coins are listed than there are".to_owned());
        let left = self.figures.unproven_coins.checked_sub(removed).ok_or_else(wrong)?;
        self.figures.unproven_coins = left;
        Ok(())
    }

    /// A block holds a transaction, so that those that spend one of its coins are displaced. They keep
    /// their marks: after that, the word of services does not suffice for them.
    pub(crate) fn displace_rivals(
        &mut self,
        number: u64,
        record: &TransactionRecord,
        at: Timestamp,
    ) -> Result<(), WalletStoreError> {
        if self.figures.unproven_coins == 0 {
            return Ok(());
        }
        let (txid, cancelled) = (&record.txid, self.cancelled_by(record)?);
        let (coins, _) = outpoints_of(&self.rows, number, txid)?;
        let rivals =
            try_all(coins.into_iter().take(MAX_COINS), |coin| self.rivals_for(coin, txid))?;
        let rivals: BTreeSet<_> = rivals.into_iter().flatten().collect();
        try_all(rivals, |rival| {
            self.mark_rival(rival, at)?;
            self.lose(rival, lost_as(rival, cancelled), at)
        })
        .map(drop)
    }

    /// The transaction that holds a coin after this one no longer does: one of its rivals.
    pub(crate) fn next_holder(
        &self,
        number: u64,
        key: ReceiptKey,
    ) -> Result<Option<(u64, TransactionRecord)>, WalletStoreError> {
        if self.figures.unproven_coins == 0 {
            return Ok(None);
        }
        let coin = OutPoint { txid: self.transaction(key.maker)?.txid, vout: key.vout };
        let all = (coin, 0)..=(coin, u64::MAX);
        let listed = self.rows.first::<UnprovenCoins>(all, Descending, MAX_RIVALS)?;
        let holding = try_all(listed, |((_, other), ())| {
            let record = self.transaction(other)?;
            let spends_it = self.rows.get::<Spends>(&(other, key))?.is_some();
            let holds = other != number && spends_it && record.holds_coins();
            Ok::<_, WalletStoreError>(holds.then_some((other, record)))
        })?;
        Ok(holding.into_iter().flatten().next())
    }

    /// The listed transactions that spend a coin, other than this one, the newest first.
    fn rivals_for(&self, coin: OutPoint, txid: &Txid) -> Result<Vec<u64>, WalletStoreError> {
        let all = (coin, 0)..=(coin, u64::MAX);
        let listed = self.rows.first::<UnprovenCoins>(all, Descending, MAX_RIVALS)?;
        let rivals = try_all(listed, |((_, number), ())| {
            let is_other = self.transaction(number)?.txid != *txid;
            Ok::<_, WalletStoreError>(is_other.then_some(number))
        })?;
        Ok(rivals.into_iter().flatten().collect())
    }
}

/// How many coins of a transaction are listed.
pub(crate) fn listed_coins(
    rows: &dyn Engine,
    number: u64,
    txid: &Txid,
) -> Result<u64, WalletStoreError> {
    let (coins, _) = outpoints_of(rows, number, txid)?;
    let are_listed =
        try_all(coins, |coin| rows.get::<UnprovenCoins>(&(coin, number)))?.into_iter().flatten();
    Ok(are_listed.count() as u64)
}

/// What a transaction spends, and whether that is all: if its bytes are dropped, only the coins of the
/// wallet are known.
fn outpoints_of(
    rows: &dyn Engine,
    number: u64,
    txid: &Txid,
) -> Result<(Vec<OutPoint>, bool), WalletStoreError> {
    let coins: BTreeSet<_> = match rows.get::<RawTransactions>(&number)? {
        Some(bytes) => view(&EncodedTransaction { txid: *txid, bytes })?.spent().collect(),
        None => {
            let own = try_all(spent_by(rows, number)?, |key| {
                let txid = transaction(rows, key.maker)?.txid;
                Ok::<_, WalletStoreError>(OutPoint { txid, vout: key.vout })
            })?;
            return Ok((own, false));
        }
    };
    Ok((coins.into_iter().collect(), true))
}
