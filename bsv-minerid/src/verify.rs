//! Verification of miner identities in anybody's blocks, without any I/O.
//!
//! [`verify`] checks one block and answers a [`Report`] with a line for each check. The inputs can
//! be gathered from a node. A [`Ledger`](crate::ledger::Ledger) follows identities from block to block.

mod block;
mod coinbase_document;
mod data_refs;
mod dynamic_document;
mod members;
mod miner_info_document;
mod miner_info_output;
mod node_json;
mod node_text;
mod report;
mod signatures;
mod wire;

use bsv_tx::Transaction;
use bsv_tx::opcode::OP_PUSHDATA4;

pub use block::{BlockProof, Evidence, MinerInfoEvidence, VctxState};
pub use data_refs::DataOutputs;
pub use report::{
    Candidate, Check, Claim, Finding, Generation, Outcome, Report, RevocationKeys, Verdict,
};

use crate::output_script::{self, PREFIX};
use report::Findings;

/// Looks for the identity in a block, and checks everything that can be checked.
///
/// This function never panics on any input. [`Verdict::Valid`] means that all required checks were
/// made and hold, above all the signature of the document.
pub fn verify(block: &BlockProof, evidence: &Evidence) -> Report {
    let mut findings = Findings::default();
    block.examine(&mut findings);
    let mut candidates = Vec::new();
    for (output, generation) in identity_outputs(&block.coinbase) {
        let candidate = match generation {
            Generation::V0_2 => coinbase_document::examine(block, output, evidence),
            Generation::V1_0 => miner_info_output::examine(block, output, evidence),
        };
        let is_last = candidate.ends_scan || candidate.passes_node() != Some(false);
        candidates.push(candidate);
        if is_last {
            break;
        }
    }
    Report {
        block: block.header.block_hash(),
        height: block.height(),
        findings: findings.entered,
        candidates,
    }
}

/// The outputs that claim to carry an identity, as nodes recognise them.
fn identity_outputs(coinbase: &Transaction) -> impl Iterator<Item = (usize, Generation)> {
    coinbase.outputs.iter().enumerate().filter_map(|(output, txout)| {
        let script = txout.locking_script.as_bytes();
        if output_script::is_miner_info(script) {
            return Some((output, Generation::V1_0));
        }
        let next = *script.strip_prefix(&PREFIX)?.first()?;
        (next <= OP_PUSHDATA4).then_some((output, Generation::V0_2))
    })
}
