//! How long it takes to verify the identity in a block, in multiples of one bare ECDSA
//! verification. That one also parses the key (33 bytes) and the signature (DER).

#![allow(clippy::unwrap_used, reason = "what fails here fails a measurement")]

mod comparison;

use std::convert::Infallible;
use std::hint::black_box;

use bsv_minerid::formats::{MinerInfo, Revocation};
use bsv_minerid::ledger::Ledger;
use bsv_minerid::verify::{BlockProof, Evidence, Verdict, verify};
use bsv_tests::identified_block::{self, HEIGHT, Keys};
use bsv_tx::sha256;
use comparison::Comparison;
use secp256k1::{Message, PublicKey, SecretKey, ecdsa};

/// A verification may take this many times as long as its signatures alone.
const OVERHEAD: f64 = 1.2;

/// How many blocks, and how many bare signatures, are used in turn. If the same few came again and
/// again, the processor's branch prediction would learn them.
const DIFFERENT_BLOCKS: usize = 1024;
const DIFFERENT_SIGNATURES: usize = 4 * DIFFERENT_BLOCKS;

fn main() {
    let signatures: Vec<_> = (1..=DIFFERENT_SIGNATURES)
        .map(|number| {
            let digest = sha256(&number.to_le_bytes());
            let key = SecretKey::from_secret_bytes(digest).unwrap();
            let message = Message::from_digest(digest);
            let public_key = PublicKey::from_secret_key(&key).serialize();
            (ecdsa::sign(message, &key).serialize_der(), message, public_key)
        })
        .collect();
    let mut signatures = signatures.iter().cycle();
    let bare = || {
        let (signature, message, key) = signatures.next().unwrap();
        let key = PublicKey::from_slice(black_box(key)).unwrap();
        let signature = ecdsa::Signature::from_der(black_box(signature)).unwrap();
        black_box(ecdsa::verify(&signature, *message, &key).is_ok());
    };
    comparison::run("verify", ("bare verification", bare), measure);
}

fn measure(comparison: &mut Comparison<'_>) {
    add(comparison, "0.2, rotated and bound: 2 signatures", 2, || {
        of_generation_0_2(&Keys::first().rotated())
    });
    add(comparison, "1.0, the same keys: 4 signatures", 4, || {
        let keys = Keys::first();
        of_generation_1_0(&keys, &keys.miner_info(HEIGHT))
    });
    add(comparison, "1.0, rotated: 4 signatures", 4, || {
        let keys = Keys::first().rotated();
        of_generation_1_0(&keys, &keys.miner_info(HEIGHT))
    });
    add(comparison, "1.0, revocation: 6 signatures", 6, || {
        let keys = Keys::first().rotated();
        let compromised = keys.previous_miner_id.public_key();
        let revocation =
            Revocation::sign(compromised, &keys.revocation_key, &keys.previous_miner_id).unwrap();
        let document = keys.miner_info(HEIGHT);
        of_generation_1_0(&keys, &MinerInfo { revocation: Some(revocation), ..document })
    });
    let (block, evidence) = of_generation_0_2(&Keys::first());
    let report = verify(&block, &evidence);
    let mut ledger = Ledger::new();
    let mut connect = || ledger.connect(report.block, HEIGHT, report.identity());
    comparison.add("ledger, a known miner id", None, || Ok::<_, Infallible>(connect()));
}

fn of_generation_0_2(keys: &Keys) -> (BlockProof, Evidence) {
    let script = keys.sign(&identified_block::bound(keys.document(HEIGHT)).to_json());
    (identified_block::with_output(&script), Evidence::default())
}

fn of_generation_1_0(keys: &Keys, document: &MinerInfo) -> (BlockProof, Evidence) {
    let script = document.sign(&keys.miner_id).unwrap().to_script();
    identified_block::with_miner_info(&script, &keys.miner_id, |right| right.to_script())
}

fn add(
    comparison: &mut Comparison<'_>,
    name: &str,
    signatures: u32,
    make: impl Fn() -> (BlockProof, Evidence),
) {
    let blocks: Vec<_> = (0..DIFFERENT_BLOCKS).map(|_| make()).collect();
    for (block, evidence) in &blocks {
        assert_eq!(verify(block, evidence).verdict(), Verdict::Valid);
    }
    let mut blocks = blocks.iter().cycle();
    let work = || {
        let (block, evidence) = blocks.next().unwrap();
        Ok::<_, Infallible>(verify(black_box(block), black_box(evidence)))
    };
    comparison.add(name, Some(OVERHEAD * f64::from(signatures)), work);
}
