//! How many calls a node gets at once.

use std::time::Duration;

use bsv_network::{NodeError, NodeRpc, NodeSettings};
use bsv_tests::{Gate, Hold, Node};

const HELD: &str = "getsettings";

/// Whether a call failed because its time was over.
fn is_late(error: &NodeError) -> bool {
    matches!(error, NodeError::Unreachable { reason, .. } if reason.starts_with("it did not answer within"))
}

fn client_through(gate: &Gate, node: &Node) -> NodeRpc {
    NodeRpc::new(NodeSettings { port: gate.port(), ..node.settings() })
}

#[tokio::test(flavor = "multi_thread")]
async fn each_client_has_turns_of_its_own() {
    let node = Node::start();
    let gate = Gate::before(&node);
    let first = client_through(&gate, &node).with_turns(2);
    let second = first.clone().with_turns(1);
    gate.shut(HELD, Hold::Call);
    let calls: Vec<_> = (0..2)
        .map(|_| {
            let first = first.clone();
            tokio::spawn(async move { first.policy().await })
        })
        .collect();
    tokio::task::block_in_place(|| gate.wait_for(2));
    let waiting = first.clone().with_timeout(Duration::from_millis(300));
    assert!(is_late(&waiting.tip().await.unwrap_err()));
    let genesis = node.rpc().tip().await.unwrap().hash;
    assert!(is_late(&waiting.block(&genesis).await.unwrap_err()));
    assert_eq!(gate.heard("getblock", ""), 0);
    assert_eq!(second.tip().await.unwrap().height, 0);
    gate.open();
    for call in calls {
        call.await.unwrap().unwrap();
    }
    assert_eq!(first.tip().await.unwrap().height, 0);
}

#[tokio::test]
async fn a_call_keeps_its_turn_until_the_node_has_done_it() {
    let node = Node::start();
    let gate = Gate::before(&node);
    let rpc = client_through(&gate, &node).with_turns(1);
    let rpc = rpc.with_timeout(Duration::from_millis(300));
    gate.shut(HELD, Hold::Call);
    assert!(is_late(&rpc.policy().await.unwrap_err()));
    assert!(is_late(&rpc.tip().await.unwrap_err()));
    assert_eq!(gate.heard("getblockchaininfo", ""), 0);
    gate.open();
    assert_eq!(rpc.with_timeout(Duration::from_secs(10)).tip().await.unwrap().height, 0);
}
