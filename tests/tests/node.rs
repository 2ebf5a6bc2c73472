//! The client of `bsv-network`, and this package's own harness, against a real node.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bsv_network::{
    BlockInfo, Broadcast, ChainTip, Mempool, MempoolEntry, MinedIn, NodeError, NodeRpc,
    NodeSettings, OutputState, Submitted, TransactionPlace,
};
use bsv_tests::Node;
use bsv_tx::{
    Address, BlockHash, BlockHeader, MerkleBranch, Network, OutPoint, PrivateKey, Script,
    ScriptBuilder, SighashCache, Transaction, TxIn, TxOut, Txid,
};
use serde_json::json;

const BSV: u64 = 100_000_000;

struct Payee {
    key: PrivateKey,
    address: Address,
}

impl Payee {
    fn new() -> Self {
        let key = PrivateKey::generate().unwrap();
        let address = Address::p2pkh(&key.public_key(), Network::Regtest);
        Self { key, address }
    }

    /// Where `transaction` pays this payee.
    fn coin_in(&self, transaction: &Transaction) -> (OutPoint, TxOut) {
        let script = self.address.locking_script();
        let vout = transaction.outputs.iter().position(|o| o.locking_script == script).unwrap();
        let outpoint = OutPoint { txid: transaction.txid(), vout: vout.try_into().unwrap() };
        (outpoint, transaction.outputs[vout].clone())
    }

    /// Has the node's wallet pay, and answers the coin.
    async fn receive(&self, rpc: &NodeRpc, satoshis: u64) -> (OutPoint, TxOut) {
        let txid = rpc.send_to_address(&self.address, satoshis).await.unwrap();
        self.coin_in(&rpc.transaction(&txid).await.unwrap().unwrap())
    }

    /// Pays a coin of this payee to `receiver`, less `fee`.
    fn pay(
        &self,
        (outpoint, output): &(OutPoint, TxOut),
        receiver: &Self,
        fee: u64,
    ) -> Transaction {
        let transaction = Transaction {
            version: 1,
            inputs: vec![TxIn {
                previous_output: *outpoint,
                unlocking_script: Script::default(),
                sequence: u32::MAX,
            }],
            outputs: vec![TxOut {
                satoshis: output.satoshis - fee,
                locking_script: receiver.address.locking_script(),
            }],
            lock_time: 0,
        };
        self.sign(transaction, output)
    }

    /// Signs the only input, which spends `spent`.
    fn sign(&self, mut transaction: Transaction, spent: &TxOut) -> Transaction {
        let script = SighashCache::new(&transaction).sign_p2pkh(0, spent, &self.key);
        transaction.inputs[0].unlocking_script = script.unwrap();
        transaction
    }

    /// The same payment with another lock time and sequence number.
    fn lock(
        &self,
        mut payment: Transaction,
        spent: &TxOut,
        lock_time: u32,
        sequence: u32,
    ) -> Transaction {
        payment.lock_time = lock_time;
        payment.inputs[0].sequence = sequence;
        self.sign(payment, spent)
    }
}

/// A node whose wallet has coins to spend.
fn rich_node() -> Node {
    let node = Node::start();
    node.mine(110);
    node
}

fn code_of(error: &NodeError) -> i64 {
    match error {
        NodeError::Rejected { code, .. } => *code,
        other => panic!("not a refusal: {other}"),
    }
}

fn place_of(tip: &ChainTip) -> (u32, BlockHash) {
    (tip.height, tip.hash)
}

#[tokio::test]
async fn the_tip_follows_mining() {
    let node = Node::start();
    let rpc = node.rpc();
    let genesis = "0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206";
    let start = ChainTip { height: 0, hash: genesis.parse().unwrap(), median_time: 1_296_688_602 };
    assert_eq!(rpc.tip().await, Ok(start));
    let hashes = rpc.generate(3).await.unwrap();
    assert_eq!(place_of(&rpc.tip().await.unwrap()), (3, hashes[2]));
    assert_eq!(rpc.wallet_balance().await, Ok(0));
    rpc.generate(98).await.unwrap();
    assert_eq!(rpc.wallet_balance().await, Ok(50 * BSV));
    let header = node.call("getblockheader", json!([hashes[0].to_string()]));
    assert_eq!(header["confirmations"], 101);
}

#[tokio::test]
async fn the_median_time_is_that_of_the_last_eleven_blocks() {
    let node = Node::start();
    let start = node.call("getblockchaininfo", json!([]))["mediantime"].as_u64().unwrap();
    assert_eq!(start, 1_296_688_602);
    let now = u32::try_from(start).unwrap() + 600_000_000;
    for minute in 0..15 {
        node.call("setmocktime", json!([now + 60 * minute]));
        node.mine(1);
    }
    let tip = node.rpc().tip().await.unwrap();
    assert_eq!((tip.height, tip.median_time), (15, now + 60 * 9));
}

#[tokio::test]
async fn an_output_is_unspent_until_it_is_spent() {
    let node = rich_node();
    let rpc = node.rpc();
    let (payee, other) = (Payee::new(), Payee::new());
    let coin = payee.receive(rpc, 3 * BSV).await;
    let depths = async |outpoint| {
        let mut depths = Vec::new();
        for mempool in [Mempool::Include, Mempool::Ignore] {
            let found = rpc.unspent_output(&outpoint, mempool).await.unwrap();
            depths.push(found.map(|found| {
                assert_eq!(found.output, coin.1);
                found.confirmations
            }));
        }
        depths
    };

    assert_eq!(depths(coin.0).await, [Some(0), None], "made in the mempool");
    node.mine(2);
    assert_eq!(depths(coin.0).await, [Some(2), Some(2)], "made in a block");
    let spending = payee.pay(&coin, &other, 500);
    assert_eq!(rpc.send_transaction(&spending).await, Ok(Broadcast::Accepted));
    assert_eq!(depths(coin.0).await, [None, Some(2)], "spent in the mempool");
    node.mine(1);
    assert_eq!(depths(coin.0).await, [None, None], "spent in a block");
    let beyond = OutPoint { txid: coin.0.txid, vout: 1000 };
    assert_eq!(depths(beyond).await, [None, None], "never made");
}

#[tokio::test]
async fn many_outputs_are_looked_up_in_one_call() {
    let node = rich_node();
    let rpc = node.rpc();
    let (payee, other) = (Payee::new(), Payee::new());
    let coin = payee.receive(rpc, 12_345_678).await;
    node.mine(1);
    let fresh = payee.receive(rpc, 1).await;
    let spending = payee.pay(&coin, &other, 500);
    rpc.send_transaction(&spending).await.unwrap();
    let made = other.coin_in(&spending);
    let never = OutPoint { txid: Txid::from_bytes([7; 32]), vout: 0 };
    let beyond = OutPoint { vout: u32::MAX, ..coin.0 };
    assert_eq!(rpc.unspent_output(&beyond, Mempool::Include).await, Ok(None));
    let asked = [coin.0, made.0, never, beyond, made.0, fresh.0, coin.0];

    let unspent = |output: &TxOut, confirmations| OutputState::Unspent {
        satoshis: output.satoshis,
        confirmations,
    };
    let spent = OutputState::Spent { by: spending.txid() };
    let missing = OutputState::Missing;
    let expected = [
        spent,
        unspent(&made.1, 0),
        missing,
        missing,
        unspent(&made.1, 0),
        unspent(&fresh.1, 0),
        spent,
    ];
    assert_eq!(rpc.outputs(&asked, Mempool::Include).await.unwrap(), expected);
    let expected =
        [unspent(&coin.1, 1), missing, missing, missing, missing, missing, unspent(&coin.1, 1)];
    assert_eq!(rpc.outputs(&asked, Mempool::Ignore).await.unwrap(), expected);

    node.mine(1);
    for mempool in [Mempool::Include, Mempool::Ignore] {
        let found = rpc.outputs(&[coin.0, made.0], mempool).await.unwrap();
        assert_eq!(found, [missing, unspent(&made.1, 1)]);
    }
    let many = vec![made.0; 5000];
    let found = rpc.outputs(&many, Mempool::Include).await.unwrap();
    assert_eq!(found, vec![unspent(&made.1, 1); 5000]);
}

#[tokio::test]
async fn no_outputs_are_no_question() {
    let rpc = client_of(|_| panic!("it was asked"));
    assert_eq!(rpc.outputs(&[], Mempool::Include).await, Ok(vec![]));
}

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

#[tokio::test]
async fn a_transaction_is_sent_once_and_a_second_spend_refused() {
    let node = rich_node();
    let rpc = node.rpc();
    let (payee, other) = (Payee::new(), Payee::new());
    let coin = payee.receive(rpc, BSV).await;
    node.mine(1);
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

fn shown(fee: u64, transaction: &Transaction, parents: &[Txid]) -> MempoolEntry {
    MempoolEntry { fee, size: transaction.to_bytes().len() as u64, parents: parents.to_vec() }
}

#[tokio::test]
async fn what_is_submitted_is_in_the_mempool_or_not_shown() {
    let node = rich_node();
    let rpc = node.rpc();
    let (payee, other) = (Payee::new(), Payee::new());
    let coin = payee.receive(rpc, BSV).await;
    node.mine(1);
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
async fn what_is_time_locked_is_taken_but_is_nowhere() {
    // By itself the node looks every ten minutes for what has become final.
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
async fn what_is_refused_when_submitted_is_told_in_the_nodes_words() {
    let node = rich_node();
    let rpc = node.rpc();
    let (payee, other) = (Payee::new(), Payee::new());
    let coin = payee.receive(rpc, BSV).await;
    node.mine(1);
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
    let node = rich_node();
    let rpc = node.rpc();
    let payee = Payee::new();
    let mut coin = payee.receive(rpc, BSV).await;
    node.mine(1);
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

#[tokio::test]
async fn a_node_that_cannot_be_used_is_given_no_transaction() {
    let mut node = Node::start();
    let empty = Transaction { version: 1, inputs: vec![], outputs: vec![], lock_time: 0 };
    let stranger = NodeRpc::new(NodeSettings { password: "wrong".into(), ..node.settings() });
    assert_eq!(stranger.submit_transaction(&empty).await, Err(NodeError::Unauthorized));
    node.stop();
    let error = node.rpc().submit_transaction(&empty).await.unwrap_err();
    assert!(matches!(error, NodeError::Unreachable { .. }), "{error}");
}

#[tokio::test]
async fn every_transaction_of_a_block_has_a_proof() {
    let node = rich_node();
    let rpc = node.rpc();
    let payee = Payee::new();
    for payments in [1, 2, 4, 5, 6] {
        for n in 0..payments {
            payee.receive(rpc, 1000 + n).await;
        }
        let hash = node.mine(1)[0];
        let info = rpc.block_header(&hash).await.unwrap().unwrap();
        let block = node.call("getblock", json!([hash.to_string()]));
        let txids = block["tx"].as_array().unwrap();
        assert_eq!(txids.len() as u64, 1 + payments);
        for (position, txid) in txids.iter().enumerate() {
            let txid = txid.as_str().unwrap().parse().unwrap();
            let MinedIn { block, branch } = rpc.merkle_proof(&txid).await.unwrap().unwrap();
            assert_eq!((block, branch.position), (hash, position as u64));
            assert_eq!(branch.root(&txid), Some(info.header.merkle_root));
        }
    }

    let (waiting, _) = payee.receive(rpc, 1000).await;
    assert_eq!(rpc.merkle_proof(&waiting.txid).await, Ok(None), "in the mempool");
    assert_eq!(rpc.merkle_proof(&Txid::from_bytes([7; 32])).await, Ok(None), "unknown");
    node.mine(1);
    let block = node.call("getblock", json!([node.mine(1)[0].to_string()]));
    let alone = block["tx"][0].as_str().unwrap().parse().unwrap();
    assert_eq!(rpc.merkle_proof(&alone).await, Ok(None), "alone in its block");
}

#[tokio::test]
async fn headers_and_heights_are_those_of_the_chain() {
    let node = Node::start();
    let rpc = node.rpc();
    let mut hashes = rpc.generate(3).await.unwrap();
    hashes.insert(0, rpc.block_hash(0).await.unwrap().unwrap());
    let mut previous_block = BlockHash::from_bytes([0; 32]);
    for (height, hash) in (0..).zip(&hashes) {
        assert_eq!(rpc.block_hash(height).await, Ok(Some(*hash)));
        let info = rpc.block_header(hash).await.unwrap().unwrap();
        assert_eq!((info.height, info.in_main_chain), (height, true));
        assert_eq!((info.header.block_hash(), info.header.previous_block), (*hash, previous_block));
        previous_block = *hash;
    }
    for height in [4, i32::MAX as u32, 1 << 31, u32::MAX] {
        assert_eq!(rpc.block_hash(height).await, Ok(None), "{height}");
    }
    assert_eq!(rpc.block_header(&BlockHash::from_bytes([7; 32])).await, Ok(None));
}

#[tokio::test]
async fn a_block_that_left_the_main_chain_and_what_was_in_it() {
    let node = rich_node();
    let rpc = node.rpc();
    let (payee, other) = (Payee::new(), Payee::new());
    let coin = payee.receive(rpc, BSV).await;
    node.mine(1);
    let payment = payee.pay(&coin, &other, 500);
    let txid = payment.txid();
    rpc.send_transaction(&payment).await.unwrap();
    let left = node.mine(1)[0];
    let was = rpc.block_header(&left).await.unwrap().unwrap();
    let proof = rpc.merkle_proof(&txid).await.unwrap();

    node.call("invalidateblock", json!([left.to_string()]));
    let now = rpc.block_header(&left).await.unwrap();
    assert_eq!(now, Some(BlockInfo { in_main_chain: false, ..was }));
    assert_eq!(rpc.block_hash(was.height).await, Ok(None));
    assert_eq!(rpc.transaction_place(&txid).await, Ok(TransactionPlace::Mempool));
    assert_eq!(rpc.merkle_proof(&txid).await, Ok(None));

    let rival = payee.pay(&coin, &payee, 700);
    let block = mine_instead(&node, &rival);
    assert_eq!(rpc.transaction_place(&rival.txid()).await, Ok(TransactionPlace::Block(block)));
    assert_eq!(rpc.transaction_place(&txid).await, Ok(TransactionPlace::Nowhere));
    assert_eq!(rpc.transaction(&txid).await, Ok(Some(payment)), "off the main chain");
    assert_eq!(rpc.merkle_proof(&txid).await, Ok(proof), "off the main chain");
    assert_eq!(rpc.outputs(&[coin.0], Mempool::Include).await, Ok(vec![OutputState::Missing]));
}

/// Mines a block that holds a coinbase and `transaction`, and nothing of the mempool.
fn mine_instead(node: &Node, transaction: &Transaction) -> BlockHash {
    let candidate = node.mining_candidate();
    let coinbase = coinbase_for(&candidate, &Payee::new());
    let branch = MerkleBranch::of_coinbase(&[*transaction.txid().as_bytes()]);
    let mut header = BlockHeader {
        version: 0x2000_0000,
        previous_block: candidate["prevhash"].as_str().unwrap().parse().unwrap(),
        merkle_root: branch.root(&coinbase.txid()).unwrap(),
        time: candidate["time"].as_u64().unwrap().try_into().unwrap(),
        bits: u32::from_str_radix(candidate["nBits"].as_str().unwrap(), 16).unwrap(),
        nonce: 0,
    };
    while !header.has_proof_of_work() {
        header.nonce += 1;
    }
    let mut block = header.to_bytes();
    block.push(2);
    coinbase.encode(&mut block);
    transaction.encode(&mut block);
    assert!(node.call("submitblock", json!([hex::encode(block)])).is_null());
    header.block_hash()
}

#[tokio::test]
async fn the_wallet_makes_what_is_asked_for_and_keeps_the_coins_for_it() {
    let node = rich_node();
    let rpc = node.rpc();
    let payee = Payee::new();
    let output = |satoshis| TxOut { satoshis, locking_script: payee.address.locking_script() };
    let data = TxOut { satoshis: 0, locking_script: Script::from_bytes([0x00, 0x6a, 0x01, 0x07]) };
    let locked = || node.call("listlockunspent", json!([])).as_array().unwrap().len();
    for outputs in [
        vec![output(20_000)],
        vec![output(20_000), output(1000), output(20_000), data],
        vec![output(120 * BSV + 1)],
    ] {
        let transaction = rpc.wallet_transaction(&outputs).await.unwrap();
        let mut made = transaction.outputs.clone();
        made.retain(|output| outputs.contains(output));
        assert_eq!(made, outputs);
        assert!(transaction.outputs.len() <= outputs.len() + 1);
        assert_eq!(rpc.transaction_place(&transaction.txid()).await, Ok(TransactionPlace::Nowhere));
        assert_eq!(locked(), transaction.inputs.len());
        assert_eq!(rpc.send_transaction(&transaction).await, Ok(Broadcast::Accepted));
        rpc.unlock_coins(&transaction).await.unwrap();
        assert_eq!(locked(), 0);
    }

    let one = rpc.wallet_transaction(&[output(1000)]).await.unwrap();
    let two = rpc.wallet_transaction(&[output(1000)]).await.unwrap();
    assert_ne!(one.inputs[0].previous_output, two.inputs[0].previous_output);
    for transaction in [&one, &two, &one] {
        rpc.unlock_coins(transaction).await.unwrap();
    }
    assert_eq!(locked(), 0);
    let error = rpc.wallet_transaction(&[output(21_000_000 * BSV)]).await.unwrap_err();
    assert_eq!(code_of(&error), -4, "{error}");
    let error = rpc.wallet_transaction(&[]).await.unwrap_err();
    assert_eq!(code_of(&error), -8, "{error}");
}

#[tokio::test]
async fn the_wallet_watches_a_foreign_address() {
    let node = rich_node();
    let rpc = node.rpc();
    let payee = Payee::new();
    rpc.import_address(&payee.address).await.unwrap();
    rpc.import_address(&payee.address).await.unwrap();
    assert_eq!(rpc.coins_of(&payee.address).await, Ok(vec![]));
    let first = payee.receive(rpc, 12_345_678).await;
    node.mine(1);
    let second = payee.receive(rpc, 1).await;
    let mut coins = rpc.coins_of(&payee.address).await.unwrap();
    coins.sort_by_key(|coin| coin.confirmations);
    let found: Vec<_> =
        coins.into_iter().map(|c| ((c.outpoint, c.output), c.confirmations)).collect();
    assert_eq!(found, [(second, 0), (first, 1)]);

    let own = node.call("getnewaddress", json!([]));
    let own = Address::parse(own.as_str().unwrap(), Network::Regtest).unwrap();
    rpc.import_address(&own).await.unwrap();
    let livenet = Address::p2pkh(&payee.key.public_key(), Network::Livenet);
    assert_eq!(code_of(&rpc.import_address(&livenet).await.unwrap_err()), -5);
    assert_eq!(code_of(&rpc.coins_of(&livenet).await.unwrap_err()), -5);
}

#[tokio::test]
async fn amounts_are_exact() {
    let node = rich_node();
    let rpc = node.rpc();
    let payee = Payee::new();
    for satoshis in [1, 12_345_678, 21 * BSV, 30 * BSV + 70_000_001] {
        let (_, output) = payee.receive(rpc, satoshis).await;
        assert_eq!(output.satoshis, satoshis);
    }
    let error = rpc.send_to_address(&payee.address, 21_000_000 * BSV).await.unwrap_err();
    assert_eq!(code_of(&error), -6, "{error}");
    let error = rpc.send_to_address(&payee.address, u64::MAX).await.unwrap_err();
    assert!(matches!(error, NodeError::Rejected { .. }), "{error}");
}

#[tokio::test]
async fn what_a_node_takes_is_what_it_is_set_to() {
    let policy = Node::start().rpc().policy().await.unwrap();
    assert_eq!(policy.mining_fee_rate, 1);
    assert_eq!((policy.max_transaction_size, policy.max_data_size), (10_000_000, u32::MAX.into()));
    let node = Node::start_with(&["minminingtxfee=0.00000500", "datacarrier=0"]);
    let policy = node.rpc().policy().await.unwrap();
    assert_eq!((policy.mining_fee_rate, policy.max_data_size), (500, 0));
}

#[tokio::test]
async fn a_node_that_cannot_be_used_is_told_from_one_that_refuses() {
    let mut node = Node::start();
    let tip = node.mine(1)[0];
    let stranger = NodeRpc::new(NodeSettings { password: "wrong".into(), ..node.settings() });
    let error = stranger.tip().await.unwrap_err();
    assert_eq!(error, NodeError::Unauthorized);
    assert!(error.is_unavailable());
    let error = node.rpc().call("nosuchmethod", &[]).await.unwrap_err();
    assert_eq!(code_of(&error), -32601);

    node.stop();
    let error = node.rpc().tip().await.unwrap_err();
    assert!(error.is_unavailable());
    let NodeError::Unreachable { address, .. } = &error else { panic!("{error}") };
    assert_eq!(*address, format!("{}:{}", node.host, node.port));
    node.restart();
    assert_eq!(place_of(&node.rpc().tip().await.unwrap()), (1, tip));
    node.restart();
    assert_eq!(place_of(&node.rpc().tip().await.unwrap()), (1, tip));
}

#[tokio::test]
async fn more_calls_at_once_than_a_node_queues() {
    let node = Node::start();
    let calls: Vec<_> = (0..300)
        .map(|_| {
            let rpc = node.rpc().clone();
            tokio::spawn(async move { rpc.tip().await })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap().height, 0);
    }
}

/// A client of a stand-in for a node, which does `serve` with every connection.
fn client_of(serve: impl Fn(TcpStream) + Send + 'static) -> NodeRpc {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || listener.incoming().for_each(|stream| serve(stream.unwrap())));
    NodeRpc::new(NodeSettings {
        host: "127.0.0.1".to_owned(),
        port,
        user: "bitcoin".to_owned(),
        password: "bitcoin".into(),
    })
}

#[tokio::test]
async fn silence_ends_with_the_time_out() {
    let rpc = client_of(|stream| drop(thread::spawn(move || (stream, thread::park()))));
    let start = Instant::now();
    let error = rpc.with_timeout(Duration::from_millis(300)).tip().await.unwrap_err();
    assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
    assert!(matches!(error, NodeError::Unreachable { .. }), "{error}");
}

#[tokio::test]
async fn an_answer_cut_short_is_no_answer() {
    for answer in ["", "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"result\":"] {
        let rpc = client_of(move |mut stream| {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(answer.as_bytes());
        });
        let error = rpc.tip().await.unwrap_err();
        assert!(matches!(error, NodeError::Unreachable { .. }), "{error}");
    }
}

#[tokio::test]
async fn only_harmless_calls_are_repeated_after_a_hang_up() {
    let requests = Arc::new(AtomicUsize::new(0));
    let counter = requests.clone();
    let rpc = client_of(move |mut stream| {
        let _ = stream.read(&mut [0; 4096]);
        counter.fetch_add(1, Ordering::SeqCst);
    });
    let payee = Payee::new();
    let nothing = Transaction { version: 1, inputs: vec![], outputs: vec![], lock_time: 0 };
    let mut total = 0;
    for (error, expected) in [
        (rpc.tip().await.unwrap_err(), 2),
        (rpc.submit_transaction(&nothing).await.unwrap_err(), 2),
        (rpc.send_to_address(&payee.address, 1).await.unwrap_err(), 1),
        (rpc.generate(1).await.unwrap_err(), 1),
        (rpc.call("getinfo", &[]).await.unwrap_err(), 1),
    ] {
        assert!(matches!(error, NodeError::Unreachable { .. }), "{error}");
        total += expected;
    }
    assert_eq!(requests.load(Ordering::SeqCst), total);
}

#[tokio::test]
async fn an_answer_that_no_node_gives_is_unexpected() {
    let http =
        |body: &str| format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    for (answer, reason) in [
        ("220 mail.example ESMTP\r\n".to_owned(), "not HTTP"),
        (http("<html>"), "HTTP status 200 OK"),
        (http(r#"{"result":{"blocks":-1},"error":null}"#), "expected u32"),
        (http(r#"{"result":null,"error":null}"#), "invalid type: null"),
        ("HTTP/1.1 302 Found\r\nlocation: /\r\ncontent-length: 0\r\n\r\n".to_owned(), "302"),
    ] {
        let rpc = client_of(move |mut stream| {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(answer.as_bytes());
        });
        let error = rpc.tip().await.unwrap_err();
        let NodeError::Unexpected { method, reason: given } = &error else { panic!("{error}") };
        assert_eq!(method, "getblockchaininfo");
        assert!(given.contains(reason), "{error}");
    }
}

/// A client of a stand-in for a node that answers `result` to everything.
fn client_told(result: String) -> NodeRpc {
    client_answered(&format!(r#"{{"result":{result},"error":null,"id":0}}"#))
}

/// A client of a stand-in for a node that answers `body` to everything.
fn client_answered(body: &str) -> NodeRpc {
    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    client_of(move |mut stream| {
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(answer.as_bytes());
    })
}

fn reason_of<T: std::fmt::Debug>(answer: Result<T, NodeError>) -> String {
    match answer {
        Err(NodeError::Unexpected { reason, .. }) => reason,
        other => panic!("accepted: {other:?}"),
    }
}

#[tokio::test]
async fn outputs_that_make_no_sense_are_noticed() {
    let outpoint = OutPoint { txid: Txid::from_bytes([7; 32]), vout: 0 };
    let missing = r#"{"error":"missing"}"#;
    let unspent = r#"{"value":0.5,"confirmations":1}"#;
    let spent = format!(r#"{{"error":"spent","collidedWith":{{"txid":"{}"}}}}"#, "07".repeat(32));
    for right in [missing, unspent, &spent] {
        let rpc = client_told(format!(r#"{{"txouts":[{right}]}}"#));
        assert_eq!(rpc.outputs(&[outpoint], Mempool::Include).await.unwrap().len(), 1);
    }
    for (items, reason) in [
        (String::new(), "0 outputs instead of 1"),
        (format!("{missing},{missing}"), "2 outputs instead of 1"),
        ("{}".to_owned(), "neither there nor gone"),
        (r#"{"error":"lost"}"#.to_owned(), "neither there nor gone"),
        (r#"{"error":"spent"}"#.to_owned(), "neither there nor gone"),
        (unspent.replace("0.5", "null"), "neither there nor gone"),
        (unspent.replace("0.5", "-0.5"), "negative"),
        (unspent.replace("0.5", "0.123456789"), "8 decimal places"),
        (unspent.replace(":1}", ":-1}"), "expected u32"),
        (spent.replace("07", "7"), "64 hexadecimal characters"),
    ] {
        let rpc = client_told(format!(r#"{{"txouts":[{items}]}}"#));
        let given = reason_of(rpc.outputs(&[outpoint], Mempool::Include).await);
        assert!(given.contains(reason), "{given}");
    }
}

#[tokio::test]
async fn what_the_mempool_shows_of_a_submitted_transaction_counts() {
    let transaction = Transaction { version: 1, inputs: vec![], outputs: vec![], lock_time: 0 };
    let txid = format!("\"{}\"", transaction.txid());
    let entry = format!(r#"{{"fee":1e-06,"size":10,"depends":["{}"]}}"#, "07".repeat(32));
    let taken = |result: &str| format!(r#""result":{result},"error":null"#);
    let refused = |code: i64, message: &str| {
        format!(r#""result":null,"error":{{"code":{code},"message":"{message}"}}"#)
    };
    let submit = async |sent: &str, shown: &str| {
        let rpc = client_answered(&format!(r#"[{{{sent},"id":0}},{{{shown},"id":1}}]"#));
        rpc.submit_transaction(&transaction).await
    };
    let parent = Txid::from_bytes([7; 32]);
    let shown = Submitted::InMempool(MempoolEntry { fee: 100, size: 10, parents: vec![parent] });
    let missing = refused(-5, "Transaction not in mempool");
    for sent in [
        taken(&txid),
        refused(-27, "Transaction already in the mempool"),
        refused(-26, "257: txn-already-known"),
    ] {
        assert_eq!(submit(&sent, &taken(&entry)).await, Ok(shown.clone()), "{sent}");
        assert_eq!(submit(&sent, &missing).await, Ok(Submitted::NotShown), "{sent}");
        let failed = submit(&sent, &refused(-28, "Loading")).await;
        assert_eq!(failed, Err(NodeError::Starting), "{sent}");
    }
    // It came from elsewhere between the two calls.
    let refusal = refused(-25, "Missing inputs");
    assert_eq!(submit(&refusal, &taken(&entry)).await, Ok(shown));
    assert_eq!(code_of(&submit(&refusal, &missing).await.unwrap_err()), -25);
    let starting = refused(-28, "Loading");
    assert_eq!(submit(&starting, &missing).await, Err(NodeError::Starting));

    let another = format!("\"{parent}\"");
    for (sent, shown, reason) in [
        (taken(&another), taken(&entry), "is about transaction"),
        (taken("7"), taken(&entry), "invalid type"),
        (taken(&txid), taken("null"), "invalid type: null"),
        (taken(&txid), taken(&entry.replace("1e-06", "-1")), "negative"),
        (taken(&txid), taken(&entry.replace("10", "-10")), "expected u64"),
        (taken(&txid), taken(&entry.replace("0707", "07")), "64 hexadecimal characters"),
        (taken(&txid), taken(r#"{"fee":0,"size":10}"#), "missing field `depends`"),
    ] {
        let given = reason_of(submit(&sent, &shown).await);
        assert!(given.contains(reason), "{given}");
    }
}

#[tokio::test]
async fn a_proof_or_header_of_something_else_is_noticed() {
    let txid = Txid::from_bytes([7; 32]);
    let proof = json!({
        "index": 1, "txOrId": txid.to_string(), "target": "00".repeat(32),
        "nodes": ["11".repeat(32)],
    });
    let proof = proof.to_string();
    let found = client_told(proof.clone()).merkle_proof(&txid).await.unwrap();
    assert_eq!(found.unwrap().branch.position, 1);
    let too_long = vec!["*"; 65];
    for (right, wrong, reason) in [
        ("0707", "0807", "is about transaction"),
        (r#""index":1"#, r#""index":2"#, "does not lead from position 2"),
        (r#""index":1"#, r#""index":-1"#, "expected u64"),
        ("1111", "*", "64 hexadecimal characters"),
        (&format!(r#"["{}"]"#, "11".repeat(32)), r#"["*"]"#, "does not lead"),
        (&format!(r#"["{}"]"#, "11".repeat(32)), &json!(too_long).to_string(), "of 65 nodes"),
    ] {
        let rpc = client_told(proof.replacen(right, wrong, 1));
        let given = reason_of(rpc.merkle_proof(&txid).await);
        assert!(given.contains(reason), "{given}");
    }

    let genesis: BlockHash =
        "0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206".parse().unwrap();
    let header = json!({
        "height": 0, "confirmations": 1, "version": 1, "time": 1_296_688_602, "nonce": 2,
        "bits": "207fffff",
        "merkleroot": "4a5e1e4baab89f3a32518a88c31bc87f618f76673e2cc77ab2127b7afdeda33b",
    });
    let header = header.to_string();
    let found = client_told(header.clone()).block_header(&genesis).await.unwrap();
    assert!(found.unwrap().in_main_chain);
    for (right, wrong, reason) in [
        (r#""nonce":2"#, r#""nonce":3"#, "is about block"),
        ("4a5e", "4a5f", "is about block"),
        ("207fffff", "x", "invalid digit"),
        (r#""height":0"#, r#""height":-1"#, "expected u32"),
    ] {
        let rpc = client_told(header.replacen(right, wrong, 1));
        let given = reason_of(rpc.block_header(&genesis).await);
        assert!(given.contains(reason), "{given}");
    }
}

#[tokio::test]
async fn another_transaction_than_asked_for_is_noticed() {
    let asked = TxOut { satoshis: 5, locking_script: Script::from_bytes([0x51]) };
    let made =
        Transaction { version: 1, inputs: vec![], outputs: vec![asked.clone()], lock_time: 0 };
    for (hex, changepos, reason) in [
        (made.to_hex(), "-1", "missing field `complete`"),
        (made.to_hex(), "0", "other outputs"),
        (made.to_hex(), "1", "other outputs"),
        (made.to_hex().replace("05", "06"), "-1", "other outputs"),
        (made.to_hex().replace("51", "52"), "-1", "other outputs"),
        ("00".to_owned(), "-1", "the bytes end"),
    ] {
        let rpc = client_told(format!(r#"{{"hex":"{hex}","changepos":{changepos}}}"#));
        let given = reason_of(rpc.wallet_transaction(std::slice::from_ref(&asked)).await);
        assert!(given.contains(reason), "{given}");
    }
    let signed = format!(r#"{{"hex":"{}","changepos":-1,"complete":false}}"#, made.to_hex());
    let given = reason_of(client_told(signed).wallet_transaction(&[asked]).await);
    assert!(given.contains("all signatures"), "{given}");
}

#[tokio::test]
async fn an_endless_answer_is_not_read_to_the_end() {
    let rpc = client_of(|mut stream| {
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n\"");
        let spaces = [b' '; 1 << 16];
        while stream.write_all(&spaces).is_ok() {}
    });
    let error = rpc.tip().await.unwrap_err();
    assert!(matches!(error, NodeError::Unexpected { .. }), "{error}");
    assert!(error.to_string().contains("longer than"), "{error}");
}

/// The coinbase of a block with `candidate`, paid to `payee`.
fn coinbase_for(candidate: &serde_json::Value, payee: &Payee) -> Transaction {
    let height = u32::try_from(candidate["height"].as_u64().unwrap()).unwrap();
    // BIP34: the height comes first, as a number of as few bytes as it needs.
    assert!((17..0x80).contains(&height), "heights of one byte");
    Transaction {
        version: 1,
        inputs: vec![TxIn {
            previous_output: OutPoint::NULL,
            unlocking_script: ScriptBuilder::new()
                .push(&[height as u8])
                .push(b"bsv-tests")
                .into_script(),
            sequence: u32::MAX,
        }],
        outputs: vec![TxOut {
            satoshis: candidate["coinbaseValue"].as_u64().unwrap(),
            locking_script: payee.address.locking_script(),
        }],
        lock_time: 0,
    }
}

#[tokio::test]
async fn a_block_is_mined_with_a_coinbase_of_our_own() {
    let node = rich_node();
    let payee = Payee::new();
    for payments in 0..4 {
        for n in 0..payments {
            payee.receive(node.rpc(), 1000 + n).await;
        }
        let candidate = node.mining_candidate();
        let coinbase = coinbase_for(&candidate, &payee);
        let hash = node.submit_block(&candidate, &coinbase).unwrap();
        let height = u32::try_from(candidate["height"].as_u64().unwrap()).unwrap();
        assert_eq!(place_of(&node.rpc().tip().await.unwrap()), (height, hash));
        let block = node.call("getblock", json!([hash.to_string()]));
        assert_eq!(block["tx"][0], coinbase.txid().to_string());
        assert_eq!(block["tx"].as_array().unwrap().len() as u64, 1 + payments);
    }

    let candidate = node.mining_candidate();
    let mut coinbase = coinbase_for(&candidate, &payee);
    coinbase.outputs[0].satoshis += 1;
    let refusal = node.submit_block(&candidate, &coinbase).unwrap_err();
    assert!(refusal.contains("bad-cb-amount"), "{refusal}");
}

#[test]
fn a_port_that_is_taken_is_waited_for() {
    let mut node = Node::start();
    node.stop();
    let squatter = TcpListener::bind((node.host.as_str(), node.port)).unwrap();
    let release = thread::spawn(move || {
        thread::sleep(Duration::from_secs(2));
        drop(squatter);
    });
    node.restart();
    assert!(release.is_finished());
    assert_eq!(node.call("getblockcount", json!([])), 0);
    assert!(node.log().contains("Shutdown"));
}

#[test]
fn a_node_stops_with_its_test() {
    let node = Node::start();
    let (settings, directory) = (node.settings(), node.directory().to_owned());
    let panicked = thread::spawn(move || {
        let _node = node;
        panic!("on purpose");
    });
    assert!(panicked.join().is_err());
    assert!(TcpStream::connect((settings.host, settings.port)).is_err());
    assert!(!directory.exists());
}

/// In a process of its own, for the next test to kill.
#[test]
#[ignore = "it runs for ever"]
fn run_a_node() {
    let node = Node::start();
    println!("\nnode {} {}", node.port, node.directory().display());
    loop {
        thread::park();
    }
}

#[test]
fn a_node_ends_when_its_process_is_killed() {
    let mut process = Command::new(env::current_exe().unwrap())
        .args(["--exact", "run_a_node", "--ignored", "--nocapture"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let line = BufReader::new(process.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok)
        .find(|line| line.starts_with("node "))
        .unwrap();
    let [_, port, directory] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
    let port: u16 = port.parse().unwrap();
    assert!(TcpStream::connect(("127.0.0.1", port)).is_ok());

    process.kill().unwrap();
    process.wait().unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    while TcpStream::connect(("127.0.0.1", port)).is_ok() || fs::exists(directory).unwrap() {
        assert!(Instant::now() < deadline, "the node outlives its test");
        thread::sleep(Duration::from_millis(20));
    }
}
