//! Two stores of one schema, as two processes have them.

use std::sync::atomic::{AtomicUsize, Ordering};

use bsv_invoicing::PostgresWalletStore;
use bsv_invoicing::store::{Answering, BoxedAnswer, BoxedCommand, Store, WalletStore};

use crate::postgres::store_conformance::forward::{forward_others, forward_queries};
use crate::postgres::store_conformance::{self, Place};
use crate::postgres::{SERVER, invoices_of_each, open, random_sequences, user};

/// Two stores, which are used in turn.
struct Pair {
    stores: [PostgresWalletStore; 2],
    turn: AtomicUsize,
}

impl Pair {
    fn next(&self) -> &PostgresWalletStore {
        &self.stores[self.turn.fetch_add(1, Ordering::Relaxed) % 2]
    }
}

impl Store for Pair {
    fn run_command(&self, weight: usize, command: BoxedCommand) -> Answering<'_, BoxedAnswer> {
        self.next().run_command(weight, command)
    }

    forward_queries!(self => self.next());
    forward_others!(self => self.next());
}

/// A schema of a database that is opened twice.
struct PairPlace(String);

impl Place for PairPlace {
    type Store = Pair;

    fn fresh() -> Self {
        Self(SERVER.fresh_url())
    }

    fn open(&self) -> Pair {
        Pair { stores: [open(&self.0), open(&self.0)], turn: AtomicUsize::new(0) }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_stores_serve_many_at_once_as_one_does() {
    store_conformance::run_at_once::<PairPlace>(invoices_of_each()).await;
}

#[test]
fn two_stores_add_coins_up_as_one_does() {
    store_conformance::run_random_steps::<PairPlace>(random_sequences());
}

/// Who follows one store hears of what another one has committed.
#[tokio::test]
async fn an_event_of_one_store_is_heard_of_at_the_other() {
    let url = SERVER.fresh_url();
    let stores = [open(&url), open(&url)];
    let mut heard = stores[1].last_event();
    assert_eq!(*heard.borrow_and_update(), 0);
    stores[0].execute(user("Ada")).await.unwrap();
    heard.wait_for(|last| *last == 1).await.unwrap();
}
