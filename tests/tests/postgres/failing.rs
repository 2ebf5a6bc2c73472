//! Servers of a database that fail, and stores that have lost what was committed.

use std::collections::BTreeSet;
use std::fs::File;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bsv_invoicing::ledger::queries::{GetEvents, GetUser};
use bsv_invoicing::ledger::rows::Row as _;
use bsv_invoicing::ledger::{Adopt, Join};
use bsv_invoicing::store::{Store, WalletStore, WalletStoreError};
use bsv_invoicing::{PostgresOptions, PostgresWalletStore};
use bsv_store::{AuditPage, KeyEvent, StoreError};
use bsv_tests::Postgres;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::postgres::{SERVER, figures_of_steps, open, unusual_users, user};

/// Many callers create users in two stores of one schema while the server is killed. Whatever was acknowledged is
/// there, once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_or_doubled_when_the_server_is_killed() {
    let mut server = Postgres::start();
    let url = server.fresh_url();
    let stores = [Arc::new(open(&url)), Arc::new(open(&url))];
    let is_over = Arc::new(AtomicBool::new(false));
    let mut callers = JoinSet::new();
    for caller in 0..16 {
        let (store, is_over) = (Arc::clone(&stores[caller % 2]), Arc::clone(&is_over));
        callers.spawn(async move {
            let mut acknowledged = Vec::new();
            for count in 0_u64.. {
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
                let name = format!("{caller} {count}");
                match store.execute(user(&name)).await {
                    Ok((number, _)) => acknowledged.push((number, name)),
                    Err(WalletStoreError::Store(StoreError::Engine(_) | StoreError::Commit(_))) => {
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            acknowledged
        });
    }
    for _ in 0..3 {
        sleep(Duration::from_millis(700)).await;
        tokio::task::block_in_place(|| {
            server.kill();
            server.launch();
        });
    }
    sleep(Duration::from_millis(700)).await;
    is_over.store(true, Ordering::Relaxed);
    let acknowledged = callers.join_all().await.concat();
    assert!(acknowledged.len() > 100, "{}", acknowledged.len());
    let numbers: BTreeSet<_> = acknowledged.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers.len(), acknowledged.len(), "no number was given out twice");
    for (number, name) in &acknowledged {
        let (_, details) = stores[0].get(GetUser(*number)).await.unwrap().unwrap();
        assert_eq!(details.name, *name);
    }
    let names = server.query(&unusual_users("wallet_0"));
    assert_eq!(names, "0|0", "none is there twice, and no number is missing");
    let events = stores[1].list(GetEvents(0, 1_000_000)).await.unwrap();
    assert!(events.iter().map(|event| event.number).eq(1..=events.len() as u64));
}

fn remembering(url: &str, dir: &std::path::Path) -> PostgresOptions {
    PostgresOptions::from_url(url).unwrap().for_server(dir.join("store.step"))
}

#[tokio::test]
async fn a_database_that_has_lost_what_was_seen_is_refused() {
    let (dir, url) = (tempfile::tempdir().unwrap(), SERVER.url("went_back"));
    let store = PostgresWalletStore::open(remembering(&url, dir.path())).unwrap();
    store.execute(user("Ada")).await.unwrap();
    drop(store);
    let store = PostgresWalletStore::open(remembering(&url, dir.path())).unwrap();
    assert!(store.get(GetUser(1)).await.unwrap().is_some());
    store.execute(user("Bob")).await.unwrap();
    // The database loses the last step.
    for (table, number) in [("step", "number"), ("users", "key"), ("events", "key")] {
        let table = format!("went_back.{table}");
        SERVER.query(&format!(
            "DELETE FROM {table} \
             WHERE {number} = (SELECT {number} FROM {table} ORDER BY {number} DESC LIMIT 1)"
        ));
    }
    let refused = store.execute(user("Eve")).await.unwrap_err();
    assert!(refused.to_string().contains("does not know step"), "{refused}");
    let refused = store.get(GetUser(1)).await.unwrap_err();
    assert!(refused.to_string().contains("does not know step"), "{refused}");
    drop(store);
    // A store without a memory takes the database as it is.
    open(&url).execute(user("Eve")).await.unwrap();
    let refused = PostgresWalletStore::open(remembering(&url, dir.path())).unwrap_err();
    assert!(refused.to_string().contains("does not know step"), "{refused}");
}

/// A server writes what it has seen to its disk. While the disk does not answer, the server looks things up, and other
/// servers do not take it for dead.
#[tokio::test]
async fn a_disk_that_does_not_answer_holds_up_nothing_else() {
    let (dirs, url) = ([(); 2].map(|()| tempfile::tempdir().unwrap()), SERVER.url("slow_disk"));
    let [store, other] = dirs
        .each_ref()
        .map(|dir| PostgresWalletStore::open(remembering(&url, dir.path())).unwrap());
    store.execute(Join { after: None }).await.unwrap();
    other.execute(Join { after: None }).await.unwrap();
    // Whoever opens it to write waits for somebody who reads.
    let pipe = dirs[0].path().join(".store.step.tmp");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    store.execute(user("Ada")).await.unwrap();
    let is_remembered = "SELECT count(*) FROM slow_disk.memory WHERE remembering = \
        (SELECT max(number) FROM slow_disk.step)";
    let looked_up = async {
        // The database remembers a step just before the disk does.
        while SERVER.query(is_remembered) != "2" {
            sleep(Duration::from_millis(10)).await;
        }
        // Silent servers count as dead after 5 seconds.
        for _ in 0..700 {
            store.get(GetUser(1)).await?;
            sleep(Duration::from_millis(10)).await;
        }
        store.execute(user("Bob")).await
    };
    let looked_up = timeout(Duration::from_secs(30), looked_up).await;
    // The store can only be dropped when the disk answers.
    let reader = File::options().read(true).write(true).open(&pipe).unwrap();
    drop(store);
    drop(reader);
    looked_up.expect("nothing waits for the disk").unwrap();
}

/// After a failover, another server may have made a step of the number that this one has seen.
#[tokio::test]
async fn a_database_where_another_writer_made_the_seen_step_is_refused() {
    let url = SERVER.url("elsewhere");
    let store = open(&url);
    store.execute(user("Ada")).await.unwrap();
    SERVER.query("UPDATE elsewhere.step SET writer = '\\x01' WHERE number > 0");
    let refused = store.get(GetUser(1)).await.unwrap_err();
    assert!(refused.to_string().contains("does not know step"), "{refused}");
    let refused = store.execute(user("Bob")).await.unwrap_err();
    assert!(refused.to_string().contains("does not know step"), "{refused}");
}

/// A database of which only a part was restored is not tried again and again: it is damaged.
#[tokio::test]
async fn a_number_that_is_new_and_taken_is_damage() {
    let url = SERVER.url("in_parts");
    let store = open(&url);
    store.execute(user("Ada")).await.unwrap();
    drop(store);
    SERVER
        .query("DELETE FROM in_parts.step WHERE number = (SELECT max(number) FROM in_parts.step)");
    let refused = open(&url).execute(user("Bob")).await.unwrap_err();
    assert!(matches!(refused, WalletStoreError::Store(StoreError::Damaged(_))), "{refused}");
    assert_eq!(SERVER.query("SELECT count(*) FROM in_parts.users"), "1");
}

/// A writer that does not wait for the lock, as where locks do not hold, makes the same step. The other one runs its
/// batch again.
#[tokio::test]
async fn whoever_meets_another_writer_at_a_step_runs_again() {
    let url = SERVER.url("rivals");
    let store = open(&url);
    store.execute(user("Ada")).await.unwrap();
    let mut figures = figures_of_steps("rivals").pop().unwrap();
    figures.last_user += 1;
    let figures = hex::encode(figures.encode());
    let rival = std::thread::spawn(move || {
        SERVER.query(&format!(
            "BEGIN; SET search_path = rivals; \
             CREATE TEMP TABLE next AS SELECT * FROM step ORDER BY number DESC LIMIT 1; \
             UPDATE next SET number = number + 1, writer = '\\x01', figures = '\\x{figures}'; \
             INSERT INTO step SELECT * FROM next; \
             INSERT INTO users SELECT '\\x0000000000000002', row FROM users; \
             SELECT pg_sleep(1); COMMIT",
        ))
    });
    let waiting = "SELECT count(*) FROM pg_stat_activity \
                   WHERE wait_event = 'PgSleep' AND query LIKE '%rivals%'";
    while SERVER.query(waiting) != "1" {
        sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(store.execute(user("Eve")).await.unwrap().0, 3);
    rival.join().unwrap();
    assert_eq!(SERVER.query("SELECT count(*) FROM rivals.users"), "3");
}

/// Whatever a server may remember in its file stays, however old it is.
#[tokio::test]
async fn old_steps_are_removed_except_the_last_and_those_that_a_server_remembers() {
    let (dir, url) = (tempfile::tempdir().unwrap(), SERVER.url("swept"));
    let first = PostgresWalletStore::open(remembering(&url, dir.path())).unwrap();
    first.execute(user("Ada")).await.unwrap();
    drop(first);
    let step_of_first = SERVER.query("SELECT max(number) FROM swept.step");
    let elsewhere = tempfile::tempdir().unwrap();
    let second = PostgresWalletStore::open(remembering(&url, elsewhere.path())).unwrap();
    for name in ["Bob", "Eve", "Dan"] {
        second.execute(user(name)).await.unwrap();
    }
    drop(second);
    SERVER.query("UPDATE swept.step SET made_at = 0");
    let others =
        "SELECT count(*) FROM swept.step WHERE number < (SELECT max(number) FROM swept.step)";
    assert_eq!(SERVER.query(&format!("{others} AND number > {step_of_first}")), "2");
    let second = PostgresWalletStore::open(remembering(&url, elsewhere.path())).unwrap();
    while SERVER.query(&format!("{others} AND number > {step_of_first}")) != "0" {
        sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(SERVER.query(&format!("{others} AND number = {step_of_first}")), "1");
    drop(second);
    drop(PostgresWalletStore::open(remembering(&url, dir.path())).unwrap());
}

#[tokio::test]
async fn the_audit_log_is_one_chain_through_two_stores() {
    let url = SERVER.fresh_url();
    for (number, origin) in
        [KeyEvent::Made, KeyEvent::Imported, KeyEvent::Rotated].iter().enumerate()
    {
        let store = open(&url);
        let noted = bsv_invoicing::ledger::NoteKeyEvent {
            event: *origin,
            subject: format!("key \0 {number}"),
        };
        store.execute(noted).await.unwrap();
    }
    let store = open(&url);
    store.execute(Adopt { fingerprint: [1; 20], origin: KeyEvent::Made }).await.unwrap();
    let check = store.verify_audit_log().await.unwrap();
    assert_eq!((check.entries, check.fault), (4, None));
    let entries = store.audit_log(AuditPage::After(1), 2).await.unwrap();
    assert_eq!(entries.iter().map(|entry| entry.number).collect::<Vec<_>>(), [2, 3]);
    assert_eq!(entries[1].previous, entries[0].hash());
}
