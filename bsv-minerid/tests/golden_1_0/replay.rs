//! Every recorded scenario step by step, with the recorded keys.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use bsv_minerid::formats::{BlockBindJob, MinerInfoScript, OperatorDataRefs};
use bsv_minerid::store::{ChainView, Exposure, MinerIdInfo, MinerIdState, RedbIdentityStore};
use bsv_minerid::{
    Alias, CanonicalJson, Error, Keystore, MinerContact, MinerIds, Network, PlainKeys,
    RevokedMinerIds,
};
use bsv_tx::{PublicKey, Script};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{scenarios, steps};

/// A service whose keystore holds all keys of a scenario. The service uses these keys instead of
/// making new ones.
struct Service {
    dir: TempDir,
    ids: MinerIds<RedbIdentityStore>,
    revocation_keys: Keystore,
}

impl Service {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let keystore = |name: &str| {
            Keystore::open(&dir.path().join(name), None, PlainKeys::Allowed, "test").unwrap()
        };
        let store = RedbIdentityStore::open(&dir.path().join("minerid"), "test").unwrap();
        let ids = MinerIds::open(store, keystore("keystore"), Network::Livenet).unwrap();
        let revocation_keys = keystore("revocation");
        Self { dir, ids, revocation_keys }
    }

    fn with_keys_of(scenario: &Value) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let keystore = |name: &str| {
            Keystore::open(&dir.path().join(name), None, PlainKeys::Allowed, "test").unwrap()
        };
        let (keys, revocation_keys) = (keystore("keystore"), keystore("revocation"));
        for (path, key) in scenario["keys"].as_object().unwrap() {
            let secret = key["xprv"].as_str().unwrap().as_bytes();
            let keystore = if path.starts_with(".revocation") { &revocation_keys } else { &keys };
            keystore
                .insert(Path::new(path).file_stem().unwrap().to_str().unwrap(), secret)
                .unwrap();
        }
        let store = RedbIdentityStore::open(&dir.path().join("minerid"), "test").unwrap();
        let ids = MinerIds::open(store, keys, Network::Livenet).unwrap();
        Self { dir, ids, revocation_keys }
    }

    fn import(&self, files: &Files) -> Result<Vec<Alias>, Error> {
        let home = files.write(self.dir.path());
        let imported = self.ids.import_without_node(&home, Some(&self.revocation_keys))?;
        Ok(imported.into_iter().map(|(alias, _)| alias).collect())
    }
}

/// The files of the older generator's home directory.
#[derive(Default)]
struct Files(BTreeMap<String, String>);

impl Files {
    fn follow(&mut self, step: &Value) {
        for (path, content) in step["files_changed"].as_object().into_iter().flatten() {
            self.0.insert(path.clone(), content.as_str().unwrap().to_owned());
        }
        for path in step["files_removed"].as_array().into_iter().flatten() {
            self.0.remove(path.as_str().unwrap());
        }
    }

    fn write(&self, dir: &Path) -> PathBuf {
        let home = dir.join("home");
        for (path, content) in &self.0 {
            let path = home.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        home
    }
}

/// The answers of the node from a step on.
fn view(step: &Value) -> ChainView {
    let table = step["getmineridinfo"].as_object().unwrap();
    let key = |value: &Value| value.as_str().map(|key| key.parse::<PublicKey>().unwrap());
    let info = |info: &Value| MinerIdInfo {
        miner_id: key(&info["minerId"]).unwrap(),
        state: match info["minerIdState"].as_str().unwrap() {
            "CURRENT" => MinerIdState::Current,
            "ROTATED" => MinerIdState::Rotated,
            _ => MinerIdState::Revoked,
        },
        previous_miner_id: key(&info["prevMinerId"]),
        revocation_key: key(&info["revocationKey"]),
        previous_revocation_key: key(&info["prevRevocationKey"]),
    };
    ChainView { known: table.values().map(info).collect(), ..ChainView::default() }
}

/// Requests a path. Answers the status and the body.
fn get(ids: &MinerIds<RedbIdentityStore>, path: &str) -> (u16, String) {
    let path: Vec<_> = path.split('/').skip(1).collect();
    let body = match path[..] {
        ["minerid", alias] => ids.get(alias).unwrap().public_key().to_string(),
        ["minerid", alias, "sign", hash] => {
            let digest: [u8; 32] = hex::decode(hash).unwrap().try_into().unwrap();
            ids.get(alias).unwrap().sign(&digest).unwrap().to_string()
        }
        ["opreturn", alias, "isvalid"] => ids.get(alias).unwrap().is_valid().to_string(),
        ["opreturn", alias, "rotate"] => {
            rotate(ids, &alias.parse().unwrap()).unwrap();
            "OK".to_owned()
        }
        ["opreturn", alias, height] => {
            hex::encode(ids.get(alias).unwrap().output_script(height.parse().unwrap()).unwrap())
        }
        ["opreturn", alias, height, txid] => {
            let (height, txid) = (height.parse().unwrap(), txid.parse().unwrap());
            hex::encode(ids.output_script_with_data(alias, height, txid).unwrap())
        }
        ["datarefs", alias, "opreturns"] => {
            let scripts = ids.get(alias).unwrap().data_scripts();
            json!(scripts.iter().map(Script::to_hex).collect::<Vec<_>>()).to_string()
        }
        _ => panic!("{path:?}"),
    };
    (200, body)
}

fn coinbase2(ids: &MinerIds<RedbIdentityStore>, body: &Value) -> (u16, String) {
    let text = |name: &str| body[name].as_str().unwrap();
    let merkle_proof = body["merkleProof"].to_string();
    let job = BlockBindJob {
        previous_block: text("prevhash").parse().unwrap(),
        merkle_branch: BlockBindJob::merkle_branch_from_json("", &merkle_proof).unwrap(),
    };
    let coinbase2 = hex::decode(text("coinbase2")).unwrap();
    let txid = text("minerInfoTxId").parse().unwrap();
    match ids.coinbase2_with_reference(text("alias"), txid, &coinbase2, &job) {
        Ok(coinbase2) => (200, hex::encode(coinbase2)),
        Err(Error::Coinbase2(_)) => (422, String::new()),
        Err(error) => panic!("{error}"),
    }
}

/// Rotates as the older generator does, which treats every key as known.
fn rotate(ids: &MinerIds<RedbIdentityStore>, alias: &Alias) -> Result<(), Error> {
    let key = ids.get(alias.as_str())?.public_key();
    ids.note_shown(alias)?;
    if ids.get(alias.as_str())?.record().exposure() == Exposure::HandedOut {
        let info = MinerIdInfo {
            miner_id: key,
            state: MinerIdState::Current,
            previous_miner_id: Some(key),
            revocation_key: None,
            previous_revocation_key: None,
        };
        ids.observe(alias, ChainView { known: vec![info], ..ChainView::default() })?;
    }
    ids.rotate_without_node(alias, false).map(drop)
}

fn run(service: &Service, argv: &[&str]) -> bool {
    let Service { ids, revocation_keys, .. } = service;
    let alias: Alias = argv[2].parse().unwrap();
    let done = match argv[0] {
        "generateminerid" => ids.generate_miner_info(&alias, revocation_keys).map(drop),
        "rotateminerid" => rotate(ids, &alias),
        "rotaterevocationkey" => ids.roll_revocation_key(&alias, revocation_keys).map(drop),
        "revokemineridpartially" => {
            let revoked = RevokedMinerIds::BackTo(argv[4].parse().unwrap());
            ids.begin_revocation(&alias, revoked, revocation_keys).map(drop)
        }
        "revokemineridcompletely" => {
            ids.begin_revocation(&alias, RevokedMinerIds::All, revocation_keys).map(drop)
        }
        "upgrademinerid" => ids.upgrade(&alias, Some(&argv[4].parse().unwrap()), revocation_keys),
        other => panic!("{other}"),
    };
    done.is_ok()
}

/// Applies a change that an operator makes with a file.
fn set(ids: &MinerIds<RedbIdentityStore>, files: &Files, path: &str) {
    let content = &files.0[path];
    let alias: Alias = path.split('/').nth(1).unwrap().parse().unwrap();
    if path.ends_with("dataRefsTxData") {
        ids.set_data(&alias, OperatorDataRefs::from_json(content).unwrap()).unwrap();
    } else if path.ends_with("minerIdOptionalData") {
        let members: BTreeMap<String, &serde_json::value::RawValue> =
            serde_json::from_str(content).unwrap();
        ids.set_extensions(&alias, CanonicalJson::from_text(members["extensions"].get()).unwrap())
            .unwrap();
        let contact = members["minerContact"].get();
        ids.set_contact(&alias, &MinerContact::from_json(contact).unwrap()).unwrap();
    }
}

#[test]
fn every_answer_comes_out_byte_for_byte() {
    let (mut answers, mut from_imported) = (0, 0);
    for scenario in scenarios() {
        let name = scenario["scenario"].as_str().unwrap();
        let service = Service::with_keys_of(&scenario);
        let mut files = Files::default();
        let mut known = ChainView::default();
        for (number, step) in steps(&scenario).iter().enumerate() {
            let at = format!("{name}, step {number}");
            match step["op"].as_str().unwrap() {
                "cli" => {
                    let argv: Vec<_> = step["argv"].as_array().unwrap().iter().collect();
                    let argv: Vec<_> = argv.iter().map(|word| word.as_str().unwrap()).collect();
                    if argv[0] == "upgrademinerid" {
                        service.import(&files).unwrap();
                        // This service keeps what the reference drops, and the recorded documents
                        // lack it.
                        assert!(!service.ids.get(argv[2]).unwrap().record().contact().is_empty());
                    }
                    // The reference refuses, but says that it succeeded.
                    let is_refused =
                        step.get("files_changed").is_none() || step["files_changed"] == json!({});
                    assert_eq!(run(&service, &argv), !is_refused, "{at}");
                }
                "http" => {
                    let expected = (
                        if step.get("ours").is_some() { 422 } else { 200 },
                        step["response"].as_str().unwrap(),
                    );
                    let path = step["path"].as_str().unwrap();
                    if path.contains("/opreturn/") && !path.contains("isvalid") {
                        let alias = path.split('/').nth(2).unwrap().parse().unwrap();
                        service.ids.observe(&alias, known.clone()).unwrap();
                        from_imported += usize::from(check_imported(&files, &known, step, &at));
                    }
                    let (status, body) = match step["method"].as_str().unwrap() {
                        "GET" if path.contains("/pksign/") => continue,
                        "GET" => get(&service.ids, path),
                        _ => coinbase2(&service.ids, &step["body"]),
                    };
                    assert_eq!(status, expected.0, "{at}");
                    let is_beyond_order = path.contains("/sign/ffffffff");
                    let keeps_contact =
                        name.starts_with("S9c") && path.starts_with("/opreturn/rot/9");
                    if keeps_contact {
                        let document = |script: &str| {
                            let script = Script::from_hex(script).unwrap();
                            let parts = MinerInfoScript::parse(&script).unwrap();
                            String::from_utf8(parts.document).unwrap()
                        };
                        let without = document(expected.1);
                        let contact = r#","minerContact":{"name":"Golden Pool"}}"#;
                        let with = without.strip_suffix('}').unwrap().to_owned() + contact;
                        assert_eq!(document(&body), with, "{at}");
                    } else if status == 200 && !is_beyond_order {
                        assert_eq!(body, expected.1, "{at}");
                    }
                    answers += 1;
                }
                "write_file" => {
                    files.follow(step);
                    set(&service.ids, &files, step["path"].as_str().unwrap());
                }
                "rpc_answers" => known = view(step),
                other => panic!("{other}"),
            }
            files.follow(step);
        }
    }
    assert_eq!((answers, from_imported), (60, 28));
}

/// Imports the home directory of a step, and compares the document.
fn check_imported(files: &Files, known: &ChainView, step: &Value, at: &str) -> bool {
    let is_1_0 = files.0.keys().any(|path| path.ends_with("minerIdAliases"));
    let path = step["path"].as_str().unwrap();
    if !is_1_0 || path.ends_with("rotate") {
        return false;
    }
    let service = Service::new();
    let aliases = service.import(files).unwrap_or_else(|error| panic!("{at}: {error}"));
    service.ids.observe(&aliases[0], known.clone()).unwrap();
    let (_, script) = get(&service.ids, path);
    let is_upgraded = files.0.keys().any(|path| path.ends_with("/vctx"));
    if is_upgraded {
        return false;
    }
    assert_eq!(script, step["response"].as_str().unwrap(), "{at}");
    true
}
