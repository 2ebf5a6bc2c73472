//! The list of invoices: streamed as a whole, or page by page.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bsv_tests::{Client, Site, http};
use serde_json::{Value, json};

use crate::wallet_api::owner::{check_errors, ids_of};
use crate::wallet_api::times::{SECOND, now, text};
use crate::wallet_api::{INVOICES, Owner};

/// The text of every element on all pages from this path on, with at most `limit` elements per
/// page.
fn follow(owner: &Owner, path: &str, limit: usize) -> Vec<String> {
    let mut elements = Vec::new();
    let mut path = format!("{path}{}limit={limit}", if path.contains('?') { '&' } else { '?' });
    loop {
        let reply = owner.get(&path);
        assert_eq!(reply.status, 200, "{path}: {}", reply.body);
        let page: Vec<&serde_json::value::RawValue> = serde_json::from_str(&reply.body).unwrap();
        assert!(page.len() <= limit, "{path}");
        elements.extend(page.iter().map(|invoice| invoice.get().to_owned()));
        match reply.next_page() {
            Some(next) => path = next,
            None => return elements,
        }
    }
}

fn joined(elements: &[String]) -> String {
    format!("[{}]", elements.join(","))
}

#[test]
fn the_whole_list_has_all_invoices_in_the_order_of_their_creation() {
    let owner = Owner::start();
    let mut created = Vec::new();
    for count in [0, 1, 2, 999, 1000, 1001, 2500] {
        while created.len() < count {
            let body = format!(r#"{{"satoshis":{},"description":"d"}}"#, created.len() + 1);
            created.push(owner.create(INVOICES, body));
        }
        let reply = owner.get(INVOICES);
        assert_eq!(reply.header("transfer-encoding"), Some("chunked"), "it is streamed");
        assert_eq!(reply.header("link"), None);
        assert!(reply.body == joined(&created), "the list of {count} invoices is wrong");

        let newest_first: Vec<_> = created.iter().rev().cloned().collect();
        let path = format!("{INVOICES}?order=desc");
        assert!(owner.text(&path) == joined(&newest_first), "{count}, newest first");
        for limit in [7, 1000] {
            assert!(follow(&owner, INVOICES, limit) == created, "{count} by {limit}");
            assert!(follow(&owner, &path, limit) == newest_first, "{count} by {limit}, reversed");
        }
    }
    let tail = &created[2450..];
    let after = ids_of(&serde_json::from_str(&joined(&created[2449..2450])).unwrap());
    let path = format!("{INVOICES}?after={}", after[0]);
    assert_eq!(owner.text(&path), joined(tail));
    assert_eq!(follow(&owner, &path, 1), tail);

    let request = format!("GET {INVOICES} HTTP/1.0\r\nHost: localhost\r\n\r\n");
    let reply = http::exchange(owner.client().address(), request.as_bytes(), "GET").unwrap();
    assert!(reply.body == joined(&created), "HTTP/1.0 has no chunks");
}

#[test]
fn a_page_says_whether_there_is_another_one() {
    let owner = Owner::start();
    for _ in 0..4 {
        owner.create_invoice(r#"{"satoshis":1}"#);
    }
    let ids = owner.ids(INVOICES);
    for (query, listed, next) in [
        ("?limit=1", &ids[..1], Some(format!("?limit=1&after={}", ids[0]))),
        ("?limit=3", &ids[..3], Some(format!("?limit=3&after={}", ids[2]))),
        ("?limit=4", &ids[..], None),
        ("?limit=1000", &ids[..], None),
        (&format!("?limit=2&after={}", ids[1]), &ids[2..], None),
        (
            &format!("?after={}&limit=1&state=pending", ids[1]),
            &ids[2..3],
            Some(format!("?limit=1&after={}&state=pending", ids[2])),
        ),
        (&format!("?after={}", ids[3]), &[], None),
        (&format!("?limit=5&after={}", ids[3]), &[], None),
        (&format!("?order=desc&after={}", ids[0]), &[], None),
        ("?state=paid", &[], None),
        ("?", &ids[..], None),
        ("?order=asc", &ids[..], None),
    ] {
        let reply = owner.get(&format!("{INVOICES}{query}"));
        let list: Value = serde_json::from_str(&reply.body).unwrap();
        assert_eq!(ids_of(&list), listed, "{query}");
        assert_eq!(reply.next_page(), next.map(|next| format!("{INVOICES}{next}")), "{query}");
    }
}

#[test]
fn all_that_is_wrong_with_a_query_is_told_at_once() {
    let owner = Owner::start();
    owner.create_invoice(r#"{"satoshis":1}"#);
    const LIMIT: (&str, &str) = ("limit", "must be from 1 to 1000");
    const STATE: (&str, &str) = ("state", "must be pending, paid or expired");
    const ORDER: (&str, &str) = ("order", "must be asc or desc");
    const AFTER: (&str, &str) = ("after", "must be the id of an invoice");
    for limit in ["0", "1001", "-1", "1.0", "1e2", "x", "", "18446744073709551617", "%00"] {
        let reply = owner.get(&format!("{INVOICES}?limit={limit}"));
        check_errors(&reply, "invalid-query", &[LIMIT], limit);
    }
    for state in ["", "PENDING", "Pending", "deleted", "pending,paid", "x"] {
        let reply = owner.get(&format!("{INVOICES}?state={state}"));
        check_errors(&reply, "invalid-query", &[STATE], state);
    }
    for order in ["", "ASC", "up", "1"] {
        let reply = owner.get(&format!("{INVOICES}?order={order}"));
        check_errors(&reply, "invalid-query", &[ORDER], order);
    }
    let of_another_wallet = Owner::start().create_invoice(r#"{"satoshis":1}"#);
    for after in ["", "x", "000000000000", "1", "%2e%2e", &of_another_wallet, &"a".repeat(8000)] {
        let reply = owner.get(&format!("{INVOICES}?after={after}"));
        check_errors(&reply, "invalid-query", &[AFTER], after);
    }
    let reply = owner.get(&format!("{INVOICES}?state=x&after=x&order=x&limit=x&other=x"));
    let other = ("other", "is not known here");
    check_errors(&reply, "invalid-query", &[AFTER, LIMIT, ORDER, other, STATE], "all");
    let reply = owner.get(&format!("{INVOICES}?reference=a&limit=1"));
    check_errors(&reply, "invalid-query", &[("reference", "must stand alone")], "reference");
    let reply = owner.get(&format!("{INVOICES}?txid=x"));
    check_errors(&reply, "invalid-query", &[("txid", "must be 64 hexadecimal characters")], "txid");
    for path in ["/api/v1/balance?x=1", "/api/v1/users/1?x", "/api/v1/invoices/000000000000?x=1"] {
        let unknown = ("x", "is not known here");
        check_errors(&owner.get(path), "invalid-query", &[unknown], path);
    }
}

#[test]
fn invoices_are_found_by_their_references() {
    let owner = Owner::start();
    let create = |reference: &str| {
        owner.create_invoice(json!({ "satoshis": 1, "reference": reference }).to_string())
    };
    let ids = ["a", "b", "a", "a b&c"].map(create);
    let of = |reference: &str| owner.ids(&format!("{INVOICES}?reference={reference}"));
    assert_eq!(of("a"), [ids[2].clone(), ids[0].clone()]);
    assert_eq!(of("a+b%26c"), [ids[3].clone()]);
    assert_eq!(of("").len() + of("A").len(), 0);
    assert_eq!(owner.delete(&ids[2]).status, 204);
    assert_eq!(of("a"), [ids[0].clone()]);
}

#[test]
fn a_state_selects_the_invoices_in_that_state() {
    let owner = Owner::start();
    let soon = now() + 3 * SECOND;
    let expires_at = text(soon);
    for number in 0..60 {
        let body = match number % 3 {
            0 => format!(r#"{{"satoshis":1,"expiresAt":"{expires_at}"}}"#),
            _ => r#"{"satoshis":1}"#.to_owned(),
        };
        owner.create(INVOICES, body);
    }
    let ids = owner.ids(INVOICES);
    thread::sleep(Duration::from_micros((soon - now()).max(0).unsigned_abs()));
    let in_state = |wanted: [usize; 2]| -> Vec<String> {
        let numbered = ids.iter().enumerate();
        numbered.filter(|(n, _)| wanted.contains(&(n % 3))).map(|(_, id)| id.clone()).collect()
    };
    for (state, wanted) in
        [("expired", in_state([0, 0])), ("pending", in_state([1, 2])), ("paid", vec![])]
    {
        for (order, wanted) in
            [("asc", wanted.clone()), ("desc", wanted.into_iter().rev().collect())]
        {
            let path = format!("{INVOICES}?state={state}&order={order}");
            assert_eq!(owner.ids(&path), wanted, "{path}");
            for limit in [1, 7, 1000] {
                let list: Value =
                    serde_json::from_str(&joined(&follow(&owner, &path, limit))).unwrap();
                assert_eq!(ids_of(&list), wanted, "{path} by {limit}");
                let states = list.as_array().unwrap().iter().map(|invoice| &invoice["state"]);
                assert!(states.into_iter().all(|shown| shown == state), "{path}");
            }
        }
    }
}

#[test]
fn deleted_invoices_are_left_out_and_a_list_can_continue_after_one() {
    let owner = Owner::start();
    for _ in 0..30 {
        owner.create_invoice(r#"{"satoshis":1}"#);
    }
    let ids = owner.ids(INVOICES);
    let is_deleted = |n: usize| n == 0 || n == 29 || (5..20).contains(&n);
    for (n, id) in ids.iter().enumerate() {
        if is_deleted(n) {
            assert_eq!(owner.delete(id).status, 204);
        }
    }
    let left = |from: usize| -> Vec<String> {
        (from..30).filter(|n| !is_deleted(*n)).map(|n| ids[n].clone()).collect()
    };
    assert_eq!(owner.ids(INVOICES), left(0));
    for limit in [1, 3, 7, 1000] {
        let list = joined(&follow(&owner, INVOICES, limit));
        assert_eq!(ids_of(&serde_json::from_str(&list).unwrap()), left(0), "{limit}");
    }
    for (n, id) in ids.iter().enumerate() {
        assert_eq!(owner.ids(&format!("{INVOICES}?after={id}")), left(n + 1), "{n}");
    }
}

/// Asks for the list, and reads only its beginning.
pub(crate) fn begin_to_read(owner: &Owner) -> TcpStream {
    begin_to_read_with(owner.client(), "")
}

/// The same with these header lines.
fn begin_to_read_with(client: &Client, headers: &str) -> TcpStream {
    let mut stream = TcpStream::connect(client.address()).unwrap();
    let request =
        format!("GET {INVOICES} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    stream.read_exact(&mut [0; 15]).unwrap();
    stream
}

/// A wallet whose list is much larger than the buffers of a connection: 16 MB for 2500 invoices.
pub(crate) fn large(count: usize) -> Owner {
    large_on(Site::new(), count)
}

/// The same on a site.
pub(crate) fn large_on(site: Site, count: usize) -> Owner {
    let owner = Owner::start_on(site);
    assert_eq!(owner.create_many(count, &"\u{1}".repeat(1024)).len(), count);
    owner
}

#[test]
fn a_list_ends_with_the_invoice_that_was_newest_at_its_start() {
    const SMALL: &str = r#"{"satoshis":2}"#;
    // This is more than the server reads ahead.
    let owner = large(4500);
    let before = owner.ids(INVOICES);
    let mut stream = begin_to_read(&owner);
    // The server looks up the newest invoice before it sends the first page.
    let mut answer = vec![0; 10_000];
    stream.read_exact(&mut answer).unwrap();
    let mut added: Vec<_> = (0..50).map(|_| owner.create_invoice(SMALL)).collect();
    let is_read = AtomicBool::new(false);
    let create_until_it_is_read = || {
        let mut created = Vec::new();
        while !is_read.load(Ordering::Relaxed) {
            created.push(owner.create_invoice(SMALL));
        }
        created
    };
    thread::scope(|scope| {
        let others = scope.spawn(create_until_it_is_read);
        let read = stream.read_to_end(&mut answer);
        is_read.store(true, Ordering::Relaxed);
        read.unwrap();
        added.extend(others.join().unwrap());
    });
    let text = String::from_utf8(answer).unwrap();
    assert!(text.ends_with("]\r\n0\r\n\r\n"), "the list breaks off");
    let shown: Vec<_> = text.split("{\"id\":\"").skip(1).map(|invoice| &invoice[..12]).collect();
    assert_eq!(shown.len(), before.len());
    assert!(shown == before, "the list differs");
    assert!(owner.ids(INVOICES) == [before, added].concat());
}

/// The memory of the server once it has stopped growing.
fn memory_at_rest(owner: &Owner) -> u64 {
    let mut before = 0;
    loop {
        let memory = owner.server.resident_memory();
        if memory <= before {
            return memory;
        }
        before = memory;
        thread::sleep(Duration::from_millis(500));
    }
}

#[test]
fn readers_that_leave_or_never_read_do_not_delay_others() {
    let owner = large(6000);
    for _ in 0..50 {
        drop(begin_to_read(&owner));
    }
    assert_eq!(owner.ids(INVOICES).len(), 6000);

    let owner = owner.restart();
    let memory = owner.server.resident_memory();
    let mut readers: Vec<_> = (0..8).map(|_| begin_to_read(&owner)).collect();
    let growth = memory_at_rest(&owner).saturating_sub(memory) >> 20;
    println!("8 readers make the server grow from {} MB by {growth} MB", memory >> 20);
    // Each list keeps three pages, of 6.4 MB here, and buffers to write them. If it kept all of its
    // 38 MB, the server would grow by 450 MB.
    assert!(growth < 350, "{growth} MB");
    let id = owner.create_invoice(r#"{"satoshis":1}"#);
    assert_eq!(owner.invoice(&id)["satoshis"], 1);
    assert_eq!(owner.text("/api/v1/balance"), r#"{"satoshis":0}"#);
    assert_eq!(owner.ids(&format!("{INVOICES}?limit=1000")).len(), 1000);
    assert_eq!(owner.delete(&id).status, 204);
    // The lists of the waiting readers were not broken off.
    let mut list = Vec::new();
    readers[0].read_to_end(&mut list).unwrap();
    assert!(list.ends_with(b"]\r\n0\r\n\r\n"), "the list breaks off");
    drop(readers);
    assert_eq!(owner.ids(INVOICES).len(), 6000);
}

#[test]
fn a_list_breaks_off_visibly_when_the_token_of_its_reader_is_revoked() {
    let Owner { mut site, server } = large(2500);
    assert_eq!(server.stop(), 0);
    site.set("auth", json!({ "requireToken": true }));
    let server = site.server();
    let tokens = [(); 2].map(|()| site.cli_json(&["token", "create", "--scope", "wallet:read"]));
    let [mut whole, mut broken] = tokens.each_ref().map(|token| {
        let header = format!("Authorization: Bearer {}\r\n", token["token"].as_str().unwrap());
        begin_to_read_with(server.wallet(), &header)
    });
    site.cli_ok(&["token", "revoke", "--yes", tokens[1]["id"].as_str().unwrap()]);
    let mut answer = Vec::new();
    // The server may reset the connection.
    let _ = broken.read_to_end(&mut answer);
    assert!(!answer.ends_with(b"0\r\n\r\n"), "the list has a proper end");
    answer.clear();
    whole.read_to_end(&mut answer).unwrap();
    assert!(answer.ends_with(b"]\r\n0\r\n\r\n"), "the other list breaks off");
}

#[test]
fn a_reader_that_pauses_too_long_gets_a_visibly_incomplete_list() {
    let owner = large(2500);
    let mut readers: Vec<_> = (0..8).map(|_| begin_to_read(&owner)).collect();
    let started = Instant::now();
    let refused = owner.get(INVOICES);
    crate::wallet_api::check_problem(&refused, 503, "too-many-lists", INVOICES);
    assert_eq!(refused.header("retry-after"), Some("5"));

    thread::sleep(Duration::from_secs(35).saturating_sub(started.elapsed()));
    assert_eq!(owner.ids(INVOICES).len(), 2500);
    let mut answer = Vec::new();
    // The server may reset the connection.
    let _ = readers[0].read_to_end(&mut answer);
    let text = String::from_utf8_lossy(&answer);
    let shown = text.matches("\"createdAt\"").count();
    assert!(shown < 2500, "the list is too small to make the server wait");
    assert!(!text.ends_with("0\r\n\r\n"), "the answer has a proper end after {shown} of 2500");
}
