//! Answers that no real node gives, from stand-ins for a node.

use std::io::{Read, Write};

use bsv_network::{Mempool, MempoolEntry, NodeError, NodeRpc, Submitted};
use bsv_tx::{BlockHash, OutPoint, Script, Transaction, TxOut, Txid};
use serde_json::json;

use crate::node::away::client_of;
use crate::node::setup::code_of;

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
        ("{}".to_owned(), "has no known state"),
        (r#"{"error":"lost"}"#.to_owned(), "has no known state"),
        (r#"{"error":"spent"}"#.to_owned(), "has no known state"),
        (unspent.replace("0.5", "null"), "has no known state"),
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
    // Somebody else sent the transaction between the two calls.
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
        (made.to_hex(), "0", "not the requested ones"),
        (made.to_hex(), "1", "not the requested ones"),
        (made.to_hex().replace("05", "06"), "-1", "not the requested ones"),
        (made.to_hex().replace("51", "52"), "-1", "not the requested ones"),
        ("00".to_owned(), "-1", "the bytes end"),
    ] {
        let rpc = client_told(format!(r#"{{"hex":"{hex}","changepos":{changepos}}}"#));
        let given = reason_of(rpc.wallet_transaction(std::slice::from_ref(&asked)).await);
        assert!(given.contains(reason), "{given}");
    }
    let signed = format!(r#"{{"hex":"{}","changepos":-1,"complete":false}}"#, made.to_hex());
    let given = reason_of(client_told(signed).wallet_transaction(&[asked]).await);
    assert!(given.contains("lacks signatures"), "{given}");
}
