//! A clock that is wrong.

use std::fs;
use std::thread;
use std::time::Duration;

use bsv_tests::clock::{Clock, DAY};
use bsv_tests::{Node, Site};
use serde_json::{Value, json};
use tempfile::NamedTempFile;

use crate::wallet_api::times::{HOUR, SECOND, micros, now, text};
use crate::wallet_api::{INVOICES, Owner};

/// Longer than the result of a check of readiness counts, and longer than the time between two
/// sweeps.
const A_WHILE: Duration = Duration::from_millis(2300);

/// The status of the wallet's readiness, and the reason why the clock is doubted.
fn readiness(owner: &Owner) -> (u16, Value) {
    thread::sleep(A_WHILE);
    let reply = owner.get("/readyz");
    let found: Value = serde_json::from_str(&reply.body).unwrap();
    assert_eq!(found["ready"], reply.status == 200);
    (reply.status, found["clock"].clone())
}

fn states(owner: &Owner, ids: &[String]) -> Vec<Value> {
    let states: Vec<_> = ids.iter().map(|id| owner.invoice(id)["state"].clone()).collect();
    for state in ["pending", "expired"] {
        let count = states.iter().filter(|of| **of == state).count();
        assert_eq!(owner.ids(&format!("{INVOICES}?state={state}")).len(), count);
    }
    states
}

fn create_until(owner: &Owner, expires_at: i64) -> String {
    let body = format!(r#"{{"satoshis":1,"expiresAt":"{}"}}"#, text(expires_at));
    let invoice: Value = serde_json::from_str(&owner.create(INVOICES, body)).unwrap();
    invoice["id"].as_str().unwrap().to_owned()
}

#[test]
fn after_a_jump_nothing_expires_until_the_clock_is_right_or_accepted() {
    let mut site = Owner::site();
    let clock = Clock::install(&mut site);
    let owner = Owner::start_on(site);
    let mut ids = vec![create_until(&owner, now() + 5 * HOUR)];
    assert_eq!(readiness(&owner), (200, Value::Null));
    for jump in [2 * DAY, 3 * 60 * 60, -2 * DAY, -50 * 365 * DAY] {
        clock.shift(jump);
        let soon = now() + SECOND;
        ids.push(create_until(&owner, soon));
        let created = micros(owner.invoice(ids.last().unwrap())["createdAt"].as_str().unwrap());
        assert!((soon - 2 * SECOND..soon).contains(&created), "{jump}");
        assert_eq!(readiness(&owner), (503, json!("jumped")), "{jump}");
        assert!(states(&owner, &ids).iter().all(|state| *state == "pending"), "{jump}");
        let documents = owner.server.get("/readyz");
        assert_eq!(documents.status, 200, "{}", documents.body);
        clock.shift(0);
        assert_eq!(readiness(&owner), (200, Value::Null), "{jump}");
        let last = ids.pop().unwrap();
        assert_eq!(owner.invoice(&last)["state"], "expired", "{jump}");
        assert_eq!(owner.delete(&last).status, 204);
    }
    clock.shift(6 * 60 * 60);
    assert_eq!(states(&owner, &ids), ["pending"]);
    let said = owner.site.cli_ok(&["wallet", "accept-clock"]);
    assert!(said.starts_with("The clock is accepted: the clock has jumped to "), "{said}");
    assert_eq!(states(&owner, &ids), ["expired"]);
    assert_eq!(readiness(&owner), (200, Value::Null));
    assert_eq!(owner.site.cli_ok(&["wallet", "accept-clock"]), "The clock was not doubted");
    assert_eq!(owner.site.cli_json(&["wallet", "accept-clock"]), json!({ "doubt": null }));
}

#[test]
fn a_clock_behind_the_newest_block_expires_nothing() {
    let node = Node::start();
    node.mine(1);
    let mut site = Site::on(&node);
    let clock = Clock::install(&mut site);
    clock.shift(-3 * 60 * 60);
    let mut owner = Owner::start_on(site);
    assert_eq!(readiness(&owner), (503, json!("behind-tip")));
    let late = now() - 3 * HOUR + SECOND;
    let ids = [create_until(&owner, late)];
    assert_eq!(readiness(&owner), (503, json!("behind-tip")));
    assert_eq!(states(&owner, &ids), ["pending"]);
    clock.shift(0);
    assert_eq!(readiness(&owner), (200, Value::Null));
    assert_eq!(states(&owner, &ids), ["expired"]);

    clock.shift(-5 * 60 * 60);
    owner = owner.restart();
    assert_eq!(readiness(&owner), (503, json!("behind-tip")));
    owner.site.cli_ok(&["wallet", "accept-clock"]);
    assert_eq!(readiness(&owner), (200, Value::Null));
    // At that time, the newest block is old.
    clock.set(&owner.site, 300 * DAY);
    assert_eq!(readiness(&owner), (200, Value::Null));
}

#[test]
fn the_log_tells_once_of_a_doubt_and_of_its_end() {
    let mut site = Site::new();
    let clock = Clock::install(&mut site);
    let log = NamedTempFile::new().unwrap();
    let server = site.server_logging_to(log.path());
    for shift in [DAY, 2 * DAY, 0, -DAY, 0] {
        clock.shift(shift);
        thread::sleep(A_WHILE);
    }
    assert_eq!(server.stop(), 0);
    let log = fs::read_to_string(log.path()).unwrap();
    assert_eq!(log.matches("the clock has jumped to").count(), 2, "{log}");
    assert_eq!(log.matches("the clock is believed again").count(), 2, "{log}");
}
