//! When which transaction is looked at.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use bsv_network::ChainTip;
use tokio::task::JoinSet;

use crate::error::Error;
use crate::model::transaction::{Followed, TransactionState};

/// What is known between two looks at the chain. It need not be kept: a new one has everything looked
/// at again.
#[derive(Debug, Default)]
pub(crate) struct Following {
    pub(super) tip: Option<ChainTip>,
    /// Whether the node follows another chain than the one that was followed before.
    pub(super) is_other_chain: bool,
    /// When all that is followed was read from the beginning.
    began: Option<Instant>,
    /// The number up to which it has been read since.
    pub(super) last: u64,
    /// What may change without a block.
    open: BTreeSet<u64>,
    /// When that is looked at again.
    retries: HashMap<u64, Retry>,
    /// Since when the network has not shown what it showed before.
    contested: HashMap<u64, Instant>,
    /// The height at which a transaction was found first that the network refuses for itself, or that
    /// spends what the network does not know.
    refused_since: HashMap<u64, u32>,
    /// What payees are asked, who may take their time.
    talks: JoinSet<()>,
    /// What strangers have paid and the node is given again, which may take its time with it.
    sends: JoinSet<()>,
}

#[derive(Clone, Copy, Debug)]
struct Retry {
    at: Instant,
    pause: Duration,
}

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// How often all that is followed is read while there is no new block: what is seen is seldom undone
/// without one, and there may be much of it.
const READING_PERIOD: Duration = Duration::from_secs(10);
/// After which time an event tells that a transaction is contested. Nodes lose their mempool when they
/// are restarted, and are given all again within seconds.
const TOLD_AFTER: Duration = Duration::from_secs(60);
/// How many payees are asked at once.
const MOST_TALKS: usize = 64;
/// How many payments by strangers are sent again, or wait for that.
const MOST_SENDS: usize = 1000;

impl Following {
    /// Ends what it has begun.
    pub(crate) async fn end(&mut self) {
        self.talks.shutdown().await;
        self.sends.shutdown().await;
    }

    /// Begins to read what is followed from the beginning, if there is a new tip or it is time.
    pub(super) fn begin_round(&mut self, is_new_tip: bool) {
        while self.talks.try_join_next().is_some() {}
        while self.sends.try_join_next().is_some() {}
        if is_new_tip || self.began.is_none_or(|began| began.elapsed() >= READING_PERIOD) {
            self.began = Some(Instant::now());
            self.last = 0;
            self.open.clear();
        }
    }

    pub(super) fn end_round(&mut self) {
        let open = &self.open;
        self.retries.retain(|number, _| open.contains(number));
        self.contested.retain(|number, _| open.contains(number));
        self.refused_since.retain(|number, _| open.contains(number));
    }

    pub(super) fn take_open(&mut self) -> BTreeSet<u64> {
        std::mem::take(&mut self.open)
    }

    pub(super) fn note_open(&mut self, page: &[Followed]) {
        let is_open = |followed: &&Followed| {
            followed.record.state != TransactionState::Seen
                || self.contested.contains_key(&followed.number)
        };
        self.open.extend(page.iter().filter(is_open).map(|followed| followed.number));
    }

    pub(super) fn is_due(&self, followed: &Followed) -> bool {
        let retry = self.retries.get(&followed.number);
        followed.record.state != TransactionState::Seen
            && retry.is_none_or(|retry| retry.at <= Instant::now())
    }

    /// Has a transaction looked at again after a pause, which doubles each time.
    pub(super) fn wait(&mut self, number: u64) {
        let pause = self.retries.get(&number).map_or(FIRST_PAUSE, |retry| retry.pause * 2);
        let pause = pause.min(LONGEST_PAUSE);
        self.retries.insert(number, Retry { at: Instant::now() + pause, pause });
    }

    /// Forgets what counted against a transaction that the network shows.
    pub(super) fn forget(&mut self, number: u64) {
        self.contested.remove(&number);
        self.refused_since.remove(&number);
    }

    pub(super) fn forget_tips(&mut self, number: u64) {
        self.refused_since.remove(&number);
    }

    /// Whether the network has not shown a transaction for so long that an event is to tell it.
    pub(super) fn is_contested_for_long(&mut self, number: u64) -> bool {
        self.open.insert(number);
        let since = *self.contested.entry(number).or_insert_with(Instant::now);
        since.elapsed() >= TOLD_AFTER
    }

    /// At how many tips after the first one the network has refused a transaction.
    pub(super) fn count_tips(&mut self, number: u64, height: u32) -> u32 {
        let since = *self.refused_since.entry(number).or_insert(height);
        height.saturating_sub(since)
    }

    /// Has a payee asked, while others are looked after. If too many are, it is for another time.
    pub(super) fn talk(&mut self, talk: impl Future<Output = Result<(), Error>> + Send + 'static) {
        if self.talks.len() < MOST_TALKS {
            self.talks.spawn(async {
                if let Err(error) = talk.await {
                    tracing::debug!("a payment is still open: {error}");
                }
            });
        }
    }

    /// Has a payment by a stranger sent again, while others are looked after. If too many are, it is for
    /// another time.
    pub(super) fn send(&mut self, send: impl Future<Output = ()> + Send + 'static) {
        if self.sends.len() < MOST_SENDS {
            self.sends.spawn(send);
        }
    }
}
