use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bsv_tx::{Bump, ExtendedTransaction, Txid};
use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;
use thiserror::Error;
use tokio::pin;
use tokio::select;
use tokio::sync::{Notify, broadcast};
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use super::answer::{Answer, Word};
use super::budget::Budget;
use super::client::{Broadcaster, BroadcasterError, Dialect};
use super::events::EventStream;
use super::member::{BroadcasterReport, Member, PATIENCE, Urgency};
use super::standing::{Standing, Step, Talk};

/// Several broadcasters, whose words are put together.
///
/// It keeps nothing about transactions. Each broadcaster is asked at most 8 questions at once, and as
/// often in a second as it allows. One that has not answered twice in a row rests for a second at first
/// and a minute at last.
#[derive(Debug)]
pub struct BroadcasterSet {
    members: Vec<Member>,
    budget: Arc<Budget>,
    seen_by: usize,
    max_fee_rate: Option<u64>,
    /// How many questions were asked.
    questions: AtomicU64,
    /// Transactions that may have changed. `None` stands for all.
    hints: broadcast::Sender<Option<Txid>>,
}

/// A transaction that is given to broadcasters.
#[derive(Clone, Copy, Debug)]
pub struct Submission<'a> {
    /// Its unproven ancestors, parents before their children.
    pub ancestors: &'a [ExtendedTransaction],
    /// The transaction.
    pub transaction: &'a ExtendedTransaction,
    /// The height of the newest block that makes a coin which they spend, as far as is known. A
    /// broadcaster that does not have it yet cannot know the coins.
    pub newest_block: Option<u32>,
}

/// What the broadcasters of a set tell of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// What it means.
    pub standing: Standing,
    /// Merkle paths, each with the transaction as a marked leaf. Nobody has checked them. The
    /// transaction is mined if one leads to the root of a header of the main chain, whatever the
    /// standing is.
    pub paths: Vec<Bump>,
    /// What each broadcaster has said last, if it was asked and has answered.
    pub said: Vec<Said>,
}

/// What one broadcaster has said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// Its dialect.
    pub dialect: Dialect,
    /// The host, and the port if the URL has one.
    pub host: String,
    /// Its word, or why there is none.
    pub word: Result<Word, BroadcasterError>,
}

/// More broadcasters must see a transaction than are named, or none must.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a transaction cannot be seen by {seen_by} of {named} broadcasters")]
pub struct SeenByError {
    /// How many must see it.
    pub seen_by: usize,
    /// How many are named.
    pub named: usize,
}

/// How many hints wait for those who are busy. Those who miss some ask without one.
const HINTS: usize = 64;
/// The shortest time between two questions about a transaction, whatever the hints are.
const SHORTEST_WAIT: Duration = Duration::from_millis(100);
/// How long a question waits for the others once so many as must see a transaction have taken it.
const GRACE: Duration = Duration::from_millis(500);
/// One in so many questions waits for all, so that what a slow broadcaster knows is heard in the end.
const PATIENT: u64 = 8;

impl BroadcasterSet {
    /// A set whose transactions are taken if `seen_by` broadcasters say so. The broadcasters are asked
    /// in this order.
    pub fn new(broadcasters: Vec<Broadcaster>, seen_by: usize) -> Result<Self, SeenByError> {
        let named = broadcasters.len();
        if !(1..=named).contains(&seen_by) {
            return Err(SeenByError { seen_by, named });
        }
        let budget = Arc::new(Budget::new());
        let member = |broadcaster| Member::new(broadcaster, Arc::clone(&budget));
        let members = broadcasters.into_iter().map(member).collect();
        let hints = broadcast::Sender::new(HINTS);
        let (max_fee_rate, questions) = (None, AtomicU64::default());
        Ok(Self { members, budget, seen_by, max_fee_rate, questions, hints })
    }

    /// The same set, which gives no transactions to a broadcaster that asks for a higher fee than
    /// this, in satoshis per 1000 bytes. Such a broadcaster has no say in [`BroadcasterSet::send`].
    pub fn with_max_fee_rate(self, max_fee_rate: u64) -> Self {
        Self { max_fee_rate: Some(max_fee_rate), ..self }
    }

    /// Gives a transaction to the network, after its unproven ancestors, until it is clear how it
    /// stands, for at most this time.
    ///
    /// At first so many broadcasters get it as must see it. Another one gets it as soon as one of them
    /// has failed, has refused it, or has not taken it for 5 seconds. It may be sent any number of
    /// times.
    pub async fn send(&self, submission: Submission<'_>, time: Duration, urgency: Urgency) -> Told {
        let members: Vec<_> = self.members.iter().filter(|it| self.is_in_use(it)).collect();
        let hints = members.iter().map(|_| Notify::new()).collect();
        let package = Package { submission, urgency, hints };
        let txid = package.txid();
        let mut hints = self.hints.subscribe();
        let mut talks: Vec<_> = members.iter().map(|_| Talk::default()).collect();
        let mut begun: Vec<Instant> = Vec::new();
        let mut steps = FuturesUnordered::new();
        let end = sleep(time);
        pin!(end);
        loop {
            let asked = begun.iter().zip(&talks);
            let others = asked.filter(|(at, talk)| talk.wants_another(at.elapsed() >= PATIENCE));
            let due = members.len().min(self.seen_by + others.count());
            while begun.len() < due {
                steps.push(package.take(&members, begun.len(), Step::Send, Duration::ZERO));
                begun.push(Instant::now());
            }
            if steps.is_empty() || is_clear(&talks, self.seen_by) {
                break;
            }
            let slow = begun.iter().map(|at| *at + PATIENCE).find(|at| *at > Instant::now());
            select! {
                biased;
                Some((index, step, said)) = steps.next() => {
                    if let Some((step, wait)) = talks[index].hear(step, said) {
                        steps.push(package.take(&members, index, step, wait));
                    }
                }
                () = &mut end => break,
                hint = hints.recv() => {
                    // Those that were missed may have been about it.
                    if !hint.is_ok_and(|hint| hint.is_some_and(|hint| hint != txid)) {
                        package.hints.iter().for_each(Notify::notify_one);
                    }
                }
                () = sleep_until(slow.unwrap_or_else(Instant::now)), if slow.is_some() => {}
            }
        }
        self.told(&members, talks)
    }

    /// Asks all broadcasters what became of a transaction that was sent before, each once, for at most
    /// this time. It ends when one has given a path that `holds`, and most often soon after it is clear
    /// that the network has the transaction.
    pub async fn ask(
        &self,
        txid: &Txid,
        time: Duration,
        urgency: Urgency,
        holds: impl Fn(&Bump) -> bool,
    ) -> Told {
        let members: Vec<_> = self.members.iter().collect();
        let mut talks: Vec<_> = members.iter().map(|_| Talk::default()).collect();
        let asked = members.iter().enumerate().map(|(index, member)| async move {
            let said = match member.listen() {
                Ok(()) => member.ask(urgency, member.broadcaster.status(txid)).await,
                Err(silent) => Err(silent),
            };
            (index, said)
        });
        let mut asked: FuturesUnordered<_> = asked.collect();
        let is_patient = self.questions.fetch_add(1, Ordering::Relaxed).is_multiple_of(PATIENT);
        let mut end = Instant::now() + time;
        while let Ok(Some((index, said))) = timeout_at(end, asked.next()).await {
            talks[index] = Talk::of(said);
            if talks[index].path.as_ref().is_some_and(&holds) {
                break;
            }
            if is_clear(&talks, self.seen_by) && !is_patient {
                end = end.min(Instant::now() + GRACE);
            }
        }
        drop(asked);
        self.told(&members, talks)
    }

    /// Makes those who wait for news of a transaction ask at once: somebody says that there are some.
    pub fn hint(&self, txid: &Txid) {
        // Nobody may wait.
        let _ = self.hints.send(Some(*txid));
    }

    /// Makes all who wait for news of a transaction ask at once: some may be missing.
    pub fn hint_all(&self) {
        let _ = self.hints.send(None);
    }

    /// The events of those that tell them: see [`EventStream::of`].
    pub fn streams(&self) -> impl Iterator<Item = EventStream> {
        self.members.iter().filter_map(|it| EventStream::with(&it.broadcaster, &it.is_heard))
    }

    /// Whether a stream of [`streams`](Self::streams) is connected to each broadcaster. Whatever
    /// becomes of a transaction that was sent is then told, and polling can rest.
    pub fn is_heard(&self) -> bool {
        self.members.iter().all(|member| member.is_heard.load(Ordering::Relaxed))
    }

    /// Asks each broadcaster for its fee that was not asked for an hour, or did not tell it a minute
    /// ago. Call it every minute.
    pub async fn ask_fees(&self) {
        join_all(self.members.iter().map(Member::ask_fee)).await;
    }

    /// The fee that as many broadcasters accept as must see a transaction, in satoshis per 1000 bytes,
    /// as far as they have told it. Those that are not in use do not count. `None` if nobody has told
    /// it.
    pub fn fee_rate(&self) -> Option<u64> {
        let used = self.members.iter().filter(|member| self.is_in_use(member));
        let mut rates: Vec<_> = used.filter_map(Member::fee_rate).collect();
        rates.sort_unstable();
        rates.truncate(self.seen_by);
        rates.last().copied()
    }

    /// About how many transactions all broadcasters can be asked now if nobody waits for the answers.
    pub(crate) fn spare_questions(&self) -> usize {
        match self.budget.left() {
            0 => 0,
            left => (left / self.members.len()).max(1),
        }
    }

    /// Whether a broadcaster knows a block of this height, as it says.
    pub(crate) async fn reach(&self, height: u32) -> bool {
        let asked = self.members.iter().map(|member| member.height(height));
        let mut asked: FuturesUnordered<_> = asked.collect();
        // One that is slow must not hold up the others.
        while let Some(known) = asked.next().await {
            if known >= Some(height) {
                return true;
            }
        }
        false
    }

    /// How many broadcasters can tell how far they know the chain, by their dialects.
    pub(crate) fn can_tell_heights(&self) -> usize {
        self.members.iter().filter(|member| member.can_tell_height()).count()
    }

    /// What is known of each broadcaster, in their order.
    pub fn reports(&self) -> impl Iterator<Item = BroadcasterReport> {
        self.members.iter().map(|member| member.report(self.is_in_use(member)))
    }

    fn is_in_use(&self, member: &Member) -> bool {
        let rates = member.fee_rate().zip(self.max_fee_rate);
        rates.is_none_or(|(rate, most)| rate <= most)
    }

    fn told(&self, members: &[&Member], talks: Vec<Talk>) -> Told {
        let standing = Standing::of(&words(&talks), self.seen_by);
        let (mut paths, mut said) = (Vec::new(), Vec::new());
        for (member, talk) in members.iter().zip(talks) {
            paths.extend(talk.path);
            let (dialect, host) = (member.broadcaster.dialect(), member.broadcaster.host());
            said.extend(talk.said.map(|word| Said { dialect, host: host.to_owned(), word }));
        }
        Told { standing, paths, said }
    }
}

fn words(talks: &[Talk]) -> Vec<Option<Word>> {
    talks.iter().map(|talk| talk.word.clone()).collect()
}

/// Whether nothing that others say can change what it means.
fn is_clear(talks: &[Talk], seen_by: usize) -> bool {
    let words = words(talks);
    match Standing::of(&words, seen_by) {
        Standing::Taken => true,
        Standing::Rival { .. } => words.contains(&Some(Word::Taken)),
        _ => false,
    }
}

/// A transaction that is sent.
struct Package<'a> {
    submission: Submission<'a>,
    urgency: Urgency,
    /// Each ends waiting for the next question to one of the broadcasters.
    hints: Vec<Notify>,
}

impl Package<'_> {
    fn txid(&self) -> Txid {
        self.submission.transaction.transaction().txid()
    }

    /// Takes a step with one of the broadcasters after a while.
    async fn take(
        &self,
        members: &[&Member],
        index: usize,
        step: Step,
        wait: Duration,
    ) -> (usize, Step, Result<Answer, BroadcasterError>) {
        let member = members[index];
        let hinted = async {
            sleep(SHORTEST_WAIT).await;
            self.hints[index].notified().await;
        };
        select! {
            () = sleep(wait) => {}
            () = hinted, if step == Step::Ask => {}
        }
        // A payer's broadcaster gets another try soon, while others are asked.
        let heeds_silence = self.urgency == Urgency::Later || wait.is_zero();
        let silence = if heeds_silence { member.listen() } else { Ok(()) };
        let said = match (silence, step) {
            (Err(silent), _) => Err(silent),
            (Ok(()), Step::Send) => self.send(member).await,
            (Ok(()), Step::Ask) => {
                member.ask(self.urgency, member.broadcaster.status(&self.txid())).await
            }
        };
        (index, step, said)
    }

    async fn send(&self, member: &Member) -> Result<Answer, BroadcasterError> {
        let Submission { ancestors: unproven, transaction, newest_block } = self.submission;
        let mut ancestors = Vec::new();
        for ancestor in unproven {
            ancestors.push(member.ask(self.urgency, member.broadcaster.send(ancestor)).await?.word);
        }
        let sent = member.ask(self.urgency, member.broadcaster.send(transaction)).await;
        let Answer { word, path } = sent?;
        let word = word.after(&ancestors);
        if matches!(word, Word::InputsUnknown { .. })
            && let Some(height) = newest_block
            && member.height(height).await.is_some_and(|known| known < height)
        {
            return Ok(Answer { word: Word::NotYet, path });
        }
        Ok(Answer { word, path })
    }
}
