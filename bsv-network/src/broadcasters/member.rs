use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::{Mutex as AsyncMutex, Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep_until, timeout};

use super::budget::Budget;
use super::client::{Broadcaster, BroadcasterError, Dialect};
use super::told_height::ToldHeight;

/// A broadcaster of a set, with its limits.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) broadcaster: Broadcaster,
    requests_per_second: usize,
    turns: Semaphore,
    /// The turns that questions may have for which nobody waits.
    later_turns: Semaphore,
    budget: Arc<Budget>,
    /// When it was asked during the last second.
    asked: AsyncMutex<VecDeque<Instant>>,
    notes: Mutex<Notes>,
    /// Whether a stream of its events is connected.
    pub(super) is_heard: Arc<AtomicBool>,
}

#[derive(Debug, Default)]
struct Notes {
    outcomes: [u64; Outcome::ALL.len()],
    last_outcome: Option<Outcome>,
    last_answer: Option<u64>,
    /// Until when it wants to be left alone, and the HTTP status with which it said so.
    rest: Option<(Instant, u16)>,
    silence: Silence,
    /// Until when it is asked half as often.
    slow_until: Option<Instant>,
    fee_rate: Option<u64>,
    height: ToldHeight,
    /// When it is asked for its fee again.
    fee_due: Option<Instant>,
}

/// For how long a broadcaster has not answered.
#[derive(Debug, Default)]
struct Silence {
    /// How many questions in a row it has not answered. Those that were asked at the same time are one.
    questions: u32,
    /// When the last one of them ended.
    last: Option<Instant>,
    /// Until when it rests.
    until: Option<Instant>,
}

/// Whether somebody waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// Somebody does.
    Now,
    /// Nobody does. All broadcasters of a set together get two such requests in a second, and each of
    /// them deals with four at once.
    Later,
}

/// What is known of a broadcaster of a set.
#[derive(Clone, Debug)]
pub struct BroadcasterReport {
    /// `arcade` or `arc`.
    pub kind: &'static str,
    /// The host, and the port if the URL has one.
    pub host: String,
    /// How the last question ended. `None` before the first one.
    pub last_outcome: Option<Outcome>,
    /// The time of its last answer that could be used, in seconds since 1970.
    pub last_answer: Option<u64>,
    /// How many questions had each outcome.
    pub outcomes: [u64; Outcome::ALL.len()],
    /// The fee that it asked for last, in satoshis per 1000 bytes.
    pub fee_rate: Option<u64>,
    /// Whether it is given transactions: not if its fee is above the maximum of the set.
    pub is_in_use: bool,
}

/// How a question to a broadcaster ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The answer can be used.
    Answered,
    /// There is no answer, or none within 5 seconds, after which nobody has waited for it.
    Away,
    /// It has no time, or is in trouble.
    Busy,
    /// It refuses the API key.
    Unauthorized,
    /// The answer is nonsense.
    Nonsense,
    /// Nobody has waited for the answer.
    Unheard,
}

/// How long a broadcaster may take before another one is asked, too.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// The most questions at once to one broadcaster.
const TURNS: usize = 8;
/// Those of them that may be questions for which nobody waits.
const LATER_TURNS: usize = 4;
/// How long a broadcaster rests that has not answered twice in a row. The time doubles up to the longest
/// one.
const FIRST_REST: Duration = Duration::from_secs(1);
const LONGEST_REST: Duration = Duration::from_secs(60);
const SECOND: Duration = Duration::from_secs(1);
/// How long a broadcaster is asked half as often that could not follow.
const SLOW: Duration = Duration::from_secs(60);
/// How often a broadcaster is asked for its fee, and how soon again if it does not tell it.
const FEE_PERIOD: Duration = Duration::from_secs(3_600);
const FEE_RETRY: Duration = Duration::from_secs(60);
/// How long a broadcaster may take to tell its height.
const HEIGHT_PATIENCE: Duration = Duration::from_secs(2);

impl Outcome {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Answered, Self::Away, Self::Busy, Self::Unauthorized, Self::Nonsense, Self::Unheard];

    /// The name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Away => "away",
            Self::Busy => "busy",
            Self::Unauthorized => "unauthorized",
            Self::Nonsense => "nonsense",
            Self::Unheard => "unheard",
        }
    }

    fn of<T>(said: &Result<T, BroadcasterError>) -> Self {
        match said {
            Ok(_) => Self::Answered,
            Err(BroadcasterError::Unreachable(_)) => Self::Away,
            Err(BroadcasterError::Busy { .. }) => Self::Busy,
            Err(BroadcasterError::Unauthorized(_)) => Self::Unauthorized,
            Err(BroadcasterError::Nonsense(_)) => Self::Nonsense,
        }
    }
}

/// A question that was begun. It counts even if nobody waits for its end.
struct Question<'a> {
    member: &'a Member,
    begun: Instant,
    outcome: Outcome,
}

impl Drop for Question<'_> {
    fn drop(&mut self) {
        let outcome = match self.outcome {
            Outcome::Unheard if self.begun.elapsed() >= PATIENCE => Outcome::Away,
            outcome => outcome,
        };
        let mut notes = self.member.notes();
        notes.outcomes[outcome as usize] += 1;
        match outcome {
            Outcome::Unheard => return,
            Outcome::Away => notes.silence.go_on(self.begun),
            _ => notes.silence = Silence::default(),
        }
        if outcome == Outcome::Answered {
            notes.last_answer = Some(now());
        }
        notes.last_outcome = Some(outcome);
    }
}

impl Silence {
    /// Takes note of a question that began at this time and was not answered.
    fn go_on(&mut self, begun: Instant) {
        let now = Instant::now();
        if self.last.is_some_and(|last| begun < last) {
            return;
        }
        self.questions += 1;
        self.last = Some(now);
        let doubled = self.questions.checked_sub(2).map(|times| 1 << times.min(6));
        self.until = doubled.map(|times| now + (FIRST_REST * times).min(LONGEST_REST));
    }
}

impl Member {
    pub(super) fn new(broadcaster: Broadcaster, budget: Arc<Budget>) -> Self {
        Self {
            requests_per_second: broadcaster.requests_per_second().max(1),
            broadcaster,
            turns: Semaphore::new(TURNS),
            later_turns: Semaphore::new(LATER_TURNS),
            budget,
            asked: AsyncMutex::default(),
            notes: Mutex::default(),
            is_heard: Arc::default(),
        }
    }

    /// Asks, as soon as the limits allow. While the broadcaster wants to be left alone, the question
    /// fails at once. A question that is given up takes nothing from the limits.
    pub(super) async fn ask<T>(
        &self,
        urgency: Urgency,
        question: impl Future<Output = Result<T, BroadcasterError>>,
    ) -> Result<T, BroadcasterError> {
        self.rest()?;
        let _later = match urgency {
            Urgency::Now => None,
            Urgency::Later => Some(turn(&self.later_turns).await),
        };
        let _turn = turn(&self.turns).await;
        self.keep_pace().await;
        self.rest()?;
        if urgency == Urgency::Later {
            self.budget.spend();
        }
        let begun = Instant::now();
        let mut asked = Question { member: self, begun, outcome: Outcome::Unheard };
        let said = question.await;
        asked.outcome = Outcome::of(&said);
        if let Err(BroadcasterError::Busy { status, retry_after }) = &said {
            self.leave_alone(*status, *retry_after);
        }
        said
    }

    /// An error while the broadcaster rests because it does not answer.
    pub(super) fn listen(&self) -> Result<(), BroadcasterError> {
        if self.notes().silence.until.is_none_or(|until| until <= Instant::now()) {
            return Ok(());
        }
        Err(BroadcasterError::Unreachable("it has not answered the last questions".to_owned()))
    }

    /// An error while the broadcaster wants to be left alone.
    fn rest(&self) -> Result<(), BroadcasterError> {
        let Some((end, status)) = self.notes().rest else { return Ok(()) };
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        Err(BroadcasterError::Busy { status, retry_after: Some(left) })
    }

    fn leave_alone(&self, status: u16, pause: Option<Duration>) {
        let (mut notes, now) = (self.notes(), Instant::now());
        if let Some(pause) = pause {
            notes.rest = Some((now + pause, status));
        }
        if pause.is_some() || status == 429 {
            notes.slow_until = Some(now + SLOW);
        }
    }

    /// Waits until the broadcaster may be asked. Those who wait come in their order.
    async fn keep_pace(&self) {
        let mut asked = self.asked.lock().await;
        loop {
            while asked.front().is_some_and(|at| at.elapsed() >= SECOND) {
                asked.pop_front();
            }
            let excess = (asked.len() + 1).saturating_sub(self.pace());
            match excess.checked_sub(1).and_then(|last| asked.get(last)) {
                Some(at) => sleep_until(*at + SECOND).await,
                None => break,
            }
        }
        asked.push_back(Instant::now());
    }

    /// How often it may be asked in a second.
    fn pace(&self) -> usize {
        let is_slow = self.notes().slow_until.is_some_and(|end| end > Instant::now());
        if is_slow { self.requests_per_second.div_ceil(2) } else { self.requests_per_second }
    }

    /// Asks for the fee if it is time to. The last one that was told is kept.
    pub(super) async fn ask_fee(&self) {
        if self.notes().fee_due.is_some_and(|due| due > Instant::now()) {
            return;
        }
        let told = self.ask(Urgency::Now, self.broadcaster.fee_rate()).await;
        let mut notes = self.notes();
        let period = if told.is_ok() { FEE_PERIOD } else { FEE_RETRY };
        notes.fee_due = Some(Instant::now() + period);
        notes.fee_rate = told.ok().or(notes.fee_rate);
    }

    /// How far it knows the chain, as it says. It is asked if it is not known to have this height.
    pub(super) async fn height(&self, wanted: u32) -> Option<u32> {
        if !self.can_tell_height() {
            return None;
        }
        let is_due = self.notes().height.is_due(wanted);
        if is_due && self.listen().is_ok() {
            self.notes().height.ask();
            let asked = self.ask(Urgency::Later, self.broadcaster.health());
            // One that is away may tell it later.
            if let Ok(Ok(health)) = timeout(HEIGHT_PATIENCE, asked).await {
                self.notes().height.hear(health.height);
            }
        }
        self.notes().height.known()
    }

    /// Whether its dialect tells how far it knows the chain. One that is silent about it can still tell
    /// it later.
    pub(super) fn can_tell_height(&self) -> bool {
        self.broadcaster.dialect() == Dialect::Arcade
    }

    pub(super) fn fee_rate(&self) -> Option<u64> {
        self.notes().fee_rate
    }

    pub(super) fn report(&self, is_in_use: bool) -> BroadcasterReport {
        let (notes, broadcaster) = (self.notes(), &self.broadcaster);
        BroadcasterReport {
            kind: broadcaster.dialect().name(),
            host: broadcaster.host().to_owned(),
            last_outcome: notes.last_outcome,
            last_answer: notes.last_answer,
            outcomes: notes.outcomes,
            fee_rate: notes.fee_rate,
            is_in_use,
        }
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn turn(turns: &Semaphore) -> SemaphorePermit<'_> {
    turns.acquire().await.expect("it is never closed")
}

/// The time of this machine's clock, in seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use reqwest::Client;
    use tokio::task::JoinHandle;
    use tokio::time::sleep;

    use super::Urgency::{Later, Now};
    use super::*;

    fn client() -> Client {
        let tls = rustls::ClientConfig::builder_with_provider(Arc::new(
            rustls::crypto::ring::default_provider(),
        ))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
        Client::builder().tls_backend_preconfigured(tls).build().unwrap()
    }

    fn member(requests_per_second: u32) -> Arc<Member> {
        let broadcaster = Broadcaster::new(Dialect::Arc, client(), "http://127.0.0.1:9");
        let broadcaster = broadcaster.with_requests_per_second(requests_per_second);
        Arc::new(Member::new(broadcaster, Arc::new(Budget::new())))
    }

    fn busy(status: u16, pause: Option<u64>) -> BroadcasterError {
        BroadcasterError::Busy { status, retry_after: pause.map(Duration::from_secs) }
    }

    /// How many questions that are answered at once fit into this time.
    async fn count(member: &Arc<Member>, time: Duration) -> usize {
        let mut count = 0;
        let asking = async {
            while count < 1_000_000 {
                member.ask(Now, async { Ok(()) }).await.unwrap();
                count += 1;
            }
        };
        assert!(timeout(time, asking).await.is_err());
        count
    }

    #[tokio::test(start_paused = true)]
    async fn a_broadcaster_is_asked_so_often_in_a_second() {
        let member = member(20);
        assert_eq!(count(&member, Duration::from_millis(900)).await, 20);
        assert_eq!(count(&member, Duration::from_secs(10)).await, 200);
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_cannot_follow_is_asked_half_as_often_for_a_minute() {
        for error in [busy(429, None), busy(503, Some(0))] {
            let member = member(20);
            let expected = error.clone();
            assert_eq!(member.ask(Now, async { Err::<(), _>(error) }).await, Err(expected));
            sleep(SECOND).await;
            assert_eq!(count(&member, Duration::from_millis(50_900)).await, 510);
            sleep(Duration::from_secs(10)).await;
            assert_eq!(count(&member, Duration::from_millis(9_900)).await, 200);
        }
        let member = member(20);
        let _ = member.ask(Now, async { Err::<(), _>(busy(503, None)) }).await;
        assert_eq!(count(&member, Duration::from_millis(900)).await, 19);
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_wants_to_be_left_alone_is() {
        let member = member(20);
        let _ = member.ask(Now, async { Err::<(), _>(busy(503, Some(7))) }).await;
        sleep(Duration::from_secs(2)).await;
        assert_eq!(member.ask(Now, async { Ok(()) }).await, Err(busy(503, Some(5))));
        assert_eq!(member.report(true).outcomes.iter().sum::<u64>(), 1);
        sleep(Duration::from_secs(5)).await;
        assert_eq!(member.ask(Now, async { Ok(()) }).await, Ok(()));
        // Those that wait for their turn meanwhile learn of it, too.
        let slow = async {
            sleep(SECOND).await;
            Err::<(), _>(busy(503, Some(7)))
        };
        let (first, second) = tokio::join!(member.ask(Now, slow), async {
            let _turns = member.turns.acquire_many(TURNS as u32 - 1).await.unwrap();
            member.ask(Now, async { Ok(()) }).await
        });
        assert!(first.is_err());
        assert_eq!(second, Err(busy(503, Some(7))));
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_that_is_given_up_keeps_no_turn() {
        let member = member(1_000);
        for (time, outcome, last) in
            [(SECOND, Outcome::Unheard, None), (PATIENCE, Outcome::Away, Some(Outcome::Away))]
        {
            let asking = (0..2 * TURNS).map(|_| {
                let member = Arc::clone(&member);
                tokio::spawn(async move { member.ask(Now, pending::<Result<(), _>>()).await })
            });
            let asking: Vec<_> = asking.collect();
            sleep(time).await;
            assert_eq!(member.turns.available_permits(), 0);
            asking.iter().for_each(JoinHandle::abort);
            for task in asking {
                assert!(task.await.is_err());
            }
            assert_eq!(member.turns.available_permits(), TURNS);
            // Those that were asked count, the others do not.
            let report = member.report(true);
            assert_eq!(report.outcomes[outcome as usize], TURNS as u64);
            assert_eq!((report.last_outcome, report.last_answer), (last, None));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_that_is_given_up_costs_nobody_time() {
        let member = member(1);
        member.ask(Now, async { Ok(()) }).await.unwrap();
        for _ in 0..10 {
            let asked = timeout(Duration::from_millis(50), member.ask(Now, async { Ok(()) })).await;
            assert!(asked.is_err());
        }
        let begun = Instant::now();
        member.ask(Now, async { Ok(()) }).await.unwrap();
        assert_eq!(begun.elapsed(), Duration::from_millis(500));
    }

    #[tokio::test(start_paused = true)]
    async fn questions_for_which_nobody_waits_leave_half_of_the_turns() {
        let member = member(1_000);
        let asking = (0..2 * TURNS).map(|_| {
            let member = Arc::clone(&member);
            tokio::spawn(async move { member.ask(Later, pending::<Result<(), _>>()).await })
        });
        let asking: Vec<_> = asking.collect();
        sleep(SECOND).await;
        assert_eq!(member.turns.available_permits(), TURNS - LATER_TURNS);
        assert_eq!(member.ask(Now, async { Ok(()) }).await, Ok(()));
        // Those that were asked are paid for, the others are not.
        assert_eq!(member.budget.left(), 2);
        asking.iter().for_each(JoinHandle::abort);
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_does_not_answer_rests_longer_each_time() {
        let member = member(1_000);
        let away = || async { Err::<(), _>(BroadcasterError::Unreachable(String::new())) };
        let mut rests = Vec::new();
        for _ in 0..9 {
            // Those that are asked at the same time are one question.
            let slow = || async {
                sleep(SECOND).await;
                away().await
            };
            let both = tokio::join!(member.ask(Now, slow()), member.ask(Now, slow()));
            assert!(both.0.is_err() && both.1.is_err());
            let begun = Instant::now();
            while member.listen().is_err() {
                sleep(Duration::from_millis(250)).await;
            }
            rests.push(begun.elapsed().as_secs());
        }
        assert_eq!(rests, [0, 1, 2, 4, 8, 16, 32, 60, 60]);
        // Any answer ends it.
        assert!(member.ask(Now, away()).await.is_err() && member.listen().is_err());
        let _ = member.ask(Now, async { Err::<(), _>(busy(503, None)) }).await;
        assert_eq!(member.listen(), Ok(()));
        assert!(member.ask(Now, away()).await.is_err());
        assert_eq!(member.listen(), Ok(()));
    }
}
