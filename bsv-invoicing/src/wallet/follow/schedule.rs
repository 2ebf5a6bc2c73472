//! The schedule of following: when each transaction is looked at.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use bsv_network::ChainTip;
use tokio::task::JoinSet;

use crate::error::Error;
use crate::model::coin::KeyPath;
use crate::model::transaction::{Followed, Purpose, TransactionState};

/// The state between two rounds of following. It need not be stored: a new one makes the wallet
/// look at everything again.
#[derive(Debug, Default)]
pub(crate) struct Following {
    pub(super) tip: Option<ChainTip>,
    /// Whether the node follows another chain than before.
    pub(super) is_other_chain: bool,
    /// When the last full reading of the followed transactions began.
    began: Option<Instant>,
    /// The number of the transaction up to which that reading has come.
    pub(super) last: u64,
    /// The transactions that may change without a new block.
    open: BTreeSet<u64>,
    /// When each of them is looked at again.
    retries: HashMap<u64, Retry>,
    /// The waiting payments to each key that are looked at without a new block.
    waiting: HashMap<KeyPath, BTreeSet<u64>>,
    /// Since when the network has not shown a transaction that it showed before.
    contested: HashMap<u64, Instant>,
    /// The height of the tip at which the network first refused the transaction itself, or did not
    /// know a coin that it spends.
    refused_since: HashMap<u64, u32>,
    /// How many transactions may be asked about in a round, and how many are left in this one. `None` if
    /// there is no limit.
    questions: Option<(usize, usize)>,
    /// Exchanges with payees, who may be slow.
    talks: JoinSet<()>,
    /// Strangers' payments that are sent to the node again, which may be slow.
    sends: JoinSet<()>,
}

#[derive(Clone, Copy, Debug)]
struct Retry {
    at: Instant,
    pause: Duration,
}

/// How many waiting payments of an invoice, or of a user, are looked at between blocks. A block lets
/// all of them be looked at.
const MOST_WAITING: usize = 20;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// The same if there is a limit on questions.
const FIRST_LIMITED_PAUSE: Duration = Duration::from_secs(60);
const LONGEST_LIMITED_PAUSE: Duration = Duration::from_secs(15 * 60);
/// The time between full readings of the followed transactions while there is no new block. A seen
/// transaction seldom changes without a block, and there may be many.
const READING_PERIOD: Duration = Duration::from_secs(10);
/// How long a transaction must be contested until an event tells of it. A restarted node loses its
/// mempool, but the wallet sends its transactions again within seconds.
const TOLD_AFTER: Duration = Duration::from_secs(60);
/// How many payees are asked at once.
const MOST_TALKS: usize = 64;
/// How many payments by strangers are being sent again or wait for that, at most.
const MOST_SENDS: usize = 1000;

impl Following {
    /// Ends all tasks that it has started.
    pub(crate) async fn end(&mut self) {
        self.talks.shutdown().await;
        self.sends.shutdown().await;
    }

    /// Starts a full reading of the followed transactions, if there is a new tip or it is time. After a
    /// new tip, all of them are due. `questions` limits how many of them are asked about in the round.
    pub(super) fn begin_round(&mut self, is_new_tip: bool, questions: Option<usize>) {
        self.questions = questions.map(|most| (most, most));
        if is_new_tip && questions.is_some() {
            self.retries.clear();
        }
        while self.talks.try_join_next().is_some() {}
        while self.sends.try_join_next().is_some() {}
        if is_new_tip || self.began.is_none_or(|began| began.elapsed() >= READING_PERIOD) {
            self.began = Some(Instant::now());
            self.last = 0;
            self.open.clear();
            self.waiting.clear();
        }
    }

    pub(super) fn end_round(&mut self) {
        let open = &self.open;
        self.retries.retain(|number, _| open.contains(number));
        self.contested.retain(|number, _| open.contains(number));
        self.refused_since.retain(|number, _| open.contains(number));
    }

    /// Takes out those that may change without a new block. If there is a limit on questions, only as
    /// many as are due and may be asked about.
    pub(super) fn take_open(&mut self) -> BTreeSet<u64> {
        let Some((_, left)) = self.questions else { return std::mem::take(&mut self.open) };
        let due = self.open.iter().filter(|number| self.is_time_for(**number));
        let taken: BTreeSet<_> = due.take(left).copied().collect();
        self.open.retain(|number| !taken.contains(number));
        taken
    }

    /// Those of the transactions that are due now, the oldest first.
    pub(super) fn take_due<'f>(
        &mut self,
        page: &'f [Followed],
        is_new_tip: bool,
    ) -> Vec<&'f Followed> {
        let Some((_, left)) = self.questions else {
            return page.iter().filter(|it| is_new_tip || self.is_due(it)).collect();
        };
        let due: Vec<_> = page.iter().filter(|it| self.is_time_for(it.number)).take(left).collect();
        if let Some((_, left)) = &mut self.questions {
            *left -= due.len();
        }
        due
    }

    /// Whether there is a limit on questions.
    pub(super) fn is_limited(&self) -> bool {
        self.questions.is_some()
    }

    fn is_time_for(&self, number: u64) -> bool {
        self.retries.get(&number).is_none_or(|retry| retry.at <= Instant::now())
    }

    pub(super) fn note_open(&mut self, page: &[Followed]) {
        for followed in page {
            let is_open = self.questions.is_some()
                || followed.record.state != TransactionState::Seen
                || self.contested.contains_key(&followed.number);
            if is_open && self.has_place(followed) {
                self.open.insert(followed.number);
            }
        }
    }

    /// Whether a transaction is among those that are looked at between blocks.
    fn has_place(&mut self, followed: &Followed) -> bool {
        let Some(key) = followed.waits_for else { return true };
        let waiting = self.waiting.entry(key).or_default();
        if waiting.len() < MOST_WAITING {
            waiting.insert(followed.number);
        }
        waiting.contains(&followed.number)
    }

    fn is_due(&self, followed: &Followed) -> bool {
        let waiting = followed.waits_for.and_then(|key| self.waiting.get(&key));
        followed.record.state != TransactionState::Seen
            && waiting.is_none_or(|waiting| waiting.contains(&followed.number))
            && self.is_time_for(followed.number)
    }

    /// Schedules the next look at a transaction after a pause, which doubles each time.
    pub(super) fn wait(&mut self, followed: &Followed) {
        // The owner waits for these, and there are few.
        let is_own_and_open = matches!(followed.record.purpose, Purpose::Outgoing(_))
            && followed.record.state.is_open();
        let (first, longest) = match self.questions {
            Some(_) if !is_own_and_open => (FIRST_LIMITED_PAUSE, LONGEST_LIMITED_PAUSE),
            _ => (FIRST_PAUSE, LONGEST_PAUSE),
        };
        let number = followed.number;
        let pause = self.retries.get(&number).map_or(first, |retry| retry.pause * 2);
        let pause = pause.clamp(first, longest);
        self.retries.insert(number, Retry { at: Instant::now() + pause, pause });
    }

    /// Clears what counted against a transaction, because the network shows it.
    pub(super) fn forget(&mut self, number: u64) {
        self.contested.remove(&number);
        self.refused_since.remove(&number);
    }

    pub(super) fn forget_tips(&mut self, number: u64) {
        self.refused_since.remove(&number);
    }

    /// Whether the network has not shown a transaction for so long that an event must tell of it.
    pub(super) fn is_contested_for_long(&mut self, number: u64) -> bool {
        self.open.insert(number);
        let since = *self.contested.entry(number).or_insert_with(Instant::now);
        since.elapsed() >= TOLD_AFTER
    }

    /// How many blocks ago the network first refused a transaction.
    pub(super) fn count_tips(&mut self, number: u64, height: u32) -> u32 {
        let since = *self.refused_since.entry(number).or_insert(height);
        height.saturating_sub(since)
    }

    /// Starts an exchange with a payee in the background. Does nothing if too many are running: the
    /// next round tries again.
    pub(super) fn talk(&mut self, talk: impl Future<Output = Result<(), Error>> + Send + 'static) {
        if self.talks.len() < MOST_TALKS {
            self.talks.spawn(async {
                if let Err(error) = talk.await {
                    tracing::debug!("a payment is still open: {error}");
                }
            });
        }
    }

    /// Starts to send a stranger's payment again in the background. Does nothing if too many are
    /// running: the next round tries again.
    pub(super) fn send(&mut self, send: impl Future<Output = ()> + Send + 'static) {
        if self.sends.len() < MOST_SENDS {
            self.sends.spawn(send);
        }
    }
}
