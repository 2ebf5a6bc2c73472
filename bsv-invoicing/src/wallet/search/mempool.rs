//! Searching the mempool.

use std::collections::{HashMap, HashSet};

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
    /// Those to be searched next, the first one last.
    next: Vec<Txid>,
    /// Those that were not searched yet.
    open: HashSet<Txid>,
    /// Those that wait for another one, by the one that they wait for.
    waiting: HashMap<Txid, Vec<Txid>>,
}

impl Search {
    /// Begins to search the mempool.
    pub(crate) async fn begin_mempool(&self, node: &NodeRpc) -> Result<SearchedMempool, Error> {
        let mut txids = node.mempool().await.map_err(away)?;
        txids.retain(|txid| !self.known.contains(txid));
        let open = txids.iter().copied().collect();
        // The node lists most of them after those whose outputs they spend.
        txids.reverse();
        Ok(SearchedMempool { next: txids, open, waiting: HashMap::new() })
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
            && let Some(txid) = mempool.next.pop()
        {
            let Some(transaction) = node.transaction(&txid).await.map_err(away)? else {
                mempool.end(&txid);
                continue;
            };
            let transaction = EncodedTransaction::from(&transaction);
            let view = super::view(&transaction);
            if let Some(spent) = view.spent().find(|spent| mempool.open.contains(&spent.txid)) {
                mempool.waiting.entry(spent.txid).or_default().push(txid);
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
    /// Takes note that a transaction was searched. Those that wait for it come next.
    fn end(&mut self, txid: &Txid) {
        self.open.remove(txid);
        self.next.extend(self.waiting.remove(txid).unwrap_or_default());
    }
}
