//! Searching the mempool.

use std::collections::{HashSet, VecDeque};

use bsv_network::NodeRpc;
use bsv_tx::Txid;

use super::Search;
use crate::error::Error;
use crate::ledger::Recovered;
use crate::model::time::Timestamp;
use crate::model::transaction::EncodedTransaction;
use crate::wallet::node::away;

/// What is found ends a part after this many bytes.
const PART_BYTES: usize = 1 << 20;

/// A mempool that is being searched.
pub(crate) struct SearchedMempool {
    waiting: VecDeque<Txid>,
    /// Those that were not searched yet.
    open: HashSet<Txid>,
    /// How many transactions in a row had to wait for others.
    put_off: usize,
}

impl Search {
    /// Begins to search the mempool.
    pub(crate) async fn begin_mempool(&self, node: &NodeRpc) -> Result<SearchedMempool, Error> {
        let mut txids = node.mempool().await.map_err(away)?;
        txids.retain(|txid| !self.known.contains(txid));
        let open = txids.iter().copied().collect();
        Ok(SearchedMempool { waiting: txids.into(), open, put_off: 0 })
    }

    /// The next transactions of the mempool that make or spend coins of the wallet. Empty at its
    /// end. A transaction may be listed before one whose coins it spends, and then waits for it.
    pub(crate) async fn next_in_mempool(
        &mut self,
        node: &NodeRpc,
        mempool: &mut SearchedMempool,
        now: Timestamp,
    ) -> Result<Vec<Recovered>, Error> {
        let (mut found, mut bytes) = (Vec::new(), 0);
        while bytes < PART_BYTES
            && let Some(txid) = mempool.waiting.pop_front()
        {
            let Some(transaction) = node.transaction(&txid).await.map_err(away)? else {
                mempool.end(&txid);
                continue;
            };
            let transaction = EncodedTransaction::from(&transaction);
            let view = super::view(&transaction);
            if view.spent().any(|spent| mempool.must_wait_for(&spent.txid)) {
                mempool.put_off(txid);
                continue;
            }
            mempool.end(&txid);
            if let Some((_, taken)) = self.take(view)? {
                bytes += transaction.bytes.len();
                found.push(taken.recovered(transaction, None, now));
            }
        }
        Ok(found)
    }
}

impl SearchedMempool {
    /// Whether a transaction comes first. If each waits for another one, none does.
    fn must_wait_for(&self, parent: &Txid) -> bool {
        self.open.contains(parent) && self.put_off <= self.waiting.len()
    }

    fn put_off(&mut self, txid: Txid) {
        self.waiting.push_back(txid);
        self.put_off += 1;
    }

    fn end(&mut self, txid: &Txid) {
        self.open.remove(txid);
        self.put_off = 0;
    }
}
