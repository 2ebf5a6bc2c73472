//! Watching: finding all money that reaches a script of the wallet, in the mempool and in new
//! blocks.

mod arrivals;
mod backlog;
mod block_parts;
mod blocks;
mod filter;
mod looked_at;

mod mempool;
mod missing;
mod rescan;
mod search;
mod show;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bsv_network::NetworkSource;
use bsv_tx::Transaction;

use self::arrivals::{Arrival, Arrivals};
pub(crate) use self::filter::Watching;
pub(crate) use self::mempool::Watched;
pub(crate) use self::missing::Missing;
pub(crate) use self::rescan::tip_from;
pub(crate) use self::search::Search;

use crate::error::Error;
use crate::ledger::queries::GetTxids;
use crate::ledger::{
    ForgetNewlyWatched, GetKnown, GetNewlyWatched, GetWatched, Known, Notice, Noticed, ShownPlace,
    Sighting, Watch,
};
use crate::model::time::Timestamp;
use crate::model::transaction::{EncodedTransaction, TransactionRecord, TransactionState};
use crate::store::{WalletStore, WalletStoreError};
use crate::wallet::Wallet;

/// How many rows are read at once to fill the filter, and how many scripts are watched at once.
const PAGE: usize = 1_000;

impl Wallet {
    /// Watches all keys that are to be watched, and fills the filter, before the chain is read.
    /// Payers were shown a script before they paid it, so it is in the store since before the blocks
    /// and the mempool that are read then.
    pub(crate) async fn prepare_to_read(&self) -> Result<(), Error> {
        self.watch_backlog().await?;
        self.load_filter().await?;
        self.load_new_scripts().await
    }

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

    /// Takes note of scripts that other processes watch since a moment ago. The process that follows the
    /// chain calls this.
    pub(crate) async fn load_new_scripts(&self) -> Result<(), Error> {
        let last = &self.watching.last_script;
        loop {
            let hashes =
                self.store.get(GetNewlyWatched(last.load(Ordering::Relaxed), PAGE)).await?;
            let Some((number, _)) = hashes.last() else { return Ok(()) };
            let until = *number;
            self.watching.filter.add(hashes.iter().map(|(_, hash)| hash.as_slice()));
            self.watching.look_at_all_again();
            last.fetch_max(until, Ordering::Relaxed);
            self.store.execute(ForgetNewlyWatched { until }).await?;
        }
    }

    /// Takes note of all scripts to watch.
    pub(crate) async fn load_scripts(&self) -> Result<(), Error> {
        let mut after = None;
        loop {
            let hashes = self.store.list(GetWatched(after, PAGE)).await?;
            let Some(last) = hashes.last() else { return Ok(()) };
            after = Some(*last);
            self.watching.filter.add(hashes.iter().map(<[u8; 20]>::as_slice));
            self.watching.look_at_all_again();
        }
    }

    /// What the books know about a transaction, if it concerns the wallet.
    pub(crate) async fn known(
        &self,
        transaction: &Arc<EncodedTransaction>,
    ) -> Result<Option<Known>, WalletStoreError> {
        let known = self.store.get(GetKnown(Arc::clone(transaction))).await?;
        Ok((!known.records.is_empty() || !known.lacking.is_empty()).then_some(known))
    }

    /// Watches the keys that a reading of the chain has found to be used, unless the books must not
    /// change.
    async fn watch_found(&self, search: &mut Search<'_>) -> Result<(), WalletStoreError> {
        let found = search.keys.take_found();
        if search.missing.is_none() {
            self.watching.filter.add(found.iter().map(|(hash, _)| hash.as_slice()));
            for keys in found.chunks(PAGE) {
                self.store.execute(Watch { keys: keys.to_vec() }).await?;
            }
        }
        Ok(())
    }

    /// Lets a transaction from the mempool wait until it is recorded, if it concerns the wallet.
    /// Gives it back if it does not.
    fn note_arrival(
        &self,
        arrivals: &mut Arrivals,
        transaction: Transaction,
        search: &mut Search<'_>,
    ) -> Result<Option<Transaction>, Error> {
        let picked = search.pick_read(&self.watching.filter, &transaction)?;
        let Some((txid, concern)) = picked else { return Ok(Some(transaction)) };
        let (transaction, came_at) = (Arc::new(transaction), self.expiry_time());
        arrivals.add(concern.line(), Arrival { txid, transaction, came_at });
        Ok(None)
    }

    /// Records those of these transactions that concern the wallet and that the mempool shows.
    pub(crate) async fn notice_all(
        &self,
        source: &NetworkSource,
        transactions: Vec<Transaction>,
    ) -> Result<(), Error> {
        let (mut arrivals, mut search) = (Arrivals::default(), Search::default());
        for transaction in transactions {
            self.note_arrival(&mut arrivals, transaction, &mut search)?;
        }
        while !arrivals.is_empty() {
            self.notice_in_mempool(source, arrivals.take(), &mut search).await?;
        }
        Ok(())
    }

    /// Records transactions from the mempool, as far as they are new to the wallet. Returns whether
    /// any was.
    async fn notice_in_mempool(
        &self,
        source: &NetworkSource,
        arrivals: Vec<Arrival>,
        search: &mut Search<'_>,
    ) -> Result<bool, Error> {
        self.watch_found(search).await?;
        let mut has_missing = false;
        let mut news = Vec::new();
        let mut txids = Vec::new();
        for Arrival { txid, transaction, came_at } in arrivals {
            let encoded = Arc::new(EncodedTransaction::from(&*transaction));
            let known = self.known(&encoded).await?.unwrap_or_default();
            if let Some(missing) = &mut search.missing {
                has_missing |= missing.note(&encoded, &known, &search.keys, "the mempool");
                continue;
            }
            let mut spent = transaction.inputs.iter().map(|it| it.previous_output.txid);
            // The books do not have the coins of those before it yet.
            let may_spend_news = !known.is_offered && spent.any(|txid| txids.contains(&txid));
            if is_news(&known) || may_spend_news {
                txids.push(txid);
                news.push((encoded, came_at, known));
            } else if known.records.is_empty() {
                self.watching.looked_at().finish(&txid, &transaction);
            } else {
                self.watching.looked_at().note_recorded(&txid);
            }
        }
        if news.is_empty() {
            return Ok(has_missing);
        }
        let mut entries = self.mempool_entries.of(source);
        let in_mempool = entries.ask(&txids).await?;
        entries.read_ahead(&in_mempool).await?;
        let mut shown = Vec::new();
        for ((transaction, came_at, known), entry) in news.into_iter().zip(in_mempool) {
            // A transaction that the node announces may be gone, or not final.
            let Some(entry) = entry else { continue };
            let is_fee_sufficient =
                known.is_own() || self.is_fee_sufficient(&mut entries, entry).await?;
            let place = ShownPlace::Mempool(Sighting::judged(is_fee_sufficient));
            let transaction = Arc::unwrap_or_clone(transaction);
            shown.push(Noticed { transaction, place, came_at, ancestry: Vec::new() });
        }
        entries.keep().await;
        let is_any_shown = !shown.is_empty();
        if is_any_shown {
            self.store.execute(Notice { shown, now: self.now() }).await?;
            self.watch_backlog().await?;
        }
        Ok(is_any_shown)
    }
}

/// Whether the books lack something of a transaction in the mempool.
pub(crate) fn is_news(known: &Known) -> bool {
    let is_news = |record: &TransactionRecord| {
        let is_shown = record.state.can_be_spent() || record.state == TransactionState::Waiting;
        // Whoever is offering it records it.
        !is_shown && !known.is_offered
    };
    !known.lacking.is_empty() || known.records.iter().any(|(_, it)| is_news(it))
}

/// The time of a block.
pub(crate) fn block_time(seconds: u32) -> Timestamp {
    Timestamp::from_micros(u64::from(seconds) * 1_000_000)
}
