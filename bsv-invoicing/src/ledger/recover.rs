//! Transactions are found in the chain with the words of the wallet alone.

use bsv_tx::Transaction;

use crate::ledger::rows::{Damaged, Proofs, Rows};
use crate::ledger::{Books, Command};
use crate::model::coin::KeyPath;
use crate::model::receipt::{Receipt, ReceiptKey};
use crate::model::time::Timestamp;
use crate::model::transaction::{FoundProof, Proof, Purpose, TransactionState};

/// Takes over transactions that were found in the chain, in the order of their numbers.
#[derive(Clone, Debug)]
pub struct Recover {
    /// The transactions.
    pub found: Vec<Recovered>,
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
        let sum = amounts.iter().sum();
        let purpose = Purpose::Recovered;
        let (number, record) = books.add_transaction(&transaction.into(), purpose, sum, *at)?;
        for ((vout, key), satoshis) in receipts.iter().zip(amounts) {
            let receipt = Receipt { satoshis, key: *key, spender: None };
            books.add_receipt(ReceiptKey { maker: number, vout: *vout }, &receipt)?;
        }
        for key in spends {
            books.add_spend(number, *key)?;
        }
        let at = books.next_event_at(*at);
        let state = match proof {
            None => TransactionState::Seen,
            Some(proof) => {
                let found =
                    FoundProof { sequence: 1, proof: proof.clone(), found_at: at, is_read: false };
                books.rows.put::<Proofs>((number, 1), &found)?;
                TransactionState::Mined(proof.block)
            }
        };
        books.show(number, record, state, at)
    }
}
