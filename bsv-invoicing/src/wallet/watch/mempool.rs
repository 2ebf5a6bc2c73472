//! What the node has in its mempool, and takes into it.

use bsv_network::{FeedAddress, NodeRpc, Published, TransactionFeed};
use bsv_tx::{Transaction, Txid};
use futures_util::{StreamExt, stream};

use crate::error::Error;
use crate::store::WalletStore;
use crate::wallet::Wallet;
use crate::wallet::node::{FOLLOWING_TURNS, away};

impl<S: WalletStore> Wallet<S> {
    /// Takes in what the mempool has, and then what the node publishes (ZMQ `rawtx2`), until the connection
    /// ends or the node cannot be asked: to be called again then. Answers at once where the node publishes
    /// nothing: what comes without a payment message is seen when it is mined.
    pub(crate) async fn watch_mempool(&self) -> Result<Watched, Error> {
        let node = &self.node()?.following;
        self.check_caught_up().await?;
        // What the mempool has is read once: all that is to be watched must be known then.
        self.watch_backlog().await?;
        self.load_filter().await?;
        let address = match &self.settings.transaction_feed {
            Some(address) => FeedAddress::At(address.clone()),
            None => node.transaction_feed_address().await.map_err(away)?,
        };
        let FeedAddress::At(address) = address else {
            self.read_mempool(node).await?;
            return Ok(Watched::Once(address));
        };
        let feed = TransactionFeed::connect(&address).await;
        let mut feed = feed.map_err(|error| Error::NetworkAway(error.to_string()))?;
        self.read_mempool(node).await?;
        loop {
            match feed.next().await {
                Ok(Published::Transaction(transaction)) => {
                    self.notice_in_mempool(node, *transaction).await?;
                }
                Ok(Published::Begun) => self.read_mempool(node).await?,
                Ok(Published::Gap) => {
                    tracing::warn!("notifications of the node were lost: reading its mempool");
                    self.read_mempool(node).await?;
                }
                Err(error) => {
                    tracing::info!("{error}");
                    return Ok(Watched::UntilEnd);
                }
            }
        }
    }

    /// Takes in what the mempool has. A transaction may be told of before one whose outputs it spends, so that
    /// all are looked at until no more are found.
    async fn read_mempool(&self, node: &NodeRpc) -> Result<(), Error> {
        let txids = node.mempool().await.map_err(away)?;
        loop {
            self.load_filter().await?;
            let asked = txids.iter().copied().map(|txid| ask(node, txid));
            let mut transactions = stream::iter(asked).buffered(FOLLOWING_TURNS);
            let mut has_found = false;
            while let Some(transaction) = transactions.next().await {
                if let Some(transaction) = transaction? {
                    has_found |= self.notice_in_mempool(node, transaction).await?;
                }
            }
            if !has_found {
                return Ok(());
            }
        }
    }
}

async fn ask(node: &NodeRpc, txid: Txid) -> Result<Option<Transaction>, Error> {
    node.transaction(&txid).await.map_err(away)
}

/// How the mempool was watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Watched {
    /// Until the connection ended.
    UntilEnd,
    /// Once: the node does not publish its transactions where they can be had.
    Once(FeedAddress),
}
