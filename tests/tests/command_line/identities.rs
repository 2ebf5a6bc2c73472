//! The commands for identities, many under the names of the older generator. They do the same with a server and
//! without one.

use std::fs::{self, File};
use std::io::{self, Write};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use bsv_tests::build::cli_program;
use bsv_tests::{Done, Server, Site, vectors};
use serde_json::{Value, json};

/// A site with the recorded identities.
pub(crate) fn golden() -> Site {
    let site = Site::new();
    let home = vectors::write_home(&vectors::minerid_0_2(), site.data_dir());
    site.cli_ok(&["importminerid", "--from", home.to_str().unwrap()]);
    site
}

/// The text with every key replaced, because keys differ in each run.
fn without_keys(text: &str) -> String {
    let is_hex = |c: char| c.is_ascii_hexdigit();
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(is_hex) {
        let len = rest[start..].find(|c| !is_hex(c)).unwrap_or(rest.len() - start);
        out.push_str(&rest[..start]);
        let word = &rest[start..start + len];
        out.push_str(if len >= 66 { "KEY" } else { word });
        rest = &rest[start + len..];
    }
    out + rest
}

/// Checks the output of a command on one of its streams.
fn check(done: &Done, code: i32, text: &str, what: &[&str]) {
    let (said, silent) =
        if code == 0 { (&done.stdout, &done.stderr) } else { (&done.stderr, &done.stdout) };
    assert_eq!((done.code, silent.as_str()), (code, ""), "{what:?}: {}", done.stderr);
    assert_eq!(without_keys(said), text, "{what:?}");
}

#[test]
fn setting_up_reads_the_same_with_a_server_and_without_one() {
    let identity = |alias: &str, keys: &str, contact: &str| {
        format!(
            "{{\"alias\":\"{alias}\",\"announced\":[],\"blindSigning\":true,\"exposure\":\"kept\",\
             \"minerContact\":{contact},\"minerId\":\"KEY\",\"minerIds\":[{keys}],\"protocol\":\"0.2\",\
             \"seenIn\":[],\"stale\":false,\"vctx\":{{\"state\":\"none\"}}}}"
        )
    };
    let one_key = "\"KEY\"";
    let fresh = identity("b", one_key, "{}") + "\n";
    let whole = identity("a", "\"KEY\",\"KEY\"", r#"{"k":"v"}"#);
    let rotated = identity("b", "\"KEY\",\"KEY\"", "{}");
    let list = format!("[{whole},{rotated}]\n");
    let no_node = "bsv-cli: no node is configured: set rpcUser and rpcPassword, or rpcCookieFile\n";
    let no_vctx = "bsv-cli: Alias \"a\" has no VCTx, run generatevctx\n\
                   hint: set it up with bsv-cli miner vctx\n";
    let unknown = "bsv-cli: Alias \"x\" doesn't exist\n\
                   hint: list the identities with bsv-cli miner list\n";
    let exists = "bsv-cli: alias \"a\" exists already\n";
    let exists_json =
        "{\"code\":\"alias-exists\",\"message\":\"alias \\\"a\\\" exists already\"}\n";
    let no_vctx_json = "{\"code\":\"no-vctx\",\"hint\":\"set it up with bsv-cli miner vctx\",\"message\":\"Alias \\\"a\\\" has no VCTx, run generatevctx\"}\n";
    let session: &[(&[&str], i32, &str)] = &[
        (&["miner", "list"], 0, "There is no identity: make one with miner create\n"),
        (&["miner", "list", "--json"], 0, "[]\n"),
        (&["generateminerid", "--name", "a"], 0, "Alias \"a\" has the new miner id\n  KEY\n"),
        (&["generateminerid", "--name", "b", "--json"], 0, &fresh),
        (&["generateminerid", "--name", "a"], 1, exists),
        (&["generateminerid", "--name", "a", "--json"], 1, exists_json),
        (&["getcurrentminerid", "--name", "a"], 0, "KEY\n"),
        (&["getcurrentminerid", "-n", "a", "--json"], 0, "{\"alias\":\"a\",\"minerId\":\"KEY\"}\n"),
        (
            &["rotateminerid", "--name", "a"],
            0,
            "Alias \"a\" now has the miner id\n  KEY\n\
             The identity's next block announces the rotation. Earlier backups lack the new key.\n",
        ),
        (&["rotateminerid", "--name", "b", "--json"], 0, &(rotated.clone() + "\n")),
        (&["config", "--name", "a"], 0, "{}\n"),
        (&["config", "--name", "a", "k=v"], 0, "{\n  \"k\": \"v\"\n}\n"),
        (&["config", "--name", "a", "--json"], 0, "{\"k\":\"v\"}\n"),
        (&["miner", "script", "--name", "a", "--height", "1"], 1, no_vctx),
        (&["--height", "1", "--name", "a", "--json"], 1, no_vctx_json),
        (&["generatevctx", "--name", "a"], 1, no_node),
        (&["generatevctx", "--name", "x"], 1, no_node),
        (&["generateminerid", "--name", ".x"], 2, ""),
        (&["rotateminerid", "--name", "x"], 1, unknown),
        (&["getcurrentminerid", "--name", "x"], 1, unknown),
        (&["miner", "script", "--name", "x", "--height", "1"], 1, unknown),
        (&["config", "--name", "x", "k=v"], 1, unknown),
        (&["config", "--name", "x"], 1, unknown),
        (&["miner", "list", "--json"], 0, &list),
    ];
    for with_server in [false, true] {
        let site = Site::new();
        site.cli_ok(&["init"]);
        let server = with_server.then(|| site.server());
        for (arguments, code, text) in session {
            let done = site.cli(arguments);
            if *code == 2 {
                assert_eq!((done.code, done.stdout.as_str()), (2, ""), "{arguments:?}");
            } else {
                check(&done, *code, text, arguments);
            }
        }
        let table = site.cli_ok(&["miner", "list"]);
        for word in ["alias", "protocol", "miner id", "keys", "VCTx", "0.2", " 2 ", "none"] {
            assert!(table.contains(word), "{word}: {table}");
        }
        if let Some(server) = server {
            let listed = site.cli_json(&["miner", "list"]);
            for identity in listed.as_array().unwrap() {
                let alias = identity["alias"].as_str().unwrap();
                let key = identity["minerId"].as_str().unwrap();
                assert_eq!(server.text(&format!("/minerid/{alias}")), key);
                assert_eq!(site.cli_ok(&["getcurrentminerid", "-n", alias]), key);
            }
            assert_eq!(server.stop(), 0);
            assert_eq!(site.cli_json(&["miner", "list"]), listed);
        }
    }
}

#[test]
fn output_scripts_are_printed_for_people_and_for_programs() {
    let site = golden();
    let vectors = vectors::minerid_0_2();
    let case = vectors["cases"]
        .as_array()
        .unwrap()
        .iter()
        .find(|case| case["request"]["path"] == "/opreturn/first/1")
        .unwrap();
    let script = case["response"].as_str().unwrap();
    let check = || {
        for arguments in [
            &["miner", "script", "--name", "first", "--height", "1"][..],
            &["miner", "script", "-t", "1", "-n", "first"],
            &["miner", "script", "-n=first", "-t=1"],
            &["--height", "1", "--name", "first"],
            &["-n", "first", "-t", "1"],
        ] {
            assert_eq!(site.cli_ok(arguments), script, "{arguments:?}");
            let object = json!({"alias": "first", "height": 1, "script": script});
            assert_eq!(site.cli_json(arguments), object, "{arguments:?}");
        }
        let listed = site.cli_json(&["miner", "list"]);
        let first = &listed.as_array().unwrap()[1];
        assert_eq!(first["alias"], "first");
        assert_eq!(first["vctx"]["state"], "notSeen");
        let outpoint = first["vctx"]["outpoint"].as_str().unwrap();
        assert!(site.cli_ok(&["miner", "list"]).contains(outpoint));
    };
    check();
    let server = site.server();
    check();
    drop(server);
}

#[test]
fn contact_data_enters_documents_escaped() {
    let site = golden();
    let pairs = [
        ("url=https://pool.example/?a=b&c==", r#""url":"https://pool.example/?a=b&c==""#),
        ("empty=", r#""empty":"""#),
        ("quotes=\"\\/'", r#""quotes":"\"\\/'""#),
        (
            "controls=\u{8}\t\n\u{c}\r\u{1}\u{1f}\u{7f}\u{80}",
            "\"controls\":\"\\b\\t\\n\\f\\r\\u0001\\u001f\\u007f\u{80}\"",
        ),
        ("name=Müller 😀 \u{2028}", "\"name\":\"Müller 😀 \u{2028}\""),
        ("schlüssel \"x\"=1", r#""schlüssel \"x\"":"1""#),
        ("{}=null", r#""{}":"null""#),
    ];
    let check = |alias: &str, server: Option<&Server>| {
        let arguments: Vec<_> = ["config", "--name", alias]
            .into_iter()
            .chain(pairs.iter().map(|(pair, _)| *pair))
            .collect();
        let set: Value = serde_json::from_str(&site.cli_ok(&arguments)).unwrap();
        assert_eq!(site.cli_json(&["config", "--name", alias]), set);
        for (pair, _) in pairs {
            let (key, value) = pair.split_once('=').unwrap();
            assert_eq!(set[key], value);
        }
        let mut scripts = vec![site.cli_ok(&["miner", "script", "-n", alias, "-t", "9"])];
        scripts.extend(server.map(|server| server.text(&format!("/opreturn/{alias}/9"))));
        for script in scripts {
            for (_, spelled) in pairs {
                assert!(script.contains(&hex::encode(spelled)), "{spelled}");
            }
        }
    };
    check("first", None);
    let server = site.server();
    check("rot", Some(&server));

    let order = |text: &str| {
        let script = site.cli_ok(&["miner", "script", "-n", "nl", "-t", "9"]);
        assert!(script.contains(&hex::encode(format!("\"minerContact\":{text}}}"))), "{text}");
    };
    site.cli_ok(&["config", "-n", "nl", "z=1"]);
    site.cli_ok(&["config", "-n", "nl", "a=1"]);
    order(r#"{"z":"1","a":"1"}"#);
    site.cli_ok(&["config", "-n", "nl", "z=2"]);
    order(r#"{"z":"2","a":"1"}"#);
}

#[test]
fn pairs_of_one_command_enter_documents_in_their_order() {
    let site = golden();
    for alias in ["first", "nl"] {
        site.cli_ok(&["config", "-n", alias, "z=1", "b=2", "a=3", "b=4"]);
        let script = site.cli_ok(&["miner", "script", "-n", alias, "-t", "9"]);
        let contact = r#""minerContact":{"z":"1","b":"4","a":"3"}}"#;
        assert!(script.contains(&hex::encode(contact)), "{alias}");
    }
}

#[test]
fn removed_contact_data_leaves_the_documents() {
    let site = golden();
    site.cli_ok(&["miner", "create", "--name", "modern", "--protocol", "1.0"]);
    let contact = |alias: &str| site.cli_json(&["miner", "contact", "--name", alias]);
    for alias in ["first", "modern"] {
        let run = |arguments: &[&str]| {
            site.cli(&[&["miner", "contact", "--name", alias], arguments].concat())
        };
        let document = || {
            let script = site.cli_ok(&["miner", "script", "-n", alias, "-t", "9"]);
            String::from_utf8_lossy(&hex::decode(script).unwrap()).into_owned()
        };
        assert_eq!(run(&["a=1", "b=2", "c=3", "d=4"]).code, 0);
        assert_eq!(run(&["--remove", "b"]).code, 0);
        assert!(document().contains(r#""minerContact":{"a":"1","c":"3","d":"4"}"#));
        let unknown = run(&["--remove", "a", "--remove", "b"]);
        assert_eq!((unknown.code, unknown.stdout.as_str()), (1, ""));
        assert!(unknown.stderr.contains("minerContact has no key \"b\""), "{}", unknown.stderr);
        assert_eq!(contact(alias), json!({ "a": "1", "c": "3", "d": "4" }));
        assert_eq!(run(&["--remove", "a", "--remove", "c", "--remove", "d"]).stdout, "{}\n");
        assert!(!document().contains("minerContact"), "{}", document());
        assert_eq!(run(&["--remove", "a", "e=5"]).code, 2);
        assert_eq!(contact(alias), json!({}));
    }
}

#[test]
fn wrong_usage_ends_with_2_and_does_nothing() {
    let site = Site::new();
    let long = "a".repeat(65);
    let txid = "00".repeat(32);
    for arguments in [
        &[][..],
        &["frobnicate"],
        &["generateminerid"],
        &["generateminerid", "pool", "other"],
        &["generateminerid", "pool", "--name", "other"],
        &["generateminerid", "--name"],
        &["generateminerid", "--name", "../x"],
        &["generateminerid", "--name", ""],
        &["generateminerid", "--name", ".x"],
        &["generateminerid", "--name", "a/b"],
        &["generateminerid", "--name", "a b"],
        &["generateminerid", "--name", "é"],
        &["generateminerid", "--name", "a\n"],
        &["generateminerid", "--name", &long],
        &["generateminerid", "--name", "a", "--name", "b"],
        &["generateminerid", "--name", "a", "--protocol"],
        &["generateminerid", "--name", "a", "--height", "1"],
        &["generatevctx"],
        &["generatevctx", "--name", "a", "--outpoint", "x"],
        &["generatevctx", "--name", "a", "--outpoint", &txid],
        &["generatevctx", "--name", "a", "--outpoint", &format!("{txid}:-1")],
        &["generatevctx", "--name", "a", "--outpoint", &format!("{txid}:4294967296")],
        &["rotateminerid"],
        &["getcurrentminerid"],
        &["getcurrentminerid", "--name", ".."],
        &["miner", "script"],
        &["miner", "script", "--name", "a"],
        &["miner", "script", "--height", "1"],
        &["miner", "script", "--name", "a", "--height", "0"],
        &["miner", "script", "--name", "a", "--height", "-1"],
        &["miner", "script", "--name", "a", "--height", "1.5"],
        &["miner", "script", "--name", "a", "--height", "x"],
        &["miner", "script", "--name", "a", "--height", "2147483648"],
        &["--name", "a"],
        &["--height", "1"],
        &["--height", "0", "--name", "a"],
        &["--height", "1", "--name", "../x"],
        &["--height", "1", "--name", "a", "miner", "list"],
        &["config"],
        &["config", "k=v"],
        &["config", "--name", "a", "k"],
        &["config", "--name", "a", "=v"],
        &["config", "--name", "../x", "k=v"],
        &["importminerid"],
        &["importminerid", "--from"],
        &["miner", "list", "x"],
        &["miner", "list", "--nosuch"],
    ] {
        let done = site.cli(arguments);
        assert_eq!((done.code, done.stdout.as_str()), (2, ""), "{arguments:?}");
        assert_ne!(done.stderr, "", "{arguments:?}");
    }
    assert!(!site.network_dir().exists());
}

#[test]
fn flags_stand_before_or_after_the_command() {
    let site = Site::new();
    site.cli_ok(&["generateminerid", "-n", "a"]);
    let list = site.cli_ok(&["miner", "list", "--json"]);
    assert_eq!(site.cli_ok(&["--json", "miner", "list"]), list);
    let file = site.data_dir().join("settings.toml");
    fs::write(&file, "allowedHosts = [\"pool.internal\"]\n").unwrap();
    let (file, dir) = (file.to_str().unwrap(), site.data_dir().to_str().unwrap());
    for arguments in [
        ["--json", "--config", file, "--data-dir", dir, "miner", "list"],
        ["miner", "list", "--data-dir", dir, "--config", file, "--json"],
        ["--data-dir", dir, "miner", "list", "--json", "--config", file],
    ] {
        let done = Done::of(Command::new(cli_program()).args(arguments).env_remove("BSV_CONFIG"));
        assert_eq!((done.code, done.stdout.trim()), (0, list.as_str()), "{arguments:?}");
    }
    for arguments in
        [&["config", "show", "--config", file][..], &["--config", file, "config", "show"]]
    {
        assert!(site.cli_ok(arguments).contains("pool.internal"), "{arguments:?}");
    }
}

#[test]
fn a_closed_output_is_no_error() {
    let site = golden();
    for arguments in [
        &["miner", "list"][..],
        &["miner", "list", "--json"],
        &["getcurrentminerid", "-n", "first"],
        &["miner", "script", "-n", "first", "-t", "1"],
        &["config", "check"],
        &["--help"],
    ] {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let output = site.cli_command(arguments).stdout(writer).stderr(Stdio::piped()).output();
        let output = output.unwrap();
        let complaint = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), complaint.as_str()), (Some(0), ""), "{arguments:?}");
    }
}

fn generate_in_background(site: &Site, name: &str) -> Child {
    let mut command = site.cli_command(&["generateminerid", "--name", name]);
    command.stdout(Stdio::null()).spawn().unwrap()
}

#[test]
fn commands_wait_for_one_another() {
    let site = Site::new();
    let names = ["a", "b", "c", "d"];
    let running: Vec<_> = names.map(|name| generate_in_background(&site, name)).into();
    for mut command in running {
        assert!(command.wait().unwrap().success());
    }
    let listed = site.cli_json(&["miner", "list"]);
    let aliases: Vec<_> = listed.as_array().unwrap().iter().map(|id| &id["alias"]).collect();
    assert_eq!(aliases, names);
}

/// Holds the data directory of `site` like a program without a control socket.
fn hold(site: &Site, holder: &str) -> File {
    fs::create_dir_all(site.network_dir()).unwrap();
    let mut lock = File::create(site.network_dir().join("lock")).unwrap();
    lock.lock().unwrap();
    lock.write_all(holder.as_bytes()).unwrap();
    lock
}

#[test]
fn a_silent_holder_of_the_data_directory_is_named() {
    for (holder, named) in
        [("somebody (process 1)", "somebody (process 1)"), ("", "another process")]
    {
        let site = Site::new();
        let lock = hold(&site, holder);
        let done = site.cli(&["generateminerid", "--name", "a"]);
        let complaint = format!(
            "bsv-cli: {} is in use by {named}\nhint: wait until it ends, or stop it; then run this command again\n",
            site.network_dir().display()
        );
        check(&done, 1, &complaint, &["generateminerid"]);
        drop(lock);
        site.cli_ok(&["generateminerid", "--name", "a"]);
    }
}

#[test]
fn a_command_goes_on_when_the_holder_lets_go() {
    let site = Site::new();
    let lock = hold(&site, "somebody");
    let mut waiting = generate_in_background(&site, "a");
    // This gives a command that would give up at once the time to do so.
    thread::sleep(Duration::from_millis(300));
    assert_eq!(waiting.try_wait().unwrap(), None);
    drop(lock);
    assert!(waiting.wait().unwrap().success());
}

#[test]
fn commands_work_after_a_server_was_killed() {
    let site = golden();
    let server = site.server();
    let script = server.text("/opreturn/first/7");
    server.kill();
    assert!(site.network_dir().join("control.sock").exists());
    assert_eq!(site.cli_ok(&["miner", "script", "-n", "first", "-t", "7"]), script);
    site.cli_ok(&["rotateminerid", "-n", "first"]);
    let server = site.server();
    assert_eq!(site.cli_ok(&["getcurrentminerid", "-n", "first"]), server.text("/minerid/first"));
}
