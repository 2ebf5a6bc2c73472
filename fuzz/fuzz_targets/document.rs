//! Text as an identity document and as the JSON that goes into one, and bytes as an output script.

#![no_main]

use bsv_minerid::formats::{Document, IdentityScript};
use bsv_minerid::{CanonicalJson, JobData, MinerContact};
use bsv_tx::Script;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|bytes: &[u8]| {
    let script = Script::from_bytes(bytes);
    if let Ok(parts) = IdentityScript::parse(&script) {
        assert_eq!(parts.to_script(), script);
    }
    let text = String::from_utf8_lossy(bytes);
    if let Ok(document) = Document::from_json(&text) {
        assert_eq!(document.to_json(), text);
    }
    respell(&text);
    read_contact(&text);
    if let Ok(data) = JobData::from_json(&text) {
        let branches = data.block_bind.map_or(0, |job| job.merkle_branch.len());
        assert!(branches <= 32);
        assert!(data.fee_spec.is_none_or(|spec| spec.is_object()));
    }
});

fn respell(text: &str) {
    let value = serde_json::from_str::<Value>(text);
    let Ok(json) = CanonicalJson::from_text(text) else { return };
    let respelled = json.as_str();
    assert_eq!(CanonicalJson::from_text(respelled).as_ref(), Ok(&json));
    // `serde_json` refuses numbers beyond its range.
    if let Ok(value) = value {
        assert_eq!(serde_json::from_str::<Value>(respelled).unwrap(), value);
        if let Value::String(string) = value {
            assert_eq!(CanonicalJson::string(&string), json);
        }
    }
}

fn read_contact(text: &str) {
    let Ok(contact) = MinerContact::from_json(text) else { return };
    assert_eq!(MinerContact::from_json(&contact.to_json()).as_ref(), Ok(&contact));
    let mut merged = contact.clone();
    merged.merge(&contact);
    assert_eq!(merged, contact);
}
