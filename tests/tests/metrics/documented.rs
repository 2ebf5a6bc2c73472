use std::collections::BTreeSet;
use std::fs;

use bsv_tests::build::workspace;
use bsv_tests::{Metrics, Node, Site};
use serde_json::json;

/// The names of metrics in a document.
fn named(document: &str) -> BTreeSet<String> {
    named_in(&fs::read_to_string(workspace().join(document)).unwrap())
}

/// The names of metrics in a text.
pub(crate) fn named_in(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').map(str::to_owned);
    words.filter(|word| is_name(word)).collect()
}

fn is_name(word: &str) -> bool {
    // Tokens begin with `bsv_` too, followed by a digit.
    let own = word.strip_prefix("bsv_").is_some_and(|rest| rest.starts_with(char::is_alphabetic));
    own && word.contains(char::is_alphabetic) || word.starts_with("process_")
}

/// The names of all metrics of a server with every service and setting.
pub(crate) fn told() -> BTreeSet<String> {
    let node = Node::start();
    node.mine(1);
    let mut site = Site::on(&node);
    site.set("metrics", json!({"balance": true}));
    let peer = format!("{}:{}", node.host, node.peer_port);
    site.change("wallet", "source", json!("services"));
    site.change("wallet", "zeroConfLimitSatoshis", json!(1_000));
    let broadcaster = json!({"kind": "arcade", "url": "http://127.0.0.1:1"});
    site.set("services", json!({"broadcasters": [broadcaster], "headers": {"peers": [peer]}}));
    let server = site.server();
    let mut told = BTreeSet::new();
    for listener in [server.wallet(), server.minerid()] {
        crate::metrics::wait_for(listener, "bsv_node_reachable", 1.0);
        crate::metrics::wait_for(listener, "bsv_headers_height", 1.0);
        told.extend(Metrics::of(listener).types().map(|(name, _)| name.to_owned()));
    }
    told
}

#[test]
fn the_documentation_lists_what_a_server_tells() {
    let told = told();
    let guide = fs::read_to_string(workspace().join("docs/operate.md")).unwrap();
    // Other sections name the log's targets, which look like names of metrics.
    let section = guide.split("\n## ").find(|section| section.starts_with("Metrics\n"));
    assert_eq!(named_in(section.unwrap()), told);
    for guide in ["docs/shop.md", "docs/pool.md"] {
        let named = named(guide);
        assert!(!named.is_empty(), "{guide} names none");
        let unknown: Vec<_> = named.difference(&told).collect();
        assert!(unknown.is_empty(), "{guide}: {unknown:?}");
    }
}
