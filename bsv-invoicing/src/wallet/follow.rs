//! Following transactions until a Merkle proof is stored, and when their blocks leave the chain.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bsv_network::{
    Broadcast, ChainTip, Mempool, MinedIn, NodeError, NodeRpc, OutputState, TransactionPlace,
};
use bsv_tx::{BlockHash, MerkleBranch, Transaction, Txid};
use futures_util::{StreamExt, stream};
use tokio::task::JoinSet;

use crate::dpp::{ChannelMessage, MerkleProof};
use crate::error::Error;
use crate::model::payment::{BlockPlace, Followed, Proof, Purpose, TransactionState};
use crate::model::time::Timestamp;
use crate::store::WalletStore;
use crate::wallet::Wallet;
use crate::wallet::receive::away;

/// What is known between two looks at the chain. It need not be kept: a new one has everything looked
/// at again.
#[derive(Debug, Default)]
pub struct Following {
    tip: Option<ChainTip>,
    /// When all that is followed was read from the beginning.
    began: Option<Instant>,
    /// The number up to which it has been read since.
    last: u64,
    /// What was not settled at the last look.
    open: BTreeSet<u64>,
    /// When what may change without a block is looked at again.
    retries: HashMap<u64, Retry>,
    /// The height at which a transaction was found first that spends what the network does not know.
    orphans: HashMap<u64, u32>,
    /// What payees are asked, who may take their time.
    talks: JoinSet<()>,
}

#[derive(Clone, Copy, Debug)]
struct Retry {
    at: Instant,
    pause: Duration,
}

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// How often all that is followed is read while there is no new block: what is settled is seldom undone
/// without one, and there may be much of it.
const READING_PERIOD: Duration = Duration::from_secs(10);
/// How deep a block is when it is taken to stay in the chain.
const DEEP: u32 = 100;
/// For how many blocks the network must not have known what a transaction spends until that is taken
/// to be gone.
const PATIENCE: u32 = 6;
/// How many payees are asked at once.
const MOST_TALKS: usize = 64;
/// Why a node does not tell what became of a transaction.
pub(crate) const NO_INDEX: &str = "the node does not find all mined transactions: run it with \
                                   txindex=1, without which it is not known what became of some";
/// How many transactions are read at once.
const PAGE: usize = 100;
/// How many of them are looked for at once: as many calls as a node runs at once (`rpcthreads`). Their
/// proofs share commits.
const LOOKS_AT_ONCE: usize = 4;

impl<S: WalletStore> Wallet<S> {
    /// Looks after the wallet's transactions: settles what is on its way, finds proofs, and notices
    /// what was displaced. To be called every second or so, in a process that runs for long; fails if
    /// the node cannot be used, and goes on with the next call.
    pub async fn follow(self: &Arc<Self>, following: &mut Following) -> Result<(), Error> {
        let node = self.node()?;
        // Until the end, so that all is looked at again if something fails.
        let last = following.tip.take();
        let tip = node.tip().await.map_err(away)?;
        let is_new_tip = last != Some(tip);
        if is_new_tip {
            let floor = node.least_fee_rate().await.map_err(away)?;
            self.fee_floor.store(floor, Ordering::Relaxed);
            if let Some(block) = node.block_header(&tip.hash).await.map_err(away)? {
                let micros = u64::from(block.header.time) * 1_000_000;
                self.note_tip_time(Timestamp::from_micros(micros));
            }
            self.forget_lost_blocks(node, tip, last).await?;
        }
        if last.is_none() && !node.has_transaction_index().await.map_err(away)? {
            tracing::warn!("{NO_INDEX}");
        }
        while following.talks.try_join_next().is_some() {}
        if is_new_tip || following.is_old() {
            following.begin_anew();
        }
        for number in std::mem::take(&mut following.open) {
            let row = self.store.followed(number.saturating_sub(1), 1).await?;
            let still_there = row.into_iter().filter(|followed| followed.number == number);
            self.look_after_all(node, still_there.collect(), tip, is_new_tip, following).await?;
        }
        loop {
            let page = self.store.followed(following.last, PAGE).await?;
            let Some(last) = page.last() else { break };
            following.last = last.number;
            self.look_after_all(node, page, tip, is_new_tip, following).await?;
        }
        let open = &following.open;
        following.retries.retain(|number, _| open.contains(number));
        following.tip = Some(tip);
        Ok(())
    }

    async fn look_after_all(
        self: &Arc<Self>,
        node: &NodeRpc,
        page: Vec<Followed>,
        tip: ChainTip,
        is_new_tip: bool,
        following: &mut Following,
    ) -> Result<(), Error> {
        let is_open = |followed: &&Followed| followed.state != TransactionState::Settled;
        following.open.extend(page.iter().filter(is_open).map(|followed| followed.number));
        let due = page.iter().filter(|followed| is_new_tip || following.is_due(followed));
        for (followed, place) in self.places(node, due).await {
            self.look_after(node, followed, place, tip, following).await?;
        }
        Ok(())
    }

    /// Notices which blocks have left the main chain since `last` was its tip.
    async fn forget_lost_blocks(
        &self,
        node: &NodeRpc,
        tip: ChainTip,
        last: Option<ChainTip>,
    ) -> Result<(), Error> {
        if let Some(last) = last
            && is_in_main_chain(node, &last.hash).await?
        {
            return Ok(());
        }
        let from = last.map_or(tip, |last| if last.height < tip.height { last } else { tip });
        for block in self.store.blocks(from.height.saturating_sub(DEEP)).await? {
            if !is_in_main_chain(node, &block.hash).await? {
                tracing::warn!("block {} of height {} left the chain", block.hash, block.height);
                self.store.forget_block(block).await?;
            }
        }
        Ok(())
    }

    /// Where the network has transactions. Of those that are in a block the proof is stored.
    async fn places<'a>(
        &self,
        node: &NodeRpc,
        due: impl Iterator<Item = &'a Followed>,
    ) -> Vec<(&'a Followed, Result<TransactionPlace, Error>)> {
        let looks = due.map(|followed| async move { (followed, self.place(node, followed).await) });
        stream::iter(looks).buffered(LOOKS_AT_ONCE).collect().await
    }

    async fn place(&self, node: &NodeRpc, followed: &Followed) -> Result<TransactionPlace, Error> {
        let place = node.transaction_place(&followed.txid).await.map_err(away)?;
        if let TransactionPlace::Block(_) = place {
            self.find_proof(node, followed.number, &followed.txid).await?;
        }
        Ok(place)
    }

    async fn look_after(
        self: &Arc<Self>,
        node: &NodeRpc,
        followed: &Followed,
        place: Result<TransactionPlace, Error>,
        tip: ChainTip,
        following: &mut Following,
    ) -> Result<(), Error> {
        let seen_to = match place {
            Ok(place) => self.see_to(node, followed, place, tip, following).await,
            Err(error) => Err(error),
        };
        match seen_to {
            Err(error @ (Error::NetworkAway(_) | Error::Store(_))) => return Err(error),
            // Others can be looked after while this one has to wait.
            Err(error) => tracing::debug!("transaction {}: {error}", followed.txid),
            Ok(()) => {}
        }
        if followed.state != TransactionState::Settled {
            following.wait(followed.number);
        }
        Ok(())
    }

    async fn see_to(
        self: &Arc<Self>,
        node: &NodeRpc,
        followed: &Followed,
        place: TransactionPlace,
        tip: ChainTip,
        following: &mut Following,
    ) -> Result<(), Error> {
        let Followed { number, purpose, state, until, .. } = *followed;
        if place != TransactionPlace::Nowhere {
            following.orphans.remove(&number);
        }
        match (place, state) {
            (TransactionPlace::Block(_), _)
            | (TransactionPlace::Mempool, TransactionState::Settled) => Ok(()),
            (TransactionPlace::Mempool, _) if self.is_busy(purpose) => Ok(()),
            (TransactionPlace::Mempool, _) => Ok(self.store.settle(number, self.now()).await?),
            (TransactionPlace::Nowhere, TransactionState::Settled) => {
                self.send_again(node, followed, tip, following).await
            }
            (TransactionPlace::Nowhere, TransactionState::InFlight) => {
                self.resolve(followed, following).await
            }
            (
                TransactionPlace::Nowhere,
                TransactionState::Displaced | TransactionState::Dropped,
            ) => {
                if until.is_some_and(|until| until <= self.expiry_time()) {
                    self.store.unfollow(number).await?;
                }
                Ok(())
            }
        }
    }

    /// Whether a request is at work on a transaction.
    fn is_busy(&self, purpose: Purpose) -> bool {
        match purpose {
            Purpose::Incoming(invoice) => self.broadcasts.get(&invoice).is_some(),
            Purpose::Outgoing(_) | Purpose::Cancellation(_) | Purpose::Recovered => false,
        }
    }

    /// Sees to a transaction that was left on its way.
    async fn resolve(
        self: &Arc<Self>,
        followed: &Followed,
        following: &mut Following,
    ) -> Result<(), Error> {
        let Followed { number, txid, purpose, .. } = *followed;
        match purpose {
            Purpose::Incoming(invoice) => {
                self.resume_incoming(number, invoice, txid).await;
                Ok(())
            }
            Purpose::Outgoing(payment) => {
                let wallet = Arc::clone(self);
                following.talk(async move { wallet.resume(payment).await });
                Ok(())
            }
            // The first is done together with the payment that it cancels, the other was never on its way.
            Purpose::Cancellation(_) | Purpose::Recovered => Ok(()),
        }
    }

    /// Finds the proof of a transaction that is in a block.
    async fn find_proof(&self, node: &NodeRpc, number: u64, txid: &Txid) -> Result<(), Error> {
        let Some(MinedIn { block, branch }) = node.merkle_proof(txid).await.map_err(away)? else {
            return Ok(());
        };
        match check_proof(node, txid, block, branch).await? {
            Some(proof) => Ok(self.store.prove(number, proof, self.now()).await?),
            None => {
                tracing::warn!("the node's proof that {txid} is in block {block} is wrong");
                Ok(())
            }
        }
    }

    /// Gives the node a transaction again that it has lost, or finds out that another one has taken
    /// its place.
    async fn send_again(
        self: &Arc<Self>,
        node: &NodeRpc,
        followed: &Followed,
        tip: ChainTip,
        following: &mut Following,
    ) -> Result<(), Error> {
        let Followed { number, txid, purpose, .. } = *followed;
        let transaction = self.transaction(number).await?;
        match node.send_transaction(&transaction).await {
            Ok(Broadcast::Accepted) => return Ok(()),
            Ok(Broadcast::AlreadyKnown) | Err(NodeError::Rejected { .. }) => {}
            Err(error) => return Err(away(error)),
        }
        if let Purpose::Outgoing(payment) = purpose {
            let wallet = Arc::clone(self);
            following.talk(async move { wallet.ask_payee(number, payment, &transaction).await });
            return Ok(());
        }
        let is_displaced = match fate(node, &transaction).await? {
            Fate::Unclear => false,
            Fate::Displaced => true,
            Fate::Orphaned => self.is_forgotten(node, followed, tip, following).await?,
        };
        if is_displaced {
            self.note_displaced(number, &txid).await?;
        }
        Ok(())
    }

    async fn note_displaced(&self, number: u64, txid: &Txid) -> Result<(), Error> {
        tracing::warn!("transaction {txid} was displaced");
        Ok(self.store.displace(number, self.now()).await?)
    }

    /// Whether the network has not known for long what a payment spends. Blocks count that are younger
    /// than the payment: the node may still be reading older ones.
    async fn is_forgotten(
        &self,
        node: &NodeRpc,
        followed: &Followed,
        tip: ChainTip,
        following: &mut Following,
    ) -> Result<bool, Error> {
        let Purpose::Incoming(invoice) = followed.purpose else { return Ok(false) };
        let payments = self.store.incoming(invoice).await?;
        let payment = payments.iter().find(|payment| payment.number == followed.number);
        let block = node.block_header(&tip.hash).await.map_err(away)?;
        let mined_at = block.map_or(0, |block| u64::from(block.header.time) * 1_000_000);
        if payment.is_none_or(|payment| payment.received_at.as_micros() > mined_at) {
            return Ok(false);
        }
        let since = *following.orphans.entry(followed.number).or_insert(tip.height);
        Ok(tip.height.saturating_sub(since) >= PATIENCE)
    }

    /// Finds the proof of a payment by the wallet with its payee, or that another transaction has taken
    /// its place. The node may know too little of it: it may run without an index of transactions.
    async fn ask_payee(
        &self,
        number: u64,
        payment: u64,
        transaction: &Transaction,
    ) -> Result<(), Error> {
        let node = self.node()?;
        let txid = transaction.txid();
        if let Some(proof) = self.proof_of_payee(node, payment, &txid).await? {
            return Ok(self.store.prove(number, proof, self.now()).await?);
        }
        if fate(node, transaction).await? == Fate::Displaced {
            self.note_displaced(number, &txid).await?;
        }
        Ok(())
    }

    /// The proof that the payee of a payment offers, if it holds.
    async fn proof_of_payee(
        &self,
        node: &NodeRpc,
        payment: u64,
        txid: &Txid,
    ) -> Result<Option<Proof>, Error> {
        let payment = self.outgoing_payment(payment).await?;
        let Some(body) = self.payee.messages(&payment).await else { return Ok(None) };
        let messages = ChannelMessage::list_from_json(&body).unwrap_or_default();
        for message in messages.iter().rev() {
            let Ok(claim) = MerkleProof::from_envelope(&message.payload) else { continue };
            if claim.txid == *txid
                && let Some(proof) = check_proof(node, txid, claim.block_hash, claim.branch).await?
            {
                return Ok(Some(proof));
            }
        }
        Ok(None)
    }

    pub(crate) async fn transaction(&self, number: u64) -> Result<Transaction, Error> {
        let missing = || bsv_store::StoreError::damaged("a transaction is missing");
        Ok(self.store.transaction(number).await?.ok_or_else(missing)?)
    }
}

impl Following {
    fn is_old(&self) -> bool {
        self.began.is_none_or(|began| began.elapsed() >= READING_PERIOD)
    }

    /// Has all that is followed read once more.
    fn begin_anew(&mut self) {
        self.began = Some(Instant::now());
        self.last = 0;
        self.open.clear();
    }

    fn is_due(&self, followed: &Followed) -> bool {
        let retry = self.retries.get(&followed.number);
        followed.state != TransactionState::Settled
            && retry.is_none_or(|retry| retry.at <= Instant::now())
    }

    fn wait(&mut self, number: u64) {
        let pause = self.retries.get(&number).map_or(FIRST_PAUSE, |retry| retry.pause * 2);
        let pause = pause.min(LONGEST_PAUSE);
        self.retries.insert(number, Retry { at: Instant::now() + pause, pause });
    }

    /// Has a payee asked, while others are looked after. If too many are, it is for another time.
    fn talk(&mut self, talk: impl Future<Output = Result<(), Error>> + Send + 'static) {
        if self.talks.len() < MOST_TALKS {
            self.talks.spawn(async {
                if let Err(error) = talk.await {
                    tracing::debug!("a payment is still open: {error}");
                }
            });
        }
    }
}

/// Checks a proof against the header of a block of the main chain.
async fn check_proof(
    node: &NodeRpc,
    txid: &Txid,
    hash: BlockHash,
    branch: MerkleBranch,
) -> Result<Option<Proof>, Error> {
    let block = node.block_header(&hash).await.map_err(away)?;
    let root = branch.root(txid);
    let block = block.filter(|block| block.in_main_chain && root == Some(block.header.merkle_root));
    Ok(block.map(|block| Proof { block: BlockPlace { hash, height: block.height }, branch }))
}

async fn is_in_main_chain(node: &NodeRpc, block: &BlockHash) -> Result<bool, Error> {
    let block = node.block_header(block).await.map_err(away)?;
    Ok(block.is_some_and(|block| block.in_main_chain))
}

/// What has become of a transaction that the network does not take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It may still be mined: what only the mempool says may change.
    Unclear,
    /// The network does not know what it spends.
    Orphaned,
    /// Something that it spends was made in a block of the main chain, and spent there by another one.
    Displaced,
}

async fn fate(node: &NodeRpc, transaction: &Transaction) -> Result<Fate, Error> {
    let outpoints: Vec<_> = transaction.inputs.iter().map(|input| input.previous_output).collect();
    let states = node.outputs(&outpoints, Mempool::Ignore).await.map_err(away)?;
    let mut fate = Fate::Unclear;
    for (state, outpoint) in states.iter().zip(&outpoints) {
        if *state == OutputState::Missing && fate != Fate::Displaced {
            fate = match node.transaction_place(&outpoint.txid).await.map_err(away)? {
                TransactionPlace::Block(_) => Fate::Displaced,
                TransactionPlace::Nowhere => Fate::Orphaned,
                TransactionPlace::Mempool => fate,
            };
        }
    }
    // Meanwhile it may have been mined itself.
    match node.transaction_place(&transaction.txid()).await.map_err(away)? {
        TransactionPlace::Nowhere if node.has_transaction_index().await.map_err(away)? => Ok(fate),
        _ => Ok(Fate::Unclear),
    }
}
