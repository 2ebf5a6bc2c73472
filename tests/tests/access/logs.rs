use std::fs;

use bsv_tests::{Client, Site};
use serde_json::{Value, json};
use tempfile::TempDir;

#[test]
fn requests_are_logged_if_enabled_but_not_their_contents() {
    let dir = TempDir::new().unwrap();
    let log = dir.path().join("log");
    let site = Site::with(json!({"log": {"requests": true}, "auth": {"requireToken": true}}));
    let server = site.server_logging_json_to(&log);
    let minerid = Client::new(server.address());
    let bearer = [("Authorization", "Bearer SECRET-token"), ("X-Other", "SECRET-header")];
    for (client, method, path) in [
        (&minerid, "GET", "/minerid/SECRET-alias?a=SECRET-query"),
        (&minerid, "POST", "/opreturn/SECRET-alias/rotate/"),
        (&minerid, "GET", "/SECRET-path"),
        (&minerid, "SECRETMETHOD", "/coinbase2"),
        (server.wallet(), "GET", "/api/v1/invoices/SECRET-id/payments"),
        (server.payments(), "GET", "/api/v1/channel/SECRET-id?unread=SECRET"),
        (server.payments(), "GET", "/readyz"),
    ] {
        client.send(method, path, &bearer, b"SECRET-body");
    }
    site.cli_ok(&["token", "list"]);
    site.cli_ok(&["wallet", "balance"]);
    assert_eq!(server.stop(), 0);
    let text = fs::read_to_string(&log).unwrap();
    assert!(!text.contains("SECRET"), "{text}");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let requests = lines.iter().filter(|line| line["target"] == "bsv_server::requests");
    let shown = requests.map(|line| {
        assert!(line["micros"].is_u64() && line["timestamp"].is_string(), "{line}");
        let word = |name: &str| line[name].as_str().unwrap().to_owned();
        let status = line["status"].as_u64().unwrap();
        format!("{} {} {} {status}", word("listener"), word("method"), word("route"))
    });
    assert_eq!(
        shown.collect::<Vec<_>>(),
        [
            "minerid GET /minerid/{alias} 403",
            "minerid POST /opreturn/{alias}/rotate 403",
            "minerid GET none 403",
            "minerid other /coinbase2 403",
            "wallet GET /api/v1/invoices/{id}/payments 401",
            "payments GET /api/v1/channel/{id} 400",
            "payments GET /readyz 200",
            "control GET /control/tokens 200",
            "control GET /api/v1/balance 200",
        ]
    );
}

#[test]
fn requests_are_not_logged_by_default() {
    let dir = TempDir::new().unwrap();
    let log = dir.path().join("log");
    let site = Site::new();
    let server = site.server_logging_to(&log);
    assert_eq!(server.get("/minerid/pool").status, 422);
    assert_eq!(server.wallet().get("/api/v1/balance").status, 200);
    assert_eq!(server.stop(), 0);
    let text = fs::read_to_string(&log).unwrap();
    assert!(!text.contains("balance") && !text.contains("minerid/"), "{text}");
}
