use std::thread::sleep;
use std::time::Duration;

use bsv_tests::faults::{Fault, Faults};
use bsv_tests::{Client, Node, Reply, Server, Site, free_port};
use serde_json::{Value, json};

/// The readiness of each listener: status and body.
fn readiness(server: &Server) -> [(u16, Value); 3] {
    // The result is kept for two seconds.
    sleep(Duration::from_millis(2100));
    listeners(server).map(|listener| {
        let reply = listener.get("/readyz");
        assert_eq!(reply.header("content-type"), Some("application/json; charset=utf-8"));
        (reply.status, serde_json::from_str(&reply.body).unwrap())
    })
}

fn listeners(server: &Server) -> [Client; 3] {
    [Client::new(server.address()), server.wallet().clone(), server.payments().clone()]
}

fn told(ready: bool, store: &str, node: &str, txindex: Option<bool>) -> Value {
    json!({"ready": ready, "store": store, "node": node, "txindex": txindex})
}

#[test]
fn every_listener_tells_without_a_token_that_it_is_alive() {
    let mut site = Site::with(json!({"auth": {"requireToken": true}}));
    site.set_env("BSV_LOG", "off");
    let server = site.server();
    for listener in listeners(&server) {
        let ok = |reply: &Reply, body: &str| {
            assert_eq!((reply.status, reply.body.as_str()), (200, body));
        };
        ok(&listener.get("/healthz"), "ok");
        ok(&listener.request("HEAD", "/healthz", b""), "");
        ok(&listener.request("HEAD", "/readyz", b""), "");
        let reply = listener.post("/healthz", "{}");
        assert_eq!((reply.status, reply.header("allow")), (405, Some("GET, HEAD, OPTIONS")));
        assert_ne!(listener.get("/healthz/").status, 200);
    }
    let foreign = [("Origin", "http://evil.example")];
    assert_eq!(server.wallet().send("GET", "/readyz", &foreign, b"").status, 403);
    let ready = told(true, "writable", "none", None);
    let payers = json!({"ready": true});
    assert_eq!(readiness(&server), [(200, ready.clone()), (200, ready), (200, payers)]);
}

#[test]
fn a_full_disk_is_not_ready_until_there_is_room() {
    let mut site = Site::new();
    site.set_env("BSV_LOG", "off");
    let faults = Faults::install(&mut site);
    let server = site.server();
    faults.begin(Fault::FULL);
    for (status, body) in readiness(&server) {
        assert_eq!((status, &body["ready"]), (503, &json!(false)));
    }
    assert_eq!(server.get("/healthz").status, 200);
    faults.end();
    for (status, body) in readiness(&server) {
        assert_eq!((status, &body["ready"]), (200, &json!(true)));
    }
}

#[test]
fn the_wallet_is_ready_with_a_node_that_knows_all_transactions() {
    let site = |port: u16, user: &str, password: &str| {
        Site::with(json!({"rpcPort": port, "rpcUser": user, "rpcPassword": password}))
    };
    let check = |server: &Server, node: &str, txindex: Option<bool>| {
        let is_ready = txindex == Some(true);
        let status = if is_ready { 200 } else { 503 };
        let expected = [
            // Documents are made without a node.
            (200, told(true, "writable", node, txindex)),
            (status, told(is_ready, "writable", node, txindex)),
            (status, json!({"ready": is_ready})),
        ];
        assert_eq!(readiness(server), expected);
    };
    let node = Node::start();
    let with_index = Site::on(&node);
    let server = with_index.server();
    check(&server, "reachable", Some(true));
    drop(node);
    check(&server, "away", None);

    let node = Node::start_with(&["txindex=0"]);
    let without_index = Site::on(&node);
    check(&without_index.server(), "reachable", Some(false));
    let refused = site(node.port, &node.user, "wrong");
    check(&refused.server(), "away", None);
    let nobody = site(free_port(), "user", "password");
    check(&nobody.server(), "away", None);
}
