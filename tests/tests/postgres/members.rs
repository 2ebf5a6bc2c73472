//! The processes that have a wallet in a database open.

use bsv_invoicing::Task;
use bsv_invoicing::WalletStore;
use bsv_invoicing::ledger::{Claim, Join, JoinAlone, Leave, LetGo, queries::GetHolder};

use crate::postgres::{SERVER, open};

/// What a process does alone is free for others once the process has left, and not before.
#[tokio::test]
async fn what_a_process_has_claimed_is_free_once_it_has_left() {
    let url = SERVER.fresh_url();
    let stores = [open(&url), open(&url)];
    for store in &stores {
        store.execute(Join).await.unwrap();
    }
    let claim = |number| Claim { task: Task::Following, number };
    assert!(stores[0].execute(claim(1)).await.unwrap());
    assert!(!stores[1].execute(claim(2)).await.unwrap());
    stores[0].execute(LetGo { task: Task::Following, number: 0 }).await.unwrap();
    assert!(stores[1].get(GetHolder(Task::Following)).await.unwrap().is_some());
    assert!(!stores[1].execute(JoinAlone).await.unwrap());
    assert!(stores[0].execute(Leave { process: None }).await.unwrap());
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
    assert_eq!(SERVER.query("SELECT count(*) FROM gone.process"), "1");
    drop(store);
    assert_eq!(SERVER.query("SELECT count(*) FROM gone.process"), "0");
}
