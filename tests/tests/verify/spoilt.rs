//! Identities that are not what they should be, in one thing each.

use bsv_minerid::{Check, CoinbaseReference, MinerInfo, MinerInfoScript, Revocation};
use bsv_tests::identified_block::Keys;
use bsv_tx::{PrivateKey, Script, Signature, Txid, sha256};

/// Whether a node takes what is spoilt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    Takes,
    Refuses,
}

/// A spoilt identity of generation 1.0, or of how it was made.
pub(crate) struct SpoiltMinerInfo {
    pub(crate) name: &'static str,
    /// The checks that fail, and no others.
    pub(crate) fail: &'static [Check],
    pub(crate) node: Node,
    /// The keys, made of those of an identity that a node has seen.
    pub(crate) keys: fn(&Keys) -> Keys,
    /// The document, made of a right one.
    pub(crate) document: fn(&Keys, MinerInfo) -> String,
    /// The script that carries the document.
    pub(crate) script: fn(&Keys, &str) -> Script,
    /// The output that refers to it, made of a right one.
    pub(crate) reference: fn(&Keys, CoinbaseReference) -> Script,
}

/// A spoilt identity of generation 0.2, or of how it was made.
pub(crate) struct SpoiltDocument {
    pub(crate) name: &'static str,
    /// The checks that fail, and no others.
    pub(crate) fail: &'static [Check],
    pub(crate) node: Node,
    /// The document, made of a right one.
    pub(crate) document: fn(&Keys, String) -> String,
    /// The script that carries the document.
    pub(crate) script: fn(&Keys, &str) -> Script,
}

impl SpoiltMinerInfo {
    pub(crate) const fn new(name: &'static str, fail: &'static [Check], node: Node) -> Self {
        Self {
            name,
            fail,
            node,
            keys: Keys::clone,
            document: |_, document| document.to_json(),
            script: signed,
            reference: |_, reference| reference.to_script(),
        }
    }

    pub(crate) fn keys(self, keys: fn(&Keys) -> Keys) -> Self {
        Self { keys, ..self }
    }

    pub(crate) fn document(self, document: fn(&Keys, MinerInfo) -> String) -> Self {
        Self { document, ..self }
    }

    pub(crate) fn script(self, script: fn(&Keys, &str) -> Script) -> Self {
        Self { script, ..self }
    }

    pub(crate) fn reference(self, reference: fn(&Keys, CoinbaseReference) -> Script) -> Self {
        Self { reference, ..self }
    }
}

impl SpoiltDocument {
    pub(crate) const fn new(name: &'static str, fail: &'static [Check], node: Node) -> Self {
        Self { name, fail, node, document: |_, document| document, script: Keys::sign }
    }

    pub(crate) fn document(self, document: fn(&Keys, String) -> String) -> Self {
        Self { document, ..self }
    }

    pub(crate) fn script(self, script: fn(&Keys, &str) -> Script) -> Self {
        Self { script, ..self }
    }
}

/// A key that nobody knows.
pub(crate) fn stranger() -> PrivateKey {
    PrivateKey::generate().unwrap()
}

/// The script of a document of generation 1.0 as it should be.
pub(crate) fn signed(keys: &Keys, document: &str) -> Script {
    with_signature(document, keys.miner_id.sign(&sha256(document.as_bytes())).to_der())
}

pub(crate) fn with_signature(document: &str, signature: Vec<u8>) -> Script {
    MinerInfoScript { document: document.as_bytes().to_vec(), signature }.to_script()
}

/// The same signature with the other S, which libraries do not make.
pub(crate) fn high_s(signature: &Signature) -> Vec<u8> {
    const ORDER: &str = "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141";
    let der = signature.to_der();
    let s_start = 4 + usize::from(der[3]) + 2;
    let s = &der[s_start..];
    let mut difference = hex::decode(ORDER).unwrap();
    let mut borrow = 0;
    for (place, minuend) in difference.iter_mut().rev().enumerate() {
        let subtrahend = s.len().checked_sub(place + 1).map_or(0, |at| i16::from(s[at]));
        let rest = i16::from(*minuend) - subtrahend - borrow;
        borrow = i16::from(rest < 0);
        *minuend = rest.rem_euclid(256) as u8;
    }
    // Above half of the order, so that it needs a byte in front not to be negative.
    let mut high = der[..s_start - 1].to_vec();
    high.push(33);
    high.push(0);
    high.extend(difference);
    high[1] = (high.len() - 2) as u8;
    high
}

/// A script of generation 1.0 with something else in place of the push of its version.
fn versioned(script: &Script, version: &[u8]) -> Script {
    let bytes = script.as_bytes();
    Script::from_bytes([&bytes[..7], version, &bytes[9..]].concat())
}

fn cut(script: &Script, bytes: usize) -> Script {
    let all = script.as_bytes();
    Script::from_bytes(&all[..all.len() - bytes])
}

/// A document in which `from`, which must be there, is `to`.
fn replaced(document: impl AsRef<str>, from: &str, to: &str) -> String {
    assert!(document.as_ref().contains(from), "{} has no {from}", document.as_ref());
    document.as_ref().replacen(from, to, 1)
}

/// What the previous miner id signs.
fn succession(keys: &Keys) -> [u8; 32] {
    let [previous, current] =
        [&keys.previous_miner_id, &keys.miner_id].map(|key| key.public_key().to_bytes());
    sha256(&[previous, current].concat())
}

fn revoking(keys: &Keys, document: MinerInfo, sig1: &PrivateKey, sig2: &PrivateKey) -> MinerInfo {
    let compromised = keys.previous_miner_id.public_key();
    MinerInfo { revocation: Some(Revocation::sign(compromised, sig1, sig2)), ..document }
}

fn resigned(keys: &Keys, reference: CoinbaseReference) -> Script {
    let signature = keys.miner_id.sign(&reference.block_bind).to_der();
    CoinbaseReference { signature, ..reference }.to_script()
}

/// A document with references to data, `right` but for what `spoil` makes of it.
fn with_data_refs(document: MinerInfo, from: &str, to: &str) -> String {
    let right = format!(
        r#"{{"refs":[{{"brfcIds":["62b21572ca46"],"txid":"{}","vout":0}}]}}"#,
        "ee".repeat(32)
    );
    let refs = replaced(right, from, to);
    let json = document.to_json();
    format!(r#"{},"extensions":{{"dataRefs":{refs}}}}}"#, json.strip_suffix('}').unwrap())
}

pub(crate) mod documents {
    //! Generation 1.0.

    use super::Node::{Refuses, Takes};
    use super::*;

    type Spoilt = SpoiltMinerInfo;

    pub(crate) fn all() -> Vec<Spoilt> {
        [members(), successions(), revocations(), data_refs(), scripts(), references()]
            .into_iter()
            .flatten()
            .collect()
    }

    fn members() -> Vec<Spoilt> {
        let member = |name, node| Spoilt::new(name, &[Check::Document], node);
        vec![
            Spoilt::new("height of the next block", &[Check::Height], Takes)
                .document(|_, d| MinerInfo { height: d.height + 1, ..d }.to_json()),
            member("height 0", Refuses).document(|_, d| MinerInfo { height: 0, ..d }.to_json()),
            member("height as text", Refuses).document(|_, d| {
                let height = d.height;
                replaced(d.to_json(), &format!(":{height},"), &format!(r#":"{height}","#))
            }),
            member("height with a fraction", Refuses).document(|_, d| {
                let height = d.height;
                replaced(d.to_json(), &format!(":{height},"), &format!(":{height}.0,"))
            }),
            member("version 0.2", Refuses)
                .document(|_, d| replaced(d.to_json(), r#""0.3""#, r#""0.2""#)),
            member("version as a number", Refuses)
                .document(|_, d| replaced(d.to_json(), r#""0.3""#, "0.3")),
            member("miner id cut short", Refuses).document(|keys, d| {
                let id = keys.miner_id.public_key().to_string();
                let member = r#""minerId":""#;
                replaced(d.to_json(), &format!("{member}{id}"), &format!("{member}{}", &id[2..]))
            }),
            member("miner id off the curve", Refuses).document(|keys, d| {
                let id = keys.miner_id.public_key().to_string();
                let (member, off) = (r#""minerId":""#, format!("02{}", "ff".repeat(32)));
                replaced(d.to_json(), &format!("{member}{id}"), &format!("{member}{off}"))
            }),
            member("no revocation key", Refuses)
                .document(|_, d| replaced(d.to_json(), r#""revocationKey""#, r#""other""#)),
            member("version twice", Takes).document(|_, d| {
                replaced(d.to_json(), r#"{"version""#, r#"{"version":"0.3","version""#)
            }),
            member("no JSON", Refuses)
                .document(|_, d| replaced(d.to_json(), r#""version":"#, r#""version""#)),
        ]
    }

    fn successions() -> Vec<Spoilt> {
        let miner_id = |name, node| Spoilt::new(name, &[Check::MinerIdSuccession], node);
        let revocation_key =
            |name, node| Spoilt::new(name, &[Check::RevocationKeySuccession], node);
        fn signing(mut d: MinerInfo, key: &PrivateKey, digest: [u8; 32]) -> String {
            d.miner_id.signature = key.sign(&digest);
            d.to_json()
        }
        vec![
            miner_id("miner id vouched for by a stranger", Refuses)
                .document(|keys, d| signing(d, &stranger(), succession(keys))),
            miner_id("miner ids signed as text", Refuses).document(|keys, d| {
                let ids = format!("{}{}", d.miner_id.previous, d.miner_id.current);
                signing(d, &keys.previous_miner_id, sha256(ids.as_bytes()))
            }),
            miner_id("miner ids hashed twice", Refuses)
                .document(|keys, d| signing(d, &keys.previous_miner_id, sha256(&succession(keys)))),
            miner_id("miner ids signed with a high S", Takes).document(|_, d| {
                let right = d.miner_id.signature;
                replaced(d.to_json(), &right.to_string(), &hex::encode(high_s(&right)))
            }),
            miner_id("miner id signature that is too long", Refuses).document(|_, d| {
                let right = d.miner_id.signature.to_string();
                replaced(d.to_json(), &right, &format!("{right}000000"))
            }),
            miner_id("miner ids signed in the wrong order", Refuses).keys(Keys::rotated).document(
                |keys, d| {
                    let (previous, current) = (d.miner_id.previous, d.miner_id.current);
                    let digest = sha256(&[current.to_bytes(), previous.to_bytes()].concat());
                    signing(d, &keys.previous_miner_id, digest)
                },
            ),
            miner_id("rotation signed by the new key", Refuses)
                .keys(Keys::rotated)
                .document(|keys, d| signing(d, &keys.miner_id, succession(keys))),
            revocation_key("revocation key vouched for by a stranger", Refuses).document(
                |keys, mut d| {
                    let key = keys.revocation_key.public_key().to_bytes();
                    d.revocation_key.signature = stranger().sign(&sha256(&[key, key].concat()));
                    d.to_json()
                },
            ),
            revocation_key("roll signed by the new key", Refuses).keys(Keys::rolled).document(
                |keys, mut d| {
                    let key = |key: &PrivateKey| key.public_key().to_bytes();
                    let both = [key(&keys.previous_revocation_key), key(&keys.revocation_key)];
                    d.revocation_key.signature = keys.revocation_key.sign(&sha256(&both.concat()));
                    d.to_json()
                },
            ),
        ]
    }

    fn revocations() -> Vec<Spoilt> {
        let revocation = |name, node| Spoilt::new(name, &[Check::Revocation], node);
        let member = |name| Spoilt::new(name, &[Check::Document], Refuses);
        vec![
            member("revocation without signatures").document(|keys, d| {
                let d = revoking(keys, d, &keys.revocation_key, &keys.previous_miner_id);
                replaced(d.to_json(), "revocationMessageSig", "other")
            }),
            member("compromised miner id cut short").document(|keys, d| {
                let d = revoking(keys, d, &keys.revocation_key, &keys.previous_miner_id);
                let member = r#""compromised_minerId":"02"#;
                let member = if d.to_json().contains(member) {
                    member.to_owned()
                } else {
                    member.replace("02", "03")
                };
                replaced(d.to_json(), &member, r#""compromised_minerId":""#)
            }),
            revocation("sig1 and sig2 swapped", Refuses).document(|keys, d| {
                revoking(keys, d, &keys.previous_miner_id, &keys.revocation_key).to_json()
            }),
            revocation("sig1 by a stranger", Refuses).document(|keys, d| {
                revoking(keys, d, &stranger(), &keys.previous_miner_id).to_json()
            }),
            revocation("sig2 by a stranger", Refuses)
                .document(|keys, d| revoking(keys, d, &keys.revocation_key, &stranger()).to_json()),
            revocation("sig2 by the new miner id", Refuses).keys(Keys::rotated).document(
                |keys, d| revoking(keys, d, &keys.revocation_key, &keys.miner_id).to_json(),
            ),
            revocation("revocation together with a roll", Refuses).keys(Keys::rolled).document(
                |keys, d| {
                    revoking(keys, d, &keys.revocation_key, &keys.previous_miner_id).to_json()
                },
            ),
            revocation("compromised miner id hashed twice", Refuses).document(|keys, d| {
                let compromised = keys.previous_miner_id.public_key();
                let digest = sha256(&sha256(&compromised.to_bytes()));
                let revocation = Revocation {
                    compromised,
                    revocation_key_signature: keys.revocation_key.sign(&digest),
                    miner_id_signature: keys.previous_miner_id.sign(&digest),
                };
                MinerInfo { revocation: Some(revocation), ..d }.to_json()
            }),
        ]
    }

    fn data_refs() -> Vec<Spoilt> {
        let refs = |name, node| Spoilt::new(name, &[Check::DataRefs], node);
        vec![
            refs("refs that are no array", Refuses)
                .document(|_, d| with_data_refs(d, r#""refs":["#, r#""refs":{},"others":["#)),
            refs("a reference that is no object", Refuses)
                .document(|_, d| with_data_refs(d, "[{", r#"["x",{"#)),
            refs("a reference without brfcIds", Refuses)
                .document(|_, d| with_data_refs(d, "brfcIds", "ids")),
            refs("brfcIds that are numbers", Refuses)
                .document(|_, d| with_data_refs(d, r#""62b21572ca46""#, "1")),
            refs("vout as text", Refuses).document(|_, d| with_data_refs(d, ":0}", r#":"0"}"#)),
            refs("vout with a fraction", Refuses)
                .document(|_, d| with_data_refs(d, ":0}", ":0.5}")),
            refs("txid cut short", Refuses).document(|_, d| with_data_refs(d, "eeee", "ee")),
            refs("compress that is no text", Refuses)
                .document(|_, d| with_data_refs(d, ":0}", r#":0,"compress":null}"#)),
            refs("a brfcId of 6 digits", Takes)
                .document(|_, d| with_data_refs(d, "62b21572ca46", "62b215")),
            refs("a negative vout", Takes).document(|_, d| with_data_refs(d, ":0}", ":-1}")),
        ]
    }

    fn scripts() -> Vec<Spoilt> {
        let signature = |name| Spoilt::new(name, &[Check::DocumentSignature], Takes);
        let script = |name| Spoilt::new(name, &[Check::MinerInfoTransaction], Refuses);
        vec![
            signature("document signed by a stranger")
                .script(|_, document| signed(&Keys::first(), document)),
            signature("document hashed twice").script(|keys, document| {
                let digest = sha256(&sha256(document.as_bytes()));
                with_signature(document, keys.miner_id.sign(&digest).to_der())
            }),
            signature("document signed with a high S").script(|keys, document| {
                let right = keys.miner_id.sign(&sha256(document.as_bytes()));
                with_signature(document, high_s(&right))
            }),
            script("document with OP_0 for the version")
                .script(|keys, document| versioned(&signed(keys, document), &[0x00])),
            script("document of script version 1")
                .script(|keys, document| versioned(&signed(keys, document), &[0x01, 0x01])),
            script("document whose signature is cut short")
                .script(|keys, document| cut(&signed(keys, document), 1)),
            script("document without a signature")
                .script(|_, document| cut(&with_signature(document, vec![0x30; 70]), 71)),
            script("document with a signature of 63 bytes")
                .script(|_, document| with_signature(document, vec![0x30; 63])),
            script("document with a signature of 73 bytes")
                .script(|_, document| with_signature(document, vec![0x30; 73])),
        ]
    }

    fn references() -> Vec<Spoilt> {
        let script = |name, node| Spoilt::new(name, &[Check::OutputScript], node);
        let binding = |name| Spoilt::new(name, &[Check::BlockBinding], Refuses);
        let signature = |name, node| Spoilt::new(name, &[Check::BlockBindingSignature], node);
        vec![
            script("reference with OP_0 for the version", Refuses)
                .reference(|_, reference| versioned(&reference.to_script(), &[0x00])),
            script("reference of script version 1", Refuses)
                .reference(|_, reference| versioned(&reference.to_script(), &[0x01, 0x01])),
            script("reference whose signature is cut short", Refuses)
                .reference(|_, reference| cut(&reference.to_script(), 1)),
            script("reference without a signature", Refuses).reference(|_, reference| {
                cut(&reference.to_script(), 1 + reference.signature.len())
            }),
            script("reference with a binding of 31 bytes", Refuses).reference(|_, reference| {
                let script = reference.to_script().into_bytes();
                Script::from_bytes([&script[..42], &[31], &script[44..]].concat())
            }),
            script("reference with one push more", Takes).reference(|_, reference| {
                Script::from_bytes([reference.to_script().as_bytes(), &[0x01, 0xaa]].concat())
            }),
            Spoilt::new(
                "transaction id in display order",
                &[Check::BlockBinding, Check::MinerInfoInclusion],
                Refuses,
            )
            .reference(|_, reference| {
                let txid = reference.miner_info_txid.to_display_bytes();
                let miner_info_txid = Txid::from_bytes(txid);
                CoinbaseReference { miner_info_txid, ..reference }.to_script()
            }),
            binding("binding in display order").reference(|keys, mut reference| {
                reference.block_bind.reverse();
                resigned(keys, reference)
            }),
            binding("binding hashed twice").reference(|keys, mut reference| {
                reference.block_bind = sha256(&reference.block_bind);
                resigned(keys, reference)
            }),
            signature("binding signed by a stranger", Refuses).reference(|_, reference| {
                let signature = stranger().sign(&reference.block_bind).to_der();
                CoinbaseReference { signature, ..reference }.to_script()
            }),
            signature("binding hashed before it is signed", Refuses).reference(
                |keys, reference| {
                    let signature = keys.miner_id.sign(&sha256(&reference.block_bind)).to_der();
                    CoinbaseReference { signature, ..reference }.to_script()
                },
            ),
            signature("binding signed with a high S", Takes).reference(|keys, reference| {
                let signature = high_s(&keys.miner_id.sign(&reference.block_bind));
                CoinbaseReference { signature, ..reference }.to_script()
            }),
        ]
    }
}

pub(crate) mod coinbase_documents {
    //! Generation 0.2.

    use bsv_minerid::IdentityScript;
    use bsv_tests::identified_block::VCTX;

    use super::Node::{Refuses, Takes};
    use super::*;

    type Spoilt = SpoiltDocument;

    /// The document with a member of another text.
    fn signing(keys: &Keys, document: &str, key: &PrivateKey, digest: [u8; 32]) -> String {
        let mut document = bsv_minerid::Document::from_json(document).unwrap();
        assert_eq!(document.miner_id, keys.miner_id.public_key());
        document.previous_miner_id_signature = key.sign(&digest);
        document.to_json()
    }

    fn preimage(keys: &Keys) -> Vec<u8> {
        let [previous, current] =
            [&keys.previous_miner_id, &keys.miner_id].map(|key| key.public_key().to_bytes());
        [&previous[..], &current, &VCTX.txid.to_display_bytes()].concat()
    }

    fn with_signature(document: &str, signature: Vec<u8>) -> Script {
        IdentityScript { document: document.as_bytes().to_vec(), signature }.to_script()
    }

    /// The document with one member more, its last.
    fn with_member(document: &str, member: &str) -> String {
        format!("{},{member}}}", document.strip_suffix('}').unwrap())
    }

    fn with_dynamic(keys: &Keys, document: &str, key: &PrivateKey) -> Script {
        let signature = keys.miner_id.sign(&sha256(document.as_bytes())).to_der();
        let dynamic = format!(r#"{{"dynamicMinerId":"{}"}}"#, stranger().public_key());
        let signed = [document.as_bytes(), &signature, dynamic.as_bytes()].concat();
        let second = IdentityScript {
            signature: key.sign(&sha256(&signed)).to_der(),
            document: dynamic.into_bytes(),
        };
        let script = with_signature(document, signature).into_bytes();
        Script::from_bytes([&script, &second.to_script().as_bytes()[7..]].concat())
    }

    pub(crate) fn all() -> Vec<Spoilt> {
        [members(), signatures(), bindings()].into_iter().flatten().collect()
    }

    fn members() -> Vec<Spoilt> {
        let member = |name, node| Spoilt::new(name, &[Check::Document], node);
        let height = |name, node| Spoilt::new(name, &[Check::Height], node);
        vec![
            height("height of the next block", Refuses).document(|_, d| {
                let document = bsv_minerid::Document::from_json(&d).unwrap();
                bsv_minerid::Document { height: document.height + 1, ..document }.to_json()
            }),
            height("height with a fraction", Refuses)
                .document(|_, d| replaced(&d, r#","prevMinerId""#, r#".0,"prevMinerId""#)),
            member("version 0.3", Refuses).document(|_, d| replaced(&d, r#""0.2""#, r#""0.3""#)),
            member("no vctx", Refuses).document(|_, d| replaced(&d, "vctx", "other")),
            member("vctx.vout as text", Refuses)
                .document(|_, d| replaced(&d, r#""vout":0"#, r#""vout":"0""#)),
            member("a negative vctx.vout", Takes)
                .document(|_, d| replaced(&d, r#""vout":0"#, r#""vout":-1"#)),
            member("version twice", Takes)
                .document(|_, d| replaced(&d, r#"{"version""#, r#"{"version":"0.2","version""#)),
            member("no JSON", Refuses)
                .document(|_, d| replaced(&d, r#""version":"#, r#""version""#)),
            Spoilt::new("dataRefs without refs", &[Check::DataRefs], Refuses)
                .document(|_, d| with_member(&d, r#""dataRefs":{}"#)),
        ]
    }

    fn signatures() -> Vec<Spoilt> {
        let succession = |name, node| Spoilt::new(name, &[Check::MinerIdSuccession], node);
        let signature = |name, node| Spoilt::new(name, &[Check::DocumentSignature], node);
        let script = |name, node| Spoilt::new(name, &[Check::OutputScript], node);
        vec![
            succession("miner id vouched for by a stranger", Refuses)
                .document(|keys, d| signing(keys, &d, &stranger(), sha256(&preimage(keys)))),
            succession("miner ids signed as text", Refuses).document(|keys, d| {
                let digest = sha256(hex::encode(preimage(keys)).as_bytes());
                signing(keys, &d, &keys.previous_miner_id, digest)
            }),
            succession("VCTx id signed in internal order", Refuses).document(|keys, d| {
                let mut preimage = preimage(keys);
                preimage[66..].reverse();
                signing(keys, &d, &keys.previous_miner_id, sha256(&preimage))
            }),
            succession("miner ids hashed twice", Refuses).document(|keys, d| {
                let digest = sha256(&sha256(&preimage(keys)));
                signing(keys, &d, &keys.previous_miner_id, digest)
            }),
            signature("document signed by a stranger", Refuses)
                .script(|_, d| Keys::first().sign(d)),
            signature("document hashed twice", Refuses).script(|keys, d| {
                let digest = sha256(&sha256(d.as_bytes()));
                with_signature(d, keys.miner_id.sign(&digest).to_der())
            }),
            signature("document signed as it is not printed", Refuses)
                .document(|_, d| replaced(&d, r#"{"version":"#, r#"{ "version":"#)),
            signature("document signed with a high S", Takes).script(|keys, d| {
                with_signature(d, high_s(&keys.miner_id.sign(&sha256(d.as_bytes()))))
            }),
            signature("document whose signature is not strict DER", Takes).script(|keys, d| {
                let mut signature = keys.miner_id.sign(&sha256(d.as_bytes())).to_der();
                signature.push(0);
                with_signature(d, signature)
            }),
            script("document whose signature is cut short", Refuses)
                .script(|keys, d| cut(&keys.sign(d), 1)),
            script("document without a signature", Refuses)
                .script(|_, d| cut(&with_signature(d, vec![0x30; 70]), 71)),
            Spoilt::new("dynamic document by a stranger", &[Check::DynamicDocument], Refuses)
                .script(|keys, d| with_dynamic(keys, d, &stranger())),
        ]
    }

    fn bindings() -> Vec<Spoilt> {
        let binding = |name| Spoilt::new(name, &[Check::BlockBinding], Takes);
        vec![
            binding("block binding of another block").document(|_, d| {
                let hash = "ab".repeat(32);
                let bind = format!(r#"{{"prevBlockHash":"{hash}","modifiedMerkleRoot":"{hash}"}}"#);
                with_member(&d, &format!(r#""extensions":{{"blockbind":{bind}}}"#))
            }),
            binding("block binding that is empty")
                .document(|_, d| with_member(&d, r#""extensions":{"blockbind":{}}"#)),
        ]
    }
}
