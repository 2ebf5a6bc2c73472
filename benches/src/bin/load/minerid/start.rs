//! How much time and memory the server's start takes.

use std::time::Instant;

use bsv_benches::{Table, median, verdict};
use bsv_store::StretchedPassphrase;
use bsv_tests::Site;
use secrecy::SecretString;

const STARTS: usize = 20;
/// The longest time from exec to the listening line, in milliseconds, without the stretching of the
/// passphrase.
const MAX_TIME: f64 = 50.0;
/// The most resident memory after the start, in megabytes.
const MAX_MEMORY: f64 = 25.0;

/// How long it takes to stretch a passphrase for the keystore of `site`, in milliseconds.
pub(crate) fn stretching(site: &Site, passphrase: &str) -> f64 {
    let keystore = site.network_dir().join("keystore");
    let passphrase = SecretString::from(passphrase);
    let times = (0..STARTS).map(|_| {
        let begun = Instant::now();
        StretchedPassphrase::for_keystore(&keystore, &passphrase).unwrap();
        begun.elapsed().as_secs_f64() * 1e3
    });
    median(times)
}

/// Measures many starts of the server of `site`. The bar allows for `unavoidable` milliseconds
/// more.
pub(crate) fn measure(name: &str, site: &Site, unavoidable: f64, table: &mut Table<4>) {
    eprintln!("{STARTS} starts, {name}");
    let (times, memories): (Vec<_>, Vec<_>) = (0..STARTS)
        .map(|_| {
            let server = site.server();
            (server.start_time.as_secs_f64() * 1e3, server.resident_memory() as f64 / 1e6)
        })
        .unzip();
    for (what, figures, bar, unit) in
        [("time", times, unavoidable + MAX_TIME, "ms"), ("memory", memories, MAX_MEMORY, "MB")]
    {
        let figure = median(figures);
        table.row([
            format!("{what}, {name}"),
            format!("{figure:.1} {unit}"),
            format!("{bar:.0} {unit}"),
            verdict(figure <= bar),
        ]);
    }
}
