use std::pin::Pin;
use std::time::Duration;

use bsv_invoicing::{RedbWalletStore, UserDraft, WalletSettings};
use bsv_store::{DatabaseOptions, DirLock, Keystore, PlainKeys};
use bsv_tx::Network;
use futures_util::{Stream, StreamExt};
use hyper::StatusCode;
use tempfile::TempDir;
use tokio::time::timeout;

use super::*;
use crate::http::BrokenOff;
use crate::wallet::event_blocks::PAGE;
use crate::wallet::events;

const LONG: Duration = Duration::from_secs(600);

pub(crate) async fn wallet(dir: &TempDir) -> Arc<Wallet> {
    let keystore = dir.path().join("keystore");
    let keystore = Keystore::open(&keystore, None, PlainKeys::Allowed, "test").unwrap();
    let lock = DirLock::acquire(&dir.path().join("wallet"), "test").unwrap();
    let store = RedbWalletStore::open(lock, DatabaseOptions::default()).unwrap();
    let store = Arc::new(store);
    let settings = WalletSettings::new(Network::Regtest);
    Arc::new(Wallet::open(store, keystore, settings).await.unwrap())
}

pub(crate) async fn create_users(wallet: &Wallet, count: u64) {
    for _ in 0..count {
        let details = UserDraft { name: "Ada".to_owned(), ..UserDraft::default() };
        wallet.create_user(details, None).await.unwrap();
    }
}

type Parts = Pin<Box<dyn Stream<Item = Result<Bytes, BrokenOff>> + Send>>;

fn event_stream(
    wallet: &Arc<Wallet>,
    types: &str,
    pace: Pace,
    places: &EventPlaces,
) -> EventStream {
    let (start, place) = (Start { after: 0, reset: None }, places.stream().unwrap());
    let filter = types.parse().unwrap();
    EventStream::new(Arc::clone(wallet), places.blocks(), start, filter, pace, place)
}

/// A stream of events of these types from the beginning, with this pace.
fn stream(wallet: &Arc<Wallet>, types: &str, pace: Pace, places: &EventPlaces) -> Parts {
    let stream = event_stream(wallet, types, pace, places);
    Box::pin(event_stream::until_over(stream, pace, places.stopping()))
}

/// The next part, as text.
async fn next(parts: &mut Parts) -> Option<String> {
    let part = parts.next().await?.expect("it is not broken off");
    Some(String::from_utf8(part.to_vec()).unwrap())
}

#[tokio::test]
async fn a_heartbeat_moves_on_over_what_is_not_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let (wallet, places) = (wallet(&dir).await, EventPlaces::new(1));
    create_users(&wallet, 3).await;
    let silence = Duration::from_millis(10);
    let pace = Pace { silence, life: [LONG; 2], ..Pace::USUAL };
    let mut parts = stream(&wallet, "invoice.*", pace, &places);
    let retry = next(&mut parts).await.unwrap();
    let retry = retry.strip_prefix("retry: ").unwrap().strip_suffix("\n\n").unwrap();
    assert!((2000..=5000).contains(&retry.parse().unwrap()), "{retry}");
    let log = wallet.event_log();
    for _ in 0..2 {
        assert_eq!(next(&mut parts).await.unwrap(), format!("id: {log}-3\n\n"));
    }
    create_users(&wallet, 1).await;
    while next(&mut parts).await.unwrap() != format!("id: {log}-4\n\n") {}
}

#[tokio::test]
async fn a_waiting_stream_holds_little_memory() {
    let dir = tempfile::tempdir().unwrap();
    let (wallet, places) = (wallet(&dir).await, EventPlaces::new(1));
    let stream = event_stream(&wallet, "*", Pace::USUAL, &places);
    let len = size_of_val(&event_stream::until_over(stream, Pace::USUAL, places.stopping()));
    assert!(len <= 896, "{len} bytes");
}

#[tokio::test]
async fn a_stream_ends_when_it_is_old_and_frees_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let (wallet, places) = (wallet(&dir).await, EventPlaces::new(1));
    let silence = Duration::from_millis(10);
    let pace = Pace { silence, life: [2 * silence; 2], ..Pace::USUAL };
    let mut parts = stream(&wallet, "*", pace, &places);
    assert!(places.stream().is_err());
    while next(&mut parts).await.is_some() {}
    drop(parts);
    drop(places.stream().unwrap());
}

#[tokio::test]
async fn a_slow_reader_has_a_page_held_and_misses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (wallet, places) = (wallet(&dir).await, EventPlaces::new(1));
    let count = 3 * PAGE as u64 + 7;
    create_users(&wallet, count).await;
    let pace = Pace { life: [LONG; 2], ..Pace::USUAL };
    let mut parts = stream(&wallet, "*", pace, &places);
    let mut number = 0;
    while number < count {
        let part = next(&mut parts).await.unwrap();
        let ids: Vec<_> = part.lines().filter(|line| line.starts_with("id: ")).collect();
        assert!(ids.len() <= PAGE);
        for id in ids {
            number += 1;
            assert_eq!(id, format!("id: {}-{number}", wallet.event_log()));
        }
    }
}

#[tokio::test]
async fn streams_end_with_the_server() {
    let dir = tempfile::tempdir().unwrap();
    let (wallet, places) = (wallet(&dir).await, EventPlaces::new(2));
    create_users(&wallet, 3 * PAGE as u64).await;
    let pace = Pace { life: [LONG; 2], ..Pace::USUAL };
    let mut waiting = stream(&wallet, "invoice.*", pace, &places);
    let mut behind = stream(&wallet, "*", pace, &places);
    next(&mut waiting).await.unwrap();
    next(&mut behind).await.unwrap();
    next(&mut behind).await.unwrap();
    let waiting = tokio::spawn(async move { next(&mut waiting).await });
    places.stop();
    assert_eq!(waiting.await.unwrap(), None);
    assert_eq!(next(&mut behind).await, None);
    drop(behind);
    let mut late = stream(&wallet, "*", pace, &places);
    assert_eq!(next(&mut late).await, None);
}

#[tokio::test]
async fn a_request_that_waits_is_answered_when_the_server_stops() {
    let dir = tempfile::tempdir().unwrap();
    let (wallet, places) = (wallet(&dir).await, Arc::new(EventPlaces::new(1)));
    let uri = Uri::from_static("/api/v1/events?wait=30");
    let mut asked = events::Asked::parse(&wallet, &uri).await.unwrap();
    asked.wait = LONG.as_secs();
    let waiting = tokio::spawn({
        let places = Arc::clone(&places);
        async move { events::answer(&wallet, &places, &asked, &Method::GET).await }
    });
    while places.wait().is_ok() {
        tokio::task::yield_now().await;
    }
    places.stop();
    let answer = timeout(LONG / 10, waiting).await.expect("it does not wait on").unwrap().unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
}

#[test]
fn ids_of_events_are_read_as_they_are_written_or_as_bare_numbers() {
    let log = "3f9a1c02".parse().unwrap();
    let id = |log, number| Some(LastEventId { log, number });
    assert_eq!(LastEventId::parse("3f9a1c02-1042"), id(Some(log), 1042));
    assert_eq!(LastEventId::parse("7"), id(None, 7));
    for text in
        ["", "-", "3f9a1c02-", "-7", "3f9a1c02-+7", "3f9a1c02_7", "x-7", "7 ", "3f9a1c02-7-7"]
    {
        assert_eq!(LastEventId::parse(text), None, "{text}");
    }
}
