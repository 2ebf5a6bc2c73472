//! A request that is repeated with its idempotency key is done once, and gets the first answer
//! again.

use std::collections::BTreeSet;
use std::thread;

use bsv_tests::Reply;
use bsv_tests::clock::{Clock, DAY};

use crate::wallet_api::times::{SECOND, now, text};
use crate::wallet_api::{INVOICES, Owner, USERS, check_problem};

const INVOICE: &str = r#"{"satoshis":5,"description":"d"}"#;
const USER: &str = r#"{"name":"me"}"#;
const ROUTES: [(&str, &str); 2] = [(INVOICES, INVOICE), (USERS, USER)];

/// Another valid body for a path.
fn other_body(path: &str) -> &'static str {
    if path == USERS { r#"{"name":"n"}"# } else { r#"{"satoshis":9}"# }
}

/// The parts of an answer that a caller depends on.
fn essence(reply: &Reply) -> (u16, &str, [Option<&str>; 3]) {
    let headers = ["content-type", "location", "link"].map(|name| reply.header(name));
    (reply.status, &reply.body, headers)
}

fn create(owner: &Owner, path: &str, key: &str, body: &str) -> Reply {
    let reply = owner.post_with_key(path, key, body);
    assert_eq!(reply.status, 201, "{path} {key} {body}: {}", reply.body);
    reply
}

fn check_same(owner: &Owner, path: &str, key: &str, body: &str, first: &Reply) {
    let again = owner.post_with_key(path, key, body);
    assert_eq!(essence(&again), essence(first), "{path} {key}");
}

fn id_of(reply: &Reply) -> String {
    reply.header("location").unwrap().rsplit('/').next().unwrap().to_owned()
}

#[test]
fn the_same_request_is_answered_as_first_also_after_a_restart_and_a_kill() {
    let mut owner = Owner::start();
    let firsts = ROUTES.map(|(path, body)| create(&owner, path, "key", body));
    let restarts: [fn(Owner) -> Owner; 3] =
        [|owner| owner, Owner::restart, Owner::restart_after_kill];
    for restart in restarts {
        owner = restart(owner);
        for ((path, body), first) in ROUTES.iter().zip(&firsts) {
            check_same(&owner, path, "key", body, first);
            check_same(&owner, path, "key", body, first);
        }
        owner.check_alive(1);
        assert_eq!(owner.get(&format!("{USERS}/2")).status, 404);
    }
}

#[test]
fn the_key_of_a_request_is_still_known_if_a_kill_swallows_the_answer() {
    for _ in 0..5 {
        let owner = Owner::start();
        let first = create(&owner, INVOICES, "key", INVOICE);
        let owner = owner.restart_after_kill();
        check_same(&owner, INVOICES, "key", INVOICE, &first);
        owner.check_alive(1);
    }
}

#[test]
fn another_body_is_a_conflict() {
    let owner = Owner::start();
    let firsts = ROUTES.map(|(path, body)| create(&owner, path, "key", body));
    for (path, body) in [
        (INVOICES, r#"{"satoshis":6}"#),
        (INVOICES, r#"{"satoshis":5,"description":"d" }"#),
        (INVOICES, r#"{"description":"d","satoshis":5}"#),
        (USERS, r#"{"name":"you"}"#),
    ] {
        let reply = owner.post_with_key(path, "key", body);
        check_problem(&reply, 409, "idempotency-key-reused", body);
    }
    for ((path, body), first) in ROUTES.iter().zip(&firsts) {
        check_same(&owner, path, "key", body, first);
    }
    owner.check_alive(1);
}

#[test]
fn a_key_is_known_per_route_and_as_it_is_written() {
    let owner = Owner::start();
    let [(_, invoice), (_, user)] = ROUTES;
    let mut ids = BTreeSet::new();
    for key in ["key", "KEY", "key ", "k", "key2"] {
        // White space around the value of a header is not part of it.
        let is_new = key != "key ";
        assert_eq!(ids.insert(id_of(&create(&owner, INVOICES, key, invoice))), is_new, "{key}");
        assert_eq!(ids.insert(id_of(&create(&owner, USERS, key, user))), is_new, "{key}");
    }
    owner.check_alive(4);
}

#[test]
fn requests_at_the_same_time_are_done_once() {
    let owner = Owner::start();
    for round in 0..20 {
        for (path, body) in ROUTES {
            let key = format!("key {round}");
            let send = || create(&owner, path, &key, body);
            let replies: Vec<_> = thread::scope(|scope| {
                let threads: Vec<_> = (0..16).map(|_| scope.spawn(send)).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            for reply in &replies {
                assert_eq!(essence(reply), essence(&replies[0]), "{path}");
            }
        }
        assert_eq!(owner.ids(INVOICES).len(), round + 1);
        assert_eq!(owner.get(&format!("{USERS}/{}", round + 1)).status, 200);
        assert_eq!(owner.get(&format!("{USERS}/{}", round + 2)).status, 404);
    }
}

#[test]
fn one_of_several_simultaneous_bodies_with_the_same_key_wins() {
    let owner = Owner::start();
    for round in 0..20 {
        let key = format!("key {round}");
        let send = |amount: usize| {
            let body = format!(r#"{{"satoshis":{amount}}}"#);
            (owner.post_with_key(INVOICES, &key, &body), body)
        };
        let replies: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = (1..=8).map(|n| scope.spawn(move || send(n))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let (won, lost): (Vec<_>, Vec<_>) =
            replies.iter().partition(|(reply, _)| reply.status == 201);
        assert_eq!(won.len(), 1);
        for (reply, body) in lost {
            check_problem(reply, 409, "idempotency-key-reused", body);
        }
        check_same(&owner, INVOICES, &key, &won[0].1, &won[0].0);
    }
    owner.check_alive(20);
}

#[test]
fn what_is_refused_does_not_use_its_key_up() {
    let owner = Owner::start();
    for (path, body) in ROUTES {
        for refused in ["{}", "", "[", r#"{"satoshis":0,"name":""}"#] {
            assert_eq!(owner.post_with_key(path, "key", refused).status, 400, "{refused}");
        }
        let past = r#"{"satoshis":5,"expiresAt":"2020-01-01T00:00:00Z","name":1}"#;
        assert_eq!(owner.post_with_key(path, "key", past).status, 400);
        let headers = [("Idempotency-Key", "key")];
        assert_eq!(owner.client().send("POST", path, &headers, body.as_bytes()).status, 415);
        let too_large = " ".repeat((1 << 20) + 1);
        assert_eq!(owner.post_with_key(path, "key", too_large).status, 413);
        let first = create(&owner, path, "key", body);
        assert_eq!(owner.post_with_key(path, "key", "{}").status, 400);
        check_same(&owner, path, "key", body, &first);
    }
    owner.check_alive(1);
}

#[test]
fn an_invoice_that_was_deleted_is_still_the_first_answer() {
    let owner = Owner::start();
    let first = create(&owner, INVOICES, "key", INVOICE);
    let id = id_of(&first);
    assert_eq!(owner.delete(&id).status, 204);
    check_same(&owner, INVOICES, "key", INVOICE, &first);
    assert_eq!(owner.get(&format!("{INVOICES}/{id}")).status, 404);
    owner.check_alive(0);
    check_same(&owner.restart(), INVOICES, "key", INVOICE, &first);
}

#[test]
fn an_invoice_that_has_expired_is_still_the_first_answer() {
    let mut site = Owner::site();
    let clock = Clock::install(&mut site);
    let owner = Owner::start_on(site);
    let body = format!(r#"{{"satoshis":1,"expiresAt":"{}"}}"#, text(now() + 600 * SECOND));
    let first = create(&owner, INVOICES, "key", &body);
    clock.set(&owner.site, DAY / 2);
    assert_eq!(owner.invoice(&id_of(&first))["state"], "expired");
    assert_eq!(owner.post_with_key(INVOICES, "new", &body).status, 400);
    check_same(&owner, INVOICES, "key", &body, &first);
    check_same(&owner.restart(), INVOICES, "key", &body, &first);
}

#[test]
fn a_key_is_forgotten_after_a_day() {
    let mut site = Owner::site();
    let clock = Clock::install(&mut site);
    let mut owner = Owner::start_on(site);
    let firsts = ROUTES.map(|(path, body)| create(&owner, path, "key", body));
    for (is_restarted, shift) in [(false, DAY - 60), (true, DAY - 30)] {
        clock.set(&owner.site, shift);
        if is_restarted {
            owner = owner.restart();
        }
        for ((path, body), first) in ROUTES.iter().zip(&firsts) {
            check_same(&owner, path, "key", body, first);
        }
    }
    clock.set(&owner.site, DAY + 1);
    for ((path, body), first) in ROUTES.iter().zip(&firsts) {
        let second = create(&owner, path, "key", body);
        assert_ne!(id_of(&second), id_of(first), "{path}");
        check_same(&owner, path, "key", body, &second);
        let other = owner.post_with_key(path, "key", other_body(path));
        check_problem(&other, 409, "idempotency-key-reused", path);
    }
    clock.set(&owner.site, 3 * DAY);
    // The sweep runs every second.
    thread::sleep(std::time::Duration::from_millis(1500));
    for (path, _) in ROUTES {
        create(&owner, path, "key", other_body(path));
    }
    owner.check_alive(3);
}
