//! A shop without a node of its own is paid through services.

use bsv_tests::ancestry::{beef, bump, previous_outputs};
use bsv_tests::purse::{FEE, knows, send};
use bsv_tests::rival::Rival;
use bsv_tests::services::{Mood, Path, Word};
use bsv_tests::{Node, Service};
use bsv_tx::{Ancestry, Beef, BeefVersion, ExtendedTransaction, Transaction};
use serde_json::{Value, json};

use super::stall::{Stall, site};
use crate::payments::counter::{Counter, PRICE, check_problem};
use crate::payments::forms::{check_taken, post_transaction};
use crate::payments::merchant::wait_until;

#[test]
fn a_payment_counts_by_the_word_of_a_broadcaster_and_then_by_its_proof() {
    let stall = Stall::new(1);
    let (id, transaction) = stall.payment();
    check_taken(&stall.post(&id, &transaction), &transaction, "accepted", "BEEF");
    stall.counter.check_paid(&id, &transaction);
    assert!(knows(&stall.counter.node, &transaction));
    stall.counter.node.mine(1);
    wait_until("the payment is proven", || stall.confirmations(&id) == 1);
}

#[test]
fn nobody_says_mined_without_a_path_that_holds() {
    let stall = Stall::with(4, json!({ "zeroConfLimitSatoshis": 0, "minedBlocks": 1 }));
    for path in [Path::Missing, Path::Foreign, Path::Shifted, Path::Lifted] {
        stall.service.be(Mood { path, ..Mood::default() });
        let (id, transaction) = stall.payment();
        assert_eq!(stall.post(&id, &transaction).status, 201, "{path:?}");
        assert_eq!(stall.state(&id), "pending");
        let blocks = stall.counter.node.mine(1);
        stall.wait_for_tip();
        std::thread::sleep(std::time::Duration::from_secs(3));
        assert_eq!(
            (stall.state(&id), stall.confirmations(&id)),
            ("pending".to_owned(), 0),
            "{path:?}"
        );
        drop(blocks);
        stall.service.be(Mood::default());
        stall.counter.node.mine(1);
        wait_until("the right path has come", || stall.state(&id) == "paid");
    }
}

/// A transaction with its own Merkle path, and nothing else.
fn proven(node: &Node, transaction: &Transaction) -> Vec<u8> {
    let bumps = vec![bump(node, &transaction.txid())];
    let ancestry = Ancestry { bumps, ..Ancestry::default() };
    Beef::new(BeefVersion::V1, transaction.clone(), ancestry).unwrap().to_bytes()
}

#[test]
fn a_payment_that_its_payer_proves_to_be_mined_is_taken_although_no_service_knows_it() {
    let stall = Stall::with(3, json!({ "minedBlocks": 1 }));
    let (node, purse) = (&stall.counter.node, &stall.counter.purse);
    let (id, bill) = stall.counter.bill();
    let payments = [(); 2].map(|()| purse.spend(&[purse.coin()], bill.outputs(), FEE));
    payments.iter().for_each(|payment| send(node, payment));
    node.mine(1);
    stall.wait_for_tip();
    // The second one comes although the invoice is paid by then.
    for payment in &payments {
        for _ in 0..2 {
            let reply = post_transaction(&stall.counter, &id, proven(node, payment));
            check_taken(&reply, payment, "mined", "a proof");
        }
        wait_until("its block is deep enough", || stall.state(&id) == "paid");
    }
    assert_eq!(stall.counter.shop.balance(), 2 * PRICE);
    // The services know this one, but do not show its path.
    stall.service.be(Mood { path: Path::Missing, ..Mood::default() });
    let (id, transaction) = stall.payment();
    check_taken(&stall.post(&id, &transaction), &transaction, "accepted", "BEEF");
    node.mine(1);
    stall.wait_for_tip();
    let reply = post_transaction(&stall.counter, &id, proven(node, &transaction));
    check_taken(&reply, &transaction, "mined", "a later proof");
}

#[test]
fn ancestors_that_pay_the_shop_are_recorded_with_the_payment_that_brings_them() {
    let stall = Stall::with(2, json!({ "minedBlocks": 1 }));
    let (node, purse) = (&stall.counter.node, &stall.counter.purse);
    for is_mined in [false, true] {
        let (first, bill) = stall.counter.bill();
        let parent = purse.spend(&[purse.coin()], bill.outputs(), FEE);
        if is_mined {
            send(node, &parent);
            node.mine(1);
            stall.wait_for_tip();
        }
        assert_eq!(stall.counter.shop.payments(&first), Vec::<Value>::new());
        let (second, bill) = stall.counter.bill();
        let payment = purse.spend(&purse.coins_of(&parent), bill.outputs(), FEE);
        let unmined = if is_mined { vec![] } else { vec![parent.clone()] };
        let beef = beef(node, BeefVersion::V1, &payment, &unmined);
        let reply = post_transaction(&stall.counter, &second, beef.to_bytes());
        check_taken(&reply, &payment, "accepted", "with its parent");
        assert_eq!(stall.state(&second), "paid");
        let payments = stall.counter.shop.payments(&first);
        assert_eq!(payments[0]["txid"], parent.txid().to_string());
        assert_eq!(payments[0]["state"], if is_mined { "mined" } else { "waiting" });
        // Until then nobody has said anything about the parent itself.
        wait_until("services tell of it", || stall.state(&first) == "paid");
    }
    stall.counter.shop.site.cli_ok(&["books", "verify"]);
}

#[test]
fn a_payment_that_nobody_takes_in_time_is_followed_until_it_is_taken() {
    let stall = Stall::new(1);
    stall.service.be(Mood { says: Some(Word::of("RECEIVED")), ..Mood::default() });
    let (id, transaction) = stall.payment();
    check_problem(&stall.post(&id, &transaction), 503, "payment-outcome-unknown", "not taken");
    assert_eq!(stall.state(&id), "pending");
    stall.service.be(Mood::default());
    // The payer asks again.
    check_taken(&stall.post(&id, &transaction), &transaction, "accepted", "taken");
    stall.counter.check_paid(&id, &transaction);
}

#[test]
fn a_verdict_refuses_a_payment_and_nothing_else_does() {
    let stall = Stall::new(5);
    for (code, problem) in [(461, "refused-by-network"), (465, "fee-too-low"), (473, "fee-too-low")]
    {
        stall.service.be(Mood { refuses: Some(code), ..Mood::default() });
        let (id, transaction) = stall.payment();
        check_problem(&stall.post(&id, &transaction), 422, problem, "a verdict");
    }
    for (mood, what) in [
        (Mood { condition: Some((503, None)), ..Mood::default() }, "a service in trouble"),
        (Mood { nonsense: Some("{}".to_owned()), ..Mood::default() }, "nonsense"),
    ] {
        stall.service.be(mood);
        let (id, transaction) = stall.payment();
        check_problem(&stall.post(&id, &transaction), 503, "payment-outcome-unknown", what);
        stall.service.be(Mood::default());
        check_taken(&stall.post(&id, &transaction), &transaction, "accepted", what);
        stall.counter.check_paid(&id, &transaction);
    }
}

#[test]
fn what_cannot_be_shown_is_refused_or_waits_for_its_block() {
    let stall = Stall::with(3, json!({ "minedBlocks": 1 }));
    let node = &stall.counter.node;
    // Raw, nobody knows what it spends.
    let (id, transaction) = stall.payment();
    let raw = post_transaction(&stall.counter, &id, transaction.to_bytes());
    check_problem(&raw, 422, "unknown-inputs", "raw");
    assert!(!knows(node, &transaction));
    // Its own signatures say what it spends, but not that it exists.
    let spent = previous_outputs(node, &transaction);
    let extended = ExtendedTransaction::new(transaction.clone(), spent.clone()).unwrap();
    let reply = post_transaction(&stall.counter, &id, extended.to_bytes());
    check_problem(&reply, 422, "payment-waiting", "not proven");
    assert!(knows(node, &transaction));
    assert_eq!(stall.state(&id), "pending");
    node.mine(1);
    wait_until("its block holds it", || stall.state(&id) == "paid");
    // An amount that no signature commits to.
    let (id, transaction) = stall.payment();
    let mut spent = previous_outputs(node, &transaction);
    spent[0].satoshis += 1;
    let extended = ExtendedTransaction::new(transaction.clone(), spent.clone()).unwrap();
    let reply = post_transaction(&stall.counter, &id, extended.to_bytes());
    check_problem(&reply, 422, "unknown-inputs", "a wrong amount");
    // Amounts are judged before signatures, which take time.
    spent[0].satoshis -= FEE + 1;
    let extended = ExtendedTransaction::new(transaction.clone(), spent).unwrap();
    let reply = post_transaction(&stall.counter, &id, extended.to_bytes());
    check_problem(&reply, 422, "fee-too-low", "no fee, and no signature for it");
    // A signature that does not hold.
    let mut forged = transaction.clone();
    forged.outputs[0].satoshis += 1;
    let reply = stall.post(&id, &forged);
    check_problem(&reply, 400, "bad-transaction", "a forged signature");
}

#[test]
fn a_block_that_leaves_the_chain_takes_its_proof_along() {
    let stall = Stall::with(1, json!({ "zeroConfLimitSatoshis": 0, "minedBlocks": 1 }));
    let node = &stall.counter.node;
    let rival = Rival::of(node);
    let (id, transaction) = stall.payment();
    assert_eq!(stall.post(&id, &transaction).status, 201);
    node.mine(1);
    wait_until("it is proven", || stall.state(&id) == "paid");
    rival.mine(&[], 2);
    rival.show_to(node);
    wait_until("the proof is gone", || stall.confirmations(&id) == 0);
    node.mine(1);
    wait_until("it is proven again", || stall.confirmations(&id) > 0);
}

#[test]
fn a_payment_with_a_rival_counts_by_its_block_whatever_others_say() {
    let (stall, second) = Stall::with_second(2);
    for (first, other) in [(true, false), (false, true)] {
        let refusing = Mood { refuses: Some(466), ..Mood::default() };
        stall.service.be(if first { refusing.clone() } else { Mood::default() });
        second.be(if other { refusing } else { Mood::default() });
        let (id, transaction) = stall.payment();
        let reply = stall.post(&id, &transaction);
        if first {
            check_problem(&reply, 503, "payment-outcome-unknown", "a rival");
            assert_eq!(stall.state(&id), "pending");
            stall.service.be(Mood::default());
            // The rival is remembered though nobody tells of it.
            let again = stall.post(&id, &transaction);
            check_problem(&again, 503, "payment-outcome-unknown", "a rival that was told");
            assert_eq!(stall.state(&id), "pending");
        } else {
            // The second one is not asked, since the first one has the payment.
            assert_eq!(reply.status, 201, "{}", reply.body);
        }
        second.be(Mood::default());
        stall.counter.node.mine(1);
        wait_until("its block holds it", || stall.state(&id) == "paid");
    }
}

#[test]
fn of_two_payments_with_one_coin_a_block_decides() {
    let stall = Stall::with(1, json!({ "minedBlocks": 1 }));
    let coin = stall.counter.purse.coin();
    let [first, second] = [FEE, FEE + 100].map(|fee| {
        let (id, bill) = stall.counter.bill();
        (id, stall.counter.purse.spend(&[coin], bill.outputs(), fee))
    });
    assert_eq!(stall.post(&first.0, &first.1).status, 201);
    assert_eq!(stall.state(&first.0), "paid");
    let reply = stall.post(&second.0, &second.1);
    check_problem(&reply, 422, "refused-by-network", "the second one");
    let state = |id: &str| stall.counter.shop.payments(id)[0]["state"].clone();
    assert_eq!(state(&first.0), "contested", "both have a rival");
    stall.counter.node.mine(1);
    wait_until("a block holds the first", || state(&first.0) == "mined");
    assert_eq!(stall.state(&first.0), "paid");
    assert_eq!(stall.state(&second.0), "pending");
}

#[test]
fn no_address_is_shown_while_nobody_tells_of_payments_to_it() {
    let stall = Stall::new(0);
    let shop = &stall.counter.shop;
    let id = shop.invoice(1_000);
    let checkout = shop.get(&format!("/api/v1/invoices/{id}/checkout"));
    let url = checkout["paymentUrl"].as_str().unwrap();
    assert_eq!(checkout["address"], Value::Null);
    assert_eq!(checkout["bip21"], format!("bitcoin:?sv&r={url}"));
    let page = shop.server.payments().get(&format!("/pay/{id}")).body;
    assert!(
        page.contains(&format!("bitcoin:?sv&amp;r={url}")) || page.contains("bitcoin:?sv&#38;r=")
    );
    assert!(!page.contains("id=\"address\""));
    let codes = ["", "?form=address", "?form=link"].map(|form| {
        let reply = shop.server.payments().get(&format!("/pay/{id}/qr.svg{form}"));
        assert_eq!(reply.status, 200);
        reply.body
    });
    assert!(codes.iter().all(|code| *code == codes[2]), "each is that of the link");
}

#[test]
fn what_counts_by_word_alone_is_limited() {
    let limit = 2 * PRICE - 1;
    let wallet = json!({ "zeroConfLimitSatoshis": PRICE, "minedBlocks": 1 });
    let node = Node::start_with(&["disablesafemode=1"]);
    let service = Service::before(&node);
    let counter = Counter::on(node, 3, |node| {
        let mut site = site(node, &[&service], wallet);
        site.change("services", "exposureSatoshis", json!(limit));
        site
    });
    let stall = Stall { counter, service };
    let (first, transaction) = stall.payment();
    assert_eq!(stall.post(&first, &transaction).status, 201);
    assert_eq!(stall.exposed(), PRICE);
    let (second, transaction) = stall.payment();
    let reply = stall.post(&second, &transaction);
    check_problem(&reply, 422, "payment-waiting", "above the limit");
    assert_eq!((stall.state(&second), stall.exposed()), ("pending".to_owned(), PRICE));
    stall.counter.node.mine(1);
    wait_until("a block holds both", || stall.state(&second) == "paid");
    wait_until("nothing counts by word", || stall.exposed() == 0);
    let (third, transaction) = stall.payment();
    assert_eq!(stall.post(&third, &transaction).status, 201, "there is room again");
    assert_eq!(stall.state(&third), "paid");
}

#[test]
fn books_are_verified_with_services_as_far_as_they_tell() {
    let stall = Stall::with(1, json!({ "minedBlocks": 1 }));
    let (id, transaction) = stall.payment();
    assert_eq!(stall.post(&id, &transaction).status, 201);
    stall.counter.node.mine(1);
    wait_until("it is proven", || stall.confirmations(&id) == 1);
    let site = &stall.counter.shop.site;
    let text = site.cli_ok(&["books", "verify"]);
    assert!(text.contains("1 proof of 1 block, 1 of them in the main chain"), "{text}");
    assert!(text.contains("the coins were not compared with the network"), "{text}");
    let searched = site.cli(&["books", "verify", "--from-height", "1"]);
    assert!(searched.stderr.contains("this needs a node"), "{searched:?}");
}
