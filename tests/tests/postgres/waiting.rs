//! Stores that wait for a lock of the database.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bsv_invoicing::invoices::IdempotencyKey;
use bsv_invoicing::ledger::CreateUser;
use bsv_invoicing::ledger::queries::{GetInvoice, GetUser};
use bsv_invoicing::store::WalletStore;
use tokio::task::{JoinSet, yield_now};
use tokio::time::sleep;

use crate::postgres::{SERVER, figures_of_steps, open, user};

/// A lock that another session holds.
struct Lock {
    schema: &'static str,
    /// What the session has begun with.
    begun: String,
    session: JoinHandle<String>,
}

impl Lock {
    /// Has a session take a lock with a statement.
    async fn take(schema: &'static str, statement: &str) -> Self {
        let begun = format!("BEGIN; {statement}");
        let hold = format!(
            "{begun}; DO 'BEGIN WHILE NOT EXISTS \
             (SELECT FROM pg_tables WHERE (schemaname, tablename) = (''{schema}'', ''is_over'')) \
             LOOP PERFORM pg_sleep(0.01); END LOOP; END'; COMMIT"
        );
        let session = thread::spawn(move || SERVER.query(&hold));
        let lock = Self { schema, begun, session };
        lock.until("wait_event = 'PgSleep'").await;
        lock
    }

    /// Waits until somebody waits for the lock.
    async fn is_waited_for(&self) {
        let waiting = "EXISTS (SELECT FROM pg_stat_activity waiting \
            WHERE session.pid = ANY (pg_blocking_pids(waiting.pid)))";
        self.until(waiting).await;
    }

    /// Waits until a condition holds for the session.
    async fn until(&self, condition: &str) {
        let session = format!(
            "SELECT 1 FROM pg_stat_activity session \
             WHERE starts_with(query, '{}') AND {condition}",
            self.begun
        );
        for _ in 0..1_000 {
            if !SERVER.query(&session).is_empty() {
                return;
            }
            sleep(Duration::from_millis(10)).await;
        }
        panic!("not so after a long time: {condition}");
    }

    fn release(self) {
        SERVER.query(&format!("CREATE TABLE {}.is_over ()", self.schema));
        self.session.join().unwrap();
    }
}

/// While the database does not answer some look-ups, it answers others.
#[tokio::test]
async fn a_look_up_that_waits_holds_up_no_other() {
    let url = SERVER.url("held_up");
    let store = Arc::new(open(&url));
    let (number, _) = store.execute(user("Ada")).await.unwrap();
    let lock = Lock::take("held_up", "LOCK TABLE held_up.users").await;
    let waiting = {
        let store = Arc::clone(&store);
        tokio::spawn(async move { store.get(GetUser(number)).await })
    };
    lock.is_waited_for().await;
    assert!(store.get(GetInvoice(1)).await.unwrap().is_none());
    assert!(!waiting.is_finished());
    lock.release();
    let (_, found) = waiting.await.unwrap().unwrap().unwrap();
    assert_eq!(found.name, "Ada");
}

/// A store that refuses the database while it holds the lock of the door releases it at once. The database would end a
/// session that holds it only after 5 seconds.
#[tokio::test]
async fn a_batch_that_fails_leaves_the_door_open() {
    let url = SERVER.url("refused");
    let store = open(&url);
    store.execute(user("Ada")).await.unwrap();
    SERVER.query("UPDATE refused.meta SET version = version + 1");
    store.execute(user("Bob")).await.unwrap_err();
    SERVER.query("SET lock_timeout = '3s'; SELECT 1 FROM refused.door FOR UPDATE");
}

/// Commands that come while another process writes share one commit. Some of them read rows, and some read what others
/// of the same commit have written.
#[tokio::test]
async fn what_comes_while_another_process_writes_shares_a_commit() {
    let url = SERVER.url("busy");
    let store = Arc::new(open(&url));
    let lock = Lock::take("busy", "SELECT 1 FROM busy.door FOR UPDATE").await;
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
    call(0);
    lock.is_waited_for().await;
    (1..30).for_each(call);
    yield_now().await;
    lock.release();
    let mut answers = callers.join_all().await;
    answers.sort();
    let expected = (0..30).map(|count| (count, 1 + count / 3 * 2 + (count % 3).min(1)));
    assert_eq!(answers, expected.collect::<Vec<_>>());
    let users = figures_of_steps("busy").into_iter().map(|figures| figures.last_user);
    assert_eq!(users.filter(|last| *last > 0).collect::<Vec<_>>(), [20]);
}
