//! What tells a wallet of the network: a node, or services.

mod answers;
mod node;
mod services;

use std::sync::Arc;

use bsv_tx::{BlockHash, OutPoint, Transaction, Txid};

pub use self::answers::{
    Evidence, ExtendedPackage, Fate, Offered, Package, Place, Shown, Sight, SourceError, Verdict,
};
pub use self::services::Services;
use crate::broadcasters::{BroadcasterSet, ReasonToAsk, Urgency};
use crate::rpc::{
    BlockInfo, BlockStream, ChainTip, FeedAddress, Mempool, MempoolEntry, MinedIn, NodeRpc,
    OutputState, Policy,
};

/// What tells a wallet of the network. All questions of a wallet are here.
///
/// Clones share connections. A question fails if the source cannot be asked, or if its answer makes
/// no sense.
#[derive(Clone, Debug)]
pub struct NetworkSource(Source, Urgency);

#[derive(Clone, Debug)]
enum Source {
    Node(NodeRpc),
    Services(Arc<Services>),
}

impl NetworkSource {
    /// A node as the source.
    pub fn node(node: NodeRpc) -> Self {
        Self(Source::Node(node), Urgency::Now)
    }

    /// Services as the source.
    pub fn services(services: Arc<Services>) -> Self {
        Self(Source::Services(services), Urgency::Now)
    }

    /// The same source with turns of its own. See [`NodeRpc::with_turns`]. Services limit the
    /// questions to each of them.
    pub fn with_turns(self, turns: usize) -> Self {
        match self.0 {
            Source::Node(node) => Self(Source::Node(node.with_turns(turns)), self.1),
            Source::Services(_) => self,
        }
    }

    /// The same source for questions of this urgency, in place of [`Urgency::Now`]. A node makes no
    /// difference.
    pub fn with_urgency(self, urgency: Urgency) -> Self {
        Self(self.0, urgency)
    }

    /// The broadcasters, if services are the source.
    pub fn broadcasters(&self) -> Option<&BroadcasterSet> {
        match &self.0 {
            Source::Node(_) => None,
            Source::Services(services) => Some(services.broadcasters()),
        }
    }

    /// Asks services for their fees. Call it every minute.
    pub async fn ask_fees(&self) {
        if let Source::Services(services) = &self.0 {
            services.broadcasters().ask_fees().await;
        }
    }

    /// Listens to services that tell when a transaction may have changed, for as long as it is polled.
    /// Those who wait for an answer of [`show`](Self::show) ask at once. Nothing is told of a node.
    pub async fn listen(&self, hear: impl Fn(ReasonToAsk) + Sync) {
        if let Source::Services(services) = &self.0 {
            services.listen(hear).await;
        }
    }

    /// Takes note that somebody says that transactions may have changed: those who wait for an answer
    /// of [`show`](Self::show) ask at once.
    pub fn hear(&self, reason: ReasonToAsk) {
        if let Source::Services(services) = &self.0 {
            services.hear(reason);
        }
    }

    /// Whether [`listen`](Self::listen) hears of whatever becomes of a transaction that was sent.
    pub fn is_heard(&self) -> bool {
        match &self.0 {
            Source::Node(_) => false,
            Source::Services(services) => services.broadcasters().is_heard(),
        }
    }

    /// Whether the source reads blocks and shows what is unmined. Otherwise it answers only about
    /// transactions that it is asked for.
    pub fn reads_blocks(&self) -> bool {
        matches!(self.0, Source::Node(_))
    }

    /// Whether transactions are offered with what they spend.
    pub fn takes_extended(&self) -> bool {
        matches!(self.0, Source::Services(_))
    }

    /// Whether the source shows no transaction that spends the same coins as another one that it
    /// shows.
    pub fn excludes_rivals(&self) -> bool {
        matches!(self.0, Source::Node(_))
    }

    /// About how many transactions can be asked now with [`Urgency::Later`]. `None` if there is no limit.
    pub fn spare_questions(&self) -> Option<usize> {
        match &self.0 {
            Source::Node(_) => None,
            Source::Services(services) => Some(services.broadcasters().spare_questions()),
        }
    }

    /// The lowest height whose block the source knows.
    pub fn begins_at(&self) -> u32 {
        match &self.0 {
            Source::Node(_) => 0,
            Source::Services(services) => services.begins_at(),
        }
    }

    /// Whether a block may be in the main chain before the first one that the source knows, and so cannot
    /// leave it. A node knows all.
    pub fn may_begin_with(&self, height: u32, hash: &BlockHash) -> bool {
        match &self.0 {
            Source::Node(_) => false,
            Source::Services(services) => {
                services.headers().file().chain().may_begin_with(height, hash)
            }
        }
    }

    /// The tip of the main chain.
    pub async fn tip(&self) -> Result<ChainTip, SourceError> {
        match &self.0 {
            Source::Node(node) => Ok(node.tip().await?),
            Source::Services(services) => Ok(services.tip()),
        }
    }

    /// Whether a second service shows the tip, or a block above it: headers prove work, and not that
    /// blocks are valid. It is so, too, if only one service is named that could say it. `None`: a node
    /// validates the blocks itself.
    pub async fn confirms(&self, tip: &ChainTip) -> Option<bool> {
        match &self.0 {
            Source::Node(_) => None,
            Source::Services(services) => Some(services.confirm(tip).await),
        }
    }

    /// The header of a block and its place, or `None` if the block is not known.
    pub async fn header(&self, hash: &BlockHash) -> Result<Option<BlockInfo>, SourceError> {
        match &self.0 {
            Source::Node(node) => Ok(node.block_header(hash).await?),
            Source::Services(services) => Ok(services.header(hash)),
        }
    }

    /// The header of the main chain's block at a height, or `None` if it has no such block now.
    pub async fn header_at(&self, height: u32) -> Result<Option<BlockInfo>, SourceError> {
        match &self.0 {
            Source::Node(node) => Ok(node::header_at(node, height).await?),
            Source::Services(services) => Ok(services.header_at(height)),
        }
    }

    /// Starts to read the main chain's block at a height. `None` if it has no such block now.
    pub async fn block_at(&self, height: u32) -> Result<Option<BlockStream<'_>>, SourceError> {
        let node = self.as_node()?;
        match node.block_hash(height).await? {
            Some(hash) => Ok(node.block(&hash).await?),
            None => Ok(None),
        }
    }

    /// Starts to read a block once more that was read to its end. See [`NodeRpc::block_again`].
    pub async fn block_again(
        &self,
        read: BlockStream<'_>,
    ) -> Result<Option<BlockStream<'_>>, SourceError> {
        Ok(self.as_node()?.block_again(read).await?)
    }

    /// The transactions that can be mined.
    pub async fn unmined(&self) -> Result<Vec<Txid>, SourceError> {
        Ok(self.as_node()?.mempool().await?)
    }

    /// The entries of unmined transactions, in the same order. `None` for one that cannot be mined,
    /// or is mined. Services have no mempool.
    pub async fn entries(&self, txids: &[Txid]) -> Result<Vec<Option<MempoolEntry>>, SourceError> {
        match &self.0 {
            Source::Node(node) => Ok(node.mempool_entries(txids).await?),
            Source::Services(_) => Ok(vec![None; txids.len()]),
        }
    }

    /// All unmined ancestors of an unmined transaction.
    pub async fn unmined_ancestors(&self, txid: &Txid) -> Result<Vec<Txid>, SourceError> {
        Ok(self.as_node()?.mempool_ancestors(txid).await?)
    }

    /// How the source sees a transaction that it [places](Self::place) among the unmined ones. `None`
    /// if it is no longer there. A source that [takes what is spent](Self::takes_extended) needs the
    /// package.
    pub async fn sight(
        &self,
        txid: &Txid,
        package: Option<&Package<'_>>,
    ) -> Result<Option<Sight>, SourceError> {
        match (&self.0, package) {
            (Source::Node(node), _) => {
                let entries = node.mempool_entries(std::slice::from_ref(txid)).await?;
                Ok(entries.into_iter().next().flatten().map(node::sight))
            }
            (Source::Services(services), Some(package)) => {
                Ok(Some(services.sight(extended(package)?)))
            }
            (Source::Services(_), None) => Err(SourceError::NeedsSpentOutputs(*txid)),
        }
    }

    /// The address at which the source publishes new transactions.
    pub async fn feed_address(&self) -> Result<FeedAddress, SourceError> {
        Ok(self.as_node()?.transaction_feed_address().await?)
    }

    /// A transaction, or `None` if the source does not have it.
    pub async fn transaction(&self, txid: &Txid) -> Result<Option<Transaction>, SourceError> {
        match &self.0 {
            Source::Node(node) => Ok(node.transaction(txid).await?),
            Source::Services(_) => Ok(None),
        }
    }

    /// Where the network has a transaction.
    pub async fn place(&self, txid: &Txid) -> Result<Place, SourceError> {
        match &self.0 {
            Source::Node(node) => Ok(node.transaction_place(txid).await?.into()),
            Source::Services(services) => Ok(services.place(txid, self.1).await),
        }
    }

    /// Where the network has several transactions, in the same order. Services are not asked: what
    /// they do not know proves nothing.
    pub async fn places(&self, txids: &[Txid]) -> Result<Vec<Place>, SourceError> {
        match &self.0 {
            Source::Node(node) => {
                let places = node.transaction_places(txids).await?;
                Ok(places.into_iter().map(Place::from).collect())
            }
            Source::Services(_) => Ok(vec![Place::Nowhere; txids.len()]),
        }
    }

    /// What keeps the source from finding every mined transaction, if something does. Otherwise
    /// [`Place::Nowhere`] says that a transaction is not mined.
    pub async fn blind_spot(&self) -> Result<Option<&'static str>, SourceError> {
        match &self.0 {
            Source::Node(node) => Ok(node::blind_spot(node).await?),
            Source::Services(_) => Ok(Some(services::BLIND_SPOT)),
        }
    }

    /// The block that holds a transaction, with the branch to its Merkle root. `None` if the source
    /// knows of no such block. Both are the source's claim: check them with
    /// [`NetworkSource::header`].
    pub async fn mined_in(&self, txid: &Txid) -> Result<Option<MinedIn>, SourceError> {
        match &self.0 {
            Source::Node(node) => Ok(node::mined_in(node, txid).await?),
            Source::Services(services) => Ok(services.mined_in(txid, self.1).await),
        }
    }

    /// The states of coins, in the same order. What unmined transactions make exists, and what they
    /// spend is spent.
    pub async fn coins(&self, outpoints: &[OutPoint]) -> Result<Vec<OutputState>, SourceError> {
        Ok(self.as_node()?.outputs(outpoints, Mempool::Include).await?)
    }

    /// The limits of the network on transactions, and its fee rate.
    pub async fn policy(&self) -> Result<Policy, SourceError> {
        match &self.0 {
            Source::Node(node) => Ok(node.policy().await?),
            Source::Services(services) => Ok(services.policy()),
        }
    }

    /// Offers a transaction to the network once.
    ///
    /// Fails also if the source does not judge the transaction, for example because it has no room.
    /// The network may have the transaction nevertheless.
    pub async fn offer(&self, package: &Package<'_>) -> Result<Offered, SourceError> {
        match &self.0 {
            Source::Node(node) => Ok(node::offer(node, package.transaction()).await?),
            Source::Services(services) => Ok(services.offer(extended(package)?, self.1).await),
        }
    }

    /// Offers a transaction to the network until the network shows or refuses it. A node may take 5
    /// seconds. A refused transaction is looked for, because it may have been sent before, and may
    /// be mined and spent meanwhile.
    ///
    /// Fails like [`NetworkSource::offer`].
    pub async fn show(&self, package: &Package<'_>) -> Result<Shown, SourceError> {
        match &self.0 {
            Source::Node(node) => Ok(node::show(node, package.transaction()).await?),
            Source::Services(services) => Ok(services.show(extended(package)?, self.1).await),
        }
    }

    /// What the main chain says about the coins of a transaction that the network does not show.
    /// What only the mempool shows may change and decides nothing.
    pub async fn fate(&self, transaction: &Transaction) -> Result<Fate, SourceError> {
        match &self.0 {
            Source::Node(node) => Ok(node::fate(node, transaction).await?),
            Source::Services(_) => Ok(Fate::Unclear),
        }
    }

    fn as_node(&self) -> Result<&NodeRpc, SourceError> {
        match &self.0 {
            Source::Node(node) => Ok(node),
            Source::Services(_) => Err(SourceError::NeedsNode),
        }
    }
}

fn extended<'p>(package: &'p Package<'_>) -> Result<&'p ExtendedPackage, SourceError> {
    match package {
        Package::Extended(package) => Ok(package),
        Package::Plain(transaction) => Err(SourceError::NeedsSpentOutputs(transaction.txid())),
    }
}
