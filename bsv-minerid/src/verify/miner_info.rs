use bsv_tx::{PublicKey, Transaction, Txid, sha256};

use super::block::{BlockProof, Evidence, MinerInfoEvidence};
use super::data_refs;
use super::members;
use super::report::{
    Candidate, Check, Claim, Findings, Generation, Outcome, RevocationKeys, quoted,
};
use super::signatures::{BAD, BAD_LENGTH, LAX, LENGTHS, Standing};
use crate::coinbase_reference::{CoinbaseReference, block_bind};
use crate::json_object::Members;
use crate::miner_info::MinerInfoScript;
use crate::operator_members::{CONTACT, EXTENSIONS, PROTOCOL_MEMBERS};
use crate::output_script;
use crate::succession::Succession;

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
        findings: findings.0,
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
        let reason = "it is the only output of the coinbase transaction, over which nodes fail";
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

/// The document in the miner-info transaction `txid`, and the signature that stands after it.
fn follow(
    txid: &Txid,
    block: &BlockProof,
    evidence: &MinerInfoEvidence,
    findings: &mut Findings,
) -> Option<MinerInfoScript> {
    let (transaction, branch) = match evidence {
        MinerInfoEvidence::Unknown => {
            let reason = format!("transaction {txid} is not at hand");
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
        let reason = format!("the one at hand is not {txid}");
        findings.unknown(Check::MinerInfoTransaction, reason);
        return None;
    }
    match branch.as_ref().map(|branch| branch.root(txid)) {
        Some(Some(root)) if root == block.header.merkle_root => {
            findings.holds(Check::MinerInfoInclusion);
        }
        Some(_) => {
            let reason = "the Merkle branch does not lead to the header's root";
            // The transaction may still be in the block, where a node finds it.
            findings.add(Check::MinerInfoInclusion, Outcome::Fails(reason.to_owned()), None);
        }
        None => {
            findings.unknown(Check::MinerInfoInclusion, "no Merkle branch of it is at hand");
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

/// The document in the first output that is of the protocol, and the signature that follows it.
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

/// A document whose members are of the right types.
struct Document<'a> {
    members: Members<'a>,
    height: i32,
    miner_id_signature: String,
    revocation_key_signature: String,
    revocation_keys: RevocationKeys,
    revocation: Option<Revocation>,
    claim: Claim,
}

/// `revocationMessage` and `revocationMessageSig`.
struct Revocation {
    compromised: Vec<u8>,
    signatures: [String; 2],
}

impl<'a> Document<'a> {
    fn read(text: &'a [u8], findings: &mut Findings) -> Option<Self> {
        let document = std::str::from_utf8(text)
            .map_err(|_| "not UTF-8".to_owned())
            .and_then(|text| Members::read(text).map_err(|error| error.to_string()))
            .and_then(Self::from_members);
        match document {
            Ok(document) => {
                match document
                    .members
                    .repeated(PROTOCOL_MEMBERS.iter().chain(&[CONTACT, EXTENSIONS]))
                {
                    None => findings.holds(Check::Document),
                    Some(name) => {
                        findings.fails(Check::Document, format!("{name} is there more than once"));
                    }
                }
                Some(document)
            }
            Err(reason) => {
                findings.refused(Check::Document, reason);
                None
            }
        }
    }

    fn from_members(members: Members<'a>) -> Result<Self, String> {
        let text =
            |name: &str| members.text(name).ok_or_else(|| format!("{name} must be a string"));
        let version = text("version")?;
        if version != "0.3" {
            return Err(format!("the version is {}, not 0.3", quoted(&version)));
        }
        let height = members.get("height").and_then(members::integer).filter(|height| *height > 0);
        let height = height.ok_or("height must be a whole number from 1 to 2147483647")?;
        let key = |name: &str| -> Result<PublicKey, String> {
            text(name)?.parse().map_err(|error| format!("{name}: {error}"))
        };
        // Most often they are the same, and a key takes a while to read.
        let pair = |current: &str, previous: &str| -> Result<[PublicKey; 2], String> {
            let current_key = key(current)?;
            let is_same = text(current)? == text(previous)?;
            Ok([current_key, if is_same { current_key } else { key(previous)? }])
        };
        let [miner_id, previous_miner_id] = pair("minerId", "prevMinerId")?;
        let [current, previous] = pair("revocationKey", "prevRevocationKey")?;
        let revocation_keys = RevocationKeys { current, previous };
        let (compromised_miner_id, revocation) = Revocation::read(&members)?.unzip();
        let claim = Claim {
            version,
            miner_id,
            previous_miner_id,
            revocation_keys: Some(revocation_keys),
            compromised_miner_id,
            vctx: None,
            data_refs: Vec::new(),
            name: members.object(CONTACT).and_then(|contact| contact.text("name")),
        };
        let (miner_id_signature, revocation_key_signature) =
            (text("prevMinerIdSig")?, text("prevRevocationKeySig")?);
        Ok(Self {
            members,
            height,
            miner_id_signature,
            revocation_key_signature,
            revocation_keys,
            revocation,
            claim,
        })
    }

    /// Enters all that is found.
    fn check(
        &mut self,
        script: &MinerInfoScript,
        block_height: Option<u32>,
        data: &[Transaction],
        findings: &mut Findings,
    ) {
        let Claim { miner_id, previous_miner_id, .. } = self.claim;
        // Nodes verify neither this signature nor the height.
        match Standing::of(&miner_id, &sha256(&script.document), &script.signature) {
            Standing::Good => findings.holds(Check::DocumentSignature),
            Standing::Lax => findings.fails(Check::DocumentSignature, LAX),
            Standing::Bad => findings.fails(Check::DocumentSignature, BAD),
        }
        match block_height {
            None => findings.unchecked(Check::Height, "the height of the block is not known"),
            Some(of_block) if i64::from(of_block) == i64::from(self.height) => {
                findings.holds(Check::Height);
            }
            Some(of_block) => {
                let reason = format!("the document is for height {}, not {of_block}", self.height);
                findings.fails(Check::Height, reason);
            }
        }
        let digest = Succession::digest(&previous_miner_id, &miner_id);
        Standing::of_text(&previous_miner_id, &digest, &self.miner_id_signature)
            .note(Check::MinerIdSuccession, findings);
        let RevocationKeys { current, previous } = self.revocation_keys;
        let digest = Succession::digest(&previous, &current);
        Standing::of_text(&previous, &digest, &self.revocation_key_signature)
            .note(Check::RevocationKeySuccession, findings);
        if let Some(revocation) = &self.revocation {
            revocation.check(&self.revocation_keys, &previous_miner_id, findings);
        }
        if let Some(extensions) = self.members.object(EXTENSIONS) {
            self.claim.data_refs =
                data_refs::examine(&extensions, Generation::V1_0, data, findings);
        }
    }
}

impl Revocation {
    /// Reads the two members, which are both there or neither is, and the miner id as it is spelled.
    fn read(members: &Members<'_>) -> Result<Option<(String, Self)>, String> {
        const BOTH: &str =
            "revocationMessage and revocationMessageSig must both be objects, or absent";
        if members.get("revocationMessage").is_none()
            && members.get("revocationMessageSig").is_none()
        {
            return Ok(None);
        }
        let message = members.object("revocationMessage").ok_or(BOTH)?;
        let signatures = members.object("revocationMessageSig").ok_or(BOTH)?;
        let spelled = message.text("compromised_minerId").unwrap_or_default();
        let compromised = hex::decode(&spelled)
            .ok()
            .filter(|key| key.len() == 33 && matches!(key[0], 2 | 3))
            .ok_or("compromised_minerId must be a compressed public key")?;
        let signature = |name: &str| {
            signatures
                .text(name)
                .ok_or_else(|| format!("revocationMessageSig.{name} must be a string"))
        };
        let signatures = [signature("sig1")?, signature("sig2")?];
        Ok(Some((spelled, Self { compromised, signatures })))
    }

    fn check(&self, keys: &RevocationKeys, previous_miner_id: &PublicKey, findings: &mut Findings) {
        let digest = sha256(&self.compromised);
        let [first, second] = &self.signatures;
        let by_revocation_key = Standing::of_text(&keys.current, &digest, first);
        let by_miner_id = Standing::of_text(previous_miner_id, &digest, second);
        if by_revocation_key == Standing::Bad {
            findings.refused(Check::Revocation, "sig1 is not by the revocation key");
        } else if by_miner_id == Standing::Bad {
            findings.refused(Check::Revocation, "sig2 is not by the previous miner id");
        } else if keys.is_roll() {
            let reason = "a revocation must not come with a new revocation key";
            findings.refused(Check::Revocation, reason);
        } else if (by_revocation_key, by_miner_id) != (Standing::Good, Standing::Good) {
            findings.fails(Check::Revocation, LAX);
        } else {
            findings.holds(Check::Revocation);
        }
    }
}
