//! Spoilt identities of generation 0.2.

use bsv_minerid::formats::IdentityScript;
use bsv_tests::identified_block::VCTX;

use super::Node::{Refuses, Takes, TookBefore1_2_1};
use super::*;

type Spoilt = SpoiltDocument;

/// The document with a signature by `key` over `digest` instead of the one by the previous miner
/// id.
fn signing(keys: &Keys, document: &str, key: &PrivateKey, digest: [u8; 32]) -> String {
    let mut document = bsv_minerid::formats::Document::from_json(document).unwrap();
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

/// The document with `to` instead of `from`, and with a signature by the previous miner id over
/// `signed`.
fn vouching(keys: &Keys, document: &str, from: &str, to: &str, signed: &[u8]) -> String {
    let right =
        bsv_minerid::formats::Document::from_json(document).unwrap().previous_miner_id_signature;
    let signature = keys.previous_miner_id.sign(&sha256(signed)).to_string();
    replaced(replaced(document, &right.to_string(), &signature), from, to)
}

/// The script of a document, with a signature over another text.
fn signed_as(keys: &Keys, document: Vec<u8>, signed: &[u8]) -> Script {
    let signature = keys.miner_id.sign(&sha256(signed)).to_der();
    IdentityScript { document, signature }.to_script()
}

/// The script of the document and a dynamic document of these members, both signed.
fn followed_by(keys: &Keys, document: &str, members: &str) -> Script {
    let key = stranger();
    let signature = keys.miner_id.sign(&sha256(document.as_bytes())).to_der();
    let dynamic = format!(r#"{{"dynamicMinerId":"{}",{members}}}"#, key.public_key());
    let signed = [document.as_bytes(), &signature, dynamic.as_bytes()].concat();
    let second = with_signature(&dynamic, key.sign(&sha256(&signed)).to_der());
    let script = with_signature(document, signature).into_bytes();
    Script::from_bytes([&script, &second.as_bytes()[7..]].concat())
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
    [members(), texts(), hexadecimal(), numbers(), signatures(), bindings()]
        .into_iter()
        .flatten()
        .collect()
}

fn members() -> Vec<Spoilt> {
    let member = |name, node| Spoilt::new(name, &[Check::Document], node);
    let height = |name, node| Spoilt::new(name, &[Check::Height], node);
    vec![
        height("height of the next block", Refuses).document(|_, d| {
            let document = bsv_minerid::formats::Document::from_json(&d).unwrap();
            bsv_minerid::formats::Document { height: document.height + 1, ..document }.to_json()
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
        member("no JSON", Refuses).document(|_, d| replaced(&d, r#""version":"#, r#""version""#)),
        Spoilt::new("dataRefs without refs", &[Check::DataRefs], Refuses)
            .document(|_, d| with_member(&d, r#""dataRefs":{}"#)),
    ]
}

/// Texts that are JSON for others and not for nodes, or the other way round.
fn texts() -> Vec<Spoilt> {
    let document = |name, node| Spoilt::new(name, &[Check::Document], node);
    vec![
        document("an unpaired surrogate", Refuses)
            .document(|_, d| replaced(&d, "a pool", r"a pool \ud83d")),
        document("2049 arrays within one another", Refuses)
            .document(|_, d| with_member(&d, &nested(2049))),
        document("overlong UTF-8 signed as it is printed", Takes).script(|keys, d| {
            signed_as(keys, replaced_bytes(d, "a pool", b"a p\xc1\xafol"), d.as_bytes())
        }),
        document("a character beyond Unicode", Takes).script(|keys, d| {
            let document = with_member(d, r#""x":"pool""#);
            let document = replaced_bytes(&document, r#""pool""#, b"\"\xf4\x90\x80\x80\"");
            signed_as(keys, document.clone(), &document)
        }),
        document("a character that nodes take for another", Takes).script(|keys, d| {
            let document = replaced(d, "a pool", r"\ud840\udc00");
            signed_as(keys, document.into_bytes(), replaced(d, "a pool", "\u{10000}").as_bytes())
        }),
    ]
}

/// Hexadecimal numbers that nodes read in another way than intended.
fn hexadecimal() -> Vec<Spoilt> {
    const BOTH: &[Check] = &[Check::Document, Check::MinerIdSuccession];
    let succession = |name, node| Spoilt::new(name, &[Check::MinerIdSuccession], node);
    vec![
        succession("a miner id in capital letters", Refuses).document(|keys, d| {
            let id = keys.miner_id.public_key().to_string();
            let member = |id: &str| format!(r#""minerId":"{id}""#);
            replaced(&d, &member(&id), &member(&id.to_uppercase()))
        }),
        succession("a miner id in capital letters, signed as nodes read it", Takes).document(
            |keys, d| {
                let id = keys.miner_id.public_key().to_string();
                let member = |id: &str| format!(r#""minerId":"{id}""#);
                let signed = preimage(keys);
                let signed = [&signed[..33], &signed[66..]].concat();
                vouching(keys, &d, &member(&id), &member(&id.to_uppercase()), &signed)
            },
        ),
        succession("a VCTx id in capital letters", Refuses).document(|_, d| {
            replaced(&d, &VCTX.txid.to_string(), &VCTX.txid.to_string().to_uppercase())
        }),
        succession("a VCTx id in capital letters, signed as nodes read it", Takes).document(
            |keys, d| {
                let txid = VCTX.txid.to_string();
                vouching(keys, &d, &txid, &txid.to_uppercase(), &preimage(keys)[..66])
            },
        ),
        Spoilt::new("a VCTx id without its last digit, signed as nodes read it", BOTH, Takes)
            .document(|keys, d| {
                let txid = VCTX.txid.to_string();
                vouching(keys, &d, &txid, &txid[..63], &preimage(keys)[..97])
            }),
        Spoilt::new("a VCTx id that is no number, signed as nodes read it", BOTH, Takes).document(
            |keys, d| vouching(keys, &d, &VCTX.txid.to_string(), "none", &preimage(keys)[..66]),
        ),
        Spoilt::new("a key with a space in it", BOTH, Refuses).document(|keys, d| {
            let id = keys.miner_id.public_key().to_string();
            let member = r#""minerId":""#;
            let (from, to) =
                (format!("{member}{id}"), format!("{member}{} {}", &id[..2], &id[2..]));
            replaced(&d, &from, &to)
        }),
        Spoilt::new("a key with a space in it, signed as nodes read it", BOTH, Takes).document(
            |keys, d| {
                let id = keys.miner_id.public_key().to_string();
                let member = r#""minerId":""#;
                let from = format!("{member}{id}");
                let to = format!("{member}{} {}", &id[..2], &id[2..]);
                let signed = preimage(keys);
                vouching(keys, &d, &from, &to, &[&signed[..33], &signed[66..]].concat())
            },
        ),
        Spoilt::new("a signature with more after it", &[Check::Document], Takes).document(
            |_, d| {
                let document = bsv_minerid::formats::Document::from_json(&d).unwrap();
                let right = document.previous_miner_id_signature.to_string();
                replaced(&d, &right, &format!("{right} and more"))
            },
        ),
    ]
}

/// Numbers that nodes cannot hold.
fn numbers() -> Vec<Spoilt> {
    const VCTX_TOO: &[Check] = &[Check::Document, Check::Vctx];
    let height = |name, node| Spoilt::new(name, &[Check::Height], node);
    let refs = |name| Spoilt::new(name, &[Check::DataRefs], Refuses);
    fn data_refs(vout: &str) -> String {
        let txid = "ee".repeat(32);
        format!(
            r#""dataRefs":{{"refs":[{{"brfcIds":["62b21572ca46"],"txid":"{txid}","vout":{vout}}}]}}"#
        )
    }
    vec![
        height("height as text", Takes).document(|_, d| {
            let height = bsv_minerid::formats::Document::from_json(&d).unwrap().height;
            replaced(&d, &format!(r#""height":{height}"#), &format!(r#""height":"{height}""#))
        }),
        height("height as text that goes on", TookBefore1_2_1).document(|_, d| {
            let height = bsv_minerid::formats::Document::from_json(&d).unwrap().height;
            replaced(&d, &format!(r#""height":{height}"#), &format!(r#""height":"{height}x""#))
        }),
        Spoilt::new("a vctx.vout with a fraction", VCTX_TOO, Refuses)
            .document(|_, d| replaced(&d, r#""vout":0"#, r#""vout":1.5"#)),
        Spoilt::new("a vctx.vout beyond 32 bits", VCTX_TOO, Refuses)
            .document(|_, d| replaced(&d, r#""vout":0"#, r#""vout":2147483648"#)),
        refs("a vout of dataRefs with a fraction")
            .document(|_, d| with_member(&d, &data_refs("1.5"))),
        refs("a vout of dataRefs beyond 32 bits")
            .document(|_, d| with_member(&d, &data_refs("2147483648"))),
        refs("a dynamic document with dataRefs that are no object")
            .script(|keys, d| followed_by(keys, d, r#""dataRefs":[]"#)),
        Spoilt::new("references of which a dynamic document has worse", &[Check::DataRefs], Takes)
            .script(|keys, d| {
                let first = with_member(d, &data_refs("0").replace("eeee\"", "none\""));
                followed_by(keys, &first, r#""dataRefs":[]"#)
            }),
        refs("a dynamic document with dataRefs without refs")
            .script(|keys, d| followed_by(keys, d, r#""dataRefs":{"refs":[{}]}"#)),
        refs("a dynamic document with a vout of dataRefs with a fraction")
            .script(|keys, d| followed_by(keys, d, &data_refs("0.5"))),
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
        signature("document signed by a stranger", Refuses).script(|_, d| Keys::first().sign(d)),
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
