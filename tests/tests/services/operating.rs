//! Running a shop without a node: its settings, what is told of them, and when it is ready.

use std::fs;

use bsv_tests::services::Mood;
use bsv_tests::{Node, Service, Site};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::stall;
use crate::payments::merchant::wait_until;

/// The lines of `config check --services` about services, without how well they do, and the exit code.
fn check(site: &Site) -> (i32, Vec<(String, String)>) {
    let done = site.cli(&["config", "check", "--services", "--json"]);
    let verdicts: Value = serde_json::from_str(&done.stdout).unwrap();
    let lines = verdicts["checks"].as_array().unwrap().iter();
    let text = |line: &Value, name: &str| line[name].as_str().unwrap().to_owned();
    let of_services = lines.filter(|line| {
        ["broadcaster", "headers", "services.seenBy"].contains(&line["check"].as_str().unwrap())
    });
    (done.code, of_services.map(|line| (text(line, "outcome"), text(line, "detail"))).collect())
}

/// A site whose wallet asks these services, the second of them as an ARC.
fn site(node: &Node, services: &[&Service]) -> Site {
    let mut site = stall::site(node, services, json!({}));
    let arc = services.get(1).map(|it| json!({ "kind": "arc", "url": it.url() }));
    let broadcasters = [Some(json!({ "kind": "arcade", "url": services[0].url() })), arc];
    let broadcasters: Vec<_> = broadcasters.into_iter().flatten().collect();
    site.change("services", "broadcasters", json!(broadcasters));
    site.change(
        "services",
        "headers",
        json!({
            "urls": [services[0].chaintracks_url()],
            "peers": [format!("{}:{}", node.host, node.peer_port)],
        }),
    );
    site
}

#[test]
fn the_example_of_settings_without_a_node_can_be_used() {
    let dir = TempDir::new().unwrap();
    for network in ["livenet", "testnet"] {
        let mut site = Site::new();
        site.set_env("BSV_KEYSTORE_PASSPHRASE", "of an example");
        let example = ["config", "example", "--services", "--network", network];
        let text = site.cli(&example).stdout;
        assert_eq!(site.cli_json(&example)["toml"], text);
        let file = dir.path().join("settings.toml");
        fs::write(&file, &text).unwrap();
        let file = file.to_str().unwrap();
        let checked = site.cli(&["--config", file, "config", "check"]);
        assert_eq!(checked.code, 0, "{checked:?}");
        let shown = site.cli_json(&["--config", file, "config", "show"]);
        assert_eq!(shown["network"], network);
        for (kind, count) in [("broadcasters", 2), ("headers/urls", 2)] {
            let named = shown.pointer(&format!("/services/{kind}")).unwrap();
            assert_eq!(named.as_array().unwrap().len(), count, "{shown}");
        }
        // What stands behind a # can be used, too.
        let all: String = text
            .lines()
            .map(|line| {
                let line =
                    line.strip_prefix("# ").filter(|it| it.contains(" = ") || it.starts_with('['));
                format!("{}\n", line.unwrap_or_default())
            })
            .collect();
        assert!(all.parse::<toml::Table>().is_ok(), "{all}");
    }
    let site = Site::new();
    assert!(site.cli_ok(&["config", "example", "--services"]).contains("network = \"livenet\""));
    for wrong in
        [&["config", "example"][..], &["config", "example", "--services", "--network", "regtest"]]
    {
        assert_eq!(site.cli(wrong).code, 2, "{wrong:?}");
    }
}

#[test]
fn each_service_is_asked_for_what_is_needed_of_it() {
    let node = Node::start();
    node.mine(20);
    let (arcade, arc) = (Service::before(&node), Service::before(&node));
    let site = site(&node, &[&arcade, &arc]);
    let (host, second) = (arcade.address(), arc.address());
    let peer = format!("{}:{}", node.host, node.peer_port);
    let (code, lines) = check(&site);
    let holds = |detail: String| ("holds".to_owned(), detail);
    assert_eq!(
        lines,
        [
            holds(format!(
                "{host} (chaintracks): its headers are those of regtest, its clock agrees with ours, it is at block 20"
            )),
            holds(format!("{peer} (p2p): its headers are those of regtest, it is at block 20")),
            holds(format!(
                "{host} (arcade): it asks for no API key, it asks for 100 satoshis per 1000 bytes, its clock agrees with \
             ours, it serves regtest, it is at block 20"
            )),
            holds(format!(
                "{second} (arc): it asks for no API key, it asks for 100 satoshis per 1000 bytes, its clock agrees with \
             ours, it does not tell its network, it does not tell its height"
            )),
        ]
    );
    assert_eq!(code, 0);
    // A server that runs has headers of its own.
    let server = site.server();
    wait_until("the headers", || {
        check(&site).1[0].1.ends_with("it is at block 20, and our headers at 20")
    });
    drop(server);

    let says = |change: &dyn Fn(&mut Mood), code: i32, outcome: &str, part: &str| {
        arcade.be(Mood::default());
        arcade.change(change);
        let (ended, lines) = check(&site);
        let is_there = lines.iter().any(|(it, detail)| it == outcome && detail.contains(part));
        assert!(ended == code && is_there, "{ended} {part}: {lines:#?}");
    };
    says(
        &|it| it.api_key = Some("k".into()),
        1,
        "fails",
        "(arcade): it wants an API key: set apiKeyFile",
    );
    says(
        &|it| it.fee = (1_001, 1_000),
        1,
        "fails",
        "it asks for 1001 satoshis per 1000 bytes, more than wallet.maxFeeRate",
    );
    says(&|it| it.condition = Some((503, None)), 1, "fails", "(arcade): it is busy (HTTP 503)");
    says(&|it| it.nonsense = Some("<html>".into()), 1, "fails", "(arcade): it answers nonsense");
    says(
        &|it| it.withheld = 10,
        0,
        "warns",
        "it is at block 10, and the newest block of regtest that is known is 20",
    );
    says(&|it| it.clock = 300, 0, "warns", "its clock and that of this machine differ by 300 s");
    says(
        &|it| it.clock = -300,
        0,
        "warns",
        "(arcade): its clock and that of this machine differ by 300 s",
    );
}

#[test]
fn services_that_fit_the_settings_badly_are_told() {
    let node = Node::start();
    node.mine(1);
    let (arcade, arc) = (Service::before(&node), Service::before(&node));
    let mut site = site(&node, &[&arcade, &arc]);
    site.change("services", "seenBy", json!(2));
    arc.change(|it| it.api_key = Some("right".into()));
    let keys = TempDir::new().unwrap();
    let file = keys.path().join("key");
    fs::write(&file, "wrong\n").unwrap();
    site.change(
        "services",
        "broadcasters",
        json!([
            { "kind": "arcade", "url": arcade.url() },
            { "kind": "arc", "url": arc.url(), "apiKeyFile": file },
        ]),
    );
    let has = |lines: &[(String, String)], part: &str| lines.iter().any(|it| it.1.contains(part));
    let (code, lines) = check(&site);
    let refused = "(arc): it refuses the API key (HTTP 401): check apiKeyFile";
    let too_few = "2 broadcasters must have a payment, and 1 of 2 can be used";
    assert!(code == 1 && has(&lines, refused) && has(&lines, too_few), "{lines:#?}");
    fs::write(&file, "right\n").unwrap();
    let (code, lines) = check(&site);
    assert!(code == 0 && has(&lines, "(arc): it takes the API key"), "{lines:#?}");

    site.set("network", json!("testnet"));
    let (code, lines) = check(&site);
    let other = "it serves regtest, and the settings name testnet";
    assert!(code == 1 && has(&lines, other), "{lines:#?}");
    assert!(has(&lines, "(chaintracks): "), "{lines:#?}");
    assert!(lines.iter().filter(|it| it.0 == "fails").count() >= 3, "{lines:#?}");

    // One source of headers alone is a risk, and no services cannot be asked.
    site.set("network", json!("regtest"));
    site.change("services", "headers", json!({ "urls": [arcade.chaintracks_url()] }));
    let warned = site.cli(&["config", "check", "--strict"]);
    assert!(
        warned.code == 1 && warned.stdout.contains("only one source of headers is named"),
        "{warned:?}"
    );
    let none = Site::new().cli(&["config", "check", "--services"]);
    assert!(none.code == 1 && none.stderr.contains("no services are configured"), "{none:?}");
}

#[test]
fn a_shop_is_ready_while_one_broadcaster_takes_its_key() {
    let node = Node::start();
    node.mine(1);
    let (arcade, arc) = (Service::before(&node), Service::before(&node));
    let mut site = site(&node, &[&arcade, &arc]);
    let peer = format!("{}:{}", node.host, node.peer_port);
    site.change("services", "headers", json!({ "peers": [peer] }));
    let ready = |site: &Site, status: u16, state: &str, refused: &[&Service]| {
        let server = site.server();
        let hosts: Vec<_> = refused.iter().map(|it| it.address()).collect();
        let hosts = if hosts.is_empty() { Value::Null } else { json!(hosts) };
        let told = || -> (u16, Value, Value) {
            let reply = server.wallet().get("/readyz");
            let body: Value = serde_json::from_str(&reply.body).unwrap();
            (reply.status, body["broadcasters"].clone(), body["refusedKeys"].clone())
        };
        wait_until("readiness", || told() == (status, json!(state), hosts.clone()));
        assert_eq!(server.payments().get("/readyz").status, status);
        // Identities need no broadcaster.
        assert_eq!(server.minerid().get("/readyz").status, 200);
    };
    ready(&site, 200, "usable", &[]);
    arcade.change(|it| it.api_key = Some("k".into()));
    ready(&site, 200, "usable", &[&arcade]);
    arc.change(|it| it.api_key = Some("k".into()));
    ready(&site, 503, "unusable", &[&arcade, &arc]);
    // One that is away may come back.
    arc.be(Mood { condition: Some((503, None)), ..Mood::default() });
    ready(&site, 200, "usable", &[&arcade]);
    // One that is too expensive gets no payments.
    arc.be(Mood { fee: (1_001, 1_000), ..Mood::default() });
    ready(&site, 503, "unusable", &[&arcade]);
}
