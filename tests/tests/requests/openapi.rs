use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use bsv_tests::build::workspace;
use bsv_tests::fetch::python_with;
use bsv_tests::openapi::{Description, LISTENERS};
use bsv_tests::{Client, Node, Receiver, Server, Site, free_port, http, repetitions};
use serde_json::{Value, json};
use tempfile::TempDir;

fn file(listener: &str) -> PathBuf {
    workspace().join(format!("bsv-server/openapi/{listener}.json"))
}

/// Each listener: its name, its client, the path of its file, and a path that takes bodies.
fn listeners(server: &Server) -> [(&'static str, &Client, &'static str, &'static str); 3] {
    [
        ("wallet", server.wallet(), "/api/v1/openapi.json", "/api/v1/invoices"),
        ("payments", server.payments(), "/openapi.json", "/api/v1/payment/000000000000"),
        ("minerid", server.minerid(), "/openapi.json", "/coinbase2"),
    ]
}

/// Runs a program, which must succeed.
fn run(command: &mut Command) {
    let output = command.output().unwrap();
    let [said, complaint] =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    assert!(output.status.success(), "{said}{complaint}");
}

#[test]
fn another_program_accepts_the_files_as_openapi() {
    let files = LISTENERS.map(file);
    run(python_with("openapi").args(["-m", "openapi_spec_validator"]).args(files));
}

/// Collects the paths of all schemas that have an example, and the examples.
fn examples(value: &Value, path: String, found: &mut Vec<(String, Value)>) {
    let Some(members) = value.as_object() else { return };
    if let (Some(_), Some(example)) = (members.get("schema"), members.get("example")) {
        found.push((format!("{path}/schema"), example.clone()));
    }
    for (name, member) in members {
        let name = name.replace('~', "~0").replace('/', "~1");
        examples(member, format!("{path}/{name}"), found);
    }
}

#[test]
fn the_examples_match_their_schemas() {
    for listener in LISTENERS {
        let description = Description::of(listener);
        let mut found = Vec::new();
        examples(description.document(), String::new(), &mut found);
        assert!(found.len() > 5, "{listener}: {found:?}");
        for (path, example) in found {
            let checked = description.check_value(&path, &example);
            checked.unwrap_or_else(|error| panic!("{listener} {path}: {error}"));
        }
    }
}

#[test]
fn the_files_are_served_as_they_are() {
    let site = Site::new();
    let server = site.server();
    for (listener, client, path, _) in listeners(&server) {
        let text = fs::read_to_string(file(listener)).unwrap();
        let reply = client.get(path);
        assert_eq!((reply.status, &reply.body), (200, &text));
        assert_eq!(reply.header("content-type"), Some("application/json; charset=utf-8"));
        let head = client.request("HEAD", path, b"");
        let len = text.len().to_string();
        assert_eq!((head.status, head.header("content-length")), (200, Some(len.as_str())));
        for (method, status) in [("OPTIONS", 204), ("POST", 405)] {
            let reply = client.request(method, path, b"");
            let allow = Some("GET, HEAD, OPTIONS");
            assert_eq!((reply.status, reply.header("allow")), (status, allow), "{method} {path}");
        }
    }
}

/// Has schemathesis send right and wrong requests to a listener for everything that its file
/// describes, and compare the answers with the file.
///
/// `wishes` are further settings of schemathesis.
fn explore(listener: &str, client: &Client, token: &str, wishes: &str) {
    let examples = repetitions("examples by schemathesis of each operation", 100, 5);
    let dir = TempDir::new().unwrap();
    let settings = workspace().join("tests/python/schemathesis.toml");
    let settings = fs::read_to_string(settings).unwrap() + wishes;
    fs::write(dir.path().join("schemathesis.toml"), settings).unwrap();
    let mut python = python_with("openapi");
    python
        .args(["-m", "schemathesis.cli", "--config-file", "schemathesis.toml", "run"])
        .arg(file(listener))
        .args(["--url", &format!("http://{}", client.address())])
        .args(["--header", &format!("Authorization: Bearer {token}")])
        .args(["--checks", "all", "--seed", "1", "--max-examples", &examples.to_string()])
        .args(["--phases", "examples,coverage,fuzzing", "--generation-database", "none"])
        .args(["--warnings", "off", "--no-color"])
        // This would make the wallet send requests to strangers' servers.
        .args(["--exclude-path", "/api/v1/pay"])
        // The answer never ends.
        .args(["--exclude-path", "/api/v1/events/stream"])
        // The wallet would look up the hosts of URLs that schemathesis makes up.
        .args(["--exclude-operation-id", "createWebhook"])
        .args(["--exclude-operation-id", "changeWebhook"])
        .current_dir(dir.path());
    run(&mut python);
}

/// Makes a site require tokens. Answers its server, and a token with every scope.
fn guarded(mut site: Site) -> (Site, Server, String) {
    site.set("auth", json!({"requireToken": true}));
    let server = site.server();
    let scopes = bsv_server::Scope::ALL.map(|scope| format!("--scope={}", scope.name()));
    let scopes = scopes.each_ref().map(String::as_str);
    let made = site.cli_json(&[&["token", "create"], scopes.as_slice()].concat());
    let token = made["token"].as_str().unwrap().to_owned();
    (site, server, token)
}

#[test]
fn schemathesis_finds_the_wallet_as_it_is_described() {
    let node = Node::start();
    node.mine(1);
    let mut site = Site::on(&node);
    site.set("webhooks", json!({"allowNetworks": ["127.0.0.0/8"]}));
    let (_site, server, token) = guarded(site);
    let receiver = Receiver::start();
    let bearer = format!("Bearer {token}");
    let headers = [("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
    let draft = json!({"url": receiver.url()}).to_string();
    let made = server.wallet().send("POST", "/api/v1/webhooks", &headers, draft.as_bytes());
    let made: Value = serde_json::from_str(&made.body).unwrap();
    let wishes = format!(
        "\n[[operations]]\ninclude-path-regex = \"/api/v1/webhooks/\"\nparameters = {{ \"path.id\" = {} }}\n",
        made["id"]
    );
    explore("wallet", server.wallet(), &token, &wishes);
}

#[test]
fn schemathesis_finds_payments_as_they_are_described() {
    let site = Site::new();
    let server = site.server();
    explore("payments", server.payments(), "none", "");
}

#[test]
fn schemathesis_finds_miner_identities_as_they_are_described() {
    let (site, server, token) = guarded(Site::new());
    // The settings of schemathesis name this alias.
    site.cli_ok(&["generateminerid", "--name", "pool", "--protocol", "1.0"]);
    explore("minerid", server.minerid(), &token, "");
}

#[test]
fn a_head_is_refused_like_a_get() {
    let no_node = json!({"rpcPort": free_port(), "rpcUser": "a", "rpcPassword": "b"});
    let site = Site::with(no_node);
    let server = site.server();
    let (wallet, payments, minerid) = (server.wallet(), server.payments(), server.minerid());
    for (client, path, status) in [
        (wallet, "/api/v1/balance?x=1", 400),
        (wallet, "/api/v1/events?after=9", 409),
        (wallet, "/readyz", 503),
        (payments, "/api/v1/channel/x", 401),
        (payments, "/readyz", 503),
        (minerid, "/minerid/pool?x=1", 400),
        (minerid, "/opreturn/pool/x", 404),
        (minerid, "/minerid/pool", 422),
        (minerid, "/datarefs/pool/opreturns", 422),
    ] {
        for method in ["GET", "HEAD"] {
            assert_eq!(client.request(method, path, b"").status, status, "{method} {path}");
        }
    }
    for path in ["/api/v1/invoices/000000000000/settlement", "/metrics"] {
        let status = wallet.get(path).status;
        assert_eq!(wallet.request("HEAD", path, b"").status, status, "{path}");
    }
    let large = "HEAD /minerid/pool HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2000000\r\nConnection: close\r\n\r\n";
    let reply = http::exchange(minerid.address(), large.as_bytes(), "HEAD").unwrap();
    assert_eq!(reply.status, 413);
    for client in [wallet, minerid] {
        let foreign = [("Origin", "http://evil.example")];
        assert_eq!(client.send("GET", "/healthz", &foreign, b"").status, 403);
    }
}

#[test]
fn a_refused_rotation_is_refused_with_both_methods() {
    let site = Site::new();
    site.cli_ok(&["generateminerid", "--name", "pool", "--protocol", "1.0"]);
    let server = site.server();
    for (method, path, status) in [
        ("GET", "/opreturn/pool/1000", 200),
        ("POST", "/opreturn/pool/rotate", 200),
        ("GET", "/opreturn/pool/1000", 200),
        // No block has shown the first rotation.
        ("POST", "/opreturn/pool/rotate", 409),
        ("GET", "/opreturn/pool/rotate", 409),
        ("POST", "/opreturn/nobody/rotate", 422),
        ("GET", "/opreturn/nobody/rotate", 422),
    ] {
        let reply = server.request(method, path, b"");
        assert_eq!(reply.status, status, "{method} {path}: {}", reply.body);
    }
}

#[test]
fn money_leaves_only_by_json_and_with_a_node() {
    let site = Site::new();
    let server = site.server();
    let wallet = server.wallet();
    let reply = wallet.post("/api/v1/invoices", r#"{"satoshis":1}"#);
    let invoice: Value = serde_json::from_str(&reply.body).unwrap();
    let invoice = format!("/api/v1/invoices/{}", invoice["id"].as_str().unwrap());
    let settlement = wallet.request("HEAD", &format!("{invoice}/settlement"), b"");
    assert_eq!(settlement.status, 200);
    let refund = format!("{invoice}/refund");
    let withdrawal = r#"{"address":"mkHS9ne12qx9pS9VojpwU5xtRd4T7X7ZUt","satoshis":1000}"#;
    for (path, body, status) in [
        (refund.as_str(), r#"{"full":true}"#, 503),
        ("/api/v1/withdrawals", withdrawal, 503),
        ("/api/v1/outgoing/1/cancel", "{}", 404),
        (&format!("{invoice}/mark"), r#"{"state":"paid"}"#, 200),
    ] {
        let text = [("Content-Type", "text/plain")];
        let reply = wallet.send("POST", path, &text, body.as_bytes());
        assert_eq!(reply.status, 415, "{path}: {}", reply.body);
        let reply = wallet.post(path, body);
        assert_eq!(reply.status, status, "{path}: {}", reply.body);
    }
}

#[test]
fn webhooks_that_do_not_exist_and_bodies_that_are_no_json_are_refused() {
    let site = Site::new();
    let server = site.server();
    let wallet = server.wallet();
    let webhook = "/api/v1/webhooks/0123456789abcdef";
    let delivery = format!("{webhook}/deliveries/1");
    for (method, path, body) in [
        ("GET", webhook.to_owned(), ""),
        ("HEAD", webhook.to_owned(), ""),
        ("PATCH", webhook.to_owned(), "{}"),
        ("DELETE", webhook.to_owned(), ""),
        ("POST", format!("{webhook}/secret"), "{}"),
        ("POST", format!("{webhook}/test"), "{}"),
        ("GET", format!("{webhook}/deliveries"), ""),
        ("HEAD", format!("{webhook}/deliveries"), ""),
        ("GET", delivery.clone(), ""),
        ("HEAD", delivery.clone(), ""),
        ("POST", format!("{delivery}/redeliver"), "{}"),
        ("POST", format!("{webhook}/replay"), r#"{"after":0}"#),
    ] {
        let reply = wallet.request(method, &path, body.as_bytes());
        assert_eq!(reply.status, 404, "{method} {path}: {}", reply.body);
        if method == "POST" || method == "PATCH" {
            let text = [("Content-Type", "text/plain")];
            let reply = wallet.send(method, &path, &text, body.as_bytes());
            assert_eq!(reply.status, 415, "{method} {path}: {}", reply.body);
        }
    }
    let text = [("Content-Type", "text/plain")];
    let reply = wallet.send("POST", "/api/v1/webhooks", &text, b"{}");
    assert_eq!(reply.status, 415, "{}", reply.body);
}

#[test]
fn the_files_describe_the_requests_of_callers_of_the_older_wallet() {
    let node = Node::start();
    node.mine(1);
    let site = Site::on(&node);
    let server = site.server();
    let wallet = server.wallet();
    let send = |path: &str, mut body: Value, status: u16| {
        body["spvRequired"] = json!(false);
        body["createdAt"] = json!("2022-01-01T00:00:00Z");
        let reply = wallet.post(path, body.to_string());
        assert_eq!(reply.status, status, "{path}: {}", reply.body);
        serde_json::from_str::<Value>(&reply.body).unwrap()
    };
    let invoice = send("/api/v1/invoices", json!({"satoshis": 1000}), 201);
    send("/api/v1/users", json!({"name": "Ada"}), 201);
    let id = invoice["id"].as_str().unwrap();
    // The wallet is empty.
    send(&format!("/api/v1/invoices/{id}/refund"), json!({"full": true}), 422);
    let body =
        json!({"address": "mkHS9ne12qx9pS9VojpwU5xtRd4T7X7ZUt", "satoshis": 1000, "maxFee": 10});
    send("/api/v1/withdrawals", body, 422);
    let url = format!("http://{}/api/v1/payment/{id}", server.payments().address());
    send("/api/v1/pay", json!({ "payToURL": url }), 422);
}

#[test]
fn terms_of_invoices_that_cannot_be_paid_any_more_are_refused() {
    let avatar = "https://shop.example/avatar.png";
    let site = Site::with(json!({"wallet": {"merchant": {"avatar": avatar}}}));
    let server = site.server();
    let create = |body: Value| {
        let reply = server.wallet().post("/api/v1/invoices", body.to_string());
        let invoice: Value = serde_json::from_str(&reply.body).unwrap();
        invoice["id"].as_str().unwrap().to_owned()
    };
    let marked = create(json!({"satoshis": 1}));
    let terms = server.payments().get(&format!("/api/v1/payment/{marked}"));
    assert!(terms.status == 200 && terms.body.contains(avatar), "{}", terms.body);
    let reply =
        server.wallet().post(&format!("/api/v1/invoices/{marked}/mark"), r#"{"state":"paid"}"#);
    assert_eq!(reply.status, 200, "{}", reply.body);
    let soon = bsv_invoicing::Timestamp::of_system().after(Duration::from_secs(2));
    let expired = create(json!({"satoshis": 1, "expiresAt": soon.to_string()}));
    while server.payments().get(&format!("/api/v1/payment/{expired}")).status != 422 {
        sleep(Duration::from_millis(100));
    }
    for prefix in ["/api/v1/payment", "/dpp/api/v1/payment"] {
        let reply = server.payments().post(&format!("{prefix}/000000000000"), r#"{"rawTx":"00"}"#);
        assert_eq!(reply.status, 404, "{prefix}: {}", reply.body);
        for (id, status) in [(&marked, 409), (&expired, 422)] {
            for method in ["GET", "HEAD"] {
                let reply = server.payments().request(method, &format!("{prefix}/{id}"), b"");
                assert_eq!(reply.status, status, "{method} {prefix}: {}", reply.body);
            }
        }
    }
}

#[test]
fn unreadable_requests_are_refused_alike_by_all_listeners() {
    let site = Site::new();
    let server = site.server();
    let long = format!("GET / HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "x".repeat(20 << 10));
    for (_, client, _, path) in listeners(&server) {
        let body = |len: usize| {
            format!(
                "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                 Content-Length: {len}\r\nConnection: close\r\n\r\n"
            )
        };
        for (request, status) in [
            ("GET / HTTP/1.1\r\nno header\r\n\r\n".to_owned(), 400),
            (long.clone(), 431),
            (body(20_000_000), 413),
            // The rest of the body is never sent.
            (body(10) + "{", 408),
        ] {
            let reply = http::exchange(client.address(), request.as_bytes(), "POST").unwrap();
            assert_eq!(reply.status, status, "{path}: {}", reply.body);
        }
    }
}

#[test]
fn an_unknown_parameter_is_refused_by_every_operation() {
    let site = Site::new();
    site.cli_ok(&["generateminerid", "--name", "pool", "--protocol", "1.0"]);
    let server = site.server();
    for (listener, client) in [("wallet", server.wallet()), ("minerid", server.minerid())] {
        let document = Description::of(listener).document();
        for (pattern, item) in document["paths"].as_object().unwrap() {
            for method in ["get", "post", "patch", "delete"] {
                let operation = &item[method];
                if operation.is_null() || operation["tags"][0] == "service" {
                    continue;
                }
                let hash = "0".repeat(64);
                let path = pattern.replace("{alias}", "pool").replace("{height}", "9");
                let path = path.replace("{hash}", &hash).replace("{txid}", &hash);
                let id = if path.contains("/webhooks/") { "0123456789abcdef" } else { "1" };
                let path = path.replace("{number}", "1").replace("{id}", id);
                let path = format!("{path}?nothing=1");
                let reply = client.request(&method.to_uppercase(), &path, b"{}");
                assert_eq!(reply.status, 400, "{method} {path}: {}", reply.body);
                assert!(reply.body.contains("nothing"), "{method} {path}: {}", reply.body);
            }
        }
    }
}
