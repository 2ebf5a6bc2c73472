//! A full disk while events are sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use bsv_tests::faults::{Fault, Faults, Operations};
use bsv_tests::payee::Answer;
use bsv_tests::{Receiver, Stream};
use serde_json::json;

use super::{Shop, patch, path, shown, until, webhook};
use crate::events::check_problem;

const EVENTS: usize = 40;
/// How many deliveries are under way at once.
const WINDOW: usize = 8;

#[test]
fn a_full_disk_stops_no_stream_and_nothing_is_sent_twice() {
    let mut site = super::site();
    let faults = Faults::install(&mut site);
    let shop = Shop::start_on(site);
    let client = shop.client();
    let receiver = Receiver::start();
    let (id, _) = webhook(client, &receiver, json!({}));
    patch(client, &id, &json!({ "state": "disabled" }));
    (0..EVENTS).for_each(|_| shop.create_user());
    let is_full = Arc::new(AtomicBool::new(false));
    receiver.reply_with({
        let is_full = Arc::clone(&is_full);
        move |_| {
            while !is_full.load(Ordering::Relaxed) {
                sleep(Duration::from_millis(5));
            }
            Answer::text(200, "taken")
        }
    });
    patch(client, &id, &json!({ "state": "enabled" }));
    receiver.until(|receiver| receiver.count() == WINDOW);

    faults.begin(Fault::FULL);
    is_full.store(true, Ordering::Relaxed);
    check_problem(&client.post("/api/v1/users", r#"{"name":"Ada"}"#), 503, "disk-full");
    let mut stream = Stream::open(client, "?after=0", None);
    assert_eq!(stream.events(EVENTS).last().unwrap()["number"], EVENTS);
    // The outcomes of the deliveries cannot be recorded, however often that is tried.
    let deadline = Instant::now() + Duration::from_secs(60);
    while faults.count(Operations::TakingRoom) < 10 {
        assert!(Instant::now() < deadline, "nothing is written");
        sleep(Duration::from_millis(20));
    }
    assert_eq!(receiver.count(), WINDOW);
    assert_eq!(shown(client, &path(&id))["cursor"], 0);

    faults.end();
    until(client, &path(&id), |webhook| webhook["cursor"] == EVENTS);
    let counts = receiver.counts();
    assert_eq!((counts.len(), receiver.count()), (EVENTS, EVENTS), "{counts:?}");
    shop.create_user();
    assert_eq!(stream.event().1["number"], EVENTS + 1);
}
