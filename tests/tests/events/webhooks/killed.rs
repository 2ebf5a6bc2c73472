//! A server that is killed while it sends.

use std::thread;
use std::time::Duration;

use bsv_tests::receiver::number;
use bsv_tests::{Client, Dice, Receiver, repetitions};
use serde_json::json;

use super::{Shop, path, site, until, webhook};

/// How many events may be sent twice because of a kill.
const WINDOW: usize = 8;
const CLIENTS: usize = 4;
/// The longest time between start and kill, in milliseconds.
const LONGEST: usize = 120;

/// Makes events until there is no answer any more.
fn work_until_killed(client: &Client) {
    let body = br#"{"name":"Ada"}"#;
    while client.try_request("POST", "/api/v1/users", body).is_ok() {}
}

#[test]
fn whenever_it_is_killed_each_event_is_received_and_few_are_twice() {
    let rounds = repetitions("kills of a server that sends webhooks", 1000, 12);
    let receiver = Receiver::start();
    let mut shop = Shop::start_on(site());
    let (id, _) = webhook(shop.client(), &receiver, json!({}));
    let mut dice = Dice::new(7);
    for _ in 0..rounds {
        let Shop { site, server } = shop;
        let client = server.wallet().clone();
        let delay = Duration::from_millis(1 + dice.roll(LONGEST) as u64);
        thread::scope(|scope| {
            for _ in 0..CLIENTS {
                scope.spawn(|| work_until_killed(&client));
            }
            thread::sleep(delay);
            server.kill();
        });
        shop = Shop::start_on(site);
    }
    let client = shop.client();
    shop.create_user();
    let last = super::shown(client, "/api/v1/events?after=latest")["last"].as_u64().unwrap();
    receiver.until(|receiver| receiver.counts().len() as u64 == last);
    until(client, &path(&id), |webhook| webhook["cursor"] == last);
    let received = receiver.received();
    let twice = received.len() - last as usize;
    eprintln!("{last} events, {twice} of them twice, {rounds} kills");
    assert!(receiver.counts().into_keys().eq(1..=last), "an event is missing");
    assert!(twice <= WINDOW * rounds, "{twice} events were sent twice in {rounds} kills");
    assert!(last as usize > rounds * CLIENTS, "the load was too low to tell anything");
    let mut bodies = vec![None; last as usize + 1];
    for request in &received {
        let number = number(request);
        let body = bodies[number as usize].get_or_insert(&request.body);
        assert_eq!(*body, &request.body, "event {number} has other bytes");
        let previous = request.json()["previous"].as_u64();
        assert_eq!(previous, (number > 1).then_some(number - 1));
    }
}
