use std::io::Write;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use bsv_tests::purse::{FEE, send};
use bsv_tests::{Bill, Done, Node, Purse, Server, Site, free_port};
use bsv_tx::TxOut;
use serde_json::json;

use crate::keeping::scene::{
    balance, begun_site, create_invoice, fill, pay, payment_url, quickly_sealed_site, sealed_site,
    wait_for_proofs,
};

/// Restores a wallet from words on standard input.
fn restore(site: &Site, words: &str, arguments: &[&str]) -> Done {
    let arguments = [&["restore", "--yes", "--words"], arguments].concat();
    let mut command = site.cli_command(&arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(words.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    Done {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn words_and_a_chain_bring_back_the_balance() {
    let node = Node::start();
    node.mine(101);
    let (lost, other) = (quickly_sealed_site(Some(&node)), quickly_sealed_site(Some(&node)));
    let (server, payee) = (lost.server(), other.server());
    fill(&lost, &server, 50_000);
    // Unpaid invoices leave a gap of unused keys.
    let leave_gap = || (0..30).for_each(|_| drop(create_invoice(server.wallet(), 1)));
    leave_gap();
    fill(&lost, &server, 70_000);
    node.mine(1);
    pay(&server, &payee, 60_000);
    pay(&server, &payee, 5_000);
    node.mine(2);
    // The key after this gap is within the lookahead of the one before it only.
    leave_gap();
    fill(&lost, &server, 90_000);
    node.mine(1);
    wait_for_proofs(&lost, 5);
    // The last transactions are in no block yet: a payment, its change, and a receipt.
    pay(&server, &payee, 80_000);
    fill(&lost, &server, 33_000);
    let expected = balance(&server);
    let words = lost.cli_ok(&["wallet", "words", "--yes"]);
    server.kill();

    let site = sealed_site(Some(&node));
    let shouted = format!("  {}\n", words.to_uppercase().replace(' ', "\n"));
    let done = restore(&site, &shouted, &["--from-height", "100", "--lookahead", "40"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(!(done.stdout.clone() + &done.stderr).contains(&words));
    assert!(done.stdout.contains(&format!("of {expected} satoshis")), "{}", done.stdout);
    let books = site.cli_json(&["books", "verify"]);
    assert_eq!((&books["balance"], &books["proofs"]), (&json!(expected), &json!(5)));
    assert_eq!(site.cli_ok(&["wallet", "words", "--yes"]), words);
    assert!(site.cli_ok(&["audit", "list"]).contains("imported"));

    // The restored wallet continues with unused keys, spends the coins that it has found, and
    // follows new blocks.
    let server = site.server();
    assert_eq!(balance(&server), expected);
    let invoice = create_invoice(server.wallet(), 1_000);
    site.cli_ok(&["wallet", "faucet", &payment_url(&server, &invoice)]);
    pay(&server, &payee, expected - 2_000);
    node.mine(1);
    wait_for_proofs(&site, 9);
    let user = site.cli_json(&["user", "create", "--name", "Ada"]);
    assert_eq!(user["id"], 41);

    // A lookahead that is too short finds fewer coins, and the command says how many.
    let site = sealed_site(Some(&node));
    let done = restore(&site, &words, &["--lookahead", "10"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert_eq!(site.cli_json(&["books", "verify"])["differences"], json!([]));
}

/// Waits until the balance is this. The wallet first derives many keys, which takes long in a debug
/// build.
fn wait_for_balance(server: &Server, satoshis: u64) {
    let started = Instant::now();
    while balance(server) != satoshis {
        let waited = started.elapsed();
        assert!(waited < Duration::from_secs(240), "{}, not {satoshis}", balance(server));
        thread::sleep(Duration::from_millis(100));
    }
}

/// The outputs that the terms of a new invoice ask for.
fn asked(server: &Server, satoshis: u64) -> Vec<TxOut> {
    let invoice = create_invoice(server.wallet(), satoshis);
    Bill::at(&payment_url(server, &invoice)).outputs()
}

#[test]
fn what_is_paid_after_words_were_restored_is_seen() {
    let node = Node::start_with(&[&format!("zmqpubrawtx2=tcp://127.0.0.1:{}", free_port())]);
    node.mine(110);
    let purse = Purse::filled(&node, 4, 100_000);
    let pay_silently = |outputs| send(&node, &purse.spend(&[purse.coin()], outputs, FEE));
    let lost = quickly_sealed_site(Some(&node));
    let server = lost.server();
    fill(&lost, &server, 50_000);
    // After so many invoices, the keys of the next ones are among the last that are watched after a
    // restore.
    (0..1_200).for_each(|_| drop(create_invoice(server.wallet(), 1)));
    let [shown, shown_too] = [7_000, 9_000].map(|satoshis| asked(&server, satoshis));
    node.mine(1);
    wait_for_proofs(&lost, 1);
    let words = lost.cli_ok(&["wallet", "words", "--yes"]);
    server.kill();

    let site = sealed_site(Some(&node));
    let done = restore(&site, &words, &["--from-height", "100", "--lookahead", "1500"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    // Payers still pay what they were shown before the restore.
    pay_silently(shown);
    let server = site.server();
    wait_for_balance(&server, 57_000);
    pay_silently(asked(&server, 3_000));
    wait_for_balance(&server, 60_000);
    let last = asked(&server, 2_000);
    assert_eq!(server.stop(), 0);
    pay_silently(shown_too);
    node.mine(1);
    pay_silently(last);
    let server = site.server();
    wait_for_balance(&server, 71_000);
    let books = site.cli_json(&["books", "verify", "--from-height", "0"]);
    assert_eq!(books["differences"], json!([]), "{books}");
}

#[test]
fn words_are_restored_without_a_node_and_refused_when_wrong() {
    let lost = begun_site();
    let words = lost.cli_ok(&["wallet", "words", "--yes"]);
    let user = lost.cli_json(&["user", "create", "--name", "Ada"]);
    let site = sealed_site(None);
    // With "art" as the last word, the checksum of these words would be right.
    let [bad_checksum, cut_short] = ["abandon", "ar"].map(|last| "abandon ".repeat(23) + last);
    for wrong in ["", "abandon art", &bad_checksum, &cut_short, &format!("{words} zoo")] {
        let done = restore(&site, wrong, &[]);
        assert_eq!(done.code, 1, "{wrong}");
        assert!(done.stderr.contains("these are not 24 BIP39 words"), "{}", done.stderr);
        assert_eq!(std::fs::read_dir(site.data_dir()).unwrap().count(), 0);
    }
    let done = restore(&site, &words, &["--lookahead", "5"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(done.stdout.contains("was skipped"), "{}", done.stdout);
    assert_eq!(site.cli_ok(&["wallet", "words", "--yes"]), words);
    // A new user does not get the key of a user of the lost wallet.
    let other = site.cli_json(&["user", "create", "--name", "Edsger"]);
    assert_eq!(other["id"], 6);
    assert_ne!(other["extendedData"], user["extendedData"]);
    let again = restore(&site, &words, &[]);
    assert_eq!(again.code, 1);
    assert!(again.stderr.contains("is not empty"), "{}", again.stderr);
}

#[test]
fn a_restore_that_cannot_walk_the_chain_leaves_nothing() {
    let node = Node::start();
    node.mine(5);
    let words = begun_site().cli_ok(&["wallet", "words", "--yes"]);
    let site = sealed_site(Some(&node));
    let done = restore(&site, &words, &["--from-height", "6"]);
    assert_eq!(done.code, 1);
    assert!(done.stderr.contains("block 6 is beyond the node's last one, 5"), "{}", done.stderr);
    assert_eq!(std::fs::read_dir(site.data_dir()).unwrap().count(), 0);
}
