//! Headers that a real node gives by the network's own protocol.

use std::sync::Arc;
use std::time::Duration;

use bsv_network::bsv_tx::{BlockHash, Network};
use bsv_network::headers::{CaughtUp, Checkpoint, HeaderFile, HeaderSource, Peer};
use bsv_tests::rival::{Rival, height, tip};
use bsv_tests::{Node, repetitions};
use serde_json::json;
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

    let HeaderSource::Peer(peer) = &mut client.source else { unreachable!() };
    node.mine(1);
    let announced = async { timeout(Duration::from_secs(30), peer.announcement()).await };
    client.runtime.block_on(announced).unwrap().unwrap();
    client.catch_up();
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
