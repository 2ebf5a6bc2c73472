//! Sending events again, and deleting deliveries.

use std::time::Duration;

use bsv_invoicing::Error;
use bsv_invoicing::ledger::Refusal;
use bsv_invoicing::ledger::webhooks::GetDeliveries;
use bsv_invoicing::webhooks::DeliveryState;
use bsv_invoicing::webhooks::WebhookClock;

use crate::endpoints::Reply;
use crate::order::assert_chained;
use crate::site::{Site, URL, range};

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

#[tokio::test]
async fn one_event_can_be_sent_again_unchanged() {
    let site = Site::new().await;
    let id = site.webhook(URL, "*").await;
    site.users(10).await;
    site.until(id, |webhook| webhook.cursor == 10).await;
    site.wallet().redeliver(id, 4).await.unwrap();
    site.endpoints.until_count(URL, 11).await;
    let received = site.endpoints.received(URL);
    let [first, again] = [3, 10].map(|place: usize| &received[place].request);
    assert_eq!((&again.id, &again.body), (&first.id, &first.body));
    let unknown = site.wallet().redeliver(id, 11).await;
    assert!(matches!(unknown, Err(Error::Refused(Refusal::UnknownDelivery { number: 11, .. }))));
    let delivery = site.until_tried(id, 4, 1).await;
    assert_eq!((delivery.state, delivery.attempts.len()), (DeliveryState::Delivered, 2));
}

#[tokio::test]
async fn a_range_of_events_can_be_sent_again() {
    let site = Site::new().await;
    let id = site.webhook(URL, "user.*").await;
    for _ in 0..20 {
        site.users(1).await;
        site.invoice().await;
    }
    site.until(id, |webhook| webhook.cursor >= 39).await;
    assert_eq!(site.wallet().replay(id, range(10, 30, false)).await.unwrap(), 10);
    site.endpoints.until_count(URL, 30).await;
    let again = site.endpoints.numbers(URL)[20..].to_vec();
    assert_eq!(again, Vec::from_iter((11..30).step_by(2)));
    assert_chained(&site.endpoints.received(URL));
    assert_eq!(site.wallet().replay(id, range(10, 30, true)).await.unwrap(), 0);
}

#[tokio::test]
async fn all_failed_events_can_be_sent_again() {
    let site = Site::new().await;
    site.endpoints.reply_with(URL, |it| match it.number % 10 {
        0 => Reply::Status(500),
        _ => Reply::Status(200),
    });
    let id = site.webhook(URL, "*").await;
    site.users(30).await;
    site.until(id, |webhook| webhook.cursor == 30).await;
    let deliveries = async || {
        let mut deliveries = Vec::new();
        for number in [10, 20, 30] {
            deliveries.push(site.until_tried(id, number, 1).await);
        }
        deliveries
    };
    loop {
        let before = deliveries().await;
        let Some(next) = before.iter().filter_map(|it| it.state.next_attempt_at()).min() else {
            break;
        };
        // The pause is ten minutes at most.
        site.clock.set(next.max(site.clock.now().after(HOUR / 6)));
        while deliveries().await == before {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    site.endpoints.reply(URL, Reply::Status(200));
    let before = site.endpoints.received(URL).len();
    assert_eq!(site.wallet().replay(id, range(0, 25, true)).await.unwrap(), 2);
    site.clock.advance(HOUR);
    site.endpoints.until_count(URL, before + 2).await;
    assert_eq!(site.endpoints.numbers(URL)[before..], [10, 20]);
}

#[tokio::test]
async fn deliveries_that_are_over_are_deleted_after_thirty_days() {
    let site = Site::new().await;
    site.endpoints.reply_with(URL, |it| match it.number {
        3 => Reply::Status(500),
        _ => Reply::Status(200),
    });
    let id = site.webhook(URL, "*").await;
    site.users(10).await;
    site.until(id, |webhook| webhook.cursor == 10).await;
    let known = async || {
        let all = GetDeliveries { id, state: None, after: 0, limit: 99 };
        let (deliveries, next) = site.wallet().deliveries(all).await.unwrap();
        assert_eq!(next, None);
        deliveries.iter().map(|listed| listed.number).collect::<Vec<_>>()
    };
    site.clock.advance(29 * DAY);
    site.until_tried(id, 3, 2).await;
    assert_eq!(known().await, Vec::from_iter(1..=10));
    site.clock.advance(DAY);
    while known().await != [3] {
        site.clock.advance(HOUR);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(matches!(
        site.wallet().delivery(id, 1).await,
        Err(Error::Refused(Refusal::UnknownDelivery { .. }))
    ));
}
