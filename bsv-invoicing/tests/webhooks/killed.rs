//! A killed process still sends each event, and sends only few of them twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use proptest::prelude::RngExt;
use proptest::test_runner::TestRng;

use crate::endpoints::Reply;
use crate::order::assert_chained;
use crate::site::{OTHER, Site, URL, WINDOW};

#[tokio::test]
async fn an_attempt_that_was_not_recorded_is_repeated() {
    let (mut site, id) = Site::hanging(20).await;
    site.kill().await;
    site.endpoints.reply(URL, Reply::Status(200));
    site.start().await;
    site.until(id, |webhook| webhook.cursor == 20).await;
    let numbers: Vec<_> = (1..=8).chain(1..=20).collect();
    assert_eq!(site.endpoints.numbers(URL), numbers);
    assert_chained(&site.endpoints.received(URL));
}

#[tokio::test]
async fn a_recorded_delivery_is_not_repeated() {
    let mut site = Site::new().await;
    site.endpoints.reply_with(URL, |it| match it.number {
        1 | 5 => Reply::Hang,
        _ => Reply::Status(200),
    });
    let id = site.webhook(URL, "*").await;
    site.users(100).await;
    site.endpoints.until_count(URL, 100).await;
    site.until_tried(id, 100, 1).await;
    site.kill().await;
    site.endpoints.reply(URL, Reply::Status(200));
    site.start().await;
    site.endpoints.until_count(URL, 102).await;
    site.until_passed_over(id, 100).await;
    let numbers: Vec<_> = (1..=100).chain([1, 5]).collect();
    assert_eq!(site.endpoints.numbers(URL), numbers);
    assert_chained(&site.endpoints.received(URL));
}

#[tokio::test]
async fn retries_continue_after_a_restart() {
    let mut site = Site::new().await;
    site.endpoints.reply(URL, Reply::Status(500));
    let id = site.webhook(URL, "*").await;
    site.users(1).await;
    for tries in 1..=3 {
        let next = site.until_tried(id, 1, tries).await.state.next_attempt_at().unwrap();
        site.kill().await;
        site.clock.set(next);
        site.start().await;
    }
    site.until_tried(id, 1, 4).await;
    assert_eq!(site.endpoints.numbers(URL), [1; 4]);
}

/// Events come all the time, endpoints fail at random, and the process is killed at random moments.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_event_is_received_whenever_the_process_is_killed() {
    let full = std::env::var_os("BSV_TEST_FULL").is_some_and(|value| value == "1");
    let rounds = if full { 1000 } else { 40 };
    eprintln!("kills: {rounds} of 1000 (BSV_TEST_FULL=1 runs all)");
    let mut random = TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha);
    let mut site = Site::new().await;
    let ids = [site.webhook(URL, "*").await, site.webhook(OTHER, "user.*").await];
    let count = Arc::new(AtomicU64::new(0));
    for url in [URL, OTHER] {
        let count = Arc::clone(&count);
        site.endpoints.reply_with(url, move |_| match count.fetch_add(1, Ordering::Relaxed) % 13 {
            0 => Reply::Status(500),
            _ => Reply::Status(200),
        });
    }
    let mut events = 0;
    for _ in 0..rounds {
        let users = random.random_range(1..20);
        site.users(users).await;
        site.invoice().await;
        events += users as u64 + 1;
        tokio::time::sleep(Duration::from_micros(random.random_range(0..8000))).await;
        site.clock.advance(Duration::from_secs(random.random_range(0..10)));
        site.kill().await;
        site.start().await;
    }
    for (id, url) in ids.into_iter().zip([URL, OTHER]) {
        site.endpoints.reply(url, Reply::Status(200));
        site.clock.advance(Duration::from_secs(7200));
        site.until_passed_over(id, events).await;
        assert_chained(&site.endpoints.received(url));
        let counts = site.endpoints.counts(url);
        for number in 1..=events {
            let delivery = site.delivery(id, number).await;
            assert_eq!(delivery.is_some(), counts.contains_key(&number), "{number}");
        }
        if url == URL {
            assert!(counts.into_keys().eq(1..=events));
        } else {
            assert_eq!(counts.len() as u64, events - rounds);
        }
        // The records of each event say how often it was sent, except for attempts that a kill
        // lost.
        let mut noted = 0;
        for number in 1..=events {
            noted += site.delivery(id, number).await.map_or(0, |it| it.attempts.len());
        }
        // Some were sent again meanwhile.
        let lost = site.endpoints.received(url).len() - noted;
        assert!(lost <= WINDOW * rounds as usize, "{lost} in {rounds} rounds");
    }
}
