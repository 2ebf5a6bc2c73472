//! A database with a standby: a failover loses nothing that was acknowledged, unless nobody waits for the standby.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bsv_invoicing::PostgresWalletStore;
use bsv_invoicing::ledger::queries::GetUser;
use bsv_invoicing::store::{WalletStore, WalletStoreError};
use bsv_store::StoreError;
use bsv_tests::Postgres;
use tokio::task::{JoinSet, block_in_place};

use crate::postgres::{count_of_user, open, unusual_users, user};

/// Callers who create users until they are told to stop, and tell what was acknowledged.
struct Load {
    callers: JoinSet<Vec<(u64, String)>>,
    is_over: Arc<AtomicBool>,
}

impl Load {
    fn on(store: &Arc<PostgresWalletStore>) -> Self {
        let is_over = Arc::<AtomicBool>::default();
        let mut callers = JoinSet::new();
        for caller in 0..8 {
            callers.spawn(create_users(caller, Arc::clone(store), Arc::clone(&is_over)));
        }
        Self { callers, is_over }
    }

    async fn end(self) -> Vec<(u64, String)> {
        self.is_over.store(true, Ordering::Relaxed);
        self.callers.join_all().await.concat()
    }
}

async fn create_users(
    caller: usize,
    store: Arc<PostgresWalletStore>,
    is_over: Arc<AtomicBool>,
) -> Vec<(u64, String)> {
    let mut acknowledged = Vec::new();
    for count in 0_u64.. {
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        let name = format!("{caller} {count}");
        match store.execute(user(&name)).await {
            Ok((number, _)) => acknowledged.push((number, name)),
            Err(WalletStoreError::Store(StoreError::Engine(_) | StoreError::Commit(_))) => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Err(error) => panic!("{error}"),
        }
    }
    acknowledged
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_when_the_standby_is_promoted() {
    let mut primary = Postgres::start();
    let standby = primary.standby();
    let store = Arc::new(open(&Postgres::url_of_either([&primary, &standby], "wallet")));
    let load = Load::on(&store);
    tokio::time::sleep(Duration::from_secs(1)).await;
    block_in_place(|| {
        primary.kill();
        standby.promote();
    });
    tokio::time::sleep(Duration::from_secs(3)).await;
    let acknowledged = load.end().await;
    assert!(acknowledged.len() > 50, "{}", acknowledged.len());
    for (number, name) in &acknowledged {
        let (_, details) = store.get(GetUser(*number)).await.unwrap().unwrap();
        assert_eq!(details.name, *name);
    }
    assert_eq!(standby.query(&unusual_users("wallet")), "0|0");
    // The old primary is there again, and is asked first.
    let last = acknowledged.iter().map(|(number, _)| *number).max().unwrap();
    let before = standby.query("SELECT count(*) FROM wallet.users");
    primary.launch();
    standby.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'bsv-server'");
    let answer = store.execute(user("after")).await;
    match answer {
        Ok((number, _)) => assert!(number > last),
        Err(error) => {
            assert!(error.to_string().contains("does not know step"), "{error}");
            assert_eq!(standby.query("SELECT count(*) FROM wallet.users"), before);
        }
    }
    let of_old = primary.query(&count_of_user("wallet", "after"));
    assert_eq!(of_old, "0", "the old primary gets no row");
}

/// The control of the test before: nobody waits for the standby, and it has not got everything when it is promoted. What
/// is lost shows, and the store does not go on without it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_no_standby_was_waited_for_is_lost_and_missed() {
    let mut primary = Postgres::start();
    let standby = primary.standby();
    let store = Arc::new(open(&Postgres::url_of_either([&primary, &standby], "wallet")));
    store.execute(user("before")).await.unwrap();
    block_in_place(|| standby.cut_off(&primary));
    let load = Load::on(&store);
    tokio::time::sleep(Duration::from_secs(1)).await;
    block_in_place(|| {
        primary.kill();
        standby.promote();
    });
    let acknowledged = load.end().await;
    assert!(acknowledged.len() > 50, "{}", acknowledged.len());
    assert_eq!(standby.query("SELECT count(*) FROM wallet.users"), "1", "the rest is lost");
    let refused = store.execute(user("after")).await.unwrap_err();
    assert!(refused.to_string().contains("does not know step"), "{refused}");
    let refused = store.get(GetUser(1)).await.unwrap_err();
    assert!(refused.to_string().contains("does not know step"), "{refused}");
    assert_eq!(standby.query("SELECT count(*) FROM wallet.users"), "1");
}

/// The standby hangs, and somebody cancels what waits for it: the database says that the change is committed, with a
/// warning. It may be lost still, so that nobody is told that it is done.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_stops_waiting_for_its_standby_is_not_acknowledged() {
    let primary = Postgres::start();
    let standby = primary.standby();
    let store = open(&primary.url("wallet"));
    store.execute(user("before")).await.unwrap();
    block_in_place(|| standby.freeze());
    let cancels = async {
        loop {
            tokio::time::sleep(Duration::from_millis(300)).await;
            block_in_place(|| {
                primary.query("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
            });
        }
    };
    let answer = tokio::select! {
        answer = store.execute(user("unsure")) => answer,
        () = cancels => unreachable!("it goes on for ever"),
    };
    let error = answer.expect_err("no standby has it");
    assert!(matches!(error, WalletStoreError::Store(StoreError::Commit(_))), "{error}");
    block_in_place(|| standby.thaw());
    while store.execute(user("after")).await.is_err() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let of_unsure = primary.query(&count_of_user("wallet", "unsure"));
    assert_eq!(of_unsure, "1", "it was done once");
}
