//! Errors: people get a sentence, and programs get an object with a stable code.

use bsv_tests::{Done, Payee, Site};
use serde_json::{Value, json};

fn error(done: &Done) -> Value {
    assert_eq!(done.stderr.lines().count(), 1, "{}", done.stderr);
    serde_json::from_str(&done.stderr).unwrap()
}

#[test]
fn programs_get_a_code_for_every_error() {
    let site = Site::new();
    site.cli_ok(&["init"]);
    site.cli_ok(&["miner", "create", "--name", "modern", "--protocol", "1.0"]);
    site.cli_ok(&["miner", "create", "--name", "old"]);
    let gone = Payee::asking(&json!({}));
    let url = gone.url();
    let cases: [(&[&str], i32, &str); 10] = [
        (&["invoice", "get", "000000000000"], 1, "unknown-invoice"),
        (&["invoice", "create", "--satoshis", "0"], 2, "wrong-usage"),
        (&["frobnicate"], 2, "wrong-usage"),
        (
            &["invoice", "create", "--satoshis", "1", "--expires-at", "2020-01-01T00:00:00Z"],
            1,
            "invalid-fields",
        ),
        (&["pay", &url], 1, "network-unavailable"),
        (&["miner", "scan", "--from", "1"], 1, "no-node"),
        (&["miner", "extensions", "--name", "modern", "/nowhere"], 2, "wrong-usage"),
        (&["miner", "revoke", "--name", "modern", "--yes"], 1, "unfitting"),
        (&["miner", "revoke", "--name", "old", "--all", "--yes"], 1, "unfitting"),
        (&["backup", "/nowhere/at/all"], 1, "file-failed"),
    ];
    for with_server in [false, true] {
        let _server = with_server.then(|| site.server());
        for (arguments, code, name) in cases {
            let done = site.cli(&[arguments, &["--json"]].concat());
            assert_eq!((done.code, done.stdout.as_str()), (code, ""), "{arguments:?}: {done:?}");
            let error = error(&done);
            assert_eq!(error["code"], name, "{error}");
            assert!(!error["message"].as_str().unwrap().is_empty());
        }
    }
}

#[test]
fn an_unknown_id_ends_every_command_with_1_and_a_name() {
    let site = Site::new();
    site.cli_ok(&["init"]);
    site.cli_ok(&["miner", "create", "pool"]);
    let file = |name: &str, text: &str| {
        std::fs::write(site.data_dir().join(name), text).unwrap();
        site.data_dir().join(name).display().to_string()
    };
    let extensions = file("extensions", r#"{"x":1}"#);
    let data = file("data", r#"{"dataRefs":{"refs":[]}}"#);
    let invoice = ["show", "payments", "settlement", "mark", "delete", "refund"]
        .map(|verb| (vec!["invoice", verb, "000000000000"], "unknown-invoice"));
    let outgoing = ["show", "cancel"].map(|verb| (vec!["outgoing", verb, "99"], "unknown-payment"));
    const ID: &str = "0000000000000000";
    let webhook = ["show", "enable", "disable", "delete", "secret", "test", "deliveries"]
        .map(|verb| (vec!["webhook", verb, ID], "unknown-webhook"));
    let of_webhook = [
        vec!["webhook", "trigger", ID, "invoice.paid"],
        vec!["webhook", "deliveries", ID, "1"],
        vec!["webhook", "redeliver", ID, "1"],
        vec!["webhook", "replay", ID, "--after", "0"],
    ]
    .map(|arguments| (arguments, "unknown-webhook"));
    let miner = ["show", "id", "contact", "rotate", "revoke", "delete", "confirm", "upgrade"]
        .map(|verb| (vec!["miner", verb, "nobody"], "unknown-alias"));
    let of_miner = [
        vec!["miner", "script", "nobody", "--height", "1"],
        vec!["miner", "blind-signing", "nobody", "off"],
        vec!["miner", "extensions", "nobody", &extensions],
        vec!["miner", "data-refs", "nobody", &data],
        vec!["miner", "revocation-key", "rotate", "nobody"],
    ]
    .map(|arguments| (arguments, "unknown-alias"));
    let others = [
        (vec!["user", "show", "9"], "unknown-user"),
        (vec!["token", "revoke", "00000000"], "unknown-token"),
    ];
    let cases = invoice.into_iter().chain(outgoing).chain(webhook).chain(of_webhook);
    for (arguments, name) in cases.chain(miner).chain(of_miner).chain(others) {
        let done = site.cli(&[&arguments[..], &["--yes", "--json"]].concat());
        assert_eq!((done.code, done.stdout.as_str()), (1, ""), "{arguments:?}: {done:?}");
        assert_eq!(error(&done)["code"], name, "{arguments:?}: {done:?}");
        assert!(error(&done)["hint"].is_string(), "{arguments:?}: what to do next");
    }
}

#[test]
fn people_get_a_sentence_and_the_next_step() {
    let mut site = Site::new();
    site.set_env("BSV_CONFIG", r#"{"prot": 1}"#);
    let done = site.cli(&["status"]);
    let lines: Vec<_> = done.stderr.lines().collect();
    let [sentence, hint] = lines[..] else { panic!("{}", done.stderr) };
    assert!(sentence.starts_with("bsv-cli: ") && sentence.contains("prot"), "{sentence}");
    assert!(hint.starts_with("hint: ") && hint.contains("config show"), "{hint}");
    let quiet = site.cli(&["status", "--quiet"]);
    assert_eq!(quiet.stderr.trim_end(), sentence);
    let told = error(&site.cli(&["status", "--json"]));
    assert_eq!(
        (&told["code"], told["message"].as_str(), told["hint"].as_str()),
        (&json!("bad-settings"), sentence.strip_prefix("bsv-cli: "), hint.strip_prefix("hint: "))
    );
}
