//! The formats by themselves.

use bsv_minerid::formats::{
    Coinbase2, CoinbaseReference, DataScript, MinerInfo, MinerInfoScript, OperatorDataRefs,
    block_bind, modified_coinbase,
};
use bsv_tx::{
    BlockHash, ExtendedPrivateKey, MerkleBranch, PrivateKey, PublicKey, Script, Signature,
    Transaction, Txid, sha256,
};
use serde_json::Value;

use crate::{scenarios, steps};

fn private_key(scenario: &Value, public_key: &PublicKey) -> PrivateKey {
    let keys = scenario["keys"].as_object().unwrap().values();
    let mut keys = keys.map(|key| {
        let key: ExtendedPrivateKey = key["xprv"].as_str().unwrap().parse().unwrap();
        key.private_key().clone()
    });
    keys.find(|key| key.public_key() == *public_key).unwrap()
}

#[test]
fn every_document_is_read_and_written_and_signed_the_same() {
    let mut documents = 0;
    for scenario in scenarios() {
        for step in steps(&scenario) {
            let Some(text) = step["decoded"]["document"].as_str() else { continue };
            let script = Script::from_hex(step["response"].as_str().unwrap()).unwrap();
            let parts = MinerInfoScript::parse(&script).unwrap();
            assert_eq!(parts.document, text.as_bytes());
            assert_eq!(parts.to_script(), script);

            let document = MinerInfo::from_json(text).unwrap();
            assert_eq!(document.to_json(), text);
            assert!(document.miner_id.holds() && document.revocation_key.holds());
            if let Some(revocation) = &document.revocation {
                let (revocation_key, previous) =
                    (&document.revocation_key.current, &document.miner_id.previous);
                assert!(revocation.holds(revocation_key, previous));
            }
            let key = &document.miner_id.current;
            let signature = Signature::from_der(&parts.signature).unwrap();
            assert!(key.verify(&sha256(text.as_bytes()), &signature));
            assert_eq!(document.sign(&private_key(&scenario, key)).unwrap(), parts);
            documents += 1;
        }
    }
    assert_eq!(documents, 30);
}

#[test]
fn every_coinbase_reference_is_made_and_checked_the_same() {
    let mut references = 0;
    for scenario in scenarios() {
        for step in steps(&scenario).iter().filter(|step| step["path"] == "/coinbase2") {
            if step.get("ours").is_some() {
                continue;
            }
            check_reference(&scenario, step);
            references += 1;
        }
    }
    assert_eq!(references, 12);
}

fn check_reference(scenario: &Value, step: &Value) {
    let text = |name: &str| step["body"][name].as_str().unwrap();
    let txid: Txid = text("minerInfoTxId").parse().unwrap();
    let previous_block: BlockHash = text("prevhash").parse().unwrap();
    let branch = |hash: &Value| *hash.as_str().unwrap().parse::<Txid>().unwrap().as_bytes();
    let branch: Vec<_> =
        step["body"]["merkleProof"].as_array().unwrap().iter().map(branch).collect();
    let bytes = hex::decode(text("coinbase2")).unwrap();
    let coinbase2 = Coinbase2::parse(&bytes).unwrap();
    let response = step["response"].as_str().unwrap();

    let start = format!("0200000001{}000000000704000000010203", "11".repeat(32));
    let coinbase = Transaction::from_hex(&(start + response)).unwrap();
    let script = &coinbase.outputs.last().unwrap().locking_script;
    let reference = CoinbaseReference::parse(script).unwrap();
    assert_eq!(reference.miner_info_txid, txid);
    let signature = Signature::from_der(&reference.signature).unwrap();
    let keys = scenario["keys"].as_object().unwrap();
    let key = keys[".keystore/pool_1.key"]["public_key"].as_str().unwrap().parse().unwrap();
    assert!(PublicKey::verify(&key, &reference.block_bind, &signature));

    let key = private_key(scenario, &key);
    let made = CoinbaseReference::sign(&key, txid, &coinbase2, &previous_block, &branch).unwrap();
    assert_eq!(made, reference);
    assert_eq!(hex::encode(coinbase2.with_output(&made.to_script()).unwrap()), response);

    let modified = modified_coinbase(&coinbase).unwrap();
    assert_eq!(modified.to_hex(), step["blockbind"]["modified_coinbase_tx"].as_str().unwrap());
    let bind = block_bind(&coinbase, &previous_block, &MerkleBranch::of_coinbase(&branch));
    assert_eq!(bind, Some(made.block_bind));
    assert_eq!(hex::encode(made.block_bind), step["blockbind"]["blockBind"].as_str().unwrap());
}

#[test]
fn scripts_of_data_come_out_the_same() {
    let scenarios = scenarios();
    let mut recorded = scenarios.iter().flat_map(steps);
    let file = |step: &Value| {
        let files = step["files_changed"].as_object()?;
        files[".minerid-client/pool/dataRefsTxData"].as_str().map(str::to_owned)
    };
    let is_written =
        |step: &&Value| step["path"].as_str().is_some_and(|path| path.ends_with("dataRefsTxData"));
    let file = recorded.clone().find(is_written).and_then(file).unwrap();
    let expected = recorded.rfind(|step| step["path"] == "/datarefs/pool/opreturns").unwrap();
    let data = OperatorDataRefs::from_json(&file).unwrap();
    let scripts: Vec<_> = data.iter().map(|data| data.script().to_script().to_hex()).collect();
    assert_eq!(serde_json::to_string(&scripts).unwrap(), expected["response"].as_str().unwrap());
    for script in scripts {
        let script = Script::from_hex(&script).unwrap();
        assert_eq!(DataScript::parse(&script).unwrap().to_script(), script);
    }
}
