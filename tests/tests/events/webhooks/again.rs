//! The list of deliveries, and sending events again.

use bsv_tests::payee::Answer;
use bsv_tests::receiver::number;
use bsv_tests::{Client, Receiver};
use serde_json::{Value, json};

use super::{answered, path, post, shop, shown, text, until, webhook};
use crate::events::{check_problem, log};

/// The numbers of the deliveries of a list, page by page.
fn listed(client: &Client, first: &str) -> Vec<u64> {
    let (mut next, mut numbers) = (Some(first.to_owned()), Vec::new());
    while let Some(path) = next {
        let reply = client.get(&path);
        let page = answered(&reply, 200);
        numbers.extend(page.as_array().unwrap().iter().map(|it| it["number"].as_u64().unwrap()));
        let link = reply.header("link").and_then(|link| link.strip_prefix('<'));
        next = link.and_then(|it| it.strip_suffix(">; rel=\"next\"")).map(str::to_owned);
    }
    numbers
}

#[test]
fn deliveries_show_each_attempt_and_are_listed_in_pages() {
    let shop = shop();
    let client = shop.client();
    let receiver = Receiver::start();
    // Two events always fail, and nothing else waits for them.
    receiver.reply_with(|request| match number(request) {
        3 | 7 => Answer::text(503, &"é".repeat(2000)),
        _ => Answer::text(201, "thanks"),
    });
    let (id, _) = webhook(client, &receiver, json!({}));
    for _ in 0..10 {
        shop.create_user();
    }
    let deliveries = format!("{}/deliveries", path(&id));
    until(client, &deliveries, |list| {
        let tried = |it: &Value| it["attempts"].as_array().is_some_and(|it| !it.is_empty());
        list.as_array().is_some_and(|list| list.len() == 10 && list.iter().all(tried))
    });
    let second = shown(client, &format!("{deliveries}/2"));
    let attempt = &second["attempts"][0];
    let expected = json!({
        "number": 2, "eventId": log(client)[1]["id"], "type": "user.created",
        "state": "delivered", "nextAttemptAt": null,
        "attempts": [{
            "at": attempt["at"], "milliseconds": attempt["milliseconds"], "status": 201,
            "failure": null, "answer": "thanks",
        }],
    });
    assert_eq!(second, expected);
    let third = shown(client, &format!("{deliveries}/3"));
    assert_eq!(
        (&third["state"], &third["attempts"][0]["status"]),
        (&json!("pending"), &json!(503))
    );
    assert!(third["nextAttemptAt"].is_string());
    assert_eq!(text(&third["attempts"][0], "answer"), "é".repeat(512));

    for (query, numbers) in [
        ("", Vec::from_iter(1..=10)),
        ("?limit=3", Vec::from_iter(1..=10)),
        ("?after=8&limit=1", vec![9, 10]),
        ("?state=pending", vec![3, 7]),
        ("?limit=1&state=pending&after=3", vec![7]),
        ("?state=failed", vec![]),
        ("?after=18446744073709551615", vec![]),
    ] {
        assert_eq!(listed(client, &format!("{deliveries}{query}")), numbers, "{query}");
    }
    let wrong = format!("{deliveries}?state=lost&limit=101&after=-1&page=2");
    let problem = check_problem(&client.get(&wrong), 400, "invalid-query");
    let fields: Vec<_> = problem["errors"].as_object().unwrap().keys().collect();
    assert_eq!(fields, ["after", "limit", "page", "state"]);
    for number in ["11", "0", "03", "x", "18446744073709551616"] {
        check_problem(&client.get(&format!("{deliveries}/{number}")), 404, "unknown-delivery");
    }
    for path in [path(&id), deliveries.clone(), format!("{deliveries}/2")] {
        let head = client.request("HEAD", &path, b"");
        assert_eq!((head.status, head.body.as_str()), (200, ""), "{path}");
    }
}

#[test]
fn one_event_or_a_range_is_sent_again() {
    let shop = shop();
    let client = shop.client();
    let receiver = Receiver::start();
    let (id, _) = webhook(client, &receiver, json!({}));
    for _ in 0..6 {
        shop.create_user();
    }
    until(client, &path(&id), |webhook| webhook["cursor"] == 6);
    let count = receiver.received().len();
    let redeliver = |number: &str| {
        post(client, &format!("{}/deliveries/{number}/redeliver", path(&id)), &json!({}))
    };
    let again = answered(&redeliver("4"), 202);
    assert_eq!((&again["number"], &again["state"]), (&json!(4), &json!("pending")));
    receiver.until_count(count + 1);
    assert_eq!(receiver.numbers()[count..], [4]);
    check_problem(&redeliver("7"), 404, "unknown-delivery");

    let replay = |range: Value| post(client, &format!("{}/replay", path(&id)), &range);
    let sent = answered(&replay(json!({ "after": 1, "until": 3 })), 202);
    assert_eq!(sent, json!({ "count": 2 }));
    receiver.until_count(count + 3);
    let mut numbers = receiver.numbers().split_off(count + 1);
    numbers.sort_unstable();
    assert_eq!(numbers, [2, 3]);
    let failed = replay(json!({ "after": 0, "onlyFailed": true }));
    assert_eq!(answered(&failed, 202), json!({ "count": 0 }));
    assert_eq!(answered(&replay(json!({ "after": 0 })), 202), json!({ "count": 6 }));
    receiver.until_count(count + 9);
    check_problem(&replay(json!({})), 400, "invalid-fields");
    check_problem(&replay(json!({ "after": "1" })), 400, "invalid-fields");
}

#[test]
fn a_test_message_returns_its_outcome_and_is_not_recorded() {
    let shop = shop();
    let client = shop.client();
    let receiver = Receiver::start();
    let (id, secret) = webhook(client, &receiver, json!({}));
    let test = || answered(&post(client, &format!("{}/test", path(&id)), &json!({})), 200);
    let attempt = test();
    assert_eq!((&attempt["status"], &attempt["failure"]), (&json!(200), &json!(null)));
    assert_eq!(attempt["answer"], "answered");
    let received = receiver.until_count(1);
    assert_eq!(received[0].json()["type"], "webhook.test");
    assert!(super::is_signed_with(&received[0], &[&secret]));
    receiver.reply(404);
    assert_eq!(test()["status"], 404);
    drop(receiver);
    let attempt = test();
    assert_eq!((&attempt["status"], &attempt["failure"]), (&json!(null), &json!("connect")));
    assert_eq!(shown(client, &format!("{}/deliveries", path(&id))), json!([]));
    assert_eq!(shown(client, &path(&id))["failingSince"], json!(null));
}
