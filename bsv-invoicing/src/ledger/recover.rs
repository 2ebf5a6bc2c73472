//! Recovering transactions from the chain with the words of the wallet alone.

use crate::ledger::notice::{OwnParts, view};
use crate::ledger::rows::{Damaged, WalletStoreError};
use crate::ledger::{Books, Command};
use crate::model::coin::KeyPath;
use crate::model::receipt::{NewReceipt, ReceiptKey};
use crate::model::time::Timestamp;
use crate::model::transaction::{EncodedTransaction, Proof};

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
    pub transaction: EncodedTransaction,
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

    fn run(&self, books: &mut Books<'_>) -> Result<(), WalletStoreError> {
        for (found, expected) in self.found.iter().zip(books.figures.last_transaction + 1..) {
            if found.number != expected || found.amounts()?.is_none() {
                let reason = "a transaction is recovered out of order, or without its outputs";
                return Err(Damaged(reason.to_owned()).into());
            }
        }
        self.found.iter().try_for_each(|found| found.store(books))
    }

    fn weight(&self) -> usize {
        self.found.iter().map(|found| found.transaction.bytes.len()).sum()
    }
}

impl Recovered {
    /// The amounts of the outputs that pay the wallet. `None` if the transaction lacks one of them.
    pub(crate) fn amounts(&self) -> Result<Option<Vec<u64>>, Damaged> {
        let outputs = view(&self.transaction)?.outputs();
        let outputs: Vec<_> = outputs.map(|(satoshis, _)| satoshis).collect();
        let amount = |vout: u32| outputs.get(usize::try_from(vout).ok()?).copied();
        Ok(self.receipts.iter().map(|(vout, _)| amount(*vout)).collect())
    }

    fn store(&self, books: &mut Books<'_>) -> Result<(), WalletStoreError> {
        let Self { transaction, proof, receipts, spends, at, .. } = self;
        let amounts = self.amounts()?.unwrap_or_default();
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
