//! Commands that are killed at each of their steps: right before or after they wait for the disk.

use std::fs;

use bsv_minerid::formats::{MinerInfo, MinerInfoScript};
use bsv_tests::killer::Killer;
use bsv_tests::{Site, free_port, is_full_run, vectors};
use bsv_tx::{Script, Signature, sha256};
use serde_json::{Value, json};

/// Reduced runs skip so many steps after each step that they try.
const SKIPPED: u64 = 5;

/// What is visible of the alias; null before it is made. New keys differ in every run. Therefore,
/// this holds only their number and which are equal.
fn seen(site: &Site) -> Value {
    let done = site.cli(&["miner", "list", "--json"]);
    if done.code == 1 && done.stderr.contains("nothing-there") {
        return Value::Null;
    }
    let list: Value = serde_json::from_str(&done.stdout).unwrap();
    let Some(identity) = list.get(0) else { return Value::Null };
    let mut seen = outline(identity);
    if identity["protocol"] == "1.0" && identity["state"] == "open" {
        let server = site.server();
        let document = check_document(&server.text("/opreturn/pool/7"), identity);
        seen["extensions"] = json!(document.operator.get("extensions").is_some());
        seen["data"] = json!(server.text("/datarefs/pool/opreturns"));
    }
    seen
}

/// What the command line shows of an identity, without the values of its keys and without whether
/// the node was told of a revocation.
pub(crate) fn outline(identity: &Value) -> Value {
    json!({
        "protocol": identity["protocol"],
        "minerContact": identity["minerContact"],
        "keys": identity["minerIds"].as_array().unwrap().len(),
        "isPreviousItself": identity["prevMinerId"] == identity["minerId"],
        "isRevocationKeyItself": identity["prevRevocationKey"] == identity["revocationKey"],
        "announced": identity["announced"],
        "state": identity["state"],
    })
}

/// Reads the document in a script. Checks that all its signatures hold, and that it names the keys
/// of `identity`.
pub(crate) fn check_document(script: &str, identity: &Value) -> MinerInfo {
    let script = MinerInfoScript::parse(&Script::from_hex(script).unwrap()).unwrap();
    let document = MinerInfo::from_json(std::str::from_utf8(&script.document).unwrap()).unwrap();
    assert!(document.miner_id.holds() && document.revocation_key.holds());
    let signature = Signature::from_der(&script.signature).unwrap();
    assert!(document.miner_id.current.verify(&sha256(&script.document), &signature));
    assert_eq!(identity["minerId"], document.miner_id.current.to_string());
    assert_eq!(identity["revocationKey"], document.revocation_key.current.to_string());
    if let Some(revocation) = document.revocation {
        assert!(revocation.holds(&document.revocation_key.current, &document.miner_id.previous));
    }
    document
}

pub(crate) fn silent(mut site: Site) -> Site {
    site.set_env("BSV_LOG", "off");
    site
}

/// Kills a command at one step after the other, each time on a copy of the site. Checks that the
/// state is then either the one before or the one after the command, and that the command can be
/// repeated.
fn kill_at_every_step(site: &Site, command: &[&str], codes: &[i32]) {
    let before = seen(site);
    let whole = silent(site.copy());
    assert!(codes.contains(&whole.cli(command).code), "{command:?}");
    let after = seen(&whole);
    assert_ne!(before, after, "{command:?}");
    let stride = if is_full_run() { 1 } else { SKIPPED + 1 };
    let (mut kills, mut made) = (0, 0);
    for step in (1..).step_by(stride as usize) {
        let mut copy = silent(site.copy());
        let killer = Killer::install(&mut copy);
        killer.kill_at(step);
        let done = copy.cli(command);
        killer.spare();
        let now = seen(&copy);
        if done.code != -1 {
            assert!(codes.contains(&done.code), "{command:?}: {done:?}");
            assert_eq!(now, after, "{command:?}");
            break;
        }
        kills += 1;
        if now == before {
            let again = copy.cli(command);
            assert!(codes.contains(&again.code), "{command:?} after a kill at {step}: {again:?}");
            assert_eq!(seen(&copy), after, "{command:?} after a kill at {step}");
        } else {
            assert_eq!(now, after, "{command:?} killed at {step}");
            made += 1;
        }
    }
    eprintln!("{command:?}: killed at {kills} steps, 1 of {stride}, {made} times when it was done");
    assert!(kills >= 3, "{command:?}: fewer than 3 kills");
}

#[test]
fn a_command_killed_at_any_step_leaves_the_old_state_or_the_new_one() {
    // No node answers at this port. A revocation is recorded first, and then fails to reach the
    // node.
    let site = silent(Site::with(json!({
        "rpcPort": free_port(), "rpcUser": "nobody", "rpcPassword": "nothing",
    })));
    let extensions = site.data_dir().join("extensions.json");
    fs::write(&extensions, r#"{"x":1}"#).unwrap();
    let data = site.data_dir().join("data.json");
    let refs = r#"[{"brfcIds":["62b21572ca46"],"data":{"62b21572ca46":{"alpha":1}},"vout":0}]"#;
    fs::write(&data, format!(r#"{{"dataRefs":{{"refs":{refs}}}}}"#)).unwrap();
    let kill = |command: &[&str]| {
        kill_at_every_step(&site, command, &[0]);
        site.cli_ok(command);
    };
    kill(&["generateminerid", "--name", "pool", "--protocol", "1.0"]);
    kill(&["config", "--name", "pool", "name=a pool", "email=a@pool.example"]);
    kill(&["miner", "extensions", "--name", "pool", extensions.to_str().unwrap()]);
    kill(&["miner", "data-refs", "--name", "pool", data.to_str().unwrap()]);
    // Once somebody has a document with the key, the next key needs its signature.
    assert_eq!(site.server().get("/opreturn/pool/7").status, 200);
    kill(&["rotateminerid", "--name", "pool", "--force", "--yes"]);
    kill(&["rotaterevocationkey", "--name", "pool"]);
    kill(&["miner", "confirm", "--yes", "--name", "pool"]);
    kill_at_every_step(&site, &["revokemineridcompletely", "--yes", "--name", "pool"], &[1]);
}

#[test]
fn an_upgrade_and_an_import_killed_at_any_step_are_whole_or_not_there() {
    let site = silent(Site::new());
    site.cli_ok(&["generateminerid", "--name", "pool"]);
    site.cli_ok(&["rotateminerid", "--name", "pool"]);
    kill_at_every_step(&site, &["upgrademinerid", "--yes", "--name", "pool"], &[0]);

    let site = silent(Site::new());
    let home = site.data_dir().join("home");
    let vectors = vectors::minerid_1_0();
    for step in &vectors["scenarios"][1]["steps"].as_array().unwrap()[..3] {
        for (path, content) in step["files_changed"].as_object().into_iter().flatten() {
            let path = home.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content.as_str().unwrap()).unwrap();
        }
    }
    kill_at_every_step(&site, &["importminerid", "--from", home.to_str().unwrap()], &[0]);
}
