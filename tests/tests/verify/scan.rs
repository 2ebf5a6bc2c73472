//! Compares `bsv-cli miner scan` with the database of a real node.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use bsv_minerid::formats::{DataRef, DataScript};
use bsv_minerid::node::{DataCache, GatheredBlock};
use bsv_minerid::verify::{Check, Outcome, verify};
use bsv_tests::identified_block::Keys;
use bsv_tests::known_miners::{await_rebuilt, of_node, of_scan};
use bsv_tests::{Site, Template};
use bsv_tx::{PrivateKey, Transaction};
use serde_json::{Value, json};

use crate::verify::history::History;
use crate::verify::node::Chain;

fn id(key: &PrivateKey) -> String {
    key.public_key().to_string()
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_scan_follows_what_the_node_follows_also_through_a_reorganisation() {
    let (mut history, current) = History::begin();
    let site = history.site();
    let file = site.data_dir().join("seen");
    let file = file.to_str().unwrap();
    let scan = |arguments: &[&str]| {
        let text = site.cli_ok(&[&["miner", "scan", "--json"][..], arguments].concat());
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

    // A rotation, which a longer chain then replaces by another rotation.
    let (orphaned, kept) = (current.rotated(), current.rotated());
    let left = history.announce("rotated", &orphaned);
    let (blocks, summary) = scan(&["--from", &first, "--progress", file]);
    assert_eq!((blocks.len(), &blocks[0]["event"]), (1, &json!("rotated")));
    assert_eq!(of_scan(&summary), of_node(&history.chain.node));
    history.chain.node.call("invalidateblock", json!([left.to_string()]));
    // The miner-info transaction of the block that has left the chain is in the mempool again. This
    // block is mined without it.
    Template::of(&history.chain.node, 1).mine_alone(&history.chain.node);
    history.chain.announce(&kept);
    let orphaned = orphaned.settled();
    history.chain.announce(&orphaned);
    let (blocks, summary) = scan(&["--from", &first, "--progress", file]);
    assert_eq!(blocks[0]["disconnected"][0]["hash"], left.to_string());
    let events: Vec<_> = blocks[1..].iter().map(|block| block["event"].clone()).collect();
    assert_eq!(events, ["no-identity", "refused", "continued"], "{blocks:#?}");
    assert_eq!(of_scan(&summary), of_node(&history.chain.node), "{}", history.chain.node.log());

    // A scan that has not seen the other chain knows less of the miner, like a node that begins
    // anew.
    let (_, summary) = scan(&["--from", &first]);
    await_rebuilt(&history.chain.node, &of_scan(&summary));
    let done = site.cli(&["miner", "scan", "--from", &first, "--to", &first, "--progress", file]);
    assert!(done.code == 1 && done.stderr.contains("beyond"), "{}", done.stderr);
}

#[test]
fn a_scan_that_was_killed_or_interrupted_continues() {
    let (history, _) = History::begin();
    history.chain.node.mine(500);
    let site = history.site();
    let whole = lines(&site.cli_ok(&["miner", "scan", "--from", "1", "--json"]));
    let (summary, blocks) = whole.split_last().unwrap();
    assert_eq!(of_scan(summary), of_node(&history.chain.node));
    let signals = ["KILL", "INT", "TERM"];
    let count = bsv_tests::repetitions("signals that end a scan", signals.len(), 2);
    for signal in &signals[..count] {
        let mut seen = broken_off(&site, signal);
        let rest = site.cli(&["miner", "scan", "--from", "1", "--json"]);
        assert_eq!(rest.code, 0, "{}", rest.stderr);
        let rest = lines(&rest.stdout);
        let (last, rest) = rest.split_last().unwrap();
        assert_eq!(last, summary, "after {signal}");
        assert!(rest.len() < blocks.len(), "after {signal} it began anew");
        // The scan finds the blocks again that it had found after it last saved its progress.
        let first = rest[0]["height"].clone();
        seen.retain(|line| line["height"].as_u64() < first.as_u64());
        seen.extend_from_slice(rest);
        assert!(seen == blocks, "{} of {} blocks after {signal}", seen.len(), blocks.len());
    }
}

/// The lines of a scan that a signal interrupts.
fn broken_off(site: &Site, signal: &str) -> Vec<Value> {
    let mut command = site.cli_command(&["miner", "scan", "--from", "1", "--json"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut seen: Vec<_> = output.by_ref().take(20).collect();
    // The scan waits for its reader. It then saves its progress, since enough time has passed.
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
    // The last line may be incomplete.
    seen.iter().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

#[test]
fn a_node_that_stops_costs_no_progress_and_the_text_output_names_the_events() {
    let (history, current) = History::begin();
    let site = history.site();
    let first = history.events[0].0;
    let (from, to) = (first.to_string(), (first + 5).to_string());
    let file = site.data_dir().join("seen");
    let file = file.to_str().unwrap();
    let scan = ["miner", "scan", "--from", &from, "--progress", file];
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
        done.stderr.contains(&format!("continuing from height {}", first + 6)),
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
        (
            &["--from", &from, "--progress", spoilt],
            1,
            "a miner id or a block is of a miner that is not there",
        ),
        (&["--from", &from, "--progress", "/"], 1, "not the name of a file"),
    ] {
        let done = site.cli(&[&["miner", "scan"][..], arguments].concat());
        assert_eq!(done.code, code, "{arguments:?}: {done:?}");
        assert!(done.stderr.contains(reason), "{arguments:?}: {}", done.stderr);
    }
}

/// Documents refer to the same data again and again, and a hostile document any number of times.
#[test]
fn data_is_read_once_however_often_documents_refer_to_it() {
    let chain = Chain::start();
    let keys = Keys::first();
    let script = DataScript { data: br#"{"62b21572ca46":{}}"#.to_vec() }.to_script();
    let txid = chain.send(&script);
    let transaction = chain.node.call("getrawtransaction", json!([txid.to_string()]));
    let transaction = Transaction::from_hex(transaction.as_str().unwrap()).unwrap();
    // The node has put its change before or after the data output.
    let vout = transaction.outputs.iter().position(|output| output.locking_script == script);
    let vout = vout.unwrap() as u32;
    let reference =
        DataRef { brfc_ids: vec!["62b21572ca46".to_owned()], txid, vout, compress: None };
    let data = DataCache::default();
    let mut outputs = Vec::new();
    for count in [1, 10_000, 1] {
        let mut document = keys.miner_info(chain.next_height());
        document.data_refs = vec![reference.clone(); count];
        let block = chain.mine_document(&keys, &document);
        let GatheredBlock { proof, evidence, .. } = chain.gather_with(&block, &data);
        let report = verify(&proof, &evidence);
        let identity = report.identity().unwrap_or_else(|| panic!("{report:#?}"));
        assert_eq!(identity.data_refs.len(), count);
        let findings = &report.candidates[0].findings;
        let data_refs = findings.iter().find(|finding| finding.check == Check::DataRefs);
        assert_eq!(data_refs.unwrap().outcome, Outcome::Holds);
        assert_eq!(evidence.data.len(), 1);
        outputs.push(evidence.data[&txid].clone());
    }
    assert!(outputs.iter().all(|read| Arc::ptr_eq(read, &outputs[0])));
}

#[test]
fn the_last_2016_blocks_count_and_a_scan_that_began_too_late_says_so() {
    let (history, _) = History::begin();
    let (chain, site) = (&history.chain, history.site());
    let summary = |from: u32| {
        let text = site.cli_ok(&["miner", "scan", "--from", &from.to_string(), "--json"]);
        lines(&text).pop().unwrap()
    };
    let scan =
        |from: u32| (summary(from), site.cli_ok(&["miner", "scan", "--from", &from.to_string()]));
    let is_complete = |list: &Value| list["miners"][0]["recentBlocksComplete"].clone();
    let first = history.events[0].0;
    let (list, text) = scan(first);
    assert_eq!(is_complete(&list), false);
    let seen = format!("at least {}/2016", list["miners"][0]["recentBlocks"]);
    let began = format!("The scan began at height {first}: ");
    assert!(text.contains(&seen) && text.contains(&began), "{text}");

    // The blocks of the first two events are older than the last 2016 blocks. All other blocks
    // count.
    let (old, young) = history.events.split_at(2);
    chain.node.mine(2016 - young.len() as u32);
    let (list, text) = scan(1);
    assert_eq!(is_complete(&list), true);
    assert_eq!(of_scan(&list), of_node(&chain.node), "{}", chain.node.log());
    assert!(!text.contains("at least") && !text.contains("began"), "{text}");

    let oldest = old.last().unwrap().0 + 1;
    let (list, text) = scan(oldest);
    assert_eq!(is_complete(&list), true);
    let refused = format!("was not seen since height {oldest}, the beginning of the scan");
    assert!(text.contains(&refused) && !text.contains("at least"), "{text}");
    assert_eq!(is_complete(&summary(oldest + 1)), false);
}
