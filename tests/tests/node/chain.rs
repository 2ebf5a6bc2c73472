//! Blocks, and proofs of their transactions.

use bsv_network::{BlockInfo, ChainTip, Mempool, MinedIn, OutputState, TransactionPlace};
use bsv_tests::Node;
use bsv_tx::{
    BlockHash, BlockHeader, MerkleBranch, OutPoint, ScriptBuilder, Transaction, TxIn, TxOut, Txid,
};
use serde_json::json;

use crate::node::setup::{BSV, Payee, node_with_coin, place_of, rich_node};

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
    let (node, payee, coin) = node_with_coin().await;
    let (rpc, other) = (node.rpc(), Payee::new());
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

/// Mines a block that holds a coinbase and `transaction`, and nothing from the mempool.
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

/// The coinbase of a block with `candidate`, paid to `payee`.
fn coinbase_for(candidate: &serde_json::Value, payee: &Payee) -> Transaction {
    let height = u32::try_from(candidate["height"].as_u64().unwrap()).unwrap();
    // BIP34: the script begins with the height, as a number in its shortest form.
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
