//! What verifying the identity in a block takes, in multiples of one bare ECDSA verification.

#![allow(clippy::unwrap_used, reason = "what fails here fails a measurement")]

mod comparison;

use std::convert::Infallible;
use std::hint::black_box;

use bsv_minerid::{BlockProof, Evidence, Ledger, Revocation, Verdict, verify};
use bsv_tests::identified_block::{self, HEIGHT, Keys};
use comparison::Comparison;
use secp256k1::{Message, PublicKey, SecretKey, ecdsa};

/// How much longer than the signatures alone a verification may take.
const OVERHEAD: f64 = 1.2;

fn main() {
    let key = SecretKey::from_secret_bytes([7; 32]).unwrap();
    let message = Message::from_digest([7; 32]);
    let (public_key, signature) = (PublicKey::from_secret_key(&key), ecdsa::sign(message, &key));
    let bare = || {
        black_box(ecdsa::verify(black_box(&signature), message, &public_key).is_ok());
    };
    comparison::run("verify", ("bare verification", bare), measure);
}

fn measure(comparison: &mut Comparison<'_>) {
    let first = Keys::first();
    let rotated = first.rotated();
    let (block, evidence) = of_generation_0_2(&rotated);
    add(comparison, "0.2, rotated and bound: 2 signatures", 2, &block, &evidence);
    for (name, signatures, keys, revocation) in [
        ("1.0, the same keys: 4 signatures", 4, &first, None),
        ("1.0, rotated: 4 signatures", 4, &rotated, None),
        ("1.0, revocation: 6 signatures", 6, &rotated, Some(&first)),
    ] {
        let mut document = keys.miner_info(HEIGHT);
        document.revocation = revocation.map(|revoked: &Keys| {
            let compromised = revoked.miner_id.public_key();
            Revocation::sign(compromised, &keys.revocation_key, &keys.previous_miner_id)
        });
        let script = document.sign(&keys.miner_id).to_script();
        let (block, evidence) =
            identified_block::with_miner_info(&script, &keys.miner_id, |right| right.to_script());
        add(comparison, name, signatures, &block, &evidence);
    }
    let (block, evidence) = of_generation_0_2(&first);
    let report = verify(&block, &evidence);
    let mut ledger = Ledger::new();
    let mut connect = || ledger.connect(report.block, HEIGHT, report.identity());
    comparison.add("ledger, a known miner id", None, || Ok::<_, Infallible>(connect()));
}

fn of_generation_0_2(keys: &Keys) -> (BlockProof, Evidence) {
    let script = keys.sign(&identified_block::bound(keys.document(HEIGHT)).to_json());
    (identified_block::with_output(&script), Evidence::default())
}

fn add(
    comparison: &mut Comparison<'_>,
    name: &str,
    signatures: u32,
    block: &BlockProof,
    evidence: &Evidence,
) {
    assert_eq!(verify(block, evidence).verdict(), Verdict::Valid);
    let bar = OVERHEAD * f64::from(signatures);
    let work = || Ok::<_, Infallible>(verify(black_box(block), black_box(evidence)));
    comparison.add(name, Some(bar), work);
}
