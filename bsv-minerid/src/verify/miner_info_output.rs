use bsv_tx::{Transaction, Txid};

use super::block::{BlockProof, Evidence, MinerInfoEvidence};
use super::miner_info_document::Document;
use super::report::{Candidate, Check, Findings, Generation, Outcome};
use super::signatures::{BAD_LENGTH, LENGTHS, Standing};
use crate::coinbase_reference::{CoinbaseReference, block_bind};
use crate::miner_info_script::MinerInfoScript;
use crate::output_script;

/// Checks an output of generation 1.0. Nodes look at no output after it.
pub(super) fn examine(block: &BlockProof, output: usize, evidence: &Evidence) -> Candidate {
    let mut findings = Findings::default();
    let reference = read_reference(block, output, &mut findings);
    let claim = reference.as_ref().and_then(|reference| {
        check_binding(reference, block, &mut findings);
        let txid = &reference.miner_info_txid;
        let script = follow(txid, block, &evidence.miner_info, &mut findings)?;
        let mut document = Document::read(&script.document, &mut findings)?;
        document.check(&script, block.height(), &evidence.data, &mut findings);
        Standing::of(&document.claim.miner_id, &reference.block_bind, &reference.signature)
            .note(Check::BlockBindingSignature, &mut findings);
        Some(document.claim)
    });
    Candidate {
        output,
        generation: Generation::V1_0,
        miner_info: reference.map(|reference| reference.miner_info_txid),
        claim,
        findings: findings.entered,
        ends_scan: true,
    }
}

fn read_reference(
    block: &BlockProof,
    output: usize,
    findings: &mut Findings,
) -> Option<CoinbaseReference> {
    let script = &block.coinbase.outputs[output].locking_script;
    let reference = match CoinbaseReference::parse(script) {
        Ok(reference) => reference,
        Err(error) => {
            findings.refused(Check::OutputScript, error.to_string());
            return None;
        }
    };
    if !LENGTHS.contains(&reference.signature.len()) {
        findings.refused(Check::OutputScript, BAD_LENGTH);
        return None;
    }
    if block.coinbase.outputs.len() == 1 {
        let reason = "it is the only output of the coinbase transaction, and nodes fail on that";
        findings.refused(Check::OutputScript, reason);
        return None;
    }
    if reference.to_script() == *script {
        findings.holds(Check::OutputScript);
    } else {
        findings.fails(Check::OutputScript, "a push is not the shortest, or more follows");
    }
    Some(reference)
}

fn check_binding(reference: &CoinbaseReference, block: &BlockProof, findings: &mut Findings) {
    let BlockProof { header, coinbase, branch, .. } = block;
    if block_bind(coinbase, &header.previous_block, branch) == Some(reference.block_bind) {
        findings.holds(Check::BlockBinding);
    } else {
        findings.refused(Check::BlockBinding, "the coinbase transaction is bound to another block");
    }
}

/// The document in the miner-info transaction `txid`, with its signature.
fn follow(
    txid: &Txid,
    block: &BlockProof,
    evidence: &MinerInfoEvidence,
    findings: &mut Findings,
) -> Option<MinerInfoScript> {
    let (transaction, branch) = match evidence {
        MinerInfoEvidence::Unknown => {
            let reason = format!("transaction {txid} is not available");
            findings.unknown(Check::MinerInfoTransaction, reason);
            return None;
        }
        MinerInfoEvidence::NotInBlock => {
            let reason = format!("transaction {txid} is not in the block");
            findings.refused(Check::MinerInfoInclusion, reason);
            return None;
        }
        MinerInfoEvidence::Found { transaction, branch } => (transaction, branch),
    };
    if transaction.txid() != *txid {
        let reason = format!("the given transaction is not {txid}");
        findings.unknown(Check::MinerInfoTransaction, reason);
        return None;
    }
    match branch.as_ref().map(|branch| branch.root(txid)) {
        Some(Some(root)) if root == block.header.merkle_root => {
            findings.holds(Check::MinerInfoInclusion);
        }
        Some(_) => {
            let reason = "the Merkle branch does not lead to the header's root";
            // The transaction may be in the block nevertheless, and nodes would find it.
            findings.add(Check::MinerInfoInclusion, Outcome::Fails(reason.to_owned()), None);
        }
        None => {
            findings.unknown(Check::MinerInfoInclusion, "its Merkle branch is not available");
        }
    }
    match document_of(transaction) {
        Ok(parts) => {
            findings.holds(Check::MinerInfoTransaction);
            Some(parts)
        }
        Err(reason) => {
            findings.refused(Check::MinerInfoTransaction, reason);
            None
        }
    }
}

/// The document in the first output with the protocol's prefix, with its signature.
fn document_of(transaction: &Transaction) -> Result<MinerInfoScript, String> {
    let mut scripts = transaction.outputs.iter().map(|output| &output.locking_script);
    let script = scripts
        .find(|script| output_script::is_miner_info(script.as_bytes()))
        .ok_or("no output of it starts with 006a04601dface")?;
    let parts = MinerInfoScript::parse(script).map_err(|error| error.to_string())?;
    if !LENGTHS.contains(&parts.signature.len()) {
        return Err(BAD_LENGTH.to_owned());
    }
    Ok(parts)
}
