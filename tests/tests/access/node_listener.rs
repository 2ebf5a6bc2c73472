use bsv_server::Api;
use bsv_tests::{Client, http};
use serde_json::{Value, json};

use crate::access::Guarded;

const HASH: &str = "70f5701644897c92b60e98dbbfe72e1cfd7a2728c6fa3a29c4b4f6e986b0ccaa";

/// A server that demands tokens, and that a node may ask for identity `first` without one.
fn start() -> Guarded {
    Guarded::start_with(json!({
        "auth": {"requireToken": true},
        "minerid": {"nodeListener": {"port": 0, "alias": "first"}},
    }))
}

fn status(client: &Client, method: &str, path: &str) -> u16 {
    client.send(method, path, &[], b"").status
}

#[test]
fn a_node_needs_no_token_for_its_alias() {
    let guarded = start();
    let (node, minerid) = (guarded.server.node_listener(), guarded.minerid());
    let pksign = format!("/minerid/first/pksign/{HASH}");
    assert_eq!(
        [status(&minerid, "GET", "/minerid/first"), status(&minerid, "GET", &pksign)],
        [401; 2]
    );

    let token = guarded.token(&["minerid:read", "minerid:sign"]);
    let key = node.get("/minerid/first");
    assert_eq!(key.status, 200, "{}", key.body);
    assert_eq!(key.body, guarded.send("GET", "/minerid/first", "", Some(&token)).body);
    let signed = node.get(&pksign);
    assert_eq!(signed.status, 200, "{}", signed.body);
    assert_eq!(signed.body, guarded.send("GET", &pksign, "", Some(&token)).body);
    let signed: Value = serde_json::from_str(&signed.body).unwrap();
    assert_eq!(signed["publicKey"], key.body);
    // A header without a valid token changes nothing.
    let headers = [("Authorization", "Bearer nobody")];
    assert_eq!(node.send("GET", "/minerid/first/", &headers, b"").status, 200);
    assert_eq!(status(node, "HEAD", &pksign), 200);
    assert_eq!(status(node, "GET", "/minerid/first/pksign/00"), 422);
}

#[test]
fn the_nodes_listener_has_no_other_routes() {
    let guarded = start();
    let node = guarded.server.node_listener();
    let paths = [
        "/",
        "/minerid",
        "/minerid/rot",
        "/minerid/FIRST",
        "/minerid/nobody",
        "/opreturn/first/1000",
        "/opreturn/first/isvalid",
        "/opreturn/first/rotate",
        "/datarefs/first/opreturns",
        "/coinbase2",
        "/control/minerids",
        "/api/v1/invoices",
        "/dpp/api/v1/payment/000000000000",
    ];
    let of_others = [
        format!("/minerid/rot/pksign/{HASH}"),
        format!("/minerid/first/sign/{HASH}"),
        format!("/minerid/first/pksign/{HASH}/true"),
        format!("/opreturn/first/1000/{HASH}"),
    ];
    for path in paths.into_iter().chain(of_others.iter().map(String::as_str)) {
        for method in ["GET", "POST", "OPTIONS", "DELETE"] {
            assert_eq!(status(node, method, path), 404, "{method} {path}");
        }
    }
    let known = ["/healthz", "/readyz", "/minerid/{alias}", "/minerid/{alias}/pksign/{hash}"];
    assert_eq!(bsv_server::patterns(Api::Node), known);
    let before = node.get("/minerid/first").body;
    for method in ["POST", "PUT", "DELETE"] {
        assert_eq!(status(node, method, "/minerid/first"), 405, "{method}");
    }
    assert_eq!(node.get("/minerid/first").body, before);
    for path in ["/healthz", "/readyz"] {
        assert_eq!(status(node, "GET", path), 200, "{path}");
    }
    // A browser is not a node.
    let own = node.address();
    for (host, origin) in [("evil.example", own), (own, "evil.example")] {
        let request = format!(
            "GET /minerid/first HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{origin}\r\n\
             Connection: close\r\n\r\n"
        );
        let reply = http::exchange(own, request.as_bytes(), "GET").unwrap();
        assert_eq!(reply.status, 403, "{request}");
    }
}

#[test]
fn an_alias_that_signs_only_documents_signs_nothing_for_a_node() {
    let guarded = start();
    let node = guarded.server.node_listener();
    guarded.site.cli_ok(&["miner", "blind-signing", "--name", "first", "off"]);
    let reply = node.get(&format!("/minerid/first/pksign/{HASH}"));
    assert_eq!(
        (reply.status, reply.body.as_str()),
        (403, "Blind signing is off for alias \"first\"")
    );
    assert_eq!(node.get("/minerid/first").status, 200);
}
