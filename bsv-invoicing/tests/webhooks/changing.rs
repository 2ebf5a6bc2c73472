//! Changes by owners while events are sent.

use std::time::Duration;

use bsv_invoicing::Error;
use bsv_invoicing::ledger::Refusal;
use bsv_invoicing::webhooks::{WebhookChange, WebhookDraft, WebhookState};

use crate::endpoints::Reply;
use crate::order::assert_chained;
use crate::site::{OTHER, Site, URL, draft};

#[tokio::test]
async fn only_events_of_the_selected_types_are_sent() {
    let site = Site::new().await;
    let users = site.webhook(URL, "user.*").await;
    let both = site.webhook(OTHER, "invoice.created,user.created").await;
    for _ in 0..5 {
        site.users(1).await;
        site.invoice().await;
    }
    for id in [users, both] {
        site.until(id, |webhook| webhook.cursor >= 9).await;
    }
    site.endpoints.until_count(OTHER, 10).await;
    assert_eq!(site.endpoints.numbers(URL), [1, 3, 5, 7, 9]);
    assert_chained(&site.endpoints.received(URL));
    // The cursor moves past events of other types after a while.
    site.until_passed_over(users, 10).await;
}

#[tokio::test]
async fn a_webhook_that_begins_later_gets_no_earlier_events() {
    let site = Site::new().await;
    site.users(3).await;
    let draft = WebhookDraft { after: None, ..draft(URL, "*") };
    let (id, webhook, _) = site.wallet().create_webhook(draft).await.unwrap();
    assert_eq!(webhook.cursor, 3);
    site.users(2).await;
    site.until(id, |webhook| webhook.cursor == 5).await;
    assert_eq!(site.endpoints.numbers(URL), [4, 5]);
    assert_chained(&site.endpoints.received(URL));
}

/// This holds from the moment at which the owner gets the answer.
#[tokio::test]
async fn events_after_a_webhook_is_disabled_are_not_sent() {
    let site = Site::new().await;
    let [id, _] = [site.webhook(URL, "*").await, site.webhook(OTHER, "*").await];
    let set = async |is_enabled| {
        let change = WebhookChange { is_enabled: Some(is_enabled), ..Default::default() };
        site.wallet().change_webhook(id, change).await.unwrap();
    };
    for round in 1..=40 {
        set(false).await;
        let before = site.endpoints.received(URL).len();
        site.users(1).await;
        site.endpoints.until_count(OTHER, round).await;
        assert_eq!(site.endpoints.received(URL).len(), before, "in round {round}");
        set(true).await;
        site.endpoints.until_count(URL, round).await;
    }
}

/// Events that are under way do not change. Events that are not sent yet are sent as the owner
/// wants now.
#[tokio::test]
async fn new_types_apply_to_events_that_are_not_sent_yet() {
    let site = Site::new().await;
    site.endpoints.reply(URL, Reply::Hang);
    let id = site.webhook(URL, "user.*").await;
    for _ in 0..40 {
        site.users(1).await;
        site.invoice().await;
    }
    site.endpoints.until_count(URL, 8).await;
    let change = WebhookChange { types: Some("invoice.*".to_owned()), ..Default::default() };
    site.wallet().change_webhook(id, change).await.unwrap();
    site.endpoints.reply(URL, Reply::Status(200));
    site.until(id, |webhook| webhook.cursor == 80).await;
    let received = site.endpoints.numbers(URL);
    assert_eq!(received[..8], [1, 3, 5, 7, 9, 11, 13, 15]);
    let users = received.iter().filter(|number| **number % 2 == 1).count();
    let first_invoice = received[users];
    assert!(received[users..].iter().copied().eq((first_invoice..=80).step_by(2)));
    assert!(first_invoice <= 16 + 2 * (users as u64 - 8) + 2, "{received:?}");
    assert_chained(&site.endpoints.received(URL));
}

#[tokio::test]
async fn a_disabled_webhook_continues_at_its_cursor_when_it_is_enabled() {
    let mut site = Site::new().await;
    let id = site.webhook(URL, "*").await;
    site.users(5).await;
    site.until(id, |webhook| webhook.cursor == 5).await;
    let set = |is_enabled| WebhookChange { is_enabled: Some(is_enabled), ..Default::default() };
    let disabled = site.wallet().change_webhook(id, set(false)).await.unwrap();
    assert_eq!(disabled.state, WebhookState::Disabled);
    site.users(30).await;
    site.kill().await;
    site.start().await;
    let other = site.webhook(OTHER, "*").await;
    site.until(other, |webhook| webhook.cursor == 35).await;
    assert_eq!(site.endpoints.received(URL).len(), 5);
    site.wallet().change_webhook(id, set(true)).await.unwrap();
    site.until(id, |webhook| webhook.cursor == 35).await;
    assert_eq!(site.endpoints.numbers(URL), Vec::from_iter(1..=35));
    assert_chained(&site.endpoints.received(URL));
}

#[tokio::test]
async fn a_deleted_webhook_gets_nothing_more() {
    let (site, id) = Site::hanging(20).await;
    site.wallet().delete_webhook(id).await.unwrap();
    site.endpoints.reply(URL, Reply::Status(200));
    // A webhook with the same URL is another webhook.
    let again = site.webhook(URL, "*").await;
    site.until(again, |webhook| webhook.cursor == 20).await;
    assert!(site.endpoints.received(URL).len() <= 28 + 8);
    assert!(matches!(site.wallet().webhook(id).await, Err(Error::UnknownWebhook(_))));
}

#[tokio::test]
async fn events_go_to_the_last_url_that_the_owner_set() {
    let site = Site::new().await;
    site.endpoints.reply(URL, Reply::Status(404));
    let id = site.webhook(URL, "*").await;
    site.users(50).await;
    site.until(id, |webhook| webhook.failures >= 5).await;
    let change = WebhookChange { url: Some(OTHER.to_owned()), ..Default::default() };
    site.wallet().change_webhook(id, change).await.unwrap();
    site.until(id, |webhook| webhook.cursor == 50).await;
    site.clock.advance(Duration::from_secs(3600));
    site.endpoints.until_count(OTHER, 50).await;
}

/// Answers of the former endpoint come later, and hold nothing back. Here the clock stands still.
#[tokio::test]
async fn the_answers_of_a_former_endpoint_do_not_count_for_the_new_one() {
    let (site, id) = Site::hanging(20).await;
    let change = WebhookChange { url: Some(OTHER.to_owned()), ..Default::default() };
    site.wallet().change_webhook(id, change).await.unwrap();
    site.endpoints.reply_with(URL, |it| match it.number {
        8 => Reply::Status(410),
        _ => Reply::Status(500),
    });
    let webhook = site.until(id, |webhook| webhook.cursor == 20).await;
    assert_eq!((webhook.state, webhook.failures), (WebhookState::Enabled, 0));
    assert_eq!(site.endpoints.numbers(OTHER), Vec::from_iter(9..=20));
    site.clock.advance(Duration::from_secs(60));
    site.endpoints.until_count(OTHER, 20).await;
    assert_eq!(site.endpoints.received(URL).len(), 8);
}

#[tokio::test]
async fn the_sender_ends_at_once_even_if_endpoints_hang() {
    let (mut site, _) = Site::hanging(20).await;
    site.stop().await;
}

#[tokio::test]
async fn a_url_that_events_cannot_be_sent_to_is_refused() {
    let site = Site::new().await;
    let long = format!("https://shop.example/{}", "a".repeat(2048));
    for (url, types, description, field) in [
        ("", "*", "", "url"),
        ("shop.example", "*", "", "url"),
        ("ftp://shop.example/", "*", "", "url"),
        ("https://user@shop.example/", "*", "", "url"),
        ("https://:password@shop.example/", "*", "", "url"),
        (&long, "*", "", "url"),
        (URL, "invoice", "", "types"),
        (URL, "", "", "types"),
        (URL, &vec!["*"; 2000].join(","), "", "types"),
        (URL, "*", &"é".repeat(1025), "description"),
    ] {
        let description = description.to_owned();
        let draft = WebhookDraft { description: description.clone(), ..draft(url, types) };
        let Err(Error::Invalid(errors)) = site.wallet().create_webhook(draft).await else {
            panic!("{url} {types} is taken")
        };
        assert_eq!(errors.iter().map(|(field, _)| field).collect::<Vec<_>>(), [field]);
    }
    let id = site.webhook(URL, "*").await;
    let change = WebhookChange { url: Some("http:".to_owned()), ..Default::default() };
    assert!(matches!(site.wallet().change_webhook(id, change).await, Err(Error::Invalid(_))));
    for _ in 1..16 {
        site.webhook(URL, "*").await;
    }
    let one_more = site.wallet().create_webhook(draft(URL, "*")).await;
    assert!(matches!(one_more, Err(Error::Refused(Refusal::TooManyWebhooks(16)))));
}
