//! Spoilt identities, each of which is wrong in one respect.

pub(crate) mod coinbase_documents;
pub(crate) mod documents;

use bsv_minerid::formats::{CoinbaseReference, MinerInfo, MinerInfoScript, Revocation};
use bsv_minerid::verify::Check;
use bsv_tests::identified_block::Keys;
use bsv_tx::{PrivateKey, Script, Signature, Txid, sha256};

/// Whether a node accepts a spoilt identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    Takes,
    Refuses,
    /// Nodes up to 1.2.0 accept it, like the one of the tests (1.0.13). Nodes from 1.2.1 refuse it.
    TookBefore1_2_1,
}

/// A spoilt identity of generation 1.0, as functions that change the valid parts.
pub(crate) struct SpoiltMinerInfo {
    pub(crate) name: &'static str,
    /// The checks that fail. All others hold.
    pub(crate) fail: &'static [Check],
    pub(crate) node: Node,
    /// Makes the keys from those of an identity that a node has seen.
    pub(crate) keys: fn(&Keys) -> Keys,
    /// Makes the document from a valid one.
    pub(crate) document: fn(&Keys, MinerInfo) -> String,
    /// Makes the script that carries the document.
    pub(crate) script: fn(&Keys, &str) -> Script,
    /// Makes the script of the reference from a valid reference.
    pub(crate) reference: fn(&Keys, CoinbaseReference) -> Script,
}

/// A spoilt identity of generation 0.2, as functions that change the valid parts.
pub(crate) struct SpoiltDocument {
    pub(crate) name: &'static str,
    /// The checks that fail. All others hold.
    pub(crate) fail: &'static [Check],
    pub(crate) node: Node,
    /// Makes the document from a valid one.
    pub(crate) document: fn(&Keys, String) -> String,
    /// Makes the script that carries the document.
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
            script: |keys, document| signed(keys, document),
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

/// A new random key.
pub(crate) fn stranger() -> PrivateKey {
    PrivateKey::generate().unwrap()
}

/// The script of a document of generation 1.0 with a valid signature.
pub(crate) fn signed(keys: &Keys, document: impl AsRef<[u8]>) -> Script {
    let document = document.as_ref();
    with_signature(document, keys.miner_id.sign(&sha256(document)).to_der())
}

pub(crate) fn with_signature(document: impl AsRef<[u8]>, signature: Vec<u8>) -> Script {
    MinerInfoScript { document: document.as_ref().to_vec(), signature }.to_script()
}

/// The same signature with the higher S, which libraries do not make.
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
    // The higher S is above half the order. It needs a zero byte in front, so that it does not
    // count as negative.
    let mut high = der[..s_start - 1].to_vec();
    high.push(33);
    high.push(0);
    high.extend(difference);
    high[1] = (high.len() - 2) as u8;
    high
}

/// A script of generation 1.0 with other bytes instead of the push of its version.
fn versioned(script: &Script, version: &[u8]) -> Script {
    let bytes = script.as_bytes();
    Script::from_bytes([&bytes[..7], version, &bytes[9..]].concat())
}

fn cut(script: &Script, bytes: usize) -> Script {
    let all = script.as_bytes();
    Script::from_bytes(&all[..all.len() - bytes])
}

/// A document with `to` instead of the first `from`, which must be there.
fn replaced(document: impl AsRef<str>, from: &str, to: &str) -> String {
    assert!(document.as_ref().contains(from), "{} has no {from}", document.as_ref());
    document.as_ref().replacen(from, to, 1)
}

/// The bytes of a document with `to` instead of the first `from`, which must be there.
fn replaced_bytes(document: &str, from: &str, to: &[u8]) -> Vec<u8> {
    let (before, after) = document.split_once(from).unwrap();
    [before.as_bytes(), to, after.as_bytes()].concat()
}

/// The document with one more member at the end.
pub(crate) fn with_member(document: &str, member: &str) -> String {
    format!("{},{member}}}", document.strip_suffix('}').unwrap())
}

/// A member of so many nested arrays.
pub(crate) fn nested(depth: usize) -> String {
    format!(r#""x":{}{}"#, "[".repeat(depth), "]".repeat(depth))
}

/// The digest that the previous miner id signs.
fn succession(keys: &Keys) -> [u8; 32] {
    let [previous, current] =
        [&keys.previous_miner_id, &keys.miner_id].map(|key| key.public_key().to_bytes());
    sha256(&[previous, current].concat())
}

fn revoking(keys: &Keys, document: MinerInfo, sig1: &PrivateKey, sig2: &PrivateKey) -> MinerInfo {
    let compromised = keys.previous_miner_id.public_key();
    MinerInfo { revocation: Some(Revocation::sign(compromised, sig1, sig2).unwrap()), ..document }
}

fn resigned(keys: &Keys, reference: CoinbaseReference) -> Script {
    let signature = keys.miner_id.sign(&reference.block_bind).to_der();
    CoinbaseReference { signature, ..reference }.to_script()
}

/// A document with a reference to data. In the valid reference, `to` stands instead of `from`.
fn with_data_refs(document: MinerInfo, from: &str, to: &str) -> String {
    let right = format!(
        r#"{{"refs":[{{"brfcIds":["62b21572ca46"],"txid":"{}","vout":0}}]}}"#,
        "ee".repeat(32)
    );
    let refs = replaced(right, from, to);
    let json = document.to_json();
    format!(r#"{},"extensions":{{"dataRefs":{refs}}}}}"#, json.strip_suffix('}').unwrap())
}
