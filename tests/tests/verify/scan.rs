//! `bsv-cli scanminerids`, next to the database of a real node.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use bsv_minerid::Revocation;
use bsv_tests::identified_block::Keys;
use bsv_tests::known_miners::{await_rebuilt, of_node, of_scan};
use bsv_tests::{Site, Template};
use bsv_tx::{BlockHash, PrivateKey};
use serde_json::{Value, json};

use crate::node::Chain;
use crate::spoilt::stranger;

fn id(key: &PrivateKey) -> String {
    key.public_key().to_string()
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A chain with all that identities do.
struct History {
    chain: Chain,
    /// Height to event.
    events: Vec<(u32, &'static str)>,
}

impl History {
    fn note(&mut self, event: &'static str, mine: impl FnOnce(&Chain) -> BlockHash) -> BlockHash {
        self.events.push((self.chain.next_height(), event));
        mine(&self.chain)
    }

    fn announce(&mut self, event: &'static str, keys: &Keys) -> BlockHash {
        self.note(event, |chain| chain.announce(keys))
    }

    fn revoke(&mut self, event: &'static str, keys: &Keys, compromised: &PrivateKey) -> BlockHash {
        self.note(event, |chain| {
            let mut document = keys.miner_info(chain.next_height());
            document.revocation = Some(Revocation::sign(
                compromised.public_key(),
                &keys.revocation_key,
                &keys.previous_miner_id,
            ));
            chain.mine_document(keys, &document)
        })
    }

    /// A miner rotates, rolls, and revokes some; another comes from 0.2 and revokes all.
    fn begin() -> (Self, Keys) {
        let mut history = Self { chain: Chain::start(), events: Vec::new() };
        let first = Keys::first();
        history.announce("first", &first);
        history.announce("continued", &first);
        let second = first.rotated();
        history.announce("rotated", &second);
        history.announce("rotation-repeated", &second);
        history.announce("refused", &first);
        let second = second.settled();
        let rolled = second.rolled();
        history.announce("continued", &rolled);
        history.announce("refused", &rolled);
        let rolled = rolled.settled();
        let both = rolled.rotated().rolled();
        history.announce("rotated", &both);
        let third = both.settled();
        history.announce("refused", &Keys::first().rotated());
        history.note("no-identity", |chain| chain.node.mine(1)[0]);

        let older = Keys::first();
        history.note("first", |chain| {
            chain.mine_output(&older.sign(&older.document(chain.next_height()).to_json()))
        });
        history.announce("refused", &older.rolled());
        history.announce("continued", &older);
        let newer = older.rotated();
        history.announce("rotated", &newer);
        let newer = newer.settled();
        history.revoke("revoked-completely", &newer, &older.miner_id);
        history.announce("refused", &newer);

        // Who calls a stranger's miner id compromised loses all of its own.
        let careless = Keys::first();
        history.announce("first", &careless);
        history.announce("rotated", &careless.rotated());
        let careless = careless.rotated();
        history.revoke("revoked-partially", &careless, &stranger());
        history.revoke("refused", &Keys::first(), &stranger());

        let fourth = third.rotated();
        history.revoke("revoked-partially", &fourth, &second.miner_id);
        history.revoke("revoked-partially", &fourth, &second.miner_id);
        history.announce("refused", &third);
        let fourth = fourth.settled();
        history.announce("continued", &fourth);
        (history, fourth)
    }

    fn site(&self) -> Site {
        let site = Site::on(&self.chain.node);
        site.cli_ok(&["init"]);
        site
    }
}

#[test]
fn a_scan_follows_what_the_node_follows_also_through_a_reorganisation() {
    let (mut history, current) = History::begin();
    let site = history.site();
    let file = site.data_dir().join("seen");
    let file = file.to_str().unwrap();
    let scan = |arguments: &[&str]| {
        let text = site.cli_ok(&[&["scanminerids", "--json"][..], arguments].concat());
        let mut lines = lines(&text);
        let summary = lines.pop().unwrap();
        (lines, summary)
    };
    let first = history.events[0].0.to_string();
    let (blocks, summary) = scan(&["--from", &first, "--progress", file]);
    let events: Vec<_> = blocks
        .iter()
        .map(|block| (block["height"].as_u64().unwrap() as u32, block["event"].as_str().unwrap()))
        .collect();
    assert_eq!(events, history.events);
    assert_eq!(of_scan(&summary), of_node(&history.chain.node), "{:#}", history.chain.node.log());
    assert!(summary["miners"][0]["minerIds"].as_array().unwrap().len() >= 4);

    // A rotation, and then another in its place in a longer chain.
    let (orphaned, kept) = (current.rotated(), current.rotated());
    let left = history.announce("rotated", &orphaned);
    let (blocks, summary) = scan(&["--from", &first, "--progress", file]);
    assert_eq!((blocks.len(), &blocks[0]["event"]), (1, &json!("rotated")));
    assert_eq!(of_scan(&summary), of_node(&history.chain.node));
    history.chain.node.call("invalidateblock", json!([left.to_string()]));
    // The transaction of the block that has left waits to be mined again, alone.
    Template::of(&history.chain.node, 1).mine_alone(&history.chain.node);
    history.chain.announce(&kept);
    let orphaned = orphaned.settled();
    history.chain.announce(&orphaned);
    let (blocks, summary) = scan(&["--from", &first, "--progress", file]);
    assert_eq!(blocks[0]["disconnected"][0]["hash"], left.to_string());
    let events: Vec<_> = blocks[1..].iter().map(|block| block["event"].clone()).collect();
    assert_eq!(events, ["no-identity", "refused", "continued"], "{blocks:#?}");
    assert_eq!(of_scan(&summary), of_node(&history.chain.node), "{}", history.chain.node.log());

    // Who has not seen the other chain knows less of it, as a node that begins anew.
    let (_, summary) = scan(&["--from", &first]);
    await_rebuilt(&history.chain.node, &of_scan(&summary));
    let done = site.cli(&["scanminerids", "--from", &first, "--to", &first, "--progress", file]);
    assert!(done.code == 1 && done.stderr.contains("beyond"), "{}", done.stderr);
}

#[test]
fn a_scan_that_was_killed_or_interrupted_goes_on() {
    let (history, _) = History::begin();
    history.chain.node.mine(500);
    let site = history.site();
    let whole = lines(&site.cli_ok(&["scanminerids", "--from", "1", "--json"]));
    let (summary, blocks) = whole.split_last().unwrap();
    assert_eq!(of_scan(summary), of_node(&history.chain.node));
    let signals = ["KILL", "INT", "TERM"];
    let count = bsv_tests::repetitions("signals that end a scan", signals.len(), 2);
    for signal in &signals[..count] {
        let mut seen = broken_off(&site, signal);
        let rest = site.cli(&["scanminerids", "--from", "1", "--json"]);
        assert_eq!(rest.code, 0, "{}", rest.stderr);
        let rest = lines(&rest.stdout);
        let (last, rest) = rest.split_last().unwrap();
        assert_eq!(last, summary, "after {signal}");
        assert!(rest.len() < blocks.len(), "after {signal} it began anew");
        // What was found since the last time that it was saved is found again.
        let first = rest[0]["height"].clone();
        seen.retain(|line| line["height"].as_u64() < first.as_u64());
        seen.extend_from_slice(rest);
        assert!(seen == blocks, "{} of {} blocks after {signal}", seen.len(), blocks.len());
    }
}

/// The lines of a scan that a signal ends on its way.
fn broken_off(site: &Site, signal: &str) -> Vec<Value> {
    let mut command = site.cli_command(&["scanminerids", "--from", "1", "--json"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut seen: Vec<_> = output.by_ref().take(20).collect();
    // It waits for its reader, for so long that it then saves what it has.
    thread::sleep(Duration::from_millis(1200));
    seen.extend(output.by_ref().take(350));
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-s", signal, &pid]).status().unwrap().success());
    seen.extend(output);
    let done = child.wait_with_output().unwrap();
    let complaint = String::from_utf8(done.stderr).unwrap();
    match signal {
        "KILL" => assert_eq!(done.status.signal(), Some(9)),
        _ => {
            assert_eq!(done.status.code(), Some(1), "{complaint}");
            assert!(complaint.contains("interrupted before height"), "{complaint}");
        }
    }
    // The last line may be cut short.
    seen.iter().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

#[test]
fn a_node_that_goes_away_costs_no_progress_and_people_read_lines() {
    let (history, current) = History::begin();
    let site = history.site();
    let first = history.events[0].0;
    let (from, to) = (first.to_string(), (first + 5).to_string());
    let file = site.data_dir().join("seen");
    let file = file.to_str().unwrap();
    let scan = ["scanminerids", "--from", &from, "--progress", file];
    let text = site.cli_ok(&[&scan[..], &["--to", &to]].concat());
    for part in [
        "new miner",
        "same id",
        "rotated, as announced before",
        " is ROTATED",
        "new revocation key",
        "ROTATED",
        "CURRENT",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let mut chain = history.chain;
    chain.node.stop();
    let done = site.cli(&scan);
    assert_eq!(done.code, 1);
    assert!(done.stderr.contains(&chain.node.port.to_string()), "{}", done.stderr);
    chain.node.restart();
    let done = site.cli(&scan);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(
        done.stderr.contains(&format!("going on from height {}", first + 6)),
        "{}",
        done.stderr
    );
    for part in ["partial revocation", "complete revocation", "REVOKED", &id(&current.miner_id)] {
        assert!(done.stdout.contains(part), "{part}: {}", done.stdout);
    }
    let seen = fs::read_to_string(file).unwrap();
    let spoilt = site.data_dir().join("spoilt");
    fs::write(&spoilt, seen.replace("\"miner\":0", "\"miner\":99")).unwrap();
    let spoilt = spoilt.to_str().unwrap();
    for (arguments, code, reason) in [
        (&["--from", "5", "--to", "4"][..], 1, "--to 4 is less than --from 5"),
        (&["--from", "1", "--to", "999999"], 1, "ends before height 999999"),
        (&["--from", "0"], 2, "not in 1..=2147483647"),
        (&[], 2, "--from"),
        (&["--from", "7", "--progress", file], 1, "of a scan from height"),
        (&["--from", &from, "--progress", spoilt], 1, "a miner id is of a miner that is not there"),
        (&["--from", &from, "--progress", "/"], 1, "not the name of a file"),
    ] {
        let done = site.cli(&[&["scanminerids"][..], arguments].concat());
        assert_eq!(done.code, code, "{arguments:?}: {done:?}");
        assert!(done.stderr.contains(reason), "{arguments:?}: {}", done.stderr);
    }
}
