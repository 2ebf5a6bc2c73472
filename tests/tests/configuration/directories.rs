//! Where the data is, and who may use it.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use bsv_store::DirLock;
use bsv_tests::Site;
use bsv_tests::build::{cli_program, server_program};
use serde_json::json;
use tempfile::TempDir;

use super::programs::{Server, Source, bare, check_refused, configured, run_ok};

#[test]
fn the_data_directory_has_a_default_for_each_user() {
    let dir = TempDir::new().unwrap();
    let home = dir.path().join("home");
    let xdg = dir.path().join("xdg");
    let port = json!({"port": 0, "wallet": {"port": 0}, "payments": {"port": 0}}).to_string();
    let start = |variables: &[(&str, &Path)]| {
        let mut command = bare(server_program());
        command.env("BSV_CONFIG", &port).envs(variables.iter().copied());
        command
    };
    for (variables, expected) in [
        (&[("XDG_DATA_HOME", xdg.as_path())][..], xdg.join("bsv-server")),
        (&[("HOME", &home)], home.join(".local/share/bsv-server")),
        (&[("HOME", &home), ("XDG_DATA_HOME", &xdg)], xdg.join("bsv-server")),
        (
            &[("HOME", &home), ("XDG_DATA_HOME", "relative".as_ref())],
            home.join(".local/share/bsv-server"),
        ),
    ] {
        let server = Server::start(&mut start(variables));
        assert!(expected.join("regtest/control.sock").exists(), "{variables:?}");
        let mut cli = bare(cli_program());
        cli.env("BSV_CONFIG", &port).envs(variables.iter().copied());
        run_ok(cli.args(["miner", "list"]));
        server.stop();
        fs::remove_dir_all(expected).unwrap();
    }
    check_refused(&mut start(&[]), &["no data directory: give --data-dir"]);
    assert!(!Path::new("relative").exists());
}

#[test]
fn a_relative_data_directory_is_taken_from_where_the_program_starts() {
    let dir = TempDir::new().unwrap();
    let mut command = bare(server_program());
    command.current_dir(dir.path()).args(["--data-dir", "here"]);
    command.env(
        "BSV_CONFIG",
        json!({"port": 0, "wallet": {"port": 0}, "payments": {"port": 0}, "keystore": "keys"})
            .to_string(),
    );
    let server = Server::start(&mut command);
    let control = dir.path().join("here/regtest/control.sock").canonicalize().unwrap();
    assert_eq!(server.control(), control.to_str().unwrap());
    assert!(dir.path().join("keys/keystore.json").exists());
    server.stop();
}

#[test]
fn a_data_directory_with_a_very_long_path_still_has_a_control_socket() {
    let dir = TempDir::new().unwrap();
    let deep: PathBuf =
        [dir.path(), "a".repeat(120).as_ref(), "b".repeat(120).as_ref()].iter().collect();
    let settings = json!({"port": 0});
    let server =
        Server::start(&mut configured(server_program(), &deep, Source::Environment, &settings));
    let control = deep.join("data/regtest/control.sock");
    assert_eq!(server.control(), control.to_str().unwrap());
    assert_eq!(fs::metadata(&control).unwrap().permissions().mode() & 0o777, 0o600);
    let cli = |arguments: &[&str]| {
        let mut command = configured(cli_program(), &deep, Source::Environment, &settings);
        run_ok(command.args(arguments))
    };
    cli(&["generateminerid", "-n", "pool"]);
    let key = cli(&["getcurrentminerid", "-n", "pool"]);
    assert_eq!(server.get("/minerid/pool").body, key.trim());
    server.stop();
    assert_eq!(cli(&["getcurrentminerid", "-n", "pool"]), key);
}

#[test]
fn the_holder_of_a_directory_is_named() {
    let site = Site::new();
    let server = site.server();
    let holder = format!("is in use by bsv-server (process {})", server.id());
    check_refused(&mut site.server_command(), &[&holder, "regtest is in use"]);
    let (keys, ids) = (site.network_dir().join("keystore"), site.network_dir().join("minerid"));
    for (setting, dir) in [("keystore", keys), ("minerIdDataPath", ids)] {
        let other = Site::with(json!({setting: dir}));
        let reason = format!("{} {holder}", dir.display());
        check_refused(&mut other.server_command(), &[&reason]);
        check_refused(&mut other.cli_command(&["generateminerid", "-n", "a"]), &[&reason]);
    }
    assert_eq!(server.stop(), 0);
    assert_eq!(site.server().stop(), 0);
}

#[test]
fn a_starting_server_waits_for_a_command_that_holds_the_directory() {
    let site = Site::new();
    let lock = DirLock::acquire(&site.network_dir(), "bsv-cli").unwrap();
    let starting = thread::spawn({
        let mut command = site.server_command();
        move || Server::start(&mut command)
    });
    // A server that does not wait would have ended by then.
    thread::sleep(Duration::from_secs(1));
    assert!(!starting.is_finished());
    drop(lock);
    starting.join().unwrap().stop();
}

#[test]
fn root_makes_no_files_in_a_directory_of_another_user() {
    let site = Site::new();
    if chown(site.data_dir(), Some(12_345), None).is_err() {
        eprintln!("SKIPPED: only root can give a directory to another user");
        return;
    }
    for mut command in [site.server_command(), site.cli_command(&["init"])] {
        check_refused(&mut command, &["belongs to user 12345", "sudo -u '#12345'"]);
    }
    assert_eq!(fs::read_dir(site.data_dir()).unwrap().count(), 0);
}
