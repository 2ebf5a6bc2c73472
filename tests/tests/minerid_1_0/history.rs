//! What a node knows of an identity after each of its changes.

use std::collections::BTreeMap;

use bsv_tests::known_miners::{KnownMiners, await_rebuilt, of_node, of_scan};
use bsv_tests::{Node, Server, Site, Template, miner_info};
use bsv_tx::{BlockHash, Txid};
use serde_json::{Value, json};

use crate::minerid_1_0::scene::{
    assert_all_taken, await_acknowledgement, identity, miner_id, node, state,
};

/// The keys of the only miner that the node knows, the current key first.
fn states(node: &Node) -> Vec<(String, String)> {
    let miners = miner_info::states(node);
    assert_eq!(miners.len(), 1, "{miners:#?}");
    miners.into_iter().next().unwrap()
}

fn mine(node: &Node, server: &Server) {
    miner_info::mine_from(node, server, "pool");
}

/// A chain whose every block is judged by its node and by a scan that follows the chain.
struct History {
    node: Node,
    site: Site,
    server: Server,
    /// The height at which the scan began.
    from: String,
    /// The blocks of the chain since then, each with its event.
    blocks: Vec<(BlockHash, String)>,
}

impl History {
    /// A chain in which no block has shown the identities yet: "pool" of generation 1.0, and "old"
    /// of generation 0.2.
    fn begin() -> Self {
        let node = node();
        let site = Site::on(&node);
        let server = site.server();
        site.cli_ok(&["generateminerid", "--name", "pool", "--protocol", "1.0"]);
        site.cli_ok(&["config", "--name", "pool", "name=Pool \"é\" \u{7f}"]);
        site.cli_ok(&["generateminerid", "--name", "old"]);
        site.cli_ok(&["generatevctx", "--name", "old"]);
        let from = Template::of(&node, 1).height().to_string();
        Self { node, site, server, from, blocks: Vec::new() }
    }

    fn run(&self, command: &[&str]) {
        self.site.cli_ok(command);
    }

    /// The current `minerId` or `revocationKey` of an alias.
    fn key(&self, alias: &str, name: &str) -> String {
        identity(&self.site, alias)[name].as_str().unwrap().to_owned()
    }

    /// Mines the next block with an identity. Checks that the scan reports `event` for it, and that
    /// the node then knows these keys of the identity: the current ones and the previous ones.
    fn mine(
        &mut self,
        alias: &str,
        event: &str,
        [miner_id, previous_miner_id]: [&str; 2],
        [revocation_key, previous_revocation_key]: [&str; 2],
    ) -> BlockHash {
        let block = match identity(&self.site, alias)["protocol"].as_str().unwrap() {
            "0.2" => miner_info::mine_coinbase_document(&self.node, &self.server, alias),
            _ => miner_info::mine_from(&self.node, &self.server, alias).block,
        };
        self.blocks.push((block, event.to_owned()));
        let known = of_node(&self.node);
        assert_eq!(known[miner_id]["latestBlock"], block.to_string(), "{}", self.node.log());
        let expected = json!({
            "minerId": miner_id,
            "minerIdState": if event == "revoked-completely" { "REVOKED" } else { "CURRENT" },
            "prevMinerId": previous_miner_id,
            "revocationKey": revocation_key,
            "prevRevocationKey": previous_revocation_key,
        });
        assert_eq!(miner_info::known(&self.node, miner_id), expected, "{event}");
        let (lines, followed) = self.follow();
        let line = lines.last().unwrap();
        assert_eq!((&line["hash"], &line["event"]), (&json!(block.to_string()), &json!(event)));
        assert_eq!((&line["verdict"], &line["acceptedByNode"]), (&json!("valid"), &json!(true)));
        assert_eq!((&line["minerId"], &line["refusal"]), (&json!(miner_id), &Value::Null));
        assert_eq!(followed, known, "{event}");
        block
    }

    /// Displaces a block and all after it by a longer chain of blocks without an identity.
    fn replace(&mut self, first: BlockHash) {
        self.node.call("invalidateblock", json!([first.to_string()]));
        let index = self.blocks.iter().position(|(block, _)| *block == first).unwrap();
        let left = self.blocks.split_off(index);
        let others = self.node.mine(left.len() as u32 + 1);
        self.blocks.extend(others.into_iter().map(|block| (block, "no-identity".to_owned())));
        let (lines, followed) = self.follow();
        let said = lines[0]["disconnected"].as_array().unwrap().iter().rev();
        let said: Vec<_> = said.map(|block| block["hash"].as_str().unwrap()).collect();
        assert_eq!(said, left.iter().map(|(block, _)| block.to_string()).collect::<Vec<_>>());
        assert_eq!(followed, of_node(&self.node));
    }

    /// Continues the scan that follows the chain. Answers what it says of the new blocks, line by
    /// line, and of all miners.
    fn follow(&self) -> (Vec<Value>, KnownMiners) {
        let followed = self.site.data_dir().join("followed");
        self.scan(&["--progress", followed.to_str().unwrap()])
    }

    /// Scans the chain. Answers what the scan says of the blocks, line by line, and of all miners.
    fn scan(&self, arguments: &[&str]) -> (Vec<Value>, KnownMiners) {
        let scan = ["miner", "scan", "--json", "--from", &self.from];
        let text = self.site.cli_ok(&[&scan, arguments].concat());
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        let mut lines: Vec<Value> = lines.collect();
        let known = of_scan(&lines.pop().unwrap());
        (lines, known)
    }

    /// Scans the chain from the beginning, without the blocks that have left it. Answers the event
    /// of each block, and what is known at the end.
    fn scan_anew(&self) -> (Vec<(BlockHash, String)>, KnownMiners) {
        let (lines, known) = self.scan(&[]);
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let event = |line: &Value| (text(&line["hash"]).parse().unwrap(), text(&line["event"]));
        (lines.iter().map(event).collect(), known)
    }

    /// Puts data into a transaction of the next block. Documents of `alias` then refer to it.
    fn refer_to_data(&self, alias: &str, number: u32) -> Txid {
        let file = self.site.data_dir().join("data.json");
        let id = "62b21572ca46";
        let reference = json!({ "brfcIds": [id], "data": { id: { "number": number } }, "vout": 0 });
        let data = json!({ "dataRefs": { "refs": [reference] } });
        std::fs::write(&file, data.to_string()).unwrap();
        self.site.cli_ok(&["miner", "data-refs", "--name", alias, file.to_str().unwrap()]);
        let scripts = self.server.text(&format!("/datarefs/{alias}/opreturns"));
        let scripts: Vec<String> = serde_json::from_str(&scripts).unwrap();
        let txid = miner_info::publish_data(&self.node, &scripts);
        let height = Template::of(&self.node, 1).height();
        let path = format!("/opreturn/{alias}/{height}/{txid}");
        let head = self.server.request("HEAD", &path, b"");
        assert_eq!(head.status, 200);
        let without = self.server.text(&format!("/opreturn/{alias}/{height}"));
        let script = self.server.text(&path);
        assert_ne!(script, without);
        assert_eq!(self.server.text(&format!("/opreturn/{alias}/{height}")), script);
        txid
    }

    /// Checks that the document of a block refers to this data, and that the check of the reference
    /// has this outcome.
    fn assert_refers_to(&self, block: BlockHash, data: Txid, outcome: &str) {
        let report = self.site.cli_json(&["miner", "verify", "--block", &block.to_string()]);
        assert_eq!(report["identity"]["dataRefs"][0]["txid"], data.to_string(), "{report:#}");
        let checks = report["outputs"][0]["checks"].as_array().unwrap();
        let check = checks.iter().find(|check| check["check"] == "data-refs").unwrap();
        assert_eq!(check["outcome"], outcome, "{report:#}");
    }
}

/// One miner begins with generation 1.0, and one upgrades to it. There are twenty blocks with an
/// identity, three of which leave the chain.
#[test]
fn a_node_and_a_scan_follow_identities_through_all_their_changes() {
    let mut history = History::begin();
    let (p1, r1) = (history.key("pool", "minerId"), history.key("pool", "revocationKey"));
    let o1 = history.key("old", "minerId");

    history.mine("pool", "first", [&p1, &p1], [&r1, &r1]);
    history.mine("old", "first", [&o1, &o1], ["", ""]);
    history.mine("pool", "continued", [&p1, &p1], [&r1, &r1]);

    // A rotation is announced until the service has seen it in a block. Nothing else can be
    // announced until then.
    assert_eq!(history.server.text("/opreturn/pool/rotate"), "OK");
    let p2 = history.key("pool", "minerId");
    assert_eq!(identity(&history.site, "pool")["announced"], json!(["rotation"]));
    assert_refuses_to_rotate(&history);
    history.mine("pool", "rotated", [&p2, &p1], [&r1, &r1]);
    assert_eq!(history.server.text("/opreturn/old/rotate"), "OK");
    let o2 = history.key("old", "minerId");
    history.mine("old", "rotated", [&o2, &o1], ["", ""]);
    await_acknowledgement(&history.site, "pool");
    history.mine("pool", "continued", [&p2, &p2], [&r1, &r1]);

    history.run(&["rotaterevocationkey", "--name", "pool"]);
    let r2 = history.key("pool", "revocationKey");
    history.run(&["upgrademinerid", "--yes", "--name", "old"]);
    let s1 = history.key("old", "revocationKey");
    history.mine("pool", "continued", [&p2, &p2], [&r2, &r1]);
    await_acknowledgement(&history.site, "pool");
    history.mine("old", "continued", [&o2, &o2], [&s1, &s1]);
    await_acknowledgement(&history.site, "old");

    history.run(&["rotateminerid", "--name", "pool"]);
    history.run(&["rotaterevocationkey", "--name", "pool"]);
    let (p3, r3) = (history.key("pool", "minerId"), history.key("pool", "revocationKey"));
    history.mine("pool", "rotated", [&p3, &p2], [&r3, &r2]);
    await_acknowledgement(&history.site, "pool");
    history.mine("old", "continued", [&o2, &o2], [&s1, &s1]);

    // The blocks with the data leave the chain. No other block has the data until it is published
    // again.
    let data = history.refer_to_data("pool", 1);
    let left = history.mine("pool", "continued", [&p3, &p3], [&r3, &r3]);
    history.assert_refers_to(left, data, "holds");
    let block = history.mine("pool", "continued", [&p3, &p3], [&r3, &r3]);
    history.assert_refers_to(block, data, "holds");
    history.replace(left);
    history.mine("old", "continued", [&o2, &o2], [&s1, &s1]);
    let block = history.mine("pool", "continued", [&p3, &p3], [&r3, &r3]);
    history.assert_refers_to(block, data, "unchecked");
    let data = history.refer_to_data("pool", 2);
    let block = history.mine("pool", "continued", [&p3, &p3], [&r3, &r3]);
    history.assert_refers_to(block, data, "holds");
    let indexed = history.node.call("datarefindexdump", json!([]));
    assert!(indexed.to_string().contains(&data.to_string()), "{indexed:#}");

    // A partial revocation does not change the state of the keys before the compromised one.
    history.run(&["revokemineridpartially", "--yes", "--name", "pool", "--minerid", &p3]);
    assert_eq!(miner_info::known(&history.node, &p3)["minerIdState"], "REVOKED");
    let p4 = history.key("pool", "minerId");
    history.mine("pool", "revoked-partially", [&p4, &p3], [&r3, &r3]);
    await_acknowledgement(&history.site, "pool");
    history.run(&["revokemineridcompletely", "--yes", "--name", "old"]);
    history.mine("old", "revoked-completely", [&o2, &o2], [&s1, &s1]);
    await_acknowledgement(&history.site, "old");
    assert_eq!(identity(&history.site, "old")["state"], "closed");
    history.mine("pool", "continued", [&p4, &p4], [&r3, &r3]);

    let known = of_node(&history.node);
    let state = |known: &Value| known["state"].as_str().unwrap().to_owned();
    let states: BTreeMap<_, _> = known.iter().map(|(id, known)| (id, state(known))).collect();
    let expected = [
        (&p1, "ROTATED"),
        (&p2, "ROTATED"),
        (&p3, "REVOKED"),
        (&p4, "CURRENT"),
        (&o1, "REVOKED"),
        (&o2, "REVOKED"),
    ];
    assert_eq!(states, expected.map(|(id, state)| (id, state.to_owned())).into());
    let (events, known_anew) = history.scan_anew();
    assert_eq!(events, history.blocks);
    assert_eq!(known_anew, known);
    lose_a_revocation_key(&mut history, &p4, &r3);
}

fn assert_refuses_to_rotate(history: &History) {
    let refused = history.server.post("/opreturn/pool/rotate", "");
    assert_eq!(refused.status, 409, "{}", refused.body);
    let expected = "The rotation of alias \"pool\" has not been seen in a block yet: until then nothing else can be announced";
    assert_eq!(refused.body, expected);
    let refused = history.site.cli(&["rotateminerid", "--name", "pool"]);
    assert_eq!((refused.code, refused.stderr.contains("has not been seen")), (1, true));
}

/// The block that showed a new revocation key leaves the chain. Nodes and scans that have seen it
/// continue from that key. A scan or a node that begins anew does not accept the identity any more.
fn lose_a_revocation_key(history: &mut History, id: &str, revocation_key: &str) {
    history.run(&["rotaterevocationkey", "--name", "pool"]);
    let next = history.key("pool", "revocationKey");
    let left = history.mine("pool", "continued", [id, id], [&next, revocation_key]);
    await_acknowledgement(&history.site, "pool");
    history.replace(left);
    history.mine("pool", "continued", [id, id], [&next, &next]);
    assert_all_taken(&history.node);
    let (mut events, known_anew) = history.scan_anew();
    assert_eq!(events.pop().unwrap().1, "refused");
    assert_eq!(events, history.blocks[..history.blocks.len() - 1]);
    await_rebuilt(&history.node, &known_anew);
}

#[test]
fn an_upgraded_identity_remains_the_same_miner() {
    let node = node();
    let site = Site::on(&node);
    let server = site.server();
    site.cli_ok(&["generateminerid", "--name", "pool"]);
    site.cli_ok(&["config", "--name", "pool", "name=a pool"]);
    site.cli_ok(&["generatevctx", "--name", "pool"]);
    let first = miner_id(&server, "pool");
    let mine_0_2 = || miner_info::mine_coinbase_document(&node, &server, "pool");
    mine_0_2();
    assert_eq!(server.text("/opreturn/pool/rotate"), "OK");
    mine_0_2();
    let second = miner_id(&server, "pool");
    site.cli_ok(&["upgrademinerid", "--yes", "--name", "pool"]);
    assert_eq!(server.text("/opreturn/pool/isvalid"), "true");
    assert_eq!(identity(&site, "pool")["minerContact"], json!({ "name": "a pool" }));
    mine(&node, &server);
    await_acknowledgement(&site, "pool");
    mine(&node, &server);
    assert_eq!(states(&node), [state(&second, "CURRENT"), state(&first, "ROTATED")]);
    let revocation_key = identity(&site, "pool")["revocationKey"].clone();
    assert_eq!(miner_info::known(&node, &second)["revocationKey"], revocation_key);
    assert_all_taken(&node);
}

/// Nodes accept an upgrade only with a document without a new revocation key, and a revocation only
/// after the upgrade.
#[test]
fn revocation_keys_are_used_once_a_block_has_shown_the_upgrade() {
    let node = node();
    let site = Site::on(&node);
    let server = site.server();
    site.cli_ok(&["generateminerid", "--name", "pool"]);
    site.cli_ok(&["generatevctx", "--name", "pool"]);
    miner_info::mine_coinbase_document(&node, &server, "pool");
    site.cli_ok(&["upgrademinerid", "--yes", "--name", "pool"]);
    for (command, reason) in [
        (&["rotaterevocationkey"][..], "new revocation key of alias \"pool\" has not been seen"),
        (&["revokemineridcompletely", "--yes"], "with a document of protocol 1.0 yet"),
    ] {
        let refused = site.cli(&[command, &["--name", "pool"]].concat());
        assert_eq!(refused.code, 1, "{}", refused.stdout);
        assert!(refused.stderr.contains(reason), "{}", refused.stderr);
    }
    assert_eq!(identity(&site, "pool")["announced"], json!(["revocationKey"]));
    mine(&node, &server);
    await_acknowledgement(&site, "pool");
    site.cli_ok(&["rotaterevocationkey", "--name", "pool"]);
    mine(&node, &server);
    let (own, miner_id) = (identity(&site, "pool"), miner_id(&server, "pool"));
    assert_eq!(miner_info::known(&node, &miner_id)["revocationKey"], own["revocationKey"]);
    assert_all_taken(&node);
}

/// A forced rotation skips a key that no block had shown. If a block has shown it after all, the
/// next key follows it.
#[test]
fn a_forced_rotation_follows_what_the_node_has_seen() {
    let node = node();
    let site = Site::on(&node);
    let server = site.server();
    site.cli_ok(&["generateminerid", "--name", "pool", "--protocol", "1.0"]);
    mine(&node, &server);
    let first = miner_id(&server, "pool");
    assert_eq!(server.text("/opreturn/pool/rotate"), "OK");
    site.cli_ok(&["rotateminerid", "--name", "pool", "--force", "--yes"]);
    let third = miner_id(&server, "pool");
    mine(&node, &server);
    assert_eq!(states(&node), [state(&third, "CURRENT"), state(&first, "ROTATED")]);
    await_acknowledgement(&site, "pool");

    assert_eq!(server.post("/opreturn/pool/rotate", "").body, "OK");
    let fourth = miner_id(&server, "pool");
    mine(&node, &server);
    site.cli_ok(&["rotateminerid", "--name", "pool", "--force", "--yes"]);
    let fifth = miner_id(&server, "pool");
    // The service has to see the fourth key in its block before its documents can name it as the
    // previous key of the fifth.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while identity(&site, "pool")["prevMinerId"] != json!(fourth) {
        assert!(std::time::Instant::now() < deadline, "{:#}", identity(&site, "pool"));
        node.mine(1);
        std::thread::sleep(std::time::Duration::from_millis(500));
    }
    mine(&node, &server);
    assert_eq!(states(&node)[0], state(&fifth, "CURRENT"));
    await_acknowledgement(&site, "pool");
    assert_all_taken(&node);
}
