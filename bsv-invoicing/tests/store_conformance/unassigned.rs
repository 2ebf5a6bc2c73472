//! Receipts that pay no invoice, and the movements of money.

use std::collections::BTreeMap;

use bsv_invoicing::coins::{Chain, KeyPath};
use bsv_invoicing::invoices::PaymentRules;
use bsv_invoicing::ledger::movements::GetMovements;
use bsv_invoicing::ledger::{
    BeginAccount, GetUnassigned, GetWatchBacklog, GetWatchedAhead, Offer, SetRules, SkipNumbers,
    Watch, WatchBacklogged,
};
use bsv_invoicing::movements::{Movement, MovementKind, MovementPage, MovementQuery};
use bsv_invoicing::receiving::{NewReceipt, ReceiptKey, UnassignedReceipt};
use bsv_invoicing::store::WalletStore;
use bsv_tx::{OutPoint, Transaction};

use super::making::*;
use super::noticed::{MEMPOOL, block, notice, paying_invoices, shown};
use super::*;

/// Stands for the key of the first user where [`paying_invoices`] wants an invoice.
const USER: u64 = 101;
/// Stands for the first key for change.
const CHANGE: u64 = 102;
/// Stands for somebody else's key.
const ELSEWHERE: u64 = 200;

/// Two invoices, a user, and a key for change. All their scripts are watched.
async fn watched(store: &impl WalletStore) {
    shown(store, 2).await;
    store.create_user(user_named("Ada"), at(0), None).await.unwrap();
    let key = |chain, index| KeyPath { account: 0, chain, index };
    let keys =
        vec![([USER as u8; 20], key(Chain::User, 1)), ([CHANGE as u8; 20], key(Chain::Change, 0))];
    store.execute(Watch { keys }).await.unwrap();
}

/// The output, the amount and the user of each unassigned receipt, the newest first.
async fn unassigned(store: &impl WalletStore) -> Vec<(u64, u32, u64, Option<u64>)> {
    let before = ReceiptKey { maker: u64::MAX, vout: 0 };
    let listed = store.list(GetUnassigned { before, limit: 99 }).await.unwrap();
    let of = |UnassignedReceipt { payment, user }: &UnassignedReceipt| {
        (payment.number, payment.vout, payment.satoshis, *user)
    };
    listed.iter().map(of).collect()
}

/// The kinds of the events after the one with this number.
async fn kinds(store: &impl WalletStore, after: usize) -> Vec<EventKind> {
    happened(store, after).await.into_iter().map(|(_, (kind, _))| kind).collect()
}

/// A transaction that spends this output.
fn spending_output(of: &Transaction, vout: u32, payments: &[(u64, u64)]) -> Transaction {
    let mut transaction = paying_invoices(payments, 0);
    transaction.inputs[0].previous_output = OutPoint { txid: of.txid(), vout };
    transaction
}

async fn movements(store: &impl WalletStore, after: u64) -> MovementPage {
    let query = MovementQuery { after, from: at(0), to: at(9000) };
    store.list(GetMovements(query)).await.unwrap()
}

/// The kind, the output, and what came, what left, and the fee.
fn amounts(movements: &[Movement]) -> Vec<(&'static str, Option<u32>, [u64; 3])> {
    let of = |it: &Movement| (it.kind.name(), it.vout, [it.received, it.sent, it.fee]);
    movements.iter().map(of).collect()
}

/// A refused payment of an invoice, of a deleted one, and of a user. New rules let an invoice be
/// paid when it is refused.
pub(super) async fn refused(store: &impl WalletStore) {
    watched(store).await;
    notice(store, &paying_invoices(&[(1, SATOSHIS - 10)], 7), MEMPOOL, 1).await;
    let key = |chain, index| KeyPath { account: 0, chain, index };
    let receipts = [(0, 300, key(Chain::User, 1)), (1, 5, key_of(1)), (2, 9, key_of(2))];
    let receipt = |(vout, satoshis, key)| NewReceipt { vout, satoshis, key };
    let transaction = (&paying_invoices(&[(USER, 300), (1, 5), (2, 9)], 8)).into();
    let receipts = receipts.map(receipt).to_vec();
    let offer = Offer { transaction, receipts, is_known: true, ..incoming(1, 8, at(2)) };
    let rules = PaymentRules { underpaid_tolerance: 10, ..PaymentRules::default() };
    for is_forgotten in [false, true] {
        let offer = Offer { is_known: !is_forgotten, ..offer.clone() };
        let payment = begin_with(store, offer).await;
        if !is_forgotten {
            store.delete_invoice(2, at(2)).await.unwrap();
            store.sweep(at(2), 9).await.unwrap();
        }
        assert_eq!(unassigned(store).await, []);
        store.execute(SetRules { rules }).await.unwrap();
        store.refuse(payment.number, at(3)).await.unwrap();
        if is_forgotten {
            store.unfollow(payment.number).await.unwrap();
        }
        assert_eq!(unassigned(store).await, []);
    }
    for event in store.events(0, 1000).await.unwrap() {
        assert_ne!(event.kind, EventKind::ReceiptUnassigned);
    }
    // The network shows it in the end.
    let payment = begin_with(store, offer).await;
    store.see(payment.number, at(9)).await.unwrap();
    let number = payment.number;
    assert_eq!(unassigned(store).await, [(number, 2, 9, None), (number, 0, 300, Some(1))]);
}

/// Receipts at keys of users and at keys for change are listed. Receipts of invoices are not, and
/// neither is the change of a transaction that spends coins of the wallet.
pub(super) async fn found(store: &impl WalletStore) {
    watched(store).await;
    let before = events(store).await.len();
    let strangers = paying_invoices(&[(USER, 300), (1, SATOSHIS), (CHANGE, 50)], 1);
    notice(store, &strangers, MEMPOOL, 1).await;
    assert_eq!(unassigned(store).await, [(1, 2, 50, None), (1, 0, 300, Some(1))]);
    let told = [
        EventKind::PaymentReceived,
        EventKind::InvoicePaid,
        EventKind::ReceiptUnassigned,
        EventKind::ReceiptUnassigned,
    ];
    assert_eq!(kinds(store, before).await, told);

    let own = spending_output(&strangers, 1, &[(CHANGE, 600), (USER, 100), (ELSEWHERE, 200)]);
    notice(store, &own, MEMPOOL, 2).await;
    assert_eq!(unassigned(store).await[0], (2, 1, 100, Some(1)));
    assert_eq!(unassigned(store).await.len(), 3);
    assert_eq!(kinds(store, before + 4).await, [EventKind::ReceiptUnassigned]);
    let only_change = spending_output(&own, 0, &[(CHANGE, 250), (ELSEWHERE, 340)]);
    notice(store, &only_change, block(7), 3).await;
    assert_eq!(unassigned(store).await.len(), 3);
    let told = [EventKind::TransactionFound, EventKind::TransactionMined];
    assert_eq!(kinds(store, before + 5).await, told);

    let page = movements(store, 0).await;
    assert_eq!(page.next, None);
    let expected = [
        ("receipt", Some(0), [300, 0, 0]),
        ("receipt", Some(1), [SATOSHIS, 0, 0]),
        ("receipt", Some(2), [50, 0, 0]),
        ("receipt", Some(1), [100, 0, 0]),
        // The fee is 100. The user's receipt is a movement of its own.
        ("found", None, [0, 300, 100]),
        ("found", None, [0, 340, 10]),
    ];
    assert_eq!(amounts(&page.movements), expected);
    let invoice = |movement: &Movement| movement.kind.invoice().map(|invoice| invoice.id);
    assert_eq!(invoice(&page.movements[1]), Some(id(1)));
    assert_eq!(page.movements[2].kind, MovementKind::Receipt(None));
    let balance = 300 + SATOSHIS + 50 + 100 - 300 - 100 - 340 - 10;
    assert_eq!(store.balance().await.unwrap(), balance);
}

/// What a deleted invoice has received and receives later is listed.
pub(super) async fn of_a_deleted_invoice(store: &impl WalletStore) {
    watched(store).await;
    let refused = begin(store, 2, 7, at(1)).await;
    store.refuse(refused.number, at(1)).await.unwrap();
    let part = paying_invoices(&[(2, 400), (1, 5)], 1);
    notice(store, &part, MEMPOOL, 2).await;
    assert_eq!(unassigned(store).await, []);
    store.delete_invoice(2, at(3)).await.unwrap();
    assert_eq!(unassigned(store).await, [(2, 0, 400, None)]);
    let before = events(store).await.len();
    notice(store, &paying_invoices(&[(2, 600)], 2), MEMPOOL, 4).await;
    assert_eq!(unassigned(store).await, [(3, 0, 600, None), (2, 0, 400, None)]);
    assert!(!kinds(store, before).await.contains(&EventKind::InvoicePaid));
    store.see(refused.number, at(5)).await.unwrap();
    assert_eq!(unassigned(store).await[2], (1, 0, SATOSHIS, None));
}

/// The deletion of an invoice lists few of its receipts. The sweep lists the others, also after the
/// store was closed, and while more receipts come.
pub(super) async fn many_of_a_deleted_invoice<P: Place>() {
    const OUTPUTS: usize = 1_500;
    let late = HOUR.as_secs() + 1;
    let place = P::fresh();
    let store = place.open();
    watched(&store).await;
    for salt in 1..=3 {
        let mut outputs = vec![(2, 1); OUTPUTS];
        outputs[7] = (1, 1);
        notice(&store, &paying_invoices(&outputs, salt), MEMPOOL, late).await;
    }
    store.delete_invoice(2, at(late)).await.unwrap();
    let listed = all_unassigned(&store).await;
    assert!(listed > 0 && listed <= 100, "{listed} at once");
    assert!(store.sweep(at(late), 200).await.unwrap() >= 200);
    notice(&store, &paying_invoices(&[(2, 5)], 4), MEMPOOL, late).await;
    drop(store);
    let store = place.open();
    let mut steps = 0;
    while store.sweep(at(late), 200).await.unwrap() > 0 {
        steps += 1;
    }
    assert!(steps > 3 * OUTPUTS / 200 - 2, "{steps} steps");
    assert_eq!(all_unassigned(&store).await, 3 * (OUTPUTS - 1) + 1);
}

async fn all_unassigned(store: &impl WalletStore) -> usize {
    let before = ReceiptKey { maker: u64::MAX, vout: 0 };
    store.list(GetUnassigned { before, limit: usize::MAX }).await.unwrap().len()
}

/// Numbers of keys are skipped, and the keys are watched. A receipt at one of them pays no invoice.
pub(super) async fn of_a_skipped_number(store: &impl WalletStore) {
    watched(store).await;
    store.execute(SkipNumbers::default()).await.unwrap();
    let backlog = async || store.get(GetWatchBacklog).await.unwrap();
    assert_eq!(backlog().await, None);
    let key = |chain, index| KeyPath { account: 7, chain, index };
    let used = vec![key(Chain::Receive, 40), key(Chain::Change, 3)];
    store.execute(SkipNumbers { invoices: 5, users: 3, change: 2, used }).await.unwrap();
    let keys = [(Chain::Receive, 1, 6), (Chain::Change, 0, 2), (Chain::User, 1, 4)];
    for (chain, index, end) in keys {
        let from = KeyPath { account: 0, chain, index };
        assert_eq!(backlog().await, Some((from, end)));
        let hashes = (index..end).map(|index| [10 * chain as u8 + index as u8; 20]).collect();
        store.execute(WatchBacklogged { from, hashes }).await.unwrap();
    }
    // Those of another account are watched from its first key on, and beyond the last used one.
    for (chain, end) in [(Chain::Receive, 41 + 100_000), (Chain::Change, 4 + 1_000)] {
        assert_eq!(backlog().await, Some((key(chain, 0), end)));
        let hashes = vec![[99; 20]; end as usize];
        store.execute(WatchBacklogged { from: key(chain, 0), hashes }).await.unwrap();
    }
    assert_eq!(backlog().await, None);
    assert_eq!(create(store, at(0), HOUR).await.number, 6);
    assert_eq!(store.create_user(user_named("Grace"), at(0), None).await.unwrap().0, 4);
    let before = events(store).await.len();
    notice(store, &paying_invoices(&[(4, 40)], 1), MEMPOOL, 1).await;
    assert_eq!(unassigned(store).await, [(1, 0, 40, None)]);
    assert_eq!(kinds(store, before).await, [EventKind::ReceiptUnassigned]);
}

/// The keys beyond the skipped ones may have been given out before the wallet was restored.
pub(super) async fn beyond_skipped_numbers(store: &impl WalletStore) {
    let skipped = SkipNumbers { invoices: 5, users: 3, change: 2, used: Vec::new() };
    store.execute(skipped).await.unwrap();
    store.execute(BeginAccount { account: 9, is_behind: false }).await.unwrap();
    let mut ends = BTreeMap::new();
    while let Some((from, end)) = store.get(GetWatchBacklog).await.unwrap() {
        let hashes = vec![[from.chain as u8; 20]; (end - from.index) as usize];
        store.execute(WatchBacklogged { from, hashes }).await.unwrap();
        ends.insert(from.chain as u8, end);
    }
    let ends_of = |chains: [(Chain, u32); 3]| chains.map(|(chain, end)| (chain as u8, end));
    let expected = [(Chain::Receive, 6 + 100_000), (Chain::Change, 2 + 1_000), (Chain::User, 4)];
    assert_eq!(ends, ends_of(expected).into());
    // All of them are marked, for the next reading of the chain.
    let ahead = store.get(GetWatchedAhead).await.unwrap();
    let marked = ahead.into_iter().map(|(from, end)| (from.chain as u8, end)).collect();
    assert_eq!(ends, marked);
}

/// A part of the movements ends between two transactions.
pub(super) async fn movements_in_parts(store: &impl WalletStore) {
    for amounts in [&[1; 1000][..], &[2], &[3]] {
        let invoice = create(store, at(0), HOUR).await.number;
        let payment = begin_with(store, offering(invoice, amounts, invoice as usize, at(1))).await;
        store.see(payment.number, at(2)).await.unwrap();
    }
    let first = movements(store, 0).await;
    assert_eq!((first.movements.len(), first.next), (1000, Some(1)));
    let rest = movements(store, 1).await;
    assert_eq!(rest.movements.iter().map(|it| it.received).collect::<Vec<_>>(), [2, 3]);
    assert_eq!(rest.next, None);
}
