//! The network shows a transaction in its mempool.

use bsv_network::Evidence;

use crate::ledger::rows::{Transactions, WalletStoreError, try_all};
use crate::ledger::{Books, Command};
use crate::model::receipt::ReceiptKey;
use crate::model::sighting::Sighting;
use crate::model::time::Timestamp;
use crate::model::transaction::{
    Purpose, ShownAs, TransactionRecord, TransactionState, WaitReason,
};

/// The network shows a transaction of the wallet in its mempool. Whatever its state was: its
/// receipts count, its coins are spent, and transactions that conflict with it are lost. If services
/// tell of it, none is lost, and it waits for its block if there is one that conflicts with it.
#[derive(Clone, Copy, Debug)]
pub struct See {
    /// The number of the transaction.
    pub transaction: u64,
    /// What the network says of it.
    pub sighting: Sighting,
    /// The time.
    pub now: Timestamp,
}

impl Command for See {
    type Answer = ();

    fn run(&self, books: &mut Books<'_>) -> Result<(), WalletStoreError> {
        let record = books.known_transaction(self.transaction)?;
        books.see(self.transaction, record, self.sighting, self.now)
    }
}

/// Services, and no node, tell of a transaction from now on. A node has shown it, and no block holds it.
/// What counts still counts, unless a rival is known.
#[derive(Clone, Copy, Debug)]
pub struct TellByServices {
    /// The number of the transaction.
    pub transaction: u64,
    /// The time.
    pub now: Timestamp,
}

impl Command for TellByServices {
    type Answer = ();

    fn run(&self, books: &mut Books<'_>) -> Result<(), WalletStoreError> {
        let record = books.known_transaction(self.transaction)?;
        if !record.is_judged() {
            return Ok(());
        }
        let at = books.next_event_at(self.now);
        let spent = books.spent_by(self.transaction)?;
        books.change_record(self.transaction, record, &spent, record.with_word(), at)
    }
}

impl Books<'_> {
    /// Records that the network has a transaction in its mempool.
    pub(crate) fn see(
        &mut self,
        number: u64,
        record: TransactionRecord,
        sighting: Sighting,
        now: Timestamp,
    ) -> Result<(), WalletStoreError> {
        let is_fee_sufficient = sighting.is_fee_sufficient || record.shown >= ShownAs::Seen;
        let after = match (sighting.evidence, record.state) {
            (_, TransactionState::Mined(_)) => return Ok(()),
            (Evidence::Judged, _) => TransactionRecord { word: None, ..record },
            // Only a block holds such a transaction, whatever services say.
            _ if record.purpose == Purpose::Coinbase => return Ok(()),
            // A block has decided, and only another one decides otherwise.
            (_, TransactionState::Displaced | TransactionState::Cancelled) => return Ok(()),
            // A word confirms what stands, and takes nothing back.
            (Evidence::Word, TransactionState::Seen)
            | (Evidence::Hearsay, TransactionState::Seen | TransactionState::Contested { .. }) => {
                return Ok(());
            }
            (Evidence::Word | Evidence::Hearsay, _) => record.with_word(),
        };
        let may_count = is_fee_sufficient && sighting.evidence != Evidence::Hearsay;
        let new = match record.state {
            _ if may_count && !after.has_rival() => TransactionState::Seen,
            contested @ TransactionState::Contested { .. } if after.has_rival() => contested,
            _ => TransactionState::Waiting,
        };
        let at = self.next_event_at(now);
        // What counts already is in the sum.
        let begins = new == TransactionState::Seen && !record.state.counts();
        let is_too_much =
            begins && after.word.is_some() && self.exceeds_exposure(number, &record, at)?;
        let new = if is_too_much { TransactionState::Waiting } else { new };
        let after = after.waiting_for(match sighting.evidence {
            _ if is_too_much => WaitReason::Exposure,
            Evidence::Hearsay => WaitReason::UnknownCoins,
            _ => WaitReason::LowFee,
        });
        let after = after.in_state(new);
        if record == after {
            return Ok(());
        }
        self.show(number, record, after, at)
    }

    /// Changes a transaction to a state in which the network has it. Other transactions that hold
    /// its coins are lost, unless only services tell of this one: then each is a rival of the other.
    pub(crate) fn show(
        &mut self,
        number: u64,
        record: TransactionRecord,
        after: TransactionRecord,
        at: Timestamp,
    ) -> Result<(), WalletStoreError> {
        let spent = self.spent_by(number)?;
        if after.is_by_word() {
            let is_held = self.mark_holders(number, &spent, at)?;
            let after = if is_held { after.with_rival(&record) } else { after };
            return self.change_record(number, record, &spent, after, at);
        }
        let cancelled = self.cancelled_by(&record)?;
        try_all(&spent, |key| {
            while let Some(rival) = self.other_holder(number, *key)? {
                match self.rows.get::<Transactions>(&rival)? {
                    None => self.release(rival)?,
                    Some(_) => self.lose(rival, lost_as(rival, cancelled), at)?,
                }
            }
            Ok::<_, WalletStoreError>(())
        })?;
        self.change_record(number, record, &spent, after, at)?;
        if let Purpose::Cancellation(payment) = record.purpose {
            self.give_up_cancellation(payment, at)?;
        }
        Ok(())
    }

    /// Another transaction that holds a coin, or would hold it if it had no rival.
    fn other_holder(&self, number: u64, key: ReceiptKey) -> Result<Option<u64>, WalletStoreError> {
        match self.receipt(key)?.spender.filter(|holder| *holder != number) {
            Some(holder) => Ok(Some(holder)),
            None => Ok(self.next_holder(number, key)?.map(|(rival, _)| rival)),
        }
    }

    /// The transaction that another one cancels.
    pub(crate) fn cancelled_by(
        &self,
        record: &TransactionRecord,
    ) -> Result<Option<u64>, WalletStoreError> {
        match record.purpose {
            Purpose::Cancellation(payment) => Ok(Some(self.payment(payment)?.transaction)),
            _ => Ok(None),
        }
    }

    /// Marks the other transactions that hold coins as rivals of this one. They keep their states and the
    /// coins: only a block decides. Coins that are reserved for a transaction that does not exist yet are
    /// released. Returns whether there are such transactions.
    fn mark_holders(
        &mut self,
        number: u64,
        spent: &[ReceiptKey],
        at: Timestamp,
    ) -> Result<bool, WalletStoreError> {
        let are_held = try_all(spent, |key| {
            let Some(holder) = self.receipt(*key)?.spender.filter(|it| *it != number) else {
                return Ok::<_, WalletStoreError>(false);
            };
            match self.rows.get::<Transactions>(&holder)? {
                None => self.release(holder).map(|()| false),
                Some(_) => self.mark_rival(holder, at).map(|()| true),
            }
        })?;
        Ok(are_held.contains(&true))
    }
}

/// The state of a transaction that is lost to one that cancels the transaction of this number.
pub(crate) fn lost_as(number: u64, cancelled: Option<u64>) -> TransactionState {
    match cancelled == Some(number) {
        true => TransactionState::Cancelled,
        false => TransactionState::Displaced,
    }
}
