use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use bsv_tests::{Node, Site};
use serde_json::{Value, json};
use tempfile::TempDir;

fn lines(log: &Path) -> Vec<Value> {
    let text = fs::read_to_string(log).unwrap();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Waits for a line of the log for which this is so.
fn line(log: &Path, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
    let begun = Instant::now();
    loop {
        if let Some(line) = lines(log).into_iter().find(|line| is_it(line)) {
            return line;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "no line of {what}: {:#?}", lines(log));
        sleep(Duration::from_millis(10));
    }
}

#[test]
fn the_first_lines_tell_what_has_started_and_where() {
    let dir = TempDir::new().unwrap();
    let log = dir.path().join("log");
    let site = Site::new();
    let server = site.server_logging_json_to(&log);
    let started = line(&log, "the start", |line| line["message"] == "started");
    assert_eq!(started["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(started["network"], "regtest");
    assert_eq!(started["dir"], site.network_dir().to_str().unwrap());
    let control = site.network_dir().join("control.sock");
    let listeners = format!(
        "minerid http://{}, wallet http://{}, payments http://{}, control {}",
        server.address(),
        server.wallet().address(),
        server.payments().address(),
        control.display()
    );
    assert_eq!(started["listeners"], listeners);
    let told: Vec<_> = lines(&log)
        .iter()
        .filter(|line| line["message"] == "listening")
        .map(|line| line["listener"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(told, ["minerid", "wallet", "payments", "control"]);
    assert_eq!(server.stop(), 0);
    let last = lines(&log).pop().unwrap();
    assert_eq!(last["message"], "stopped");
}

/// The ids in a line, each with its name.
fn ids(line: &Value) -> Vec<(String, String)> {
    let usual = ["timestamp", "level", "target", "message", "event"];
    let members = line.as_object().unwrap().iter();
    let members = members.filter(|(name, _)| !usual.contains(&name.as_str()));
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    members.map(|(name, value)| (name.clone(), text(value))).collect()
}

#[test]
fn the_log_has_a_line_for_each_event_with_ids_and_without_secrets() {
    let dir = TempDir::new().unwrap();
    let log = dir.path().join("log");
    let node = Node::start();
    node.mine(101);
    let site = Site::on(&node);
    let server = site.server_logging_json_to(&log);
    let wallet = server.wallet();
    let created = |draft: Value| -> Value {
        serde_json::from_str(&wallet.post("/api/v1/invoices", draft.to_string()).body).unwrap()
    };
    let text = json!({"satoshis": 70_137_791_307_u64, "description": "SECRET-tea", "reference": "SECRET-order"});
    let invoice = created(text);
    let id = invoice["id"].as_str().unwrap();
    let user =
        wallet.post("/api/v1/users", r#"{"name":"SECRET-Ada","email":"SECRET@example.com"}"#);
    assert_eq!(user.status, 201);
    let marked = wallet.post(&format!("/api/v1/invoices/{id}/mark"), r#"{"state":"paid"}"#);
    assert_eq!(marked.status, 200, "{}", marked.body);
    let other = created(json!({"satoshis": 1000}));
    let other = other["id"].as_str().unwrap();
    assert_eq!(wallet.request("DELETE", &format!("/api/v1/invoices/{other}"), b"").status, 204);
    let third = created(json!({"satoshis": 1000}));
    let third = third["id"].as_str().unwrap();
    let url = format!("http://{}/dpp/api/v1/payment/{third}", server.payments().address());
    site.cli_ok(&["wallet", "faucet", &url]);
    let is_paid = |line: &Value| line["message"] == "invoice.paid" && line["invoice"] == *third;
    let paid = line(&log, "the payment", is_paid);
    assert_eq!(paid["txid"].as_str().unwrap().len(), 64);
    assert_eq!(server.stop(), 0);
    let lines = lines(&log);
    let events: Vec<_> =
        lines.iter().filter(|line| line["target"] == "bsv_server::events").collect();
    let numbers: Vec<_> = events.iter().map(|line| line["event"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=events.len() as u64).collect::<Vec<_>>(), "each is told, in order");
    let of = |name: &str| {
        let line = events.iter().find(|line| line["message"] == name);
        ids(line.unwrap_or_else(|| panic!("no {name}: {events:#?}")))
    };
    let invoice = ("invoice".to_owned(), id.to_owned());
    assert_eq!(of("invoice.created"), std::slice::from_ref(&invoice));
    assert_eq!(of("invoice.marked"), std::slice::from_ref(&invoice));
    assert_eq!(of("invoice.deleted"), [("invoice".to_owned(), other.to_owned())]);
    assert_eq!(of("user.created"), [("user".to_owned(), "1".to_owned())]);
    let text = fs::read_to_string(&log).unwrap();
    assert!(!text.contains("SECRET") && !text.contains("70137791307"), "{text}");
}

#[test]
fn operations_of_the_command_line_and_changes_of_keys_are_logged() {
    let dir = TempDir::new().unwrap();
    let log = dir.path().join("log");
    let mut site = Site::new();
    site.set_env("BSV_BACKUP_PASSPHRASE", "SECRET-passphrase");
    let server = site.server_logging_json_to(&log);
    site.cli_ok(&["miner", "create", "--name", "pool"]);
    site.cli_ok(&["miner", "rotate", "--name", "pool"]);
    site.cli_ok(&["miner", "list"]);
    let token = site.cli_json(&["token", "create", "--scope", "wallet:read", "--label", "till"]);
    site.cli_ok(&["token", "revoke", token["id"].as_str().unwrap(), "--yes"]);
    site.cli_ok(&["backup", dir.path().join("backup").to_str().unwrap()]);
    let words = site.cli_ok(&["wallet", "words", "--yes"]);
    assert_eq!(server.stop(), 0);
    let all = lines(&log);
    let told = |target: &str, member: &str| -> Vec<String> {
        let lines = all.iter().filter(|line| line["target"] == target);
        lines.map(|line| line[member].as_str().unwrap().to_owned()).collect()
    };
    let id = token["id"].as_str().unwrap();
    assert_eq!(
        told("bsv_server::control", "operation"),
        [
            "POST /control/minerids".to_owned(),
            "POST /control/minerids/pool/rotate".to_owned(),
            "POST /control/tokens".to_owned(),
            format!("DELETE /control/tokens/{id}"),
            "POST /control/backup".to_owned(),
            "POST /control/wallet/backup-words".to_owned(),
        ]
    );
    let control = all.iter().filter(|line| line["target"] == "bsv_server::control");
    let requests: Vec<_> = control.map(|line| line["request"].as_str().unwrap()).collect();
    assert!(requests.iter().all(|id| id.len() == 16), "{requests:?}");
    let entries = all.iter().filter(|line| line["target"] == "bsv_audit");
    let entries = entries.map(|line| {
        format!("{} {}", line["message"].as_str().unwrap(), line["subject"].as_str().unwrap())
    });
    assert_eq!(
        entries.collect::<Vec<_>>(),
        [
            "made wallet.seed".to_owned(),
            "made pool_1".to_owned(),
            "made pool_2".to_owned(),
            "rotated pool_1".to_owned(),
            format!("token-made {id} with wallet:read"),
            format!("token-revoked {id}"),
            "backed-up keystore".to_owned(),
            "exported wallet.seed".to_owned(),
        ]
    );
    let text = fs::read_to_string(&log).unwrap();
    let secret = token["token"].as_str().unwrap();
    assert!(!text.contains(secret) && !text.contains("SECRET"), "{text}");
    assert!(
        !text.contains(words.split_whitespace().take(4).collect::<Vec<_>>().join(" ").as_str())
    );
}

#[test]
fn an_answer_holds_the_id_that_its_request_has_in_the_log() {
    let dir = TempDir::new().unwrap();
    let log = dir.path().join("log");
    let server = Site::with(json!({"log": {"requests": true}})).server_logging_json_to(&log);
    let ids: Vec<_> = (0..3)
        .map(|_| {
            let reply = server.wallet().get("/api/v1/balance");
            reply.header("x-request-id").unwrap().to_owned()
        })
        .collect();
    assert_eq!(server.stop(), 0);
    let requests = lines(&log).into_iter().filter(|line| line["message"] == "request");
    let logged: Vec<_> =
        requests.map(|line| line["request"].as_str().unwrap().to_owned()).collect();
    assert_eq!(logged, ids);
    let server = Site::new().server();
    assert_eq!(server.wallet().get("/api/v1/balance").header("x-request-id"), None);
    let away = server.wallet().post("/api/v1/pay", r#"{"payToURL":"http://127.0.0.1:1/x"}"#);
    assert!(away.status >= 500, "{}", away.body);
    assert_eq!(away.header("x-request-id").unwrap().len(), 16);
}

#[test]
fn each_of_many_simultaneous_events_is_logged() {
    let dir = TempDir::new().unwrap();
    let log = dir.path().join("log");
    let site = Site::new();
    let server = site.server_logging_json_to(&log);
    let clients: Vec<_> = (0..50).map(|_| server.wallet().clone()).collect();
    std::thread::scope(|scope| {
        for client in &clients {
            scope.spawn(|| {
                for _ in 0..6 {
                    assert_eq!(client.post("/api/v1/invoices", r#"{"satoshis":1000}"#).status, 201);
                }
            });
        }
    });
    assert_eq!(server.stop(), 0);
    let lines = lines(&log);
    let events = lines.iter().filter(|line| line["target"] == "bsv_server::events");
    let numbers: Vec<_> = events.map(|line| line["event"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=300).collect::<Vec<_>>());
}

#[test]
fn sighup_makes_the_server_read_its_settings_again_and_the_log_says_which_apply() {
    let dir = TempDir::new().unwrap();
    let (log, file) = (dir.path().join("log"), dir.path().join("settings.toml"));
    fs::write(&file, "").unwrap();
    let mut site = Site::new();
    site.set_env("BSV_CONFIG_FILE", &file);
    let server = site.server_logging_json_to(&log);
    let hang_up = |settings: &str, expected: &str| {
        fs::write(&file, settings).unwrap();
        server.hang_up();
        line(&log, expected, |line| line["message"].as_str().unwrap().contains(expected));
    };
    server.wallet().get("/api/v1/balance");
    hang_up("", "no other one has changed");
    hang_up("[log]\nrequests = true\n", "log.requests is true from now on");
    server.wallet().get("/api/v1/balance");
    hang_up("[wallet]\npaymentExpiryHours = 1\n", "next start: wallet.paymentExpiryHours");
    line(&log, "a change back", |line| {
        line["message"] == "SIGHUP: log.requests is false from now on"
    });
    server.wallet().get("/api/v1/balance");
    hang_up("wallet = 7", "the new settings cannot be used");
    assert_eq!(server.wallet().get("/healthz").status, 200);
    assert_eq!(server.stop(), 0);
    let requests = lines(&log).into_iter().filter(|line| line["message"] == "request");
    assert_eq!(requests.count(), 1);
}

#[test]
fn libraries_of_others_are_quiet_at_any_bare_level() {
    let dir = TempDir::new().unwrap();
    let mut site = Site::new();
    let mut lines_at = |level: &str| {
        let log = dir.path().join(level);
        site.set_env("BSV_LOG", level);
        let server = site.server_logging_to(&log);
        server.wallet().post("/api/v1/users", r#"{"name":"Ada"}"#);
        server.payments().get("/nowhere");
        assert_eq!(server.stop(), 0);
        let text = fs::read_to_string(&log).unwrap();
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let all = lines_at("trace");
    assert!(all.iter().any(|line| line.contains(" bsv_server::events: user.created")), "{all:?}");
    assert!(all.iter().all(|line| line.contains(" bsv_")), "{all:?}");
    assert_eq!(lines_at("off"), [""; 0]);
    assert_eq!(
        lines_at("warn,bsv_server::run=info").len(),
        4,
        "one warning, and three lines of bsv_server::run"
    );
}
