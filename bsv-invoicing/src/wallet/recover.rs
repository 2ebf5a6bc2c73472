//! Finding a wallet's coins with only its words, by walking the chain.

use crate::error::Error;
use crate::ledger::queries::GetFigures;
use crate::ledger::{BeginAccount, SkipNumbers};
use crate::model::time::Timestamp;
use crate::store::WalletStore;
use crate::wallet::Wallet;
use crate::wallet::look_ahead::LookAhead;
use crate::wallet::seed::account_of;
use crate::wallet::watch::{Search, tip_from};

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
        let source = &self.sources()?.operating;
        tip_from(source, walk.from_height).await?;
        let keys = LookAhead::of_words(&self.keys, walk.lookahead)?;
        let mut search = Search { keys, missing: None };
        let tip = self.walk(source, walk.from_height, &mut search, &mut progress).await?;
        let tip = tip.ok_or_else(|| Error::BadChain("the chain became shorter".to_owned()))?;
        self.follow_tip(tip).await?;
        self.store.execute(search.keys.used_numbers()).await?;
        let last_used = search.keys.last_used().map(|key| key.account).max().unwrap_or(0);
        let account = account_of(Timestamp::of_system()).max(last_used + 1);
        self.store.execute(BeginAccount { account, is_behind: false }).await?;
        let figures = self.store.get(GetFigures).await?;
        Ok(Recovery {
            height: tip.height,
            transactions: figures.last_transaction,
            coins: figures.holdings.coins,
            balance: figures.holdings.balance(),
        })
    }

    /// Skips the first keys of a new wallet whose seed was used before. This is for a wallet
    /// without a node, which cannot find its earlier transactions.
    pub async fn skip_keys(&self, lookahead: u32) -> Result<(), Error> {
        let skip = SkipNumbers {
            invoices: lookahead,
            users: lookahead,
            change: lookahead,
            used: Vec::new(),
        };
        self.store.execute(skip).await?;
        let account = account_of(Timestamp::of_system());
        self.store.execute(BeginAccount { account, is_behind: false }).await?;
        Ok(())
    }
}
