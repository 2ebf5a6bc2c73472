//! Bytes as messages of a peer channel, and as a Merkle proof in its envelope. If they are read,
//! their parts are consistent, and what is written from them is read as the same.

#![no_main]

use bsv_invoicing::dpp::{ChannelMessage, MerkleProof};
use bsv_tx::MerkleBranch;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    check_proof(bytes);
    if let Ok(messages) = ChannelMessage::list_from_json(bytes) {
        for message in &messages {
            check_proof(&message.payload);
        }
        let again = ChannelMessage::list_to_json(&messages);
        assert_eq!(ChannelMessage::list_from_json(&again), Ok(messages));
    }
    if let Ok(branch) = MerkleBranch::from_bytes(bytes) {
        assert_eq!(branch.to_bytes(), bytes);
    }
});

fn check_proof(bytes: &[u8]) {
    let proof = match MerkleProof::from_envelope(bytes) {
        Ok(proof) => proof,
        Err(error) => {
            let words = error.to_string();
            return assert!(words.len() < 2000 && !words.contains(char::is_control), "{words}");
        }
    };
    let root = proof.branch.root(&proof.txid).unwrap();
    if let Some(header) = proof.header {
        assert_eq!((header.block_hash(), header.merkle_root), (proof.block_hash, root));
    }
    assert_eq!(MerkleBranch::from_bytes(&proof.branch.to_bytes()).as_ref(), Ok(&proof.branch));
    assert_eq!(MerkleProof::from_envelope(&proof.to_envelope()), Ok(proof));
}
