//! A transaction of the wallet is lost: another one has taken its place, or the network refuses it.

use std::collections::BTreeMap;

use crate::ledger::rows::{Damaged, ReceivedFor, Transactions, WalletStoreError, try_all};
use crate::ledger::{Books, Command};
use crate::model::outgoing::OutgoingPurpose;
use crate::model::time::Timestamp;
use crate::model::transaction::{Purpose, TransactionState};

/// Another transaction in the chain spends the same coins. The effects of this transaction are
/// undone, after those of later transactions of the wallet that spend its receipts.
#[derive(Clone, Copy, Debug)]
pub struct Displace {
    /// The number of the transaction.
    pub transaction: u64,
    /// The time.
    pub now: Timestamp,
}

impl Command for Displace {
    type Answer = ();

    fn run(&self, books: &mut Books<'_>) -> Result<(), WalletStoreError> {
        books.known_transaction(self.transaction)?;
        let at = books.next_event_at(self.now);
        books.lose(self.transaction, TransactionState::Displaced, at)
    }
}

/// The network has refused the transaction itself at several tips in a row.
#[derive(Clone, Copy, Debug)]
pub struct Invalidate {
    /// The number of the transaction.
    pub transaction: u64,
    /// The time.
    pub now: Timestamp,
}

impl Command for Invalidate {
    type Answer = ();

    fn run(&self, books: &mut Books<'_>) -> Result<(), WalletStoreError> {
        books.known_transaction(self.transaction)?;
        let at = books.next_event_at(self.now);
        books.lose(self.transaction, TransactionState::Invalid, at)
    }
}

impl Books<'_> {
    /// Makes a transaction lost, after all transactions that spend its receipts.
    pub(crate) fn lose(
        &mut self,
        number: u64,
        state: TransactionState,
        at: Timestamp,
    ) -> Result<(), WalletStoreError> {
        let (mut path, mut refunded) = (vec![number], BTreeMap::new());
        while let Some(&current) = path.last() {
            let mut holders = self.made_by(current)?.into_iter().filter_map(|(_, it)| it.spender);
            if let Some(holder) = holders.next() {
                path.push(holder);
                continue;
            }
            path.pop();
            let state = if current == number { state } else { TransactionState::Displaced };
            match self.rows.get::<Transactions>(&current)?.map(|record| record.state) {
                None => self.release(current)?,
                Some(was) if !was.is_lost() => {
                    if let Some(invoice) = self.refunded_by(current)? {
                        let before = self.rows.get::<ReceivedFor>(&invoice)?.unwrap_or_default();
                        refunded.entry(invoice).or_insert(before);
                    }
                    self.change_state(current, state, at)?;
                }
                Some(_) if current == number => {}
                Some(_) => return Err(Damaged("a lost transaction holds a coin".to_owned()).into()),
            }
        }
        // An invoice must not be paid for a moment by payments that are lost with its refund.
        try_all(refunded, |(invoice, before)| self.settle_anew(invoice, before, at)).map(drop)
    }

    /// The invoice that a transaction refunds.
    fn refunded_by(&self, number: u64) -> Result<Option<u64>, WalletStoreError> {
        let Purpose::Outgoing(payment) = self.transaction(number)?.purpose else { return Ok(None) };
        Ok(match self.payment(payment)?.purpose {
            OutgoingPurpose::Refund { invoice, .. } => Some(invoice),
            _ => None,
        })
    }
}
