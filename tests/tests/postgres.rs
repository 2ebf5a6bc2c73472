//! The wallet's store in PostgreSQL.

#[path = "../../bsv-invoicing/tests/store_conformance/mod.rs"]
pub(crate) mod store_conformance;

mod back_end;
mod backups;
mod both;
mod cuts;
mod dump;
mod failing;
mod large;
mod members;
mod moving;
mod pair;
mod pooler;
mod refusing;
mod schema;
mod server;
mod servers;
mod standby;
mod tokens;
mod waiting;

use std::sync::LazyLock;

use bsv_invoicing::ledger::CreateUser;
use bsv_invoicing::ledger::figures::Figures;
use bsv_invoicing::ledger::rows::Row as _;
use bsv_invoicing::{PostgresOptions, PostgresWalletStore, Timestamp, UserDraft};
use bsv_tests::{Postgres, repetitions};

/// One server for all tests that do not kill it.
static SERVER: LazyLock<Postgres> = LazyLock::new(|| Postgres::start_with(&["fsync=off"]));

fn open(url: &str) -> PostgresWalletStore {
    PostgresWalletStore::open(PostgresOptions::from_url(url).unwrap()).unwrap()
}

/// Creates a user of this name.
fn user(name: &str) -> CreateUser {
    let details = UserDraft { name: name.to_owned(), ..UserDraft::default() };
    CreateUser { details, idempotency: None, now: Timestamp::from_micros(1) }
}

/// The figures of all steps in a schema, in their order.
fn figures_of_steps(schema: &str) -> Vec<Figures> {
    let sql = format!("SELECT encode(figures, 'hex') FROM {schema}.step ORDER BY number");
    let figures = SERVER.query(&sql);
    figures.lines().map(|it| Figures::decode(&hex::decode(it).unwrap()).unwrap()).collect()
}

/// Asks how many users have the name of another one, and how many numbers of users are missing.
fn unusual_users(schema: &str) -> String {
    format!(
        "SELECT count(*) - count(DISTINCT row), \
         max(('x' || encode(key, 'hex'))::bit(64)::bigint) - count(*) FROM {schema}.users"
    )
}

/// Asks how many users have this name.
fn count_of_user(schema: &str, name: &str) -> String {
    let row = hex::encode(user(name).details.encode());
    format!("SELECT count(*) FROM {schema}.users WHERE row = '\\x{row}'")
}

/// How many invoices each of many callers creates.
fn invoices_of_each() -> u64 {
    repetitions("invoices of each of many callers", 50, 10) as u64
}

/// How many sequences of random steps a test tries.
fn random_sequences() -> u32 {
    u32::try_from(repetitions("sequences of random steps", 100, 5)).unwrap()
}
