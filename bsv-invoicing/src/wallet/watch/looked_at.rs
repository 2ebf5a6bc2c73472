//! The transactions of the mempool that do not concern the wallet, so that nobody looks at them
//! again.

use std::hash::{BuildHasher, RandomState};

use bsv_tx::{Transaction, Txid};

/// How many bytes of memory this may take.
const MOST_BYTES: usize = 16 << 20;
/// A fingerprint and a mark. A new list is made beside the one before.
const EACH: usize = 2 * (size_of::<u64>() + size_of::<Mark>());
const MOST: usize = MOST_BYTES / EACH;

/// What is known of a listed transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    /// Nothing yet.
    New,
    /// It concerns the wallet, and the books have it.
    Recorded,
    /// It does not concern the wallet.
    Strange,
}

/// The listed transactions of the mempool, with marks.
#[derive(Debug, Default)]
pub(crate) struct LookedAt {
    /// Nobody else knows its key, so that nobody can choose two transactions with one fingerprint.
    hasher: RandomState,
    /// The fingerprints, in order.
    listed: Vec<u64>,
    marks: Vec<Mark>,
    has_warned: bool,
}

impl LookedAt {
    /// Takes note of a new list. Marks of transactions that are still listed stay. A list that is
    /// too long gets no marks.
    pub(super) fn list(&mut self, txids: &[Txid]) {
        if txids.len() > MOST {
            self.forget();
            if !std::mem::replace(&mut self.has_warned, true) {
                tracing::warn!(
                    "the node's mempool holds {} transactions: each reading looks at all of them \
                     again",
                    txids.len()
                );
            }
            return;
        }
        let mut listed: Vec<_> = txids.iter().map(|txid| self.fingerprint(txid)).collect();
        listed.sort_unstable();
        let marks = listed.iter().map(|it| self.mark(*it).unwrap_or(Mark::New)).collect();
        (self.listed, self.marks) = (listed, marks);
    }

    /// Whether a transaction need not be looked at again.
    pub(super) fn has_done(&self, txid: &Txid) -> bool {
        self.mark(self.fingerprint(txid)) == Some(Mark::Strange)
    }

    /// Marks a transaction that does not concern the wallet. It may still concern the wallet if it
    /// spends an output of a listed transaction that is new.
    pub(super) fn finish(&mut self, txid: &Txid, transaction: &Transaction) {
        let spent = transaction.inputs.iter().map(|input| &input.previous_output.txid);
        if !{ spent }.any(|spent| self.mark(self.fingerprint(spent)) == Some(Mark::New)) {
            self.set(txid, Mark::Strange);
        }
    }

    /// Marks a transaction that the books have. Whether the next one that spends its outputs
    /// concerns the wallet can be said.
    pub(super) fn note_recorded(&mut self, txid: &Txid) {
        self.set(txid, Mark::Recorded);
    }

    fn set(&mut self, txid: &Txid, mark: Mark) {
        if let Ok(place) = self.listed.binary_search(&self.fingerprint(txid)) {
            self.marks[place] = mark;
        }
    }

    /// Forgets everything, because transactions may concern the wallet that did not before.
    pub(super) fn forget(&mut self) {
        (self.listed, self.marks) = Default::default();
    }

    fn mark(&self, fingerprint: u64) -> Option<Mark> {
        let place = self.listed.binary_search(&fingerprint).ok()?;
        Some(self.marks[place])
    }

    fn fingerprint(&self, txid: &Txid) -> u64 {
        self.hasher.hash_one(txid.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use bsv_tx::{OutPoint, Script, TxIn};

    use super::*;

    /// A transaction that spends an output of another one.
    fn spending(spent: Txid) -> (Txid, Transaction) {
        let previous_output = OutPoint { txid: spent, vout: 0 };
        let input = TxIn { previous_output, unlocking_script: Script::default(), sequence: 0 };
        let transaction =
            Transaction { version: 1, inputs: vec![input], outputs: vec![], lock_time: 0 };
        (transaction.txid(), transaction)
    }

    #[test]
    fn marks_stay_while_a_transaction_is_listed() {
        let mut looked_at = LookedAt::default();
        let (first, transaction) = spending(Txid::from_bytes([7; 32]));
        let (second, _) = spending(Txid::from_bytes([8; 32]));
        looked_at.list(&[first, second]);
        looked_at.finish(&first, &transaction);
        for listed in [vec![first, second], vec![second, first]] {
            looked_at.list(&listed);
            assert!(looked_at.has_done(&first) && !looked_at.has_done(&second));
        }
        looked_at.list(&[second]);
        looked_at.list(&[first, second]);
        assert!(!looked_at.has_done(&first));
        looked_at.finish(&first, &transaction);
        looked_at.forget();
        assert!(!looked_at.has_done(&first));
    }

    #[test]
    fn a_transaction_is_looked_at_again_after_the_one_that_it_spends() {
        let mut looked_at = LookedAt::default();
        let (parent, parents) = spending(Txid::from_bytes([7; 32]));
        let (child, childs) = spending(parent);
        looked_at.list(&[child, parent]);
        looked_at.finish(&child, &childs);
        assert!(!looked_at.has_done(&child));
        looked_at.finish(&parent, &parents);
        looked_at.finish(&child, &childs);
        assert!(looked_at.has_done(&child) && looked_at.has_done(&parent));
    }

    #[test]
    fn what_spends_a_recorded_transaction_is_looked_at_once() {
        let mut looked_at = LookedAt::default();
        let (parent, _) = spending(Txid::from_bytes([7; 32]));
        let (child, childs) = spending(parent);
        looked_at.list(&[parent, child]);
        looked_at.note_recorded(&parent);
        looked_at.finish(&child, &childs);
        looked_at.list(&[parent, child]);
        assert!(looked_at.has_done(&child) && !looked_at.has_done(&parent));
    }

    #[test]
    fn a_list_that_is_too_long_gets_no_marks() {
        let mut looked_at = LookedAt::default();
        let (txid, transaction) = spending(Txid::from_bytes([7; 32]));
        looked_at.list(&vec![txid; MOST]);
        looked_at.finish(&txid, &transaction);
        assert!(looked_at.has_done(&txid));
        let bytes = size_of::<u64>() * looked_at.listed.capacity() + looked_at.marks.capacity();
        assert!(2 * bytes <= MOST_BYTES, "{bytes}");
        looked_at.list(&vec![txid; MOST + 1]);
        looked_at.finish(&txid, &transaction);
        assert!(!looked_at.has_done(&txid) && looked_at.has_warned);
    }
}
