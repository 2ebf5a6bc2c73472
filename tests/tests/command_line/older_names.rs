//! The older generator's names of commands.

use bsv_tests::terminal::Terminal;
use bsv_tests::{Node, Server, Site, miner_info, vectors};
use serde_json::{Value, json};

/// An older name with its options, its exit code, and a part of its output.
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
fn older_names_do_the_same_as_the_commands() {
    let site = Site::new();
    let home = vectors::write_home(&vectors::minerid_0_2(), site.data_dir());
    let home = home.to_str().unwrap();
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
                    &["upgrademinerid", "--yes", "--name", up, "--revocation-keystore", keys],
                    0,
                    "is of protocol 1.0",
                ),
                (&["generatevctx", "--name", new], 1, "no node is configured"),
                (&["rotateminerid", "--name", new], 0, "now has the miner id"),
                (&["rotateminerid", "--name", modern], 0, "now has the miner id"),
                (
                    &["rotateminerid", "--name", modern, "--force", "--yes"],
                    0,
                    "now has the miner id",
                ),
                (&["miner", "confirm", "--yes", "--name", modern], 0, "counts as seen"),
                (
                    &["rotaterevocationkey", "--name", modern, "--revocation-keystore", keys],
                    0,
                    "now has the revocation key",
                ),
                (&["getcurrentminerid", "-n", new], 0, "0"),
                (&["--height", "1", "--name", "first"], 0, "006a04ac1eed88"),
                (&["-t", "1", "-n", "first"], 0, "006a04ac1eed88"),
                (&["config", "--name", new, "email=ops@pool.example"], 0, "ops@pool.example"),
                (&["config", "--name", new], 0, "ops@pool.example"),
                (&["config", "check"], 0, "network"),
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
            ],
        );
        drop(server);
    }
}

#[test]
fn their_help_says_what_they_stand_for() {
    let site = Site::new();
    for (name, command) in [
        ("generateminerid", "miner create"),
        ("generatevctx", "miner vctx"),
        ("rotateminerid", "miner rotate"),
        ("rotaterevocationkey", "miner revocation-key rotate"),
        ("revokemineridpartially", "miner revoke --back-to"),
        ("revokemineridcompletely", "miner revoke --all"),
        ("upgrademinerid", "miner upgrade"),
        ("getcurrentminerid", "miner id"),
        ("importminerid", "miner import"),
    ] {
        let help = site.cli_ok(&[name, "--help"]);
        let first = help.lines().next().unwrap();
        assert!(first.contains("older generator"), "{name}: {help}");
        assert!(first.contains(&format!("bsv-cli {command}")), "{name}: {help}");
    }
}

#[test]
fn no_other_name_stands_for_a_command() {
    let site = Site::new();
    for name in [
        "revokeminerid",
        "confirmminerid",
        "extensions",
        "datarefs",
        "opreturn",
        "blindsigning",
        "listminerids",
        "verifyminerid",
        "scanminerids",
        "balance",
        "payment",
        "faucet",
    ] {
        let done = site.cli(&[name]);
        assert_eq!(done.code, 2, "{name}: {done:?}");
        assert!(done.stderr.contains("unrecognized subcommand"), "{name}: {done:?}");
    }
    assert_eq!(site.cli(&["wallet", "backup-words", "--yes"]).code, 2);
}

/// An older name or the command for which it stands, for the same alias.
fn pick<'a>(is_older: bool, older: &[&'a str], current: &[&'a str]) -> Vec<&'a str> {
    [if is_older { older } else { current }, &["--yes"]].concat()
}

#[test]
fn revocations_reach_the_node_under_either_name() {
    let node = Node::start();
    node.mine(101);
    miner_info::fund(&node);
    let site = Site::on(&node);
    let server = site.server();
    for is_older in [true, false] {
        let alias = if is_older { "older" } else { "current" };
        site.cli_ok(&["miner", "create", "--name", alias, "--protocol", "1.0"]);
        announce(&node, &site, &server, alias);
        site.cli_ok(&["miner", "rotate", "--name", alias]);
        announce(&node, &site, &server, alias);
        let second = miner_id(&server, alias);
        let said = site.cli_ok(&pick(
            is_older,
            &["revokemineridpartially", "--name", alias, "--minerid", &second],
            &["miner", "revoke", "--name", alias, "--back-to", &second],
        ));
        assert!(said.contains(&format!("back to      {second}")), "{said}");
        assert_ne!(miner_id(&server, alias), second);
        assert_eq!(miner_info::known(&node, &second)["minerIdState"], "REVOKED");
        announce(&node, &site, &server, alias);
        let third = miner_id(&server, alias);
        let said = site.cli_ok(&pick(
            is_older,
            &["revokemineridcompletely", "--name", alias],
            &["miner", "revoke", "--name", alias, "--all"],
        ));
        assert!(said.contains("All miner ids"), "{said}");
        assert_eq!(miner_info::known(&node, &third)["minerIdState"], "REVOKED");

        let old = &format!("{alias}-old");
        site.cli_ok(&["miner", "create", "--name", old]);
        let set_up = ["generatevctx", "--name", old];
        let vctx = ["miner", "vctx", "--name", old];
        let said = site.cli_ok(if is_older { &set_up[..] } else { &vctx });
        assert!(said.contains("is on the network"), "{said}");
        let shown: Value = site.cli_json(&["miner", "show", "--name", old]);
        let outpoint = shown["vctx"]["outpoint"].as_str().unwrap();
        let said = site.cli_ok(&["miner", "revoke", "--name", old, "--yes"]);
        assert!(said.contains(&format!("VCTx         {outpoint}\nspent by     ")), "{said}");
    }
}

#[test]
fn in_a_terminal_older_names_ask_too() {
    let site = Site::new();
    site.cli_ok(&["generateminerid", "--name", "pool"]);
    let mut terminal = Terminal::start(&site, &["upgrademinerid", "--name", "pool"]);
    terminal.wait_for("Upgrade it? [y/N] ");
    terminal.type_in("n\r");
    assert_eq!(terminal.end().0, 1);
    assert_eq!(Terminal::start(&site, &["upgrademinerid", "--name", "pool", "--yes"]).end().0, 0);
}
