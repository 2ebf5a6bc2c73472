//! Receivers of other projects, and the examples of the shop's guide.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bsv_invoicing::webhooks::{WebhookSecret, signatures};
use bsv_tests::build::workspace;
use bsv_tests::fetch::{node_js, php, python_with};
use bsv_tests::payee::{Answer, Request};
use bsv_tests::{Receiver, free_port};
use serde_json::{Value, json};

use super::{WEBHOOKS, answered, path, post, shop, text, webhook};
use crate::events::log;

/// The same program as `tests/npm/verify_webhooks.cjs`, in Python.
const VERIFIER: &str = r#"
import json, sys
from standardwebhooks import Webhook, WebhookVerificationError
def verifies(secret, request):
    try:
        Webhook(secret).verify(request["body"], request["headers"])
        return True
    except WebhookVerificationError:
        return False
requests = json.load(sys.stdin)
print(json.dumps([[verifies(secret, it) for secret in it["secrets"]] for it in requests]))
"#;

/// Asks a program, for each request, which of the secrets have signed it.
fn verified(mut program: Command, requests: &[Request], secrets: &[&str]) -> Vec<Vec<bool>> {
    let requests = requests.iter().map(|request| {
        let names = ["webhook-id", "webhook-timestamp", "webhook-signature"];
        let headers = names.map(|name| (name, request.header(name).unwrap()));
        let headers: Value = headers.into_iter().collect();
        let body = std::str::from_utf8(&request.body).unwrap();
        json!({ "secrets": secrets, "headers": headers, "body": body })
    });
    let requests = Value::from_iter(requests).to_string();
    let mut child = program.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(requests.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn libraries_of_standard_webhooks_verify_what_is_sent_while_secrets_change() {
    let shop = shop();
    let client = shop.client();
    let receiver = Receiver::start();
    let is_open = Arc::new((Mutex::new(false), Condvar::new()));
    let opened = Arc::clone(&is_open);
    receiver.reply_with(move |_| {
        let (is_open, changed) = &*opened;
        drop(changed.wait_while(is_open.lock().unwrap(), |is_open| !*is_open).unwrap());
        Answer::text(200, "")
    });
    let (id, first) = webhook(client, &receiver, json!({}));
    for _ in 0..12 {
        shop.create_user();
    }
    // This many are under way at once.
    receiver.until_count(8);
    let rotated = post(client, &format!("{}/secret", path(&id)), &json!({}));
    let second = text(&answered(&rotated, 201), "secret");
    *is_open.0.lock().unwrap() = true;
    is_open.1.notify_all();
    let received = receiver.until_count(12);
    let python = || {
        let mut python = python_with("webhooks");
        python.args(["-c", VERIFIER]);
        python
    };
    let node = || {
        let mut node = node_js();
        node.arg(workspace().join("tests/npm/verify_webhooks.cjs"));
        node
    };
    let secrets = [first.as_str(), &second, "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"];
    let expected: Vec<_> = (0..12).map(|place| vec![true, place >= 8, false]).collect();
    assert_eq!(verified(python(), &received, &secrets), expected);
    assert_eq!(verified(node(), &received, &secrets), expected);
    let mut changed = received[0].clone();
    let end = changed.body.len() - 1;
    changed.body.insert(end, b' ');
    for program in [python(), node()] {
        assert_eq!(verified(program, std::slice::from_ref(&changed), &secrets), [[false; 3]]);
    }
}

/// A running example. It is killed when dropped.
struct Example(Child);

impl Drop for Example {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Example {
    fn start(command: &mut Command, port: u16, secret: &str) -> Self {
        let command = command.env("WEBHOOK_SECRET", secret).stdout(Stdio::piped());
        let example = Self(command.spawn().unwrap());
        let deadline = Instant::now() + Duration::from_secs(60);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < deadline, "{command:?} does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        example
    }
}

fn file(name: &str) -> String {
    workspace().join("docs/examples").join(name).to_str().unwrap().to_owned()
}

/// An example's status for a body with this signature.
fn status_of(port: u16, body: &str, secret: &WebhookSecret, seconds: u64) -> u16 {
    let signature = signatures([secret], "evt_1", seconds, body.as_bytes());
    let seconds = seconds.to_string();
    let headers = [
        ("Content-Type", "application/json"),
        ("webhook-id", "evt_1"),
        ("webhook-timestamp", seconds.as_str()),
        ("webhook-signature", signature.as_str()),
    ];
    let client = bsv_tests::Client::new(&format!("127.0.0.1:{port}"));
    client.send("POST", "/", &headers, body.as_bytes()).status
}

/// Lets an example receive real events, including some with a second secret, and checks that it
/// refuses forged ones.
fn check(program: impl Fn(u16) -> Command) {
    let shop = shop();
    let client = shop.client();
    let port = free_port();
    let url = format!("http://127.0.0.1:{port}/");
    let made = answered(&post(client, WEBHOOKS, &json!({ "url": url })), 201);
    let secret = text(&made, "secret");
    let mut example = Example::start(&mut program(port), port, &secret);
    let mut lines = BufReader::new(example.0.stdout.take().unwrap()).lines();
    let rotated = post(client, &format!("{}/secret", path(&text(&made, "id"))), &json!({}));
    for _ in 0..2 {
        shop.create_user();
        let event = log(client).pop().unwrap();
        let expected = format!("{} {}", text(&event, "id"), text(&event, "type"));
        assert_eq!(lines.next().unwrap().unwrap(), expected);
        assert_eq!(rotated.status, 201);
    }
    let bytes = BASE64_STANDARD.decode(secret.strip_prefix("whsec_").unwrap()).unwrap();
    let [own, other] = [&bytes[..], &[7; 32]].map(|it| WebhookSecret::from_bytes(it).unwrap());
    let now = bsv_invoicing::Timestamp::of_system().as_micros() / 1_000_000;
    let body = r#"{"id":"evt_1","type":"invoice.paid"}"#;
    assert_eq!(status_of(port, body, &own, now), 204);
    assert_eq!(lines.next().unwrap().unwrap(), "evt_1 invoice.paid");
    assert_eq!(status_of(port, body, &other, now), 400);
    assert_eq!(status_of(port, body, &own, now - 3600), 400);
    assert_eq!(status_of(port, body, &own, now + 3600), 400);
    assert_eq!(bsv_tests::Client::new(&format!("127.0.0.1:{port}")).post("/", body).status, 400);
}

#[test]
fn the_example_in_javascript_accepts_only_genuine_events() {
    check(|port| {
        let mut node = node_js();
        node.args([file("webhook.mjs"), port.to_string()]);
        node
    });
}

#[test]
fn the_example_in_php_accepts_only_genuine_events() {
    check(|port| {
        let mut php = php();
        php.args(["-q", "-S", &format!("127.0.0.1:{port}"), &file("webhook.php")]);
        php
    });
}

#[test]
fn the_example_in_python_accepts_only_genuine_events() {
    check(|port| {
        let mut python = Command::new("python3");
        python.args([file("webhook.py"), port.to_string()]).stderr(Stdio::null());
        python
    });
}

#[test]
fn the_guide_shows_the_tested_examples() {
    let guide = fs::read_to_string(workspace().join("docs/shop.md")).unwrap();
    for (language, name) in
        [("js", "webhook.mjs"), ("php", "webhook.php"), ("python", "webhook.py")]
    {
        let example = fs::read_to_string(file(name)).unwrap();
        assert!(guide.contains(&format!("```{language}\n{example}```\n")), "{name}");
    }
}
