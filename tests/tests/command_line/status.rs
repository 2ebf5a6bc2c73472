//! `bsv-cli status`.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use bsv_tests::{Node, Site};
use serde_json::json;

#[test]
fn a_healthy_service_is_shown_with_success() {
    let node = Node::start();
    node.mine(2);
    let site = Site::on(&node);
    site.cli_ok(&["init"]);
    site.cli_ok(&["miner", "create", "--name", "pool", "--protocol", "1.0"]);
    for with_server in [false, true] {
        let server = with_server.then(|| site.server());
        let said = site.cli_ok(&["status"]);
        assert_eq!(said.lines().next(), Some("All is well"), "{said}");
        let data_dir = site.network_dir().display().to_string();
        for part in [
            &data_dir,
            "reachable, block 2",
            "writable",
            "0 satoshis",
            "pool, protocol 1.0",
            "regtest",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        let status = site.cli_json(&["status"]);
        assert_eq!((&status["ready"], &status["node"]["height"]), (&json!(true), &json!(2)));
        match &server {
            Some(server) => assert!(said.contains(server.address()), "{said}"),
            None => assert!(said.contains("no server runs"), "{said}"),
        }
    }
}

#[test]
fn problems_are_shown_first_and_without_success() {
    let mut node = Node::start();
    node.mine(2);
    let site = Site::on(&node);
    site.cli_ok(&["init"]);
    node.stop();
    for with_server in [false, true] {
        let _server = with_server.then(|| site.server());
        let done = site.cli(&["status"]);
        assert_eq!((done.code, done.stderr.as_str()), (1, ""), "{done:?}");
        let mut lines = done.stdout.lines();
        assert_eq!(lines.next(), Some("This needs attention:"), "{}", done.stdout);
        assert_eq!(lines.next(), Some("  the node does not answer"), "{}", done.stdout);
        let done = site.cli(&["status", "--json"]);
        assert_eq!((done.code, done.stderr.as_str()), (1, ""), "{done:?}");
        assert!(done.stdout.contains(r#""state":"away""#), "{}", done.stdout);
    }
}

#[test]
fn a_directory_that_others_can_write_to_is_named() {
    let site = Site::new();
    site.cli_ok(&["init"]);
    let (minerid, network) = (site.network_dir().join("minerid"), site.network_dir());
    let log = site.data_dir().join("log");
    for (dir, mode) in [(&minerid, 0o770), (&network, 0o702)] {
        let named = format!("other users can write to {}: run chmod", dir.display());
        for mode in [mode, 0o755] {
            fs::set_permissions(dir, fs::Permissions::from_mode(mode)).unwrap();
            let server = site.server_logging_to(&log);
            let done = site.cli(&["status"]);
            assert_eq!(server.stop(), 0);
            let logged = fs::read_to_string(&log).unwrap();
            fs::remove_file(&log).unwrap();
            let is_open = mode != 0o755;
            assert_eq!(done.code, i32::from(is_open), "{}", done.stdout);
            for told in [&logged, &done.stdout] {
                assert_eq!(told.contains(&named), is_open, "{told}");
            }
        }
    }
}
