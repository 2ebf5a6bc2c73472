//! A server that is killed while many clients create invoices.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use bsv_tests::wallet::StoredWallet;
use bsv_tests::{Client, Server, Site, repetitions};
use serde_json::{Value, json};

const CLIENTS: usize = 32;
/// The longest time between start and kill, in milliseconds; the rounds are spread over it.
const LONGEST: u64 = 150;

/// What was asked for, by idempotency key.
#[derive(Default)]
struct Asked {
    /// With the answer's text.
    acknowledged: BTreeMap<String, String>,
    /// Without an answer.
    broken_off: Vec<String>,
}

#[test]
fn what_was_acknowledged_before_a_kill_is_there_once_with_every_field() {
    let rounds = repetitions("kills of a wallet under load from 32 clients", 50, 8);
    let mut site = Site::new();
    site.set_env("BSV_LOG", "off");
    let mut server = site.server();
    let mut references = Vec::new();
    let (mut acknowledged, mut broken_off) = (0, 0);
    for round in 0..rounds {
        let delay = Duration::from_millis(10 + LONGEST * round as u64 / rounds as u64);
        let asked = create_until_killed(server, round, delay);
        check_disk(&site, &asked);
        server = site.server();
        check_answers(&server, &asked);
        acknowledged += asked.acknowledged.len();
        broken_off += asked.broken_off.len();
        references.extend(asked.acknowledged.into_keys().chain(asked.broken_off));
    }
    eprintln!("{acknowledged} invoices acknowledged, {broken_off} requests broken off");
    assert!(acknowledged > rounds * CLIENTS, "the load was too low to tell anything");
    assert_eq!(server.stop(), 0);
    let mut stored: Vec<_> = StoredWallet::of(&site)
        .invoices
        .into_iter()
        .filter_map(|invoice| invoice.reference)
        .collect();
    // Those that broke off were asked for again.
    stored.sort_unstable();
    references.sort_unstable();
    assert_eq!(stored, references);
}

fn create_until_killed(server: Server, round: usize, delay: Duration) -> Asked {
    let asked = Mutex::new(Asked::default());
    let client = server.wallet().clone();
    thread::scope(|scope| {
        for thread in 0..CLIENTS {
            let (client, asked) = (&client, &asked);
            scope.spawn(move || {
                for count in 0.. {
                    let key = format!("{round}-{thread}-{count}");
                    match try_create(client, &key) {
                        Ok(text) => asked.lock().unwrap().acknowledged.insert(key, text),
                        Err(_) => return asked.lock().unwrap().broken_off.push(key),
                    };
                }
            });
        }
        thread::sleep(delay);
        server.kill();
    });
    asked.into_inner().unwrap()
}

/// Creates the invoice that belongs to a key: its reference is the key.
fn try_create(client: &Client, key: &str) -> std::io::Result<String> {
    let body =
        json!({ "satoshis": 1 + key.len(), "description": format!("of {key}"), "reference": key });
    let headers = [("Content-Type", "application/json"), ("Idempotency-Key", key)];
    let reply =
        client.try_send("POST", "/api/v1/invoices", &headers, body.to_string().as_bytes())?;
    assert_eq!(reply.status, 201, "{}", reply.body);
    Ok(reply.body)
}

/// Checks the store as the kill left it.
fn check_disk(site: &Site, asked: &Asked) {
    let stored = StoredWallet::of(site);
    let by_reference: BTreeMap<_, _> =
        stored.invoices.iter().map(|invoice| (invoice.reference.as_deref(), invoice)).collect();
    assert_eq!(by_reference.len(), stored.invoices.len(), "an invoice was created twice");
    for (key, text) in &asked.acknowledged {
        let invoice = by_reference.get(&Some(key)).unwrap_or_else(|| panic!("{key} is lost"));
        let wire = invoice.to_json(invoice.created_at);
        assert_eq!(wire, *text);
    }
}

/// Checks what a server answers after the kill, and asks again for what broke off.
fn check_answers(server: &Server, asked: &Asked) {
    let client = server.wallet();
    for (index, (key, text)) in asked.acknowledged.iter().enumerate() {
        // All of them were checked on the disk.
        if index % 20 == 0 {
            let invoice: Value = serde_json::from_str(text).unwrap();
            let id = invoice["id"].as_str().unwrap();
            assert_eq!(client.get(&format!("/api/v1/invoices/{id}")).body, *text);
            assert_eq!(try_create(client, key).unwrap(), *text);
        }
    }
    for key in &asked.broken_off {
        let first = try_create(client, key).unwrap();
        assert_eq!(try_create(client, key).unwrap(), first);
    }
}
