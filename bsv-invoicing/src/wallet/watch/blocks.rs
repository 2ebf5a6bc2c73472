//! Reading new blocks.

use std::collections::HashSet;
use std::sync::Arc;

use bsv_network::{ChainTip, NetworkSource};
use bsv_tx::BlockHash;
use futures_util::future::try_join_all;

use super::block_parts::{BlockParts, Found};
use super::{Search, block_time};
use crate::error::Error;
use crate::ledger::queries::{GetEvents, GetFollowedTip};
use crate::ledger::rows::{FollowedBlock, RescanFrom};
use crate::ledger::{
    CheckedProof, DropBytes, FollowTip, GetLong, GetReorganisations, Known, Notice, Noticed,
    Refusal, ShownPlace,
};
use crate::model::time::Timestamp;
use crate::model::transaction::{BlockPlace, Proof, TransactionRecord};
use crate::store::{WalletStore, WalletStoreError};
use crate::wallet::Wallet;
use crate::wallet::sources::away;

/// The progress of reading is stored after this many blocks.
const STORED_EVERY: u32 = 100;
/// How many mined transactions, each with those that it spends, are looked at together to drop bytes.
const LOOKED_AT_ONCE: usize = 20;

impl Wallet {
    /// Follows the chain up to the tip, and reads its new blocks if the source has them.
    pub(crate) async fn go_on_to(
        &self,
        source: &NetworkSource,
        tip: ChainTip,
        fork: Option<u32>,
    ) -> Result<(), Error> {
        if source.reads_blocks() {
            return self.read_new_blocks(source, tip, fork).await;
        }
        self.watch_backlog().await?;
        self.follow_tip(FollowedBlock { height: tip.height, hash: tip.hash }).await
    }

    /// Reads all blocks after the last one that was read, up to the tip. `fork` is the height after which the
    /// main chain has changed since then.
    async fn read_new_blocks(
        &self,
        source: &NetworkSource,
        tip: ChainTip,
        fork: Option<u32>,
    ) -> Result<(), Error> {
        self.prepare_to_read().await?;
        let last = self.store.get(GetFollowedTip).await?;
        let last = last.map(|last| last.height.min(fork.unwrap_or(u32::MAX)));
        if last.is_none() {
            self.rescan_since_first_event(source, tip).await?;
        }
        let mut height = last.unwrap_or(tip.height);
        let mut read = None;
        while height < tip.height {
            height += 1;
            let previous = read.map(|block: FollowedBlock| block.hash);
            // `None` means that the chain has changed meanwhile. The next round finds out how.
            let search = &mut Search::default();
            let block = self.read_block(source, height, previous, search).await?;
            let Some(block) = block else { return Ok(()) };
            read = Some(block);
            if height % STORED_EVERY == 0 {
                self.follow_tip(block).await?;
            }
        }
        let tip = read.unwrap_or(FollowedBlock { height: tip.height, hash: tip.hash });
        self.follow_tip(tip).await
    }

    /// Records that the chain was followed and read up to a block, after dropping the bytes that
    /// nobody needs any more with this block as the tip.
    pub(crate) async fn follow_tip(&self, tip: FollowedBlock) -> Result<(), Error> {
        let followed = self.store.get(GetFollowedTip).await?;
        let after = GetLong::begin(followed.map(|followed| followed.height));
        self.drop_bytes_after(after, tip.height).await?;
        while self.store.execute(FollowTip { tip, now: self.now() }).await? {}
        Ok(())
    }

    /// Drops the bytes of long transactions that nobody needs any more since the blocks after a
    /// place are deep below the tip.
    pub(super) async fn drop_bytes_after(
        &self,
        place: (u32, u64),
        tip: u32,
    ) -> Result<(), WalletStoreError> {
        let mut next = Some(place);
        while let Some(after) = next {
            let long = self.store.list(GetLong { after, tip, limit: LOOKED_AT_ONCE }).await?;
            let drops = long.numbers.into_iter();
            let drops = drops.map(|transaction| self.store.execute(DropBytes { transaction, tip }));
            // They share commits.
            try_join_all(drops).await?;
            next = long.next;
        }
        Ok(())
    }

    /// Requests the reading of the blocks from the first event until the chain was first followed.
    /// Others may know keys of the wallet since the first event. Earlier blocks cannot concern the
    /// wallet.
    async fn rescan_since_first_event(
        &self,
        source: &NetworkSource,
        tip: ChainTip,
    ) -> Result<(), Error> {
        if let Some(first) = self.store.get(GetEvents(0, 1)).await?.pop() {
            while !self.request_rescan(source, tip, RescanFrom::Time(first.at)).await? {}
        }
        Ok(())
    }

    /// Reads the blocks from a height on, and the mempool. Returns the last block that was read, if
    /// any. It may have left the main chain since. `progress` gets the height of each block and the
    /// height of the last block.
    pub(crate) async fn walk(
        &self,
        source: &NetworkSource,
        from_height: u32,
        search: &mut Search<'_>,
        progress: &mut impl FnMut(u32, u32),
    ) -> Result<Option<FollowedBlock>, Error> {
        self.load_filter().await?;
        let mut tip = source.tip().await.map_err(away)?;
        let (mut height, mut last) = (from_height, None);
        while height <= tip.height {
            progress(height, tip.height);
            let previous = last.map(|last: FollowedBlock| last.hash);
            last = self.read_block(source, height, previous, search).await?;
            if last.is_none() {
                let reason = format!("the chain changed at height {height}: try again");
                return Err(Error::BadChain(reason));
            }
            height += 1;
            if height > tip.height {
                tip = source.tip().await.map_err(away)?;
            }
        }
        self.read_mempool(source, search).await?;
        Ok(last)
    }

    /// Reads the block of the main chain at a height, if it follows the block with the hash
    /// `previous`.
    pub(super) async fn read_block(
        &self,
        source: &NetworkSource,
        height: u32,
        previous: Option<BlockHash>,
        search: &mut Search<'_>,
    ) -> Result<Option<FollowedBlock>, Error> {
        let reorganisations = self.store.get(GetReorganisations).await?;
        let watched_before = *self.watching.backlog.lock().await;
        let Some(block) = source.block_at(height).await.map_err(away)? else { return Ok(None) };
        let hash = block.header.block_hash();
        if previous.is_some_and(|previous| previous != block.header.previous_block) {
            return Ok(None);
        }
        let came_at = self.expiry_time().min(block_time(block.header.time));
        let filter = &self.watching.filter;
        let place = BlockPlace { hash, height };
        let mut parts = BlockParts::read(source, block, place, filter, search).await?;
        let mut has_news = false;
        loop {
            let part = parts.next(search).await?;
            if part.is_empty() {
                break;
            }
            match self.notice_mined(part, reorganisations, came_at, search).await {
                Err(WalletStoreError::Refused(Refusal::Reorganised)) => {
                    drop(parts);
                    return Box::pin(self.read_block(source, height, previous, search)).await;
                }
                noticed => has_news |= noticed?,
            }
        }
        drop(parts);
        // The block may pay keys that are watched only now.
        if has_news && self.watch_backlog().await? != watched_before {
            return Box::pin(self.read_block(source, height, previous, search)).await;
        }
        Ok(Some(FollowedBlock { height, hash }))
    }

    /// Records transactions of a block, as far as the books lack something of them. Returns whether
    /// they did.
    async fn notice_mined(
        &self,
        part: Vec<Found>,
        reorganisations: u64,
        came_at: Timestamp,
        search: &mut Search<'_>,
    ) -> Result<bool, WalletStoreError> {
        self.watch_found(search).await?;
        let (mut shown, mut txids) = (Vec::new(), HashSet::new());
        for Found { transaction, proof } in part {
            let transaction = Arc::new(transaction);
            // The books do not have the coins of those before it yet.
            let spent = transaction.view().into_iter().flat_map(|it| it.spent());
            let may_spend_news = { spent }.any(|spent| txids.contains(&spent.txid));
            let known = self.known(&transaction).await?;
            if let Some(missing) = &mut search.missing {
                let place = format!("block {}", proof.block.height);
                missing.note(&transaction, &known.unwrap_or_default(), &search.keys, &place);
                continue;
            }
            if may_spend_news || known.is_some_and(|known| is_news(&known, &proof)) {
                txids.insert(transaction.txid);
                let place = ShownPlace::Block(CheckedProof { proof, reorganisations });
                let transaction = Arc::unwrap_or_clone(transaction);
                shown.push(Noticed { transaction, place, came_at, ancestry: Vec::new() });
            }
        }
        if shown.is_empty() {
            return Ok(false);
        }
        self.store.execute(Notice { shown, now: self.now() }).await?;
        Ok(true)
    }
}

/// Whether the books lack something of a transaction in a block.
fn is_news(known: &Known, proof: &Proof) -> bool {
    let is_noted = |record: &TransactionRecord| record.state.block() == Some(proof.block);
    !known.lacking.is_empty() || !known.records.iter().all(|(_, record)| is_noted(record))
}
