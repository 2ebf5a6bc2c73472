//! A shop is killed at random while it works. Its books must agree with the chain.

use std::thread;
use std::time::{Duration, Instant};

use bsv_tests::rival::Rival;
use bsv_tests::services::Mood;
use bsv_tests::{Node, free_port, repetitions};
use serde_json::Value;

use super::business::Business;
use super::chain_walk::ChainWalk;
use super::random;

const PAYERS: usize = 2;
/// How often each payer pays, and the shop sends money, in a round.
const TURNS: usize = 5;
/// How many payments come before the first round: enough coins for a consolidation.
const FIRST_PAYMENTS: usize = 25;
/// Every third round reorganises the chain.
const REORGANISED: usize = 3;

#[test]
fn books_equal_the_chain_however_often_the_shop_is_killed() {
    let rounds = repetitions("rounds of a shop that is killed", 200, 6);
    let zmq = format!("zmqpubrawtx2=tcp://127.0.0.1:{}", free_port());
    let node = Node::start_with(&[&zmq]);
    node.mine(110);
    let business = Business::begin(&node, FIRST_PAYMENTS + rounds * PAYERS * TURNS);
    books_equal_the_chain(&business, rounds);
}

/// The same without a node, while the service lies, is silent, or breaks.
#[test]
fn books_equal_the_chain_once_the_service_is_honest() {
    let rounds = repetitions("rounds of a shop without a node that is killed", 400, 6);
    let node = Node::start_with(&["disablesafemode=1"]);
    node.mine(110);
    let business = Business::without_node(&node, FIRST_PAYMENTS + rounds * PAYERS * TURNS);
    books_equal_the_chain(&business, rounds);
}

fn books_equal_the_chain(business: &Business, rounds: usize) {
    let node = business.node;
    (0..FIRST_PAYMENTS).for_each(|_| business.sell());
    node.mine(6);
    // The shop consolidates its coins now. Later, it would depend on chance whether enough coins
    // are old enough.
    wait_for_consolidation(business);
    let mut walk = ChainWalk::of(node);
    let mut kills = 0;
    for round in 1..=rounds {
        let begun = business.shown.lock().unwrap().len();
        kills += go_on(business, round.is_multiple_of(REORGANISED));
        node.mine(3);
        // The payments of the round before are checked again, since they may have been displaced.
        agree(business, &mut walk, begun.saturating_sub(PAYERS * TURNS), round);
    }
    let purposes = check_all_was_done(business);
    eprintln!("{kills} kills, {purposes}");
    empty(business);
    agree(business, &mut walk, 0, rounds);
    assert_eq!(walk.read().unspent(&business.scripts()), 0);
}

fn wait_for_consolidation(business: &Business) {
    let deadline = Instant::now() + Duration::from_secs(60);
    let is_one = |payment: &Value| payment["purpose"] == "consolidation";
    while !business.shop.outgoing().iter().any(is_one) {
        assert!(Instant::now() < deadline, "25 coins were not consolidated");
        thread::sleep(Duration::from_millis(100));
        if business.service.is_some() {
            // Services prove the coins only after a block, and a shop consolidates at the next one.
            thread::sleep(Duration::from_secs(5));
            business.node.mine(1);
        }
    }
}

/// Runs one round of the shop's work, and kills the shop now and then. Answers how often.
fn go_on(business: &Business, is_reorganised: bool) -> u64 {
    let Business { node, shop, .. } = business;
    let rival = is_reorganised.then(|| Rival::of(node));
    let turns = |act: &dyn Fn()| {
        for _ in 0..TURNS {
            pause(200);
            act();
        }
    };
    thread::scope(|scope| {
        for _ in 0..PAYERS {
            scope.spawn(|| turns(&|| business.sell()));
        }
        scope.spawn(|| turns(&|| business.withdraw()));
        scope.spawn(|| turns(&|| business.refund()));
        let kills = 1 + random() % 3;
        for _ in 0..kills {
            business.trouble();
            pause(900);
            shop.kill_and_start();
            node.mine(1);
        }
        if let Some(rival) = &rival {
            business.spend_twice(rival);
            if random().is_multiple_of(2) {
                shop.kill();
            }
            rival.show_to(node);
            shop.kill_and_start();
        }
        if let Some(service) = &business.service {
            service.be(Mood::default());
        }
        kills + u64::from(is_reorganised)
    })
}

fn pause(most: u64) {
    thread::sleep(Duration::from_millis(random() % most));
}

/// Waits until the books agree with the chain and the mempool.
fn agree(business: &Business, walk: &mut ChainWalk, first: usize, round: usize) {
    let deadline = Instant::now() + Duration::from_secs(180);
    let mut last_block = Instant::now();
    loop {
        let found = differences(business, walk, first);
        if found.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "round {round}: {}", found.join("\n"));
        thread::sleep(Duration::from_millis(200));
        if business.service.is_some() && last_block.elapsed() > Duration::from_secs(30) {
            // Between blocks, services are asked less and less often.
            last_block = Instant::now();
            business.node.mine(1);
        }
    }
}

/// The differences between the books and the chain: in the balance, and in the invoices from this
/// index on.
fn differences(business: &Business, walk: &mut ChainWalk, first: usize) -> Vec<String> {
    let Business { shop, .. } = business;
    let moves = walk.read();
    let mut found = Vec::new();
    let (chain, books) = (moves.unspent(&business.scripts()), shop.balance());
    if chain != books {
        found.push(format!("the chain has {chain} satoshis, and the books have {books}"));
    }
    let paid = moves.paid();
    for shown in &business.shown.lock().unwrap()[first..] {
        let chain = paid.get(&shown.script).map_or(0, |amounts| amounts.iter().sum());
        let settlement = shop.get(&format!("/api/v1/invoices/{}/settlement", shown.invoice));
        if settlement["paidSatoshis"] != chain {
            found.push(format!("the chain has {chain} satoshis for this invoice: {settlement}"));
        }
    }
    for script in business.sent_to.lock().unwrap().iter() {
        let times = paid.get(script).map_or(0, Vec::len);
        assert!(times <= 1, "what was asked for once was sent {times} times to {script:?}");
    }
    if found.is_empty() && business.service.is_none() {
        found.extend(shop.verify().iter().map(Value::to_string));
    }
    found
}

/// Checks that the shop sent money in each of the ways there are. Answers how often in each.
fn check_all_was_done(business: &Business) -> String {
    let outgoing = business.shop.outgoing();
    let counts = ["withdrawal", "refund", "consolidation"].map(|purpose| {
        let count = outgoing.iter().filter(|payment| payment["purpose"] == purpose).count();
        assert!(count > 0, "there was no {purpose}");
        format!("{purpose}s: {count}")
    });
    let lost = outgoing.iter().filter(|payment| payment["state"] == "displaced").count();
    format!("{}, {lost} displaced", counts.join(", "))
}

/// Sends the whole balance away, which proves that no coin stays reserved.
fn empty(business: &Business) {
    // Services prove a few coins in a second.
    let pause = Duration::from_millis(if business.service.is_some() { 5_000 } else { 500 });
    for _ in 0..30 {
        business.node.mine(1);
        thread::sleep(pause);
        business.withdraw_all();
        if business.shop.balance() == 0 {
            return;
        }
    }
    panic!("{} satoshis cannot be sent: {:?}", business.shop.balance(), business.shop.outgoing());
}
