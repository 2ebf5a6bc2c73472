use bsv_invoicing::Timestamp;
use bsv_invoicing::dpp::{ChannelMessage, MerkleProof, ProofError};
use bsv_tx::{BlockHash, BlockHeader, MerkleBranch, Sibling, Txid};

use crate::{text, transaction};

/// The second of three transactions, in a block of its own.
fn proof() -> MerkleProof {
    let txid = transaction().txid();
    let siblings = vec![Sibling::Hash([0x11; 32]), Sibling::Duplicate];
    let branch = MerkleBranch { position: 1, siblings };
    let header = BlockHeader {
        version: 0x2000_0000,
        previous_block: BlockHash::from_bytes([0x22; 32]),
        merkle_root: branch.root(&txid).unwrap(),
        time: 1_795_250_936,
        bits: 0x207f_ffff,
        nonce: 7,
    };
    MerkleProof {
        txid,
        block_hash: header.block_hash(),
        block_height: 112,
        header: Some(header),
        branch,
    }
}

fn without_header() -> MerkleProof {
    MerkleProof { header: None, ..proof() }
}

/// The payload of the envelope.
fn callback(proof: &MerkleProof) -> String {
    let envelope: serde_json::Value = serde_json::from_slice(&proof.to_envelope()).unwrap();
    envelope["payload"].as_str().unwrap().to_owned()
}

fn envelope(callback: &str) -> Vec<u8> {
    serde_json::json!({ "payload": callback, "encoding": "utf-8" }).to_string().into_bytes()
}

#[test]
fn a_proof_is_written_in_an_envelope() {
    let bump = hex::encode(proof().bump().unwrap().to_bytes());
    let MerkleProof { txid, block_hash, header, .. } = proof();
    let header = hex::encode(header.unwrap().to_bytes());
    let expected = |target_type, target| {
        format!(
            r#"{{"callbackPayload":{{"index":1,"txOrId":"{txid}","targetType":"{target_type}","target":"{target}","nodes":["{}","*"]}},"blockHash":"{block_hash}","blockHeight":112,"callbackTxId":"{txid}","callbackReason":"merkleProof","merklePath":"{bump}"}}"#,
            "11".repeat(32)
        )
    };
    assert_eq!(callback(&proof()), expected("header", header));
    assert_eq!(callback(&without_header()), expected("hash", block_hash.to_string()));
    let payload = serde_json::to_string(&callback(&proof())).unwrap();
    assert_eq!(
        text(&proof().to_envelope()),
        format!(
            r#"{{"payload":{payload},"signature":null,"publicKey":null,"encoding":"UTF-8","mimetype":"application/json"}}"#
        )
    );
}

#[test]
fn a_proof_is_read_in_every_form_that_miners_give_it() {
    for proof in [proof(), without_header()] {
        assert_eq!(MerkleProof::from_envelope(&proof.to_envelope()), Ok(proof.clone()));
        let callback = callback(&proof);
        assert_eq!(MerkleProof::from_envelope(callback.as_bytes()), Ok(proof.clone()), "bare");
        let more =
            callback.replacen('{', r#"{"apiVersion":"1.5.0","timestamp":"x","minerId":null,"#, 1);
        assert_eq!(MerkleProof::from_envelope(&envelope(&more)), Ok(proof.clone()));
        let whole = callback.replacen(&proof.txid.to_string(), &transaction().to_hex(), 1);
        assert_eq!(MerkleProof::from_envelope(&envelope(&whole)), Ok(proof));
    }
    let untyped = callback(&without_header()).replacen(r#""targetType":"hash","#, "", 1);
    assert_eq!(MerkleProof::from_envelope(&envelope(&untyped)), Ok(without_header()));
}

#[test]
fn every_wrong_member_is_noticed_and_named() {
    let MerkleProof { txid, block_hash, .. } = proof();
    let callback = callback(&proof());
    let (txid, block_hash) = (txid.to_string(), block_hash.to_string());
    let other = "33".repeat(32);
    let nodes = format!(r#"["{}","*"]"#, "11".repeat(32));
    let too_many = format!("[{}]", vec![r#""*""#; 65].join(","));
    for (right, wrong, reason) in [
        (r#""index":1"#, r#""index":0"#, "does not lead to the header"),
        (r#""index":1"#, r#""index":5"#, "index does not fit"),
        (r#""index":1"#, r#""index":3"#, "index does not fit"),
        (r#""index":1"#, r#""index":-1"#, "callbackPayload.index: invalid value"),
        (r#""index":1"#, r#""index":1.0"#, "callbackPayload.index: invalid type"),
        (&txid, &other, "txOrId and callbackTxId differ"),
        (&txid, "33", "neither a transaction nor its id"),
        (&txid, "xx", "neither a transaction nor its id"),
        (&txid, "", "neither a transaction nor its id"),
        (r#""header""#, r#""merkleRoot""#, "neither header nor hash"),
        (r#""header""#, r#""hash""#, "not the block of blockHash"),
        (r#""target":""#, r#""target":"00"#, "not a block header"),
        (r#""target":"00"#, r#""target":"01"#, "not the block of blockHash"),
        (&block_hash, &other, "not the block of blockHash"),
        (&block_hash, "33", "blockHash: must be 64 hexadecimal characters"),
        (r#""*""#, "\"+\"", "callbackPayload.nodes[1]: must be 64 hexadecimal"),
        (r#""*""#, "null", "callbackPayload.nodes[1]: invalid type"),
        (&nodes, &too_many, "more than 64 nodes"),
        (&nodes, r#"["*","*"]"#, "index does not fit"),
        (&nodes, "[]", "index does not fit"),
        (r#""blockHeight":112"#, r#""blockHeight":-1"#, "blockHeight: invalid value"),
        ("merkleProof", "doubleSpend", "about doubleSpend"),
        (r#""callbackReason""#, r#""reason""#, "missing field `callbackReason`"),
        (r#""callbackPayload":{"#, r#""callbackPayload":[{"#, "expected"),
    ] {
        let changed = callback.replacen(right, wrong, 1);
        assert_ne!(changed, callback, "{right}");
        let error = MerkleProof::from_envelope(&envelope(&changed)).unwrap_err();
        assert!(error.to_string().contains(reason), "{error}");
    }
    for (message, reason) in [
        (r#"{"payload":7}"#, "payload: invalid type"),
        (r#"{"payload":"{"}"#, "EOF"),
        (r#"{"payload":"[]"}"#, "not a JSON object"),
        (r#"{"payload":"{}","encoding":"base64"}"#, "not UTF-8"),
        (r#"{}"#, "missing field `callbackReason`"),
        ("", "not a JSON object"),
    ] {
        let error = MerkleProof::from_envelope(message.as_bytes()).unwrap_err();
        assert!(matches!(error, ProofError::Malformed(_)), "{error}");
        assert!(error.to_string().contains(reason), "{error}");
    }
}

#[test]
fn an_invented_branch_is_read_and_its_root_is_left_to_the_reader_to_compare() {
    let forged = MerkleProof { txid: Txid::from_bytes([9; 32]), ..without_header() };
    let read = MerkleProof::from_envelope(&forged.to_envelope()).unwrap();
    assert_ne!(read.branch.root(&read.txid), Some(proof().header.unwrap().merkle_root));
    let with_header = MerkleProof { header: proof().header, ..forged };
    assert!(MerkleProof::from_envelope(&with_header.to_envelope()).is_err());
}

#[test]
fn messages_of_a_channel_are_written_and_read() {
    let messages = vec![
        ChannelMessage {
            sequence: 1,
            received: Timestamp::from_micros(1_795_250_936_767_571),
            content_type: "application/json".to_owned(),
            payload: b"{}".to_vec(),
        },
        ChannelMessage {
            sequence: 2,
            received: Timestamp::from_micros(0),
            content_type: String::new(),
            payload: Vec::new(),
        },
    ];
    let json = ChannelMessage::list_to_json(&messages);
    assert_eq!(
        text(&json),
        r#"[{"sequence":1,"received":"2026-11-21T08:48:56.767571Z","content_type":"application/json","payload":"e30="},{"sequence":2,"received":"1970-01-01T00:00:00.000000Z","content_type":"","payload":""}]"#
    );
    assert_eq!(ChannelMessage::list_from_json(&json), Ok(messages));
    assert_eq!(ChannelMessage::list_to_json(&[]), b"[]");
    assert_eq!(ChannelMessage::list_from_json(b" [] "), Ok(vec![]));
    for (right, wrong, reason) in [
        ("e30=", "e30", "[0].payload: Invalid padding"),
        ("e30=", "e-0=", "[0].payload: Invalid"),
        (r#""sequence":1"#, r#""sequence":-1"#, "[0].sequence: invalid value"),
        ("2026-11-21T", "2026-11-21 ", "[0].received: must be a time"),
        (r#""payload":"""#, r#""payload":{}"#, "[1].payload: invalid type"),
        ("[", "", "invalid type: map"),
        ("}]", "}", "EOF"),
    ] {
        let changed = text(&json).replacen(right, wrong, 1);
        let error = ChannelMessage::list_from_json(changed.as_bytes()).unwrap_err();
        assert!(error.to_string().contains(reason), "{error}");
    }
}
