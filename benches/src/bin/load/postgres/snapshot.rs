use std::time::{Duration, Instant};

use bsv_benches::median;
use tokio::runtime::Runtime;

use super::Stores;
use super::bare::connect;
use super::process::CALLERS;
use super::work::Work;
use crate::report::{Bar, Report};

/// What keeps the database from removing what is outdated, as a backup does.
const SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM bare";

impl Stores {
    /// Compares creating after a snapshot has been open for so many seconds with creating before, so many times each.
    pub(super) fn beside_snapshot(&mut self, times: u32, seconds: u32, report: &mut Report) {
        eprintln!("creating beside a snapshot for {seconds} seconds");
        let before: Vec<_> = (0..times).map(|_| self.times_bare()).collect();
        let runtime = Runtime::new().unwrap();
        let client = runtime.block_on(connect(&self.server));
        runtime.block_on(client.batch_execute(SNAPSHOT)).unwrap();
        let opened = Instant::now();
        let mut beside = Vec::new();
        while opened.elapsed() < Duration::from_secs(seconds.into()) {
            beside.push(self.times_bare());
        }
        let last = beside.iter().rev().take(times as usize).copied();
        let (before, last) = (median(before), median(last));
        report.figure("64 creating, before a snapshot: times bare INSERTs", before);
        let what = format!("64 creating, beside a snapshot of {seconds} s");
        report.figure(format!("{what}: times bare INSERTs"), last);
        report.compare(format!("{what}: share of before"), last / before, Bar::AtLeast(0.9));
    }

    /// How many times as many invoices are created as bare rows are inserted in the same time.
    fn times_bare(&mut self) -> f64 {
        let bare = self.bare.rate(self.duration);
        self.processes[0].rate(Work::Create, CALLERS, self.duration) / bare
    }
}
