//! The look of results in a terminal, and for programs.

use bsv_tests::terminal::Terminal;
use bsv_tests::{Done, Node, Site};
use serde_json::json;

const ESCAPE: char = '\u{1b}';

fn site() -> Site {
    let site = Site::new();
    site.cli_ok(&["init"]);
    site
}

fn create(site: &Site, description: &str) {
    site.cli_ok(&["invoice", "create", "--satoshis", "1000", "--description", description]);
}

#[test]
fn tables_fit_a_terminal_and_are_not_cut_elsewhere() {
    let site = site();
    let words = "a long description of many words, ".repeat(10);
    create(&site, words.trim());
    site.cli_ok(&["miner", "create", "--name", "pool", "--protocol", "1.0"]);
    for arguments in [&["invoice", "list"][..], &["miner", "list"], &["audit", "list"]] {
        let piped = site.cli_ok(arguments);
        assert!(piped.chars().all(|c| c.is_ascii_graphic() || c == ' ' || c == '\n'), "{piped}");
        assert!(piped.lines().all(|line| line == line.trim_end()), "{piped:?}");
        let mut terminal = Terminal::start_of_width(&site, arguments, 90);
        let first_word = piped.split_whitespace().next().unwrap();
        terminal.wait_for(first_word);
        let (code, shown, _) = terminal.end();
        assert_eq!(code, 0);
        let widths = shown.lines().map(|line| without_colors(line).trim_end().chars().count());
        assert!(widths.clone().all(|width| width <= 90), "{shown}");
        assert!(shown.lines().count() >= piped.lines().count());
    }
    let listed = site.cli_ok(&["invoice", "list"]);
    assert_eq!(listed.lines().count(), 2);
    assert!(listed.contains(words.trim()));
}

fn without_colors(line: &str) -> String {
    let mut parts = line.split(ESCAPE);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once('m').map_or("", |(_, rest)| rest))
}

/// The output of a command in a terminal, and whether it is coloured.
fn is_colored_in_terminal(site: &Site, arguments: &[&str]) -> bool {
    let (_, shown, _) = Terminal::start(site, arguments).end();
    assert!(!shown.is_empty());
    is_colored(&shown)
}

/// Whether a text has an escape sequence with the end of those that set colours.
fn is_colored(text: &str) -> bool {
    text.split(ESCAPE).skip(1).any(|sequence| {
        sequence
            .find(|c: char| c.is_ascii_alphabetic())
            .is_some_and(|end| sequence[end..].starts_with('m'))
    })
}

#[test]
fn terminals_get_colours_unless_the_environment_forbids_them() {
    let mut site = site();
    create(&site, "coffee");
    site.set_env("TERM", "xterm-256color");
    let unknown = ["invoice", "get", "000000000000"];
    for arguments in [&["invoice", "list"][..], &["status"], &unknown] {
        let with = |option: &'static str| [arguments, &["--color", option]].concat();
        assert!(is_colored_in_terminal(&site, arguments), "{arguments:?}");
        assert!(!is_colored_in_terminal(&site, &with("never")), "{arguments:?}");
        let said = |arguments: &[&str]| {
            let Done { stdout, stderr, .. } = site.cli(arguments);
            stdout + &stderr
        };
        assert!(!is_colored(&said(arguments)), "{arguments:?}");
        assert!(is_colored(&said(&with("always"))), "{arguments:?}");
        assert!(!is_colored(&said(&[&with("always")[..], &["--json"]].concat())));
    }
    site.set_env("NO_COLOR", "1");
    assert!(!is_colored_in_terminal(&site, &["invoice", "list"]));
    assert!(!is_colored_in_terminal(&site, &unknown));
}

#[test]
fn quiet_prints_results_only_and_verbose_says_what_is_done() {
    let mut site = Site::new();
    let quiet = site.cli(&["init", "-q"]);
    assert_eq!(quiet.code, 0);
    assert!(!quiet.stdout.contains("bsv-server"), "{}", quiet.stdout);
    let token = ["token", "create", "--scope", "wallet:read", "--quiet"];
    let token = site.cli_ok(&token);
    assert!(token.starts_with("bsv_") && token.lines().count() == 1, "{token}");
    assert_eq!(site.cli(&["-q", "-v", "balance"]).code, 2);

    assert_eq!(site.cli(&["wallet", "balance"]).stderr, "");
    let verbose = site.cli(&["wallet", "balance", "-v"]);
    assert!(verbose.stderr.contains("WARN"), "{}", verbose.stderr);
    // The environment overrides the terminal.
    site.set_env("BSV_LOG", "off");
    assert_eq!(site.cli(&["wallet", "balance", "-vv"]).stderr, "");
}

#[test]
fn durations_are_shown_with_their_end() {
    let site = site();
    let micros = |text: &str| text.parse::<bsv_invoicing::Timestamp>().unwrap().as_micros();
    let cases = [("30m", 1800), ("24h", 86_400), ("7d", 604_800), ("90s", 90)];
    let create = ["invoice", "create", "--satoshis", "1"];
    let make = ["token", "create", "--scope", "wallet:read"];
    for (duration, seconds) in cases {
        for command in [&create[..], &make] {
            let before = bsv_invoicing::Timestamp::of_system().as_micros();
            let made = site.cli_json(&[command, &["--expires-in", duration]].concat());
            let after = bsv_invoicing::Timestamp::of_system().as_micros();
            let expires = micros(made["expiresAt"].as_str().unwrap()) - seconds * 1_000_000;
            assert!((before..=after).contains(&expires), "{command:?} {duration}: {made}");
        }
    }
    for wrong in ["", "7", "7w", "-1d", "1.5h", "0h", "tomorrow"] {
        let done = site.cli(&[&create[..], &["--expires-in", wrong]].concat());
        assert_eq!((done.code, done.stdout.as_str()), (2, ""), "{wrong}");
        assert!(done.stderr.contains("--expires-in"), "{}", done.stderr);
    }
    let both = ["--expires-in", "1h", "--expires-at", "2040-01-01T00:00:00Z"];
    assert_eq!(site.cli(&[&create[..], &both].concat()).code, 2);
}

#[test]
fn long_operations_show_progress() {
    let mut site = site();
    site.set_env("BSV_BACKUP_PASSPHRASE", "of the backup");
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name).display().to_string();
    let (first, second, third) = (file("1"), file("2"), file("3"));
    let mut terminal = Terminal::start(&site, &["backup", &first]);
    terminal.wait_for("sealing the backup");
    assert_eq!(terminal.end().0, 0);
    let (code, shown, _) = Terminal::start(&site, &["backup", &second, "--quiet"]).end();
    assert_eq!((code, shown.contains("sealing the backup")), (0, false), "{shown}");
    assert_eq!(site.cli(&["backup", &third]).stderr, "");
}

#[test]
fn reading_blocks_shows_their_heights_in_a_terminal_and_nothing_elsewhere() {
    let node = Node::start();
    node.mine(110);
    let site = Site::with(json!({
        "rpcHost": node.host, "rpcPort": node.port, "rpcUser": node.user, "rpcPassword": node.password,
    }));
    site.cli_ok(&["init"]);
    for with_server in [false, true] {
        let _server = with_server.then(|| site.server());
        for command in ["wallet rescan --from-height 0", "books verify --from-height 0"] {
            let arguments: Vec<_> = command.split(' ').collect();
            let mut terminal = Terminal::start_of_width(&site, &arguments, 80);
            terminal.wait_for(" of 110");
            assert_eq!(terminal.end().0, 0, "{command}");
            assert_eq!(site.cli(&arguments).stderr, "", "{command}");
        }
        let beyond = site.cli(&["wallet", "rescan", "--from-height", "111"]);
        assert!(
            beyond.stderr.contains("block 111 is beyond the node's last one, 110"),
            "{beyond:?}"
        );
    }
}

#[test]
fn foreign_texts_cannot_control_a_terminal() {
    let site = site();
    create(&site, "coffee \u{9b}31m \u{202e} tea");
    for arguments in [&["invoice", "list"][..], &["invoice", "list", "--json"]] {
        let (code, shown, _) =
            Terminal::start(&site, &[arguments, &["--color", "never"]].concat()).end();
        assert_eq!(code, 0);
        assert!(shown.contains("coffee") && !shown.contains(['\u{9b}', '\u{202e}']), "{shown:?}");
    }
    let list = site.cli_json(&["invoice", "list"]);
    assert_eq!(list[0]["description"], "coffee \u{9b}31m \u{202e} tea");
}

#[test]
fn in_a_terminal_rows_are_single_lines_and_elsewhere_whole() {
    let site = site();
    site.cli_ok(&["miner", "create", "pool", "--protocol", "1.0"]);
    create(&site, &"words ".repeat(30));
    let key = site.cli_ok(&["miner", "id", "pool"]);
    let shown = |arguments: &[&str]| Terminal::start_of_width(&site, arguments, 80).end().1;
    for arguments in [&["invoice", "list"][..], &["miner", "list"]] {
        let table = shown(&[arguments, &["--color", "never"]].concat());
        assert_eq!(table.lines().count(), 2, "{table}");
        assert!(table.contains('\u{2026}'), "{table}");
    }
    let invoice = site.cli_json(&["invoice", "list"])[0].take();
    let (id, exact) = (invoice["id"].as_str().unwrap(), invoice["expiresAt"].as_str().unwrap());
    for arguments in [&["invoice", "list"][..], &["invoice", "show", id]] {
        assert!(!shown(arguments).contains(exact), "{arguments:?}");
        assert!(shown(&[arguments, &["-v"]].concat()).contains(exact), "{arguments:?}");
    }
    let status = shown(&["status", "--color", "never"]);
    assert!(status.contains(&key[..8]) && !status.contains(&key), "{status}");
    for line in shown(&["event", "list"]).lines().filter(|line| !line.contains("words")) {
        assert!(line.chars().count() <= 80, "{line}");
    }
    for whole in [shown(&["miner", "list", "-v"]), site.cli_ok(&["miner", "list"])] {
        assert!(whole.contains(&key), "{whole}");
    }
    for arguments in [
        &["miner", "create", "other", "--protocol", "1.0"][..],
        &["miner", "show", "pool"],
        &["miner", "rotate", "pool"],
        &["invoice", "refund", id],
        &["wallet", "rescan", "--from-height", "1"],
    ] {
        let text = shown(&[arguments, &["--color", "never"]].concat());
        // A line of progress is written, erased and written over.
        let lines = text.split(['\r', '\n']).map(|line| line.trim_start_matches("\u{1b}[2K"));
        for line in lines {
            assert!(line.trim_end().chars().count() <= 80, "{line:?}");
        }
    }
}

#[test]
fn an_alias_needs_no_option_and_get_stands_for_show() {
    let site = site();
    site.cli_ok(&["miner", "create", "pool"]);
    let shown = site.cli_json(&["miner", "show", "pool"]);
    assert_eq!(shown, site.cli_json(&["miner", "show", "--name", "pool"]));
    assert_eq!(site.cli(&["miner", "show"]).code, 2);
    assert_eq!(site.cli(&["miner", "show", "pool", "--name", "pool"]).code, 2);
    assert_eq!(site.cli(&["miner", "show", "nobody"]).code, 1);
    site.cli_ok(&["miner", "create", "v1", "--protocol", "1.0"]);
    let file = site.data_dir().join("extensions.json");
    std::fs::write(&file, r#"{"x":1}"#).unwrap();
    let file = file.to_str().unwrap();
    for by_name in [&["--name", "v1"][..], &["v1"]] {
        let run = |verb: &'static str, more: &[&str]| {
            site.cli(&[&["miner", verb], by_name, more].concat())
        };
        assert_eq!(run("contact", &["name=My Pool"]).code, 0);
        assert_eq!(run("contact", &[]).stdout, "{\n  \"name\": \"My Pool\"\n}\n");
        assert_eq!(run("contact", &["--remove", "name"]).code, 0);
        assert_eq!(run("extensions", &[file]).code, 0);
        assert_eq!(run("blind-signing", &["off"]).code, 0);
        assert_eq!(run("contact", &["name=x", "v1"]).code, 2);
        assert_eq!(run("contact", &["name=x", "--remove", "y"]).code, 2);
    }
    for without in
        [&["contact"][..], &["contact", "a=1"], &["blind-signing", "off"], &["extensions", file]]
    {
        assert_eq!(site.cli(&[&["miner"], without].concat()).code, 2, "{without:?}");
    }
    let invoice = site.cli_json(&["invoice", "create", "--satoshis", "1"]);
    let id = invoice["id"].as_str().unwrap();
    let shown = ["show", "get"].map(|verb| site.cli_json(&["invoice", verb, id]));
    assert_eq!(shown[0], shown[1]);
    site.cli_ok(&["user", "create", "--name", "Ada"]);
    let shown = ["show", "get"].map(|verb| site.cli_json(&["user", verb, "1"]));
    assert_eq!(shown[0], shown[1]);
}

#[test]
fn a_terminal_shows_the_words_numbered_and_a_backup_names_what_is_there() {
    let mut site = site();
    let piped = site.cli_ok(&["wallet", "words", "--yes"]);
    assert_eq!(piped.split(' ').count(), 24);
    let (code, shown, _) = Terminal::start_of_width(&site, &["wallet", "words", "--yes"], 80).end();
    assert_eq!((code, shown.lines().count()), (0, 4), "{shown}");
    assert!(shown.starts_with(" 1 ") && shown.contains("24 "), "{shown}");
    site.set_env("BSV_BACKUP_PASSPHRASE", "of the backup");
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("b1").display().to_string();
    site.cli_ok(&["backup", &file]);
    let again = site.cli(&["backup", &file]);
    assert!(
        again.stderr.contains(&format!("cannot create {file}: it exists already")),
        "{again:?}"
    );
    let kept = site.cli_ok(&["backup", "--keep", "3", dir.path().to_str().unwrap()]);
    assert!(kept.contains("Kept 1 backup, the oldest is "), "{kept}");
}
