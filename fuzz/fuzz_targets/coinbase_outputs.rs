//! Bytes as locking scripts in a coinbase transaction. The scan for identities ends with the first
//! output that a node would take, and its findings on each output are consistent.

#![no_main]

use bsv_fuzz::blocks;
use bsv_minerid::ledger::Ledger;
use bsv_minerid::verify::{Evidence, Outcome, verify};
use bsv_tx::{OutPoint, Script, ScriptBuilder, Transaction, TxIn, TxOut};
use libfuzzer_sys::fuzz_target;

const PREFIXES: [&[u8]; 3] =
    [&[], &[0, 0x6a, 4, 0xac, 0x1e, 0xed, 0x88], &[0, 0x6a, 4, 0x60, 0x1d, 0xfa, 0xce]];

fuzz_target!(|bytes: &[u8]| {
    // The separator of the scripts is a byte that never occurs in JSON.
    let scripts: Vec<_> = bytes.split(|byte| *byte == 0xff).collect();
    for prefix in PREFIXES {
        let script = |rest: &&[u8]| Script::from_bytes([prefix, rest].concat());
        check(scripts.iter().map(script).collect());
    }
});

fn check(scripts: Vec<Script>) {
    let input = TxIn {
        previous_output: OutPoint::NULL,
        unlocking_script: ScriptBuilder::new().push(&[0x00, 0x35, 0x0c]).into_script(),
        sequence: u32::MAX,
    };
    let count = scripts.len();
    let output = |locking_script| TxOut { satoshis: 0, locking_script };
    let outputs = scripts.into_iter().map(output).collect();
    let coinbase = Transaction { version: 1, inputs: vec![input], outputs, lock_time: 0 };
    let (block, evidence) = blocks::block(coinbase, None);
    let report = verify(&block, &evidence);
    assert!(report.candidates.len() <= count);
    assert!(report.candidates.iter().rev().skip(1).all(|c| c.passes_node() == Some(false)));
    let is_sound = report
        .candidates
        .iter()
        .flat_map(|c| &c.findings)
        .all(|finding| finding.outcome != Outcome::Holds || finding.passes_node == Some(true));
    assert!(is_sound, "{report:#?}");
    if let Some(claim) = report.identity() {
        // Without a miner-info transaction, there is no identity of generation 1.0.
        assert!(matches!(claim.version.as_str(), "0.1" | "0.2"), "{report:#?}");
        let mut ledger = Ledger::new();
        ledger.connect(report.block, 1, Some(claim));
        assert_eq!(ledger.miners().len(), usize::from(claim.miner_id == claim.previous_miner_id));
    }
    assert!(serde_json::from_str::<serde_json::Value>(&report.to_json()).is_ok());
    let _ = verify(&block, &Evidence::default());
}
