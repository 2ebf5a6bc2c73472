//! Recovering transactions from the chain with the words of the wallet alone.

use bsv_tx::Transaction;

use crate::ledger::notice::OwnParts;
use crate::ledger::rows::{Damaged, Rows};
use crate::ledger::{Books, Command};
use crate::model::coin::KeyPath;
use crate::model::receipt::{NewReceipt, ReceiptKey};
use crate::model::time::Timestamp;
use crate::model::transaction::Proof;

/// Stores transactions that were found in the chain, in the order of their numbers.
#[derive(Clone, Debug)]
pub struct Recover {
    /// The transactions.
    pub found: Vec<Recovered>,
}

/// A transaction that was found with the words of the wallet alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// Its number. The transactions that are found are numbered from 1 without a gap.
    pub number: u64,
    /// The transaction.
    pub transaction: Transaction,
    /// The proof of its block. `None` if it is in the mempool.
    pub proof: Option<Proof>,
    /// Its outputs that pay the wallet, and their keys.
    pub receipts: Vec<(u32, KeyPath)>,
    /// The receipts that it spends.
    pub spends: Vec<ReceiptKey>,
    /// When it was mined, or found.
    pub at: Timestamp,
}

impl Command for Recover {
    type Answer = ();

    fn run<R: Rows>(&self, books: &mut Books<R>) -> Result<(), R::Error> {
        for (found, expected) in self.found.iter().zip(books.figures.last_transaction + 1..) {
            let amounts = found.amounts();
            if found.number != expected || amounts.is_none() {
                let reason = "a transaction is recovered out of order, or without its outputs";
                return Err(Damaged(reason.to_owned()).into());
            }
        }
        self.found.iter().try_for_each(|found| found.store(books))
    }
}

impl Recovered {
    fn amounts(&self) -> Option<Vec<u64>> {
        let outputs = &self.transaction.outputs;
        let amount = |vout: u32| Some(outputs.get(usize::try_from(vout).ok()?)?.satoshis);
        self.receipts.iter().map(|(vout, _)| amount(*vout)).collect()
    }

    fn store<R: Rows>(&self, books: &mut Books<R>) -> Result<(), R::Error> {
        let Self { transaction, proof, receipts, spends, at, .. } = self;
        let amounts = self.amounts().unwrap_or_default();
        let receipts = receipts.iter().zip(amounts);
        let receipts =
            receipts.map(|((vout, key), satoshis)| NewReceipt { vout: *vout, satoshis, key: *key });
        let own = OwnParts { receipts: receipts.collect(), spends: spends.clone() };
        let (number, record) = books.note_found(transaction, &own, *at)?;
        match proof {
            None => books.see(number, record, true, *at),
            Some(proof) => books.mine(number, record, proof, *at),
        }
    }
}
