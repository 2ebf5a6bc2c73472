//! The wallet's store in PostgreSQL.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

#[path = "../../../bsv-invoicing/tests/store_conformance/mod.rs"]
mod store_conformance;

mod back_end;
mod backups;
mod both;
mod cuts;
mod dump;
mod failing;
mod moving;
mod pair;
mod refusing;
mod schema;
mod server;
mod standby;
mod tokens;

use std::sync::LazyLock;

use bsv_invoicing::{PostgresOptions, PostgresWalletStore};
use bsv_tests::Postgres;

/// One server for all tests.
static SERVER: LazyLock<Postgres> = LazyLock::new(Postgres::start);

fn open(url: &str) -> PostgresWalletStore {
    PostgresWalletStore::open(PostgresOptions::from_url(url).unwrap()).unwrap()
}
