//! Catching up with the chain after a backup was restored. The books are an earlier copy. What the
//! wallet has received and spent since then is only in the chain.

use std::sync::atomic::Ordering;

use bsv_network::{ChainTip, NetworkSource};
use bsv_tx::KeyError;

use crate::error::Error;
use crate::ledger::queries::{GetCatchUp, GetEvents, GetLastEventAt};
use crate::ledger::{BeginAccount, CaughtUp, GetWatchedAhead, NameLog};
use crate::model::coin::Chain;
use crate::model::event::{EventKind, LogName};
use crate::model::time::Timestamp;
use crate::store::WalletStore;
use crate::wallet::Wallet;
use crate::wallet::seed::account_of;
use crate::wallet::sources::away;
use crate::wallet::watch::Search;

/// How many blocks before the last followed one are read again, because that one may have left the
/// chain.
const READ_AGAIN: u32 = 100;
/// If no followed block is known, blocks are read from this long before the last event of the
/// books. Block times are off by two hours at most.
const READ_BEFORE: std::time::Duration = std::time::Duration::from_secs(24 * 60 * 60);

/// How many events are read at once.
const EVENTS_AT_ONCE: usize = 1000;

impl Wallet {
    /// Takes new keys from a new account from now on, and gives the log of events a new name. Call
    /// this after the store was replaced by an earlier copy, and before the wallet is opened again:
    /// somebody may know keys that were given out since that copy, and events that were written
    /// since. Returns the account.
    pub async fn begin_account(&self) -> Result<u32, Error> {
        let log = LogName::random().map_err(KeyError::NoRandomness)?;
        self.store.execute(NameLog(log)).await?;
        let account = account_of(Timestamp::of_system());
        Ok(self.store.execute(BeginAccount { account, is_behind: true }).await?)
    }

    /// Fails until the books have caught up. A payment that is made before that would be recorded
    /// twice.
    pub(crate) async fn check_caught_up(&self) -> Result<(), Error> {
        if self.has_caught_up.load(Ordering::Relaxed) {
            return Ok(());
        }
        if self.store.get(GetCatchUp).await?.is_some() {
            let reason = "the wallet is catching up with the chain, after a backup was restored";
            return Err(Error::NetworkAway(reason.to_owned()));
        }
        self.has_caught_up.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Catches up with the chain, if the books are an earlier copy.
    pub(crate) async fn catch_up(&self, source: &NetworkSource) -> Result<(), Error> {
        let Some(copy) = self.store.get(GetCatchUp).await? else { return Ok(()) };
        if !source.reads_blocks() {
            tracing::warn!(
                "the wallet comes from a backup, and services cannot tell what came after it: compare it \
                 with bsv-cli export before you pay or refund anything again"
            );
            self.store.execute(CaughtUp).await?;
            return Ok(());
        }
        let tip = source.tip().await.map_err(away)?;
        let from = match copy.followed_to {
            Some(height) => height.saturating_sub(READ_AGAIN),
            None => {
                let last_event_at = self.store.get(GetLastEventAt).await?;
                height_at(source, tip, last_event_at.before(READ_BEFORE)).await?
            }
        };
        let from = from.min(tip.height);
        tracing::info!("the wallet comes from a backup: reading the blocks from height {from} on");
        self.prepare_to_read().await?;
        // Somebody may have seen invoices only after the backup was made, and change may go to keys
        // of payments that were being made at that moment.
        let ahead = self.store.list(GetWatchedAhead).await?;
        let change = ahead.into_iter().filter(|(key, _)| key.chain == Chain::Change);
        let keys = self.given_out_keys(change.map(|(key, end)| (key.account, end))).await?;
        let mut search = Search { keys, ..Search::default() };
        let read = self.walk(source, from, &mut search, &mut |_, _| ()).await?;
        self.store.execute(CaughtUp).await?;
        let height = read.map_or(from, |block| block.height);
        tracing::info!("the wallet has caught up with the chain up to height {height}");
        self.warn_of_found(copy.last_event).await
    }

    /// Says how many transactions after this event spend coins of the wallet, and are not in its books
    /// as payments. They may be refunds, which the owner must not make again.
    async fn warn_of_found(&self, mut last_event: u64) -> Result<(), Error> {
        let mut found = 0;
        loop {
            let events = self.store.list(GetEvents(last_event, EVENTS_AT_ONCE)).await?;
            found += events.iter().filter(|it| it.kind == EventKind::TransactionFound).count();
            match events.last() {
                Some(event) => last_event = event.number,
                None => break,
            }
        }
        if found > 0 {
            tracing::warn!(
                "transactions that spend coins of the wallet and that its books do not know: {found}. \
                 They may be payments and refunds that were made after the backup. Compare them with \
                 bsv-cli export before you pay or refund anything again"
            );
        }
        Ok(())
    }
}

/// The height of the first block of the main chain that is not older than `time`. The result may be
/// slightly off, because block times do not always rise.
pub(crate) async fn height_at(
    source: &NetworkSource,
    tip: ChainTip,
    time: Timestamp,
) -> Result<u32, Error> {
    let (mut low, mut high) = (0, tip.height);
    while low < high {
        let middle = low + (high - low) / 2;
        let block = source.header_at(middle).await.map_err(away)?;
        let mined_at = block.map_or(u64::MAX, |it| u64::from(it.header.time) * 1_000_000);
        if mined_at < time.as_micros() {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Ok(low)
}
