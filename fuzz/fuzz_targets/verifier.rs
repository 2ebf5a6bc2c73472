//! Bytes as a coinbase transaction and another transaction after it. An identity is valid only if
//! the key that its document names has signed the document.

#![no_main]

use bsv_fuzz::blocks;
use bsv_minerid::verify::{Generation, Report, Verdict, verify};
use bsv_tx::{Instruction, Reader, Script, Signature, Transaction, sha256};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut reader = Reader::new(bytes);
    let Ok(coinbase) = Transaction::read(&mut reader) else { return };
    let miner_info = Transaction::read(&mut reader).ok();
    let scripts = |tx: &Transaction| {
        tx.outputs.iter().map(|output| output.locking_script.clone()).collect::<Vec<_>>()
    };
    let candidates = match &miner_info {
        Some(miner_info) => [scripts(&coinbase), scripts(miner_info)].concat(),
        None => scripts(&coinbase),
    };
    let (block, evidence) = blocks::block(coinbase, miner_info);
    let report = verify(&block, &evidence);
    if report.verdict() == Verdict::Valid {
        assert!(is_signed(&report, &candidates), "{report:#?}");
        assert_eq!(report.passes_node(), Some(true));
    } else {
        assert_eq!(report.identity(), None);
    }
    assert!(serde_json::from_str::<serde_json::Value>(&report.to_json()).is_ok());
});

/// Whether one of the scripts holds a document that names the miner id, and its signature. This is
/// read without the verifier's code.
fn is_signed(report: &Report, scripts: &[Script]) -> bool {
    let claim = report.identity().unwrap();
    // The first pushes are OP_FALSE, the prefix, and in generation 1.0 the version.
    let skipped = match report.chosen().unwrap().generation {
        Generation::V0_2 => 2,
        Generation::V1_0 => 3,
    };
    scripts.iter().any(|script| {
        let pushes: Vec<_> = script
            .instructions()
            .map_while(Result::ok)
            .filter_map(|step| match step {
                Instruction::Push(bytes) => Some(bytes),
                Instruction::Op(_) => None,
            })
            .skip(skipped)
            .collect();
        let [document, signature, ..] = pushes[..] else { return false };
        let Ok(value) = serde_json::from_slice::<serde_json::Value>(document) else { return false };
        let names_it = value["minerId"]
            .as_str()
            .is_some_and(|id| id.to_lowercase() == claim.miner_id.to_string());
        let printed = bsv_minerid::CanonicalJson::from_text(&String::from_utf8_lossy(document));
        let is_by_it = Signature::from_der(signature).is_ok_and(|signature| {
            let verifies = |text: &[u8]| claim.miner_id.verify(&sha256(text), &signature);
            verifies(document) || printed.is_ok_and(|text| verifies(text.as_str().as_bytes()))
        });
        names_it && is_by_it
    })
}
