//! Commands that are killed before or after each time that they wait for the disk.

use std::fs;

use bsv_minerid::{MinerInfo, MinerInfoScript};
use bsv_tests::killer::Killer;
use bsv_tests::{Site, free_port, is_full_run, vectors};
use bsv_tx::{Script, Signature, sha256};
use serde_json::{Value, json};

/// In reduced runs, so many steps are left out after each that is tried.
const SKIPPED: u64 = 5;

/// What there is to see of the alias: nothing before it is made. New keys are other ones each time,
/// so only how they stand to one another counts.
fn seen(site: &Site) -> Value {
    let list = site.cli_json(&["listminerids"]);
    let Some(identity) = list.get(0) else { return Value::Null };
    let mut seen = json!({
        "protocol": identity["protocol"],
        "keys": identity["minerIds"].as_array().unwrap().len(),
        "isPreviousItself": identity["prevMinerId"] == identity["minerId"],
        "isRevocationKeyItself": identity["prevRevocationKey"] == identity["revocationKey"],
        "announced": identity["announced"],
        "state": identity["state"],
    });
    if identity["protocol"] == "1.0" && identity["state"] == "open" {
        seen["extensions"] =
            json!(check_document(site, identity).operator.get("extensions").is_some());
    }
    seen
}

/// A document whose every signature holds, and which says what the list says.
fn check_document(site: &Site, identity: &Value) -> MinerInfo {
    let script = site.cli_ok(&["opreturn", "--name", "pool", "--height", "7"]);
    let script = MinerInfoScript::parse(&Script::from_hex(&script).unwrap()).unwrap();
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

/// Kills a command at one step after the other, each time on a copy of the site: what is there
/// afterwards is what was before or what the command leaves, and the command can be repeated.
fn kill_at_every_step(site: &Site, command: &[&str], codes: &[i32]) {
    let before = seen(site);
    let whole = site.copy();
    assert!(codes.contains(&whole.cli(command).code), "{command:?}");
    let after = seen(&whole);
    assert_ne!(before, after, "{command:?}");
    let stride = if is_full_run() { 1 } else { SKIPPED + 1 };
    let (mut kills, mut made) = (0, 0);
    for step in (1..).step_by(stride as usize) {
        let mut copy = site.copy();
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
    assert!(kills >= 3, "{command:?} takes more steps");
}

#[test]
fn a_command_killed_at_any_step_leaves_the_old_state_or_the_new_one() {
    // Nothing answers there, so that the node is not told of a revocation, which is recorded first.
    let mut site = Site::with(json!({
        "rpcPort": free_port(), "rpcUser": "nobody", "rpcPassword": "nothing",
    }));
    site.set_env("BSV_LOG", "off");
    let file = site.data_dir().join("extensions.json");
    fs::write(&file, r#"{"x":1}"#).unwrap();
    let kill = |command: &[&str]| {
        kill_at_every_step(&site, command, &[0]);
        site.cli_ok(command);
    };
    kill(&["generateminerid", "--name", "pool", "--protocol", "1.0"]);
    kill(&["extensions", "--name", "pool", file.to_str().unwrap()]);
    kill(&["rotateminerid", "--name", "pool"]);
    kill(&["rotaterevocationkey", "--name", "pool"]);
    kill(&["confirmminerid", "--name", "pool"]);
    kill_at_every_step(&site, &["revokemineridcompletely", "--name", "pool"], &[1]);
}

#[test]
fn an_upgrade_and_an_import_killed_at_any_step_are_whole_or_not_there() {
    let mut site = Site::new();
    site.set_env("BSV_LOG", "off");
    site.cli_ok(&["generateminerid", "--name", "pool"]);
    site.cli_ok(&["rotateminerid", "--name", "pool"]);
    kill_at_every_step(&site, &["upgrademinerid", "--name", "pool"], &[0]);

    let mut site = Site::new();
    site.set_env("BSV_LOG", "off");
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
