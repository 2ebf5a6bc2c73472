//! Finding a wallet's coins with only its words, by walking the chain.

use bsv_network::NodeRpc;

use crate::error::Error;
use crate::ledger::rows::FollowedBlock;
use crate::ledger::{BeginAccount, Recover, SkipNumbers};
use crate::model::time::Timestamp;
use crate::store::WalletStore;
use crate::wallet::Wallet;
use crate::wallet::node::away;
use crate::wallet::search::Search;
use crate::wallet::seed::account_of;

/// How many keys in a row may be unused before the next used one.
pub const DEFAULT_LOOKAHEAD: u32 = 100_000;

/// Where and how far to look for a wallet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walk {
    /// The height of the first block to read. It must be older than everything that the wallet has
    /// received.
    pub from_height: u32,
    /// How many keys in a row may be unused. This applies to the keys of invoices and to those for
    /// change separately.
    pub lookahead: u32,
}

/// The result of a recovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// The height of the last block that was read.
    pub height: u32,
    /// The number of transactions that make or spend coins of the wallet.
    pub transactions: u64,
    /// The number of coins that are left.
    pub coins: u64,
    /// The sum of these coins, in satoshis.
    pub balance: u64,
}

impl Wallet {
    /// Finds the coins of a new wallet whose seed was used before, and stores them. It reads the
    /// blocks from a height on, and the mempool. `progress` gets the height of each block and the
    /// height of the last block.
    ///
    /// New keys come from beyond the lookahead, because somebody may know the keys of users and of
    /// invoices that were not paid. The invoices and users themselves are not found.
    pub async fn recover(
        &self,
        walk: Walk,
        mut progress: impl FnMut(u32, u32),
    ) -> Result<Recovery, Error> {
        let node = &self.node()?.operating;
        let mut search = Search::of_words(&self.keys, walk.lookahead)?;
        let tip = self.walk(node, &mut search, walk.from_height, &mut progress).await?;
        self.follow_tip(tip).await?;
        self.store.execute(search.used_numbers(walk.lookahead)).await?;
        let last_used = search.used_accounts().max().unwrap_or(0);
        let account = account_of(Timestamp::of_system()).max(last_used + 1);
        self.store.execute(BeginAccount { account, is_behind: false }).await?;
        Ok(Recovery {
            height: tip.height,
            transactions: search.last_number(),
            coins: search.coins_left(),
            balance: self.balance().await?,
        })
    }

    /// Stores what a search finds in the blocks from a height on and in the mempool. Returns the
    /// last block that was read. It may have left the main chain since.
    pub(crate) async fn walk(
        &self,
        node: &NodeRpc,
        search: &mut Search,
        from_height: u32,
        progress: &mut impl FnMut(u32, u32),
    ) -> Result<FollowedBlock, Error> {
        let mut tip = node.tip().await.map_err(away)?;
        if from_height > tip.height {
            let last = tip.height;
            let reason = format!("block {from_height} is beyond the node's last one, {last}");
            return Err(Error::BadChain(reason));
        }
        let (mut height, mut last) = (from_height, None);
        while height <= tip.height {
            progress(height, tip.height);
            let mut block = search.begin_block(node, height, &mut last).await?;
            loop {
                let found = search.next_found(&mut block).await?;
                if found.is_empty() {
                    break;
                }
                self.store.execute(Recover { found }).await?;
            }
            height += 1;
            if height > tip.height {
                tip = node.tip().await.map_err(away)?;
            }
        }
        let hash = last.expect("the walk begins at the tip or below, and reads a block");
        let read = FollowedBlock { height: height - 1, hash };
        let mut mempool = search.begin_mempool(node).await?;
        loop {
            let found = search.next_in_mempool(node, &mut mempool, self.now()).await?;
            if found.is_empty() {
                return Ok(read);
            }
            self.store.execute(Recover { found }).await?;
        }
    }

    /// Skips the first keys of a new wallet whose seed was used before. This is for a wallet
    /// without a node, which cannot find its earlier transactions.
    pub async fn skip_keys(&self, lookahead: u32) -> Result<(), Error> {
        let skip = SkipNumbers { invoices: lookahead, users: lookahead, change: lookahead };
        self.store.execute(skip).await?;
        let account = account_of(Timestamp::of_system());
        self.store.execute(BeginAccount { account, is_behind: false }).await?;
        Ok(())
    }
}
