//! What commands say about revocation keys that lie on another disk.

use std::fs;

use bsv_tests::Site;
use serde_json::{Value, json};

use crate::keeping::scene::{begun_site, sealed_site};

/// Gives a site an identity `here` whose revocation key lies in the keystore, and an identity
/// `away` whose revocation key lies in another directory. Answers that directory.
fn scene(site: &Site) -> String {
    let away = site.data_dir().join("removable disk").to_str().unwrap().to_owned();
    site.cli_ok(&["miner", "create", "--name", "old"]);
    site.cli_ok(&["miner", "create", "--name", "here", "--protocol", "1.0"]);
    let elsewhere = ["--protocol", "1.0", "--revocation-keystore", &away];
    site.cli_ok(&[&["miner", "create", "--name", "away"], &elsewhere[..]].concat());
    away
}

fn verify(site: &Site, dir: Option<&str>) -> (i32, Value, String) {
    let mut arguments = vec!["keystore", "verify"];
    arguments.extend(dir.iter().flat_map(|dir| ["--revocation-keystore", dir]));
    let text = site.cli(&arguments);
    let done = site.cli(&[&arguments[..], &["--json"]].concat());
    assert_eq!(done.code, text.code);
    let found = serde_json::from_str(&done.stdout).unwrap_or_default();
    (done.code, found, text.stdout + &text.stderr)
}

#[test]
fn a_check_names_each_alias_whose_revocation_key_it_did_not_find() {
    for with_server in [false, true] {
        let site = begun_site();
        let away = scene(&site);
        let _server = with_server.then(|| site.server());
        let (code, found, said) = verify(&site, None);
        assert_eq!(
            (code, &found["faults"], &found["unchecked"]),
            (0, &json!([]), &json!(["away"]))
        );
        let line = "the revocation key of alias \"away\" was not checked: name its keystore with \
                    --revocation-keystore\n";
        assert!(said.contains(line), "{said}");
        assert!(said.ends_with(", 1 revocation key was not checked\n"), "{said}");

        let (code, found, said) = verify(&site, Some(&away));
        assert_eq!((code, &found["faults"], &found["unchecked"]), (0, &json!([]), &json!([])));
        for name in ["revocation/away_1", "revocation/here_1", "away_1", "old_1"] {
            assert!(found["readable"].as_array().unwrap().contains(&json!(name)), "{found}");
        }
        assert!(said.ends_with(" keys can be read\n"), "{said}");

        // Until a block has shown the new key, both keys are needed.
        let roll = ["miner", "revocation-key", "rotate", "--name", "away"];
        site.cli_ok(&[&roll[..], &["--revocation-keystore", &away]].concat());
        for key in ["away_1", "away_2"].map(|name| format!("{away}/{name}.key")) {
            let content = fs::read(&key).unwrap();
            fs::remove_file(&key).unwrap();
            let default = site.network_dir().join("keystore/revocation").display().to_string();
            let (code, found, said) = verify(&site, Some(&away));
            let fault = format!(
                "the revocation key of alias \"away\" was not found in {default} and {away}"
            );
            assert_eq!((code, &found["faults"]), (1, &json!([fault])), "{key}");
            assert!(said.contains(&fault), "{said}");
            fs::write(&key, content).unwrap();
        }
        assert_eq!(verify(&site, Some(&away)).0, 0);

        let (code, _, said) = verify(&site, Some("/nowhere"));
        assert_eq!(code, 1);
        assert!(said.contains("there is no keystore of revocation keys in /nowhere"), "{said}");
    }
}

#[test]
fn a_revocation_key_that_is_not_the_one_on_record_is_a_fault() {
    let [site, other] = [(); 2].map(|()| begun_site());
    let [away, others] = [&site, &other].map(scene);
    // A directory that holds other keys under the same names.
    let (code, found, said) = verify(&site, Some(&others));
    let fault = format!(
        "the revocation key of alias \"away\" in {others}: key away_1 in the keystore is not the one on record"
    );
    assert_eq!((code, &found["faults"]), (1, &json!([fault])), "{said}");
    fs::write(format!("{away}/away_1.key"), "").unwrap();
    let (code, _, said) = verify(&site, Some(&away));
    assert_eq!(code, 1);
    assert!(said.contains("the revocation key of alias \"away\" in "), "{said}");
    assert!(said.contains("away_1.key is damaged"), "{said}");
}

#[test]
fn a_backup_names_the_revocation_keys_that_it_does_not_hold() {
    let mut site = sealed_site(None);
    site.set_env("BSV_BACKUP_PASSPHRASE", "of the backup");
    let away = scene(&site);
    let [first, second] = ["first", "second"].map(|name| site.data_dir().join(name));
    let lacks = |alias: &str| format!("The revocation key of alias \"{alias}\" is not in it");
    let said = site.cli_ok(&["backup", first.to_str().unwrap(), "--quiet"]);
    assert!(said.contains(&lacks("away")) && !said.contains(&lacks("here")), "{said}");
    let _server = site.server();
    let told = site.cli_json(&["backup", second.to_str().unwrap()]);
    assert_eq!(told["lacksRevocationKeysOf"], json!(["away"]));
    let piped = site.cli_command(&["backup", "-"]).output().unwrap();
    let told = String::from_utf8(piped.stderr).unwrap();
    assert!(piped.status.success() && told.contains(&lacks("away")), "{told}");
    // A backup names lost keys, too.
    fs::remove_dir_all(site.network_dir().join("keystore/revocation")).unwrap();
    let third = site.data_dir().join("third");
    let told = site.cli_json(&["backup", third.to_str().unwrap()]);
    assert_eq!(told["lacksRevocationKeysOf"], json!(["away", "here"]));
    assert!(fs::metadata(&away).is_ok());
}
