//! Reading page by page, and waiting for events.

use std::io::Write;
use std::net::TcpStream;
use std::thread;

use bsv_tests::{Client, Dice, Reply, Site};
use serde_json::{Value, json};

use crate::events::{EVENTS, Shop, check_problem, log, page, read};

/// The path of the next page in `Link`.
fn next_of(reply: &Reply) -> String {
    let link = reply.header("link").unwrap_or_else(|| panic!("{reply:?}"));
    let target = link.strip_prefix('<').and_then(|link| link.strip_suffix(">; rel=\"next\""));
    target.unwrap_or_else(|| panic!("{link}")).to_owned()
}

/// The events on all pages from this path on.
fn follow(client: &Client, path: String, limit: usize) -> Vec<Value> {
    let mut events = Vec::new();
    let mut path = path;
    loop {
        let reply = client.get(&path);
        assert_eq!(reply.status, 200, "{path}: {}", reply.body);
        let page = read(&reply);
        let found = page["events"].as_array().unwrap();
        assert!(found.len() <= limit, "{path}");
        events.extend(found.iter().cloned());
        if page["next"] == page["last"] {
            return events;
        }
        path = next_of(&reply);
    }
}

/// Whether a filter selects events of a type.
type Filter = fn(&str) -> bool;

fn kind(event: &Value) -> &str {
    event["type"].as_str().unwrap()
}

#[test]
fn an_event_has_the_form_of_the_contract() {
    let shop = Shop::start();
    let empty = page(shop.client(), EVENTS);
    let name = empty["log"].as_str().unwrap().to_owned();
    assert!(name.len() == 8 && name.bytes().all(|c| c.is_ascii_hexdigit()), "{name}");
    assert_eq!(empty, json!({ "log": name, "events": [], "next": 0, "last": 0 }));
    let id = shop.create_invoice("order 7");
    shop.create_user();
    let invoice = shop.client().get(&format!("/api/v1/invoices/{id}"));
    let invoice = read(&invoice);
    let reply = shop.client().get(EVENTS);
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    let events = [
        json!({
            "id": format!("evt_{name}_1"), "number": 1, "type": "invoice.created",
            "timestamp": invoice["createdAt"],
            "data": {
                "invoiceId": id, "reference": "order 7", "satoshis": 1000,
                "expiresAt": invoice["expiresAt"],
            },
        }),
        json!({
            "id": format!("evt_{name}_2"), "number": 2, "type": "user.created",
            "timestamp": read(&reply)["events"][1]["timestamp"], "data": { "userId": 1 },
        }),
    ];
    let first = json!({ "log": name, "events": events, "next": 2, "last": 2 });
    assert_eq!(read(&reply), first);
    assert_eq!(next_of(&reply), format!("{EVENTS}?after=2&limit=100&log={name}"));

    // It has the same bytes after a restart.
    let Shop { site, server } = shop;
    assert_eq!(server.stop(), 0);
    let shop = Shop::start_on(site);
    assert_eq!(shop.client().get(EVENTS).body, reply.body);
}

/// This holds for all filters and page sizes, while some callers hang up before they are answered.
#[test]
fn all_pages_together_are_the_log() {
    let shop = Shop::start();
    let count = shop.fill(120);
    let client = shop.client();
    let all = log(client);
    assert_eq!(all.len(), count);
    assert!(all.iter().map(|event| event["number"].as_u64().unwrap()).eq(1..=count as u64));
    let filters: [(&str, Filter); 7] = [
        ("", |_| true),
        ("&types=*", |_| true),
        ("&types=invoice.*", |kind| kind.starts_with("invoice.")),
        ("&types=user.created", |kind| kind == "user.created"),
        ("&types=invoice.deleted,user.*", |kind| kind != "invoice.created"),
        ("&types=invoice.p*", |_| false),
        ("&types=outgoing.*", |_| false),
    ];
    let mut dice = Dice::new(18);
    for _ in 0..60 {
        let (types, is_asked_for) = filters[dice.roll(filters.len())];
        let (after, limit) = (dice.roll(count + 1), 1 + dice.roll(40));
        let wait = ["", "&wait=0"][dice.roll(2)];
        let path = format!("{EVENTS}?after={after}&limit={limit}{types}{wait}");
        let rest = all[after..].iter().filter(|event| is_asked_for(kind(event)));
        assert!(follow(client, path.clone(), limit).iter().eq(rest), "{path}");
        let mut gone = TcpStream::connect(client.address()).unwrap();
        let path = format!("{EVENTS}?after={count}&wait=30{types}");
        write!(gone, "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    }
    let latest = page(client, &format!("{EVENTS}?after=latest"));
    assert_eq!((&latest["events"], &latest["next"]), (&json!([]), &json!(count)));
    assert_eq!(client.request("HEAD", &format!("{EVENTS}?wait=30&after=latest"), b"").body, "");
    assert_eq!(shop.server.stop(), 0);
}

#[test]
fn all_mistakes_in_a_query_are_reported_at_once() {
    let shop = Shop::start();
    let path = format!("{EVENTS}?after=-1&limit=0&types=invoice&wait=31&log=x&more=1");
    let problem = check_problem(&shop.client().get(&path), 400, "invalid-query");
    let told: Vec<_> = problem["errors"].as_object().unwrap().keys().collect();
    assert_eq!(told, ["after", "limit", "log", "more", "types", "wait"]);
    for query in [
        "after=+1",
        "after=Latest",
        "after=18446744073709551616",
        "limit=1001",
        "types=",
        "types=*.paid",
        "types=invoice.*,",
        "wait=1.5",
        "log=3F9A1C02",
        "after=0&after=0",
        "types=*&types=*",
    ] {
        check_problem(&shop.client().get(&format!("{EVENTS}?{query}")), 400, "invalid-query");
    }
}

#[test]
fn cursors_of_another_log_or_beyond_its_end_are_refused() {
    let shop = Shop::start();
    shop.create_user();
    let client = shop.client();
    let name = page(client, EVENTS)["log"].as_str().unwrap().to_owned();
    assert_eq!(page(client, &format!("{EVENTS}?after=1&log={name}"))["next"], 1);
    for after in ["2", "18446744073709551615"] {
        let reply = client.get(&format!("{EVENTS}?after={after}&wait=30"));
        check_problem(&reply, 409, "cursor-ahead");
    }
    let other = if name == "00000000" { "00000001" } else { "00000000" };
    let reply = client.get(&format!("{EVENTS}?after=9&log={other}&wait=30"));
    let problem = check_problem(&reply, 409, "other-log");
    assert!(problem["detail"].as_str().unwrap().contains(&name), "{problem}");
}

#[test]
fn a_waiting_request_is_answered_on_an_event_or_after_its_time() {
    let shop = Shop::start();
    shop.create_user();
    let client = shop.client();
    let over = page(client, &format!("{EVENTS}?after=latest&wait=1"));
    assert_eq!((&over["events"], &over["next"], &over["last"]), (&json!([]), &json!(1), &json!(1)));
    // Earlier events are returned without waiting.
    assert_eq!(page(client, &format!("{EVENTS}?wait=30"))["next"], 1);
    thread::scope(|scope| {
        let wait = |types: &'static str| {
            scope.spawn(move || page(client, &format!("{EVENTS}?after=1&wait=30{types}")))
        };
        let (any, deleted) = (wait(""), wait("&types=invoice.deleted"));
        let id = shop.create_invoice("awaited");
        let any = any.join().unwrap();
        assert_eq!(any["events"][0]["data"]["invoiceId"], json!(id));
        shop.delete_invoice(&id);
        let deleted = deleted.join().unwrap();
        let events = deleted["events"].as_array().unwrap();
        assert_eq!((events.len(), kind(&events[0])), (1, "invoice.deleted"));
        assert_eq!((&deleted["next"], &deleted["last"]), (&json!(3), &json!(3)));
    });
}

#[test]
fn waiting_requests_have_their_own_places_and_end_with_the_server() {
    let shop = Shop::start_on(Site::with(json!({ "wallet": { "streams": 3 } })));
    shop.create_user();
    let address = shop.client().address().to_owned();
    let waiting: Vec<_> = (0..3)
        .map(|_| {
            let client = Client::new(&address);
            thread::spawn(move || {
                // Below, another request may have the last place for a moment.
                loop {
                    let reply = client.get(&format!("{EVENTS}?after=1&wait=30"));
                    if reply.status == 200 {
                        return read(&reply);
                    }
                }
            })
        })
        .collect();
    // This waits until all three have their places.
    let full = loop {
        let reply = shop.client().get(&format!("{EVENTS}?after=1&wait=1"));
        if reply.status != 200 {
            break reply;
        }
    };
    check_problem(&full, 503, "too-many-streams");
    assert!(full.header("retry-after").is_some());
    assert_eq!(page(shop.client(), &format!("{EVENTS}?after=0"))["next"], 1);
    assert_eq!(shop.server.stop(), 0);
    for waiting in waiting {
        let page = waiting.join().unwrap();
        assert_eq!((&page["events"], &page["next"]), (&json!([]), &json!(1)));
    }
}
