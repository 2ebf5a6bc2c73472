//! Two stores of one schema, as two processes have them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use bsv_invoicing::ledger::{Command, CreateUser, Query};
use bsv_invoicing::{IdempotencyKey, PostgresWalletStore, WalletStore, WalletStoreError};
use bsv_store::{AuditCheck, AuditEntry};
use tokio::sync::watch;
use tokio::task::{JoinSet, yield_now};
use tokio::time::sleep;

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

impl WalletStore for Pair {
    async fn execute<C: Command>(&self, command: C) -> Result<C::Answer, WalletStoreError> {
        self.next().execute(command).await
    }

    async fn get<Q: Query + Clone>(&self, query: Q) -> Result<Q::Answer, WalletStoreError> {
        self.next().get(query).await
    }

    async fn list<Q: Query + Clone>(&self, query: Q) -> Result<Q::Answer, WalletStoreError> {
        self.next().list(query).await
    }

    async fn verify<Q: Query>(&self, query: Q) -> Result<Q::Answer, WalletStoreError> {
        self.next().verify(query).await
    }

    fn last_event(&self) -> watch::Receiver<u64> {
        self.next().last_event()
    }

    async fn audit_log(
        &self,
        after: u64,
        limit: usize,
    ) -> Result<Vec<AuditEntry>, WalletStoreError> {
        self.next().audit_log(after, limit).await
    }

    async fn verify_audit_log(&self) -> Result<AuditCheck, WalletStoreError> {
        self.next().verify_audit_log().await
    }
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

/// Commands that come while another process writes share one commit. Some of them read rows, and some read what others
/// of the same commit have written.
#[tokio::test]
async fn what_comes_while_another_process_writes_shares_a_commit() {
    let url = SERVER.url("busy");
    let store = Arc::new(open(&url));
    let writing = thread::spawn(|| {
        SERVER.query(
            "BEGIN; SELECT 1 FROM busy.door FOR UPDATE; \
             DO 'BEGIN WHILE NOT EXISTS (SELECT FROM pg_tables WHERE tablename = ''is_over'') \
             LOOP PERFORM pg_sleep(0.01); END LOOP; END'; COMMIT",
        )
    });
    let has_the_lock = "SELECT 1 FROM pg_locks WHERE mode = 'RowShareLock' \
        AND relation = to_regclass('busy.door')";
    let waits_for_it = "SELECT count(*) FROM pg_stat_activity waiting, pg_stat_activity writing \
        WHERE writing.pid = ANY (pg_blocking_pids(waiting.pid)) \
        AND writing.query LIKE 'BEGIN; SELECT 1 FROM busy.door%'";
    let mut callers = JoinSet::new();
    let mut call = |count: u64| {
        let store = Arc::clone(&store);
        callers.spawn(async move {
            let user = user(&count.to_string());
            // Each two of these have a key in common.
            let key = (!count.is_multiple_of(3)).then(|| (count / 3).to_string());
            let idempotency = key.map(|key| IdempotencyKey::new(&key, b"request").unwrap());
            (count, store.execute(CreateUser { idempotency, ..user }).await.unwrap().0)
        });
    };
    while SERVER.query(has_the_lock).is_empty() {
        sleep(Duration::from_millis(10)).await;
    }
    call(0);
    while SERVER.query(waits_for_it) != "1" {
        sleep(Duration::from_millis(10)).await;
    }
    (1..30).for_each(call);
    yield_now().await;
    SERVER.query("CREATE TABLE busy.is_over ()");
    writing.join().unwrap();
    let mut answers = callers.join_all().await;
    answers.sort();
    let expected = (0..30).map(|count| (count, 1 + count / 3 * 2 + (count % 3).min(1)));
    assert_eq!(answers, expected.collect::<Vec<_>>());
    let commits = "SELECT count(*), max(last_user) FROM busy.step WHERE last_user > 0";
    assert_eq!(SERVER.query(commits), "1|20");
}
