//! A disk that is full, or does not take what is written, while the wallet is used.

#![allow(clippy::unwrap_used)]

use std::thread;
use std::time::{Duration, Instant};

use bsv_tests::faults::{EIO, ENOSPC, Fault, Faults, Operations};
use bsv_tests::wallet::StoredWallet;
use bsv_tests::{Client, Reply, Server, Site};
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::{Value, json};

const JSON: (&str, &str) = ("Content-Type", "application/json");

fn site() -> Site {
    let mut site = Site::new();
    site.set_env("BSV_LOG", "off");
    site
}

fn create(client: &Client, reference: &str) -> Reply {
    let body = json!({ "satoshis": 1000, "reference": reference }).to_string();
    let headers = [JSON, ("Idempotency-Key", reference)];
    client.send("POST", "/api/v1/invoices", &headers, body.as_bytes())
}

/// The member of a JSON answer.
fn member(reply: &Reply, name: &str) -> String {
    let body: Value = serde_json::from_str(&reply.body).unwrap();
    body[name].as_str().unwrap().to_owned()
}

/// Checks that all that does not write is answered.
fn check_reads(client: &Client, first: &Reply) {
    let reply = client.get(&format!("/api/v1/invoices/{}", member(first, "id")));
    assert_eq!((reply.status, &reply.body), (200, &first.body));
    for path in ["/api/v1/balance", "/api/v1/invoices?limit=1", "/api/v1/users/1"] {
        assert_eq!(client.get(path).status, 200, "{path}");
    }
}

/// A refusal that tells the truth about the disk and about what became of the invoice.
fn check_refusal(reply: &Reply, error: i32, is_stored: bool) {
    assert_eq!(reply.status, 503, "{}", reply.body);
    let code = if error == ENOSPC { "disk-full" } else { "disk-failed" };
    assert_eq!(member(reply, "code"), code, "{}", reply.body);
    let detail = member(reply, "detail");
    assert!(!is_stored || detail.contains("may or may not"), "stored, but: {detail}");
}

const FULL: Fault = Fault {
    operations: Operations::TakingRoom,
    first: 0,
    span: u64::MAX,
    torn: false,
    error: ENOSPC,
};
const BROKEN: Fault = Fault { operations: Operations::Syncing, error: EIO, ..FULL };
const KINDS: [Fault; 6] = [
    FULL,
    BROKEN,
    Fault { torn: true, ..FULL },
    Fault { span: 1, ..FULL },
    Fault { error: ENOSPC, ..BROKEN },
    Fault { span: 1, ..BROKEN },
];

#[test]
fn whatever_fails_while_an_invoice_is_created_it_is_refused_and_later_created() {
    let mut site = site();
    let faults = Faults::install(&mut site);
    let server = site.server();
    let client = server.wallet();
    let first = create(client, "first");
    assert_eq!(client.post("/api/v1/users", r#"{"name":"Ada"}"#).status, 201);
    for (kind_number, kind) in KINDS.into_iter().enumerate() {
        let mut hits = 0;
        for number in 0.. {
            let fault = Fault { first: number, ..kind };
            let reference = format!("{kind_number}-{number}");
            faults.begin(fault);
            let reply = create(client, &reference);
            let is_hit = faults.count(kind.operations) > number;
            check_reads(client, &first);
            faults.end();

            let stored = StoredWallet::of(&site);
            let is_stored = stored.with_reference(&reference).is_some();
            if reply.status == 201 {
                assert!(is_stored, "{fault:?} lost what was acknowledged");
            } else {
                check_refusal(&reply, kind.error, is_stored);
            }
            let again = create_at_last(client, &reference);
            if !is_hit {
                assert_eq!(reply.body, again.body, "{fault:?}");
                break;
            }
            hits += 1;
        }
        println!("{hits} operations, each with {kind:?}");
        assert!(hits >= 2, "the faults do not reach the wallet any more: {hits}");
    }
    server.kill();
    let stored = StoredWallet::of(&site);
    check_reads(site.server().wallet(), &first);
    assert!(stored.with_reference("first").is_some());
}

#[test]
fn a_disk_that_stays_full_is_tried_again_and_works_as_soon_as_there_is_room() {
    let mut site = site();
    let faults = Faults::install(&mut site);
    let server = site.server();
    let client = server.wallet();
    let first = create(client, "first");
    assert_eq!(client.post("/api/v1/users", r#"{"name":"Ada"}"#).status, 201);
    faults.begin(FULL);
    thread::scope(|scope| {
        for thread in 0..8 {
            let first = &first;
            scope.spawn(move || {
                for count in 0..50 {
                    let refused = create(client, &format!("full-{thread}-{count}"));
                    check_refusal(&refused, ENOSPC, false);
                    check_reads(client, first);
                }
            });
        }
    });
    faults.end();
    create_at_last(client, "room");
    let stored = StoredWallet::of(&site);
    let references: Vec<_> =
        stored.invoices.iter().filter_map(|invoice| invoice.reference.as_deref()).collect();
    assert_eq!(references, ["first", "room"]);
}

/// Creates an invoice, for which a disk that failed often may have to be waited for.
fn create_at_last(client: &Client, reference: &str) -> Reply {
    let started = Instant::now();
    loop {
        let reply = create(client, reference);
        if reply.status == 201 {
            return reply;
        }
        assert!(started.elapsed() < Duration::from_secs(20), "it does not recover");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn the_wallet_survives_a_limit_on_the_size_of_files() {
    let site = site();
    let server = site.server();
    let client = server.wallet();
    let first = create(client, "first");
    assert_eq!(client.post("/api/v1/users", r#"{"name":"Ada"}"#).status, 201);
    for bytes in [0, 4096, 1 << 16] {
        limit_file_size(&server, Some(bytes));
        let refused = create(client, &format!("limited-{bytes}"));
        check_refusal(&refused, ENOSPC, false);
        check_reads(client, &first);
        limit_file_size(&server, None);
        create_at_last(client, &format!("unlimited-{bytes}"));
    }
    server.kill();
    let stored = StoredWallet::of(&site);
    for bytes in [0, 4096, 1 << 16] {
        assert!(stored.with_reference(&format!("limited-{bytes}")).is_none());
        assert!(stored.with_reference(&format!("unlimited-{bytes}")).is_some());
    }
}

fn limit_file_size(server: &Server, bytes: Option<u64>) {
    let pid = Pid::from_raw(server.id().try_into().unwrap());
    prlimit(pid, Resource::Fsize, Rlimit { current: bytes, maximum: None }).unwrap();
}

#[test]
fn a_log_that_cannot_be_written_is_no_reason_to_end() {
    let mut site = Site::new();
    site.run_under(&["sh", "-c", r#"exec "$@" 2>/dev/full"#, "sh"]);
    let server = site.server();
    let client = server.wallet();
    let first = create(client, "first");
    assert_eq!(client.post("/api/v1/users", r#"{"name":"Ada"}"#).status, 201);
    limit_file_size(&server, Some(0));
    for count in 0..3 {
        check_refusal(&create(client, &format!("limited-{count}")), ENOSPC, false);
        check_reads(client, &first);
        // The sweep fails meanwhile, and says so.
        thread::sleep(Duration::from_millis(600));
    }
    limit_file_size(&server, None);
    create_at_last(client, "unlimited");
    assert_eq!(server.stop(), 0);
}
