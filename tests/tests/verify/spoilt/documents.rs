//! Spoilt identities of generation 1.0.

use super::Node::{Refuses, Takes};
use super::*;

type Spoilt = SpoiltMinerInfo;

pub(crate) fn all() -> Vec<Spoilt> {
    [members(), texts(), successions(), revocations(), data_refs(), scripts(), references()]
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

/// Texts that are JSON for others and not for nodes, or the other way round.
fn texts() -> Vec<Spoilt> {
    let document = |name, node| Spoilt::new(name, &[Check::Document], node);
    vec![
        document("an unpaired surrogate", Refuses)
            .document(|_, d| replaced(d.to_json(), "a pool", r"a pool \ud83d")),
        document("an unpaired second surrogate", Refuses)
            .document(|_, d| replaced(d.to_json(), "a pool", r"a pool \ude00")),
        document("ASCII between two surrogates", Takes)
            .document(|_, d| replaced(d.to_json(), "a pool", r"\ud83d a pool \ude00")),
        document("a character that nodes take for another", Takes)
            .document(|_, d| replaced(d.to_json(), "a pool", r"a pool \ud840\udc00")),
        document("2049 arrays within one another", Refuses)
            .document(|_, d| with_member(&d.to_json(), &nested(2049))),
        document("overlong UTF-8", Takes)
            .script(|keys, d| signed(keys, replaced_bytes(d, "a pool", b"a p\xc1\xafol"))),
        document("a character beyond Unicode", Takes)
            .script(|keys, d| signed(keys, replaced_bytes(d, "pool@", b"\xf4\x90\x80\x80@"))),
        document("no UTF-8", Refuses)
            .script(|keys, d| signed(keys, replaced_bytes(d, "a pool", b"a pool \xe9"))),
        document("a byte order mark", Refuses).document(|_, d| format!("\u{feff}{}", d.to_json())),
        document("text after a NUL in a key", Takes).document(|keys, d| {
            let id = keys.miner_id.public_key().to_string();
            let member = format!(r#""minerId":"{id}"#);
            replaced(d.to_json(), &member, &format!(r"{member}\u0000 and more"))
        }),
    ]
}

fn successions() -> Vec<Spoilt> {
    let miner_id = |name, node| Spoilt::new(name, &[Check::MinerIdSuccession], node);
    let revocation_key = |name, node| Spoilt::new(name, &[Check::RevocationKeySuccession], node);
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
        revocation("sig1 by a stranger", Refuses)
            .document(|keys, d| revoking(keys, d, &stranger(), &keys.previous_miner_id).to_json()),
        revocation("sig2 by a stranger", Refuses)
            .document(|keys, d| revoking(keys, d, &keys.revocation_key, &stranger()).to_json()),
        revocation("sig2 by the new miner id", Refuses)
            .keys(Keys::rotated)
            .document(|keys, d| revoking(keys, d, &keys.revocation_key, &keys.miner_id).to_json()),
        revocation("revocation together with a roll", Refuses).keys(Keys::rolled).document(
            |keys, d| revoking(keys, d, &keys.revocation_key, &keys.previous_miner_id).to_json(),
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
        refs("vout with a fraction", Refuses).document(|_, d| with_data_refs(d, ":0}", ":0.5}")),
        refs("vout beyond 32 bits", Refuses)
            .document(|_, d| with_data_refs(d, ":0}", ":2147483648}")),
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
        script("reference without a signature", Refuses)
            .reference(|_, reference| cut(&reference.to_script(), 1 + reference.signature.len())),
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
        signature("binding hashed before it is signed", Refuses).reference(|keys, reference| {
            let signature = keys.miner_id.sign(&sha256(&reference.block_bind)).to_der();
            CoinbaseReference { signature, ..reference }.to_script()
        }),
        signature("binding signed with a high S", Takes).reference(|keys, reference| {
            let signature = high_s(&keys.miner_id.sign(&reference.block_bind));
            CoinbaseReference { signature, ..reference }.to_script()
        }),
    ]
}
