//! Keys that rotate while documents are made.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use bsv_minerid::formats::{Document, IdentityScript, succession_digest};
use bsv_tests::identities::{self, Histories};
use bsv_tests::{Server, Site, vectors};
use bsv_tx::{PublicKey, Script, Signature, Transaction, sha256};
use serde_json::{Value, json};

fn site() -> Site {
    let site = Site::new();
    let home = vectors::write_home(&vectors::minerid_0_2(), site.data_dir());
    site.cli_ok(&["importminerid", "--from", home.to_str().unwrap()]);
    site
}

/// The keys in an answer of the server: the previous key, if the answer names it, and the current
/// key.
type Named = (Option<String>, String);

/// The requests whose answers a key signs.
#[derive(Clone, Copy, Debug)]
enum Question {
    OutputScript,
    Coinbase2,
    PkSign,
}

const QUESTIONS: [Question; 3] = [Question::OutputScript, Question::Coinbase2, Question::PkSign];

impl Question {
    /// Sends the request, and checks that the key that the answer names has signed it.
    fn ask(self, server: &Server, alias: &str, height: usize) -> Named {
        match self {
            Self::OutputScript => {
                let script = server.text(&format!("/opreturn/{alias}/{height}"));
                check_document(&Script::from_hex(&script).unwrap(), height)
            }
            Self::Coinbase2 => {
                let coinbase2 = "ffffffff0100f2052a01000000015100000000";
                let request =
                    json!({ "blockHeight": height, "alias": alias, "coinbase2": coinbase2 });
                let reply = server.post("/coinbase2", request.to_string());
                assert_eq!(reply.status, 200, "{}", reply.body);
                check_document(&last_output(&reply.body), height)
            }
            Self::PkSign => {
                let digest = sha256(&height.to_le_bytes());
                let reply =
                    server.text(&format!("/minerid/{alias}/pksign/{}", hex::encode(digest)));
                let reply: Value = serde_json::from_str(&reply).unwrap();
                let key = reply["publicKey"].as_str().unwrap();
                let signature = reply["signature"].as_str().unwrap();
                check_signature(key, &digest, signature);
                (None, key.to_owned())
            }
        }
    }
}

fn check_signature(key: &str, digest: &[u8; 32], signature: &str) {
    let signature: Signature = signature.parse().unwrap();
    assert!(key.parse::<PublicKey>().unwrap().verify(digest, &signature), "{key}");
}

fn check_document(script: &Script, height: usize) -> Named {
    let script = IdentityScript::parse(script).unwrap();
    let text = std::str::from_utf8(&script.document).unwrap();
    let document = Document::from_json(text).unwrap();
    let (previous, current) = (document.previous_miner_id, document.miner_id);
    assert_eq!(document.height as usize, height);
    check_signature(&current.to_string(), &sha256(text.as_bytes()), &hex::encode(script.signature));
    let succession = succession_digest(&previous, &current, &document.vctx.txid);
    assert!(previous.verify(&succession, &document.previous_miner_id_signature), "{text}");
    (Some(previous.to_string()), current.to_string())
}

/// The script of the last output of a coinbase transaction with this end.
fn last_output(coinbase2: &str) -> Script {
    let start = format!("0100000001{}ffffffff00", "00".repeat(32));
    let transaction = Transaction::from_hex(&(start + coinbase2)).unwrap();
    transaction.outputs.last().unwrap().locking_script.clone()
}

/// Checks that the previous and the current key of each answer are neighbours in the final history,
/// and that no answer names an older key than the answer before.
fn check_order(keys: &[String], answers: &[Named]) {
    let mut last = 0;
    for (previous, current) in answers {
        let place = keys.iter().position(|key| key == current).unwrap();
        assert!(place >= last, "an answer went back from key {last} to key {place}");
        assert!(previous.as_ref().is_none_or(|key| *key == keys[place.saturating_sub(1)]));
        last = place;
    }
}

/// Counts down when dropped, so that a failure in one thread does not leave the others running.
struct Running<'a>(&'a AtomicUsize);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

const ROTATORS: usize = 4;
const ROTATIONS: usize = 10;
const READERS: usize = 8;

/// Rotates `rot` from several threads while others ask for documents of `rot` and of other aliases.
/// Answers the number of acknowledged rotations, and the answers of each reader of `rot`.
fn rotate_and_read(site: &Site, server: &Server, before: &Histories) -> (usize, Vec<Vec<Named>>) {
    let (acknowledged, running) = (AtomicUsize::new(0), AtomicUsize::new(ROTATORS));
    let is_over = || running.load(Ordering::Relaxed) == 0;
    let read = |reader: usize| {
        let mut answers = Vec::new();
        for height in 1.. {
            // This is read before the request, so that the last request comes after the last
            // rotation.
            let is_last = is_over();
            answers.push(QUESTIONS[(reader + height) % 3].ask(server, "rot", height));
            if is_last {
                break;
            }
        }
        answers
    };
    let read_others = || {
        for height in 1.. {
            let is_last = is_over();
            for (alias, keys) in before.iter().filter(|(alias, _)| *alias != "rot") {
                for question in QUESTIONS {
                    assert_eq!(question.ask(server, alias, height).1, *keys.last().unwrap());
                }
            }
            if is_last {
                break;
            }
        }
    };
    let rotate = |rotator: usize| {
        let _running = Running(&running);
        for _ in 0..ROTATIONS {
            match rotator {
                0 => drop(site.cli_ok(&["rotateminerid", "--name", "rot"])),
                _ => assert_eq!(server.post("/opreturn/rot/rotate", "").body, "OK"),
            }
            acknowledged.fetch_add(1, Ordering::Relaxed);
        }
    };
    let answers = thread::scope(|scope| {
        let readers: Vec<_> = (0..READERS).map(|n| scope.spawn(move || read(n))).collect();
        scope.spawn(read_others);
        (0..ROTATORS).for_each(|n| drop(scope.spawn(move || rotate(n))));
        readers.into_iter().map(|reader| reader.join().unwrap()).collect()
    });
    (acknowledged.into_inner(), answers)
}

#[test]
fn every_document_names_the_key_that_signed_it_while_keys_rotate() {
    let site = site();
    let server = site.server();
    let before = identities::histories(&site);
    let (acknowledged, answers) = rotate_and_read(&site, &server, &before);

    let after = identities::histories(&site);
    let keys = &after["rot"];
    assert_eq!(acknowledged, ROTATORS * ROTATIONS);
    assert_eq!(keys.len(), before["rot"].len() + acknowledged);
    for answers in &answers {
        check_order(keys, answers);
        assert_eq!(Some(&answers.last().unwrap().1), keys.last(), "after the last rotation");
    }
    let kept: Histories = after.clone().into_iter().filter(|(alias, _)| alias != "rot").collect();
    assert!(kept.iter().all(|(alias, keys)| before[alias] == *keys));

    let documents = |server: &Server| QUESTIONS.map(|question| question.ask(server, "rot", 7));
    let last = documents(&server);
    server.kill();
    let server = site.server();
    assert_eq!(identities::histories(&site), after);
    assert_eq!(documents(&server), last);
    identities::check_answers(&server, &after);
    drop(server);
    identities::check_keystore(&site, &after);
}

#[test]
fn rotations_of_all_aliases_at_once_do_not_mix_their_keys() {
    let site = site();
    let server = site.server();
    let before = identities::histories(&site);
    thread::scope(|scope| {
        for alias in before.keys() {
            let server = &server;
            scope.spawn(move || {
                let mut keys = vec![server.text(&format!("/minerid/{alias}"))];
                for height in 1..=5 {
                    let reply = server.post(&format!("/opreturn/{alias}/rotate"), "");
                    assert_eq!(reply.body, "OK");
                    let (previous, current) = Question::OutputScript.ask(server, alias, height);
                    assert_eq!(previous.as_ref(), keys.last());
                    keys.push(current);
                }
            });
        }
    });
    let after = identities::histories(&site);
    for (alias, keys) in &after {
        assert!(keys.starts_with(&before[alias]), "{alias}");
        assert_eq!(keys.len(), before[alias].len() + 5, "{alias}");
    }
    server.kill();
    identities::check_keystore(&site, &after);
    identities::check_answers(&site.server(), &after);
}
