//! Endpoints that do not accept events.

use std::time::Duration;

use bsv_invoicing::events::{EventData, EventKind};
use bsv_invoicing::webhooks::WebhookClock;
use bsv_invoicing::webhooks::{AttemptOutcome, DeliveryState, WebhookState};

use crate::endpoints::Reply;
use crate::site::{OTHER, Site, URL};

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn an_event_is_sent_twelve_times_on_schedule_and_unchanged() {
    let site = Site::new().await;
    site.endpoints.reply(URL, Reply::Status(500));
    let id = site.webhook(URL, "*").await;
    site.users(1).await;
    let waits =
        [5, 30, 120, 600, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400].map(f64::from);
    for (tries, wait) in (1..).zip(waits) {
        let delivery = site.until_tried(id, 1, tries).await;
        let attempt = delivery.attempts.last().unwrap();
        assert_eq!(attempt.at, site.clock.now());
        assert_eq!(attempt.outcome, AttemptOutcome::Answered(500));
        assert_eq!(attempt.answer, "é".repeat(512));
        let DeliveryState::Pending { next_attempt_at } = delivery.state else {
            panic!("{delivery:?}")
        };
        let waited = (next_attempt_at.as_micros() - attempt.at.as_micros()) as f64 / 1e6;
        assert!((0.799..1.201).contains(&(waited / wait)), "{tries}: {waited} s");
        site.clock.set(next_attempt_at.before(Duration::from_micros(1)));
        assert_eq!(site.endpoints.received(URL).len(), tries as usize);
        site.clock.set(next_attempt_at);
    }
    let delivery = site.until_tried(id, 1, 12).await;
    assert_eq!((delivery.state, delivery.attempts.len()), (DeliveryState::Failed, 12));
    let received = site.endpoints.received(URL);
    let first = &received[0].request;
    for again in &received {
        assert_eq!((&again.request.id, &again.request.body), (&first.id, &first.body));
        assert_eq!(again.request.timestamp, again.at.as_micros() / 1_000_000);
    }
    assert_eq!(first.id, format!("evt_{}_1", site.wallet().event_log()));
    assert_ne!(first.signature, received[11].request.signature);
    // This event is not sent any more, but the next one is.
    site.endpoints.reply(URL, Reply::Status(204));
    site.users(1).await;
    site.clock.advance(HOUR);
    site.endpoints.until_count(URL, 13).await;
    assert_eq!(site.endpoints.numbers(URL)[12], 2);
    let webhook = site.until(id, |webhook| webhook.failures == 0).await;
    assert_eq!((webhook.failing_since, webhook.cursor), (None, 2));
}

#[tokio::test]
async fn a_failing_endpoint_is_probed_with_one_event_at_a_time_and_then_gets_all() {
    let site = Site::new().await;
    site.endpoints.reply(URL, Reply::Status(503));
    let id = site.webhook(URL, "*").await;
    site.users(100).await;
    let webhook = site.until(id, |webhook| webhook.failures >= 5).await;
    // These were under way when the fifth attempt failed.
    site.until(id, |it| it.failures as usize == site.endpoints.received(URL).len()).await;
    assert!(site.known(id).await.failures <= 12, "{webhook:?}");
    let mut before = site.endpoints.received(URL).len();
    site.endpoints.forget_most_under_way(URL);
    for wait in [5, 30, 120, 600, 600, 600] {
        let wait = Duration::from_secs(wait);
        site.clock.advance(wait - Duration::from_millis(1));
        assert_eq!(site.endpoints.received(URL).len(), before, "{wait:?}");
        site.clock.advance(Duration::from_millis(1));
        site.endpoints.until_count(URL, before + 1).await;
        before += 1;
        let failures = u32::try_from(before).unwrap();
        site.until(id, |webhook| webhook.failures == failures).await;
    }
    assert_eq!(site.endpoints.most_under_way(URL), 1);
    site.endpoints.reply(URL, Reply::Status(200));
    site.clock.advance(HOUR);
    // An event that has failed often waits for its time.
    site.until(id, |webhook| webhook.cursor == 100).await;
    site.clock.advance(24 * HOUR);
    for number in 1..=100 {
        site.until_delivery(id, number, |it| it.state == DeliveryState::Delivered).await;
    }
    assert!(site.endpoints.counts(URL).keys().copied().eq(1..=100));
}

#[tokio::test]
async fn an_endpoint_that_accepts_nothing_for_120_hours_is_disabled_and_can_continue_later() {
    let site = Site::new().await;
    site.endpoints.reply(URL, Reply::TimeOut);
    let id = site.webhook(URL, "user.*").await;
    site.webhook(OTHER, "webhook.disabled").await;
    site.users(40).await;
    let began = site.clock.now();
    site.until(id, |webhook| webhook.failures >= 5).await;
    while site.known(id).await.state == WebhookState::Enabled {
        assert!(site.clock.now() < began.after(121 * HOUR), "{:?}", site.known(id).await);
        let before = site.known(id).await.failures;
        site.clock.advance(HOUR);
        site.until(id, |it| it.failures > before).await;
    }
    assert!(site.clock.now() >= began.after(120 * HOUR));
    let disabled = site.known(id).await;
    assert_eq!(disabled.state, WebhookState::Disabled);
    site.endpoints.until_count(OTHER, 1).await;
    let told = site.wallet().events(40, 9).await.unwrap();
    assert_eq!((told.len(), told[0].kind), (1, EventKind::WebhookDisabled));
    let EventData::Webhook { webhook_id, state, .. } = &told[0].data else { panic!("{told:?}") };
    assert_eq!((*webhook_id, *state), (id, "disabled"));

    site.endpoints.reply(URL, Reply::Status(200));
    let before = site.endpoints.received(URL).len();
    site.clock.advance(HOUR);
    site.users(1).await;
    site.endpoints.until_count(OTHER, 1).await;
    assert_eq!(site.endpoints.received(URL).len(), before);
    let enable =
        bsv_invoicing::webhooks::WebhookChange { is_enabled: Some(true), ..Default::default() };
    site.wallet().change_webhook(id, enable).await.unwrap();
    site.until(id, |webhook| webhook.cursor >= 42).await;
    // The longest wait is a day and a fifth. Events that had finally failed are not sent. Nothing
    // else is missing.
    site.clock.advance(29 * HOUR);
    let numbers = (1..=40).chain([42]);
    for number in numbers.clone() {
        site.until_delivery(id, number, |it| it.state.next_attempt_at().is_none()).await;
    }
    assert!(site.endpoints.counts(URL).into_keys().eq(numbers));
}

#[tokio::test]
async fn an_endpoint_that_answers_410_is_gone() {
    let site = Site::new().await;
    site.endpoints.reply(URL, Reply::Status(410));
    let id = site.webhook(URL, "*").await;
    site.users(1).await;
    let webhook = site.until(id, |webhook| webhook.state == WebhookState::Gone).await;
    assert_eq!(webhook.failures, 1);
    let told = site.wallet().events(1, 9).await.unwrap();
    let EventData::Webhook { state, .. } = &told[0].data else { panic!("{told:?}") };
    assert_eq!(*state, "gone");
    site.clock.advance(24 * HOUR);
    site.webhook(OTHER, "*").await;
    site.endpoints.until_count(OTHER, 2).await;
    assert_eq!(site.endpoints.received(URL).len(), 1);
}

#[tokio::test]
async fn an_endpoint_can_ask_for_a_longer_wait() {
    let site = Site::new().await;
    site.endpoints.reply(URL, Reply::Later(429, HOUR));
    let id = site.webhook(URL, "*").await;
    site.users(1).await;
    let delivery = site.until_tried(id, 1, 1).await;
    assert_eq!(delivery.state.next_attempt_at(), Some(site.clock.now().after(HOUR)));
}

/// One endpoint hangs, one is away, and the third still gets its events.
#[tokio::test]
async fn a_dead_endpoint_does_not_delay_others() {
    let site = Site::new().await;
    let [hanging, away] = ["https://hanging.example/", "https://away.example/"];
    site.endpoints.reply(hanging, Reply::Hang);
    site.endpoints.reply(away, Reply::TimeOut);
    for url in [hanging, away, URL] {
        site.webhook(url, "*").await;
    }
    site.users(200).await;
    site.endpoints.until_count(URL, 200).await;
    assert_eq!(site.endpoints.received(hanging).len(), 8);
    assert!(site.endpoints.received(away).len() < 20);
}

/// Retries hang, and new events do not wait for them.
#[tokio::test]
async fn retries_do_not_delay_new_events() {
    let site = Site::new().await;
    site.endpoints.reply_with(URL, |it| match it.number % 2 {
        0 => Reply::Status(200),
        _ => Reply::Status(500),
    });
    let id = site.webhook(URL, "*").await;
    site.users(40).await;
    site.until(id, |webhook| webhook.cursor == 40).await;
    site.endpoints.reply_with(URL, |it| match it.number {
        ..=40 => Reply::Hang,
        _ => Reply::Status(200),
    });
    let before = site.endpoints.received(URL).len();
    site.clock.advance(HOUR);
    site.endpoints.until_count(URL, before + 4).await;
    site.users(40).await;
    let all_new = |it: &[crate::endpoints::Received]| it.iter().filter(|it| it.number > 40).count();
    site.endpoints.until(URL, |received| all_new(received) == 40).await;
    assert_eq!(site.endpoints.received(URL).len(), before + 44);
}

/// The endpoint gets a message, but nothing is recorded.
#[tokio::test]
async fn an_endpoint_can_be_tested() {
    let site = Site::new().await;
    let id = site.webhook(URL, "*").await;
    site.endpoints.reply(URL, Reply::Status(418));
    let attempt = site.sender().test(id, None).await.unwrap();
    assert_eq!(attempt.outcome, AttemptOutcome::Answered(418));
    let received = site.endpoints.received(URL);
    let body: serde_json::Value = serde_json::from_slice(&received[0].request.body).unwrap();
    assert_eq!((received.len(), &body["type"]), (1, &serde_json::json!("webhook.test")));
    assert_eq!(site.known(id).await.failures, 0);
}
