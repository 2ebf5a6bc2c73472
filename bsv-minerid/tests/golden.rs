//! The recorded answers of the older generator, byte for byte.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use bsv_minerid::formats::{Document, IdentityScript};
use bsv_minerid::store::RedbIdentityStore;
use bsv_minerid::{JobData, Keystore, MinerIds, Network, PlainKeys};
use bsv_tx::{Script, Signature, sha256};
use serde_json::Value;
use serde_json::value::RawValue;

#[derive(serde::Deserialize)]
struct Body<'a> {
    #[serde(rename = "blockHeight")]
    height: u32,
    coinbase2: &'a str,
    #[serde(borrow, rename = "jobData")]
    job_data: Option<&'a RawValue>,
}

fn vectors() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/vectors/minerid-0.2.json");
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn import(vectors: &Value, dir: &Path) -> MinerIds<RedbIdentityStore> {
    let home = dir.join("home");
    for (path, content) in vectors["files"].as_object().unwrap() {
        let path = home.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content.as_str().unwrap()).unwrap();
    }
    let keystore = Keystore::open(&dir.join("keystore"), None, PlainKeys::Allowed, "test").unwrap();
    let store = RedbIdentityStore::open(&dir.join("minerid"), "test").unwrap();
    let ids = MinerIds::open(store, keystore, Network::Livenet).unwrap();
    let imported = ids.import_without_node(&home, None).unwrap();
    let aliases: Vec<_> = imported.iter().map(|(alias, _)| alias.to_string()).collect();
    assert_eq!(aliases, ["contact", "first", "nl", "rot", "under_score"]);
    ids
}

/// The expected answer of a case. `exact` counts where the reference printed large integers
/// wrongly.
fn expected<'a>(case: &'a Value, name: &str) -> Option<&'a str> {
    case["exact"].get(name).or_else(|| case.get(name)).and_then(Value::as_str)
}

#[test]
fn every_document_and_every_coinbase2() {
    let vectors = vectors();
    let dir = tempfile::tempdir().unwrap();
    let ids = import(&vectors, dir.path());
    let cases = vectors["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 15);
    for case in cases {
        let identity = ids.get(case["alias"].as_str().unwrap()).unwrap();
        let request = &case["request"];
        let (script, answer) = match request["body"].as_str() {
            None => {
                let path = request["path"].as_str().unwrap();
                let height = path.rsplit('/').next().unwrap().parse().unwrap();
                let script = identity.output_script(height).unwrap();
                (script.to_vec(), script.to_vec())
            }
            Some(body) => {
                let body: Body<'_> = serde_json::from_str(body).unwrap();
                let job_data =
                    JobData::from_json(body.job_data.map_or("{}", RawValue::get)).unwrap();
                let coinbase2 = hex::decode(body.coinbase2).unwrap();
                let answer = identity.coinbase2(body.height, &coinbase2, &job_data).unwrap();
                let script = expected(case, "op_return_script").unwrap();
                (hex::decode(script).unwrap(), answer.to_vec())
            }
        };
        assert_eq!(Some(hex::encode(&answer).as_str()), expected(case, "response"), "{case}");
        let script = IdentityScript::parse(&Script::from_bytes(script)).unwrap();
        let text = String::from_utf8(script.document).unwrap();
        assert_eq!(Some(text.as_str()), expected(case, "document"));
        let document = Document::from_json(&text).unwrap();
        assert_eq!(document.to_json(), text);
        let signature = Signature::from_der(&script.signature).unwrap();
        assert!(document.miner_id.verify(&sha256(text.as_bytes()), &signature));
    }
}

#[test]
fn every_signature() {
    let vectors = vectors();
    let dir = tempfile::tempdir().unwrap();
    let ids = import(&vectors, dir.path());
    let order = "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141";
    for case in vectors["sign"].as_array().unwrap() {
        let identity = ids.get(case["alias"].as_str().unwrap()).unwrap();
        let hash = case["hash"].as_str().unwrap();
        let digest: [u8; 32] = hex::decode(hash).unwrap().try_into().unwrap();
        let (key, signature) = identity.sign_and_name_key(&digest).unwrap();
        assert_eq!(key.to_string(), vectors["keys"][case["key"].as_str().unwrap()]["public_key"]);
        assert!(key.verify(&digest, &signature), "{hash}");
        // For digests from the group order on, the reference computes its nonce from another
        // number.
        if hash < order {
            assert_eq!(signature.to_string(), case["sign"].as_str().unwrap());
        }
    }
}
