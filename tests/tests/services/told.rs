//! What broadcasters tell a server by themselves: events, and callbacks.

use std::thread::sleep;
use std::time::{Duration, Instant};

use bsv_tests::services::{Callbacks, Mood, Word};
use bsv_tests::{Node, Reply, Service, free_port};
use bsv_tx::{Transaction, Txid};
use serde_json::{Value, json};

use super::stall::{Stall, site};
use crate::payments::counter::{Counter, check_problem};
use crate::payments::merchant::wait_until;

const RIVAL: Word = Word { status: "DOUBLE_SPEND_ATTEMPTED", code: None, extra_info: "" };

impl Stall {
    /// A shop that asks an ARC, which posts to it.
    fn called_back(coins: usize) -> Self {
        let node = Node::start_with(&["disablesafemode=1"]);
        let service = Service::before(&node);
        let port = free_port();
        let counter = Counter::on(node, coins, |node| {
            let mut site = site(node, &[&service], json!({ "minedBlocks": 1 }));
            let arc = json!([{ "kind": "arc", "url": service.url() }]);
            let url = format!("http://127.0.0.1:{port}/network/callback");
            site.change("services", "broadcasters", arc);
            site.change("services", "callbackUrl", json!(url));
            site.change("payments", "port", json!(port));
            site
        });
        Self { counter, service }
    }

    /// A payment that counts by the word of the service.
    fn paid(&self) -> (String, Transaction) {
        let (id, transaction) = self.payment();
        let reply = self.post(&id, &transaction);
        assert_eq!(reply.status, 201, "{}", reply.body);
        (id, transaction)
    }

    /// The state of the only payment of an invoice.
    /// The token that the service was given along with a transaction.
    fn token(&self) -> String {
        let requests = self.service.requests("POST");
        requests[0].header("x-callbacktoken").unwrap().to_owned()
    }

    fn call_back(&self, token: &str, body: &Value) -> Reply {
        let headers = [("Authorization", token), ("Content-Type", "application/json")];
        let body = body.to_string();
        let payments = self.counter.shop.server.payments();
        payments.send("POST", "/network/callback", &headers, body.as_bytes())
    }
}

#[test]
fn an_event_is_a_reason_to_ask() {
    let stall = Stall::new(1);
    let (id, transaction) = stall.paid();
    let txid = transaction.txid();
    // The payment is looked at once. Without an event the next look would come with a block.
    sleep(Duration::from_secs(3));
    stall.service.change(|mood| mood.says_of.extend([(txid, RIVAL)]));
    wait_until("a question about it", || stall.payment_state(&id) == "contested");
    // Nor does silence change anything.
    stall.service.be(Mood::default());
    stall.counter.node.mine(1);
    wait_until("its block holds it", || stall.payment_state(&id) == "mined");
}

#[test]
fn an_event_ends_the_wait_of_a_payer() {
    let stall = Stall::new(1);
    let open = Word::of("RECEIVED");
    stall.service.be(Mood { says: Some(open), ..Mood::default() });
    let (id, transaction) = stall.payment();
    std::thread::scope(|scope| {
        let posted = scope.spawn(|| {
            let reply = stall.post(&id, &transaction);
            (reply.status, Instant::now())
        });
        // Questions come after 0.25, 0.75, and 1.75 s, and the payer waits for 2 s.
        wait_until("the second question", || stall.questions(&transaction.txid()) >= 2);
        let changed = Instant::now();
        stall.service.be(Mood::default());
        let (status, answered) = posted.join().unwrap();
        assert_eq!(status, 201);
        let waited = answered - changed;
        assert!(waited < Duration::from_millis(700), "{waited:?}");
    });
}

#[test]
fn callbacks_are_reasons_to_ask() {
    let stall = Stall::called_back(6);
    for callbacks in [
        Callbacks::Honest,
        Callbacks::Doubled,
        Callbacks::Reordered,
        Callbacks::Forged,
        Callbacks::Dropped,
    ] {
        stall.service.be(Mood { callbacks, ..Mood::default() });
        let (id, _) = stall.paid();
        sleep(Duration::from_millis(500));
        assert_eq!(stall.payment_state(&id), "accepted", "{callbacks:?}");
        stall.counter.node.mine(1);
        wait_until("its block holds it", || stall.payment_state(&id) == "mined");
        assert_eq!(stall.counter.shop.state(&id), "paid");
    }
    stall.service.be(Mood::default());
    let (id, transaction) = stall.paid();
    let txid = transaction.txid();
    wait_until("the first question", || stall.questions(&txid) > 0);
    stall.service.change(|mood| mood.says_of.extend([(txid, RIVAL)]));
    wait_until("a question about it", || stall.payment_state(&id) == "contested");
}

#[test]
fn a_flood_of_callbacks_is_no_flood_of_questions() {
    let stall = Stall::called_back(1);
    let (id, transaction) = stall.paid();
    let (txid, token) = (transaction.txid(), format!("Bearer {}", stall.token()));
    wait_until("the first question", || stall.questions(&txid) > 0);
    let forged =
        |txid: &Txid| json!({ "txid": txid.to_string(), "txStatus": "MINED", "blockHeight": 1 });
    for (token, code) in [
        ("", "token-missing"),
        ("Basic x", "token-missing"),
        ("Bearer", "token-missing"),
        ("Bearer x", "token-invalid"),
        (&*format!("{token}0"), "token-invalid"),
        (&*format!("Bearer {}", "0".repeat(64)), "token-invalid"),
        (&token[..token.len() - 1], "token-invalid"),
    ] {
        check_problem(&stall.call_back(token, &forged(&txid)), 401, code, token);
    }
    for body in [json!("text"), json!({ "txid": 1 }), json!({ "callbacks": {} })] {
        check_problem(&stall.call_back(&token, &body), 400, "malformed-body", "no callback");
    }
    let long = json!({ "txid": txid.to_string(), "rawTx": "00".repeat(256 << 10) });
    check_problem(&stall.call_back(&token, &long), 413, "too-large", "a long one");
    let (before, begun) = (stall.questions(&txid), Instant::now());
    let (mut strange, mut sent) = ([7_u8; 32], 0);
    while begun.elapsed() < Duration::from_secs(4) {
        strange[0] = strange[0].wrapping_add(1);
        let others = [forged(&Txid::from_bytes(strange)), json!({ "txid": "x" }), json!({})];
        let batch = json!({ "count": 2, "callbacks": [forged(&txid), others[0]] });
        for body in others.iter().chain([&forged(&txid), &batch]) {
            assert_eq!(stall.call_back(&token, body).status, 200);
            sent += 1;
        }
    }
    // It was asked about once in a round at most, and nobody else was.
    let asked = stall.questions(&txid) - before;
    let rounds = begun.elapsed().as_secs() as usize + 2;
    assert!((1..=rounds).contains(&asked) && sent > 10 * rounds, "{asked}, {sent}");
    let all = stall.service.requests("GET");
    let of_others =
        all.iter().filter(|it| it.path.contains("/tx/") && !it.path.contains(&txid.to_string()));
    assert_eq!(of_others.count(), 0);
    assert_eq!(stall.payment_state(&id), "accepted");
}

#[test]
fn a_path_that_was_told_is_not_asked_for_again() {
    let stall = Stall::called_back(1);
    stall.service.be(Mood { callbacks: Callbacks::Dropped, ..Mood::default() });
    let (id, transaction) = stall.paid();
    let txid = transaction.txid();
    // The next question comes after a minute, or with a block.
    wait_until("the first question", || stall.questions(&txid) > 0);
    stall.counter.node.mine(1);
    wait_until("its block holds it", || stall.payment_state(&id) == "mined");
    assert_eq!(stall.questions(&txid), 2);
}
