use std::fs;
use std::thread;

use bsv_invoicing::RedbWalletStore;
use bsv_tests::{Node, Site};
use redb::{Database, ReadableTable, Table, TableDefinition, WriteTransaction};
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

type ReceiptKey = (u64, u32);
type ReceiptRow = (u64, u32, u8, u32, Option<u64>);
type ProofRow<'a> = (u32, [u8; 32], u64, bool, &'a [u8]);

const FIGURES: TableDefinition<'_, (), [u64; 17]> = TableDefinition::new("kept figures");
/// The index of the confirmed amount among them.
const CONFIRMED: usize = 10;
const RECEIPTS: TableDefinition<'_, ReceiptKey, ReceiptRow> = TableDefinition::new("receipts");
const SPENDABLE: TableDefinition<'_, (u8, u64, u64, u32), ()> =
    TableDefinition::new("spendable by amount");
const SPENT: TableDefinition<'_, (u64, u64, u32), ()> = TableDefinition::new("spent");
const RAW: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("raw transactions");
const PROOFS: TableDefinition<'_, (u64, u32), ProofRow<'static>> = TableDefinition::new("proofs");
const INCOMING: TableDefinition<'_, (u64, u64), (u32, u64)> =
    TableDefinition::new("incoming payments");
const RECEIVED: TableDefinition<'_, u64, [u64; 10]> = TableDefinition::new("received for invoices");
const COUNTED: TableDefinition<'_, (u64, u32, u64), ()> = TableDefinition::new("counted payments");
const WISHES: TableDefinition<'_, (u64, u64), ()> = TableDefinition::new("wishes");
const MINED: TableDefinition<'_, (u32, u64), ()> = TableDefinition::new("mined at");

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
    assert!(text.contains("2 of these blocks are in the node's main chain"), "{text}");
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
            let mut table = transaction.open_table(FIGURES).unwrap();
            let mut figures = table.get(()).unwrap().unwrap().value();
            figures[CONFIRMED] = 1;
            table.insert((), figures).unwrap();
        },
        "the balance is kept as 1 satoshis",
    ),
    (
        "an amount",
        |transaction| {
            let mut receipts = transaction.open_table(RECEIPTS).unwrap();
            let (key, row) = first(&receipts);
            receipts.insert(key, (1, row.1, row.2, row.3, row.4)).unwrap();
        },
        "is not 1 satoshis to the wallet's key",
    ),
    (
        "a key",
        |transaction| {
            let mut receipts = transaction.open_table(RECEIPTS).unwrap();
            let (key, row) = first(&receipts);
            receipts.insert(key, (row.0, row.1, row.2, row.3 + 1, row.4)).unwrap();
        },
        "to the wallet's key",
    ),
    (
        "a coin",
        |transaction| {
            let mut receipts = transaction.open_table(RECEIPTS).unwrap();
            let (key, _) = first(&receipts);
            receipts.remove(key).unwrap();
        },
        "what it pays or spends is not what is on record",
    ),
    (
        "what can be chosen",
        |transaction| {
            transaction.open_table(SPENDABLE).unwrap().insert((0, 8, 99, 0), ()).unwrap();
        },
        "spendable coins are stored",
    ),
    (
        "what is spent",
        |transaction| {
            let mut spent = transaction.open_table(SPENT).unwrap();
            let key = spent.iter().unwrap().next().unwrap().unwrap().0.value();
            spent.remove(key).unwrap();
        },
        "which does not list it",
    ),
    (
        "the bytes of a transaction",
        |transaction| {
            let mut raw = transaction.open_table(RAW).unwrap();
            let other = raw.get(2).unwrap().unwrap().value().to_vec();
            raw.insert(1, other.as_slice()).unwrap();
        },
        "its bytes are those of",
    ),
    (
        "a proof",
        |transaction| {
            let mut proofs = transaction.open_table(PROOFS).unwrap();
            let row = proofs.get((1, 1)).unwrap().unwrap();
            let (height, hash, at, read, branch) = row.value();
            let mut branch = branch.to_vec();
            drop(row);
            *branch.last_mut().unwrap() ^= 1;
            proofs.insert((1, 1), (height, hash, at, read, branch.as_slice())).unwrap();
        },
        "prove different roots",
    ),
    (
        "what an invoice has received",
        |transaction| {
            let mut received = transaction.open_table(RECEIVED).unwrap();
            let mut row = received.get(1).unwrap().unwrap().value();
            row[2] += 1;
            received.insert(1, row).unwrap();
        },
        "50001 satoshis are kept as received for invoice 1, but its payments add up to 50000",
    ),
    (
        "how many payments count",
        |transaction| {
            let mut received = transaction.open_table(RECEIVED).unwrap();
            let mut row = received.get(1).unwrap().unwrap().value();
            row[6] += 1;
            received.insert(1, row).unwrap();
        },
        "what is kept about the payments of invoice 1",
    ),
    (
        "what a transaction pays to an invoice",
        |transaction| {
            let mut incoming = transaction.open_table(INCOMING).unwrap();
            let (key, (first, satoshis)) = {
                let (key, row) = incoming.first().unwrap().unwrap();
                (key.value(), row.value())
            };
            incoming.insert(key, (first + 1, satoshis)).unwrap();
        },
        "what it pays to invoices is not what is listed",
    ),
    (
        "a payment that counts",
        |transaction| {
            let mut counted = transaction.open_table(COUNTED).unwrap();
            counted.pop_first().unwrap();
        },
        "a payment of invoice 1 or a wish for refunds is not in the list of those that count",
    ),
    (
        "a wish",
        |transaction| {
            transaction.open_table(WISHES).unwrap().insert((1, 99), ()).unwrap();
        },
        "wishes for refunds are stored or listed",
    ),
];

fn first(receipts: &Table<'_, ReceiptKey, ReceiptRow>) -> (ReceiptKey, ReceiptRow) {
    let (key, row) = receipts.iter().unwrap().next().unwrap().unwrap();
    (key.value(), row.value())
}

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
    tamper(&site, |transaction| {
        let mut mined = transaction.open_table(MINED).unwrap();
        let key = mined.iter().unwrap().next().unwrap().unwrap().0.value();
        mined.remove(key).unwrap();
    });
    let books: Value =
        serde_json::from_str(&site.cli(&["books", "verify", "--json"]).stdout).unwrap();
    assert_eq!(books["differences"].as_array().unwrap().len(), 1, "{books}");
    fs::write(&path, &right).unwrap();
    site.cli_ok(&["books", "verify"]);
}
