//! Puts the real server under load, and compares it with bare hyper servers that do only the
//! unavoidable work.
//!
//! Every comparison alternates between the two several times, and the median of the ratios counts:
//! whatever else the machine does slows both down alike. The program prints which bars were missed,
//! and succeeds all the same. It fails if a stand-in has failed.

#![allow(clippy::unwrap_used, reason = "what fails here fails a measurement")]

mod bare;
mod client;
mod events;
mod http;
mod metrics;
mod minerid;
mod page;
mod payments;
mod postgres;
mod report;
mod restart;
mod rpc;
mod strangers;
mod wallet;
mod watching;

use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use mimalloc::MiMalloc;

use bare::Work;
use strangers::Siege;

/// Compares the speed of the server with that of its unavoidable work, and measures its start.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// The miner identity service, compared with bare hyper servers
    Minerid {
        #[command(flatten)]
        rounds: Rounds,
        /// Make only the comparisons whose names contain this text
        #[arg(long, default_value = "", value_name = "TEXT")]
        only: String,
    },
    /// Events: how soon streams and webhooks tell them, what streams cost, and pages of the log
    Events {
        #[command(flatten)]
        rounds: Rounds,
        /// How many events the log holds
        #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(10_000..=100_000_000))]
        events: u64,
        /// Measure only the parts whose names contain this: pages, telling, webhooks, creating, unread, resuming or
        /// memory
        #[arg(long, default_value = "", value_name = "TEXT")]
        only: String,
    },
    /// Metrics of the wallet, with few and with many invoices
    Metrics {
        #[command(flatten)]
        rounds: Rounds,
        /// How many invoices the large wallet has
        #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(100_000..=100_000_000))]
        invoices: u64,
    },
    /// The wallet with few and with many invoices, compared with bare commits and bare hyper
    /// servers
    Wallet {
        #[command(flatten)]
        rounds: Rounds,
        /// How many invoices the large wallet has
        #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(100_000..=100_000_000))]
        invoices: u64,
    },
    /// Payment pages, compared with a bare hyper server that answers as many bytes
    Page {
        #[command(flatten)]
        rounds: Rounds,
    },
    /// Payments to a wallet with few and with many coins, compared with bare commits. A stand-in
    /// for the node accepts everything at once
    Payments {
        #[command(flatten)]
        rounds: Rounds,
        /// How many coins the large wallet has
        #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1_000..=100_000_000))]
        coins: u64,
    },
    /// A wallet in PostgreSQL, used by one process and by two, compared with bare commits of one row each
    Postgres {
        #[command(flatten)]
        rounds: Rounds,
        /// For how many seconds invoices are created beside an open snapshot
        #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(3..=3600))]
        snapshot: u32,
        /// Measure only the parts whose names contain this: creating, paying, looking, alone, snapshot, standby or
        /// served
        #[arg(long, default_value = "", value_name = "TEXT")]
        only: String,
    },
    /// What a pool notices of restarts, with and without handing over the listening sockets
    Restart {
        /// How often the server is restarted in each of the two ways
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        restarts: u32,
    },
    /// How fast honest payers are answered while strangers attack the listener for payments,
    /// compared with how fast without an attack
    Strangers {
        #[command(flatten)]
        siege: Siege,
    },
    /// Payments that the wallet finds by itself: what watching scripts costs, and how soon it sees
    /// a payment. A stand-in for the node publishes 500 transactions of strangers per second
    Watching {
        #[command(flatten)]
        rounds: Rounds,
        /// How many scripts are watched
        #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1_000..=100_000_000))]
        scripts: u64,
    },
    /// Runs a bare server until standard input ends
    #[command(hide = true)]
    Bare { work: Work, answer_len: usize },
    /// Uses a store in PostgreSQL as standard input asks
    #[command(hide = true)]
    Store { url: String },
}

/// How often and for how long to measure.
#[derive(Clone, Copy, Debug, Args)]
struct Rounds {
    /// How many times to make each comparison
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// For how many seconds to put each side of a comparison under load
    #[arg(long, default_value_t = 1.0, value_parser = seconds)]
    seconds: f64,
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.01..=60.0).contains(seconds));
    seconds.ok_or_else(|| "must be a number from 0.01 to 60".to_owned())
}

/// The allocator of the server: the parts of it that run in this process are to be as fast as there.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Bare { work, answer_len } => bare::run(work, answer_len),
        Command::Events { rounds, events, only } => events::measure(rounds, events, &only),
        Command::Metrics { rounds, invoices } => metrics::measure(rounds, invoices),
        Command::Minerid { rounds, only } => minerid::measure(&rounds, &only),
        Command::Page { rounds } => page::measure(rounds),
        Command::Payments { rounds, coins } => payments::measure(rounds, coins),
        Command::Postgres { rounds, snapshot, only } => postgres::measure(rounds, snapshot, &only),
        Command::Restart { restarts } => restart::measure(restarts),
        Command::Store { url } => postgres::work_for_parent(&url),
        Command::Strangers { siege } => strangers::measure(&siege),
        Command::Wallet { rounds, invoices } => wallet::measure(rounds, invoices),
        Command::Watching { rounds, scripts } => watching::measure(rounds, scripts),
    }
    let faults = rpc::faults();
    for (fault, count) in &faults {
        eprintln!(
            "a stand-in for the node failed, so that no figure counts: {fault} ({count} times)"
        );
    }
    if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
