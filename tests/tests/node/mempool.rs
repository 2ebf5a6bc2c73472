//! Which submitted transactions a node shows in its mempool.

use std::time::{Duration, Instant};

use bsv_network::{
    Broadcast, ChainTip, Mempool, MempoolEntry, NodeError, OutputState, Submitted, TransactionPlace,
};
use bsv_tests::Node;
use bsv_tx::{Transaction, Txid};
use serde_json::json;

use crate::node::setup::{BSV, Payee, code_of, node_with_coin, rich_node};

fn shown(fee: u64, transaction: &Transaction, parents: &[Txid]) -> MempoolEntry {
    MempoolEntry { fee, size: transaction.to_bytes().len() as u64, parents: parents.to_vec() }
}

#[tokio::test]
async fn what_is_submitted_is_in_the_mempool_or_not_shown() {
    let (node, payee, coin) = node_with_coin().await;
    let (rpc, other) = (node.rpc(), Payee::new());
    let payment = payee.pay(&coin, &other, 500);
    let txid = payment.txid();
    assert_eq!(rpc.mempool_entry(&txid).await, Ok(None));
    for what in ["new", "already in the mempool"] {
        let entry = shown(500, &payment, &[]);
        let submitted = rpc.submit_transaction(&payment).await;
        assert_eq!(submitted, Ok(Submitted::InMempool(entry.clone())), "{what}");
        assert_eq!(rpc.mempool_entry(&txid).await, Ok(Some(entry)), "{what}");
    }
    let block = node.mine(1)[0];
    assert_eq!(rpc.submit_transaction(&payment).await, Ok(Submitted::NotShown), "mined");
    assert_eq!(rpc.transaction_place(&txid).await, Ok(TransactionPlace::Block(block)));
    assert_eq!(rpc.mempool_entry(&txid).await, Ok(None));
}

#[tokio::test]
async fn a_time_locked_transaction_is_accepted_but_not_shown() {
    // By default, the node looks only every ten minutes for transactions that have become final.
    let node = Node::start_with(&["checknonfinalfreq=200"]);
    node.mine(110);
    let rpc = node.rpc();
    let (payee, other) = (Payee::new(), Payee::new());
    let coin = payee.receive(rpc, BSV).await;
    node.mine(1);
    let height = rpc.tip().await.unwrap().height;
    let payment = payee.lock(payee.pay(&coin, &other, 500), &coin.1, height + 2, 0);
    let txid = payment.txid();
    assert_eq!(rpc.send_transaction(&payment).await, Ok(Broadcast::Accepted));
    assert_eq!(rpc.send_transaction(&payment).await, Ok(Broadcast::AlreadyKnown));
    assert_eq!(node.call("getrawnonfinalmempool", json!([])), json!([txid.to_string()]));

    assert_eq!(rpc.submit_transaction(&payment).await, Ok(Submitted::NotShown));
    assert_eq!(rpc.transaction_place(&txid).await, Ok(TransactionPlace::Nowhere));
    assert_eq!(rpc.transaction(&txid).await, Ok(None));
    assert_eq!(rpc.mempool_entry(&txid).await, Ok(None));
    assert_eq!(rpc.mempool().await, Ok(vec![]));
    let unspent = OutputState::Unspent { satoshis: BSV, confirmations: 1 };
    assert_eq!(rpc.outputs(&[coin.0], Mempool::Include).await, Ok(vec![unspent]));

    node.mine(1);
    assert_eq!(rpc.transaction_place(&txid).await, Ok(TransactionPlace::Nowhere), "a block early");
    node.mine(1);
    let deadline = Instant::now() + Duration::from_secs(30);
    while rpc.transaction_place(&txid).await != Ok(TransactionPlace::Mempool) {
        assert!(Instant::now() < deadline, "it is final and not in the mempool");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let entry = shown(500, &payment, &[]);
    assert_eq!(rpc.submit_transaction(&payment).await, Ok(Submitted::InMempool(entry)));
}

#[tokio::test]
async fn a_node_and_the_rule_agree_on_what_is_final() {
    let node = rich_node();
    let rpc = node.rpc();
    let payee = Payee::new();
    let ChainTip { height, median_time, .. } = rpc.tip().await.unwrap();
    for (lock_time, sequence, is_final) in [
        (0, 0, true),
        (height, 0, true),
        (height + 1, 0, false),
        (height + 1, u32::MAX - 1, false),
        (height + 1, u32::MAX, true),
        (499_999_999, 0, false),
        (500_000_000, 0, true),
        (median_time - 1, 0, true),
        (median_time, 0, false),
        (u32::MAX, 0, false),
        (u32::MAX, u32::MAX, true),
    ] {
        let coin = payee.receive(rpc, BSV / 100).await;
        let payment = payee.pay(&coin, &payee, 500);
        let payment = payee.lock(payment, &coin.1, lock_time, sequence);
        let what = format!("lock time {lock_time}, sequence {sequence}");
        assert_eq!(payment.is_final_at(height + 1, median_time), is_final, "{what}");
        let submitted = rpc.submit_transaction(&payment).await.unwrap();
        assert_eq!(matches!(submitted, Submitted::InMempool(_)), is_final, "{what}");
    }
}

#[tokio::test]
async fn a_refusal_of_a_submitted_transaction_holds_the_nodes_words() {
    let (node, payee, coin) = node_with_coin().await;
    let (rpc, other) = (node.rpc(), Payee::new());
    let payment = payee.pay(&coin, &other, 500);
    let mut spoilt = payment.clone();
    spoilt.outputs[0].satoshis -= 1;
    let error = rpc.submit_transaction(&spoilt).await.unwrap_err();
    assert_eq!(code_of(&error), -26, "{error}");
    assert!(
        error.to_string().starts_with(
            "the node refused sendrawtransaction: 16: mandatory-script-verify-flag-failed"
        ),
        "{error}"
    );
    let empty = Transaction { version: 1, inputs: vec![], outputs: vec![], lock_time: 0 };
    let error = rpc.submit_transaction(&empty).await.unwrap_err();
    assert!(matches!(error, NodeError::Rejected { .. }), "{error}");

    rpc.submit_transaction(&payment).await.unwrap();
    let rival = payee.pay(&coin, &payee, 700);
    let error = rpc.submit_transaction(&rival).await.unwrap_err();
    assert!(error.to_string().contains("258: txn-mempool-conflict"), "{error}");
    node.mine(1);
    rpc.submit_transaction(&other.pay(&other.coin_in(&payment), &payee, 500)).await.unwrap();
    node.mine(1);
    let error = rpc.submit_transaction(&payment).await.unwrap_err();
    assert_eq!(code_of(&error), -25, "mined and all its outputs spent: {error}");
}

#[tokio::test]
async fn ancestors_in_the_mempool_have_fees_and_sizes() {
    let (node, payee, mut coin) = node_with_coin().await;
    let rpc = node.rpc();
    let mut parents = Vec::new();
    for generation in 0..30 {
        let fee = 400 + generation;
        let payment = payee.pay(&coin, &payee, fee);
        let (txid, entry) = (payment.txid(), shown(fee, &payment, &parents));
        let submitted = rpc.submit_transaction(&payment).await;
        assert_eq!(submitted, Ok(Submitted::InMempool(entry.clone())), "{generation}");
        assert_eq!(rpc.mempool_entry(&txid).await, Ok(Some(entry)), "{generation}");
        parents = vec![txid];
        coin = payee.coin_in(&payment);
    }
    let unknown = Txid::from_bytes([7; 32]);
    assert_eq!(rpc.mempool_entry(&unknown).await, Ok(None));
    node.mine(1);
    assert_eq!(rpc.mempool_entry(&parents[0]).await, Ok(None), "mined");
}

#[tokio::test]
async fn the_calls_of_a_batch_are_made_in_their_order() {
    let node = rich_node();
    let rpc = node.rpc();
    let payee = Payee::new();
    let mut coin = payee.receive(rpc, BSV).await;
    for _ in 0..200 {
        let payment = payee.pay(&coin, &payee, 500);
        let submitted = rpc.submit_transaction(&payment).await.unwrap();
        assert!(matches!(submitted, Submitted::InMempool(_)), "{submitted:?}");
        coin = payee.coin_in(&payment);
    }
}
