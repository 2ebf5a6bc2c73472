//! The harness of the black-box tests: a real Bitcoin SV node on a private network, and the real
//! server and command line on their own data directory.

#![allow(clippy::unwrap_used, reason = "what fails here fails a test")]

pub mod ancestry;
pub mod brc100;
pub mod browser;
pub mod build;
pub mod callers;
pub mod clock;
mod dice;
pub mod faults;
pub mod fetch;
pub mod front_end;
pub mod gate;
pub mod http;
pub mod identified_block;
pub mod identities;
pub mod jobs;
pub mod killer;
pub mod known_miners;
mod lineage;
pub mod metrics;
pub mod miner_info;
pub mod node;
pub mod openapi;
pub mod payee;
pub mod peer;
pub mod pgbouncer;
pub mod pool;
pub mod postgres;
pub mod purse;
pub mod receiver;
pub mod rival;
pub mod rows;
pub mod services;
pub mod site;
pub mod sockets;
pub mod source;
pub mod stream;
pub mod terminal;
pub mod till;
pub mod tls;
pub mod trade;
pub mod vectors;
pub mod wallet;

pub use brc100::Brc100Wallet;
pub use browser::Browser;
pub use callers::Callers;
pub use dice::Dice;
pub use front_end::FrontEnd;
pub use gate::{Gate, Hold, Refusal};
pub use http::{Client, Reply};
pub use lineage::Lineage;
pub use metrics::Metrics;
pub use node::{Node, free_port};
pub use payee::Payee;
pub use peer::Peer;
pub use pgbouncer::PgBouncer;
pub use pool::Template;
pub use postgres::Postgres;
pub use purse::{Bill, Purse};
pub use receiver::Receiver;
pub use services::Service;
pub use site::{Done, Server, Site};
pub use sockets::ListeningSockets;
pub use stream::Stream;
pub use till::Till;
pub use trade::Trade;

/// Whether the long tests run in full (`BSV_TEST_FULL=1`) or with reduced counts.
pub fn is_full_run() -> bool {
    std::env::var_os("BSV_TEST_FULL").is_some_and(|value| value == "1")
}

/// How often a long test repeats its step: `full` times in a full run. Otherwise `reduced` times,
/// with a note in the output.
pub fn repetitions(what: &str, full: usize, reduced: usize) -> usize {
    let count = if is_full_run() { full } else { reduced };
    eprintln!("{what}: {count} of {full} repetitions (BSV_TEST_FULL=1 runs all)");
    count
}
