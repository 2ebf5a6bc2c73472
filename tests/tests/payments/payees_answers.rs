//! Payees that have got a transaction and give any answer. They are paid at most once, and the
//! owner learns the true state.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use bsv_tests::Node;
use bsv_tests::clock::Clock;
use bsv_tests::payee::{Answer, Payee, Request, brc_terms, go_dpp_terms, output};
use bsv_tests::purse::{knows, send};
use serde_json::json;

use super::merchant::{Merchant, wait_until};
use super::paying_scene::{broadcast, buyer, buyer_with, check_problem, node, site_with};

/// A payee that asks for 10,000 satoshis in go-dpp.
fn payee(on_post: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Payee {
    let payee = Payee::asking(&go_dpp_terms(&[output(10_000)]));
    payee.on_post(on_post);
    payee
}

/// Checks that the only coin of a wallet is reserved.
fn check_reserved(buyer: &Merchant) {
    let other = Payee::asking(&go_dpp_terms(&[output(1)]));
    let detail = check_problem(&buyer.pay(&other.url()), 422, "insufficient-funds");
    assert!(detail.ends_with("and 0 can be spent"), "{detail}");
}

/// Checks that a wallet that had a coin of 50,000 satoshis has paid the payee once.
fn check_paid_once(buyer: &Merchant, payee: &Payee) {
    let transaction = payee.paid_with();
    assert!(knows(node(), &transaction));
    let [payment] = buyer.outgoing().try_into().unwrap();
    assert_eq!(payment["txid"], transaction.txid().to_string());
    assert_eq!(payment["state"], "settled");
    let fee = payment["fee"].as_u64().unwrap();
    assert_eq!(buyer.balance(), 50_000 - 10_000 - fee);
}

/// A function that blocks until the sender is dropped.
fn gate() -> (Sender<()>, impl Fn() + Send + Sync) {
    let (sender, receiver) = channel();
    let receiver = Mutex::new(receiver);
    (sender, move || assert!(receiver.lock().unwrap().recv().is_err()))
}

#[test]
fn a_payment_without_an_answer_stays_open_and_is_sent_again_unchanged() {
    let buyer = buyer(&[50_000]);
    let payee = payee(|_| Answer::silence());
    let detail = check_problem(&buyer.pay(&payee.url()), 503, "payment-outcome-unknown");
    assert!(detail.contains("10 seconds") && detail.contains("send it again"), "{detail}");
    assert!(!knows(node(), &payee.paid_with()));
    assert_eq!((buyer.outgoing_states(), buyer.balance()), (vec!["open".to_owned()], 50_000));
    check_reserved(&buyer);
    check_problem(&buyer.pay(&payee.url()), 503, "payment-outcome-unknown");
    assert!(payee.requests("POST").len() >= 2);
    assert_eq!(payee.requests("GET").len(), 1);
    payee.on_post(Answer::accept);
    let result = buyer.pay_ok(&payee.url());
    assert_eq!((&result["memo"], &result["peer_channel"]["host"]), (&json!("thanks"), &json!("")));
    check_paid_once(&buyer, &payee);
}

#[test]
fn a_payment_without_an_answer_is_sent_again_in_the_background() {
    let buyer = buyer(&[50_000]);
    let payee = payee(|_| Answer::Bytes(Vec::new()));
    check_problem(&buyer.pay(&payee.url()), 503, "payment-outcome-unknown");
    wait_until("it is sent again", || payee.requests("POST").len() >= 3);
    payee.on_post(Answer::accept);
    wait_until("it is settled", || buyer.outgoing_states() == ["settled"]);
    check_paid_once(&buyer, &payee);
    assert_eq!(buyer.outgoing()[0]["memo"], "thanks");
}

#[test]
fn a_payment_that_the_payee_has_broadcast_is_settled_without_an_answer() {
    let (buyer, node) = (buyer(&[50_000]), node());
    let (open, wait) = gate();
    let payee = payee(move |request| {
        broadcast_once(node, request);
        wait();
        Answer::accept(request)
    });
    check_problem(&buyer.pay(&payee.url()), 503, "payment-outcome-unknown");
    wait_until("it is settled", || buyer.outgoing_states() == ["settled"]);
    let result = buyer.pay_ok(&payee.url());
    drop(open);
    assert_eq!(buyer.pay_ok(&payee.url()), result);
    check_paid_once(&buyer, &payee);
}

fn broadcast_once(node: &Node, request: &Request) {
    if !knows(node, &request.transaction()) {
        send(node, &request.transaction());
    }
}

#[test]
fn an_answer_that_makes_no_sense_leaves_the_outcome_open() {
    let huge = |len: usize| {
        let head = "HTTP/1.1 201 Created\r\nConnection: close\r\n\r\n".to_owned();
        (head + &" ".repeat(len)).into_bytes()
    };
    let other = json!({ "id": "order-1", "tx_id": "00".repeat(32), "memo": "" });
    let answers = [
        Answer::text(201, ""),
        Answer::text(201, "x"),
        Answer::text(201, "[]"),
        Answer::text(201, "{}"),
        Answer::text(200, "<html>thanks</html>"),
        Answer::text(202, "null"),
        Answer::text(302, "{}"),
        Answer::text(304, "{}"),
        Answer::json(201, &other),
        Answer::json(201, &go_dpp_terms(&[output(1)])),
        Answer::json(201, &json!({ "tx_id": 7 })),
        Answer::Stalled(huge(11_000_001)),
        Answer::redirect("file:///dev/null"),
        Answer::redirect("https://127.0.0.1/x"),
        Answer::redirect("/api/v1/payment/order-1"),
    ];
    let buyer = buyer(&[50_000]);
    let replies = Mutex::new(answers.clone().into_iter());
    let payee = payee(move |_| {
        let next = replies.lock().unwrap().next();
        next.unwrap_or_else(Answer::silence)
    });
    // The wallet's repetitions in the background get some of these answers.
    while payee.requests("POST").len() < answers.len() {
        let reply = buyer.pay(&payee.url());
        if payee.requests("POST").len() <= answers.len() {
            let detail = check_problem(&reply, 502, "payee-nonsense");
            assert!(detail.contains("not known") && detail.len() < 700, "{detail}");
        }
        assert_eq!((buyer.outgoing_states(), buyer.balance()), (vec!["open".to_owned()], 50_000));
    }
    assert!(!knows(node(), &payee.paid_with()));
    payee.on_post(Answer::accept);
    buyer.pay_ok(&payee.url());
    check_paid_once(&buyer, &payee);
}

#[test]
fn a_payee_that_cannot_answer_now_is_asked_again() {
    let buyer = buyer(&[50_000]);
    let payee = payee(|_| Answer::text(503, r#"{"detail":"later"}"#));
    for status in [408, 425, 429, 500, 502, 503, 504, 599] {
        payee.on_post(move |_| Answer::text(status, r#"{"detail":"later"}"#));
        let detail = check_problem(&buyer.pay(&payee.url()), 503, "payment-outcome-unknown");
        assert!(detail.contains("later"), "{detail}");
    }
    payee.on_post(|_| {
        Answer::Stalled(b"HTTP/1.1 201 Created\r\nContent-Length: 9\r\n\r\n{".to_vec())
    });
    check_problem(&buyer.pay(&payee.url()), 503, "payment-outcome-unknown");
    assert_eq!(buyer.outgoing_states(), ["open"]);
    payee.on_post(Answer::accept);
    buyer.pay_ok(&payee.url());
    check_paid_once(&buyer, &payee);
}

#[test]
fn a_refusal_frees_the_coins_and_another_attempt_makes_another_payment() {
    let buyer = buyer(&[50_000]);
    let payee = payee(Answer::accept);
    let words = json!({ "memo": "sold\u{7} out", "error": 1, "tx_id": "" });
    for (status, body) in
        [(200, &words), (201, &words), (422, &words), (409, &json!({ "title": "sold  out" }))]
    {
        let answer = Answer::json(status, body);
        payee.on_post(move |_| answer.clone());
        let detail = check_problem(&buyer.pay(&payee.url()), 422, "refused-by-payee");
        assert_eq!(detail, "the payee refuses the payment: sold  out");
    }
    assert_eq!((buyer.outgoing_states(), buyer.balance()), (vec!["refused".to_owned(); 4], 50_000));
    assert_eq!(buyer.outgoing()[0]["memo"], "sold  out");
    payee.on_post(Answer::accept);
    buyer.pay_ok(&payee.url());
    let posts = payee.requests("POST");
    let txids: BTreeSet<_> =
        posts.iter().map(|post| post.transaction().txid().to_string()).collect();
    assert_eq!((posts.len(), txids.len(), payee.requests("GET").len()), (5, 5, 5));
    assert!(knows(node(), &posts[4].transaction()));
    assert!(posts[..4].iter().all(|post| !knows(node(), &post.transaction())));
    let fee = buyer.outgoing()[0]["fee"].as_u64().unwrap();
    assert_eq!(buyer.balance(), 40_000 - fee);
}

#[test]
fn only_one_of_the_refused_attempts_and_the_payment_after_them_can_be_mined() {
    let buyer = buyer(&[20_000, 4_000]);
    let payee = payee(|_| Answer::text(400, "{}"));
    check_problem(&buyer.pay(&payee.url()), 422, "refused-by-payee");
    // The new coin would fit better.
    buyer.fill(15_000);
    check_problem(&buyer.pay(&payee.url()), 422, "refused-by-payee");
    payee.on_get(|_| Answer::json(200, &go_dpp_terms(&[output(22_000)])));
    check_problem(&buyer.pay(&payee.url()), 422, "refused-by-payee");
    payee.on_get(|_| Answer::json(200, &go_dpp_terms(&[output(1_000)])));
    payee.on_post(Answer::accept);
    buyer.pay_ok(&payee.url());
    let posts = payee.requests("POST");
    let coin = |post: &Request| post.transaction().inputs[0].previous_output;
    assert!(posts.iter().all(|post| coin(post) == coin(&posts[0])));
    let inputs: Vec<_> = posts.iter().map(|post| post.transaction().inputs.len()).collect();
    assert_eq!(inputs, [1, 1, 2, 1]);
}

#[test]
fn a_payee_that_refuses_what_it_has_broadcast_is_not_believed() {
    for (status, body) in [(400, "{}"), (422, "{}"), (200, r#"{"error":1,"memo":"no"}"#)] {
        let (buyer, node) = (buyer(&[50_000]), node());
        let payee = payee(move |request| {
            send(node, &request.transaction());
            Answer::text(status, body)
        });
        let result = buyer.pay_ok(&payee.url());
        assert_eq!(result["tx_id"], payee.paid_with().txid().to_string());
        check_paid_once(&buyer, &payee);
        assert_eq!(buyer.pay_ok(&payee.url()), result);
    }
}

#[test]
fn a_payment_that_the_payee_accepts_and_does_not_broadcast_is_sent_to_the_node() {
    let buyer = buyer(&[50_000]);
    let payee = payee(Answer::accept);
    buyer.pay_ok(&payee.url());
    check_paid_once(&buyer, &payee);
    let brc = Payee::asking(&brc_terms(&[output(10_000)]));
    buyer.pay_ok(&brc.url());
    assert!(knows(node(), &brc.paid_with()));
}

#[test]
fn a_payee_that_broadcasts_after_it_refused_is_paid_and_no_coin_is_spent_twice() {
    let buyer = buyer(&[50_000]);
    let liar = payee(|_| Answer::text(400, "{}"));
    check_problem(&buyer.pay(&liar.url()), 422, "refused-by-payee");
    let silent = payee(|_| Answer::silence());
    check_problem(&buyer.pay(&silent.url()), 503, "payment-outcome-unknown");
    let inputs = |payee: &Payee| payee.paid_with().inputs[0].previous_output;
    assert_eq!(inputs(&liar), inputs(&silent));
    broadcast(&liar.paid_with());
    wait_until("the outcome is seen", || buyer.outgoing_states() == ["displaced", "settled"]);
    let fee = buyer.outgoing()[1]["fee"].as_u64().unwrap();
    assert_eq!(buyer.balance(), 40_000 - fee);
    silent.on_post(Answer::accept);
    buyer.pay_ok(&silent.url());
    assert_eq!(buyer.outgoing_states(), ["settled", "displaced", "settled"]);
}

#[test]
fn a_refused_payment_is_watched_as_long_as_it_could_be_mined() {
    let mut site = site_with(node(), json!({}));
    let clock = Clock::install(&mut site);
    let buyer = Merchant { server: site.server(), site };
    buyer.fill(30_000);
    buyer.fill(5_000);
    let liar = payee(|_| Answer::text(400, "{}"));
    check_problem(&buyer.pay(&liar.url()), 422, "refused-by-payee");
    let evasive = Payee::asking(&go_dpp_terms(&[output(4_000)]));
    evasive.on_post(|_| Answer::text(503, "{}"));
    check_problem(&buyer.pay(&evasive.url()), 503, "payment-outcome-unknown");
    let Merchant { site, server } = buyer;
    assert_eq!(server.stop(), 0);
    clock.shift(25 * 60 * 60);
    let posts = evasive.requests("POST").len();
    let buyer = Merchant { server: site.server(), site };
    // The wallet looks at payments in the order in which they were begun.
    wait_until("all are looked at", || {
        evasive.requests("POST").len() > posts || buyer.outgoing_states()[0] == "cancelled"
    });
    broadcast(&liar.paid_with());
    wait_until("it is settled", || buyer.outgoing_states()[1] == "settled");
}

#[test]
fn a_channel_that_makes_no_sense_costs_nothing() {
    let long = "x".repeat(1025);
    for channel in [
        json!("x"),
        json!({}),
        json!({ "host": "h" }),
        json!({ "host": 1, "path": "", "channel_id": "", "token": "" }),
        json!({ "host": "h", "path": "", "channel_id": "c", "token": long }),
    ] {
        let buyer = buyer(&[50_000]);
        let payee = payee(move |request| {
            let txid = request.transaction().txid().to_string();
            Answer::json(
                201,
                &json!({ "id": "x", "tx_id": txid, "memo": "m", "peer_channel": channel }),
            )
        });
        let result = buyer.pay_ok(&payee.url());
        let nowhere = json!({ "host": "", "path": "", "id": "", "token": "" });
        assert_eq!(result["peer_channel"], nowhere);
        check_paid_once(&buyer, &payee);
    }
}

#[test]
fn a_payees_words_are_shortened_and_have_no_effect() {
    let buyer = buyer(&[50_000]);
    let memo = format!("\u{1b}[2J\u{202e}{}", "é".repeat(1_000_000));
    let payee = payee(move |request| {
        let txid = request.transaction().txid().to_string();
        let channel =
            json!({ "host": "h\n", "path": "/../..", "channel_id": "\u{1b}", "token": "a\r\nb" });
        Answer::json(201, &json!({ "tx_id": txid, "memo": memo, "peer_channel": channel }))
    });
    let result = buyer.pay_ok(&payee.url());
    assert_eq!(result["memo"].as_str().unwrap().chars().count(), 1024);
    check_paid_once(&buyer, &payee);
    let shown = buyer.site.cli_ok(&["pay", &payee.url()]);
    assert!(shown.contains("\\u{1b}[2J\\u{202e}é"), "{shown}");
    assert!(!shown.chars().any(|c| c == '\u{1b}' || c == '\u{202e}'), "{shown}");
}

#[test]
fn payees_that_never_answer_do_not_delay_other_payments() {
    let node = Node::start();
    node.mine(120);
    let coins = [10_000; 8];
    let buyer = buyer_with(&node, json!({}), &coins);
    let payees: Vec<_> = (0..coins.len())
        .map(|_| {
            let payee = Payee::asking(&go_dpp_terms(&[output(9_000)]));
            payee.on_post(|_| Answer::silence());
            payee
        })
        .collect();
    thread::scope(|scope| {
        for payee in &payees {
            let pay = || check_problem(&buyer.pay(&payee.url()), 503, "payment-outcome-unknown");
            scope.spawn(pay);
        }
    });
    for _ in 0..3 {
        let id = buyer.fill(1_000);
        node.mine(1);
        wait_until("the proof is found", || buyer.payments(&id)[0]["state"] == "mined");
    }
    assert!(buyer.outgoing_states().iter().all(|state| state == "open"));
    payees[0].on_post(Answer::accept);
    buyer.pay_ok(&payees[0].url());
}
