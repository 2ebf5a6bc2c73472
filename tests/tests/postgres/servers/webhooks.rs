//! Webhooks of a wallet that several servers serve. One of them, the leader, sends the events.

use std::thread;

use bsv_tests::payee::Answer;
use bsv_tests::receiver::number;
use bsv_tests::till::wait_until;
use bsv_tests::{Dice, Receiver, Till, repetitions};
use serde_json::{Value, json};

use super::Pair;

const WEBHOOKS: &str = "/api/v1/webhooks";

/// Makes a webhook through a server, which sends events in their order. Answers its path.
fn webhook(till: &Till, receiver: &Receiver, types: &str) -> String {
    let body = json!({ "url": receiver.url(), "types": types, "inOrder": true, "after": 0 });
    let reply = till.wallet().post(WEBHOOKS, body.to_string());
    assert_eq!(reply.status, 201, "{}", reply.body);
    let made: Value = serde_json::from_str(&reply.body).unwrap();
    format!("{WEBHOOKS}/{}", made["id"].as_str().unwrap())
}

fn create_user(till: &Till) {
    let reply = till.wallet().post("/api/v1/users", r#"{"name":"Ada"}"#);
    assert_eq!(reply.status, 201, "{}", reply.body);
}

/// The number of the last event.
fn last(till: &Till) -> u64 {
    till.get("/api/v1/events?after=latest")["last"].as_u64().unwrap()
}

#[test]
fn an_endpoint_gets_the_events_of_all_servers_once_each_and_in_order() {
    let pair = Pair::start("webhooks", 0);
    let receivers = [(); 2].map(|()| Receiver::start());
    let paths = [0, 1].map(|which| webhook(&pair.tills[which], &receivers[which], "*"));
    thread::scope(|scope| {
        for till in &pair.tills {
            scope.spawn(|| (0..25).for_each(|_| create_user(till)));
        }
    });
    for path in &paths {
        for till in &pair.tills {
            wait_until("all are delivered", || till.get(path)["cursor"] == 50);
        }
    }
    for receiver in &receivers {
        assert!(receiver.numbers().into_iter().eq(1..=50), "{:?}", receiver.numbers());
    }
}

#[test]
fn a_webhook_that_is_changed_or_deleted_through_any_server_is_changed() {
    let pair = Pair::start("changed_webhooks", 0);
    let [leader, other] = &pair.tills;
    let receiver = Receiver::start();
    let path = webhook(leader, &receiver, "user.*");
    create_user(other);
    receiver.until_count(1);
    let patch = |till: &Till, change: Value| {
        let reply = till.wallet().request("PATCH", &path, change.to_string().as_bytes());
        assert_eq!(reply.status, 200, "{}", reply.body);
    };
    patch(other, json!({ "types": "invoice.*" }));
    create_user(leader);
    leader.invoice(1_000);
    receiver.until_count(2);
    assert_eq!(receiver.numbers(), [1, 3]);

    patch(other, json!({ "state": "disabled" }));
    leader.invoice(1_000);
    wait_until("it is disabled everywhere", || leader.get(&path)["state"] == "disabled");
    patch(other, json!({ "state": "enabled" }));
    receiver.until_count(3);
    assert_eq!(receiver.numbers(), [1, 3, 4]);

    let elsewhere = Receiver::start();
    patch(other, json!({ "url": elsewhere.url() }));
    other.invoice(1_000);
    elsewhere.until_count(1);
    assert_eq!(elsewhere.numbers(), [5]);
    assert_eq!(other.wallet().request("DELETE", &path, b"").status, 204);
    wait_until("it is gone everywhere", || leader.wallet().get(&path).status == 404);
    let witness = Receiver::start();
    webhook(other, &witness, "*");
    leader.invoice(1_000);
    witness.until_count(6);
    assert_eq!((receiver.count(), elsewhere.count()), (3, 1));
}

#[test]
fn an_event_is_sent_again_whichever_server_is_asked_for_it() {
    let pair = Pair::start("redelivered", 0);
    let receiver = Receiver::start();
    let path = webhook(&pair.tills[1], &receiver, "*");
    create_user(&pair.tills[1]);
    receiver.until_count(1);
    wait_until("it is delivered", || pair.tills[1].get(&path)["cursor"] == 1);
    for (count, till) in [(2, &pair.tills[1]), (3, &pair.tills[0])] {
        let reply = till.wallet().post(&format!("{path}/deliveries/1/redeliver"), "{}");
        assert_eq!(reply.status, 202, "{}", reply.body);
        receiver.until_count(count);
        // Whoever asks again while it is being sent is served by that.
        let delivery = format!("{path}/deliveries/1");
        wait_until("that is recorded", || till.get(&delivery)["state"] == "delivered");
    }
    assert_eq!(receiver.numbers(), [1, 1, 1]);
}

/// The endpoint waits with its answer now and then, so that requests are under way when the leader
/// is killed.
#[test]
fn an_endpoint_gets_each_event_in_order_though_leaders_are_killed() {
    let kills = repetitions("kills of a leader that sends webhooks", 60, 3);
    let pair = Pair::start("killed_webhooks", 0);
    let receiver = Receiver::start();
    receiver.reply_with(|request| {
        if number(request).is_multiple_of(7) {
            thread::sleep(std::time::Duration::from_millis(50));
        }
        Answer::text(200, "thanks")
    });
    let path = webhook(&pair.tills[1], &receiver, "*");
    let mut dice = Dice::new(5);
    for kill in 0..kills {
        let [leader, other] = [&pair.tills[kill % 2], &pair.tills[1 - kill % 2]];
        let enough = receiver.count() + 1 + dice.roll(20);
        thread::scope(|scope| {
            scope.spawn(|| (0..30).for_each(|_| create_user(other)));
            receiver.until(|receiver| receiver.count() >= enough);
            leader.kill();
        });
        pair.wait_for_processes(1);
        leader.start();
        create_user(leader);
    }
    let till = &pair.tills[0];
    let last = last(till);
    wait_until("all are delivered", || till.get(&path)["cursor"] == last);
    let numbers = receiver.numbers();
    eprintln!("{last} events, {} of them twice", numbers.len() as u64 - last);
    let mut firsts = numbers.clone();
    firsts.dedup();
    assert!(firsts.into_iter().eq(1..=last), "{numbers:?}");
}
