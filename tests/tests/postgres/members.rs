//! The processes that have a wallet in a database open.

use std::time::Duration;

use bsv_invoicing::ledger::{Claim, Join, JoinAlone, Leave, Left, LetGo, queries::GetHolder};
use bsv_invoicing::store::Task;
use bsv_invoicing::store::WalletStore;
use tokio::time::{sleep, timeout};

use crate::postgres::{SERVER, open};

/// What a process does alone is free for others once the process has left, and not before.
#[tokio::test]
async fn what_a_process_has_claimed_is_free_once_it_has_left() {
    let url = SERVER.fresh_url();
    let stores = [open(&url), open(&url)];
    for store in &stores {
        store.execute(Join { after: None }).await.unwrap();
    }
    let claim = |number| Claim { task: Task::Following, number };
    assert!(stores[0].execute(claim(1)).await.unwrap());
    assert!(!stores[1].execute(claim(2)).await.unwrap());
    stores[0].execute(LetGo { task: Task::Following, number: 0 }).await.unwrap();
    assert!(stores[1].get(GetHolder(Task::Following)).await.unwrap().is_some());
    assert!(!stores[1].execute(JoinAlone).await.unwrap());
    let left = stores[0].execute(Leave { process: None, after: None }).await.unwrap();
    assert_eq!(left, Left { was_there: true, next: None });
    assert!(stores[1].execute(claim(3)).await.unwrap());
    assert!(stores[1].execute(JoinAlone).await.unwrap());
}

/// A process that stops leaves at once, and one that is silent is removed.
#[tokio::test]
async fn a_process_leaves_when_it_stops() {
    let url = SERVER.url("gone");
    let dir = tempfile::tempdir().unwrap();
    let options = bsv_invoicing::PostgresOptions::from_url(&url).unwrap();
    let server = options.for_server(dir.path().join("step"));
    let store = bsv_invoicing::PostgresWalletStore::open(server).unwrap();
    store.be_alone().await.unwrap();
    assert_eq!(SERVER.query("SELECT count(*) FROM gone.processes"), "1");
    drop(store);
    assert_eq!(SERVER.query("SELECT count(*) FROM gone.processes"), "0");
}

/// The process that removed a silent one may have ended before it ended all claims.
#[tokio::test]
async fn claims_of_a_removed_process_are_ended_by_the_others() {
    let url = SERVER.url("half_removed");
    let dir = tempfile::tempdir().unwrap();
    let options = bsv_invoicing::PostgresOptions::from_url(&url).unwrap();
    let server = options.for_server(dir.path().join("step"));
    let store = bsv_invoicing::PostgresWalletStore::open(server).unwrap();
    assert_eq!(store.execute(Join { after: None }).await.unwrap(), None);
    let removed = open(&url);
    removed.execute(Join { after: None }).await.unwrap();
    let claim = Claim { task: Task::Following, number: 1 };
    assert!(removed.execute(claim).await.unwrap());
    SERVER.query(
        "DELETE FROM half_removed.processes \
         WHERE key = (SELECT substring(row FROM 1 FOR 16) FROM half_removed.claims)",
    );
    let ended = async {
        while store.get(GetHolder(Task::Following)).await.unwrap().is_some() {
            sleep(Duration::from_millis(100)).await;
        }
    };
    timeout(Duration::from_secs(60), ended).await.unwrap();
}
