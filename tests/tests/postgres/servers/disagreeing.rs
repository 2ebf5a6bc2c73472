//! Nodes of two servers that do not agree about a payment.

use std::thread;
use std::time::Duration;

use bsv_tests::purse::{FEE, knows, send};
use bsv_tests::rival::Rival;
use bsv_tests::till::wait_until;
use bsv_tests::{Dice, Hold, Refusal, repetitions};

use super::{Pair, at_once, problem};

const SEND: &str = "sendrawtransaction";
const REFUSAL: Refusal =
    Refusal { method: SEND, code: -26, message: "16: mandatory-script-verify-flag-failed" };

fn meanwhile() {
    thread::sleep(Duration::from_secs(1));
}

/// The node has accepted the payment, and the server that has sent it does not know that yet.
#[test]
fn a_server_whose_node_refuses_does_not_refuse_what_the_other_one_has_sent() {
    let (pair, gates) = Pair::gated("accepted_and_refused", 2);
    for accepting in [0, 1] {
        let refusing = 1 - accepting;
        let (id, bills) = pair.bills(accepting);
        let transaction = pair.purse.transaction_for(&bills[0]);
        gates[refusing].refuse(REFUSAL);
        gates[accepting].shut(SEND, Hold::Answer);
        thread::scope(|scope| {
            let first = scope.spawn(|| bills[accepting].post(&transaction));
            gates[accepting].wait_for(1);
            let second = scope.spawn(|| bills[refusing].post(&transaction));
            // The leader looks at open payments again and again.
            (0..3).for_each(|_| meanwhile());
            gates[accepting].open();
            let [first, second] = [first, second].map(|post| post.join().unwrap());
            assert_eq!((first.status, second.status), (201, 201), "{}", second.body);
        });
        gates[refusing].accept();
        pair.check_paid(&id, &transaction);
    }
    pair.check_books();
}

/// Whoever is told that a payment is accepted is right, and nobody is told so of a payment that is
/// gone. Somebody who was refused may post the payment again.
#[test]
fn a_server_whose_node_accepts_goes_on_after_the_other_one_has_refused() {
    let (pair, gates) = Pair::gated("refused_and_accepted", 2);
    for accepting in [0, 1] {
        let refusing = 1 - accepting;
        let (id, bills) = pair.bills(accepting);
        let transaction = pair.purse.transaction_for(&bills[0]);
        gates[refusing].refuse(REFUSAL);
        gates[refusing].shut(SEND, Hold::Answer);
        thread::scope(|scope| {
            let first = scope.spawn(|| bills[refusing].post(&transaction));
            gates[refusing].wait_for(1);
            let second = scope.spawn(|| bills[accepting].post(&transaction));
            meanwhile();
            gates[refusing].open();
            let [first, second] = [first, second].map(|post| post.join().unwrap());
            assert_eq!(problem(&first), (422, "refused-by-network".to_owned()));
            match second.status {
                201 => pair.check_paid(&id, &transaction),
                _ => assert_eq!(problem(&second), (422, "refused-by-network".to_owned())),
            }
        });
        let again = bills[accepting].post(&transaction);
        assert_eq!(again.status, 201, "{}", again.body);
        pair.check_paid(&id, &transaction);
        // The network has it now, whatever the other node thinks of it.
        let reply = bills[refusing].post(&transaction);
        assert_eq!(reply.status, 201, "{}", reply.body);
        gates[refusing].accept();
    }
    pair.check_books();
}

/// One of two nodes that are not connected does not know the transaction that the payment spends.
fn check_unknown_parents(schema: &'static str, leader_knows: bool) {
    let rounds = repetitions("payments whose parents one node does not know", 60, 6);
    let mut rival = None;
    // The node of the server that does not lead.
    let pair = Pair::prepared(schema, rounds, |which, node, till| {
        if which == 1 {
            till.site.move_to(&rival.insert(Rival::of(node)).node);
        }
    });
    let mut rival = rival.unwrap();
    let knowing = if leader_knows { 0 } else { 1 };
    let node = if leader_knows { &pair.node } else { &rival.node };
    let mut dice = Dice::new(21);
    let mut paid = Vec::new();
    for round in 0..rounds {
        let (id, bills) = pair.bills(round % 2);
        let parent = pair.purse.spend(&[pair.purse.coin()], vec![], FEE);
        send(node, &parent);
        let coins = pair.purse.coins_of(&parent);
        let transaction = pair.purse.spend(&coins, bills[0].outputs(), FEE);
        let pauses = [(); 2].map(|()| Duration::from_millis(dice.roll(30) as u64));
        let replies = at_once(|which| {
            thread::sleep(pauses[which]);
            bills[which].post(&transaction)
        });
        for reply in replies.iter().filter(|reply| reply.status != 201) {
            assert_eq!(reply.status, 422, "round {round}: {}", reply.body);
        }
        // A payer who was refused may ask again, and is not refused where the node accepts.
        if replies.iter().all(|reply| reply.status != 201) {
            let again = bills[knowing].post(&transaction);
            assert_eq!(again.status, 201, "round {round}: {}", again.body);
        }
        assert!(knows(node, &transaction));
        paid.push((id, transaction));
    }
    // Whatever the node of the leader knows, whoever was told that the payment counts is right.
    thread::sleep(Duration::from_secs(3));
    for (id, transaction) in &paid {
        pair.check_paid(id, transaction);
    }
    join_chains(&pair, &mut rival, leader_knows);
    let is_mined = |id: &String| pair.tills[0].payments_of(id)[0]["state"] == "mined";
    wait_until("all are mined", || paid.iter().all(|(id, _)| is_mined(id)));
    for (id, transaction) in &paid {
        pair.check_paid(id, transaction);
    }
    pair.check_books();
}

/// Mines what is known to one of the nodes, and shows it to the other.
fn join_chains(pair: &Pair, rival: &mut Rival, leader_knows: bool) {
    if leader_knows {
        pair.node.mine(2);
        rival.follow(&pair.node);
    } else {
        rival.node.mine(2);
        rival.show_to(&pair.node);
    }
}

#[test]
fn a_payment_that_only_the_leaders_node_can_know_counts() {
    check_unknown_parents("leader_knows", true);
}

#[test]
fn a_payment_that_the_leaders_node_cannot_know_counts() {
    check_unknown_parents("other_knows", false);
}
