//! The former names of commands, from before the commands were grouped by noun.

use bsv_tests::terminal::Terminal;
use bsv_tests::{Node, Server, Site, miner_info, vectors};
use serde_json::{Value, json};

/// A former name with its options, its exit code, and a part of its output.
type Case<'a> = (&'a [&'a str], i32, &'a str);

fn check(site: &Site, cases: &[Case<'_>]) {
    for (arguments, code, part) in cases {
        let done = site.cli(arguments);
        assert_eq!(done.code, *code, "{arguments:?}: {done:?}");
        let said = done.stdout + &done.stderr;
        assert!(said.contains(part), "{arguments:?} does not say {part:?}, but {said}");
    }
}

fn miner_id(server: &Server, alias: &str) -> String {
    server.text(&format!("/minerid/{alias}"))
}

/// Mines a block that shows the announcements of an alias.
fn announce(node: &Node, site: &Site, server: &Server, alias: &str) {
    miner_info::mine_from(node, server, alias);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while site.cli_json(&["miner", "show", "--name", alias])["announced"] != json!([]) {
        assert!(std::time::Instant::now() < deadline);
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

#[test]
fn former_names_do_the_same_as_the_new_commands() {
    let site = Site::new();
    let home = vectors::write_home(&vectors::minerid_0_2(), site.data_dir());
    let home = home.to_str().unwrap();
    let [extensions, data] = ["extensions", "data"].map(|name| site.data_dir().join(name));
    std::fs::write(&extensions, r#"{"x": 1}"#).unwrap();
    std::fs::write(&data, r#"{"dataRefs":{"refs":[]}}"#).unwrap();
    let [extensions, data] = [&extensions, &data].map(|path| path.to_str().unwrap());
    let disk = site.data_dir().join("disk");
    let keys = disk.to_str().unwrap();
    check(&site, &[(&["importminerid", "--from", home], 0, "Imported alias \"first\"")]);
    for with_server in [false, true] {
        let server = with_server.then(|| site.server());
        let [new, modern, up] = ["new", "modern", "up"].map(|name| format!("{name}-{with_server}"));
        let (new, modern, up) = (new.as_str(), modern.as_str(), up.as_str());
        let one = &["generateminerid", "-n", modern, "--protocol", "1.0"][..];
        check(
            &site,
            &[
                (&["generateminerid", "--name", new], 0, "has the new miner id"),
                (&[one, &["--revocation-keystore", keys]].concat(), 0, "Its revocation key is"),
                (&["generateminerid", "--name", up], 0, "has the new miner id"),
                (&["upgrademinerid", "--name", up, "-f", "02"], 2, "invalid value"),
                (
                    &["upgrademinerid", "--name", up, "--revocation-keystore", keys],
                    0,
                    "is of protocol 1.0",
                ),
                (&["generatevctx", "--name", new], 1, "no node is configured"),
                (&["rotateminerid", "--name", new], 0, "now has the miner id"),
                (&["opreturn", "--name", modern, "--height", "1"], 0, "006a04601dface"),
                (&["rotateminerid", "--name", modern], 0, "now has the miner id"),
                (
                    &["rotateminerid", "--name", modern, "--force", "--yes"],
                    0,
                    "now has the miner id",
                ),
                (&["confirmminerid", "--yes", "--name", modern], 0, "counts as seen"),
                (
                    &["rotaterevocationkey", "--name", modern, "--revocation-keystore", keys],
                    0,
                    "now has the revocation key",
                ),
                (&["extensions", "--name", modern, extensions], 0, "change from now on"),
                (&["datarefs", "--name", modern, data], 0, "change from now on"),
                (&["getcurrentminerid", "-n", new], 0, "0"),
                (&["opreturn", "--name", "first", "--height", "1"], 0, "006a04ac1eed88"),
                (&["--height", "1", "--name", "first"], 0, "006a04ac1eed88"),
                (&["-t", "1", "-n", "first"], 0, "006a04ac1eed88"),
                (&["config", "--name", new, "email=ops@pool.example"], 0, "ops@pool.example"),
                (&["config", "--name", new], 0, "ops@pool.example"),
                (&["config", "check"], 0, "network"),
                (&["blindsigning", "--name", new, "off"], 0, "signs only documents"),
                (&["listminerids"], 0, new),
                (&["revokeminerid", "--yes", "--name", new], 1, "no node is configured"),
                (
                    &[
                        "revokemineridcompletely",
                        "--yes",
                        "--name",
                        modern,
                        "--revocation-keystore",
                        keys,
                    ],
                    1,
                    "no node is configured",
                ),
                (&["verifyminerid", "--height", "1"], 1, "no node is configured"),
                (&["scanminerids", "--from", "1"], 1, "no node is configured"),
            ],
        );
        drop(server);
    }
}

#[test]
fn former_names_of_the_wallet_do_the_same_as_the_new_commands() {
    let node = Node::start();
    node.mine(101);
    let site = Site::on(&node);
    let server = site.server();
    let invoice = site.cli_json(&["invoice", "create", "--satoshis", "5000"]);
    let url = invoice["paymentUrl"].as_str().unwrap();
    let words = site.cli_ok(&["wallet", "words", "--yes"]);
    check(
        &site,
        &[
            (&["balance"], 0, "0 satoshis\n"),
            (&["faucet", url], 0, "The faucet has paid to"),
            (&["balance", "--json"], 0, r#"{"satoshis":5000}"#),
            (&["payment", "list"], 0, "There is no payment"),
            (&["payment", "list", "--before", "7", "--json"], 0, "[]"),
            (&["payment", "cancel", "1"], 1, "there is no payment 1"),
            (&["payment", "cancel", "1", "--yes"], 1, "there is no payment 1"),
            (&["wallet", "backup-words", "--yes"], 0, &words),
            (&["wallet", "backup-words"], 1, "not confirmed"),
            (&["verifyminerid", "--height", "1"], 1, "no miner identity"),
            (
                &["scanminerids", "--from", "1", "--to", "2", "--restart"],
                0,
                "No miner has an identity",
            ),
        ],
    );
    drop(server);
}

/// A former name or the new command, for the same alias.
fn pick<'a>(is_former: bool, former: &[&'a str], current: &[&'a str]) -> Vec<&'a str> {
    [if is_former { former } else { current }, &["--yes"]].concat()
}

#[test]
fn revocations_reach_the_node_under_either_name() {
    let node = Node::start();
    node.mine(101);
    miner_info::fund(&node);
    let site = Site::on(&node);
    let server = site.server();
    for former in [true, false] {
        let alias = if former { "former" } else { "current" };
        site.cli_ok(&["miner", "create", "--name", alias, "--protocol", "1.0"]);
        announce(&node, &site, &server, alias);
        site.cli_ok(&["miner", "rotate", "--name", alias]);
        announce(&node, &site, &server, alias);
        let second = miner_id(&server, alias);
        let said = site.cli_ok(&pick(
            former,
            &["revokemineridpartially", "--name", alias, "--minerid", &second],
            &["miner", "revoke", "--name", alias, "--back-to", &second],
        ));
        assert!(said.contains(&format!("are revoked back to {second}")), "{said}");
        assert_ne!(miner_id(&server, alias), second);
        assert_eq!(miner_info::known(&node, &second)["minerIdState"], "REVOKED");
        announce(&node, &site, &server, alias);
        let third = miner_id(&server, alias);
        let said = site.cli_ok(&pick(
            former,
            &["revokemineridcompletely", "--name", alias],
            &["miner", "revoke", "--name", alias, "--all"],
        ));
        assert!(said.contains("All miner ids"), "{said}");
        assert_eq!(miner_info::known(&node, &third)["minerIdState"], "REVOKED");

        let old = &format!("{alias}-old");
        site.cli_ok(&["miner", "create", "--name", old]);
        let set_up = ["generatevctx", "--name", old];
        let vctx = ["miner", "vctx", "--name", old];
        let said = site.cli_ok(if former { &set_up[..] } else { &vctx });
        assert!(said.contains("is on the network"), "{said}");
        let shown: Value = site.cli_json(&["miner", "show", "--name", old]);
        let outpoint = shown["vctx"]["outpoint"].as_str().unwrap();
        let said = site.cli_ok(&pick(
            former,
            &["revokeminerid", "--name", old],
            &["miner", "revoke", "--name", old],
        ));
        assert!(said.contains(&format!("Its VCTx {outpoint} is spent")), "{said}");
    }
}

#[test]
fn in_a_terminal_former_names_ask_too() {
    let site = Site::new();
    site.cli_ok(&["generateminerid", "--name", "pool"]);
    let mut terminal = Terminal::start(&site, &["upgrademinerid", "--name", "pool"]);
    terminal.wait_for("Upgrade it? [y/N] ");
    terminal.type_in("n\r");
    assert_eq!(terminal.end().0, 1);
    assert_eq!(Terminal::start(&site, &["upgrademinerid", "--name", "pool", "--yes"]).end().0, 0);
}
