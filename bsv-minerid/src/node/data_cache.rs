use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bsv_tx::{Transaction, Txid};

use crate::verify::DataOutputs;

/// The contents of transactions that documents refer to. The cache keeps them for later blocks,
/// because documents refer to the same data again and again.
#[derive(Debug, Default)]
pub struct DataCache(Mutex<HashMap<Txid, Arc<DataOutputs>>>);

impl DataCache {
    /// How many outputs, and identifiers in them, are kept before the cache is emptied.
    const MOST_KEPT: usize = 1 << 18;

    pub(super) fn get(&self, txid: &Txid) -> Option<Arc<DataOutputs>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(txid).cloned()
    }

    /// Reads a transaction, unless another call has done so meanwhile, and keeps the contents.
    pub(super) fn read(&self, txid: Txid, transaction: &Transaction) -> Arc<DataOutputs> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(outputs) = kept.get(&txid) {
            return outputs.clone();
        }
        let outputs = Arc::new(DataOutputs::of(transaction));
        let size: usize = kept.values().map(|outputs| outputs.size()).sum();
        if size + outputs.size() > Self::MOST_KEPT {
            kept.clear();
        }
        kept.insert(txid, outputs.clone());
        outputs
    }
}

#[cfg(test)]
mod tests {
    use bsv_tx::{ScriptBuilder, TxOut};

    use super::*;

    fn with_outputs(number: u32, count: usize) -> Transaction {
        let output = TxOut { satoshis: 0, locking_script: ScriptBuilder::new().into_script() };
        let outputs = vec![output; count];
        Transaction { version: 1, inputs: vec![], outputs, lock_time: number }
    }

    #[test]
    fn a_transaction_is_read_once_and_few_are_kept() {
        let cache = DataCache::default();
        let transaction = with_outputs(0, 1);
        let txid = transaction.txid();
        assert_eq!(cache.get(&txid), None);
        let read = cache.read(txid, &transaction);
        assert!(Arc::ptr_eq(&read, &cache.get(&txid).unwrap()));
        assert!(Arc::ptr_eq(&read, &cache.read(txid, &transaction)));
        for number in 1..=4 {
            let other = with_outputs(number, DataCache::MOST_KEPT / 2);
            cache.read(other.txid(), &other);
            let kept = cache.0.lock().unwrap();
            assert!(
                kept.values().map(|outputs| outputs.size()).sum::<usize>() <= DataCache::MOST_KEPT
            );
            assert!(kept.contains_key(&other.txid()));
        }
        assert_eq!(cache.get(&txid), None);
    }
}
