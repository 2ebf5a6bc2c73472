//! The entries of the node's mempool that were read since its tip changed.
//!
//! As long as the tip stays, the entry of a transaction does not change. When blocks come or leave,
//! it may: its parents are the unconfirmed ones only. So entries are used only at the tip at which
//! they were read. Many payments with common ancestors then need few calls.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use bsv_network::{MempoolEntry, NetworkSource};
use bsv_tx::{BlockHash, Txid};

use crate::error::Error;
use crate::wallet::sources::away;

/// The most unconfirmed ancestors that a payment may have.
pub(crate) const MAX_ANCESTORS: usize = 1000;
/// How many entries and parents of entries are kept. Each takes about 100 bytes.
const MOST: usize = 100_000;
/// After so many requests for parents, all ancestors of one of them are read together. Few payments
/// have so many generations of ancestors.
const FEW_GENERATIONS: usize = 3;

/// The entries that were read at one tip.
#[derive(Debug, Default)]
pub(crate) struct RecentEntries(Mutex<Recent>);

#[derive(Debug, Default)]
struct Recent {
    tip: Option<BlockHash>,
    entries: HashMap<Txid, MempoolEntry>,
    /// The number of entries, and of parents of entries.
    size: usize,
}

impl RecentEntries {
    /// Begins to read entries of a node.
    pub(crate) fn of<'w>(&'w self, source: &'w NetworkSource) -> Entries<'w> {
        Entries { recent: self, source, tip: None, read: HashMap::new(), generations: 0 }
    }

    fn get(&self, tip: BlockHash, txid: &Txid) -> Option<MempoolEntry> {
        let recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        recent.entries.get(txid).filter(|_| recent.tip == Some(tip)).cloned()
    }

    fn keep(&self, tip: BlockHash, read: HashMap<Txid, MempoolEntry>) {
        let mut recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let size: usize = read.values().map(|entry| 1 + entry.parents.len()).sum();
        if recent.tip != Some(tip) || recent.size + size > MOST {
            *recent = Recent { tip: Some(tip), ..Recent::default() };
        }
        if size <= MOST {
            recent.size += size;
            recent.entries.extend(read);
        }
    }
}

/// Reads entries, and those of ancestors only once.
pub(crate) struct Entries<'w> {
    recent: &'w RecentEntries,
    source: &'w NetworkSource,
    /// The tip before the first entry was read.
    tip: Option<BlockHash>,
    /// What the node has answered.
    read: HashMap<Txid, MempoolEntry>,
    /// How many times the node was asked for parents.
    generations: usize,
}

impl Entries<'_> {
    /// The entries of transactions as the node has them now, in the same order.
    pub(crate) async fn ask(&mut self, txids: &[Txid]) -> Result<Vec<Option<MempoolEntry>>, Error> {
        self.tip().await?;
        let entries = self.source.entries(txids).await.map_err(away)?;
        let found = txids.iter().zip(&entries);
        self.read.extend(found.filter_map(|(txid, entry)| Some((*txid, entry.clone()?))));
        Ok(entries)
    }

    /// The entries of transactions, without those that are not in the mempool. The caller knows
    /// that they are either in the mempool or mined, since the mempool has outputs of them or of
    /// their descendants. Fails if one of them has more unconfirmed ancestors than a payment may
    /// have, as far as that was looked at.
    pub(crate) async fn of_ancestors(
        &mut self,
        txids: &[Txid],
    ) -> Result<Vec<(Txid, MempoolEntry)>, Error> {
        let (mut known, mut unknown) = (Vec::with_capacity(txids.len()), Vec::new());
        if txids.is_empty() {
            return Ok(known);
        }
        let tip = self.tip().await?;
        for txid in txids {
            let entry = self.read.get(txid).cloned().or_else(|| self.recent.get(tip, txid));
            match entry {
                Some(entry) => known.push((*txid, entry)),
                None => unknown.push(*txid),
            }
        }
        if let Some(first) = unknown.first() {
            self.generations += 1;
            if self.generations > FEW_GENERATIONS {
                self.read_line(*first, tip).await?;
            }
            let read = self.ask(&unknown).await?;
            let found = unknown.into_iter().zip(read);
            known.extend(found.filter_map(|(txid, entry)| Some((txid, entry?))));
        }
        Ok(known)
    }

    /// Reads all ancestors of a transaction together. Wallets that pay often make long lines of
    /// transactions between two blocks.
    async fn read_line(&mut self, txid: Txid, tip: BlockHash) -> Result<(), Error> {
        let mut ancestors = self.source.unmined_ancestors(&txid).await.map_err(away)?;
        if ancestors.len() >= MAX_ANCESTORS {
            return Err(Error::TooManyAncestors { limit: MAX_ANCESTORS });
        }
        let recent = self.recent;
        ancestors.retain(|it| !self.read.contains_key(it) && recent.get(tip, it).is_none());
        self.ask(&ancestors).await.map(drop)
    }

    /// Reads the ancestors of several transactions together, so that those of each can be looked at
    /// without a further call. It stops when there are far more than most payments have.
    pub(crate) async fn read_ahead(
        &mut self,
        entries: &[Option<MempoolEntry>],
    ) -> Result<(), Error> {
        const EACH: usize = 100;
        let is_judged = |entry: &&MempoolEntry| entry.parents.len() <= EACH;
        let parents = entries.iter().flatten().filter(is_judged).flat_map(|it| &it.parents);
        let mut generation: Vec<_> = parents.copied().collect();
        let mut asked = HashSet::new();
        loop {
            generation.retain(|txid| asked.insert(*txid));
            if generation.is_empty() || asked.len() > entries.len() * EACH {
                break;
            }
            let read = match self.of_ancestors(&generation).await {
                Err(Error::TooManyAncestors { .. }) => break,
                read => read?,
            };
            let parents = read.iter().map(|(_, entry)| entry).filter(is_judged);
            generation = parents.flat_map(|it| &it.parents).copied().collect();
        }
        Ok(())
    }

    /// Keeps what was read for the next ones, unless the tip has changed meanwhile.
    pub(crate) async fn keep(self) {
        let Some(tip) = self.tip.filter(|_| !self.read.is_empty()) else { return };
        if self.source.tip().await.is_ok_and(|now| now.hash == tip) {
            self.recent.keep(tip, self.read);
        }
    }

    async fn tip(&mut self) -> Result<BlockHash, Error> {
        match self.tip {
            Some(tip) => Ok(tip),
            None => Ok(*self.tip.insert(self.source.tip().await.map_err(away)?.hash)),
        }
    }
}
