//! `config check --node` with a real node.

use std::net::TcpListener;

use bsv_tests::node::free_port;
use bsv_tests::{Done, Node, Site};
use serde_json::{Value, json};

/// The exit code and the lines of a check.
fn check(site: &Site) -> (i32, Vec<Value>) {
    let Done { code, stdout, stderr } = site.cli(&["config", "check", "--node", "--json"]);
    let told: Value = serde_json::from_str(&stdout).unwrap_or_else(|_| panic!("{stderr}"));
    (code, told["checks"].as_array().unwrap().clone())
}

/// The outcome of one check, such as `holds`. Its detail must contain `part`.
fn outcome(lines: &[Value], name: &str, part: &str) -> String {
    let line = lines.iter().find(|line| line["check"] == name);
    let line = line.unwrap_or_else(|| panic!("{name}: {lines:#?}"));
    assert!(line["detail"].as_str().unwrap().contains(part), "{name}, {part}: {lines:#?}");
    line["outcome"].as_str().unwrap().to_owned()
}

#[test]
fn a_suitable_node_is_reported_line_by_line() {
    let node = Node::start();
    let site = Site::on(&node);
    let (code, lines) = check(&site);
    assert_eq!(code, 0, "{lines:#?}");
    for (name, part) in [
        ("node", ""),
        ("version", "Bitcoin SV"),
        ("network", "regtest"),
        ("blocks", ""),
        ("minerid=1", ""),
        ("txindex=1", ""),
    ] {
        assert_eq!(outcome(&lines, name, part), "holds");
    }
    for name in ["mineridgeneratorurl", "mineridgeneratoralias", "PublicIP", "miner-info-funding"] {
        assert_eq!(outcome(&lines, name, ""), "unchecked");
    }
    let text = site.cli_ok(&["config", "check", "--node"]);
    assert!(text.contains("network                holds: regtest\n"), "{text}");
    assert!(!text.contains(&node.password), "{text}");
    // The check made no files.
    assert!(!site.network_dir().exists());
}

#[test]
fn an_unsuitable_node_is_reported_and_fails() {
    let mut node = Node::start_with(&["minerid=0", "txindex=0"]);
    let mut site = Site::on(&node);
    let (code, lines) = check(&site);
    assert_eq!(code, 1);
    assert_eq!(outcome(&lines, "minerid=1", "keeps no miner ids"), "fails");
    assert_eq!(outcome(&lines, "txindex=1", "which the wallet needs"), "fails");
    site.set("network", json!("testnet"));
    let (code, lines) = check(&site);
    assert_eq!(code, 1);
    assert_eq!(
        outcome(&lines, "network", "follows regtest, but the settings name testnet"),
        "fails"
    );
    // Without a wallet, the node needs no index.
    site.set("wallet", json!({"enabled": false}));
    assert_eq!(outcome(&check(&site).1, "txindex=1", ""), "warns");
    node.stop();
    let (code, lines) = check(&site);
    assert_eq!(code, 1);
    assert_eq!(outcome(&lines, "node", "no answer from the node"), "fails");
    assert_eq!(outcome(&lines, "minerid=1", "does not answer"), "unchecked");

    let done = Site::new().cli(&["config", "check", "--node", "--json"]);
    let told: Value = serde_json::from_str(&done.stderr).unwrap();
    assert_eq!((done.code, &told["code"]), (1, &json!("no-node")));
}

#[test]
fn a_node_that_cannot_reach_the_service_is_reported() {
    const URL: &str = "mineridgeneratorurl";
    const ALIAS: &str = "mineridgeneratoralias";
    let [port, nodes_port] = [free_port(), free_port()];
    let url = |port: u16| format!("{URL}=http://127.0.0.1:{port}");
    let mut node = Node::start_with(&[&url(port), "mineridgeneratoralias=pool"]);
    let mut site = Site::on(&node);
    site.set("port", json!(port));
    let (code, lines) = check(&site);
    assert_eq!((code, outcome(&lines, URL, "")), (1, "holds".to_owned()));
    assert_eq!(outcome(&lines, ALIAS, "no identity \"pool\" yet"), "fails");
    site.cli_ok(&["miner", "create", "--name", "pool"]);
    let (code, lines) = check(&site);
    assert_eq!((code, outcome(&lines, ALIAS, "")), (0, "holds".to_owned()));
    site.cli_ok(&["miner", "blind-signing", "--name", "pool", "off"]);
    let (code, lines) = check(&site);
    assert_eq!((code, outcome(&lines, ALIAS, "blind signing is off")), (1, "fails".to_owned()));
    site.cli_ok(&["miner", "blind-signing", "--name", "pool", "on"]);

    // Tokens keep the node out, unless it has its own listener.
    site.set("auth", json!({"requireToken": true}));
    let (code, lines) = check(&site);
    assert_eq!((code, outcome(&lines, URL, "minerid.nodeListener")), (1, "fails".to_owned()));
    site.set("minerid", json!({"nodeListener": {"port": nodes_port, "alias": "other"}}));
    node.restart_with(&[&url(nodes_port)]);
    let (code, lines) = check(&site);
    assert_eq!((code, outcome(&lines, URL, "")), (1, "holds".to_owned()));
    assert_eq!(outcome(&lines, ALIAS, "serves \"other\""), "fails");
    site.set("minerid", json!({"nodeListener": {"port": nodes_port, "alias": "pool"}}));
    assert_eq!(check(&site).0, 0);

    // A slash at the end changes the path. A front end may be at another address.
    node.restart_with(&[&format!("{}/", url(nodes_port))]);
    assert_eq!(outcome(&check(&site).1, URL, "slash"), "fails");
    node.restart_with(&[&url(free_port())]);
    assert_eq!(outcome(&check(&site).1, URL, "no listener"), "unchecked");
}

#[test]
fn a_listener_that_nodes_cannot_use_causes_a_warning() {
    let (node, port) = (Node::start(), free_port());
    // The system picks a free port from those that a node refuses.
    let too_high = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    assert!(too_high > 32_767);
    for (settings, part, code) in [
        (json!({"port": too_high}), "32767", 0),
        (json!({"port": port, "host": "::1"}), "IPv6", 0),
        (json!({"port": port, "auth": {"requireToken": true}}), "tokens", 0),
        // There are no such files.
        (json!({"port": port, "tls": {"certificate": "c", "key": "k"}}), "TLS", 1),
    ] {
        let mut site = Site::on(&node);
        for (name, value) in settings.as_object().unwrap() {
            site.set(name, value.clone());
        }
        let (found, lines) = check(&site);
        let outcome = outcome(&lines, "listener", part);
        assert_eq!((found, outcome), (code, "warns".to_owned()), "{settings}");
    }
    let mut site = Site::on(&node);
    site.set("port", json!(port));
    let url = format!("http://127.0.0.1:{port}");
    assert_eq!(outcome(&check(&site).1, "listener", &url), "holds");
}
