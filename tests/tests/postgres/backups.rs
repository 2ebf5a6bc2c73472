//! Backups of a wallet in a database, and backups that are restored into one.

use std::io::{Seek, Write};
use std::path::{Path, PathBuf};

use bsv_tests::{Done, Site};
use serde_json::Value;

use crate::postgres::SERVER;
use crate::postgres::server::{create_invoice, file_site, site};

/// A site that knows the passphrase of backups.
fn backing_up(mut site: Site) -> Site {
    site.set_env("BSV_BACKUP_PASSPHRASE", "of the backup");
    site
}

fn invoices(site: &Site) -> Value {
    site.cli_json(&["invoice", "list"])
}

/// Backs a site up whose server runs, and changes it afterwards.
fn back_up(site: &Site) -> (PathBuf, Value) {
    let server = site.server();
    for _ in 0..3 {
        create_invoice(server.wallet());
    }
    site.cli_ok(&["user", "create", "--name", "Ada"]);
    site.cli_ok(&["token", "create", "--scope", "wallet:read", "--label", "till"]);
    let listed = invoices(site);
    let file = site.data_dir().join("backup");
    site.cli_ok(&["backup", file.to_str().unwrap()]);
    create_invoice(server.wallet());
    (file, listed)
}

fn restore(site: &Site, file: &Path) {
    site.cli_ok(&["restore", "--yes", file.to_str().unwrap()]);
}

fn restore_words(site: &Site, words: &str) -> Done {
    let mut input = tempfile::tempfile().unwrap();
    input.write_all(words.as_bytes()).unwrap();
    input.rewind().unwrap();
    Done::of(site.cli_command(&["restore", "--yes", "--words"]).stdin(input))
}

/// A restored wallet has what was backed up, and goes on.
fn check(site: &Site, listed: &Value) {
    assert_eq!(invoices(site), *listed);
    assert_eq!(site.cli_json(&["token", "list"])[0]["label"], "till");
    site.cli_ok(&["books", "verify"]);
    site.cli_ok(&["audit", "verify"]);
    let server = site.server();
    create_invoice(server.wallet());
    assert_eq!(server.wallet().get("/api/v1/users/1").status, 200);
}

#[test]
fn a_backup_of_a_wallet_in_a_database_is_restored_into_a_file_and_into_another_database() {
    let source = backing_up(site(&SERVER.url("backed_up")));
    let (file, listed) = back_up(&source);
    assert!(!source.network_dir().join("wallet.copying").exists());
    let to_file = backing_up(file_site());
    restore(&to_file, &file);
    check(&to_file, &listed);
    let to_database = backing_up(site(&SERVER.url("restored")));
    restore(&to_database, &file);
    assert_eq!(SERVER.query("SELECT count(*) FROM restored.invoices"), "3");
    let dir = to_database.network_dir();
    assert!(!dir.join("wallet.redb").exists() && !dir.join("wallet.redb.moved").exists());
    check(&to_database, &listed);
}

#[test]
fn a_backup_of_a_wallet_in_a_file_is_restored_into_a_database() {
    let source = backing_up(file_site());
    let (file, listed) = back_up(&source);
    let target = backing_up(site(&SERVER.url("from_file")));
    restore(&target, &file);
    check(&target, &listed);
}

#[test]
fn nothing_is_restored_into_a_database_that_holds_a_wallet() {
    let source = backing_up(site(&SERVER.url("in_the_way")));
    let (file, _) = back_up(&source);
    let target = backing_up(site(&SERVER.url("in_the_way")));
    let refused = target.cli(&["restore", "--yes", file.to_str().unwrap()]);
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.contains("holds a wallet already"), "{}", refused.stderr);
    assert!(!target.network_dir().join("keystore").exists());
    assert_eq!(SERVER.query("SELECT count(*) FROM in_the_way.invoices"), "4");
}

/// Who has lost the machine with the keys has the words and the database.
#[test]
fn the_words_give_the_keys_back_to_a_wallet_in_a_database() {
    let url = SERVER.url("words_only");
    let source = site(&url);
    let server = source.server();
    create_invoice(server.wallet());
    server.kill();
    let words = source.cli_ok(&["wallet", "words", "--yes"]);
    let listed = invoices(&source);
    let target = site(&url);
    let restored = restore_words(&target, &words);
    assert_eq!(restored.code, 0, "{}", restored.stderr);
    assert_eq!(invoices(&target), listed);
    create_invoice(target.server().wallet());
    let other = site(&SERVER.url("other_words"));
    drop(other.server());
    let words = other.cli_ok(&["wallet", "words", "--yes"]);
    let refused = restore_words(&site(&url), &words);
    assert_eq!(refused.code, 1, "another wallet's words: {}", refused.stderr);
}
