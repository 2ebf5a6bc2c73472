//! Servers whose clocks are wrong. All live in the time of the database.

use std::time::Duration;

use bsv_invoicing::Timestamp;
use bsv_tests::Bill;
use bsv_tests::clock::Clock;
use bsv_tests::till::wait_until;
use serde_json::{Value, json};

use super::{PRICE, Pair, is_of, problem};

/// Ten minutes, in seconds.
const OFF: i64 = 600;
/// How far from the right time a moment may be that was right when it was noted.
const SLACK: Duration = Duration::from_secs(300);

/// Two servers, the first of which is ten minutes ahead or behind, and the second the other way.
fn with_wrong_clocks(schema: &'static str, first: i64, coins: usize) -> (Pair, [Clock; 2]) {
    let mut clocks = Vec::new();
    let pair = Pair::prepared(schema, coins, |which, _, till| {
        let clock = Clock::install(&mut till.site);
        clock.shift(if which == 0 { first } else { -first });
        clocks.push(clock);
    });
    (pair, clocks.try_into().expect("each server has one"))
}

/// Checks that the times of all events are right and go forward.
fn check_times(events: &[Value]) {
    let now = Timestamp::of_system();
    let mut before = None;
    for event in events {
        let at: Timestamp = event["timestamp"].as_str().unwrap().parse().unwrap();
        assert!(Some(at) >= before, "{event} goes back");
        assert!(at.after(SLACK) > now && now.after(SLACK) > at, "{event} is not told at {now}");
        before = Some(at);
    }
}

fn in_seconds(seconds: u64) -> String {
    Timestamp::of_system().after(Duration::from_secs(seconds)).to_string()
}

#[test]
fn events_go_forward_and_have_the_time_of_the_database() {
    let (pair, clocks) = with_wrong_clocks("wrong_clocks", OFF, 0);
    for round in 0..10 {
        pair.tills[round % 2].invoice(PRICE);
    }
    check_times(&pair.tills[0].events());
    // Somebody sets the clocks while the servers run.
    clocks.iter().zip([-OFF, OFF]).for_each(|(clock, seconds)| clock.shift(seconds));
    for round in 0..10 {
        pair.tills[round % 2].invoice(PRICE);
    }
    check_times(&pair.tills[1].events());
    pair.check_books();
}

#[test]
fn an_invoice_expires_by_the_time_of_the_database_at_every_server() {
    for (schema, first) in [("expiry_ahead", OFF), ("expiry_behind", -OFF)] {
        let (pair, _clocks) = with_wrong_clocks(schema, first, 4);
        let body = |seconds| json!({ "satoshis": PRICE, "expiresAt": in_seconds(seconds) });
        // Either clock is further off than these invoices can be paid.
        for which in [0, 1] {
            let id = pair.tills[1 - which].invoice_of(&body(300));
            let bill = Bill::at(&pair.tills[which].payment_url(&id));
            let transaction = pair.purse.transaction_for(&bill);
            let reply = bill.post(&transaction);
            assert_eq!(reply.status, 201, "{schema} {which}: {}", reply.body);
            pair.check_paid(&id, &transaction);
        }
        for which in [0, 1] {
            let id = pair.tills[which].invoice_of(&body(4));
            let bill = Bill::at(&pair.tills[1 - which].payment_url(&id));
            let is_expired = || pair.tills.iter().all(|till| till.state(&id) == "expired");
            wait_until("it expires", is_expired);
            for till in &pair.tills {
                let path = format!("/dpp/api/v1/payment/{id}");
                let terms = till.payments().get(&path);
                assert_eq!(problem(&terms), (422, "invoice-expired".to_owned()));
            }
            let reply = bill.post(&pair.purse.transaction_for(&bill));
            assert_eq!(problem(&reply), (422, "invoice-expired".to_owned()));
            let is_told = |event: &&Value| is_of(event, "invoice.expired", &id);
            let told = || pair.tills[0].events().iter().filter(is_told).count();
            wait_until("the expiry is told", || told() > 0);
            assert_eq!(told(), 1);
        }
        check_times(&pair.tills[1].events());
        pair.check_books();
    }
}

/// What a server knows of others is how long they have been silent, whatever their clocks say.
#[test]
fn a_server_takes_over_though_the_clocks_are_wrong() {
    for (schema, first) in [("takeover_ahead", OFF), ("takeover_behind", -OFF)] {
        let (pair, _clocks) = with_wrong_clocks(schema, first, 0);
        std::thread::sleep(Duration::from_secs(8));
        assert_eq!(pair.query("SELECT count(*) FROM $.processes"), "2", "both are alive");
        pair.tills[0].kill();
        pair.wait_for_processes(1);
        pair.tills[0].start();
        assert_eq!(pair.query("SELECT count(*) FROM $.processes"), "2");
        pair.tills.iter().for_each(|till| drop(till.invoice(PRICE)));
        check_times(&pair.tills[1].events());
    }
}
