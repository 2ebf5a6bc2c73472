//! Sending transactions to a node, and finding them there.

use bsv_network::{Broadcast, NodeCredentials, NodeError, NodeRpc, NodeSettings, TransactionPlace};
use bsv_tests::{Gate, Node};
use bsv_tx::{Transaction, Txid};
use serde_json::json;

use crate::node::setup::{BSV, Payee, code_of, node_with_coin, rich_node};

#[tokio::test]
async fn a_transaction_is_known_in_the_mempool_and_in_a_block() {
    let node = rich_node();
    let rpc = node.rpc();
    let (payee, other) = (Payee::new(), Payee::new());
    let coin = payee.receive(rpc, BSV).await;
    let payment = payee.pay(&coin, &other, 500);
    let txid = payment.txid();
    assert_eq!(rpc.transaction(&txid).await, Ok(None));
    assert_eq!(rpc.has_transaction_index().await, Ok(true));
    assert_eq!(rpc.transaction_place(&txid).await, Ok(TransactionPlace::Nowhere));
    rpc.send_transaction(&payment).await.unwrap();
    assert_eq!(rpc.transaction(&txid).await, Ok(Some(payment.clone())));
    assert_eq!(rpc.transaction_place(&txid).await, Ok(TransactionPlace::Mempool));
    let block = node.mine(1)[0];
    assert_eq!(rpc.transaction(&txid).await, Ok(Some(payment)));
    assert_eq!(rpc.transaction_place(&txid).await, Ok(TransactionPlace::Block(block)));
    assert_eq!(rpc.transaction(&Txid::from_bytes([7; 32])).await, Ok(None));
}

/// Strangers decide how long transactions are, and a node's details of one are far longer still.
#[tokio::test]
async fn where_a_transaction_is_takes_no_details_of_it() {
    let (node, payee, coin) = node_with_coin().await;
    let gate = Gate::before(&node);
    let rpc = NodeRpc::new(NodeSettings { port: gate.port(), ..node.settings() });
    let payment = payee.pay(&coin, &Payee::new(), 500);
    let txid = payment.txid();
    assert_eq!(rpc.transaction_place(&txid).await, Ok(TransactionPlace::Nowhere));
    rpc.send_transaction(&payment).await.unwrap();
    assert_eq!(rpc.transaction_place(&txid).await, Ok(TransactionPlace::Mempool));
    let block = node.mine(1)[0];
    assert_eq!(rpc.transaction_place(&txid).await, Ok(TransactionPlace::Block(block)));
    node.call("invalidateblock", json!([block.to_string()]));
    assert_eq!(rpc.transaction_place(&txid).await, Ok(TransactionPlace::Mempool));
    node.call("reconsiderblock", json!([block.to_string()]));
    assert_eq!(gate.heard("getrawtransaction", ""), 0);

    // Nodes give no proof for a transaction that is alone in its block.
    let block = node.mine(1)[0];
    let coinbase = rpc.block_coinbase(&block).await.unwrap().unwrap().coinbase.txid();
    assert_eq!(rpc.transaction_place(&coinbase).await, Ok(TransactionPlace::Block(block)));
    node.call("invalidateblock", json!([block.to_string()]));
    assert_eq!(rpc.transaction_place(&coinbase).await, Ok(TransactionPlace::Nowhere));
}

#[tokio::test]
async fn several_entries_of_the_mempool_come_in_one_request() {
    let (node, payee, mut coin) = node_with_coin().await;
    let gate = Gate::before(&node);
    let rpc = NodeRpc::new(NodeSettings { port: gate.port(), ..node.settings() });
    let mut txids = vec![Txid::from_bytes([7; 32])];
    for _ in 0..3 {
        let payment = payee.pay(&coin, &payee, 500);
        rpc.send_transaction(&payment).await.unwrap();
        coin = payee.coin_in(&payment);
        txids.push(payment.txid());
    }
    let entries = rpc.mempool_entries(&txids).await.unwrap();
    assert_eq!(entries[0], None);
    let parents = entries[1..].iter().flatten().map(|entry| entry.parents.clone());
    assert_eq!(parents.collect::<Vec<_>>(), [vec![], vec![txids[1]], vec![txids[2]]]);
    assert_eq!(rpc.mempool_entries(&[]).await, Ok(vec![]));
    assert_eq!(gate.heard("getmempoolentry", ""), 1);
}

#[tokio::test]
async fn a_transaction_is_sent_once_and_a_second_spend_refused() {
    let (node, payee, coin) = node_with_coin().await;
    let (rpc, other) = (node.rpc(), Payee::new());
    let payment = payee.pay(&coin, &other, 500);
    let rival = payee.pay(&coin, &payee, 700);

    assert_eq!(rpc.send_transaction(&payment).await, Ok(Broadcast::Accepted));
    assert_eq!(rpc.send_transaction(&payment).await, Ok(Broadcast::AlreadyKnown), "in mempool");
    let error = rpc.send_transaction(&rival).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the node refused sendrawtransaction: 258: txn-mempool-conflict (code -26)"
    );
    assert!(!error.is_unavailable());
    node.mine(1);
    assert_eq!(rpc.send_transaction(&payment).await, Ok(Broadcast::AlreadyKnown), "mined");
    assert_eq!(code_of(&rpc.send_transaction(&rival).await.unwrap_err()), -25);

    let next = other.pay(&other.coin_in(&payment), &payee, 500);
    assert_eq!(rpc.send_transaction(&next).await, Ok(Broadcast::Accepted));
    node.mine(1);
    let again = rpc.send_transaction(&payment).await.unwrap_err();
    assert_eq!(code_of(&again), -25, "mined and all its outputs spent");
}

#[tokio::test]
async fn a_senseless_transaction_is_refused() {
    let node = rich_node();
    let rpc = node.rpc();
    let payee = Payee::new();
    let coin = payee.receive(rpc, BSV).await;
    let mut payment = payee.pay(&coin, &payee, 500);
    payment.outputs[0].satoshis -= 1;
    let error = rpc.send_transaction(&payment).await.unwrap_err();
    assert_eq!(code_of(&error), -26, "{error}");
    let empty = Transaction { version: 1, inputs: vec![], outputs: vec![], lock_time: 0 };
    let error = rpc.send_transaction(&empty).await.unwrap_err();
    assert!(matches!(error, NodeError::Rejected { .. }), "{error}");
    let error = node.try_call("sendrawtransaction", json!(["00"])).unwrap_err();
    assert_eq!(code_of(&error), -22, "{error}");
}

#[tokio::test]
async fn a_node_that_cannot_be_used_is_given_no_transaction() {
    let mut node = Node::start();
    let empty = Transaction { version: 1, inputs: vec![], outputs: vec![], lock_time: 0 };
    let stranger = NodeRpc::new(NodeSettings {
        credentials: NodeCredentials::password(&node.user, "wrong"),
        ..node.settings()
    });
    assert_eq!(stranger.submit_transaction(&empty).await, Err(NodeError::Unauthorized));
    node.stop();
    let error = node.rpc().submit_transaction(&empty).await.unwrap_err();
    assert!(matches!(error, NodeError::Unreachable { .. }), "{error}");
}
