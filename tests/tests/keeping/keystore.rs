use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use bsv_store::DirLock;
use bsv_tests::killer::Killer;
use bsv_tests::{Site, is_full_run};
use serde_json::json;

use crate::keeping::scene::{PASSPHRASE, begun_site, sealed_site};

const NEW: &str = "another one";

fn keystore_json(site: &Site) -> PathBuf {
    site.network_dir().join("keystore/keystore.json")
}

/// Runs the command that changes the passphrase to [`NEW`], which it reads from a file.
fn change(site: &Site) -> bsv_tests::Done {
    let file = site.data_dir().join("new-passphrase");
    fs::write(&file, format!("{NEW}\n")).unwrap();
    site.cli(&["keystore", "passphrase", "--new-passphrase-file", file.to_str().unwrap()])
}

#[test]
fn the_passphrase_is_changed_with_and_without_a_server() {
    let mut site = begun_site();
    site.cli_ok(&["generateminerid", "--name", "pool"]);
    let words = site.cli_ok(&["wallet", "words", "--yes"]);
    let server = site.server();
    let done = change(&site);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(!done.stdout.contains(NEW) && !done.stderr.contains(NEW));
    assert_eq!(site.cli_json(&["keystore", "verify"])["faults"], json!([]));
    server.kill();
    let old = site.cli(&["wallet", "balance"]);
    assert_eq!(old.code, 1);
    assert!(old.stderr.contains("the passphrase does not open"), "{}", old.stderr);

    site.set_env("BSV_KEYSTORE_PASSPHRASE", NEW);
    assert_eq!(site.cli_ok(&["wallet", "words", "--yes"]), words);
    site.set_env("BSV_NEW_KEYSTORE_PASSPHRASE", PASSPHRASE);
    site.cli_ok(&["keystore", "passphrase"]);
    assert_eq!(site.cli(&["wallet", "balance"]).code, 1);
    site.set_env("BSV_KEYSTORE_PASSPHRASE", PASSPHRASE);
    let readable = site.cli_json(&["keystore", "verify"])["readable"].clone();
    assert_eq!(readable, json!(["pool_1", "wallet.adopted", "wallet.seed"]));
}

/// Revocation keys are sealed like other keys, wherever they lie. If they lie in the default
/// directory, a backup holds them.
#[test]
fn revocation_keys_get_the_new_passphrase_too() {
    let mut site = sealed_site(None);
    let away = site.data_dir().join("removable disk");
    let away = away.to_str().unwrap();
    site.cli_ok(&["generateminerid", "--name", "here", "--protocol", "1.0"]);
    let elsewhere = ["--protocol", "1.0", "--revocation-keystore", away];
    site.cli_ok(&[&["generateminerid", "--name", "away"], &elsewhere[..]].concat());
    let file = site.data_dir().join("new-passphrase");
    fs::write(&file, format!("{NEW}\n")).unwrap();
    let file = file.to_str().unwrap();
    let change = ["keystore", "passphrase", "--new-passphrase-file", file];
    let roll = ["rotaterevocationkey", "--name"];
    let server = site.server();
    let unplugged = [&change[..], &["--revocation-keystore", "/nowhere"]].concat();
    let refused = site.cli(&unplugged);
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.contains("no keystore of revocation keys"), "{}", refused.stderr);
    site.cli_ok(&[&change[..], &["--revocation-keystore", away]].concat());
    site.cli_ok(&[&roll[..], &["here"]].concat());
    site.cli_ok(&[&roll[..], &["away", "--revocation-keystore", away]].concat());
    server.kill();

    site.set_env("BSV_KEYSTORE_PASSPHRASE", NEW);
    let readable = site.cli_json(&["keystore", "verify"])["readable"].to_string();
    assert!(readable.contains(r#""revocation/here_1","revocation/here_2""#), "{readable}");
    // If the command was interrupted after it had changed the revocation keys, it can be repeated.
    let keystore_json = keystore_json(&site);
    let before = fs::read(&keystore_json).unwrap();
    fs::write(file, format!("{PASSPHRASE}\n")).unwrap();
    site.cli_ok(&change);
    fs::write(&keystore_json, before).unwrap();
    site.cli_ok(&change);
    site.set_env("BSV_KEYSTORE_PASSPHRASE", PASSPHRASE);
    assert_eq!(site.cli_json(&["keystore", "verify"])["faults"], json!([]));
}

#[test]
fn keys_in_clear_are_sealed_and_then_need_the_passphrase() {
    let mut site = Site::new();
    site.cli_ok(&["init"]);
    assert!(fs::read_to_string(keystore_json(&site)).unwrap().contains("plain"));
    let server = site.server();
    assert_eq!(change(&site).code, 0);
    assert!(!fs::read_to_string(keystore_json(&site)).unwrap().contains("plain"));
    assert_eq!(server.stop(), 0);
    let done = site.cli(&["wallet", "balance"]);
    assert!(done.stderr.contains("is sealed, and no passphrase is configured"), "{}", done.stderr);
    site.set_env("BSV_KEYSTORE_PASSPHRASE", NEW);
    site.cli_ok(&["wallet", "balance"]);
}

#[test]
fn livenet_refuses_keys_in_clear() {
    let site = Site::with(json!({ "network": "livenet" }));
    let done = site.cli(&["init"]);
    assert_eq!(done.code, 1);
    assert!(done.stderr.contains("a passphrase is required for keystore"), "{}", done.stderr);
    assert!(!site.network_dir().join("keystore/keystore.json").exists());
}

#[test]
fn without_a_new_passphrase_nothing_is_changed() {
    let site = begun_site();
    let before = fs::read(keystore_json(&site)).unwrap();
    let empty = site.data_dir().join("empty");
    fs::write(&empty, "\n").unwrap();
    let missing = site.data_dir().join("missing");
    for (file, reason) in [(&empty, "is empty"), (&missing, "cannot be read from")] {
        let file = file.to_str().unwrap();
        let done = site.cli(&["keystore", "passphrase", "--new-passphrase-file", file]);
        assert_eq!(done.code, 1);
        assert!(done.stderr.contains(reason), "{}", done.stderr);
    }
    assert_eq!(fs::read(keystore_json(&site)).unwrap(), before);
}

/// Damages every file of the keystore in every way: a command names the damaged file, and does not
/// change it.
#[test]
fn damaged_files_are_named_and_left_as_they_are() {
    let site = begun_site();
    site.cli_ok(&["generateminerid", "--name", "pool"]);
    site.cli_ok(&["rotateminerid", "--name", "pool"]);
    let dir = site.network_dir().join("keystore");
    for name in ["keystore.json", "pool_1.key", "pool_2.key", "wallet.seed.key"] {
        let path = dir.join(name);
        let right = fs::read(&path).unwrap();
        let last = right.len() - 3;
        let flipped = |place: usize| {
            let mut contents = right.clone();
            contents[place] ^= 1;
            contents
        };
        let of_another_version = match name {
            "keystore.json" => {
                String::from_utf8_lossy(&right).replace("\"version\": 1", "\"version\": 2").into()
            }
            _ => flipped(7),
        };
        for damaged in
            [flipped(last), right[..right.len() / 2].to_vec(), of_another_version, Vec::new()]
        {
            fs::write(&path, &damaged).unwrap();
            let done = site.cli(&["keystore", "verify"]);
            assert_eq!(done.code, 1, "{name}: {}", done.stdout);
            let said = done.stdout + &done.stderr;
            assert!(said.contains(name), "{said}");
            assert!(!said.contains(PASSPHRASE), "{said}");
            assert_eq!(fs::read(&path).unwrap(), damaged);
        }
        fs::remove_file(&path).unwrap();
        let done = site.cli(&["keystore", "verify"]);
        assert_eq!(done.code, 1, "{name}");
        assert!((done.stdout + &done.stderr).contains(name));
        assert!(!path.exists());
        fs::write(&path, &right).unwrap();
    }
    site.cli_ok(&["keystore", "verify"]);
}

#[test]
fn whenever_a_change_is_killed_one_of_both_passphrases_opens_the_keys() {
    let mut site = begun_site();
    site.keep_on_disk();
    let killer = Killer::install(&mut site);
    let words = site.cli_ok(&["wallet", "words", "--yes"]);
    let stride = if is_full_run() { 1 } else { 4 };
    let (mut old, mut new, mut kills) = (0, 0, 0);
    for step in (1..).step_by(stride) {
        site.set_env("BSV_KEYSTORE_PASSPHRASE", PASSPHRASE);
        killer.kill_at(step);
        let done = change(&site);
        killer.spare();
        kills += u32::from(done.code == -1);
        let opened_by_old = site.cli(&["wallet", "words", "--yes"]);
        site.set_env("BSV_KEYSTORE_PASSPHRASE", NEW);
        let opened_by_new = site.cli(&["wallet", "words", "--yes"]);
        match (opened_by_old.code, opened_by_new.code) {
            (0, 1) => old += 1,
            (1, 0) => new += 1,
            codes => panic!("step {step}: {codes:?} {}", opened_by_new.stderr),
        }
        let opened = [opened_by_old, opened_by_new];
        assert!(opened.iter().any(|done| done.stdout.trim() == words));
        if opened[1].code == 0 {
            site.set_env("BSV_NEW_KEYSTORE_PASSPHRASE", PASSPHRASE);
            site.cli_ok(&["keystore", "passphrase"]);
        }
        if done.code == 0 {
            break;
        }
    }
    site.set_env("BSV_KEYSTORE_PASSPHRASE", PASSPHRASE);
    site.cli_ok(&["audit", "verify"]);
    eprintln!("{kills} kills: {old} times the old passphrase, {new} times the new one");
    assert!(kills >= 3 && new >= 1);
}

#[test]
fn a_server_does_not_keep_the_memory_that_a_passphrase_takes() {
    let stretching_takes = 64 << 20;
    let resident = |site: &Site| site.server().resident_memory();
    let (sealed, plain) = (resident(&sealed_site(None)), resident(&Site::new()));
    assert!(sealed < plain + stretching_takes / 4, "{sealed} bytes, and {plain} without");
}

#[test]
fn a_command_keeps_nobody_waiting_while_it_stretches_its_passphrase() {
    let site = sealed_site(None);
    site.cli_ok(&["init"]);
    let path = keystore_json(&site);
    let text = fs::read_to_string(&path).unwrap();
    // With so many iterations, the stretching takes seconds, and its result opens no key.
    fs::write(&path, text.replace(r#""iterations": 3"#, r#""iterations": 100"#)).unwrap();
    let mut command = site.cli_command(&["wallet", "balance"]);
    let command = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let status = format!("/proc/{}/status", command.id());
    let has_begun = || {
        let status = fs::read_to_string(&status).unwrap();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        resident.expect("it has ended").trim().trim_end_matches(" kB").parse::<u64>().unwrap()
            > 64 << 10
    };
    while !has_begun() {
        thread::sleep(Duration::from_millis(5));
    }
    let lock = |dir: PathBuf| DirLock::acquire(&dir, "the test").unwrap();
    let _locks = [site.network_dir(), site.network_dir().join("keystore")].map(lock);
    let done = command.wait_with_output().unwrap();
    let told = String::from_utf8(done.stderr).unwrap();
    assert!(!done.status.success() && told.contains("is in use by the test"), "{told}");
}
