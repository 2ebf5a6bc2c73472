//! How invoices expire, also when the clock is set.

use std::thread;
use std::time::Duration;

use bsv_tests::Site;
use bsv_tests::clock::{Clock, DAY};
use serde_json::Value;

use crate::wallet_api::times::{HOUR, SECOND, micros, now, text, without_fraction};
use crate::wallet_api::{INVOICES, Owner};

/// Longer than the time between two sweeps.
const SWEEP: Duration = Duration::from_millis(1500);

fn with_clock() -> (Owner, Clock) {
    let mut site = Site::new();
    let clock = Clock::install(&mut site);
    (Owner::start_on(site), clock)
}

/// Creates an invoice that expires at this time. Gives the body of the answer.
fn create_until(owner: &Owner, expires_at: &str) -> String {
    owner.create(INVOICES, format!(r#"{{"satoshis":1,"expiresAt":"{expires_at}"}}"#))
}

fn id_of(text: &str) -> String {
    let invoice: Value = serde_json::from_str(text).unwrap();
    invoice["id"].as_str().unwrap().to_owned()
}

/// The text that a pending invoice has once it has expired.
fn expired(pending: &str) -> String {
    let invoice: Value = serde_json::from_str(pending).unwrap();
    let member = |name: &str| invoice[name].as_str().unwrap().to_owned();
    let updated_at = |text: &str| format!("\"updatedAt\":\"{}\"", without_fraction(text));
    let text = pending
        .replace("\"state\":\"pending\"", "\"state\":\"expired\"")
        .replace(&updated_at(&member("createdAt")), &updated_at(&member("expiresAt")));
    assert_ne!(text, pending);
    text
}

/// Checks that every answer that shows invoices shows these, all of which have expired.
fn check_expired(owner: &Owner, invoices: &[String]) {
    for text in invoices {
        let path = format!("{INVOICES}/{}", id_of(text));
        assert_eq!(&owner.text(&path), text);
        assert_eq!(owner.text(&format!("{path}/payments")), "[]");
    }
    let whole = format!("[{}]", invoices.join(","));
    let reversed = invoices.iter().rev().cloned().collect::<Vec<_>>().join(",");
    for (query, list) in [
        ("", whole.as_str()),
        ("?limit=1000", &whole),
        ("?state=expired", &whole),
        ("?state=expired&limit=1000", &whole),
        ("?state=expired&order=desc", &format!("[{reversed}]")),
        ("?state=pending", "[]"),
        ("?state=pending&limit=1000", "[]"),
        ("?state=paid", "[]"),
    ] {
        assert_eq!(owner.text(&format!("{INVOICES}{query}")), list, "{query}");
    }
}

#[test]
fn an_invoice_expires_at_its_moment_and_not_before() {
    let owner = Owner::start();
    let expires_at = now() + 1_234_567;
    let pending = create_until(&owner, &text(expires_at));
    let path = format!("{INVOICES}/{}", id_of(&pending));
    let mut shown_pending = 0;
    loop {
        let asked_at = now();
        let shown = owner.text(&path);
        if shown == pending {
            assert!(asked_at < expires_at, "{} too late", now() - expires_at);
            shown_pending += 1;
        } else {
            assert!(now() >= expires_at, "{} too early", expires_at - now());
            assert_eq!(shown, expired(&pending));
            break;
        }
    }
    assert!(shown_pending > 0);
    check_expired(&owner, &[expired(&pending)]);
    thread::sleep(SWEEP);
    check_expired(&owner, &[expired(&pending)]);
    check_expired(&owner.restart(), &[expired(&pending)]);
}

#[test]
fn expired_invoices_are_shown_as_expired_before_and_after_the_sweep() {
    let (owner, clock) = with_clock();
    let fractions = ["000000", "000001", "999999"];
    let day = text(now() + 12 * HOUR);
    let times = fractions.map(|fraction| format!("{}.{fraction}Z", &day[..19]));
    let mut invoices: Vec<_> =
        times.iter().map(|time| expired(&create_until(&owner, time))).collect();
    invoices.push(expired(&owner.create(INVOICES, r#"{"satoshis":1}"#)));
    thread::sleep(SWEEP);
    clock.set(&owner.site, 2 * DAY);
    check_expired(&owner, &invoices);
    thread::sleep(SWEEP);
    check_expired(&owner, &invoices);
    let owner = owner.restart_after_kill();
    check_expired(&owner, &invoices);
}

#[test]
fn a_clock_that_is_set_back_revives_no_invoice() {
    let (mut owner, clock) = with_clock();
    let invoices = [
        expired(&owner.create(INVOICES, r#"{"satoshis":1}"#)),
        expired(&create_until(&owner, &text(now() + HOUR))),
    ];
    clock.set(&owner.site, 2 * DAY);
    check_expired(&owner, &invoices);
    clock.set(&owner.site, 0);
    check_expired(&owner, &invoices);
    clock.set(&owner.site, 2 * DAY);
    thread::sleep(SWEEP);
    for shift in [DAY, 0, -DAY, -30 * 365 * DAY] {
        clock.set(&owner.site, shift);
        check_expired(&owner, &invoices);
    }
    let restarts: [fn(Owner) -> Owner; 2] = [Owner::restart, Owner::restart_after_kill];
    for restart in restarts {
        owner = restart(owner);
        check_expired(&owner, &invoices);
    }
    let last_event = now() + (2 * DAY - 60) * SECOND;
    let mut before = last_event;
    for _ in 0..3 {
        let created: Value =
            serde_json::from_str(&owner.create(INVOICES, r#"{"satoshis":1}"#)).unwrap();
        let created_at = micros(created["createdAt"].as_str().unwrap());
        assert!(created_at >= before, "{created} is before {}", text(before));
        assert_eq!(micros(created["expiresAt"].as_str().unwrap()), created_at + 24 * HOUR);
        assert_eq!(created["state"], "pending");
        before = created_at;
    }
    let now_past = text(now() + HOUR);
    let refused = owner.post(INVOICES, format!(r#"{{"satoshis":1,"expiresAt":"{now_past}"}}"#));
    let message = [("expiresAt", "must be in the future")];
    crate::wallet_api::owner::check_errors(&refused, "invalid-fields", &message, &now_past);
    assert_eq!(owner.ids(&format!("{INVOICES}?state=pending")).len(), 3);
}

#[test]
fn after_a_clock_was_ahead_times_continue_from_the_last_event() {
    let (owner, clock) = with_clock();
    clock.set(&owner.site, DAY);
    let ahead = owner.create(INVOICES, r#"{"satoshis":1}"#);
    clock.set(&owner.site, 0);
    let owner = owner.restart();
    let back = owner.create(INVOICES, r#"{"satoshis":1}"#);
    let created_at = |text: &str| -> String {
        let invoice: Value = serde_json::from_str(text).unwrap();
        invoice["createdAt"].as_str().unwrap().to_owned()
    };
    assert_eq!(created_at(&back), created_at(&ahead));
    clock.set(&owner.site, DAY + 60);
    let later = owner.create(INVOICES, r#"{"satoshis":1}"#);
    assert!(micros(&created_at(&later)) > micros(&created_at(&back)) + 50 * SECOND, "{later}");
    assert_eq!(owner.text(INVOICES), format!("[{ahead},{back},{later}]"));
}

#[test]
fn expired_invoices_can_be_deleted_before_and_after_the_sweep() {
    let (owner, clock) = with_clock();
    let ids = [1, 2].map(|_| id_of(&owner.create(INVOICES, r#"{"satoshis":1}"#)));
    clock.set(&owner.site, 2 * DAY);
    for (id, left) in [(&ids[0], 1), (&ids[1], 0)] {
        assert_eq!(owner.invoice(id)["state"], "expired");
        assert_eq!(owner.delete(id).status, 204);
        assert_eq!(owner.delete(id).status, 404);
        assert_eq!(owner.get(&format!("{INVOICES}/{id}")).status, 404);
        assert_eq!(owner.ids(&format!("{INVOICES}?state=expired")).len(), left);
        thread::sleep(SWEEP);
    }
    owner.restart().check_alive(0);
}

#[test]
fn many_invoices_that_expire_at_once_are_shown_as_expired_at_once() {
    let (owner, clock) = with_clock();
    owner.create_many(1200, "many");
    clock.set(&owner.site, 2 * DAY);
    assert_eq!(owner.ids(&format!("{INVOICES}?state=expired")).len(), 1200);
    assert_eq!(owner.ids(&format!("{INVOICES}?state=pending")).len(), 0);
    thread::sleep(SWEEP);
    owner.create_invoice(r#"{"satoshis":1}"#);
    assert_eq!(owner.ids(&format!("{INVOICES}?state=expired")).len(), 1200);
    assert_eq!(owner.ids(&format!("{INVOICES}?state=pending")).len(), 1);
}
