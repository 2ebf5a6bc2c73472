//! The metrics that monitoring systems read from the real server.

mod deployed;
mod documented;
mod formats;
mod identities;
mod requests;
mod stores;
mod wallet;

use std::time::{Duration, Instant};

use bsv_tests::{Client, Metrics};

/// Waits until a sample has a value.
fn wait_for(client: &Client, sample: &str, value: f64) {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let metrics = Metrics::of(client);
        if metrics.get(sample) == Some(value) {
            return;
        }
        assert!(Instant::now() < deadline, "timed out, {sample} is not {value} in\n{}", metrics.0);
        std::thread::sleep(Duration::from_millis(100));
    }
}
