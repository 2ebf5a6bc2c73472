//! A set of two broadcasters, Arcade and ARC, of two operators.

use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use bsv_network::SecretString;
use bsv_network::broadcasters::{
    Broadcaster, BroadcasterError, BroadcasterSet, Dialect, Outcome, Standing, Submission, Told,
    Urgency, Word,
};
use bsv_tests::Service;
use bsv_tests::ancestry::{bump, previous_outputs};
use bsv_tests::payee::output;
use bsv_tests::purse::{FEE, knows};
use bsv_tests::rival::height;
use bsv_tests::services::Mood;
use bsv_tx::{Bump, ExtendedTransaction, Transaction, Txid};
use tokio::runtime::Runtime;

use super::{Scene, http_client};

/// How long a payee waits.
const TIME: Duration = Duration::from_secs(10);

/// Two operators before one node. `scene` has the first one.
struct Pair {
    scene: Scene,
    second: Service,
    runtime: Runtime,
}

impl Pair {
    fn new(coins: usize) -> Self {
        let scene = Scene::new(coins);
        let second = Service::before(&scene.node);
        Self { scene, second, runtime: Runtime::new().unwrap() }
    }

    fn first(&self) -> &Service {
        &self.scene.service
    }

    /// A set of Arcade at the first one, and of ARC at the second one.
    fn set(&self, seen_by: usize) -> BroadcasterSet {
        let broadcasters = [(Dialect::Arcade, self.first()), (Dialect::Arc, &self.second)];
        let broadcaster = |(dialect, service): (_, &Service)| {
            Broadcaster::new(dialect, http_client(), service.url())
                .with_api_key(SecretString::from("key"))
        };
        BroadcasterSet::new(broadcasters.map(broadcaster).into(), seen_by).unwrap()
    }

    fn send(&self, set: &BroadcasterSet, transaction: &Transaction) -> Told {
        let spent = previous_outputs(&self.scene.node, transaction);
        let extended = ExtendedTransaction::new(transaction.clone(), spent).unwrap();
        // What is spent comes from the newest block at the latest.
        let newest_block = Some(height(&self.scene.node) as u32);
        let submission = Submission { ancestors: &[], transaction: &extended, newest_block };
        self.runtime.block_on(set.send(submission, TIME, Urgency::Now))
    }

    /// Sends a payment through a new set.
    fn pay(&self, seen_by: usize) -> Standing {
        self.send(&self.set(seen_by), &self.scene.payment()).standing
    }

    fn ask(&self, set: &BroadcasterSet, txid: &Txid) -> Told {
        self.runtime.block_on(set.ask(txid, TIME, Urgency::Now, |_| false))
    }

    fn be(&self, first: Mood, second: Mood) {
        self.first().be(first);
        self.second.be(second);
    }
}

fn refusing(code: u16) -> Mood {
    Mood { refuses: Some(code), ..Mood::default() }
}

fn busy(status: u16, retry_after: u32) -> Mood {
    Mood { condition: Some((status, Some(retry_after))), ..Mood::default() }
}

fn words(told: &Told) -> Vec<Word> {
    told.said.iter().map(|said| said.word.clone().unwrap()).collect()
}

#[test]
fn so_many_get_a_payment_as_must_see_it() {
    let pair = Pair::new(2);
    let payments = [pair.scene.payment(), pair.scene.payment()];
    for (seen_by, payment) in [1, 2].into_iter().zip(&payments) {
        let set = pair.set(seen_by);
        let told = pair.send(&set, payment);
        assert_eq!((told.standing, told.said.len()), (Standing::Taken, seen_by));
        assert_eq!(pair.second.requests("POST").len(), seen_by - 1);
    }
    pair.scene.node.mine(1);
    let root = bump(&pair.scene.node, &payments[1].txid()).root();
    let told = pair.ask(&pair.set(2), &payments[1].txid());
    // Nobody's word says that it is mined.
    assert_eq!(told.standing, Standing::Open);
    assert_eq!(told.paths.iter().map(Bump::root).collect::<Vec<_>>(), [root, root]);
    // What one of them does not know proves nothing.
    let told = pair.ask(&pair.set(1), &payments[0].txid());
    assert_eq!((words(&told), told.paths.len()), (vec![Word::Open, Word::Unknown], 1));
}

#[test]
fn a_second_one_is_asked_if_the_first_is_silent() {
    let pair = Pair::new(2);
    let silent = Mood { relays: false, ..Mood::default() };
    let hanging = Mood { delay: TIME, ..Mood::default() };
    for (mood, outcome) in [(silent, Outcome::Answered), (hanging, Outcome::Away)] {
        pair.be(mood, Mood::default());
        let (set, begun) = (pair.set(1), Instant::now());
        let told = pair.send(&set, &pair.scene.payment());
        assert_eq!(told.standing, Standing::Taken);
        let time = begun.elapsed();
        assert!(time >= Duration::from_secs(5) && time < Duration::from_secs(8), "{time:?}");
        let report = set.reports().next().unwrap();
        assert_eq!((report.kind, report.host), ("arcade", pair.first().address()));
        assert_eq!(report.last_outcome, Some(outcome));
    }
}

#[test]
fn a_verdict_needs_all() {
    let pair = Pair::new(5);
    pair.be(refusing(461), Mood::default());
    assert_eq!(pair.pay(1), Standing::Taken);
    // It is not asked again, and the other one has it.
    let begun = Instant::now();
    assert_eq!(pair.pay(2), Standing::Open);
    assert!(begun.elapsed() < Duration::from_secs(5));
    pair.be(refusing(461), refusing(464));
    let refusal = pair.pay(1);
    let is_expected =
        matches!(refusal, Standing::Refused { code: Some(461), is_verdict: true, .. });
    assert!(is_expected, "{refusal:?}");
    // The second one does not know the coins, with all that there is to send.
    pair.be(refusing(461), refusing(460));
    assert_eq!(pair.pay(1), Standing::InputsUnknown);
    pair.be(Mood::default(), Mood::default());
    let purse = &pair.scene.purse;
    let cheap = purse.spend(&[purse.coin()], vec![output(1_000)], 1);
    let told = pair.send(&pair.set(1), &cheap);
    assert!(told.standing.is_fee_too_low(), "{told:?}");
    assert!(!knows(&pair.scene.node, &cheap));
}

#[test]
fn a_rival_counts_whatever_others_say() {
    let pair = Pair::new(6);
    let rival = |is_refused| Standing::Rival { spenders: Vec::new(), is_refused };
    for (first, second, seen_by, expected) in [
        (refusing(466), Mood::default(), 1, rival(false)),
        (Mood::default(), refusing(466), 1, Standing::Taken),
        (Mood::default(), refusing(466), 2, rival(false)),
        (refusing(466), refusing(461), 1, rival(true)),
        // It was sent everything.
        (refusing(462), refusing(466), 1, rival(true)),
    ] {
        pair.be(first, second);
        assert_eq!(pair.pay(seen_by), expected);
    }
    pair.be(Mood::default(), Mood::default());
    let (set, purse) = (pair.set(1), &pair.scene.purse);
    let coin = purse.coin();
    let [ours, other] =
        [1_000, 2_000].map(|satoshis| purse.spend(&[coin], vec![output(satoshis)], FEE));
    assert_eq!(pair.send(&set, &ours).standing, Standing::Taken);
    // ARC may have both.
    let expected = |is_refused| Standing::Rival { spenders: vec![ours.txid()], is_refused };
    assert_eq!(pair.send(&set, &other).standing, expected(false));
    pair.scene.node.mine(1);
    assert_eq!(pair.ask(&set, &other.txid()).standing, expected(true));
}

#[test]
fn a_broadcaster_that_is_late_is_given_time() {
    let pair = Pair::new(3);
    let late = Mood { withheld: 1, ..refusing(462) };
    // It does not have the block that makes the coin.
    pair.be(late.clone(), refusing(461));
    assert_eq!(pair.pay(1), Standing::Open);
    // It has just got it.
    for (mood, time) in [(late, 3_000), (refusing(462), 500)] {
        pair.be(mood, refusing(461));
        let standing = scope(|scope| {
            scope.spawn(|| {
                sleep(Duration::from_millis(time));
                pair.first().be(Mood::default());
            });
            pair.pay(1)
        });
        assert_eq!(standing, Standing::Taken);
    }
}

#[test]
fn trouble_of_one_is_no_verdict() {
    let pair = Pair::new(6);
    for mood in [busy(503, 60), busy(429, 60)] {
        pair.be(mood, Mood::default());
        let set = pair.set(1);
        for _ in 0..2 {
            let told = pair.send(&set, &pair.scene.payment());
            assert_eq!(told.standing, Standing::Taken);
            assert!(matches!(told.said[0].word, Err(BroadcasterError::Busy { .. })), "{told:?}");
        }
        // It was left alone the second time.
        let report = set.reports().next().unwrap();
        assert_eq!(report.outcomes[Outcome::Busy as usize], 1);
    }
    pair.be(Mood { api_key: Some("another".to_owned()), ..Mood::default() }, Mood::default());
    let set = pair.set(1);
    assert_eq!(pair.send(&set, &pair.scene.payment()).standing, Standing::Taken);
    assert_eq!(set.reports().next().unwrap().last_outcome, Some(Outcome::Unauthorized));
    // Both recover.
    pair.be(busy(429, 1), Mood { condition: Some((503, None)), ..Mood::default() });
    let begun = Instant::now();
    let standing = scope(|scope| {
        scope.spawn(|| {
            sleep(Duration::from_millis(300));
            pair.first().be(Mood::default());
        });
        pair.pay(1)
    });
    assert_eq!(standing, Standing::Taken);
    assert!(begun.elapsed() >= Duration::from_secs(1));
}

#[test]
fn a_broadcaster_that_has_forgotten_a_payment_gets_it_again() {
    let pair = Pair::new(2);
    let (set, payment) = (pair.set(2), pair.scene.payment());
    let forget = || {
        pair.first().restart_empty();
        pair.second.restart_empty();
    };
    assert_eq!(pair.send(&set, &payment).standing, Standing::Taken);
    forget();
    let told = pair.ask(&set, &payment.txid());
    assert_eq!((words(&told), told.standing), (vec![Word::Unknown; 2], Standing::Open));
    assert_eq!(pair.send(&set, &payment).standing, Standing::Taken);
    // While it is waited for, too.
    pair.be(Mood { relays: false, ..Mood::default() }, Mood::default());
    let standing = scope(|scope| {
        scope.spawn(|| {
            sleep(Duration::from_millis(500));
            pair.first().be(Mood::default());
            forget();
        });
        pair.pay(2)
    });
    assert_eq!(standing, Standing::Taken);
}

#[test]
fn ancestors_are_sent_first() {
    let pair = Pair::new(1);
    let (purse, parent) = (&pair.scene.purse, pair.scene.payment());
    let child = purse.spend(&purse.coins_of(&parent), vec![output(1_000)], FEE);
    let spent = previous_outputs(&pair.scene.node, &parent);
    let ancestors = [ExtendedTransaction::new(parent.clone(), spent).unwrap()];
    let extended =
        ExtendedTransaction::new(child.clone(), vec![parent.outputs[1].clone()]).unwrap();
    let send = |ancestors: &[ExtendedTransaction], time| {
        let submission = Submission { ancestors, transaction: &extended, newest_block: None };
        pair.runtime.block_on(pair.set(2).send(submission, time, Urgency::Now)).standing
    };
    assert_eq!(send(&[], Duration::from_secs(1)), Standing::Open);
    assert_eq!(send(&ancestors, TIME), Standing::Taken);
    assert!(knows(&pair.scene.node, &child));
}

#[test]
fn the_fee_is_that_of_as_many_as_must_see_a_payment() {
    let pair = Pair::new(2);
    let fee = |satoshis| Mood { fee: (satoshis, 1_000), ..Mood::default() };
    pair.be(fee(50), fee(70));
    let told = |set: BroadcasterSet| {
        assert_eq!(set.fee_rate(), None);
        pair.runtime.block_on(set.ask_fees());
        set.fee_rate()
    };
    assert_eq!(told(pair.set(1)), Some(50));
    assert_eq!(told(pair.set(2)), Some(70));
    assert_eq!(told(pair.set(1).with_max_fee_rate(49)), None);
    // One that asks for too much is not asked for more.
    pair.be(fee(500), fee(70));
    let set = pair.set(1).with_max_fee_rate(100);
    pair.runtime.block_on(set.ask_fees());
    assert_eq!(set.fee_rate(), Some(70));
    assert_eq!(set.reports().map(|it| it.is_in_use).collect::<Vec<_>>(), [false, true]);
    let told = pair.send(&set, &pair.scene.payment());
    assert_eq!((told.standing, told.said.len()), (Standing::Taken, 1));
    assert!(pair.first().requests("POST").is_empty());
}
