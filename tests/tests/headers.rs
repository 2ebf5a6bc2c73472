//! Headers that a real node gives by the network's own protocol, and what server and command line make of
//! them.

use std::fs;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bsv_network::bsv_tx::{BlockHash, Network};
use bsv_network::headers::{CaughtUp, Checkpoint, HeaderFile, HeaderSource, Peer};
use bsv_store::DirLock;
use bsv_tests::build::workspace;
use bsv_tests::killer::Killer;
use bsv_tests::rival::{Rival, height, tip};
use bsv_tests::{Node, Server, Site, is_full_run, repetitions};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::time::timeout;

const NETWORK: Network = Network::Regtest;

/// A client of a node, which keeps headers in a directory of its own.
struct Client {
    runtime: Runtime,
    source: HeaderSource,
    file: Arc<HeaderFile>,
    directory: tempfile::TempDir,
}

impl Client {
    fn of(node: &Node) -> Self {
        let runtime = Runtime::new().unwrap();
        let address = address(node);
        let peer = runtime.block_on(Peer::connect(NETWORK, &address)).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let file = open(&directory);
        Self { runtime, source: HeaderSource::Peer(peer), file, directory }
    }

    fn catch_up(&mut self) -> CaughtUp {
        let Self { runtime, source, file, .. } = self;
        runtime.block_on(source.catch_up(file, || u64::MAX)).unwrap()
    }

    /// The best branch is the main chain of the node.
    fn agrees_with(&self, node: &Node) {
        let chain = self.file.chain();
        assert_eq!(json!(chain.tip().hash.to_string()), tip(node));
        for height in [0, 1, chain.tip().height / 2] {
            let hash = chain.header_at(height).unwrap().block_hash().to_string();
            assert_eq!(json!(hash), node.call("getblockhash", json!([height])));
        }
    }
}

fn address(node: &Node) -> String {
    format!("{}:{}", node.host, node.peer_port)
}

fn open(directory: &tempfile::TempDir) -> Arc<HeaderFile> {
    let path = directory.path().join("headers");
    Arc::new(HeaderFile::open(&path, NETWORK, &Checkpoint::of(NETWORK)).unwrap())
}

#[test]
fn a_node_gives_its_headers_and_announces_new_ones() {
    let node = Node::start();
    node.mine(2_150);
    let mut client = Client::of(&node);
    assert_eq!(client.catch_up().valid, 2_150);
    client.agrees_with(&node);
    assert_eq!(client.catch_up(), CaughtUp::default());

    node.mine(1);
    // The node may still announce the blocks before.
    while json!(client.file.chain().tip().hash.to_string()) != tip(&node) {
        let HeaderSource::Peer(peer) = &mut client.source else { unreachable!() };
        let announced = async { timeout(Duration::from_secs(30), peer.announcement()).await };
        client.runtime.block_on(announced).unwrap().unwrap();
        client.catch_up();
    }
    client.agrees_with(&node);

    let Client { file, directory, .. } = client;
    let tip = file.chain().tip();
    drop(file);
    assert_eq!(open(&directory).chain().tip(), tip);
}

#[test]
fn the_branch_with_most_work_is_followed_however_deep_it_begins() {
    let deepest = repetitions("headers that leave the best branch", 2_000, 150) as u32;
    for depth in [1, 100, deepest] {
        let node = Node::start_with(&["disablesafemode=1"]);
        node.mine(10);
        let rival = Rival::of(&node);
        node.mine(depth);
        let mut client = Client::of(&node);
        client.catch_up();
        let lost: BlockHash = tip(&node).as_str().unwrap().parse().unwrap();
        // A branch with the same work changes nothing.
        rival.mine(&[], depth);
        let address = address(&rival.node);
        let peer = client.runtime.block_on(Peer::connect(NETWORK, &address)).unwrap();
        let mut other = HeaderSource::Peer(peer);
        let Client { runtime, file, .. } = &mut client;
        runtime.block_on(other.catch_up(file, || u64::MAX)).unwrap();
        client.agrees_with(&node);

        rival.outgrow(&node);
        let Client { runtime, file, .. } = &mut client;
        let caught_up = runtime.block_on(other.catch_up(file, || u64::MAX)).unwrap();
        assert_eq!(caught_up.left, depth);
        client.agrees_with(&rival.node);
        assert_eq!(client.file.chain().height_of(&lost), None);
        let length = client.directory.path().join("headers").metadata().unwrap().len();
        assert_eq!(length, 80 + height(&rival.node) * 80);
    }
}

/// A site whose server takes headers from a node, and asks no node for anything else.
fn site(node: &Node) -> Site {
    let mut site = Site::new();
    site.set("services", json!({ "headers": { "peers": [address(node)] } }));
    site
}

/// Waits until something holds.
fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        thread::sleep(Duration::from_millis(100));
    }
}

/// What the server says of its headers, and whether its wallet is ready.
fn readiness(server: &Server) -> (Value, u16) {
    let reply = server.wallet().get("/readyz");
    let body: Value = serde_json::from_str(&reply.body).unwrap();
    (body["headers"].clone(), reply.status)
}

#[test]
fn the_commands_fetch_and_show_headers() {
    let node = Node::start();
    node.mine(20);
    let site = site(&node);
    let hash = tip(&node);
    // Another command has the directory.
    let lock = DirLock::acquire(&site.network_dir(), "bsv-cli").unwrap();
    let done = site.cli(&["headers", "sync"]);
    assert!(done.code != 0 && done.stderr.contains("in use by bsv-cli"), "{done:?}");
    drop(lock);
    let synced = site.cli_json(&["headers", "sync"]);
    assert_eq!(synced, json!({ "height": 20, "hash": hash, "failures": [] }));
    site.cli_ok(&["init"]);
    let said = site.cli_ok(&["headers", "status"]);
    assert!(said.starts_with(&format!("block 20 {}, ", hash.as_str().unwrap())), "{said}");
    assert!(said.contains(&format!("p2p {}: new", address(&node))), "{said}");

    let server = site.server();
    node.mine(1);
    wait_until("the server has the new block", || {
        let status = site.cli_json(&["headers", "status"]);
        status["headers"]["height"] == 21 && status["services"][0]["state"] == "live"
    });
    let said = site.cli_ok(&["headers", "status"]);
    assert!(said.contains(": live, last answer "), "{said}");
    assert!(site.cli_ok(&["status"]).contains("\nheaders      block 21 "), "{said}");
    assert_eq!(readiness(&server), (json!("current"), 200));
    let done = site.cli(&["headers", "sync"]);
    assert!(done.code != 0 && done.stderr.contains("a server runs"), "{done:?}");
    drop(server);

    let mut away = Site::new();
    away.set("services", json!({ "headers": { "peers": ["127.0.0.1:1"] } }));
    let done = away.cli(&["headers", "sync"]);
    assert!(done.code == 1 && done.stderr.contains("127.0.0.1:1 does not answer"), "{done:?}");
}

#[test]
fn headers_are_behind_while_they_are_ahead_of_the_clock() {
    let node = Node::start();
    node.mine(5);
    let site = site(&node);
    site.cli_ok(&["init"]);
    let server = site.server();
    wait_until("the headers are there", || {
        site.cli_json(&["headers", "status"])["headers"]["height"] == 5
    });
    assert_eq!(readiness(&server), (json!("current"), 200));
    // As if the clock of this machine were slow.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    node.call("setmocktime", json!([now + 10_000]));
    node.mine(1);
    wait_until("the headers are behind", || readiness(&server) == (json!("behind"), 503));
    let done = site.cli(&["status"]);
    assert!(done.code == 1 && done.stdout.contains("check the clock"), "{done:?}");
    // The node is not blamed.
    let status = site.cli_json(&["headers", "status"]);
    assert_eq!(status["services"][0]["state"], "live");
    drop(server);
    let done = site.cli(&["headers", "sync"]);
    assert!(done.code == 1 && done.stderr.contains("check the clock"), "{done:?}");
}

#[test]
fn headers_are_behind_while_the_newest_one_is_old_and_a_damaged_file_is_put_aside() {
    let mut site = Site::with(json!({ "network": "testnet" }));
    site.set("services", json!({ "headers": { "urls": ["http://127.0.0.1:1/v2"] } }));
    site.cli_ok(&["init"]);
    let path = site.network_dir().join("headers");
    fs::write(&path, "damaged").unwrap();
    let server = site.server();
    assert_eq!(readiness(&server), (json!("behind"), 503));
    let status = site.cli_json(&["headers", "status"]);
    assert_eq!(status["headers"]["height"], 1_188_697);
    assert_eq!(fs::read_to_string(path.with_extension("damaged")).unwrap(), "damaged");
}

#[test]
fn a_file_of_headers_is_verified() {
    let site = Site::with(json!({ "network": "livenet" }));
    let headers = workspace().join("bsv-network/tests/headers/main-900000-909999.headers");
    let verify = ["headers", "verify", headers.to_str().unwrap(), "--height", "900000"];
    assert_eq!(site.cli_json(&verify), json!({ "valid": 9_853, "height": 909_999 }));
    let said = site.cli_ok(&verify);
    assert_eq!(said, "9853 headers after the trusted ones are valid, up to block 909999");

    let headers = fs::read(headers).unwrap();
    let path = site.data_dir().join("altered");
    let fails = |bytes: &[u8], height: &str, why: &str| {
        fs::write(&path, bytes).unwrap();
        let file = path.to_str().unwrap();
        let done = site.cli(&["headers", "verify", file, "--height", height]);
        assert!(done.code == 1 && done.stderr.contains(why), "{done:?}");
    };
    let mut altered = headers.clone();
    altered[5_000 * 80 + 70] ^= 1;
    fails(&altered, "900000", "the header at height 905000");
    let repeated = [&headers[..200 * 80], &headers[199 * 80..]].concat();
    fails(&repeated, "900000", "the header at height 900200: the header does not follow");
    fails(&headers, "400000", "headers are judged from 504031 on");
    fails(&headers[..100 * 80], "900000", "the file holds no 147 headers");
}

#[test]
fn the_file_of_headers_survives_a_kill_at_each_write() {
    let node = Node::start_with(&["disablesafemode=1"]);
    node.mine(10);
    let rival = Rival::of(&node);
    node.mine(20);
    let mut site = site(&node);
    site.keep_on_disk();
    let path = site.network_dir().join("headers");
    let sync = |site: &Site| site.cli_json(&["headers", "sync"])["hash"].clone();
    let lost = sync(&site);
    let before = fs::read(&path).unwrap();
    rival.mine(&[], 25);
    rival.show_to(&node);
    assert_eq!(sync(&site), tip(&node));
    assert_ne!(tip(&node), lost);
    let after = fs::read(&path).unwrap();

    site.set_env("BSV_KILL_WRITES", "1");
    let killer = Killer::install(&mut site);
    let stride = if is_full_run() { 1 } else { 3 };
    for contents in [Some(&before), None] {
        let mut kills = 0;
        for step in (1..).step_by(stride) {
            match contents {
                Some(contents) => fs::write(&path, contents).unwrap(),
                None => drop(fs::remove_file(&path)),
            }
            killer.kill_at(step);
            let done = site.cli(&["headers", "sync"]);
            killer.spare();
            // What is there is the beginning of one of the two chains.
            let kept = fs::read(&path).unwrap_or_default();
            let whole = &kept[..kept.len() - kept.len() % 80];
            assert!(before.starts_with(whole) || after.starts_with(whole), "step {step}");
            if done.code == 0 {
                break;
            }
            assert_eq!(done.code, -1, "step {step}: {done:?}");
            kills += 1;
            assert_eq!(sync(&site), tip(&node), "step {step}");
            assert_eq!(fs::read(&path).unwrap(), after, "step {step}");
        }
        eprintln!("killed at {kills} steps, 1 of {stride} (BSV_TEST_FULL=1 tries all)");
        assert!(kills >= 5);
    }
}
