//! What every back end must do.

use bsv_invoicing::PostgresWalletStore;
use bsv_invoicing::store::Store;

use crate::postgres::store_conformance::{self, Place};
use crate::postgres::{SERVER, invoices_of_each, open, random_sequences};

/// A schema of a database.
struct SchemaPlace(String);

impl Place for SchemaPlace {
    type Store = PostgresWalletStore;

    fn fresh() -> Self {
        Self(SERVER.fresh_url())
    }

    fn open(&self) -> Self::Store {
        open(&self.0)
    }
}

#[tokio::test]
async fn postgres_does_what_every_back_end_must() {
    store_conformance::run::<SchemaPlace>().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn postgres_serves_many_at_once_as_every_back_end_must() {
    store_conformance::run_at_once::<SchemaPlace>(invoices_of_each()).await;
}

#[test]
fn postgres_adds_coins_up_as_every_back_end_must() {
    store_conformance::run_random_steps::<SchemaPlace>(random_sequences());
}

#[tokio::test]
async fn postgres_commits_nothing_where_nothing_changes() {
    let place = SchemaPlace::fresh();
    let store = place.open();
    store_conformance::run_unchanged(&store, || store.counts().commits.counts().count()).await;
}
