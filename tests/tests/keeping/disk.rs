use std::fs;
use std::thread;
use std::time::Duration;

use bsv_tests::faults::{Fault, Faults};
use bsv_tests::purse::{Bill, Purse};
use bsv_tests::{Node, Server, is_full_run};
use serde_json::json;

use crate::keeping::scene::{balance, create_invoice, payment_url, quickly_sealed_site};

/// The steps to try: all of them in a full run, otherwise each `every`th one.
fn steps(every: usize) -> impl Iterator<Item = u64> {
    (0..).step_by(if is_full_run() { 1 } else { every })
}

/// Waits until the server writes to the store again. After several failures in a row, it does not
/// try for a while.
fn wait_until_writing(server: &Server) {
    let headers = [("Content-Type", "application/json")];
    let write =
        || server.wallet().send("POST", "/api/v1/invoices", &headers, br#"{"satoshis": 1}"#);
    while write().status == 503 {
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn whatever_write_of_a_payment_fails_the_books_add_up() {
    let node = Node::start();
    node.mine(101);
    let purse = Purse::filled(&node, 60, 10_000);
    let mut site = quickly_sealed_site(Some(&node));
    site.set_env("BSV_LOG", "off");
    let faults = Faults::install(&mut site);
    let server = site.server();
    let (mut paid, mut hits) = (0, 0);
    for kind in [Fault::FULL, Fault::BROKEN] {
        for first in steps(4) {
            let id = create_invoice(server.wallet(), 3_000);
            let bill = Bill::at(&payment_url(&server, &id));
            let transaction = purse.transaction_for(&bill);
            faults.begin(Fault { first, ..kind });
            let reply = bill.post(&transaction);
            let is_hit = faults.count(kind.operations) > first;
            faults.end();
            assert!([201, 503].contains(&reply.status), "{first}: {}", reply.body);
            let mut again = bill.post(&transaction);
            while again.status == 503 {
                again = bill.post(&transaction);
            }
            assert_eq!(again.status, 201, "{first}: {}", again.body);
            paid += 3_000;
            hits += u32::from(is_hit);
            let books = site.cli_json(&["books", "verify"]);
            assert_eq!((&books["balance"], &books["recomputed"]), (&json!(paid), &json!(paid)));
            if !is_hit {
                break;
            }
        }
    }
    eprintln!("{hits} writes failed while payments were settled (BSV_TEST_FULL=1 tries each)");
    assert!(hits >= 3 && balance(&server) == paid);
}

#[test]
fn whatever_write_of_a_backup_fails_there_is_no_half_of_one() {
    let mut site = quickly_sealed_site(None);
    site.set_env("BSV_LOG", "off");
    site.set_env("BSV_BACKUP_PASSPHRASE", "of the backup");
    let faults = Faults::install(&mut site);
    site.cli_ok(&["generateminerid", "--name", "pool"]);
    let server = site.server();
    // A directory that the faults affect.
    let dir = site.data_dir().join("backups");
    fs::create_dir(&dir).unwrap();
    let file = dir.join("backup");
    let mut hits = 0;
    for kind in [Fault::FULL, Fault::BROKEN] {
        for first in steps(9) {
            let (done, is_hit) = loop {
                faults.begin(Fault { first, ..kind });
                let done = site.cli(&["backup", file.to_str().unwrap()]);
                let is_hit = faults.count(kind.operations) > first;
                faults.end();
                // The server may still be making the backup before, whose reader has left.
                if !done.stderr.contains("a backup is already being made") {
                    break (done, is_hit);
                }
            };
            assert_eq!(file.exists(), done.code == 0, "{first}: {}", done.stderr);
            let left: Vec<_> = fs::read_dir(&dir).unwrap().map(|it| it.unwrap().path()).collect();
            assert!(left.iter().all(|path| *path == file), "{first}: {left:?}");
            if done.code == 0 {
                fs::remove_file(&file).unwrap();
            } else {
                assert_eq!(done.code, 1, "{first}: {}", done.stderr);
                assert!(done.stderr.contains("bsv-cli: "), "{}", done.stderr);
            }
            wait_until_writing(&server);
            if !is_hit {
                assert_eq!(done.code, 0, "{first}: {}", done.stderr);
                break;
            }
            hits += 1;
        }
    }
    eprintln!("{hits} writes failed while backups were made (BSV_TEST_FULL=1 tries each)");
    assert!(hits >= 6);
    site.cli_ok(&["backup", file.to_str().unwrap()]);
    site.cli_ok(&["audit", "verify"]);
    let names: Vec<_> = fs::read_dir(site.network_dir())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("copy") || name.contains("tmp"))
        .collect();
    assert!(names.is_empty(), "{names:?}");
}
