//! The order in which events are sent.

use std::collections::BTreeMap;
use std::time::Duration;

use bsv_invoicing::webhooks::WebhookDraft;

use crate::endpoints::{Received, Reply};
use crate::site::{Site, URL, draft, range};

/// The previous event of each event. All attempts for an event must name the same one.
pub(crate) fn previous(received: &[Received]) -> BTreeMap<u64, Option<u64>> {
    let mut said = BTreeMap::new();
    for it in received {
        let before = said.insert(it.number, it.previous);
        assert!(before.is_none_or(|before| before == it.previous), "{it:?} and {before:?}");
    }
    said
}

/// Checks that each event names the one before it as the previous one.
pub(crate) fn assert_chained(received: &[Received]) {
    let said = previous(received);
    let mut before = None;
    for (number, previous) in said {
        assert_eq!(previous, before, "{number}");
        before = Some(number);
    }
}

#[tokio::test]
async fn first_attempts_begin_in_order_eight_at_once() {
    let (site, id) = Site::hanging(300).await;
    site.endpoints.reply_with(URL, |it| match it.number {
        1 => Reply::Hang,
        _ => Reply::Status(200),
    });
    // The first one is slow, and the others continue.
    site.endpoints.until_count(URL, 300).await;
    assert_eq!(site.known(id).await.cursor, 0);
    site.endpoints.reply(URL, Reply::Status(200));
    site.until(id, |webhook| webhook.cursor == 300).await;
    assert_eq!(site.endpoints.numbers(URL), Vec::from_iter(1..=300));
    assert_eq!(site.endpoints.most_under_way(URL), 8);
    assert_chained(&site.endpoints.received(URL));
}

#[tokio::test]
async fn events_name_the_previous_event_even_after_failures() {
    let site = Site::new().await;
    site.endpoints.reply_with(URL, |it| match it.number % 7 {
        0 => Reply::Status(500),
        _ => Reply::Status(200),
    });
    let id = site.webhook(URL, "user.*").await;
    for _ in 0..20 {
        site.users(2).await;
        site.invoice().await;
    }
    site.until(id, |webhook| webhook.cursor >= 59).await;
    site.endpoints.reply(URL, Reply::Status(200));
    site.clock.advance(Duration::from_secs(60));
    let again = |received: &[Received]| received.len() - previous(received).len();
    let failed = (1..=60).filter(|number| number % 7 == 0 && number % 3 != 0).count();
    site.endpoints.until(URL, |received| again(received) == failed).await;
    assert_chained(&site.endpoints.received(URL));
    assert_eq!(site.endpoints.counts(URL).len(), 40);
}

#[tokio::test]
async fn an_event_in_order_waits_until_the_previous_one_is_delivered() {
    let site = Site::new().await;
    site.endpoints.reply_with(URL, |it| match it.number {
        3 => Reply::Status(500),
        _ => Reply::Status(200),
    });
    let draft = WebhookDraft { in_order: true, ..draft(URL, "*") };
    let id = site.wallet().create_webhook(draft).await.unwrap().0;
    site.users(20).await;
    for tries in 1..=3 {
        let next = site.until_tried(id, 3, tries).await.state.next_attempt_at().unwrap();
        site.clock.set(next);
        site.endpoints.until_count(URL, 3 + tries as usize).await;
    }
    assert_eq!(site.endpoints.numbers(URL), [1, 2, 3, 3, 3, 3]);
    site.endpoints.reply(URL, Reply::Status(200));
    let next = site.until_tried(id, 3, 4).await.state.next_attempt_at().unwrap();
    site.clock.set(next);
    site.until(id, |webhook| webhook.cursor == 20).await;
    let all: Vec<_> = [1, 2].into_iter().chain([3; 5]).chain(4..=20).collect();
    assert_eq!(site.endpoints.numbers(URL), all);
    assert_eq!(site.endpoints.most_under_way(URL), 1);
}

/// The order holds after a kill, and while other events wait for retries.
#[tokio::test]
async fn an_event_holds_others_back_even_after_a_restart() {
    let mut site = Site::new().await;
    let draft = WebhookDraft { in_order: true, ..draft(URL, "*") };
    let id = site.wallet().create_webhook(draft).await.unwrap().0;
    site.users(5).await;
    site.until(id, |webhook| webhook.cursor == 5).await;
    site.endpoints.reply(URL, Reply::Status(500));
    assert_eq!(site.wallet().replay(id, range(1, 5, false)).await.unwrap(), 4);
    site.until(id, |webhook| webhook.holding == Some(2)).await;
    site.kill().await;
    site.start().await;
    site.users(1).await;
    let next = site.until_tried(id, 2, 1).await.state.next_attempt_at().unwrap();
    site.endpoints.reply(URL, Reply::Status(200));
    site.clock.set(next);
    site.until(id, |webhook| webhook.cursor == 6).await;
    assert_eq!(site.endpoints.numbers(URL), [1, 2, 3, 4, 5, 2, 2, 3, 4, 5, 6]);
}
