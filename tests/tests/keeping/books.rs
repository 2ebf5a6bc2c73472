use std::fs;
use std::thread;

use bsv_invoicing::RedbWalletStore;
use bsv_invoicing::coins::Trust;
use bsv_invoicing::ledger::rows::{
    AllFigures, Counted, Incoming, MinedAt, Proofs, RawTransactions, Receipts, ReceivedFor,
    Spendable, Spends, Wishes,
};
use bsv_invoicing::receiving::ReceiptKey;
use bsv_invoicing::transactions::FoundProof;
use bsv_tests::rows::{change_first, remove_first, rows, set};
use bsv_tests::{Node, Site};
use bsv_tx::MerkleBranch;
use redb::{Database, WriteTransaction};
use serde_json::{Value, json};

use crate::keeping::scene::{
    balance, create_invoice, fill, pay, quickly_sealed_site, wait_for_proofs,
};

/// Changes the wallet's file without the wallet.
fn tamper(site: &Site, change: impl FnOnce(&WriteTransaction)) {
    let path = site.network_dir().join(RedbWalletStore::FILE_NAME);
    let database = Database::open(path).unwrap();
    let transaction = database.begin_write().unwrap();
    change(&transaction);
    transaction.commit().unwrap();
}

#[test]
fn the_books_add_up_while_the_wallet_works_and_after() {
    let node = Node::start();
    node.mine(101);
    let (site, other) = (quickly_sealed_site(Some(&node)), quickly_sealed_site(Some(&node)));
    let (server, payee) = (site.server(), other.server());
    for satoshis in [50_000, 70_000, 90_000] {
        fill(&site, &server, satoshis);
    }
    node.mine(1);
    pay(&server, &payee, 60_000);
    create_invoice(server.wallet(), 1);
    thread::scope(|scope| {
        scope.spawn(|| (0..5).for_each(|_| pay(&server, &payee, 1_000)));
        for _ in 0..5 {
            let books = site.cli_json(&["books", "verify"]);
            assert_eq!(books["balance"], books["recomputed"], "{books}");
        }
    });
    node.mine(1);
    wait_for_proofs(&site, 9);
    let kept = balance(&server);
    let books = site.cli_json(&["books", "verify"]);
    assert_eq!(books["recomputed"], kept);
    assert_eq!((&books["blocks"], &books["blocksInChain"]), (&json!(2), &json!(2)));
    let text = site.cli_ok(&["books", "verify"]);
    assert!(text.contains("2 of them in the main chain"), "{text}");
    assert_eq!(server.stop(), 0);
    assert_eq!(site.cli_json(&["books", "verify"]), books);

    // Another chain displaces the last block: the proofs of its transactions are no longer valid.
    let tip = node.call("getbestblockhash", json!([]));
    node.call("invalidateblock", json!([tip]));
    let books = site.cli(&["books", "verify"]);
    assert_eq!(books.code, 1);
    assert!(books.stdout.contains("is not in the main chain"), "{}", books.stdout);
}

#[test]
fn marking_an_invoice_is_no_fault_of_the_books() {
    let node = Node::start();
    node.mine(101);
    let site = quickly_sealed_site(Some(&node));
    let server = site.server();
    let id = create_invoice(server.wallet(), 1_000);
    site.cli_ok(&["invoice", "mark", &id, "--yes"]);
    let books = site.cli_json(&["books", "verify"]);
    assert_eq!((&books["differences"], &books["searchedFrom"]), (&json!([]), &json!(null)));
    let text = site.cli_ok(&["books", "verify"]);
    assert!(text.contains("the chain was not searched for what the books lack"), "{text}");
    let books = site.cli_json(&["books", "verify", "--from-height", "7"]);
    assert_eq!((&books["differences"], &books["searchedFrom"]), (&json!([]), &json!(7)));
    let text = site.cli_ok(&["books", "verify", "--from-height", "7"]);
    assert!(text.contains("from height 7 on and the mempool were searched"), "{text}");
}

/// The name of a change, the change of the file, and what the command must say about it.
type Tampering = (&'static str, fn(&WriteTransaction), &'static str);

const TAMPERINGS: [Tampering; 13] = [
    (
        "the balance",
        |transaction| {
            change_first::<AllFigures>(transaction, |figures| figures.holdings.confirmed = 1);
        },
        "the balance is kept as 1 satoshis",
    ),
    (
        "an amount",
        |transaction| change_first::<Receipts>(transaction, |receipt| receipt.satoshis = 1),
        "is not 1 satoshis to the wallet's key",
    ),
    (
        "a key",
        |transaction| change_first::<Receipts>(transaction, |receipt| receipt.key.index += 1),
        "to the wallet's key",
    ),
    ("a coin", remove_first::<Receipts>, "what it pays or spends is not what is on record"),
    (
        "what can be chosen",
        |transaction| {
            let coin = (Trust::Sure, 8, ReceiptKey { maker: 99, vout: 0 });
            set::<Spendable>(transaction, &coin, &());
        },
        "spendable coins are stored",
    ),
    ("what is spent", remove_first::<Spends>, "which does not list it"),
    (
        "the bytes of a transaction",
        |transaction| {
            let (_, other) = rows::<RawTransactions>(transaction).remove(1);
            change_first::<RawTransactions>(transaction, |bytes| *bytes = other);
        },
        "its bytes are those of",
    ),
    (
        "a proof",
        |transaction| {
            change_first::<Proofs>(transaction, |FoundProof { proof, .. }| {
                let mut branch = Vec::new();
                proof.branch.encode(&mut branch);
                *branch.last_mut().unwrap() ^= 1;
                proof.branch = MerkleBranch::from_bytes(&branch).unwrap();
            });
        },
        "prove different roots",
    ),
    (
        "what an invoice has received",
        |transaction| change_first::<ReceivedFor>(transaction, |sums| sums.in_time.mined += 1),
        "50001 satoshis are kept as received for invoice 1, but its payments add up to 50000",
    ),
    (
        "how many payments count",
        |transaction| change_first::<ReceivedFor>(transaction, |sums| sums.payments += 1),
        "what is kept about the payments of invoice 1",
    ),
    (
        "what a transaction pays to an invoice",
        |transaction| change_first::<Incoming>(transaction, |paid| paid.first += 1),
        "what it pays to invoices is not what is listed",
    ),
    (
        "a payment that counts",
        remove_first::<Counted>,
        "a payment of invoice 1 or a wish for refunds is not in the list of those that count",
    ),
    (
        "a wish",
        |transaction| set::<Wishes>(transaction, &(1, 99), &()),
        "wishes for refunds are stored or listed",
    ),
];

#[test]
fn every_change_of_the_file_is_reported() {
    let node = Node::start();
    node.mine(101);
    let (site, other) = (quickly_sealed_site(Some(&node)), quickly_sealed_site(Some(&node)));
    let (server, payee) = (site.server(), other.server());
    fill(&site, &server, 50_000);
    fill(&site, &server, 60_000);
    pay(&server, &payee, 55_000);
    node.mine(1);
    wait_for_proofs(&site, 3);
    assert_eq!(server.stop(), 0);
    let path = site.network_dir().join(RedbWalletStore::FILE_NAME);
    let right = fs::read(&path).unwrap();
    for (what, change, expected) in TAMPERINGS {
        tamper(&site, change);
        let done = site.cli(&["books", "verify"]);
        assert_eq!(done.code, 1, "{what}: {}", done.stdout);
        assert!(done.stdout.contains(expected), "{what}: {}", done.stdout);
        fs::write(&path, &right).unwrap();
    }
    tamper(&site, remove_first::<MinedAt>);
    let books: Value =
        serde_json::from_str(&site.cli(&["books", "verify", "--json"]).stdout).unwrap();
    assert_eq!(books["differences"].as_array().unwrap().len(), 1, "{books}");
    fs::write(&path, &right).unwrap();
    site.cli_ok(&["books", "verify"]);
}
