use std::borrow::Cow;

use bsv_tx::opcode::{OP_0, OP_RETURN};
use bsv_tx::{BlockHash, Instruction, Instructions, MerkleRoot, OutPoint, Script, sha256};

use super::block::{BlockProof, Evidence, VctxState};
use super::data_refs;
use super::dynamic_document::{DynamicDocument, Followed, HEIGHT_NO_NUMBER, VERSIONS_OF_NODES};
use super::members::{Members, Value};
use super::node_json::{NOT_STANDARD, is_standard, printed};
use super::node_text::{hex_of_key, hex_of_signed, public_key};
use super::report::{Candidate, Check, Claim, Findings, Generation, quoted};
use super::signatures::Standing;
use crate::coinbase_reference;

/// Checks an output of generation 0.2, in the same order as nodes.
pub(super) fn examine(block: &BlockProof, output: usize, evidence: &Evidence) -> Candidate {
    let mut findings = Findings::default();
    let document = StaticDocument::read(block, output, &mut findings).map(|mut document| {
        document.check(block, output, evidence, &mut findings);
        document
    });
    Candidate {
        output,
        generation: Generation::V0_2,
        miner_info: None,
        claim: document.map(|document| document.claim),
        findings: findings.entered,
        ends_scan: findings.ends_scan,
    }
}

/// The first document, which is mandatory. A dynamic one may follow it.
struct StaticDocument<'a> {
    members: Members<'a>,
    /// The text in the script.
    text: &'a [u8],
    /// The text as nodes print and verify it.
    printed: Cow<'a, [u8]>,
    signature: &'a [u8],
    dynamic: Option<DynamicDocument<'a>>,
    succession: Succession<'a>,
    claim: Claim,
}

/// The statement that the previous key signs, as the document spells it.
struct Succession<'a> {
    previous: Cow<'a, [u8]>,
    current: Cow<'a, [u8]>,
    vctx_txid: Cow<'a, [u8]>,
    signature: Cow<'a, [u8]>,
}

impl<'a> StaticDocument<'a> {
    fn read(block: &'a BlockProof, output: usize, findings: &mut Findings) -> Option<Self> {
        let mut pushes = Pushes::after_prefix(&block.coinbase.outputs[output].locking_script);
        let is_there = |push: &&[u8]| !push.is_empty();
        let (Some(text), Some(signature)) =
            (pushes.next().filter(is_there), pushes.next().filter(is_there))
        else {
            let reason = "a document and a signature must follow the prefix, each as a push";
            findings.refused(Check::OutputScript, reason);
            return None;
        };
        let dynamic = pushes.next().map(|text| DynamicDocument { text, signature: pushes.next() });
        match pushes.next() {
            None => findings.holds(Check::OutputScript),
            Some(_) => findings.fails(Check::OutputScript, "more follows than two documents"),
        }
        let members = Members::read(text)
            .map_err(|error| findings.refused(Check::Document, error.to_string()))
            .ok()?;
        let version = members.text("version");
        if version.is_some_and(|version| VERSIONS_OF_NODES.contains(&&*version)) {
            check_height(&members, block.height(), findings);
        }
        let (succession, claim) =
            claims(&members).map_err(|reason| findings.refused(Check::Document, reason)).ok()?;
        let printed = printed(text);
        Some(Self { members, text, printed, signature, dynamic, succession, claim })
    }

    fn check(
        &mut self,
        block: &BlockProof,
        output: usize,
        evidence: &Evidence,
        findings: &mut Findings,
    ) {
        self.check_form(findings);
        self.check_signature(findings);
        self.check_succession(findings);
        self.check_block_binding(block, output, findings);
        self.check_vctx(evidence, findings);
        let data = &evidence.data;
        self.claim.data_refs = data_refs::examine(&self.members, Generation::V0_2, data, findings);
        if let Some(dynamic) = &self.dynamic {
            let followed = Followed {
                printed: &self.printed,
                signature: self.signature,
                has_data_refs: data_refs::are_held(&self.members),
            };
            let data_refs = dynamic.check(&followed, block.height(), data, findings);
            self.claim.data_refs.extend(data_refs);
        }
    }

    fn check_form(&self, findings: &mut Findings) {
        const ONCE: [&str; 8] = [
            "version",
            "height",
            "prevMinerId",
            "prevMinerIdSig",
            "minerId",
            "vctx",
            "minerContact",
            "extensions",
        ];
        let Succession { previous, current, signature, .. } = &self.succession;
        let is_hex = |text: &&Cow<'_, [u8]>| hex::decode(text).is_ok();
        if let Some(name) = self.members.repeated(&ONCE) {
            findings.fails(Check::Document, format!("{name} occurs more than once"));
        } else if !is_standard(self.text) {
            findings.fails(Check::Document, NOT_STANDARD);
        } else if !([previous, current, signature].iter().all(is_hex)) {
            findings.fails(
                Check::Document,
                "a key or a signature has characters that are not hexadecimal",
            );
        } else if self.claim.vctx.is_none() {
            let reason = "vctx must hold a txId of 64 hexadecimal characters and the index vout";
            findings.fails(Check::Document, reason);
        } else {
            findings.holds(Check::Document);
        }
    }

    fn check_signature(&self, findings: &mut Findings) {
        let standing =
            |text: &[u8]| Standing::of(&self.claim.miner_id, &sha256(text), self.signature);
        let found = standing(&self.printed);
        let is_respelled = *self.text != *self.printed;
        if found == Standing::Bad && is_respelled && standing(self.text) != Standing::Bad {
            let reason = "the signature is over a spelling that nodes do not reproduce";
            findings.refused(Check::DocumentSignature, reason);
        } else {
            found.note(Check::DocumentSignature, findings);
        }
    }

    fn check_succession(&self, findings: &mut Findings) {
        let Succession { previous, current, vctx_txid, signature } = &self.succession;
        let texts = [previous, current, vctx_txid].map(|text| &**text);
        let signature = hex_of_key(signature);
        let standing = |signed: &[u8]| {
            Standing::of(&self.claim.previous_miner_id, &sha256(signed), &signature)
        };
        if self.claim.version == "0.1" {
            return standing(&texts.concat()).note(Check::MinerIdSuccession, findings);
        }
        let read = texts.map(hex_of_signed).concat();
        let specified = hex::decode(texts.concat()).unwrap_or_default();
        let found = standing(&read);
        match found {
            _ if read == specified => found.note(Check::MinerIdSuccession, findings),
            Standing::Bad if standing(&specified) != Standing::Bad => {
                let reason = "it is signed as specified, but nodes read no number that has capital \
                              letters for digits";
                findings.refused(Check::MinerIdSuccession, reason);
            }
            Standing::Bad => found.note(Check::MinerIdSuccession, findings),
            Standing::Good | Standing::Lax => {
                let reason =
                    "the signature covers what nodes read from texts that are not hexadecimal";
                findings.fails(Check::MinerIdSuccession, reason);
            }
        }
    }

    fn check_block_binding(&self, block: &BlockProof, output: usize, findings: &mut Findings) {
        let Some(bind) =
            self.members.object("extensions").and_then(|extensions| extensions.object("blockbind"))
        else {
            return;
        };
        let previous_block: Option<BlockHash> = parsed(&bind, "prevBlockHash");
        let modified_root: Option<MerkleRoot> = parsed(&bind, "modifiedMerkleRoot");
        let expected_root = || {
            let placeholder = Script::from_bytes([OP_0, OP_RETURN]);
            let modified = coinbase_reference::modify(&block.coinbase, output, placeholder)?;
            block.branch.root(&modified.txid())
        };
        if previous_block != Some(block.header.previous_block) {
            findings.fails(Check::BlockBinding, "prevBlockHash is not that of the header");
        } else if modified_root.is_none() || modified_root != expected_root() {
            findings.fails(Check::BlockBinding, "modifiedMerkleRoot is not that of the block");
        } else {
            findings.holds(Check::BlockBinding);
        }
    }

    fn check_vctx(&self, evidence: &Evidence, findings: &mut Findings) {
        let vout = self.members.object("vctx").and_then(|vctx| vctx.get("vout")?.integer());
        if vout.is_none() {
            let reason = "vout is not a 32-bit whole number: nodes fail on it and look for no other \
                          identity in the block";
            return findings.ends_scan(Check::Vctx, reason);
        }
        let Some(vctx) = self.claim.vctx else { return };
        match evidence.vctxs.get(&vctx) {
            Some(VctxState::Unspent) => findings.holds(Check::Vctx),
            Some(VctxState::Spent) => {
                let reason = format!("{vctx} is spent, which revokes the identity");
                findings.fails(Check::Vctx, reason);
            }
            None => {
                let reason = format!("whether {vctx} is unspent is not known");
                findings.unchecked(Check::Vctx, reason);
            }
        }
    }
}

/// The claims of a document, or an error if nodes cannot read it.
fn claims<'a>(members: &Members<'a>) -> Result<(Succession<'a>, Claim), String> {
    let string = |name: &str| members.bytes(name).ok_or_else(|| format!("{name} must be a string"));
    let version = String::from_utf8_lossy(&string("version")?).into_owned();
    if !matches!(version.as_str(), "0.1" | "0.2") {
        return Err(format!("the version is {}, not 0.1 or 0.2", quoted(&version)));
    }
    let is_height = |value: &Value<'_>| value.is_number() || value.bytes().is_some();
    if !members.get("height").is_some_and(|value| is_height(&value)) {
        return Err("height must be a number".to_owned());
    }
    let vctx = members.object("vctx").ok_or("vctx must be an object")?;
    let vctx_txid = vctx.bytes("txId").ok_or("vctx.txId must be a string")?;
    let vout = vctx.get("vout").filter(|vout| vout.is_number());
    let vout = vout.ok_or("vctx.vout must be a number")?;
    let (previous, current) = (string("prevMinerId")?, string("minerId")?);
    let key = |name: &str, text: &[u8]| {
        public_key(text).ok_or_else(|| format!("{name} is not a compressed public key"))
    };
    let miner_id = key("minerId", &current)?;
    // The keys are usually the same, and parsing a key is slow.
    let previous_miner_id =
        if previous == current { miner_id } else { key("prevMinerId", &previous)? };
    let txid = std::str::from_utf8(&vctx_txid).ok().and_then(|txid| txid.parse().ok());
    let vout = vout.integer().and_then(|vout| vout.try_into().ok());
    let claim = Claim {
        version,
        miner_id,
        previous_miner_id,
        revocation_keys: None,
        compromised_miner_id: None,
        vctx: txid.zip(vout).map(|(txid, vout)| OutPoint { txid, vout }),
        data_refs: Vec::new(),
        name: members.object("minerContact").and_then(|contact| contact.text("name")),
    };
    let signature = string("prevMinerIdSig")?;
    Ok((Succession { previous, current, vctx_txid, signature }, claim))
}

fn parsed<T: std::str::FromStr>(members: &Members<'_>, name: &str) -> Option<T> {
    members.text(name)?.parse().ok()
}

/// The operands of a script's instructions, as nodes iterate over them. An instruction that pushes
/// nothing has an empty operand. A truncated push ends the script.
struct Pushes<'a>(Instructions<'a>);

impl<'a> Pushes<'a> {
    /// Starts after `OP_FALSE OP_RETURN` and the protocol's prefix, which must be present.
    fn after_prefix(script: &'a Script) -> Self {
        let mut instructions = script.instructions();
        for _ in 0..3 {
            instructions.next();
        }
        Self(instructions)
    }
}

impl<'a> Iterator for Pushes<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        match self.0.next()?.ok()? {
            Instruction::Push(operand) => Some(operand),
            Instruction::Op(_) => Some(&[]),
        }
    }
}

/// Compares the document's height with the block's. A height of another type is not reported here.
fn check_height(members: &Members<'_>, of_block: Option<u32>, findings: &mut Findings) {
    let Some(value) = members.get("height") else { return };
    let spelled = value.bytes();
    let height = match &spelled {
        None if !value.is_number() => return,
        None => value.integer(),
        Some(text) => leading_integer(text),
    };
    let Some(height) = height else { return findings.ends_scan(Check::Height, HEIGHT_NO_NUMBER) };
    match of_block {
        None => findings.unknown(Check::Height, "the height of the block is not known"),
        Some(of_block) if i64::from(of_block) != i64::from(height) => {
            let reason = format!("the document is for height {height}, not {of_block}");
            findings.refused(Check::Height, reason);
        }
        Some(_) => match spelled.map(|text| text.iter().all(u8::is_ascii_digit)) {
            None => findings.holds(Check::Height),
            Some(true) => {
                findings.fails(Check::Height, "the height must be a number, not a string");
            }
            Some(false) => {
                let reason = "the height is a string that only starts with the number, as nodes \
                              before 1.2.1 took it";
                findings.refused(Check::Height, reason);
            }
        },
    }
}

/// The number at the start of a text, after white space and a sign, as C parses it.
fn leading_integer(text: &[u8]) -> Option<i32> {
    let is_space = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0xb;
    let spaces = text.iter().take_while(|byte| is_space(byte)).count();
    let text = &text[spaces..];
    let sign = usize::from(matches!(text.first(), Some(b'-' | b'+')));
    let digits = text[sign..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(&text[..sign + digits]).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_at_the_start_of_a_text_is_read_as_nodes_read_it() {
        for (text, number) in [
            ("12", Some(12)),
            (" \t12abc", Some(12)),
            ("-3", Some(-3)),
            ("+3", Some(3)),
            ("2147483648", None),
            ("", None),
            ("x1", None),
            ("- 1", None),
        ] {
            assert_eq!(leading_integer(text.as_bytes()), number, "{text:?}");
        }
    }
}
