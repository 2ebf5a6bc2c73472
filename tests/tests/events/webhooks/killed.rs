//! A server that is killed while it sends events.

use std::thread;

use bsv_tests::payee::Answer;
use bsv_tests::receiver::number;
use bsv_tests::{Client, Dice, Receiver, repetitions};
use serde_json::json;

use super::{Shop, path, site, until, webhook};

/// How many events may be sent twice because of a kill.
const WINDOW: usize = 8;
const CLIENTS: usize = 4;
/// The server is killed after at most this many requests.
const MOST: usize = 40;

/// Makes events until the server no longer answers.
fn work_until_killed(client: &Client) {
    let body = br#"{"name":"Ada"}"#;
    while client.try_request("POST", "/api/v1/users", body).is_ok() {}
}

#[test]
fn after_kills_each_event_is_received_and_few_come_twice() {
    let rounds = repetitions("kills of a server that sends webhooks", 1000, 12);
    let receiver = Receiver::start();
    let mut shop = Shop::start_on(site());
    let (id, _) = webhook(shop.client(), &receiver, json!({}));
    let mut dice = Dice::new(7);
    for _ in 0..rounds {
        let Shop { site, server } = shop;
        let client = server.wallet().clone();
        let enough = receiver.count() + 1 + dice.roll(MOST);
        thread::scope(|scope| {
            for _ in 0..CLIENTS {
                scope.spawn(|| work_until_killed(&client));
            }
            receiver.until(|receiver| receiver.count() >= enough);
            server.kill();
        });
        shop = Shop::start_on(site);
    }
    let client = shop.client();
    shop.create_user();
    let last = super::shown(client, "/api/v1/events?after=latest")["last"].as_u64().unwrap();
    receiver.until(|it| it.count() as u64 >= last && it.counts().len() as u64 == last);
    until(client, &path(&id), |webhook| webhook["cursor"] == last);
    let received = receiver.received();
    let twice = received.len() - last as usize;
    eprintln!("{last} events, {twice} of them twice, {rounds} kills");
    assert!(receiver.counts().into_keys().eq(1..=last), "an event is missing");
    assert!(twice <= WINDOW * rounds, "{twice} events were sent twice in {rounds} kills");
    let mut bodies = vec![None; last as usize + 1];
    for request in &received {
        let number = number(request);
        let body = bodies[number as usize].get_or_insert(&request.body);
        assert_eq!(*body, &request.body, "event {number} has other bytes");
        let previous = request.json()["previous"].as_u64();
        assert_eq!(previous, (number > 1).then_some(number - 1));
    }
}

#[test]
fn a_stopping_server_does_not_wait_for_endpoints_and_repeats_the_event_later() {
    let receiver = Receiver::start();
    receiver.reply_with(|_| Answer::silence());
    let shop = Shop::start_on(site());
    webhook(shop.client(), &receiver, json!({}));
    shop.create_user();
    receiver.until_count(1);
    let Shop { site, server } = shop;
    assert_eq!(server.stop(), 0);
    receiver.reply(200);
    let shop = Shop::start_on(site);
    let received = receiver.until_count(2);
    assert_eq!(received[0].body, received[1].body);
    drop(shop);
}
