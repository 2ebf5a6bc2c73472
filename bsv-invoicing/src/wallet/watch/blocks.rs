//! Reading new blocks.

use std::sync::Arc;

use bsv_network::{ChainTip, NodeRpc};
use bsv_tx::{BlockHash, Transaction};

use super::block_time;
use crate::error::Error;
use crate::ledger::queries::{GetEvents, GetFollowedTip};
use crate::ledger::rows::{FollowedBlock, RescanFrom};
use crate::ledger::{FollowTip, GetRescan, Notice, Noticed, SetRescan, ShownPlace};
use crate::model::time::Timestamp;
use crate::model::transaction::{BlockPlace, Proof};
use crate::store::WalletStore;
use crate::wallet::Wallet;
use crate::wallet::node::away;

/// The progress of reading is stored after this many blocks.
const STORED_EVERY: u32 = 100;

impl<S: WalletStore> Wallet<S> {
    /// Reads all blocks after the last one that was read, up to the tip. `fork` is the height after which the
    /// main chain has changed since then.
    pub(crate) async fn read_new_blocks(
        &self,
        node: &NodeRpc,
        tip: ChainTip,
        fork: Option<u32>,
    ) -> Result<(), Error> {
        self.watch_backlog().await?;
        // Whoever pays a script was shown it before: it is in the store since before these blocks.
        self.load_filter().await?;
        self.load_new_scripts().await?;
        let last = self.store.get(GetFollowedTip).await?;
        let last = last.map(|last| last.height.min(fork.unwrap_or(u32::MAX)));
        if last.is_none() {
            self.rescan_since_first_event().await?;
        }
        let mut height = last.unwrap_or(tip.height);
        let mut read = None;
        while height < tip.height {
            height += 1;
            let previous = read.map(|block: FollowedBlock| block.hash);
            // `None` means that the chain has changed meanwhile. The next round finds out how.
            let Some(block) = self.read_block(node, height, previous).await? else { return Ok(()) };
            read = Some(block);
            if height % STORED_EVERY == 0 {
                self.store.execute(FollowTip { tip: block }).await?;
            }
        }
        let tip = read.unwrap_or(FollowedBlock { height: tip.height, hash: tip.hash });
        Ok(self.store.execute(FollowTip { tip }).await?)
    }

    /// Requests the reading of the blocks from the first event until the chain was first followed.
    /// Others may know keys of the wallet since the first event. Earlier blocks cannot concern the
    /// wallet.
    async fn rescan_since_first_event(&self) -> Result<(), Error> {
        let is_begun = self.store.get(GetRescan).await?.is_some();
        let first = self.store.get(GetEvents(0, 1)).await?.pop();
        if let (false, Some(first)) = (is_begun, first) {
            let from = Some(RescanFrom::Time(first.at));
            self.store.execute(SetRescan { from }).await?;
        }
        Ok(())
    }

    /// Reads the block of the main chain at a height, if it follows the block with the hash
    /// `previous`.
    pub(super) async fn read_block(
        &self,
        node: &NodeRpc,
        height: u32,
        previous: Option<BlockHash>,
    ) -> Result<Option<FollowedBlock>, Error> {
        let Some(hash) = node.block_hash(height).await.map_err(away)? else { return Ok(None) };
        let Some(mut block) = node.block(&hash).await.map_err(away)? else { return Ok(None) };
        if previous.is_some_and(|previous| previous != block.header.previous_block) {
            return Ok(None);
        }
        let (mut found, mut position) = (Vec::new(), 0);
        while let Some(transaction) = block.next().await.map_err(away)? {
            // A transaction may spend what an earlier one in the same block pays to the wallet.
            if self.watching.filter.concerns(&transaction) {
                self.watching.filter.add(std::iter::once(transaction.txid().as_bytes().as_slice()));
                found.push((position, transaction));
            }
            position += 1;
        }
        let came_at = self.now().min(block_time(block.header.time));
        for (position, transaction) in found {
            let place = BlockPlace { hash, height };
            let Some(branch) = block.branch(position) else { continue };
            self.notice_mined(transaction, Proof { block: place, branch }, came_at).await?;
        }
        Ok(Some(FollowedBlock { height, hash }))
    }

    async fn notice_mined(
        &self,
        transaction: Transaction,
        proof: Proof,
        came_at: Timestamp,
    ) -> Result<(), Error> {
        let transaction = Arc::new(transaction);
        let Some(known) = self.known(&transaction).await? else { return Ok(()) };
        let mut records = known.records.iter();
        let is_noted = records.all(|(_, record)| record.state.block() == Some(proof.block));
        if known.lacking.is_empty() && is_noted {
            return Ok(());
        }
        let transaction = Arc::unwrap_or_clone(transaction);
        let noticed = Noticed { transaction, place: ShownPlace::Block(proof), came_at };
        Ok(self.store.execute(Notice { shown: vec![noticed], now: self.now() }).await?)
    }
}
