//! Nodes that authenticate their connections to each other with miner ids. They get keys and
//! signatures from the service.

use std::thread;
use std::time::{Duration, Instant};

use bsv_tests::rival::{height, tip};
use bsv_tests::{Node, Server, Site, free_port, miner_info};
use serde_json::{Value, json};

/// A miner: a node, and the service that the node asks.
struct Miner {
    node: Node,
    site: Site,
    server: Option<Server>,
    /// The port at which the node asks the service.
    port: u16,
}

impl Miner {
    /// A miner whose documents announce this IP address.
    fn start(public_ip: &str) -> Self {
        let port = free_port();
        let url = format!("mineridgeneratorurl=http://127.0.0.1:{port}");
        let reputation = ["mineridreputation_m=1", "mineridreputation_n=10"];
        let generator = [&url, "mineridgeneratoralias=pool"];
        let debug = ["debug=netconn"];
        let node = Node::start_with(&[&generator[..], &reputation, &debug].concat());
        let site = Site::on(&node);
        site.cli_ok(&["miner", "create", "--name", "pool", "--protocol", "1.0"]);
        let extensions = site.data_dir().join("extensions.json");
        let announced = json!({ "PublicIP": public_ip, "PublicPort": node.peer_port });
        std::fs::write(&extensions, announced.to_string()).unwrap();
        let extensions = extensions.to_str().unwrap();
        site.cli_ok(&["miner", "extensions", "--name", "pool", extensions]);
        Self { node, site, server: None, port }
    }

    /// Restarts the service with further settings.
    fn serve(&mut self, settings: &Value) {
        self.server = None;
        for (name, value) in settings.as_object().unwrap() {
            self.site.set(name, value.clone());
        }
        self.server = Some(self.site.server());
    }

    /// How often the node has failed to prove its identity.
    fn failures(&self) -> usize {
        let log = self.node.log();
        let words = ["Ignoring authch messages", "Failed to process authch"];
        log.lines().filter(|line| words.iter().any(|word| line.contains(word))).count()
    }

    /// Whether the node has authenticated its one connection.
    fn is_authenticated(&self) -> bool {
        self.peers().iter().any(|peer| peer["authconn"] == true)
    }

    fn peers(&self) -> Vec<Value> {
        self.node.call("getpeerinfo", json!([])).as_array().unwrap().clone()
    }
}

/// Two miners on one chain, each of which knows the identity of the other.
fn miners(public_ip: &str) -> [Miner; 2] {
    let mut miners = [(); 2].map(|()| Miner::start(public_ip));
    for (index, other) in [(0, 1), (1, 0)] {
        miners[index].node.mine(101);
        copy(&miners[index].node, &miners[other].node);
    }
    for (index, other) in [(0, 1), (1, 0)] {
        let miner = &mut miners[index];
        miner_info::fund(&miner.node);
        miner.serve(&json!({}));
        miner_info::mine_from(&miner.node, miner.server.as_ref().unwrap(), "pool");
        copy(&miners[index].node, &miners[other].node);
    }
    for miner in &miners {
        assert_eq!(miner_info::states(&miner.node).len(), 2, "{}", miner.node.log());
    }
    miners
}

/// Gives a node the blocks that it does not have.
fn copy(from: &Node, to: &Node) {
    for height in height(to) + 1..=height(from) {
        let hash = from.call("getblockhash", json!([height]));
        let block = from.call("getblock", json!([hash, false]));
        to.call("submitblock", json!([block]));
    }
    assert_eq!(tip(to), tip(from));
}

fn wait_until(miners: &[Miner; 2], what: &str, is_it: impl Fn(&Miner) -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !miners.iter().all(&is_it) {
        let logs = miners.each_ref().map(|miner| miner.node.log());
        assert!(Instant::now() < deadline, "{what}: {}\n\n{}", logs[0], logs[1]);
        thread::sleep(Duration::from_millis(50));
    }
}

/// Closes the connection between the nodes, if there is one, and makes a new one.
fn connect(miners: &[Miner; 2]) {
    let [first, second] = miners;
    let peer = format!("127.0.0.1:{}", second.node.peer_port);
    if !first.peers().is_empty() {
        first.node.call("disconnectnode", json!([peer]));
        wait_until(miners, "disconnected", |miner| miner.peers().is_empty());
    }
    first.node.call("addnode", json!([peer, "onetry"]));
    wait_until(miners, "connected", |miner| !miner.peers().is_empty());
}

/// Connects the nodes, and waits until both have failed to authenticate the connection. A node
/// whose call to the service timed out logs nothing. In this case, the nodes are connected again.
fn connect_in_vain(miners: &[Miner; 2], has_given_up: impl Fn(&Miner) -> usize) {
    let before = miners.each_ref().map(&has_given_up);
    let have_given_up = || {
        let counts = miners.each_ref().map(&has_given_up);
        counts.iter().zip(before).all(|(count, before)| *count > before)
    };
    for _ in 0..12 {
        connect(miners);
        let deadline = Instant::now() + Duration::from_secs(5);
        while Instant::now() < deadline {
            assert_eq!(miners.each_ref().map(Miner::is_authenticated), [false; 2]);
            if have_given_up() {
                return;
            }
            thread::sleep(Duration::from_millis(50));
        }
    }
    let log = |miner: &Miner| {
        let log = miner.node.log();
        let lines: Vec<_> = log.lines().rev().take(60).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    };
    panic!("the nodes did not give up: {}\n\n{}", log(&miners[0]), log(&miners[1]));
}

#[test]
fn nodes_prove_their_identity_with_the_service() {
    let mut miners = miners("127.0.0.1");
    // If no tokens are required, the nodes can ask the usual listener.
    for miner in &mut miners {
        miner.serve(&json!({ "port": miner.port }));
    }
    connect(&miners);
    wait_until(&miners, "authenticated", Miner::is_authenticated);

    // A node cannot send a token.
    for miner in &mut miners {
        miner.serve(&json!({ "port": miner.port, "auth": { "requireToken": true } }));
        assert_eq!(miner.server.as_ref().unwrap().get("/minerid/pool").status, 401);
    }
    connect_in_vain(&miners, Miner::failures);

    // At its own listener, a node needs no token.
    for miner in &mut miners {
        let listener = json!({ "port": miner.port, "alias": "pool" });
        miner.serve(&json!({ "port": 0, "minerid": { "nodeListener": listener } }));
        assert_eq!(miner.server.as_ref().unwrap().get("/minerid/pool").status, 401);
    }
    connect(&miners);
    wait_until(&miners, "authenticated", Miner::is_authenticated);

    // The service proves nothing with an alias whose blind signing is off.
    for miner in &miners {
        miner.site.cli_ok(&["miner", "blind-signing", "--name", "pool", "off"]);
    }
    connect_in_vain(&miners, Miner::failures);
}

#[test]
fn a_node_believes_no_peer_from_another_address_than_the_announced_one() {
    let mut miners = miners("127.0.0.9");
    for miner in &mut miners {
        miner.serve(&json!({ "port": miner.port }));
    }
    connect_in_vain(&miners, |miner| {
        let log = miner.node.log();
        log.lines().filter(|line| line.contains("Public ip address does not match")).count()
    });
}
