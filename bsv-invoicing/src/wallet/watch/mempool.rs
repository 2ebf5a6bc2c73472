//! Watching the node's mempool.

use bsv_network::{FeedAddress, NetworkSource, Published, TransactionFeed};
use bsv_tx::{Transaction, Txid};
use futures_util::{FutureExt, StreamExt, stream};

use super::{Arrivals, Search};
use crate::error::Error;
use crate::wallet::Wallet;
use crate::wallet::sources::{FOLLOWING_TURNS, away};

/// How many messages of the node are read before what they concern is recorded.
const MOST_BETWEEN: usize = 1_000;

impl Wallet {
    /// Reads the mempool, and then the transactions that the node publishes (ZMQ `rawtx2`). It
    /// returns when the connection ends or the node cannot be asked, and the caller calls it again.
    /// If the node publishes nothing, it returns after reading the mempool. Payments without a
    /// payment message are then seen when they are mined.
    pub(crate) async fn watch_mempool(&self) -> Result<Watched, Error> {
        let source = &self.sources()?.following;
        self.check_caught_up().await?;
        // The mempool is read only once, so all scripts to watch must be known before.
        self.prepare_to_read().await?;
        let address = match &self.settings.transaction_feed {
            Some(address) => FeedAddress::At(address.clone()),
            None => source.feed_address().await.map_err(away)?,
        };
        let FeedAddress::At(address) = address else {
            self.read_mempool(source, &mut Search::default()).await?;
            return Ok(Watched::Once(address));
        };
        let feed = TransactionFeed::connect(&address).await;
        let mut feed = feed.map_err(|error| Error::NetworkAway(error.to_string()))?;
        self.read_mempool(source, &mut Search::default()).await?;
        let mut arrivals = Arrivals::default();
        loop {
            // What has come meanwhile is recorded together.
            for _ in 0..MOST_BETWEEN {
                let published = match arrivals.is_empty() {
                    true => Some(feed.next().await),
                    false if arrivals.has_room() => feed.next().now_or_never(),
                    false => None,
                };
                match published {
                    Some(Ok(Published::Transaction(it))) => {
                        self.note_arrival(&mut arrivals, *it, &mut Search::default())?;
                    }
                    Some(Ok(Published::Begun)) => {
                        self.read_mempool(source, &mut Search::default()).await?;
                    }
                    Some(Ok(Published::Gap)) => {
                        tracing::warn!("notifications of the node were lost: reading its mempool");
                        self.read_mempool(source, &mut Search::default()).await?;
                    }
                    // The caller reads the mempool again.
                    Some(Err(error)) => {
                        tracing::info!("{error}");
                        return Ok(Watched::UntilEnd);
                    }
                    None => break,
                }
            }
            self.notice_in_mempool(source, arrivals.take(), &mut Search::default()).await?;
        }
    }

    /// Reads the mempool. A transaction may be listed before one whose outputs it spends, so the
    /// reading repeats until nothing new is found. It leaves out what does not concern the wallet.
    pub(crate) async fn read_mempool(
        &self,
        source: &NetworkSource,
        search: &mut Search<'_>,
    ) -> Result<(), Error> {
        let txids = source.unmined().await.map_err(away)?;
        let watching = &self.watching;
        watching.looked_at().list(&txids);
        loop {
            self.load_filter().await?;
            let mut open = txids.clone();
            // A transaction that does not concern the watched scripts may pay the further keys.
            if search.keys.is_empty() {
                open.retain(|txid| !watching.looked_at().has_done(txid));
            }
            let asked = open.into_iter().map(|txid| ask(source, txid));
            let mut transactions = stream::iter(asked).buffered(FOLLOWING_TURNS);
            let mut arrivals = Arrivals::default();
            let mut has_found = false;
            while let Some(answer) = transactions.next().await {
                let (txid, transaction) = answer?;
                let Some(transaction) = transaction else { continue };
                if let Some(strange) = self.note_arrival(&mut arrivals, transaction, search)? {
                    watching.looked_at().finish(&txid, &strange);
                }
                if !arrivals.has_room() {
                    has_found |= self.notice_in_mempool(source, arrivals.take(), search).await?;
                }
            }
            while !arrivals.is_empty() {
                has_found |= self.notice_in_mempool(source, arrivals.take(), search).await?;
            }
            if !has_found {
                return Ok(());
            }
        }
    }
}

async fn ask(source: &NetworkSource, txid: Txid) -> Result<(Txid, Option<Transaction>), Error> {
    Ok((txid, source.transaction(&txid).await.map_err(away)?))
}

/// How the mempool was watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Watched {
    /// Until the connection to the node ended.
    UntilEnd,
    /// Once, because the node does not publish its transactions at an address that this machine
    /// reaches.
    Once(FeedAddress),
}
