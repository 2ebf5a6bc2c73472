//! Webhooks with real endpoints.

mod again;
mod command_line;
mod full_disk;
mod guard;
mod killed;
mod receivers;
mod refused;
mod secrets;
mod states;

use std::thread::sleep;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bsv_invoicing::webhooks::{WebhookSecret, signatures};
use bsv_tests::payee::Request;
use bsv_tests::{Client, Receiver, Reply, Site};
use serde_json::{Value, json};

use crate::events::{Shop, log, read};

const WEBHOOKS: &str = "/api/v1/webhooks";

/// A site whose webhooks may lead to this machine.
fn site() -> Site {
    Site::with(json!({ "webhooks": { "allowNetworks": ["127.0.0.0/8"] } }))
}

fn shop() -> Shop {
    Shop::start_on(site())
}

fn path(id: &str) -> String {
    format!("{WEBHOOKS}/{id}")
}

fn text(value: &Value, member: &str) -> String {
    value[member].as_str().unwrap_or_else(|| panic!("no {member} in {value}")).to_owned()
}

/// The body of an answer that must have this status.
fn answered(reply: &Reply, status: u16) -> Value {
    assert_eq!(reply.status, status, "{}", reply.body);
    read(reply)
}

/// Makes a webhook that leads to a receiver, and returns its id and its secret.
fn webhook(client: &Client, receiver: &Receiver, mut wishes: Value) -> (String, String) {
    wishes["url"] = json!(receiver.url());
    let made = answered(&client.post(WEBHOOKS, wishes.to_string()), 201);
    (text(&made, "id"), text(&made, "secret"))
}

fn shown(client: &Client, path: &str) -> Value {
    answered(&client.get(path), 200)
}

fn post(client: &Client, path: &str, body: &Value) -> Reply {
    client.post(path, body.to_string())
}

fn patch(client: &Client, id: &str, change: &Value) -> Value {
    answered(&client.request("PATCH", &path(id), change.to_string().as_bytes()), 200)
}

/// Waits until a condition holds for the answer at a path.
fn until(client: &Client, path: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let shown = shown(client, path);
        if is_so(&shown) {
            return shown;
        }
        assert!(Instant::now() < deadline, "timed out: it stays {shown}");
        sleep(Duration::from_millis(20));
    }
}

/// Whether exactly these secrets have signed a request, the last one first.
fn is_signed_with(request: &Request, secrets: &[&str]) -> bool {
    let secrets = secrets.iter().rev().map(|secret| {
        let bytes = BASE64_STANDARD.decode(secret.strip_prefix("whsec_").unwrap()).unwrap();
        WebhookSecret::from_bytes(&bytes).unwrap()
    });
    let secrets: Vec<_> = secrets.collect();
    let seconds = request.header("webhook-timestamp").unwrap().parse().unwrap();
    let id = request.header("webhook-id").unwrap();
    let expected = signatures(&secrets, id, seconds, &request.body);
    request.header("webhook-signature") == Some(expected.as_str())
}

#[test]
fn events_are_sent_signed_as_they_happen() {
    let shop = shop();
    let client = shop.client();
    shop.create_user();
    let receiver = Receiver::start();
    let wishes = json!({ "description": "the till", "types": "invoice.*" });
    let (id, secret) = webhook(client, &receiver, wishes);
    let made = shown(client, &path(&id));
    let expected = json!({
        "id": id, "url": receiver.url(), "types": "invoice.*", "description": "the till",
        "inOrder": false, "state": "enabled", "createdAt": made["createdAt"], "cursor": 1,
        "behind": 0, "lastSuccessAt": null, "failingSince": null, "nextAttemptAt": null,
    });
    assert_eq!(made, expected);
    assert_eq!(shown(client, WEBHOOKS), json!([made]));

    shop.create_invoice("one");
    // Requests that are under way at the same time may arrive in another order.
    receiver.until_count(1);
    shop.create_user();
    shop.create_invoice("two");
    let received = receiver.until_count(2);
    let log = log(client);
    for (request, (number, previous)) in received.iter().zip([(2, json!(null)), (4, json!(2))]) {
        let mut body = request.json();
        assert_eq!(body["previous"], previous);
        body.as_object_mut().unwrap().remove("previous");
        assert_eq!(body, log[number - 1]);
        assert!(receiver.url().ends_with(&request.path), "{}", request.path);
        assert_eq!(request.header("webhook-id"), body["id"].as_str());
        assert_eq!(request.header("content-type"), Some("application/json"));
        let user_agent = concat!("bsv-server/", env!("CARGO_PKG_VERSION"));
        assert_eq!(request.header("user-agent"), Some(user_agent));
        assert!(is_signed_with(request, &[&secret]), "{request:?}");
    }
    let known = until(client, &path(&id), |webhook| webhook["cursor"] == 4);
    assert_eq!((&known["behind"], known["lastSuccessAt"].is_string()), (&json!(0), true));
}

#[test]
fn a_webhook_that_begins_earlier_gets_earlier_events() {
    let shop = shop();
    let count = shop.fill(20) as u64;
    let receiver = Receiver::start();
    let (id, _) = webhook(shop.client(), &receiver, json!({ "after": 5, "inOrder": true }));
    receiver.until_count(count as usize - 5);
    assert_eq!(receiver.numbers(), Vec::from_iter(6..=count));
    assert_eq!(shown(shop.client(), &path(&id))["inOrder"], true);
    let ahead = json!({ "url": receiver.url(), "after": count + 1 });
    crate::events::check_problem(&post(shop.client(), WEBHOOKS, &ahead), 409, "cursor-ahead");
}

#[test]
fn a_retry_has_the_same_bytes_after_the_invoice_changed_and_the_server_restarted() {
    let receiver = Receiver::start();
    let shop = shop();
    let (id, _) = webhook(shop.client(), &receiver, json!({}));
    let invoice = shop.create_invoice("tea");
    receiver.until_count(1);
    shop.delete_invoice(&invoice);
    receiver.until_count(2);
    until(shop.client(), &path(&id), |webhook| webhook["cursor"] == 2);
    let Shop { site, server } = shop;
    assert_eq!(server.stop(), 0);
    let shop = Shop::start_on(site);
    for number in [1, 2] {
        let path = format!("{}/deliveries/{number}/redeliver", path(&id));
        assert_eq!(post(shop.client(), &path, &json!({})).status, 202);
        let received = receiver.until_count(number + 2);
        assert_eq!(received[number + 1].body, received[number - 1].body);
        assert!(is_signed_again(&received[number + 1], &received[number - 1]));
    }
}

/// Whether one attempt has the id of another.
fn is_signed_again(again: &Request, first: &Request) -> bool {
    again.header("webhook-id") == first.header("webhook-id")
        && again.header("webhook-signature").is_some()
}

#[test]
fn a_webhook_that_is_changed_sends_other_events_elsewhere() {
    let shop = shop();
    let client = shop.client();
    let [first, second] = [(); 2].map(|()| Receiver::start());
    let (id, _) = webhook(client, &first, json!({ "types": "user.*" }));
    shop.create_user();
    first.until_count(1);
    until(client, &path(&id), |webhook| webhook["cursor"] == 1);
    let change = json!({
        "url": second.url(), "types": "invoice.*", "inOrder": true, "description": "the till",
    });
    let changed = patch(client, &id, &change);
    for (member, value) in change.as_object().unwrap() {
        assert_eq!(&changed[member], value, "{member}");
    }
    shop.create_user();
    shop.create_invoice("tea");
    second.until_count(1);
    assert_eq!((first.numbers(), second.numbers()), (vec![1], vec![3]));
}
