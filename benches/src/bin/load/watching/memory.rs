//! How much memory the watched scripts take.

use std::thread;
use std::time::Duration;

use serde_json::json;

use super::fill::fill;
use super::node::ChainNode;
use crate::report::{Bar, Report};

/// How often each server is started.
const STARTS: usize = 5;
/// How long a server is left alone after it has loaded the watched scripts.
const CALM: Duration = Duration::from_secs(1);
/// The megabytes of the store's cache: the least, and the default. Reading the scripts fills a
/// larger cache too, as any reading does.
const CACHES: [u64; 2] = [1, 48];

/// Compares servers that watch so many scripts with servers that watch none.
pub(super) fn measure(node: &ChainNode, scripts: u64, report: &mut Report) {
    for cache in CACHES {
        let mut settings = node.settings.clone();
        settings["wallet"] = json!({ "cacheMegabytes": cache });
        let sites = [0, scripts].map(|scripts| fill(settings.clone(), scripts, 0).site);
        for _ in 0..STARTS {
            let [none, all] = sites.each_ref().map(|site| {
                let server = site.server();
                node.wait_until_watched();
                thread::sleep(CALM);
                server.resident_memory() as f64
            });
            let with = format!("with a cache of {cache} MB for the store");
            report.figure(format!("memory that watches nothing, {with}: MB"), none / 1e6);
            let (what, figure) =
                (format!("memory per script, {with}: bytes"), (all - none) / scripts as f64);
            match cache {
                1 => report.compare(what, figure, Bar::AtMost(32.0)),
                _ => report.figure(what, figure),
            }
        }
    }
}
