use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::AtomicU64;
use std::sync::{MutexGuard, PoisonError, RwLock};

use bsv_tx::{Transaction, TransactionView, public_key_hash};
use tokio::sync::{Mutex, OnceCell};

use super::looked_at::LookedAt;

/// The watched scripts, in memory.
#[derive(Debug, Default)]
pub(crate) struct Watching {
    pub(crate) filter: Filter,
    /// Set once the filter has all watched scripts of the store.
    pub(crate) is_loaded: OnceCell<()>,
    /// The number of the last transaction that the filter knows.
    pub(crate) last_transaction: AtomicU64,
    /// The number of the last script of other processes that the filter knows.
    pub(crate) last_script: AtomicU64,
    /// Held by the task that works on the backlog: how often keys of it have been watched.
    pub(crate) backlog: Mutex<u64>,
    looked_at: std::sync::Mutex<LookedAt>,
}

impl Watching {
    /// The transactions of the mempool that do not concern the wallet.
    pub(crate) fn looked_at(&self) -> MutexGuard<'_, LookedAt> {
        self.looked_at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Transactions in the mempool may pay scripts that are watched only now.
    pub(crate) fn look_at_all_again(&self) {
        self.looked_at().forget();
    }
}

/// Sorts out nearly all transactions that do not concern the wallet, without reading the store. It
/// holds the first eight bytes of hashes: of public keys whose scripts are watched, and of
/// transactions whose outputs may be spent. Each hash takes 8 to 20 bytes of memory.
#[derive(Debug, Default)]
pub(crate) struct Filter(RwLock<Prefixes>);

impl Filter {
    /// Adds hashes.
    pub(crate) fn add<'a>(&self, hashes: impl Iterator<Item = &'a [u8]>) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        hashes.map(first_bytes).for_each(|prefix| known.add(prefix));
    }

    /// How a transaction may concern the wallet, if it may.
    pub(crate) fn concern(&self, transaction: TransactionView<'_>) -> Option<Concern> {
        let paid = transaction.outputs().filter_map(|(_, script)| public_key_hash(script));
        let spent = transaction.spent().map(|it| first_bytes(it.txid.as_bytes()));
        self.first(paid.map(|hash| first_bytes(hash)), spent)
    }

    /// The same of a transaction that was read.
    pub(crate) fn concern_of(&self, transaction: &Transaction) -> Option<Concern> {
        let paid = transaction.outputs.iter().filter_map(|it| it.locking_script.public_key_hash());
        let spent = transaction.inputs.iter().map(|it| it.previous_output.txid.as_bytes());
        self.first(paid.map(|hash| first_bytes(hash)), spent.map(|it| first_bytes(it)))
    }

    fn first(
        &self,
        mut paid: impl Iterator<Item = u64>,
        mut spent: impl Iterator<Item = u64>,
    ) -> Option<Concern> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let pays = paid.find(|prefix| known.contains(*prefix)).map(Concern::Pays);
        pays.or_else(|| spent.find(|prefix| known.contains(*prefix)).map(Concern::Spends))
    }
}

/// How a transaction may concern the wallet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Concern {
    /// It may pay a watched script: the first bytes of the first such hash.
    Pays(u64),
    /// It may spend a coin: the first bytes of the first such transaction.
    Spends(u64),
}

impl Concern {
    pub(super) fn paying(hash: &[u8; 20]) -> Self {
        Self::Pays(first_bytes(hash))
    }

    /// The line in which the transaction waits until it is recorded.
    pub(super) fn line(self) -> u64 {
        let (Self::Pays(line) | Self::Spends(line)) = self;
        line
    }
}

/// The first eight bytes of a hash as a number with the same order.
fn first_bytes(hash: &[u8]) -> u64 {
    let bytes = hash.first_chunk().expect("hashes have 20 or 32 bytes");
    u64::from_be_bytes(*bytes)
}

/// The first bytes of hashes. Most are in a sorted vector, which takes the least memory. New ones
/// are in a set until there are enough to sort them in.
#[derive(Debug, Default)]
struct Prefixes {
    ordered: Vec<u64>,
    recent: HashSet<u64, BuildHasherDefault<FirstBytes>>,
}

/// The least number of recent ones that is worth sorting.
const MANY: usize = 4096;

impl Prefixes {
    fn add(&mut self, prefix: u64) {
        // The store lists hashes in order, so that most are appended.
        if self.ordered.last().is_none_or(|last| *last < prefix) {
            self.ordered.push(prefix);
        } else if self.ordered.binary_search(&prefix).is_err() {
            self.recent.insert(prefix);
        }
        if self.recent.len() > MANY.max(self.ordered.len() / 8) {
            self.ordered.extend(self.recent.drain());
            self.ordered.sort_unstable();
        }
    }

    fn contains(&self, prefix: u64) -> bool {
        self.recent.contains(&prefix) || self.ordered.binary_search(&prefix).is_ok()
    }
}

/// The bytes of a hash need no further hashing.
#[derive(Debug, Default)]
struct FirstBytes(u64);

impl Hasher for FirstBytes {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0 << 8 | u64::from(*byte);
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}

#[cfg(test)]
mod tests {
    use bsv_tx::{OutPoint, Script, TxIn, TxOut, Txid};

    use super::*;

    #[test]
    fn prefixes_are_found_in_whatever_order_they_came() {
        let mut known = Prefixes::default();
        // A permutation of the even numbers.
        let prefix = |number: u64| 2 * (number * 7_919 % 50_021);
        for number in 0..50_021 {
            known.add(prefix(number));
            known.add(prefix(number / 2));
        }
        assert!(known.recent.len() <= MANY.max(known.ordered.len() / 8));
        assert!(known.ordered.is_sorted_by(|a, b| a < b), "each is there once");
        assert_eq!(known.ordered.len() + known.recent.len(), 50_021);
        for number in 0..50_021 {
            assert!(known.contains(prefix(number)) && !known.contains(prefix(number) + 1));
        }
    }

    #[test]
    fn a_transaction_that_pays_a_watched_script_or_spends_a_coin_concerns_the_wallet() {
        let filter = Filter::default();
        let (hash, txid) = ([7; 20], Txid::from_bytes([9; 32]));
        filter.add([hash.as_slice(), txid.as_bytes().as_slice()].into_iter());
        let concern = |hash: [u8; 20], txid| {
            let previous_output = OutPoint { txid, vout: 3 };
            let unlocking_script = Script::from_bytes([]);
            let output = TxOut { satoshis: 1, locking_script: Script::p2pkh(&hash) };
            let transaction = Transaction {
                version: 1,
                inputs: vec![TxIn { previous_output, unlocking_script, sequence: 0 }],
                outputs: vec![output],
                lock_time: 0,
            };
            let bytes = transaction.to_bytes();
            let concern = filter.concern(TransactionView::from_bytes(&bytes).unwrap());
            assert_eq!(filter.concern_of(&transaction), concern);
            concern
        };
        let other = Txid::from_bytes([1; 32]);
        assert_eq!(concern(hash, txid), Some(Concern::Pays(0x0707_0707_0707_0707)));
        assert_eq!(concern([8; 20], txid), Some(Concern::Spends(0x0909_0909_0909_0909)));
        assert_eq!(concern([8; 20], other), None);
    }
}
