//! What the server needs to start.

use bsv_benches::{Table, median, verdict};
use bsv_tests::Site;

const STARTS: usize = 20;
/// From exec to the listening line, in milliseconds.
const MAX_TIME: f64 = 50.0;
/// Resident after the start, in megabytes.
const MAX_MEMORY: f64 = 20.0;

/// Starts the server of `site` many times.
pub(crate) fn measure(name: &str, site: &Site, table: &mut Table<4>) {
    eprintln!("{STARTS} starts, {name}");
    let (times, memories): (Vec<_>, Vec<_>) = (0..STARTS)
        .map(|_| {
            let server = site.server();
            (server.start_time.as_secs_f64() * 1e3, server.resident_memory() as f64 / 1e6)
        })
        .unzip();
    for (what, figures, bar, unit) in
        [("time", times, MAX_TIME, "ms"), ("memory", memories, MAX_MEMORY, "MB")]
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
