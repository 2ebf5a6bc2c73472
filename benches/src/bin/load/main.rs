//! Puts the real server under load, next to bare hyper servers that do what is unavoidable.
//!
//! Every comparison alternates between the two several times, and the median of the ratios counts:
//! whatever else the machine does hits both alike. Misses are told, not failed on.

#![allow(clippy::unwrap_used, reason = "what fails here fails a measurement")]

mod bare;
mod client;
mod comparison;
mod start;

use std::time::Duration;

use bsv_benches::{Table, verdict};
use bsv_tests::{Site, vectors};
use clap::{Parser, Subcommand};

use bare::{BareServer, Work};
use comparison::{Comparison, Measured};

/// Compares the rates of the server with those of bare hyper servers, and measures its start.
#[derive(Debug, Parser)]
struct Arguments {
    /// How often each comparison is made
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// For how long each side of a comparison is put under load, in seconds
    #[arg(long, default_value_t = 1.0, value_parser = seconds)]
    seconds: f64,
    /// Makes only the comparisons whose names contain this
    #[arg(long, default_value = "", value_name = "TEXT")]
    only: String,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Clone, Copy, Debug, Subcommand)]
enum Command {
    /// Runs a bare server until standard input ends
    #[command(hide = true)]
    Bare { work: Work },
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.01..=60.0).contains(seconds));
    seconds.ok_or_else(|| "must be a number from 0.01 to 60".to_owned())
}

fn main() {
    let arguments = Arguments::parse();
    match arguments.command {
        Some(Command::Bare { work }) => bare::run(work),
        None => measure(&arguments),
    }
}

fn measure(arguments: &Arguments) {
    let mut sealed = Site::new();
    sealed.set_env("BSV_KEYSTORE_PASSPHRASE", "correct horse battery staple");
    let mut plain = Site::new();
    for site in [&mut plain, &mut sealed] {
        site.set_env("BSV_LOG", "error");
        let home = vectors::write_home(&vectors::minerid_0_2(), site.data_dir());
        site.cli_ok(&["importminerid", "--from", home.to_str().unwrap()]);
    }
    let mut starts = Table::new(["start", "median", "at most", ""]);
    for (name, site) in [("plain keystore", &plain), ("keystore with passphrase", &sealed)] {
        start::measure(name, site, &mut starts);
    }

    let server = plain.server();
    let constant = BareServer::start(Work::Constant);
    let signature = BareServer::start(Work::Signature);
    let mut comparisons = comparison::all(&server, &constant, &signature);
    comparisons.retain(|comparison| comparison.name.contains(&arguments.only));
    for round in 1..=arguments.rounds {
        eprintln!("round {round} of {}", arguments.rounds);
        for comparison in &mut comparisons {
            comparison.measure(Duration::from_secs_f64(arguments.seconds));
        }
    }
    let mut rates = Table::new([
        "16 connections",
        "server/s",
        "bare/s",
        "ratio",
        "at least",
        "",
        "server cpu",
        "bare cpu",
    ]);
    for comparison in &comparisons {
        rates.row(row(comparison));
    }
    println!("\n{rates}\n{starts}");
}

fn row(comparison: &Comparison<'_>) -> [String; 8] {
    let Measured { server, bare, ratio } = comparison.measured();
    [
        comparison.name.to_owned(),
        format!("{:.0}", server.rate),
        format!("{:.0}", bare.rate),
        format!("{ratio:.3}"),
        comparison.bar.map(|bar| format!("{bar:.3}")).unwrap_or_default(),
        comparison.bar.map(|bar| verdict(ratio >= bar)).unwrap_or_default(),
        format!("{:.1} us", server.cpu),
        format!("{:.1} us", bare.cpu),
    ]
}
