use std::borrow::Cow;

use bsv_tx::opcode::{OP_0, OP_RETURN};
use bsv_tx::{BlockHash, MerkleRoot, OutPoint, PublicKey, Script, sha256};

use super::block::{BlockProof, Evidence, VctxState};
use super::data_refs;
use super::members;
use super::pushes::Pushes;
use super::report::{Candidate, Check, Claim, Findings, Generation, quoted};
use super::signatures::Standing;
use crate::coinbase_reference;
use crate::json::CanonicalJson;
use crate::json_object::Members;

/// Checks an output of generation 0.2.
pub(super) fn examine(block: &BlockProof, output: usize, evidence: &Evidence) -> Candidate {
    let mut findings = Findings::default();
    let mut document = StaticDocument::read(block, output, &mut findings);
    let ends_scan = document
        .as_mut()
        .is_some_and(|document| document.check(block, output, evidence, &mut findings));
    Candidate {
        output,
        generation: Generation::V0_2,
        miner_info: None,
        claim: document.map(|document| document.claim),
        findings: findings.0,
        ends_scan,
    }
}

/// The document that is always there, which a dynamic one may follow.
struct StaticDocument<'a> {
    members: Members<'a>,
    /// The text in the script.
    text: &'a str,
    /// The text as nodes print it again and verify it.
    printed: Cow<'a, str>,
    signature: &'a [u8],
    dynamic: Option<DynamicDocument<'a>>,
    succession: Succession,
    claim: Claim,
}

struct DynamicDocument<'a> {
    text: &'a [u8],
    signature: Option<&'a [u8]>,
}

/// What the previous key signs, as the document spells it.
struct Succession {
    previous: String,
    current: String,
    vctx_txid: String,
    signature: String,
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
        let read = std::str::from_utf8(text)
            .map_err(|_| "not UTF-8".to_owned())
            .and_then(|text| Ok((text, printed(text)?)))
            .and_then(|(text, printed)| {
                let members = Members::read(text).map_err(|error| error.to_string())?;
                let (succession, claim) = claims(&members)?;
                Ok(Self { members, text, printed, signature, dynamic, succession, claim })
            });
        read.map_err(|reason| findings.refused(Check::Document, reason)).ok()
    }

    /// Enters all that is found. Answers whether nodes, should they refuse the identity, look for no
    /// other.
    fn check(
        &mut self,
        block: &BlockProof,
        output: usize,
        evidence: &Evidence,
        findings: &mut Findings,
    ) -> bool {
        self.check_form(findings);
        let is_height_sound = self.check_height(block, findings);
        let is_signed = self.check_signature(findings);
        let is_hexadecimal = self.check_succession(findings);
        self.check_block_binding(block, output, findings);
        self.check_vctx(evidence, findings);
        self.claim.data_refs =
            data_refs::examine(&self.members, Generation::V0_2, &evidence.data, findings);
        if let Some(dynamic) = &self.dynamic {
            match dynamic.check(self, block.height()) {
                Ok(()) => findings.holds(Check::DynamicDocument),
                Err(reason) => findings.refused(Check::DynamicDocument, reason),
            }
        }
        // Nodes stumble over numbers and texts that they cannot convert.
        !is_height_sound || (is_signed && !is_hexadecimal)
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
        if let Some(name) = self.members.repeated(&ONCE) {
            findings.fails(Check::Document, format!("{name} is there more than once"));
        } else if self.claim.vctx.is_none() {
            let reason = "vctx must hold a txId of 64 hexadecimal characters and the index vout";
            findings.fails(Check::Document, reason);
        } else {
            findings.holds(Check::Document);
        }
    }

    /// Answers whether nodes can read the height as a number.
    fn check_height(&self, block: &BlockProof, findings: &mut Findings) -> bool {
        let value = self.members.get("height").unwrap_or_default();
        let spelled = members::text(value);
        let height = match &spelled {
            None => members::integer(value),
            Some(text) => leading_integer(text),
        };
        let Some(height) = height else {
            findings.refused(Check::Height, "the height is not a whole number of 32 bits");
            return false;
        };
        match block.height() {
            None => findings.unknown(Check::Height, "the height of the block is not known"),
            Some(of_block) if i64::from(of_block) != i64::from(height) => {
                let reason = format!("the document is for height {height}, not {of_block}");
                findings.refused(Check::Height, reason);
            }
            Some(_) if spelled.is_some() => {
                findings.fails(Check::Height, "the height must be a number, not a string");
            }
            Some(_) => findings.holds(Check::Height),
        }
        true
    }

    /// Answers whether the signature is good enough for nodes.
    fn check_signature(&self, findings: &mut Findings) -> bool {
        let digest = |text: &str| sha256(text.as_bytes());
        let standing = |text| Standing::of(&self.claim.miner_id, &digest(text), self.signature);
        let printed = &*self.printed;
        let found = standing(printed);
        if found == Standing::Bad && self.text != printed && standing(self.text) != Standing::Bad {
            let reason = "the signature is over a spelling that nodes do not reproduce";
            findings.refused(Check::DocumentSignature, reason);
        } else {
            found.note(Check::DocumentSignature, findings);
        }
        found != Standing::Bad
    }

    /// Answers whether all that is signed is hexadecimal.
    fn check_succession(&self, findings: &mut Findings) -> bool {
        let Succession { previous, current, vctx_txid, signature } = &self.succession;
        let signed = [previous.as_str(), current, vctx_txid].concat();
        let signed = if self.claim.version == "0.1" {
            signed.into_bytes()
        } else if let Ok(bytes) = hex::decode(signed) {
            bytes
        } else {
            findings.refused(Check::MinerIdSuccession, "what is signed is not hexadecimal");
            return false;
        };
        let signature = hex::decode(signature).unwrap_or_default();
        let previous = &self.claim.previous_miner_id;
        Standing::of(previous, &sha256(&signed), &signature)
            .note(Check::MinerIdSuccession, findings);
        true
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

impl DynamicDocument<'_> {
    fn check(&self, before: &StaticDocument<'_>, height: Option<u32>) -> Result<(), &'static str> {
        let signature = self.signature.ok_or("the dynamic document is not signed")?;
        let text = std::str::from_utf8(self.text).map_err(|_| "not UTF-8")?;
        let printed = printed(text).map_err(|_| "not JSON")?;
        let members = Members::read(text).map_err(|_| "not a JSON object")?;
        for name in ["version", "prevMinerId", "prevMinerIdSig", "minerId"] {
            if members.get(name).is_some() && members.text(name).is_none() {
                return Err("a member that must be a string is not one");
            }
        }
        if members.text("version").is_some_and(|version| !VERSIONS_OF_NODES.contains(&&*version)) {
            return Err("the version is not known");
        }
        if let Some(of_document) = members.get("height") {
            let of_document = members::integer(of_document).map(i64::from);
            if of_document.is_none() || of_document != height.map(i64::from) {
                return Err("the height is not the block's");
            }
        }
        if members.get("vctx").is_some()
            && members.object("vctx").is_none_or(|vctx| {
                vctx.text("txId").is_none() || !vctx.get("vout").is_some_and(members::is_number)
            })
        {
            return Err("vctx is not an object that holds txId and vout");
        }
        let key = members.text("dynamicMinerId").ok_or("there is no dynamicMinerId")?;
        let key: PublicKey = key.parse().map_err(|_| "dynamicMinerId is not a public key")?;
        let signed = [before.printed.as_bytes(), before.signature, printed.as_bytes()];
        match Standing::of(&key, &sha256(&signed.concat()), signature) {
            Standing::Good | Standing::Lax => Ok(()),
            Standing::Bad => Err("the signature is not by dynamicMinerId"),
        }
    }
}

/// The versions that nodes let a dynamic document state.
const VERSIONS_OF_NODES: [&str; 3] = ["0.1", "0.2", "0.3"];

/// The text as nodes print it, or why it is none. That a text which is taken as it stands is JSON is
/// left to who reads it.
fn printed(text: &str) -> Result<Cow<'_, str>, String> {
    if is_printed(text) {
        return Ok(Cow::Borrowed(text));
    }
    let printed = CanonicalJson::from_text(text).map_err(|error| error.to_string())?;
    Ok(Cow::Owned(printed.as_str().to_owned()))
}

/// Whether a text, if it is JSON, is surely what nodes print: nothing in it is escaped or has to be,
/// and white space is in strings alone. Nearly all documents are like that.
fn is_printed(text: &str) -> bool {
    let mut is_in_string = false;
    text.bytes().all(|byte| {
        is_in_string ^= byte == b'"';
        !matches!(byte, b'\\' | 0x7f) && (is_in_string || !byte.is_ascii_whitespace())
    })
}

/// What a document says; an error where a node would not read it.
fn claims(members: &Members<'_>) -> Result<(Succession, Claim), String> {
    let text = |name: &str| members.text(name).ok_or_else(|| format!("{name} must be a string"));
    let version = text("version")?;
    if !matches!(version.as_str(), "0.1" | "0.2") {
        return Err(format!("the version is {}, not 0.1 or 0.2", quoted(&version)));
    }
    if !members
        .get("height")
        .is_some_and(|value| members::is_number(value) || value.starts_with('"'))
    {
        return Err("height must be a number".to_owned());
    }
    let vctx = members.object("vctx").ok_or("vctx must be an object")?;
    let vctx_txid = vctx.text("txId").ok_or("vctx.txId must be a string")?;
    let vout = vctx.get("vout").filter(|vout| members::is_number(vout));
    let vout = vout.ok_or("vctx.vout must be a number")?;
    let (previous, current) = (text("prevMinerId")?, text("minerId")?);
    let key = |name: &str, text: &str| -> Result<PublicKey, String> {
        text.parse().map_err(|error| format!("{name}: {error}"))
    };
    let miner_id = key("minerId", &current)?;
    // Most often they are the same, and a key takes a while to read.
    let previous_miner_id =
        if previous == current { miner_id } else { key("prevMinerId", &previous)? };
    let outpoint = vctx_txid
        .parse()
        .ok()
        .zip(members::integer(vout).and_then(|vout| vout.try_into().ok()))
        .map(|(txid, vout)| OutPoint { txid, vout });
    let claim = Claim {
        version,
        miner_id,
        previous_miner_id,
        revocation_keys: None,
        compromised_miner_id: None,
        vctx: outpoint,
        data_refs: Vec::new(),
        name: members.object("minerContact").and_then(|contact| contact.text("name")),
    };
    let signature = text("prevMinerIdSig")?;
    Ok((Succession { previous, current, vctx_txid, signature }, claim))
}

fn parsed<T: std::str::FromStr>(members: &Members<'_>, name: &str) -> Option<T> {
    members.text(name)?.parse().ok()
}

/// The number that a text starts with, after white space and a sign, as C reads it.
fn leading_integer(text: &str) -> Option<i32> {
    let text = text.trim_ascii_start();
    let sign = usize::from(text.starts_with(['-', '+']));
    let digits = text[sign..].bytes().take_while(u8::is_ascii_digit).count();
    text[..sign + digits].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_as_it_stands_is_what_would_be_printed() {
        for (text, is_taken) in [
            (r#"{"a":[1.0,-0e5],"b c":"é /"}"#, true),
            ("{}", true),
            (r#"{"a": 1}"#, false),
            ("{\"a\":1}\n", false),
            (r#"{"a":"\/"}"#, false),
            (r#"{"a":"\"", "b":1}"#, false),
            ("{\"a\":\"\u{7f}\"}", false),
        ] {
            assert_eq!(is_printed(text), is_taken, "{text}");
            let printed = CanonicalJson::from_text(text).unwrap();
            assert_eq!(printed.as_str() == text, is_taken, "{text}");
        }
    }

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
            assert_eq!(leading_integer(text), number, "{text:?}");
        }
    }
}
