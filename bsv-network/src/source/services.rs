//! Broadcasters and our own headers as the source.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bsv_tx::{BlockHash, Bump, Txid};
use futures_util::future::join_all;

use super::answers::{Evidence, ExtendedPackage, Offered, Place, Shown, Sight, Verdict};
use crate::broadcasters::{
    BroadcasterError, BroadcasterSet, EventStream, ReasonToAsk, Said, Standing, Submission, Told,
    Urgency,
};
use crate::headers::HeaderFollower;
use crate::rpc::{BlockInfo, ChainTip, ConsolidationPolicy, MempoolEntry, MinedIn, Policy};

/// Services that tell a wallet of the network: broadcasters that take transactions, and block headers
/// that are validated here. A transaction is mined if a Merkle path leads to a header of our best
/// chain, whatever a service says.
#[derive(Debug)]
pub struct Services {
    broadcasters: BroadcasterSet,
    headers: Arc<HeaderFollower>,
    accept_timeout: Duration,
    fee_rate: u64,
    paths: Mutex<VecDeque<(Txid, MinedIn)>>,
    /// The last trouble with each service that was logged.
    troubles: Mutex<HashMap<String, String>>,
}

/// Why a transaction that services do not know may be mined nevertheless.
pub(super) const BLIND_SPOT: &str =
    "services do not know every transaction, so only a block decides about it";

/// The largest transaction that broadcasters take, in bytes. It is the policy of those of today.
const MAX_TRANSACTION_SIZE: u64 = 10_000_000;
/// How long a question about a transaction may take. A broadcaster that has said nothing by then is away.
const ASK: Duration = Duration::from_secs(6);
/// How long a transaction is offered that was offered before.
const OFFER_AGAIN: Duration = Duration::from_secs(2);
/// How many Merkle paths are kept for the question that follows.
const PATHS: usize = 64;

impl Services {
    /// Services that have this long to take a transaction. `fee_rate` is the fee in satoshis per 1000
    /// bytes as long as no broadcaster has told what it asks for.
    pub fn new(
        broadcasters: BroadcasterSet,
        headers: Arc<HeaderFollower>,
        accept_timeout: Duration,
        fee_rate: u64,
    ) -> Self {
        let (paths, troubles) = (Mutex::default(), Mutex::default());
        Self { broadcasters, headers, accept_timeout, fee_rate, paths, troubles }
    }

    /// The broadcasters.
    pub fn broadcasters(&self) -> &BroadcasterSet {
        &self.broadcasters
    }

    /// The block headers.
    pub fn headers(&self) -> &Arc<HeaderFollower> {
        &self.headers
    }

    /// Listens to the broadcasters that tell events, for as long as it is polled.
    pub(super) async fn listen(&self, hear: impl Fn(ReasonToAsk) + Sync) {
        join_all(self.broadcasters.streams().map(|stream| self.listen_to(stream, &hear))).await;
    }

    async fn listen_to(&self, mut stream: EventStream, hear: &(impl Fn(ReasonToAsk) + Sync)) {
        loop {
            let was_live = stream.is_live();
            let reason = stream.next().await;
            // A stream that cannot be connected to says nothing new.
            if reason != ReasonToAsk::Missed || was_live || stream.is_live() {
                self.hear(reason);
                hear(reason);
            }
        }
    }

    pub(super) fn hear(&self, reason: ReasonToAsk) {
        match reason {
            ReasonToAsk::Changed(txid) => self.broadcasters.hint(&txid),
            ReasonToAsk::Missed => self.broadcasters.hint_all(),
        }
    }

    /// Whether a second source shows this tip, or a block above it: another source of headers, or a
    /// broadcaster. One that is alone cannot be confirmed, and needs not to be.
    pub(super) async fn confirm(&self, tip: &ChainTip) -> bool {
        let sources: Vec<_> = self.headers.sources().map(|source| source.last_header).collect();
        let (confirming, has_rival) = {
            let chain = self.headers.file().chain();
            if chain.height_of(&tip.hash).is_none() {
                return false;
            }
            let last: Vec<_> = sources.iter().flatten().collect();
            let confirming = last.iter().filter(|it| chain.height_of(it) >= Some(tip.height));
            let is_rival = |hash: &BlockHash| {
                let is_as_high = chain.find(hash).is_some_and(|(height, _)| height >= tip.height);
                is_as_high && chain.height_of(hash).is_none()
            };
            (confirming.count(), last.iter().any(|hash| is_rival(hash)))
        };
        let is_alone = sources.len() + self.broadcasters.can_tell_heights() <= 1;
        // A height does not say on which of two branches it is.
        confirming >= 2 || is_alone || !has_rival && self.broadcasters.reach(tip.height).await
    }

    pub(super) fn begins_at(&self) -> u32 {
        self.headers.file().chain().checkpoint_height() + 1
    }

    pub(super) fn tip(&self) -> ChainTip {
        let chain = self.headers.file().chain();
        let tip = chain.tip();
        // Too few headers for a median: nothing with a lock time is final yet.
        let median_time = chain.median_time().unwrap_or_default();
        ChainTip { height: tip.height, hash: tip.hash, median_time }
    }

    pub(super) fn header(&self, hash: &BlockHash) -> Option<BlockInfo> {
        let chain = self.headers.file().chain();
        let (height, header) = chain.find(hash)?;
        let in_main_chain = chain.height_of(hash).is_some();
        Some(BlockInfo { header, height, in_main_chain })
    }

    pub(super) fn header_at(&self, height: u32) -> Option<BlockInfo> {
        let chain = self.headers.file().chain();
        let header = chain.header_at(height)?;
        Some(BlockInfo { header, height, in_main_chain: true })
    }

    pub(super) fn policy(&self) -> Policy {
        Policy {
            mining_fee_rate: self.broadcasters.fee_rate().unwrap_or(self.fee_rate),
            max_transaction_size: MAX_TRANSACTION_SIZE,
            max_data_size: MAX_TRANSACTION_SIZE,
            // Every transaction pays.
            consolidation: ConsolidationPolicy {
                min_factor: 0,
                max_script_size: 0,
                min_confirmations: 0,
            },
        }
    }

    pub(super) async fn place(&self, txid: &Txid, urgency: Urgency) -> Place {
        let told = self.ask(txid, urgency).await;
        if let Some(mined) = self.holding_path(txid, &told) {
            let block = mined.block;
            self.keep_path(*txid, mined);
            return Place::Mined(block);
        }
        match told.standing {
            Standing::Taken => Place::Unmined,
            Standing::Rival { .. } => Place::Disputed,
            Standing::Open | Standing::InputsUnknown | Standing::Refused { .. } => Place::Nowhere,
        }
    }

    pub(super) async fn mined_in(&self, txid: &Txid, urgency: Urgency) -> Option<MinedIn> {
        let kept = {
            let mut paths = self.paths();
            let place = paths.iter().position(|(of, _)| of == txid);
            place.and_then(|place| paths.remove(place))
        };
        // Its block may have left the chain meanwhile.
        let is_there = |block| self.headers.file().chain().height_of(block).is_some();
        match kept {
            Some((_, mined)) if is_there(&mined.block) => Some(mined),
            _ => self.holding_path(txid, &self.ask(txid, urgency).await),
        }
    }

    fn keep_path(&self, txid: Txid, mined: MinedIn) {
        let mut paths = self.paths();
        paths.retain(|(of, _)| *of != txid);
        paths.truncate(PATHS - 1);
        paths.push_front((txid, mined));
    }

    async fn ask(&self, txid: &Txid, urgency: Urgency) -> Told {
        let holds = |path: &Bump| self.block_of(txid, path).is_some();
        self.broadcasters.ask(txid, ASK, urgency, holds).await
    }

    pub(super) async fn show(&self, package: &ExtendedPackage, urgency: Urgency) -> Shown {
        self.send(package, self.accept_timeout, urgency).await
    }

    pub(super) async fn offer(&self, package: &ExtendedPackage, urgency: Urgency) -> Offered {
        match self.send(package, OFFER_AGAIN, urgency).await {
            Shown::Unmined(sight) => Offered::Unmined(sight),
            Shown::Mined => Offered::Mined,
            Shown::Nowhere => Offered::Unknown,
            Shown::Refused(verdict) => Offered::Refused(verdict),
            Shown::Disputed { .. } => Offered::Disputed,
        }
    }

    async fn send(&self, package: &ExtendedPackage, time: Duration, urgency: Urgency) -> Shown {
        let ExtendedPackage { ancestors, transaction, newest_block, .. } = package;
        let submission = Submission { ancestors, transaction, newest_block: *newest_block };
        let told = self.broadcasters.send(submission, time, urgency).await;
        let txid = transaction.transaction().txid();
        if let Some(mined) = self.holding_path(&txid, &told) {
            self.keep_path(txid, mined);
            return Shown::Mined;
        }
        let is_fee_too_low = told.standing.is_fee_too_low();
        match told.standing {
            Standing::Taken => Shown::Unmined(self.sight(package)),
            Standing::Refused { reason, is_verdict: is_for_itself, .. } => {
                Shown::Refused(Verdict { reason, is_for_itself, is_fee_too_low })
            }
            Standing::Rival { is_refused, .. } => Shown::Disputed { is_refused },
            Standing::Open | Standing::InputsUnknown => Shown::Nowhere,
        }
    }

    /// An unmined transaction that the broadcasters have taken.
    pub(super) fn sight(&self, package: &ExtendedPackage) -> Sight {
        let transaction = package.transaction.transaction();
        let sum = |amounts: &mut dyn Iterator<Item = u64>| amounts.fold(0, u64::saturating_add);
        let spent = sum(&mut package.transaction.previous_outputs().iter().map(|it| it.satoshis));
        let paid = sum(&mut transaction.outputs.iter().map(|it| it.satoshis));
        let size = transaction.to_bytes().len() as u64;
        let fee = spent.saturating_sub(paid);
        let is_current = self.headers.behind().is_none();
        let evidence = match package.is_proven && is_current {
            true => Evidence::Word,
            false => Evidence::Hearsay,
        };
        Sight { entry: MempoolEntry { fee, size, parents: Vec::new() }, evidence }
    }

    /// The block that holds a transaction, by one of the paths that were told.
    fn holding_path(&self, txid: &Txid, told: &Told) -> Option<MinedIn> {
        self.log(told);
        told.paths.iter().find_map(|path| self.block_of(txid, path))
    }

    /// The block that holds a transaction, by a path that leads to the root of a header of our best
    /// chain.
    fn block_of(&self, txid: &Txid, path: &Bump) -> Option<MinedIn> {
        let header = self.headers.file().chain().header_at(path.height())?;
        let branch = path.branch(txid)?;
        (branch.root(txid) == Some(header.merkle_root))
            .then(|| MinedIn { block: header.block_hash(), branch })
    }

    /// Logs what a service does that its owner should know, once until it changes.
    fn log(&self, told: &Told) {
        let mut troubles = self.troubles.lock().unwrap_or_else(PoisonError::into_inner);
        for Said { dialect, host, word } in &told.said {
            let trouble = match word {
                Err(
                    error @ (BroadcasterError::Nonsense(_) | BroadcasterError::Unauthorized(_)),
                ) => error.to_string(),
                Err(_) => continue,
                Ok(_) => String::new(),
            };
            let before = troubles.insert(host.clone(), trouble.clone());
            if !trouble.is_empty() && before.as_ref() != Some(&trouble) {
                tracing::warn!(host = host.as_str(), kind = dialect.name(), "{trouble}");
            }
        }
    }

    fn paths(&self) -> MutexGuard<'_, VecDeque<(Txid, MinedIn)>> {
        self.paths.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
