use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use bsv_tx::{PublicKey, Txid, sha256};

use super::data_refs::{self, DataOutputs};
use super::members::{Members, Value};
use super::node_json::{NOT_STANDARD, is_standard};
use super::node_text::before_nul;
use super::report::{Check, Claim, Findings, Generation, RevocationKeys, quoted};
use super::signatures::{BAD, LAX, Standing};
use crate::miner_info_script::MinerInfoScript;
use crate::operator_members::{CONTACT, EXTENSIONS, PROTOCOL_MEMBERS};
use crate::succession::Succession;

/// A document whose members have the right types.
pub(super) struct Document<'a> {
    members: Members<'a>,
    height: i32,
    miner_id_signature: Cow<'a, [u8]>,
    revocation_key_signature: Cow<'a, [u8]>,
    revocation_keys: RevocationKeys,
    revocation: Option<Revocation<'a>>,
    pub(super) claim: Claim,
}

/// `revocationMessage` and `revocationMessageSig`.
struct Revocation<'a> {
    compromised: Vec<u8>,
    signatures: [Cow<'a, [u8]>; 2],
}

impl<'a> Document<'a> {
    pub(super) fn read(text: &'a [u8], findings: &mut Findings) -> Option<Self> {
        let document = Members::read(text)
            .map_err(|error| error.to_string())
            .and_then(Self::from_members)
            .map_err(|reason| findings.refused(Check::Document, reason))
            .ok()?;
        let members = &document.members;
        if let Some(name) = members.repeated(PROTOCOL_MEMBERS.iter().chain(&[CONTACT, EXTENSIONS]))
        {
            findings.fails(Check::Document, format!("{name} occurs more than once"));
        } else if !is_standard(text) {
            findings.fails(Check::Document, NOT_STANDARD);
        } else if document.has_nul() {
            let reason = "a text contains a NUL, where nodes stop reading";
            findings.fails(Check::Document, reason);
        } else {
            findings.holds(Check::Document);
        }
        Some(document)
    }

    fn from_members(members: Members<'a>) -> Result<Self, String> {
        let string =
            |name: &str| members.bytes(name).ok_or_else(|| format!("{name} must be a string"));
        let version = string("version")?;
        if *version != *b"0.3" {
            let version = String::from_utf8_lossy(&version);
            return Err(format!("the version is {}, not 0.3", quoted(&version)));
        }
        let height = members.get("height").and_then(Value::integer).filter(|height| *height > 0);
        let height = height.ok_or("height must be a whole number from 1 to 2147483647")?;
        let key = |name: &str| -> Result<PublicKey, String> {
            let text = string(name)?;
            let key = hex::decode(before_nul(&text)).ok().and_then(|key| key.try_into().ok());
            let key = key.and_then(|key| PublicKey::from_bytes(&key).ok());
            key.ok_or_else(|| format!("{name} is not a compressed public key"))
        };
        // The keys are usually the same, and parsing a key is slow.
        let pair = |current: &str, previous: &str| -> Result<[PublicKey; 2], String> {
            let current_key = key(current)?;
            let is_same = string(current)? == string(previous)?;
            Ok([current_key, if is_same { current_key } else { key(previous)? }])
        };
        let [miner_id, previous_miner_id] = pair("minerId", "prevMinerId")?;
        let [current, previous] = pair("revocationKey", "prevRevocationKey")?;
        let revocation_keys = RevocationKeys { current, previous };
        let (compromised_miner_id, revocation) = Revocation::read(&members)?.unzip();
        let claim = Claim {
            version: "0.3".to_owned(),
            miner_id,
            previous_miner_id,
            revocation_keys: Some(revocation_keys),
            compromised_miner_id,
            vctx: None,
            data_refs: Vec::new(),
            name: members.object(CONTACT).and_then(|contact| contact.text("name")),
        };
        let (miner_id_signature, revocation_key_signature) =
            (string("prevMinerIdSig")?, string("prevRevocationKeySig")?);
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

    /// Whether nodes read only the beginning of some text of the protocol, up to a NUL.
    fn has_nul(&self) -> bool {
        let has_nul = |text: Option<Cow<'_, [u8]>>| text.is_some_and(|text| text.contains(&0));
        let inner = [
            ("revocationMessage", "compromised_minerId"),
            ("revocationMessageSig", "sig1"),
            ("revocationMessageSig", "sig2"),
        ];
        PROTOCOL_MEMBERS.iter().any(|name| has_nul(self.members.bytes(name)))
            || inner.iter().any(|(object, name)| {
                self.members.object(object).is_some_and(|object| has_nul(object.bytes(name)))
            })
    }

    /// Reports all checks.
    pub(super) fn check(
        &mut self,
        script: &MinerInfoScript,
        block_height: Option<u32>,
        data: &HashMap<Txid, Arc<DataOutputs>>,
        findings: &mut Findings,
    ) {
        let Claim { miner_id, previous_miner_id, .. } = self.claim;
        // Nodes check neither this signature nor the height.
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

impl<'a> Revocation<'a> {
    /// Reads the two members, which must both exist or both be absent, and the compromised miner id
    /// as it is spelled.
    fn read(members: &Members<'a>) -> Result<Option<(String, Self)>, String> {
        const BOTH: &str =
            "revocationMessage and revocationMessageSig must both be objects, or absent";
        if members.get("revocationMessage").is_none()
            && members.get("revocationMessageSig").is_none()
        {
            return Ok(None);
        }
        let message = members.object("revocationMessage").ok_or(BOTH)?;
        let signatures = members.object("revocationMessageSig").ok_or(BOTH)?;
        let spelled = message.bytes("compromised_minerId").unwrap_or_default();
        let compromised = hex::decode(before_nul(&spelled))
            .ok()
            .filter(|key| key.len() == 33 && matches!(key[0], 2 | 3))
            .ok_or("compromised_minerId must be a compressed public key")?;
        let signature = |name: &str| {
            signatures
                .bytes(name)
                .ok_or_else(|| format!("revocationMessageSig.{name} must be a string"))
        };
        let signatures = [signature("sig1")?, signature("sig2")?];
        let spelled = String::from_utf8_lossy(&spelled).into_owned();
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
