//! Puts the real server under load, next to bare hyper servers that do what is unavoidable.
//!
//! Every comparison alternates between the two several times, and the median of the ratios counts:
//! whatever else the machine does hits both alike. Misses are told, not failed on.

#![allow(clippy::unwrap_used, reason = "what fails here fails a measurement")]

mod bare;
mod client;
mod events;
mod http;
mod metrics;
mod minerid;
mod page;
mod payments;
mod report;
mod restart;
mod rpc;
mod strangers;
mod wallet;
mod watching;

use clap::{Args, Parser, Subcommand};

use bare::Work;
use strangers::Siege;

/// Compares the rates of the server with what is unavoidable, and measures its start.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// The miner identity service, next to bare hyper servers
    Minerid {
        #[command(flatten)]
        rounds: Rounds,
        /// Makes only the comparisons whose names contain this
        #[arg(long, default_value = "", value_name = "TEXT")]
        only: String,
    },
    /// Events: how soon streams tell them, what streams take, and pages of the log
    Events {
        #[command(flatten)]
        rounds: Rounds,
        /// How many events the log has that is read
        #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(10_000..=100_000_000))]
        events: u64,
    },
    /// Metrics of the wallet, with few and with many invoices
    Metrics {
        #[command(flatten)]
        rounds: Rounds,
        /// How many invoices are many
        #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(100_000..=100_000_000))]
        invoices: u64,
    },
    /// The wallet, next to bare commits and bare hyper servers, with few and with many invoices
    Wallet {
        #[command(flatten)]
        rounds: Rounds,
        /// How many invoices are many
        #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(100_000..=100_000_000))]
        invoices: u64,
    },
    /// Payment pages, next to a bare hyper server that answers as many bytes
    Page {
        #[command(flatten)]
        rounds: Rounds,
    },
    /// Payments to the wallet, next to bare commits, with few and with many coins, on a stand-in for the
    /// node that says yes at once
    Payments {
        #[command(flatten)]
        rounds: Rounds,
        /// How many coins are many
        #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1_000..=100_000_000))]
        coins: u64,
    },
    /// What a pool sees of restarts, with and without handing over the listening sockets
    Restart {
        /// How often the server is restarted in either way
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        restarts: u32,
    },
    /// What honest payers get while strangers attack the listener for payments, next to what they get
    /// undisturbed
    Strangers {
        #[command(flatten)]
        siege: Siege,
    },
    /// Money that nobody tells the wallet of: what watching takes, and how soon it is seen, on a stand-in for the
    /// node that publishes 500 transactions of strangers per second
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
}

/// For how long is measured.
#[derive(Clone, Copy, Debug, Args)]
struct Rounds {
    /// How often each comparison is made
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// For how long each side of a comparison is put under load, in seconds
    #[arg(long, default_value_t = 1.0, value_parser = seconds)]
    seconds: f64,
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.01..=60.0).contains(seconds));
    seconds.ok_or_else(|| "must be a number from 0.01 to 60".to_owned())
}

fn main() {
    match Arguments::parse().command {
        Command::Bare { work, answer_len } => bare::run(work, answer_len),
        Command::Events { rounds, events } => events::measure(rounds, events),
        Command::Metrics { rounds, invoices } => metrics::measure(rounds, invoices),
        Command::Minerid { rounds, only } => minerid::measure(&rounds, &only),
        Command::Page { rounds } => page::measure(rounds),
        Command::Payments { rounds, coins } => payments::measure(rounds, coins),
        Command::Restart { restarts } => restart::measure(restarts),
        Command::Strangers { siege } => strangers::measure(&siege),
        Command::Wallet { rounds, invoices } => wallet::measure(rounds, invoices),
        Command::Watching { rounds, scripts } => watching::measure(rounds, scripts),
    }
}
