//! What the services say in each mood.

use std::time::{Duration, Instant};

use bsv_tests::payee::output;
use bsv_tests::purse::{FEE, knows, send};
use bsv_tests::rival::Rival;
use bsv_tests::services::{Cut, Mood, Path, Word};
use bsv_tx::{BlockHeader, Bump, ExtendedTransaction, Transaction};
use serde_json::{Value, json};

use super::{Scene, body, txids};

#[test]
fn what_is_not_relayed_stays_received() {
    let scene = Scene::new(1);
    scene.service.change(|mood| mood.relays = false);
    let payment = scene.payment();
    assert_eq!(scene.arcade(&payment)["txStatus"], "RECEIVED");
    scene.node.mine(1);
    assert_eq!(scene.words(&payment), ["RECEIVED", "RECEIVED"]);
    assert!(!knows(&scene.node, &payment));
    scene.service.be(Mood::default());
    assert_eq!(scene.words(&payment), ["RECEIVED", "RECEIVED"]);
    assert_eq!(scene.arcade(&payment)["txStatus"], "RECEIVED");
    assert_eq!(scene.words(&payment), ["SEEN_ON_NETWORK", "SEEN_ON_NETWORK"]);
    assert_eq!(scene.arcade(&payment)["txStatus"], "SEEN_ON_NETWORK");
}

#[test]
fn what_is_said_lasts_until_a_block() {
    let scene = Scene::new(2);
    let (refused, odd) = (scene.payment(), scene.payment());
    let word = Word { status: "REJECTED", code: Some(476), extra_info: "parent rejected: it" };
    scene.service.change(|mood| {
        mood.says = Some(word);
        mood.says_of.insert(odd.txid(), Word::of("UNHEARD_OF"));
    });
    scene.arcade(&refused);
    scene.arcade(&odd);
    let state = scene.arcade_state(&refused);
    assert_eq!((&state["txStatus"], &state["status"]), (&json!("REJECTED"), &json!(476)));
    assert_eq!(state["extraInfo"], "parent rejected: it");
    assert_eq!(scene.words(&odd), ["UNHEARD_OF", "UNHEARD_OF"]);
    scene.service.change(|mood| mood.extra_info = Some("stale".to_owned()));
    scene.node.mine(1);
    for payment in [&refused, &odd] {
        assert_eq!(scene.words(payment), ["MINED", "MINED"]);
        assert_eq!(scene.arcade_state(payment)["extraInfo"], "stale");
        assert_eq!(scene.arc_state(payment)["extraInfo"], "stale");
    }
    scene.node.mine(100);
    assert_eq!(scene.words(&odd), ["IMMUTABLE", "MINED"]);
}

#[test]
fn refusals_and_other_names() {
    let scene = Scene::new(2);
    let payment = scene.payment();
    scene.service.change(|mood| mood.refuses = Some(466));
    let refusal = body(&scene.submit("/tx", &payment, &[]), 400);
    assert_eq!((&refusal["status"], &refusal["txid"]), (&json!(466), &txids(&[&payment])[0]));
    assert_eq!(scene.arcade_state(&payment)["txStatus"], "REJECTED");
    scene.service.restart_empty();
    assert_eq!(body(&scene.submit("/v1/tx", &payment, &[]), 466)["status"], 466);
    assert_eq!(scene.client().get(&format!("/v1/tx/{}", payment.txid())).status, 404);

    let other = scene.payment().txid();
    scene.service.be(Mood { other_txid: Some(other), ..Mood::default() });
    assert_eq!(scene.arcade(&payment)["txid"], other.to_string());
    assert_eq!(scene.arc_state(&payment)["txid"], other.to_string());
    let lock_time = 1_000_000;
    let mut early = scene.purse.spend(&scene.purse.coins_of(&payment), vec![], FEE);
    early.lock_time = lock_time;
    early.inputs[0].sequence = 0;
    scene.purse.sign(&mut early, &scene.purse.coins_of(&payment));
    assert_eq!(body(&scene.submit("/tx", &early, &[]), 400)["status"], 476);
    assert_eq!(scene.client().get(&format!("/tx/{}", early.txid())).status, 404);
}

/// Two payments with the same coin.
fn rivals(scene: &Scene) -> [Transaction; 2] {
    let coin = scene.purse.coin();
    [1_000, 2_000].map(|satoshis| scene.purse.spend(&[coin], vec![output(satoshis)], FEE))
}

#[test]
fn of_two_that_spend_a_coin_the_second_is_refused() {
    let scene = Scene::new(2);
    for is_first_ours in [true, false] {
        let [first, second] = rivals(&scene);
        if is_first_ours {
            scene.arc(&first);
        } else {
            send(&scene.node, &first);
        }
        let told = scene.arc(&second);
        assert_eq!(told["txStatus"], "DOUBLE_SPEND_ATTEMPTED");
        assert_eq!(told["competingTxs"], txids(&[&first]));
        let state = scene.arcade_state(&second);
        assert_eq!((&state["txStatus"], &state["status"]), (&json!("REJECTED"), &json!(466)));
        assert!(state["extraInfo"].as_str().unwrap().contains(&format!("by tx {}", first.txid())));
        if is_first_ours {
            // ARC doubts both.
            assert_eq!(scene.words(&first), ["SEEN_ON_NETWORK", "DOUBLE_SPEND_ATTEMPTED"]);
            assert_eq!(scene.arc_state(&first)["competingTxs"], txids(&[&second]));
        }
        scene.node.mine(1);
        assert_eq!(scene.words(&second), ["REJECTED", "REJECTED"]);
        if is_first_ours {
            assert_eq!(scene.words(&first), ["MINED", "MINED"]);
        }
    }
}

#[test]
fn children_wait_for_their_parents() {
    let scene = Scene::new(1);
    let parent = scene.payment();
    let child = scene.purse.spend(&scene.purse.coins_of(&parent), vec![output(1_000)], FEE);
    let spent = parent.outputs[1].clone();
    let extended = ExtendedTransaction::new(child.clone(), vec![spent]).unwrap();
    let kind = [("Content-Type", "text/plain")];
    let sent =
        scene.client().send("POST", "/tx", &kind, hex::encode(extended.to_bytes()).as_bytes());
    assert_eq!(sent.status, 202, "{}", sent.body);
    assert_eq!(scene.words(&child), ["PENDING_RETRY", "SEEN_IN_ORPHAN_MEMPOOL"]);
    scene.arcade(&parent);
    assert_eq!(scene.words(&child), ["SEEN_ON_NETWORK", "SEEN_ON_NETWORK"]);
}

#[test]
fn paths_are_right_or_wrong() {
    let scene = Scene::new(2);
    let payments = [scene.payment(), scene.payment()];
    for payment in &payments {
        scene.arcade(payment);
    }
    let block = scene.node.mine(1)[0].to_string();
    let header = scene.node.call("getblockheader", json!([block, false]));
    let header = BlockHeader::from_bytes(&hex::decode(header.as_str().unwrap()).unwrap()).unwrap();
    for payment in &payments {
        let txid = payment.txid();
        let bump = |path| {
            scene.service.change(|mood| mood.path = path);
            let state = scene.arcade_state(payment);
            assert_eq!((&state["txStatus"], &state["blockHash"]), (&json!("MINED"), &json!(block)));
            let path = state["merklePath"].as_str()?.to_owned();
            Some(Bump::from_bytes(&hex::decode(path).unwrap()).unwrap())
        };
        let place = |bump: Bump| (bump.height(), bump.root(), bump.txids().any(|it| it == txid));
        let [right, foreign, shifted, lifted] =
            [Path::Right, Path::Foreign, Path::Shifted, Path::Lifted]
                .map(|it| place(bump(it).unwrap()));
        let (height, root) = (right.0, header.merkle_root);
        assert_eq!(right, (height, root, true));
        assert_eq!(foreign, (height, root, false));
        assert_eq!((shifted.0, shifted.2), (height, true));
        assert_ne!(shifted.1, root);
        assert_eq!(lifted, (height + 1, root, true));
        assert_eq!(bump(Path::Missing), None);
    }
}

#[test]
fn a_block_may_leave_the_chain() {
    let scene = Scene::new(1);
    let payment = scene.payment();
    scene.arc(&payment);
    let left = scene.node.mine(1)[0].to_string();
    assert_eq!(scene.arc_state(&payment)["blockHash"], left);
    scene.node.call("invalidateblock", json!([left]));
    assert_eq!(scene.words(&payment), ["SEEN_ON_NETWORK", "MINED_IN_STALE_BLOCK"]);
    let state = scene.arcade_state(&payment);
    assert_eq!(state["extraInfo"], "reorg_unmined");
    assert_eq!(state["orphanedProofs"][0]["blockHash"], left);
    scene.service.change(|mood| mood.keeps_orphans = true);
    assert_eq!(scene.words(&payment), ["MINED", "MINED"]);
    assert_eq!(scene.arc_state(&payment)["blockHash"], left);
    scene.service.change(|mood| mood.keeps_orphans = false);
    // Without another time, the block would be the same.
    scene.node.call("setmocktime", json!([2_000_000_000]));
    let again = scene.node.mine(1)[0].to_string();
    let state = scene.arcade_state(&payment);
    assert_eq!((&state["txStatus"], &state["blockHash"]), (&json!("MINED"), &json!(again)));
    assert_eq!(state["extraInfo"], "reorg_reanchor");
}

#[test]
fn a_rival_displaces_a_payment() {
    let scene = Scene::new(1);
    let chain = Rival::of(&scene.node);
    let [ours, other] = rivals(&scene);
    scene.arc(&ours);
    scene.node.mine(1);
    assert_eq!(scene.words(&ours), ["MINED", "MINED"]);
    chain.mine(&[&other], 2);
    chain.show_to(&scene.node);
    assert_eq!(scene.words(&ours), ["SEEN_ON_NETWORK", "MINED_IN_STALE_BLOCK"]);
    // A service that is given it again learns that its coin is spent.
    scene.service.restart_empty();
    assert_eq!(scene.client().get(&format!("/tx/{}", ours.txid())).status, 404);
    scene.arc(&ours);
    assert_eq!(scene.arcade_state(&ours)["status"], 466);
}

#[test]
fn conditions() {
    let scene = Scene::new(4);
    let client = scene.client();
    let policy = || client.try_request("GET", "/policy", b"");
    let be = |mood| scene.service.be(mood);
    let default = Mood::default;
    be(Mood { condition: Some((429, Some(7))), ..default() });
    let reply = policy().unwrap();
    assert_eq!((reply.status, reply.header("retry-after")), (429, Some("7")));
    be(Mood { condition: Some((503, None)), ..default() });
    let reply = policy().unwrap();
    assert_eq!((reply.status, reply.header("retry-after")), (503, None));
    be(Mood { api_key: Some("k".to_owned()), ..default() });
    assert_eq!(policy().unwrap().status, 401);
    assert_eq!(client.send("GET", "/policy", &[("Authorization", "Bearer k")], b"").status, 200);
    be(Mood { delay: Duration::from_millis(300), ..default() });
    let begun = Instant::now();
    assert_eq!(policy().unwrap().status, 200);
    assert!(begun.elapsed() >= Duration::from_millis(300));
    be(Mood { nonsense: Some("<html>".to_owned()), ..default() });
    assert_eq!(policy().unwrap().body, "<html>");
    be(Mood { fee: (5, 100_000), ..default() });
    let policy: Value = serde_json::from_str(&policy().unwrap().body).unwrap();
    assert_eq!(policy["policy"]["miningFee"], json!({ "satoshis": 5, "bytes": 100_000 }));

    for (cut, is_taken) in [(Cut::Request, false), (Cut::Answer, true), (Cut::Body, true)] {
        let payment = scene.payment();
        be(Mood { cut: Some(cut), ..default() });
        let body = json!({ "rawTx": payment.to_hex() }).to_string();
        assert!(client.try_request("POST", "/v1/tx", body.as_bytes()).is_err(), "{cut:?}");
        assert_eq!(knows(&scene.node, &payment), is_taken, "{cut:?}");
    }
}
