//! What one server changes is seen at the other one.

use bsv_tests::purse::send;
use bsv_tests::till::wait_until;
use bsv_tests::{Browser, Stream, Till};
use serde_json::{Value, json};

use super::{PRICE, Pair};

#[test]
fn a_stream_has_the_events_of_all_servers_in_order() {
    let pair = Pair::start("streams", 0);
    let mut streams = pair.tills.each_ref().map(|till| Stream::open(till.wallet(), "", None));
    std::thread::scope(|scope| {
        for till in &pair.tills {
            scope.spawn(|| (0..20).for_each(|_| drop(till.invoice(PRICE))));
        }
    });
    let all = pair.tills[0].events();
    assert_eq!(all.len(), 40);
    for stream in &mut streams {
        assert_eq!(stream.events(40), all);
    }
    // Somebody who was connected to one server goes on at the other one.
    let last = format!("{}", all[9]["number"]);
    let mut resumed = Stream::open(pair.tills[1].wallet(), "", Some(&last));
    assert_eq!(resumed.events(30), all[10..]);
}

#[test]
fn a_request_that_waits_for_events_gets_those_of_the_other_server() {
    let pair = Pair::start("waiting", 0);
    std::thread::scope(|scope| {
        let path = "/api/v1/events?after=0&wait=30";
        let page = scope.spawn(|| pair.tills[1].get(path));
        let id = pair.tills[0].invoice(PRICE);
        let events = page.join().unwrap()["events"].clone();
        assert_eq!(events[0]["data"]["invoiceId"], json!(id));
    });
}

#[test]
fn the_page_at_one_server_shows_what_is_paid_at_the_other() {
    let pair = Pair::start("pages", 2);
    let browser = Browser::start();
    for which in [0, 1] {
        let (id, bills) = pair.bills(which);
        let page = browser.open(json!({}));
        let shown_at = pair.tills[1 - which].payments().address();
        page.goto(&format!("http://{shown_at}/pay/{id}"));
        page.wait("document.querySelector('[role=timer]').textContent !== ''");
        let transaction = pair.purse.transaction_for(&bills[which]);
        match which {
            0 => assert_eq!(bills[which].post(&transaction).status, 201),
            _ => send(&pair.node, &transaction),
        }
        page.wait("document.querySelector('main.paid') !== null");
        assert_eq!(page.told().complaints, Vec::<String>::new());
    }
}

fn status(till: &Till, token: &Value) -> u16 {
    let authorization = format!("Bearer {}", token["token"].as_str().unwrap());
    let headers = [("Authorization", authorization.as_str())];
    till.wallet().send("GET", "/api/v1/balance", &headers, b"").status
}

#[test]
fn a_token_made_at_one_server_is_accepted_and_revoked_at_the_other() {
    let pair = Pair::prepared("shared_tokens", 0, |_, _, till| {
        till.site.set("auth", json!({ "requireToken": true }));
    });
    for which in [0, 1] {
        let [till, other] = [&pair.tills[which], &pair.tills[1 - which]];
        let create = ["token", "create", "--scope", "wallet:read", "--label", "till"];
        let [token, kept] = [(); 2].map(|()| till.site.cli_json(&create));
        for at in [till, other] {
            wait_until("it is accepted", || [&token, &kept].map(|it| status(at, it)) == [200; 2]);
        }
        till.site.cli_ok(&["token", "revoke", "--yes", token["id"].as_str().unwrap()]);
        for at in [till, other] {
            wait_until("it is refused", || status(at, &token) == 401);
            assert_eq!(status(at, &kept), 200);
        }
    }
}

/// The answer to a repeated request is that of the first one, whichever server is asked.
#[test]
fn an_idempotency_key_is_known_to_both_servers() {
    let pair = Pair::start("keys", 0);
    let body = json!({ "satoshis": PRICE });
    let create = |which: usize, body: &Value| {
        pair.tills[which].post_with_key("/api/v1/invoices", "key", body).unwrap()
    };
    let first = create(0, &body);
    assert_eq!((first.status, &create(1, &body).body), (201, &first.body));
    let other = create(1, &json!({ "satoshis": PRICE + 1 }));
    assert_eq!(super::problem(&other), (409, "idempotency-key-reused".to_owned()));
}
