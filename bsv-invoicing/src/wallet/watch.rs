//! Watching: finding all money that reaches a script of the wallet, in the mempool and in new
//! blocks.

mod backlog;
mod blocks;
mod filter;
mod mempool;
mod rescan;
mod show;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bsv_network::NodeRpc;
use bsv_tx::Transaction;

pub(crate) use self::filter::Watching;
pub(crate) use self::mempool::Watched;

use crate::error::Error;
use crate::ledger::queries::GetTxids;
use crate::ledger::{GetKnown, GetWatched, Known, Notice, Noticed, ShownPlace};
use crate::model::time::Timestamp;
use crate::model::transaction::{TransactionRecord, TransactionState};
use crate::store::WalletStore;
use crate::wallet::Wallet;
use crate::wallet::node::away;

/// How many rows are read at once to fill the filter.
const PAGE: usize = 1_000;

impl<S: WalletStore> Wallet<S> {
    /// Fills the filter with all watched scripts, and with all transactions that may have outputs
    /// of the wallet.
    async fn load_filter(&self) -> Result<(), Error> {
        self.watching.is_loaded.get_or_try_init(|| self.load_scripts()).await?;
        loop {
            let last = &self.watching.last_transaction;
            let after = last.load(Ordering::Relaxed);
            let txids = self.store.list(GetTxids(after, PAGE)).await?;
            let Some((number, _)) = txids.last() else { return Ok(()) };
            let number = *number;
            self.watching.filter.add(txids.iter().map(|(_, txid)| txid.as_bytes().as_slice()));
            last.fetch_max(number, Ordering::Relaxed);
        }
    }

    async fn load_scripts(&self) -> Result<(), Error> {
        let mut after = None;
        loop {
            let hashes = self.store.list(GetWatched(after, PAGE)).await?;
            let Some(last) = hashes.last() else { return Ok(()) };
            after = Some(*last);
            self.watching.filter.add(hashes.iter().map(<[u8; 20]>::as_slice));
        }
    }

    /// What the books know about a transaction, if it concerns the wallet.
    async fn known(&self, transaction: &Arc<Transaction>) -> Result<Option<Known>, Error> {
        if !self.watching.filter.concerns(transaction) {
            return Ok(None);
        }
        let known = self.store.get(GetKnown(Arc::clone(transaction))).await?;
        Ok((!known.records.is_empty() || !known.lacking.is_empty()).then_some(known))
    }

    /// Records a transaction from the mempool, if it is new to the wallet. Returns whether it was.
    async fn notice_in_mempool(
        &self,
        node: &NodeRpc,
        transaction: Transaction,
    ) -> Result<bool, Error> {
        let transaction = Arc::new(transaction);
        let Some(known) = self.known(&transaction).await? else { return Ok(false) };
        let is_news = |record: &TransactionRecord| {
            let is_shown = record.state.can_be_spent() || record.state == TransactionState::Waiting;
            // A request that is offering it records it.
            !is_shown && !self.is_busy(record.purpose)
        };
        if known.lacking.is_empty() && !known.records.iter().any(|(_, it)| is_news(it)) {
            return Ok(false);
        }
        // A transaction that the node announces may be gone, or not final.
        let txid = transaction.txid();
        let Some(entry) = node.mempool_entry(&txid).await.map_err(away)? else { return Ok(false) };
        // The wallet's own transactions have the fee that their payee and the node ask for.
        let is_own = known.records.iter().any(|(_, it)| !it.purpose.is_from_outside());
        let is_fee_sufficient = is_own || self.is_fee_sufficient(node, entry).await?;
        let noticed = Noticed {
            transaction: Arc::unwrap_or_clone(transaction),
            place: ShownPlace::Mempool { is_fee_sufficient },
            came_at: self.now(),
        };
        self.store.execute(Notice { shown: vec![noticed], now: self.now() }).await?;
        Ok(true)
    }
}

/// The time of a block.
pub(crate) fn block_time(seconds: u32) -> Timestamp {
    Timestamp::from_micros(u64::from(seconds) * 1_000_000)
}
