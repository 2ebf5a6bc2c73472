//! The commands of the wallet. They do the same with a server and without one.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};

use bsv_tests::{Done, Server, Site};
use serde_json::{Value, json};

/// A site, with a server or without one.
fn site(with_server: bool) -> (Site, Option<Server>) {
    let mut site = Site::with(json!({"payments": {"publicUrl": "https://pay.example.com/shop/"}}));
    site.set_env("BSV_LOG", "off");
    site.cli_ok(&["init"]);
    let server = with_server.then(|| site.server());
    (site, server)
}

fn done(site: &Site, arguments: &[&str]) -> (i32, String, String) {
    let Done { code, stdout, stderr } = site.cli(arguments);
    (code, stdout, stderr)
}

/// Checks that the command is refused with exactly this error.
fn check_refused(site: &Site, arguments: &[&str], complaint: &str) {
    let (code, stdout, stderr) = done(site, arguments);
    let told = (code, stdout.as_str(), stderr.lines().next());
    assert_eq!(told, (1, "", Some(&*format!("bsv-cli: {complaint}"))), "{arguments:?}");
}

fn text_of<'a>(value: &'a Value, member: &str) -> &'a str {
    value[member].as_str().unwrap()
}

const CREATE: [&str; 4] = ["invoice", "create", "--satoshis", "1000"];

#[test]
fn invoices_are_created_shown_and_deleted() {
    for with_server in [false, true] {
        let (site, server) = site(with_server);
        let said = site.cli_ok(&["invoice", "list"]);
        assert_eq!(said, "There is no such invoice");
        assert_eq!(site.cli_ok(&["invoice", "list", "--json"]), "[]");

        let full = ["--description", "coffee & cake", "--reference", "7/2026"];
        let until = ["--expires-at", "2040-01-01T12:00:00+01:00"];
        let created = site.cli_ok(&[&CREATE[..], &full, &until].concat());
        let first_line = created.lines().next().unwrap();
        let id = first_line.split(' ').nth(1).unwrap();
        let listed = site.cli_json(&["invoice", "list"]);
        let created_at = text_of(&listed[0], "createdAt");
        let text = |sums: &str| {
            format!(
                "Invoice {id} of 1000 satoshis, pending\n\
                 description  coffee & cake\n\
                 reference    7/2026\n\
                 created      {created_at}\n\
                 expires      2040-01-01T11:00:00.000000Z\n\
                 {sums}pay to       https://pay.example.com/shop/dpp/api/v1/payment/{id}\n\
                 page         https://pay.example.com/shop/pay/{id}"
            )
        };
        assert_eq!(created, text(""));
        let shown = text("received     0\nnext         wait for the payment\n");
        assert_eq!(site.cli_ok(&["invoice", "show", id]), shown);

        let json = site.cli_ok(&["invoice", "get", id, "--json"]);
        let expected = format!(
            "{{\"id\":\"{id}\",\"reference\":\"7/2026\",\"description\":\"coffee & cake\",\
             \"satoshis\":1000,\"expiresAt\":\"2040-01-01T11:00:00.000000Z\",\
             \"paymentReceivedAt\":null,\"refundTo\":null,\"refundedAt\":null,\
             \"state\":\"pending\",\"createdAt\":\"{created_at}\",\
             \"updatedAt\":\"{}Z\",\"deletedAt\":null,\
             \"paymentUrl\":\"https://pay.example.com/shop/dpp/api/v1/payment/{id}\",\
             \"pageUrl\":\"https://pay.example.com/shop/pay/{id}\",\
             \"receivedSatoshis\":0,\"next\":\"wait for the payment\"}}",
            &created_at[..19]
        );
        assert_eq!(json, expected);
        if let Some(server) = &server {
            let reply = server.wallet().get(&format!("/api/v1/invoices/{id}"));
            assert_eq!(reply.status, 200);
            let members = reply.body.strip_suffix('}').unwrap();
            assert!(json.starts_with(&format!("{members},\"paymentUrl\":")), "{json}");
        }

        let least = site.cli_json(&CREATE);
        let least_id = text_of(&least, "id");
        assert_eq!((&least["description"], &least["reference"]), (&Value::Null, &Value::Null));
        let url = format!("https://pay.example.com/shop/dpp/api/v1/payment/{least_id}");
        assert_eq!(least["paymentUrl"], url);
        let shown = site.cli_ok(&["invoice", "show", least_id]);
        assert_eq!(shown.lines().count(), 7, "{shown}");

        let deleted = format!("{}\n", json!({"deleted": id}));
        assert_eq!(
            done(&site, &["invoice", "delete", "--yes", id, "--json"]),
            (0, deleted, String::new())
        );
        let unknown = format!("there is no invoice {id}");
        check_refused(&site, &["invoice", "get", id], &unknown);
        check_refused(&site, &["invoice", "delete", "--yes", id], &unknown);
        assert_eq!(
            site.cli_ok(&["invoice", "delete", "--yes", least_id]),
            format!("Invoice {least_id} is deleted")
        );
        assert_eq!(site.cli_json(&["invoice", "list"]), json!([]));
    }
}

#[test]
fn users_are_created_and_shown() {
    for with_server in [false, true] {
        let (site, _server) = site(with_server);
        let full = [
            "user",
            "create",
            "--name",
            "Ann É.",
            "--email",
            "ann@example.com",
            "--avatar",
            "https://x/a.png",
            "--address",
            "1 Main St\nTown",
            "--phone-number",
            "+1 555",
        ];
        let created = site.cli_ok(&full);
        let json = site.cli_ok(&["user", "get", "1", "--json"]);
        let user: Value = serde_json::from_str(&json).unwrap();
        let pki = text_of(&user["extendedData"], "pki");
        assert_eq!(
            created,
            format!(
                "User 1\nname         Ann É.\nemail        ann@example.com\n\
                 avatar       https://x/a.png\naddress      1 Main St\\nTown\n\
                 phone number +1 555\npublic key   {pki}"
            )
        );
        assert_eq!(
            json,
            format!(
                "{{\"id\":1,\"name\":\"Ann É.\",\"email\":\"ann@example.com\",\
                 \"avatar\":\"https://x/a.png\",\"address\":\"1 Main St\\nTown\",\
                 \"phoneNumber\":\"+1 555\",\"extendedData\":{{\"pki\":\"{pki}\"}}}}"
            )
        );
        assert_eq!(site.cli_ok(&["user", "get", "1"]), created);
        let least = site.cli_json(&["user", "create", "--name", "Bob"]);
        assert_eq!((&least["id"], &least["email"]), (&json!(2), &json!("")));
        assert_eq!(site.cli_ok(&["user", "get", "2"]).lines().count(), 3);
        for id in ["0", "3", "18446744073709551615"] {
            check_refused(&site, &["user", "get", id], &format!("there is no user {id}"));
        }
    }
}

#[test]
fn the_balance_is_shown() {
    for with_server in [false, true] {
        let (site, _server) = site(with_server);
        assert_eq!(site.cli_ok(&["wallet", "balance"]), "0 satoshis");
        assert_eq!(site.cli_ok(&["wallet", "balance", "--json"]), r#"{"satoshis":0}"#);
    }
}

#[test]
fn all_reasons_of_a_refusal_are_shown() {
    for with_server in [false, true] {
        let (site, _server) = site(with_server);
        let long = "x".repeat(1025);
        let past = ["--expires-at", "2020-01-01T00:00:00Z"];
        check_refused(&site, &[&CREATE[..], &past].concat(), "expiresAt must be in the future");
        check_refused(
            &site,
            &[&CREATE[..], &["--description", &long, "--reference", &long], &past].concat(),
            "description must have at most 1024 characters, expiresAt must be in the future, \
             reference must have at most 128 characters",
        );
        check_refused(
            &site,
            &["user", "create", "--name", "", "--email", "x"],
            "email must have one @, with something on both sides, name must not be empty",
        );
        check_refused(
            &site,
            &["invoice", "get", "000000000000"],
            "there is no invoice 000000000000",
        );
        assert_eq!(site.cli_json(&["invoice", "list"]), json!([]));
    }
}

#[test]
fn wrong_usage_ends_with_2_and_does_nothing() {
    let site = Site::new();
    for arguments in [
        &["invoice"][..],
        &["invoice", "create"],
        &["invoice", "create", "--satoshis"],
        &["invoice", "create", "--satoshis", "0"],
        &["invoice", "create", "--satoshis", "-1"],
        &["invoice", "create", "--satoshis", "1.0"],
        &["invoice", "create", "--satoshis", "1e3"],
        &["invoice", "create", "--satoshis", "2100000000000001"],
        &["invoice", "create", "--satoshis", "18446744073709551616"],
        &["invoice", "create", "--satoshis", "1", "--satoshis", "1"],
        &["invoice", "create", "1"],
        &["invoice", "create", "--satoshis", "1", "--expires-at", "tomorrow"],
        &["invoice", "create", "--satoshis", "1", "--expires-at", "2040-01-01T00:00:00"],
        &["invoice", "create", "--satoshis", "1", "--expires-at", ""],
        &["invoice", "get"],
        &["invoice", "get", ""],
        &["invoice", "get", "x"],
        &["invoice", "get", "../../balance"],
        &["invoice", "get", "aaaaaaaaaaaé"],
        &["invoice", "get", "aaaaaaaaaaaaa"],
        &["invoice", "get", "aaaaaaaaaaaa", "aaaaaaaaaaaa"],
        &["invoice", "delete"],
        &["invoice", "delete", "x"],
        &["invoice", "list", "x"],
        &["invoice", "list", "--state", "open"],
        &["invoice", "list", "--state", "Pending"],
        &["invoice", "list", "--limit", "0"],
        &["invoice", "list", "--limit", "-1"],
        &["invoice", "list", "--limit", "x"],
        &["invoice", "frobnicate"],
        &["user"],
        &["user", "create"],
        &["user", "create", "me"],
        &["user", "get"],
        &["user", "get", "x"],
        &["user", "get", "-1"],
        &["user", "get", "18446744073709551616"],
        &["wallet", "balance", "x"],
        &["wallet"],
        &["wallet", "words", "x"],
        &["wallet", "words", "--no"],
    ] {
        let (code, stdout, stderr) = done(&site, arguments);
        assert_eq!((code, stdout.as_str()), (2, ""), "{arguments:?}");
        assert_ne!(stderr, "", "{arguments:?}");
    }
    assert!(!site.network_dir().exists());
}

/// Creates invoices with these amounts over the server, and returns their ids in this order.
fn create(server: &Server, amounts: impl Iterator<Item = usize>) -> Vec<String> {
    let create = |amount| {
        let body = format!("{{\"satoshis\":{amount}}}");
        let reply = server.wallet().post("/api/v1/invoices", body);
        let invoice: Value = serde_json::from_str(&reply.body).unwrap();
        text_of(&invoice, "id").to_owned()
    };
    amounts.map(create).collect()
}

#[test]
fn a_list_of_any_length_is_printed() {
    let (site, server) = site(true);
    let server = server.unwrap();
    let ids = create(&server, 1..=2345);
    let newest_first: Vec<_> = ids.iter().rev().cloned().collect();
    let check = || {
        for (arguments, listed) in [
            (&[][..], &newest_first[..]),
            (&["--oldest-first"], &ids),
            (&["--state", "pending"], &newest_first),
            (&["--state", "pending", "--oldest-first", "--limit", "2001"], &ids[..2001]),
            (&["--limit", "1"], &newest_first[..1]),
            (&["--limit", "999"], &newest_first[..999]),
            (&["--limit", "1000"], &newest_first[..1000]),
            (&["--limit", "1001"], &newest_first[..1001]),
            (&["--limit", "2345"], &newest_first),
            (&["--limit", "2346"], &newest_first),
            (&["--limit", "18446744073709551615"], &newest_first),
            (&["--state", "paid"], &[]),
            (&["--state", "expired", "--limit", "5"], &[]),
        ] {
            let command = [&["invoice", "list"], arguments].concat();
            let list = site.cli_json(&command);
            let list: Vec<_> = list.as_array().unwrap().iter().map(|i| text_of(i, "id")).collect();
            assert!(list == listed, "{command:?}: {} invoices", list.len());

            let table = site.cli_ok(&command);
            if listed.is_empty() {
                assert_eq!(table, "There is no such invoice");
                continue;
            }
            let mut lines = table.lines();
            let header: Vec<_> = lines.next().unwrap().split_whitespace().collect();
            assert_eq!(header[..4], ["id", "state", "satoshis", "expires"]);
            let rows: Vec<_> = lines.map(|line| line.split(' ').next().unwrap()).collect();
            assert!(rows == listed, "{command:?}: {} lines", rows.len());
        }
    };
    check();
    assert_eq!(server.stop(), 0);
    check();
    let text = site.cli_ok(&["invoice", "list", "--json"]);
    assert!(text.starts_with("[\n{\"id\":\"") && text.ends_with("}\n]"));
    assert_eq!(text.lines().count(), 2347, "one invoice per line");
}

#[test]
fn control_characters_do_not_reach_the_terminal() {
    let controls = "\u{1b}[2Jred\u{1b}]0;title\u{7}\r\n\tx\u{8}\u{7f}\u{80}\u{9b}31m";
    let shown = "\\u{1b}[2Jred\\u{1b}]0;title\\u{7}\\r\\n\\tx\\u{8}\\u{7f}\\u{80}\\u{9b}31m";
    for with_server in [false, true] {
        let (site, _server) = site(with_server);
        let texts = ["--description", controls, "--reference", controls];
        let created = site.cli_ok(&[&CREATE[..], &texts].concat());
        let list = site.cli_ok(&["invoice", "list"]);
        let user = site.cli_ok(&["user", "create", "--name", controls, "--address", controls]);
        for text in [&created, &list, &user] {
            let is_clean = text.chars().all(|c| c == '\n' || !c.is_control());
            assert!(is_clean && text.matches(shown).count() == 2, "{text:?}");
        }
        assert_eq!(list.lines().count(), 2);
        let invoice = &site.cli_json(&["invoice", "list"])[0];
        assert_eq!(
            (&invoice["description"], &invoice["reference"]),
            (&json!(controls), &json!(controls))
        );
        let json = site.cli_ok(&["invoice", "list", "--json"]);
        assert!(!json.contains(['\u{1b}', '\u{7}', '\r']), "{json:?}");
    }
}

const REFUSAL: &str = "bsv-cli: nothing was printed: outside a terminal, this needs --yes or the setting cli.assumeYes\n";

/// `wallet words` with this on its standard input.
fn words_with(site: &Site, input: &[u8]) -> (i32, String, String) {
    let mut command = site.cli_command(&["wallet", "words"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // The program may end without reading everything.
    let _ = child.stdin.take().unwrap().write_all(input);
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn the_words_are_printed_only_after_a_clear_yes() {
    let (site, server) = site(true);
    let words = site.cli_ok(&["wallet", "words", "--yes"]);
    assert_eq!(words.split(' ').count(), 24);
    assert!(words.chars().all(|c| c == ' ' || c.is_ascii_lowercase()), "not words");
    let check = || {
        // Only a terminal is asked.
        for input in [&b"y\n"[..], b"yes\n", b"y\nno\n", b"n\n", b"", b"\xff\n"] {
            let (code, stdout, stderr) = words_with(&site, input);
            assert_eq!((code, stdout.as_str()), (1, ""), "{input:?}");
            assert_eq!(stderr, REFUSAL, "{input:?}");
        }
        assert_eq!(done(&site, &["wallet", "words"]).0, 1);

        let yes = ["wallet", "words", "--yes"];
        assert_eq!(done(&site, &yes), (0, format!("{words}\n"), String::new()));
        assert_eq!(site.cli_json(&yes), json!({"words": words}));
    };
    check();
    assert_eq!(server.unwrap().stop(), 0);
    check();
    let another = Site::new();
    another.cli_ok(&["init"]);
    let of_another_wallet = another.cli_ok(&["wallet", "words", "--yes"]);
    assert_ne!(of_another_wallet, words);
}

#[test]
fn a_closed_output_is_no_error() {
    let (site, server) = site(true);
    let id = create(server.as_ref().unwrap(), 1..=1500).remove(0);
    site.cli_ok(&["user", "create", "--name", "me"]);
    let check = || {
        for arguments in [
            &["invoice", "list"][..],
            &["invoice", "list", "--json"],
            &["invoice", "list", "--state", "paid"],
            &["invoice", "get", &id],
            &["user", "get", "1"],
            &["wallet", "balance"],
            &["wallet", "words", "--yes"],
        ] {
            let (reader, writer) = io::pipe().unwrap();
            drop(reader);
            let mut command = site.cli_command(arguments);
            let output = command.stdout(writer).stderr(Stdio::piped()).output().unwrap();
            let complaint = String::from_utf8(output.stderr).unwrap();
            assert_eq!((output.status.code(), &*complaint), (Some(0), ""), "{arguments:?}");
        }
        let mut command: Command = site.cli_command(&["invoice", "list", "--json"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        assert_eq!(line, "[\n");
        drop(lines);
        let mut complaint = String::new();
        child.stderr.take().unwrap().read_to_string(&mut complaint).unwrap();
        assert_eq!((child.wait().unwrap().code(), complaint.as_str()), (Some(0), ""));
    };
    check();
    drop(server);
    check();
}
