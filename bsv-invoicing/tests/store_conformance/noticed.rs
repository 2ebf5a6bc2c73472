//! Transactions that the network shows before anybody announces them.

use bsv_invoicing::InvoiceState;
use bsv_invoicing::coins::{Chain, KeyPath};
use bsv_invoicing::invoices::{
    Counting, InvoiceQuery, LatePayments, NextStep, PaymentRules, Received,
};
use bsv_invoicing::ledger::queries::{
    GetBalance, GetHoldings, GetInvoice, GetInvoices, GetReceivedSum, GetSums,
};
use bsv_invoicing::ledger::rows::FollowedBlock;
use bsv_invoicing::ledger::{
    BeginAccount, CheckedProof, Contest, FollowTip, GetKnown, GetWatchBacklog, GetWatched,
    IsWatched, MarkPaid, Notice, Noticed, Offer, Reserve, SetRules, ShownPlace, Sighting, Watch,
    WatchBacklogged,
};
use bsv_invoicing::sending::OutgoingPurpose;
use bsv_invoicing::store::WalletStore;
use bsv_invoicing::transactions::COINBASE_MATURITY;
use bsv_tx::{BlockHash, OutPoint, Script, Transaction, TxOut, Txid};

use super::making::*;
use super::*;

/// The hash of an invoice's public key.
fn hash_of(invoice: u64) -> [u8; 20] {
    [invoice as u8; 20]
}

/// A transaction of a stranger that pays invoices.
pub(super) fn paying_invoices(payments: &[(u64, u64)], salt: usize) -> Transaction {
    let output = |(invoice, satoshis): &(u64, u64)| TxOut {
        satoshis: *satoshis,
        locking_script: Script::p2pkh(&hash_of(*invoice)),
    };
    Transaction { outputs: payments.iter().map(output).collect(), ..paying(&[], salt) }
}

/// Creates invoices, whose scripts are watched.
pub(super) async fn shown(store: &impl WalletStore, invoices: u64) {
    for invoice in 1..=invoices {
        create(store, at(0), HOUR).await;
        let keys = vec![(hash_of(invoice), key_of(invoice))];
        store.execute(Watch { keys }).await.unwrap();
    }
}

pub(super) async fn notice(
    store: &impl WalletStore,
    transaction: &Transaction,
    place: ShownPlace,
    s: u64,
) {
    let noticed =
        Noticed { transaction: transaction.into(), place, came_at: at(s), ancestry: Vec::new() };
    store.execute(Notice { shown: vec![noticed], now: at(s) }).await.unwrap();
}

pub(super) const MEMPOOL: ShownPlace = ShownPlace::Mempool(Sighting::judged(true));

pub(super) fn block(height: u8) -> ShownPlace {
    ShownPlace::Block(CheckedProof { proof: proof(height), reorganisations: 0 })
}

async fn state(store: &impl WalletStore, invoice: u64, s: u64) -> InvoiceState {
    store.get(GetInvoice(invoice)).await.unwrap().unwrap().state(at(s))
}

async fn received(store: &impl WalletStore, invoice: u64) -> Received {
    store.get(GetReceivedSum(invoice)).await.unwrap()
}

/// One transaction pays several invoices, and an invoice is paid in parts. Then a block holds all
/// of it.
pub(super) async fn in_parts(store: &impl WalletStore) {
    shown(store, 3).await;
    let both = paying_invoices(&[(1, SATOSHIS), (2, 400)], 1);
    notice(store, &both, MEMPOOL, 1).await;
    assert_eq!(state(store, 1, 2).await, InvoiceState::Paid);
    assert_eq!(state(store, 2, 2).await, InvoiceState::Pending);
    let rest = paying_invoices(&[(2, 600), (9, 5)], 2);
    notice(store, &rest, MEMPOOL, 3).await;
    assert_eq!(state(store, 2, 4).await, InvoiceState::Paid);
    assert_eq!(store.get(GetBalance).await.unwrap(), 2 * SATOSHIS);
    for _ in 0..2 {
        notice(store, &both, block(7), 5).await;
    }
    let of_second = Counting { unconfirmed: 600, unmined: 0, mined: 400 };
    assert_eq!(received(store, 2).await.in_time, of_second);
    assert_eq!(store.incoming(2).await.unwrap().len(), 2);
    assert_eq!(store.get(GetBalance).await.unwrap(), 2 * SATOSHIS);
}

/// An offered payment is noticed. It also pays an invoice that it was not offered for.
pub(super) async fn offered(store: &impl WalletStore) {
    shown(store, 2).await;
    let both = paying_invoices(&[(1, SATOSHIS), (2, SATOSHIS)], 1);
    let offer = Offer { transaction: (&both).into(), ..incoming(1, 1, at(1)) };
    begin_with(store, offer).await;
    notice(store, &both, MEMPOOL, 2).await;
    assert_eq!(state(store, 1, 3).await, InvoiceState::Paid);
    assert_eq!(state(store, 2, 3).await, InvoiceState::Paid);
    assert_eq!(store.get(GetBalance).await.unwrap(), 2 * SATOSHIS);
}

/// The wallet pays its own invoice. The fee that it paid suffices, whatever is asked of strangers.
pub(super) async fn own(store: &impl WalletStore) {
    shown(store, 2).await;
    notice(store, &paying_invoices(&[(1, 2 * SATOSHIS)], 1), MEMPOOL, 1).await;
    let reservation = reserve(store, outgoing("own", SATOSHIS)).await;
    let mut record = signed(&outgoing("own", SATOSHIS), &reservation);
    record.payment.transaction.outputs[0].locking_script = Script::p2pkh(&hash_of(2));
    let transaction = record.payment.transaction.clone();
    store.record_payment(record).await.unwrap();
    let offer = Offer { transaction: (&transaction).into(), ..incoming(2, 1, at(6)) };
    begin_with(store, offer).await;
    notice(store, &transaction, ShownPlace::Mempool(Sighting::judged(false)), 7).await;
    assert_eq!(state(store, 2, 8).await, InvoiceState::Paid);
}

/// Late payments are held or accepted, a small amount may be missing, and large payments must be
/// mined.
pub(super) async fn by_rules(store: &impl WalletStore) {
    shown(store, 5).await;
    let late = HOUR.as_secs() + 1;
    notice(store, &paying_invoices(&[(1, SATOSHIS)], 1), MEMPOOL, late).await;
    assert_eq!(state(store, 1, late).await, InvoiceState::Expired);
    assert_eq!(received(store, 1).await.late.sum(), SATOSHIS);
    store.execute(MarkPaid { invoice: 1, now: at(late) }).await.unwrap();
    assert_eq!(state(store, 1, late).await, InvoiceState::Paid);

    let rules = PaymentRules {
        underpaid_tolerance: 10,
        late: LatePayments::Accept,
        zero_conf_limit: Some(SATOSHIS - 1),
        ..PaymentRules::default()
    };
    store.execute(SetRules { rules }).await.unwrap();
    let payment = paying_invoices(&[(2, SATOSHIS - 10), (3, SATOSHIS - 11)], 2);
    notice(store, &payment, MEMPOOL, late).await;
    assert_eq!(state(store, 2, late).await, InvoiceState::Expired);
    notice(store, &payment, block(8), late).await;
    assert_eq!(state(store, 2, late).await, InvoiceState::Paid);
    assert_eq!(state(store, 3, late).await, InvoiceState::Expired);
}

/// The invoices whose owner has to decide, and what is next for them.
pub(super) async fn to_decide(store: &impl WalletStore, s: u64) -> Vec<(u64, NextStep)> {
    let query = InvoiceQuery { needs_decision: true, limit: 9, ..InvoiceQuery::default() };
    let page = store.list(GetInvoices(query, at(s))).await.unwrap();
    let mut cases = Vec::new();
    for invoice in page.invoices {
        let number = invoice.number;
        cases.push((number, store.get(GetSums(invoice, at(s))).await.unwrap().next));
    }
    cases
}

/// An owner has to decide about money that came late, that is too little or too much, and that the
/// network has not shown for six blocks.
pub(super) async fn to_be_decided(store: &impl WalletStore) {
    shown(store, 7).await;
    let tip = |height| FollowTip {
        tip: FollowedBlock { height, hash: BlockHash::from_bytes([height as u8; 32]) },
        now: at(0),
    };
    store.execute(tip(100)).await.unwrap();
    let late = HOUR.as_secs() + 1;
    let pay_at = async |invoice, satoshis, s| {
        let payment = paying_invoices(&[(invoice, satoshis)], invoice as usize);
        notice(store, &payment, MEMPOOL, s).await;
    };
    pay_at(2, SATOSHIS - 1, 1).await;
    pay_at(3, SATOSHIS + 50, 1).await;
    pay_at(4, SATOSHIS, 1).await;
    pay_at(5, SATOSHIS, 1).await;
    pay_at(7, 1, 1).await;
    pay_at(6, SATOSHIS + 5, 1).await;
    assert_eq!(to_decide(store, 2).await, [(3, NextStep::RefundSurplus(50))]);
    pay_at(1, SATOSHIS, late).await;
    let contested = 4;
    store.execute(Contest { transaction: contested, now: at(late) }).await.unwrap();
    store.delete_invoice(7, at(late)).await.unwrap();
    let decided = [
        (1, NextStep::DecideLate(SATOSHIS)),
        (2, NextStep::DecideUnderpaid(SATOSHIS - 1)),
        (3, NextStep::RefundSurplus(50)),
    ];
    assert_eq!(to_decide(store, late).await, decided);
    store.execute(tip(105)).await.unwrap();
    assert_eq!(to_decide(store, late).await, decided);
    store.execute(tip(106)).await.unwrap();
    assert_eq!(to_decide(store, late).await[3..], [(5, NextStep::DecideContested(6))]);
    // Another payment that the network does not show has its own age.
    notice(store, &paying_invoices(&[(5, 20)], 9), MEMPOOL, late).await;
    store.execute(Contest { transaction: 8, now: at(late) }).await.unwrap();
    store.execute(tip(108)).await.unwrap();
    store.see(contested, at(late)).await.unwrap();
    let invoice = store.get(GetInvoice(5)).await.unwrap().unwrap();
    let next = store.get(GetSums(invoice, at(late))).await.unwrap().next;
    assert_eq!(next, NextStep::AwaitNetwork, "for 2 blocks");
    store.execute(tip(112)).await.unwrap();
    assert_eq!(to_decide(store, late).await[3..], [(5, NextStep::DecideContested(6))]);
    store.displace(8, at(late)).await.unwrap();
    assert_eq!(to_decide(store, late).await, decided);
    store.execute(MarkPaid { invoice: 1, now: at(late) }).await.unwrap();
    assert_eq!(to_decide(store, late).await, decided[1..]);
    // A refund settles the case, unless it is lost.
    let to = "somebody".to_owned();
    let purpose = OutgoingPurpose::Refund { invoice: 2, to };
    let refund = Reserve { purpose, ..outgoing("a", SATOSHIS - 1) };
    pay(store, refund).await.unwrap();
    assert_eq!(to_decide(store, late).await, decided[2..]);
    let lost = transaction_of(store, 1).await;
    store.see(lost, at(late)).await.unwrap();
    store.displace(lost, at(late)).await.unwrap();
    assert_eq!(to_decide(store, late).await, decided[1..]);
}

/// The sums of an invoice agree with each other, whatever has happened to it.
pub(super) async fn sums(store: &impl WalletStore) {
    let rules = PaymentRules { zero_conf_limit: Some(SATOSHIS), ..PaymentRules::default() };
    store.execute(SetRules { rules }).await.unwrap();
    let (shown_at, late) = (at(0), HOUR.as_secs() + 1);
    shown(store, 1).await;
    let large = InvoiceDraft { satoshis: 5 * SATOSHIS, ..InvoiceDraft::default() };
    let large = CreateInvoice { draft: large, ..new_invoice(shown_at, HOUR) };
    store.create_invoice(large).await.unwrap();
    store.execute(Watch { keys: vec![(hash_of(2), key_of(2))] }).await.unwrap();
    let sums = async |number, s| {
        let invoice = store.get(GetInvoice(number)).await.unwrap().unwrap();
        let it = store.get(GetSums(invoice, at(s))).await.unwrap();
        ([it.received, it.counted, it.refunded, it.due, it.to_send, it.surplus], it.next)
    };
    let [one, five] = [SATOSHIS, 5 * SATOSHIS];
    assert_eq!(sums(1, 1).await, ([0, 0, 0, one, one, 0], NextStep::AwaitPayment));
    notice(store, &paying_invoices(&[(2, five)], 1), MEMPOOL, 1).await;
    assert_eq!(sums(2, late).await, ([five, 0, 0, five, 0, 0], NextStep::AwaitBlock(1)));
    notice(store, &paying_invoices(&[(2, five)], 1), block(8), late).await;
    assert_eq!(sums(2, late).await, ([five, five, 0, 0, 0, 0], NextStep::NothingPaid));
    notice(store, &paying_invoices(&[(1, one)], 2), MEMPOOL, late).await;
    let decide = NextStep::DecideLate(one);
    assert_eq!(sums(1, late).await, ([one, 0, 0, one, 0, one], decide));
}

/// The output of a coinbase transaction becomes spendable when the chain is long enough.
pub(super) async fn coinbase(store: &impl WalletStore) {
    shown(store, 1).await;
    let mut coinbase = paying_invoices(&[(1, 50 * SATOSHIS)], 1);
    let nothing = OutPoint { txid: Txid::from_bytes([0; 32]), vout: u32::MAX };
    coinbase.inputs[0].previous_output = nothing;
    notice(store, &coinbase, block(10), 1).await;
    assert_eq!(state(store, 1, 2).await, InvoiceState::Paid);
    let follow = |height| FollowTip {
        tip: FollowedBlock { height, hash: BlockHash::from_bytes([height as u8; 32]) },
        now: at(0),
    };
    store.execute(follow(10 + COINBASE_MATURITY - 2)).await.unwrap();
    let payment = || outgoing("a", SATOSHIS);
    assert_refused!(store.reserve(payment()).await, Refusal::InsufficientFunds { .. });
    store.execute(follow(10 + COINBASE_MATURITY - 1)).await.unwrap();
    reserve(store, payment()).await;
}

/// However many outputs a coinbase transaction has, a step makes a part of them spendable.
pub(super) async fn coinbase_with_many_outputs(store: &impl WalletStore) {
    shown(store, 1).await;
    let mut coinbase = paying_invoices(&[(1, SATOSHIS); 600], 1);
    coinbase.inputs[0].previous_output =
        OutPoint { txid: Txid::from_bytes([0; 32]), vout: u32::MAX };
    notice(store, &coinbase, block(10), 1).await;
    let height = 10 + COINBASE_MATURITY - 1;
    let tip = FollowedBlock { height, hash: BlockHash::from_bytes([1; 32]) };
    let spendable = async || store.get(GetHoldings).await.unwrap().confirmed;
    for (is_full, count) in [(true, 250), (true, 500), (false, 600), (false, 600)] {
        assert_eq!(store.execute(FollowTip { tip, now: at(0) }).await.unwrap(), is_full);
        assert_eq!(spendable().await, count * SATOSHIS);
    }
}

/// Keys of the backlog are watched in parts, and each once.
pub(super) async fn backlog(store: &impl WalletStore) {
    create(store, at(0), HOUR).await;
    store.execute(BeginAccount { account: 300, is_behind: false }).await.unwrap();
    let (from, end) = store.get(GetWatchBacklog).await.unwrap().unwrap();
    assert_eq!((from, end), (key_of(2), 2 + 100_000));
    let watch = WatchBacklogged { from, hashes: vec![[1; 20], [2; 20]] };
    store.execute(watch.clone()).await.unwrap();
    store.execute(watch).await.unwrap();
    assert_eq!(store.get(GetWatchBacklog).await.unwrap(), Some((key_of(4), end)));
    assert!(store.get(IsWatched([2; 20])).await.unwrap());
    assert!(!store.get(IsWatched([9; 20])).await.unwrap());
    let paying = Transaction {
        outputs: vec![TxOut { satoshis: 5, locking_script: Script::p2pkh(&[2; 20]) }],
        ..paying(&[], 1)
    };
    let known = store.get(GetKnown(std::sync::Arc::new((&paying).into()))).await.unwrap();
    assert_eq!(known.lacking.receipts[0].key, key_of(3));
    assert_eq!(store.get(GetWatched(Some([1; 20]), 9)).await.unwrap(), [[2; 20]]);
    // The keys of each account are counted anew.
    for _ in 0..2 {
        create(store, at(1), HOUR).await;
    }
    store.execute(BeginAccount { account: 301, is_behind: false }).await.unwrap();
    let hashes = vec![[3; 20]; end as usize - 4];
    store.execute(WatchBacklogged { from: key_of(4), hashes }).await.unwrap();
    let from = KeyPath { chain: Chain::Change, ..key_of(0) };
    assert_eq!(store.get(GetWatchBacklog).await.unwrap(), Some((from, 1_000)));
    watch_backlogged(store, from, 1_000).await;
    let from = KeyPath { account: 300, ..key_of(3) };
    assert_eq!(store.get(GetWatchBacklog).await.unwrap(), Some((from, 3 + 100_000)));
}

/// The hash of a key of the backlog.
fn hash_of_key(key: KeyPath) -> [u8; 20] {
    let mut hash = [key.chain as u8 + 100; 20];
    hash[..4].copy_from_slice(&key.index.to_be_bytes());
    hash
}

async fn watch_backlogged(store: &impl WalletStore, from: KeyPath, end: u32) {
    let hashes = (from.index..end).map(|index| hash_of_key(KeyPath { index, ..from })).collect();
    store.execute(WatchBacklogged { from, hashes }).await.unwrap();
}

/// Keys of an earlier account are watched beyond each one that is found, and as many as before.
pub(super) async fn found_ahead(store: &impl WalletStore) {
    create(store, at(0), HOUR).await;
    store.execute(BeginAccount { account: 300, is_behind: false }).await.unwrap();
    let mut salt = 0;
    let mut pay = async |key| {
        salt += 1;
        let locking_script = Script::p2pkh(&hash_of_key(key));
        let outputs = vec![TxOut { satoshis: 5, locking_script }];
        notice(store, &Transaction { outputs, ..paying(&[], salt) }, MEMPOOL, 1).await;
    };
    for (first, count) in
        [(key_of(2), 100_000), (KeyPath { chain: Chain::Change, ..key_of(0) }, 1_000)]
    {
        let backlog = async || store.get(GetWatchBacklog).await.unwrap();
        let key = |index| KeyPath { index, ..first };
        let mut end = first.index + count;
        assert_eq!(backlog().await, Some((first, end)));
        watch_backlogged(store, first, end).await;
        // The first key, the one at the edge, and the one at the edge after that.
        for (found, moved) in
            [(first.index, end + 1), (end, end + 1 + count), (end + count, end + 2 * count + 1)]
        {
            pay(key(found)).await;
            assert_eq!(backlog().await, Some((key(end), moved)), "{found}");
            watch_backlogged(store, key(end), moved).await;
            end = moved;
        }
        // A key that is far from the edge moves nothing.
        let other = backlog().await;
        pay(key(first.index + 1)).await;
        assert_eq!(backlog().await, other);
    }
    assert_eq!(store.get(GetBalance).await.unwrap(), 8 * 5);
}
