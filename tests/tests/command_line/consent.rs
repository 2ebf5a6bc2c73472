//! Irreversible commands need consent.

use std::process::Command;

use bsv_tests::payee::{go_dpp_terms, output};
use bsv_tests::terminal::Terminal;
use bsv_tests::{Node, Payee, Site};
use serde_json::{Value, json};

/// Sets up something that a command would end, and returns its name.
type Prepare = fn(&Site) -> String;

fn invoice(site: &Site) -> String {
    let invoice = site.cli_json(&["invoice", "create", "--satoshis", "1"]);
    invoice["id"].as_str().unwrap().to_owned()
}

fn token(site: &Site) -> String {
    let token = site.cli_json(&["token", "create", "--scope", "wallet:read"]);
    token["id"].as_str().unwrap().to_owned()
}

fn identity(site: &Site) -> String {
    let count = site.cli_json(&["miner", "list"]).as_array().unwrap().len();
    let alias = format!("a{count}");
    site.cli_ok(&["miner", "create", "--name", &alias]);
    alias
}

fn webhook(site: &Site) -> String {
    let webhook = site.cli_json(&["webhook", "create", "https://shop.example/hook"]);
    webhook["id"].as_str().unwrap().to_owned()
}

const CASES: [(&[&str], Prepare, &str); 5] = [
    (&["invoice", "delete"], invoice, "can then neither be paid"),
    (&["token", "revoke"], token, "are then refused"),
    (&["webhook", "delete"], webhook, "receives no more events"),
    (&["miner", "upgrade", "--name"], identity, "is then of protocol 1.0"),
    (&["wallet", "words"], |_| String::new(), "can take the money"),
];

fn arguments<'a>(command: &[&'a str], named: &'a str) -> Vec<&'a str> {
    let named = Some(named).filter(|named| !named.is_empty());
    command.iter().copied().chain(named).collect()
}

#[test]
fn outside_a_terminal_irreversible_commands_need_yes() {
    for with_server in [false, true] {
        let site = Site::new();
        site.cli_ok(&["init"]);
        let _server = with_server.then(|| site.server());
        for (command, prepare, _) in CASES {
            let named = prepare(&site);
            let arguments = arguments(command, &named);
            needs_yes(&site, &arguments);
            site.cli_ok(&[&arguments[..], &["--yes"]].concat());
        }
    }
}

/// Checks that a command does nothing without `--yes`.
fn needs_yes(site: &Site, arguments: &[&str]) {
    let refused = site.cli(arguments);
    assert_eq!((refused.code, refused.stdout.as_str()), (1, ""), "{arguments:?}");
    assert!(refused.stderr.contains("needs --yes"), "{}", refused.stderr);
    let refused = site.cli(&[arguments, &["--json"]].concat());
    let error: Value = serde_json::from_str(&refused.stderr).unwrap();
    assert_eq!(error["code"], "needs-yes");
}

#[test]
fn a_setting_stands_for_yes_outside_a_terminal_only() {
    let mut site = Site::new();
    site.set("cli", json!({ "assumeYes": true }));
    site.cli_ok(&["init"]);
    for (command, prepare, effect) in CASES {
        let named = prepare(&site);
        let arguments = arguments(command, &named);
        let mut terminal = Terminal::start(&site, &arguments);
        terminal.wait_for(effect);
        terminal.type_in("n\r");
        assert_eq!(terminal.end().0, 1, "{arguments:?}");
        let (code, shown, _) =
            Terminal::run(&without_errors(&site.cli_command(&arguments)), 0).end();
        assert_eq!((code, shown.as_str()), (1, ""), "{arguments:?}");
        site.cli_ok(&arguments);
    }
    site.cli_ok(&["miner", "create", "--name", "pool", "--protocol", "1.0"]);
    site.cli_ok(&["miner", "rotate", "--name", "pool", "--force"]);
}

/// The same command in a shell that sends its standard error elsewhere.
fn without_errors(command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", "exec \"$0\" \"$@\" 2>/dev/null"]);
    shell.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell
}

#[test]
fn every_command_takes_yes() {
    let site = Site::new();
    site.cli_ok(&["init", "--yes"]);
    for command in [&["miner", "list"][..], &["wallet", "balance"], &["config", "show"]] {
        site.cli_ok(&[command, &["--yes"]].concat());
    }
    assert_eq!(site.cli(&["miner", "vctx", "--name", "pool", "--yes"]).code, 1);
}

#[test]
fn in_a_terminal_a_command_shows_what_it_would_do_and_asks() {
    let site = Site::new();
    site.cli_ok(&["init"]);
    for (command, prepare, effect) in CASES {
        let named = prepare(&site);
        let arguments = arguments(command, &named);
        for (answer, code) in [("n\r", 1), ("\r", 1), ("y\r", 0)] {
            let mut terminal = Terminal::start(&site, &arguments);
            terminal.wait_for(effect);
            terminal.wait_for("? [y/N] ");
            terminal.type_in(answer);
            let (ended_with, shown, _) = terminal.end();
            assert_eq!(ended_with, code, "{arguments:?}, {answer:?}: {shown}");
            assert_eq!(shown.contains("not confirmed"), code == 1, "{shown}");
        }
    }
}

/// Any public key.
const KEY: &str = "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";

/// Commands for an identity of generation 1.0 that ask for its alias, their warning, and their
/// result after the alias is typed. There is no node.
const BY_ALIAS: [(&[&str], &str, &str); 8] = [
    (&["miner", "confirm"], "stops announcing its changes", "counts as seen"),
    (&["miner", "confirm"], "stops announcing its changes", "counts as seen"),
    (&["miner", "rotate", "--force"], "skipped for good", "now has the miner id"),
    (&["rotateminerid", "--force"], "skipped for good", "now has the miner id"),
    (&["miner", "revoke", "--all"], "ends the identity for good", "no node is configured"),
    (&["revokemineridcompletely"], "ends the identity for good", "no node is configured"),
    (
        &["revokemineridpartially", "--minerid", KEY],
        "revoked for good. The alias gets a new key",
        "no node is configured",
    ),
    (&["miner", "delete"], "cannot be used again", "is not closed: revoke it first"),
];

#[test]
fn commands_that_end_keys_ask_for_the_alias() {
    let site = Site::new();
    site.cli_ok(&["init"]);
    site.cli_ok(&["miner", "create", "--name", "pool", "--protocol", "1.0"]);
    for (command, effect, done) in BY_ALIAS {
        let arguments = [command, &["--name", "pool"]].concat();
        for (answer, goes_on) in
            [("\r", false), ("y\r", false), ("yes\r", false), ("poo\r", false), ("pool\r", true)]
        {
            let mut terminal = Terminal::start(&site, &arguments);
            terminal.wait_for(effect);
            terminal.wait_for("Type the alias to continue: ");
            terminal.type_in(answer);
            let (_, shown, _) = terminal.end();
            assert_eq!(shown.contains(done), goes_on, "{arguments:?}, {answer:?}: {shown}");
            assert_eq!(shown.contains("not confirmed"), !goes_on, "{arguments:?}: {shown}");
        }
        let by_yes = Terminal::start(&site, &[&arguments[..], &["--yes"]].concat()).end().1;
        assert!(by_yes.contains(done), "{arguments:?}: {by_yes}");
        let outside = site.cli(&arguments);
        assert_eq!((outside.code, outside.stdout.as_str()), (1, ""), "{arguments:?}");
        assert!(outside.stderr.contains("needs --yes"), "{arguments:?}: {}", outside.stderr);
    }
    site.cli_ok(&["miner", "create", "--name", "old"]);
    for command in [&["miner", "revoke"][..], &["miner", "revoke"]] {
        let outside = site.cli(&[command, &["--name", "old"]].concat());
        assert_eq!(outside.code, 1, "{command:?}");
        assert!(outside.stderr.contains("needs --yes"), "{command:?}: {}", outside.stderr);
    }
}

#[test]
fn paying_asks_in_a_terminal_and_never_exceeds_the_limit() {
    let node = Node::start();
    node.mine(101);
    let site = Site::on(&node);
    let server = site.server();
    let bill = site.cli_json(&["invoice", "create", "--satoshis", "50000"]);
    site.cli_ok(&["wallet", "faucet", bill["paymentUrl"].as_str().unwrap()]);
    let payee = Payee::asking(&go_dpp_terms(&[output(10_000)]));
    let url = payee.url();

    let preview = site.cli_json(&["pay", &url, "--dry-run"]);
    assert_eq!(preview["satoshis"], 10_000);
    let fee = preview["fee"].as_u64().unwrap();
    let said = site.cli_ok(&["pay", &url, "--dry-run"]);
    assert!(said.contains("asks for 10000 satoshis"), "{said}");
    let too_little = (10_000 + fee - 1).to_string();
    let refused = site.cli(&["pay", &url, "--max", &too_little, "--yes", "--json"]);
    let error: Value = serde_json::from_str(&refused.stderr).unwrap();
    assert_eq!((refused.code, &error["code"]), (1, &json!("over-limit")));
    let mut terminal = Terminal::start(&site, &["pay", &url]);
    terminal.wait_for("asks for 10000 satoshis");
    terminal.wait_for("Pay? [y/N] ");
    terminal.type_in("n\r");
    assert_eq!(terminal.end().0, 1);
    assert_eq!(site.cli_json(&["outgoing", "list"]), json!([]));
    assert!(payee.requests("POST").is_empty());

    let mut terminal = Terminal::start(&site, &["pay", &url, "--max", &(10_000 + fee).to_string()]);
    terminal.wait_for("Pay? [y/N] ");
    terminal.type_in("y\r");
    let (code, shown, _) = terminal.end();
    assert_eq!(code, 0, "{shown}");
    let said = site.cli_ok(&["pay", &url, "--dry-run"]);
    assert!(said.contains("is already settled"), "{said}");
    // There is no question for an earlier payment.
    assert_eq!(Terminal::start(&site, &["pay", &url]).end().0, 0);
    let [second, third] = [(); 2].map(|()| Payee::asking(&go_dpp_terms(&[output(1_000)])));
    needs_yes(&site, &["pay", &second.url()]);
    assert!(second.requests("POST").is_empty());
    site.cli_ok(&["pay", &second.url(), "--yes"]);
    assert_eq!(Terminal::start(&site, &["pay", "--yes", &third.url()]).end().0, 0);
    assert_eq!(site.cli_json(&["outgoing", "list"]).as_array().unwrap().len(), 3);
    drop(server);
}
