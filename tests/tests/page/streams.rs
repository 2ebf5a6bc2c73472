//! The states and streams that payers' programs read, and their limits.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;

use bsv_tests::Metrics;
use serde_json::{Value, json};

use crate::page::shop::{Merchant, json_of, pay, shop, shop_on_node, shop_with, wait_until};

#[test]
fn an_unchanged_state_is_not_sent_again() {
    let shop = shop();
    let id = shop.invoice_of(json!({ "satoshis": 1000, "expiresAt": "2040-01-01T00:00:00Z" }));
    let payments = shop.server.payments();
    let path = format!("/pay/{id}/state");
    let reply = payments.get(&path);
    let tag = reply.header("etag").unwrap();
    let mut state = json_of(&reply);
    assert!(state["now"].take().is_string());
    let expected = json!({
        "state": "pending", "satoshis": 1000, "paidSatoshis": 0, "dueSatoshis": 1000,
        "receivedSatoshis": 0, "countedSatoshis": 0, "refundedSatoshis": 0, "surplusSatoshis": 0,
        "expiresAt": "2040-01-01T00:00:00.000000Z", "now": null, "mined": false,
    });
    assert_eq!(state, expected);
    for method in ["GET", "HEAD"] {
        let again = payments.send(method, &path, &[("If-None-Match", tag)], b"");
        assert_eq!((again.status, again.body.as_str()), (304, ""));
        assert_eq!(again.header("etag"), Some(tag));
        let head = payments.request("HEAD", &path, b"");
        assert_eq!((head.status, head.header("etag")), (200, Some(tag)));
    }
    let marked = format!("/api/v1/invoices/{id}/mark");
    assert_eq!(shop.server.wallet().post(&marked, r#"{"state":"paid"}"#).status, 200);
    let changed = payments.send("GET", &path, &[("If-None-Match", tag)], b"");
    assert_eq!(changed.status, 200);
    assert_ne!(changed.header("etag"), Some(tag));
    let state = json_of(&changed);
    assert_eq!((&state["state"], &state["dueSatoshis"]), (&json!("paid"), &json!(0)));
}

#[test]
fn a_stream_sends_each_state_and_ends() {
    let (shop, node, purse) = shop_on_node(2, json!({}));
    let id = shop.invoice(5_000);
    let address = shop.address(&id);
    let path = format!("/pay/{id}/stream");
    assert_eq!(shop.server.payments().request("HEAD", &path, b"").status, 200);
    let stream = thread::scope(|scope| {
        let stream = scope.spawn(|| shop.server.payments().get(&path));
        wait_until("it is open", || open_streams(&shop) == 1.0);
        pay(&node, &purse, &address, 2_000);
        wait_until("it is seen", || shop.payers_state(&id)["paidSatoshis"] == 2_000);
        thread::sleep(std::time::Duration::from_millis(200));
        pay(&node, &purse, &address, 3_000);
        wait_until("it is paid", || shop.state(&id) == "paid");
        thread::sleep(std::time::Duration::from_millis(200));
        node.mine(1);
        stream.join().unwrap()
    });
    let blocks: Vec<_> = stream.body.split_terminator("\n\n").filter(|it| *it != ":").collect();
    assert!(blocks[0].starts_with("retry: "), "{blocks:?}");
    let states = blocks[1..].iter().map(|block| {
        let data = block.strip_prefix("event: state\ndata: ").unwrap();
        let state: Value = serde_json::from_str(data).unwrap();
        ["state", "paidSatoshis", "dueSatoshis", "mined"].map(|name| state[name].clone())
    });
    let told: Vec<_> = states.collect();
    let expected = [
        json!(["pending", 0, 5000, false]),
        json!(["pending", 2000, 3000, false]),
        json!(["paid", 5000, 0, false]),
        json!(["paid", 5000, 0, true]),
    ];
    assert_eq!(json!(told), json!(expected));
    assert_eq!(stream.header("x-accel-buffering"), Some("no"));
    for method in ["GET", "HEAD"] {
        assert_eq!(shop.server.payments().request(method, &path, b"").status, 204);
    }
    wait_until("the place is free", || open_streams(&shop) == 0.0);
}

fn open_streams(shop: &Merchant) -> f64 {
    Metrics::of(shop.server.wallet()).value("bsv_http_streams{listener=\"payments\"}")
}

/// Opens a stream. Answers the connection and the status.
fn open(shop: &Merchant, id: &str, headers: &str) -> (TcpStream, u16) {
    let mut stream = TcpStream::connect(shop.server.payments().address()).unwrap();
    write!(stream, "GET /pay/{id}/stream HTTP/1.1\r\nHost: x\r\n{headers}\r\n").unwrap();
    let mut head = [0; 12];
    stream.read_exact(&mut head).unwrap();
    let status = std::str::from_utf8(&head[9..]).unwrap().parse().unwrap();
    (stream, status)
}

#[test]
fn streams_do_not_use_up_the_connections_for_payers() {
    let shop =
        shop_with(json!({ "streams": 3, "connections": 4, "trustedProxies": ["127.0.0.1"] }));
    let id = shop.invoice(1_000);
    let held: Vec<_> = (0..3).map(|_| open(&shop, &id, "")).collect();
    assert!(held.iter().all(|(_, status)| *status == 200));
    assert_eq!(open(&shop, &id, "").1, 503);
    let reply = shop.server.payments().get(&format!("/pay/{id}/stream"));
    assert_eq!(reply.header("retry-after"), Some("5"));
    assert_eq!(json_of(&reply)["code"], "too-many-streams");
    // Streams do not delay payers.
    for _ in 0..20 {
        let reply = shop.server.payments().post(&format!("/dpp/api/v1/payment/{id}"), "{}");
        assert_eq!(reply.status, 400, "{}", reply.body);
    }
    drop(held);
    wait_until("places are free", || open(&shop, &id, "").1 == 200);
}

#[test]
fn a_peer_has_a_few_streams() {
    let shop = shop_with(json!({ "streamsPerPeer": 2, "trustedProxies": ["127.0.0.1"] }));
    let id = shop.invoice(1_000);
    let of = |address: &str| open(&shop, &id, &format!("X-Forwarded-For: {address}\r\n"));
    let held = [of("203.0.113.1"), of("203.0.113.1")];
    assert_eq!(held.each_ref().map(|(_, status)| *status), [200, 200]);
    assert_eq!(of("203.0.113.1").1, 503);
    assert_eq!(of("203.0.113.2").1, 200);
    drop(held);
    wait_until("its places are free", || of("203.0.113.1").1 == 200);
}

#[test]
fn streams_end_with_the_server() {
    let shop = shop();
    let id = shop.invoice(1_000);
    let (mut stream, status) = open(&shop, &id, "");
    assert_eq!(status, 200);
    assert_eq!(shop.server.stop(), 0);
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
    assert!(rest.ends_with("0\r\n\r\n"), "{rest}");
}

#[test]
fn an_address_that_was_shown_is_watched() {
    let (shop, node, purse) = shop_on_node(2, json!({}));
    let [of_page, of_code] = [(); 2].map(|()| shop.invoice(1_000));
    let address = shop.address(&of_page);
    pay(&node, &purse, &address, 1_000);
    wait_until("what pays the page's address is seen", || shop.state(&of_page) == "paid");
    assert_eq!(shop.server.payments().get(&format!("/pay/{of_code}/qr.svg")).status, 200);
    // The page holds the same address as the code.
    let html = shop.server.payments().get(&format!("/pay/{of_code}?lang=de")).body;
    let address = crate::page::shop::attribute(&html, "data-copy").to_owned();
    pay(&node, &purse, &address, 1_000);
    wait_until("what pays the code's address is seen", || shop.state(&of_code) == "paid");
}
