//! Clients of other projects: npm `@bsv/sdk` and `@bsv/wallet-toolbox-client`, PyPI `bsv-sdk`.

use std::process::Command;
use std::thread;
use std::time::Duration;

use bsv_tests::ancestry::{beef, bump, transaction as transaction_of};
use bsv_tests::fetch::{node_js, python_with};
use bsv_tests::jobs::ask;
use bsv_tests::payee::output;
use bsv_tests::purse::{FEE, Purse, knows};
use bsv_tests::services::Path;
use bsv_tx::{BeefVersion, Bump, Transaction};
use serde_json::{Value, json};

use super::{Scene, txids};

fn javascript() -> Command {
    let mut node = node_js();
    node.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/npm/services.cjs"));
    node
}

fn python() -> Command {
    let mut python = python_with("beef");
    python.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/python/services.py"));
    python
}

/// A payment, one that spends the same coin, one whose fee is too low, and one that another key signed.
struct Payments([Transaction; 4]);

impl Payments {
    fn of(Scene { purse, node, .. }: &Scene) -> Self {
        let coin = purse.coin();
        let rival = purse.spend(&[coin], vec![output(2_000)], FEE);
        let coins = [purse.coin(), purse.coin()];
        let mut forged = purse.spend(&coins[1..], vec![output(1_000)], FEE);
        Purse::filled(node, 0, 0).sign(&mut forged, &coins[1..]);
        let good = purse.spend(&[coin], vec![output(1_000)], FEE);
        Self([good, rival, purse.spend(&coins[..1], vec![output(1_000)], 1), forged])
    }
}

impl Scene {
    /// A job with a transaction, for a program.
    fn job(&self, transaction: &Transaction, mut job: Value) -> Value {
        job["url"] = json!(self.service.url());
        job["txid"] = json!(transaction.txid().to_string());
        job["transaction"] = json!(transaction.to_hex());
        let spent = transaction.inputs.iter().map(|it| it.previous_output.txid);
        job["parents"] = spent.map(|txid| transaction_of(&self.node, &txid).to_hex()).collect();
        job
    }

    /// A job that checks a Merkle path against the headers.
    fn check(&self, transaction: &Transaction, bump: &Value, tracker: &str) -> Value {
        let url = match tracker {
            "whatsonchain" => self.service.whatsonchain_url(),
            _ => format!("{}/chaintracks/v1", self.service.url()),
        };
        let txid = transaction.txid().to_string();
        json!({ "do": "verify", "bump": bump, "txid": txid, tracker: url })
    }
}

fn answers(program: Command, jobs: &[Value]) -> Vec<Value> {
    ask(program, &jobs.iter().collect::<Vec<_>>())
}

/// Whether the paths that the services give are right exactly in their honest mood, in a client's eyes.
fn check_paths(scene: &Scene, payment: &Transaction, program: fn() -> Command, trackers: &[&str]) {
    let path = |path| {
        scene.service.change(|mood| mood.path = path);
        scene.arc_state(payment)["merklePath"].clone()
    };
    let paths = [Path::Right, Path::Shifted, Path::Lifted].map(path);
    let jobs: Vec<_> = trackers
        .iter()
        .flat_map(|tracker| paths.iter().map(|path| scene.check(payment, path, tracker)))
        .collect();
    for (place, verified) in answers(program(), &jobs).into_iter().enumerate() {
        assert_eq!(verified == true, place % paths.len() == 0, "{place}: {verified}");
    }
}

#[test]
fn npm_pays_through_arc() {
    let scene = Scene::new(3);
    let Payments(payments) = Payments::of(&scene);
    let jobs = payments.each_ref().map(|it| scene.job(it, json!({ "do": "broadcast" })));
    let answers_to = answers(javascript(), &jobs);
    let [good, rival, cheap, forged] = &payments;
    assert_eq!(answers_to[0]["status"], "success", "{answers_to:?}");
    assert_eq!(answers_to[0]["txid"], good.txid().to_string());
    assert!(knows(&scene.node, good));
    assert_eq!(answers_to[1]["code"], "DOUBLE_SPEND_ATTEMPTED");
    assert_eq!(answers_to[1]["more"]["competingTxs"], txids(&[good]));
    for (answer, code, refused) in [(&answers_to[2], "465", cheap), (&answers_to[3], "461", forged)]
    {
        assert_eq!((&answer["status"], &answer["code"]), (&json!("error"), &json!(code)));
        assert_eq!(answer["txid"], refused.txid().to_string());
        assert!(!knows(&scene.node, refused));
    }

    // Of several, the successes come first. The rival is a success in this dialect.
    let all = [cheap, good, rival].map(|it| scene.job(it, json!({})));
    let many = answers(
        javascript(),
        &[json!({ "do": "broadcastMany", "url": scene.service.url(), "all": all })],
    );
    let shown =
        many[0].as_array().unwrap().iter().map(|it| it["txid"].as_str().unwrap().to_owned());
    assert_eq!(json!(shown.collect::<Vec<_>>()), txids(&[good, rival, cheap]));

    scene.node.mine(1);
    check_paths(&scene, good, javascript, &["whatsonchain", "chaintracks"]);
}

#[test]
fn npm_posts_ancestors_and_reads_events() {
    let scene = Scene::new(2);
    let first = scene.payment();
    let change = scene.purse.coins_of(&first);
    let second = scene.purse.spend(&change, vec![output(1_000)], FEE);
    let sent = beef(&scene.node, BeefVersion::V2, &second, std::slice::from_ref(&first));
    let post = json!({
        "do": "postBeef", "url": scene.service.url(), "beef": hex::encode(sent.to_bytes()),
        "txid": second.txid().to_string(),
    });
    let txid = second.txid().to_string();
    let status = json!({ "do": "status", "url": scene.service.url(), "txid": txid });
    let posted = answers(javascript(), &[post, status]);
    assert_eq!(posted[0]["status"], "success", "{posted:?}");
    assert_eq!(posted[1]["txStatus"], "SEEN_ON_NETWORK");
    assert!(knows(&scene.node, &first) && knows(&scene.node, &second));

    let payment = scene.payment();
    scene.submit("/tx", &payment, &[("X-CallbackToken", "abc")]);
    let read = json!({ "do": "events", "url": scene.service.url(), "token": "abc", "count": 2 });
    let events = thread::scope(|threads| {
        let reader = threads.spawn(|| answers(javascript(), &[read]));
        let is_open =
            || scene.service.requests("GET").iter().any(|it| it.path.starts_with("/events"));
        while !is_open() {
            thread::sleep(Duration::from_millis(20));
        }
        scene.node.mine(1);
        reader.join().unwrap()
    });
    let [seen, mined] = [&events[0][0], &events[0][1]];
    assert_eq!((&seen["txStatus"], &seen["txid"]), (&json!("SEEN_ON_NETWORK"), &mined["txid"]));
    assert_eq!((&mined["txStatus"], &mined["txid"]), (&json!("MINED"), &txids(&[&payment])[0]));
    let path = hex::decode(mined["merklePath"].as_str().unwrap()).unwrap();
    assert_eq!(Bump::from_bytes(&path).unwrap(), bump(&scene.node, &payment.txid()));
}

#[test]
fn python_pays_through_arc_and_arcade() {
    let scene = Scene::new(6);
    for client in ["arc", "arcade"] {
        let Payments(payments) = Payments::of(&scene);
        let broadcast = json!({ "do": "broadcast", "client": client });
        let jobs = payments.each_ref().map(|it| scene.job(it, broadcast.clone()));
        let found = answers(python(), &jobs);
        let [good, rival, cheap, forged] = &payments;
        let is_arc = client == "arc";
        let word = if is_arc { "SEEN_ON_NETWORK" } else { "RECEIVED" };
        assert_eq!((&found[0]["status"], &found[0]["message"]), (&json!("success"), &json!(word)));
        assert_eq!(found[0]["txid"], good.txid().to_string());
        assert!(knows(&scene.node, good));
        // The client takes the rival for a success, and learns by asking.
        assert_eq!(found[1]["status"], "success", "{found:?}");
        let codes = if is_arc { ["465", "461"] } else { ["400", "400"] };
        for ((answer, code), refused) in found[2..].iter().zip(codes).zip([cheap, forged]) {
            assert_eq!((&answer["status"], &answer["code"]), (&json!("failure"), &json!(code)));
            assert!(!knows(&scene.node, refused));
        }
        if !is_arc {
            let described = found[2]["description"].as_str().unwrap();
            assert!(described.starts_with("transaction failed validation: a fee of 1 for"));
        }

        let status = json!({ "do": "status", "client": client });
        let states = [good, rival, cheap].map(|it| scene.job(it, status.clone()));
        let found = answers(python(), &states);
        let category = |place: usize| &found[place]["status_category"];
        if is_arc {
            assert_eq!([category(0), category(1)], ["warning", "warning"], "{found:?}");
            assert_eq!(
                (&found[1]["competingTxs"], &found[2]["code"]),
                (&txids(&[good]), &json!(404))
            );
        } else {
            assert_eq!(
                [category(0), category(1), category(2)],
                ["0confirmation", "rejected", "rejected"]
            );
            assert!(found[1]["extraInfo"].as_str().unwrap().contains(&good.txid().to_string()));
        }

        scene.node.mine(1);
        let found = answers(python(), &states);
        assert_eq!(
            (&found[0]["status_category"], &found[1]["status_category"]),
            (&json!("mined"), &json!("rejected"))
        );
        check_paths(&scene, good, python, &["whatsonchain"]);
        scene.service.change(|mood| mood.path = Path::Right);
    }
}

#[test]
fn python_sends_other_forms_and_keys() {
    let scene = Scene::new(3);
    let payment = scene.payment();
    let with = |client: &str, format: &str, key: &str| json!({ "do": "broadcast", "client": client, "format": format, "key": key });
    let mut beef = scene.job(&payment, with("arc", "beef", "k"));
    let parent = payment.inputs[0].previous_output.txid;
    let path = hex::encode(bump(&scene.node, &parent).to_bytes());
    beef["bumps"] = json!({ parent.to_string(): path });
    let mut raw = scene.job(&payment, with("arcade", "", "k"));
    raw["parents"] = json!([]);
    let jobs = [
        // Its content type for BEEF is one that ARC does not know.
        (beef, "400", "given content-type application/beef does not match"),
        (raw, "400", "transaction has missing source outputs"),
        (scene.job(&payment, with("arc", "json", "other")), "401", ""),
        (scene.job(&payment, with("arcade", "", "other")), "401", ""),
    ];
    scene.service.change(|mood| mood.api_key = Some("k".to_owned()));
    let found = answers(python(), &jobs.each_ref().map(|(job, ..)| job.clone()));
    for ((_, code, _), answer) in jobs.iter().zip(&found) {
        assert_eq!(
            (&answer["status"], &answer["code"]),
            (&json!("failure"), &json!(code)),
            "{found:?}"
        );
    }
    assert!(found[1]["description"].as_str().unwrap().contains(jobs[1].2));
    assert!(!knows(&scene.node, &payment));
    // The dialects share one memory, which has Arcade's refusal.
    scene.service.restart_empty();
    let found = answers(python(), &[scene.job(&payment, with("arc", "raw", "k"))]);
    assert_eq!(found[0]["message"], "SEEN_ON_NETWORK", "{found:?}");
}
