//! Reading earlier blocks again.

use std::time::{Duration, Instant};

use bsv_network::{ChainTip, NetworkSource};

use super::Search;
use crate::error::Error;
use crate::ledger::drop_bytes::DEPTH;
use crate::ledger::rows::RescanFrom;
use crate::ledger::{GetRescan, SetRescan};
use crate::store::WalletStore;
use crate::wallet::Wallet;
use crate::wallet::catch_up::height_at;
use crate::wallet::sources::away;

/// How long one turn of reading earlier blocks lasts. New blocks are read between turns.
const TURN: Duration = Duration::from_secs(2);
/// Blocks are read from this long before the given time. Block times are off by two hours at most.
const READ_BEFORE: Duration = Duration::from_secs(24 * 60 * 60);

impl Wallet {
    /// Reads the blocks from a height on again, and records what the books lack. What the books
    /// have does not change. Returns the height of the last block. `progress` gets the height of each
    /// block and the height of the last block.
    pub async fn rescan(
        &self,
        from_height: u32,
        mut progress: impl FnMut(u32, u32),
    ) -> Result<u32, Error> {
        let source = &self.sources()?.operating;
        self.check_caught_up().await?;
        let tip = tip_from(source, from_height).await?;
        let from = RescanFrom::Height(from_height);
        while !self.request_rescan(source, tip, from).await? {}
        while !self.rescan_for_a_turn(source, tip, &mut progress).await? {}
        Ok(tip.height)
    }

    /// Requests the reading of the blocks from a place on, and of those that were requested before.
    /// Returns false if somebody else has changed the place meanwhile.
    pub(super) async fn request_rescan(
        &self,
        source: &NetworkSource,
        tip: ChainTip,
        from: RescanFrom,
    ) -> Result<bool, Error> {
        let before = self.store.get(GetRescan).await?;
        let mut height = height_of(source, tip, from).await?;
        if let Some(place) = before {
            height = height.min(height_of(source, tip, place).await?);
        }
        let from = Some(RescanFrom::Height(height));
        Ok(self.store.execute(SetRescan { before, from }).await?)
    }

    /// Continues to read earlier blocks for one turn, if there are any to read. Returns whether
    /// none are left.
    pub(crate) async fn rescan_for_a_turn(
        &self,
        source: &NetworkSource,
        tip: ChainTip,
        progress: &mut impl FnMut(u32, u32),
    ) -> Result<bool, Error> {
        let Some(place) = self.store.get(GetRescan).await? else { return Ok(true) };
        self.prepare_to_read().await?;
        let begun_at = height_of(source, tip, place).await?;
        let mut height = begun_at;
        let begun = Instant::now();
        while height <= tip.height && begun.elapsed() < TURN {
            progress(height, tip.height);
            // A missing block has left the chain. Its successor is read as a new block.
            self.read_block(source, height, None, &mut Search::default()).await?;
            height += 1;
        }
        // Some of these blocks may be deep already, so that no new tip makes them so.
        let read = (begun_at.saturating_sub(1), u64::MAX);
        self.drop_bytes_after(read, tip.height.min(height.saturating_add(DEPTH))).await?;
        let is_done = height > tip.height;
        let from = (!is_done).then_some(RescanFrom::Height(height));
        let is_set = self.store.execute(SetRescan { before: Some(place), from }).await?;
        Ok(is_done && is_set)
    }
}

/// The tip. Fails if it is below a height.
pub(crate) async fn tip_from(source: &NetworkSource, height: u32) -> Result<ChainTip, Error> {
    let tip = source.tip().await.map_err(away)?;
    if height <= tip.height {
        return Ok(tip);
    }
    let last = tip.height;
    Err(Error::BadChain(format!("block {height} is beyond the node's last one, {last}")))
}

/// The height of the first block to read.
async fn height_of(source: &NetworkSource, tip: ChainTip, place: RescanFrom) -> Result<u32, Error> {
    match place {
        RescanFrom::Height(height) => Ok(height),
        RescanFrom::Time(time) => height_at(source, tip, time.before(READ_BEFORE)).await,
    }
}
