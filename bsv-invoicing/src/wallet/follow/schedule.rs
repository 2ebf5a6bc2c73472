//! The schedule of following: when each transaction is looked at.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use bsv_network::ChainTip;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::error::Error;
use crate::model::coin::KeyPath;
use crate::model::transaction::{Followed, Purpose, TransactionState};

/// The state between two rounds of following. It need not be stored: a new one makes the wallet
/// look at everything again.
#[derive(Debug, Default)]
pub(crate) struct Following {
    pub(super) tip: Option<ChainTip>,
    /// Whether a second service shows it, if services do.
    pub(super) is_confirmed: Option<bool>,
    /// Whether the node follows another chain than before.
    pub(super) is_other_chain: bool,
    /// When the last full reading of the followed transactions began.
    began: Option<Instant>,
    /// The number of the transaction up to which that reading has come.
    pub(super) last: u64,
    /// The transactions that may change without a new block.
    open: BTreeSet<u64>,
    /// Those of them before the full reading of this round. Some may be followed no longer.
    open_before: BTreeSet<u64>,
    /// Those that are looked at in this round, if there is a limit on questions.
    chosen: BTreeSet<u64>,
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
    /// Whether all sources tell by themselves when a transaction changes.
    is_heard: bool,
    /// The transactions that may have changed, as somebody says.
    told: BTreeSet<u64>,
    /// Whether those come first in this round. They do in every second one: whoever tells of the same
    /// ones again and again must not keep the others from being asked about.
    are_told_first: bool,
    /// Whether any transaction may have changed, and when all were last asked about for that.
    is_missed: bool,
    caught_up: Option<Instant>,
    /// Exchanges with payees, who may be slow.
    talks: JoinSet<()>,
    /// Strangers' payments that are sent to the node again, which may be slow.
    sends: JoinSet<()>,
}

#[derive(Clone, Copy, Debug)]
struct Retry {
    at: Instant,
    pause: Duration,
    /// When it was last looked at.
    looked: Instant,
    /// Whether it is seen, and need not be looked at while all sources tell by themselves of changes.
    is_seen: bool,
}

/// How many waiting payments of an invoice, or of a user, are looked at between blocks. A block lets
/// all of them be looked at.
const MOST_WAITING: usize = 20;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// The same if there is a limit on questions.
const FIRST_LIMITED_PAUSE: Duration = Duration::from_secs(60);
const LONGEST_LIMITED_PAUSE: Duration = Duration::from_secs(15 * 60);
/// How often all transactions are asked about because some may have changed, at most.
const CATCH_UP_PERIOD: Duration = Duration::from_secs(60);
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
    /// new tip, all of them are due. `questions` limits how many of them are asked about in the round:
    /// those first that were not looked at for longest, also before the tip.
    /// `is_heard` says that the sources tell by themselves what becomes of the seen ones.
    pub(super) fn begin_round(
        &mut self,
        is_new_tip: bool,
        questions: Option<usize>,
        is_heard: bool,
    ) {
        self.questions = questions.map(|most| (most, most));
        self.is_heard = is_heard;
        self.are_told_first = !self.are_told_first;
        self.catch_up();
        if is_new_tip && questions.is_some() {
            let at = Instant::now();
            for retry in self.retries.values_mut() {
                *retry = Retry { at, pause: Duration::ZERO, is_seen: false, ..*retry };
            }
        }
        while self.talks.try_join_next().is_some() {}
        while self.sends.try_join_next().is_some() {}
        if is_new_tip || self.began.is_none_or(|began| began.elapsed() >= READING_PERIOD) {
            self.began = Some(Instant::now());
            self.last = 0;
            self.open_before = std::mem::take(&mut self.open);
            self.waiting.clear();
        }
    }

    pub(super) fn end_round(&mut self) {
        let open = &self.open;
        self.retries.retain(|number, _| open.contains(number));
        self.contested.retain(|number, _| open.contains(number));
        self.refused_since.retain(|number, _| open.contains(number));
        self.told.retain(|number| open.contains(number));
    }

    /// Takes note that a transaction may have changed.
    pub(super) fn note_told(&mut self, number: u64) {
        self.open.insert(number);
        self.told.insert(number);
    }

    /// Takes note that any transaction may have changed.
    pub(super) fn note_missed(&mut self) {
        self.is_missed = true;
    }

    /// Makes all transactions due if any may have changed. Whoever says that all the time is believed
    /// from time to time.
    fn catch_up(&mut self) {
        let is_time = self.caught_up.is_none_or(|last| last.elapsed() >= CATCH_UP_PERIOD);
        if !self.is_missed || !is_time {
            return;
        }
        let now = Instant::now();
        (self.is_missed, self.caught_up) = (false, Some(now));
        for retry in self.retries.values_mut() {
            *retry = Retry { at: now.min(retry.at), is_seen: false, ..*retry };
        }
    }

    /// Takes out those that may change without a new block. If there is a limit on questions, only as
    /// many as are due and may be asked about: those first that were not looked at for longest.
    pub(super) fn take_open(&mut self) -> Vec<u64> {
        let before = std::mem::take(&mut self.open_before);
        let Some((_, left)) = self.questions else {
            return std::mem::take(&mut self.open).into_iter().collect();
        };
        let due = self.open.union(&before).filter(|number| self.is_time_for(**number));
        let mut taken: Vec<_> = due.copied().collect();
        taken.sort_by_key(|number| {
            let is_first = self.are_told_first && self.told.contains(number);
            (!is_first, self.retries.get(number).map(|retry| retry.looked), *number)
        });
        taken.truncate(left);
        self.open.retain(|number| !taken.contains(number));
        self.chosen = taken.iter().copied().collect();
        taken
    }

    /// Those of the transactions that are due now, the oldest first. If there is a limit on questions, only
    /// those that were taken out before, and those that were never looked at.
    pub(super) fn take_due<'f>(
        &mut self,
        page: &'f [Followed],
        is_new_tip: bool,
    ) -> Vec<&'f Followed> {
        let Some((_, left)) = self.questions else {
            return page.iter().filter(|it| is_new_tip || self.is_due(it)).collect();
        };
        let is_due = |it: &&Followed| match self.retries.get(&it.number) {
            Some(_) => self.chosen.contains(&it.number) && self.is_time_for(it.number),
            None => true,
        };
        let due: Vec<_> = page.iter().filter(is_due).take(left).collect();
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
        let is_due =
            |retry: &Retry| retry.at <= Instant::now() && !(retry.is_seen && self.is_heard);
        self.told.contains(&number) || self.retries.get(&number).is_none_or(is_due)
    }

    pub(super) fn note_open(&mut self, page: &[Followed]) {
        for followed in page {
            let is_open = followed.record.state != TransactionState::Seen
                || self.contested.contains_key(&followed.number);
            // A limit on questions is one on waiting payments, too.
            if self.questions.is_some() || is_open && self.has_place(followed) {
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

    /// Schedules the next look at a transaction after a pause, which doubles each time. `is_seen` says
    /// that the network shows it.
    pub(super) fn wait(&mut self, followed: &Followed, is_seen: bool) {
        let Followed { number, record, .. } = followed;
        self.told.remove(number);
        // The owner waits for these, and there are few.
        let is_own_and_open =
            matches!(record.purpose, Purpose::Outgoing(_)) && record.state.is_open();
        let (first, longest) = match self.questions {
            Some(_) if !is_own_and_open => (FIRST_LIMITED_PAUSE, LONGEST_LIMITED_PAUSE),
            _ => (FIRST_PAUSE, LONGEST_PAUSE),
        };
        let pause = self.retries.get(number).map_or(first, |retry| retry.pause * 2);
        let (pause, looked) = (pause.clamp(first, longest), Instant::now());
        self.retries.insert(*number, Retry { at: looked + pause, pause, looked, is_seen });
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

#[cfg(test)]
mod tests {
    use bsv_tx::Txid;
    use tokio::time::advance;

    use super::*;
    use crate::model::time::Timestamp;
    use crate::model::transaction::{
        FollowedUntil, Purpose, RawBytes, ShownAs, TransactionRecord, TransactionState,
    };

    /// The most questions in a round.
    const QUESTIONS: usize = 2;

    /// Transactions that the network shows, and when each of them was asked about, in seconds.
    struct World {
        following: Following,
        followed: Vec<Followed>,
        asked: Vec<Vec<u64>>,
        seconds: u64,
        is_heard: bool,
    }

    impl World {
        fn new(transactions: u64) -> Self {
            let record = TransactionRecord {
                txid: Txid::from_bytes([7; 32]),
                purpose: Purpose::Incoming(1),
                state: TransactionState::Seen,
                shown: ShownAs::Seen,
                satoshis: 1,
                at: Timestamp::from_micros(0),
                raw: RawBytes::Short,
                word: None,
            };
            let until = FollowedUntil::Mined;
            let followed = |number| Followed { number, record, until, waits_for: None };
            Self {
                following: Following::default(),
                followed: (0..transactions).map(followed).collect(),
                asked: vec![Vec::new(); transactions as usize],
                seconds: 0,
                is_heard: false,
            }
        }

        /// A round, and the second after it. Answers how many questions were asked.
        async fn round(&mut self, is_new_tip: bool, told: &[u64]) -> usize {
            let mut asked = Vec::new();
            let following = &mut self.following;
            following.begin_round(is_new_tip, Some(QUESTIONS), self.is_heard);
            told.iter().for_each(|number| following.note_told(*number));
            let mut look = |following: &mut Following, page: &[Followed]| {
                following.note_open(page);
                for followed in following.take_due(page, is_new_tip) {
                    asked.push(followed.number);
                    following.wait(followed, true);
                }
            };
            for number in following.take_open() {
                let is_it = |followed: &&Followed| followed.number == number;
                look(following, &self.followed.iter().filter(is_it).copied().collect::<Vec<_>>());
            }
            let from = self.followed.len().min(following.last as usize);
            for page in self.followed[from..].chunks(100) {
                look(following, page);
            }
            following.last = self.followed.len() as u64;
            following.end_round();
            for number in &asked {
                self.asked[*number as usize].push(self.seconds);
            }
            self.seconds += 1;
            advance(Duration::from_secs(1)).await;
            asked.len()
        }

        async fn rounds(&mut self, count: usize) -> usize {
            let mut all = 0;
            for _ in 0..count {
                all += self.round(false, &[]).await;
            }
            all
        }
    }

    #[tokio::test(start_paused = true)]
    async fn at_most_two_questions_are_asked_in_a_second() {
        let mut world = World::new(1_000);
        for second in 0..600 {
            assert!(world.round(second == 0, &[]).await <= QUESTIONS);
        }
        assert!(world.asked.iter().all(|asked| !asked.is_empty()));
    }

    #[tokio::test(start_paused = true)]
    async fn of_many_transactions_each_is_asked_about_within_a_few_tips() {
        let mut world = World::new(2_000);
        // Blocks come twice as fast as they should, so a tip leaves time for 600 of them.
        for tip in 1..=12 {
            for second in 0..300 {
                assert!(world.round(second == 0, &[]).await <= QUESTIONS);
            }
            if tip % 4 == 0 {
                let since = (tip - 4) * 300;
                let is_asked = |asked: &Vec<u64>| asked.last().is_some_and(|last| *last >= since);
                let missing = world.asked.iter().filter(|asked| !is_asked(asked)).count();
                assert_eq!(missing, 0, "since tip {}", tip - 4);
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn those_that_are_followed_no_longer_take_no_time() {
        let mut world = World::new(100);
        world.round(true, &[]).await;
        world.rounds(60).await;
        world.followed.retain(|followed| followed.number >= 90);
        world.rounds(10).await;
        assert!(world.following.open.len() <= 10 && world.following.retries.len() <= 10);
    }

    #[tokio::test(start_paused = true)]
    async fn the_pauses_between_questions_double_up_to_a_quarter_of_an_hour() {
        let mut world = World::new(1);
        world.round(true, &[]).await;
        world.rounds(3_600).await;
        assert_eq!(world.asked[0], [0, 60, 180, 420, 900, 1_800, 2_700, 3_600]);
        // A new tip begins anew.
        world.round(true, &[]).await;
        assert_eq!(world.asked[0].last(), Some(&3_601));
    }

    #[tokio::test(start_paused = true)]
    async fn an_open_payment_by_the_wallet_is_asked_about_within_seconds() {
        let mut world = World::new(3);
        let record = &mut world.followed[1].record;
        (record.purpose, record.state) = (Purpose::Outgoing(1), TransactionState::Offered);
        world.round(true, &[]).await;
        world.rounds(200).await;
        assert_eq!(world.asked[1], [0, 1, 3, 7, 15, 31, 63, 123, 183]);
        assert_eq!(world.asked[0], [0, 60, 180], "a payment to the wallet");
        // Once the network has it, it is like the others.
        world.followed[1].record.state = TransactionState::Seen;
        world.round(true, &[]).await;
        world.rounds(1).await;
        let asked = world.asked[1].len();
        world.rounds(58).await;
        assert_eq!(world.asked[1].len(), asked);
    }

    #[tokio::test(start_paused = true)]
    async fn sources_that_tell_of_changes_are_not_asked_without_a_reason() {
        let mut world = World::new(10);
        world.is_heard = true;
        world.round(true, &[]).await;
        assert_eq!(world.rounds(3_600).await, 8);
        world.round(false, &[3]).await;
        assert_eq!(world.asked[3].last(), Some(&(world.seconds - 1)));
        assert_eq!(world.rounds(3_600).await, 0);
        // All are asked about if something was missed, if nobody tells, and at a new tip.
        world.following.note_missed();
        assert_eq!(world.rounds(10).await, 10);
        assert_eq!(world.rounds(1_000).await, 0);
        world.is_heard = false;
        assert_eq!(world.rounds(10).await, 10);
        world.is_heard = true;
        assert_eq!(world.rounds(1_000).await, 0);
        assert_eq!(world.round(true, &[]).await + world.rounds(9).await, 10);
    }

    #[tokio::test(start_paused = true)]
    async fn those_that_are_told_again_and_again_leave_room_for_others() {
        let mut world = World::new(100);
        world.round(true, &[]).await;
        for _ in 0..150 {
            assert!(world.round(false, &[0, 1, 2, 3]).await <= QUESTIONS);
        }
        assert!(world.asked.iter().all(|asked| !asked.is_empty()));
        assert!(world.asked[3].len() >= 10);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_always_misses_something_makes_all_be_asked_about_in_turn() {
        let mut world = World::new(300);
        world.is_heard = true;
        world.round(true, &[]).await;
        for _ in 0..600 {
            world.following.note_missed();
            assert!(world.round(false, &[]).await <= QUESTIONS);
        }
        let counts: Vec<_> = world.asked.iter().map(Vec::len).collect();
        assert!(counts.iter().all(|count| (3..=11).contains(count)), "{counts:?}");
    }
}
