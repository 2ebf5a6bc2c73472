//! Long transactions that nobody needs any more are kept without their bytes.

use bsv_invoicing::ledger::movements::GetMovements;
use bsv_invoicing::ledger::queries::{GetAncestors, GetShown};
use bsv_invoicing::ledger::rows::FollowedBlock;
use bsv_invoicing::ledger::{DropBytes, FollowTip, ForgetBlock, GetLong, Offer};
use bsv_invoicing::movements::{Movement, MovementQuery};
use bsv_invoicing::store::WalletStore;
use bsv_invoicing::transactions::RawBytes;
use bsv_tx::{BlockHash, OutPoint, Script, Transaction, TxIn, TxOut};

use super::making::*;
use super::noticed::{MEMPOOL, block, notice, paying_invoices, shown};
use super::rivals::{GONE, WORD, mined, told};
use super::totals::items;
use super::*;

/// The longest transaction whose bytes stay for ever.
const MAX_KEPT_LEN: usize = 100_000;

/// An output with so much data.
fn data(len: usize) -> TxOut {
    TxOut { satoshis: 0, locking_script: Script::from_bytes(vec![0x51; len]) }
}

/// The same transaction with another output, which makes it this long.
fn with_len(mut transaction: Transaction, len: usize) -> Transaction {
    // The lengths of this and of the final script take as many bytes.
    let begun = MAX_KEPT_LEN - (1 << 12);
    transaction.outputs.push(data(begun));
    let missing = len - transaction.to_bytes().len();
    *transaction.outputs.last_mut().unwrap() = data(begun + missing);
    assert_eq!(transaction.to_bytes().len(), len);
    transaction
}

/// The same transaction with another output, which makes it too long to be kept for ever.
fn long(mut transaction: Transaction) -> Transaction {
    transaction.outputs.push(data(MAX_KEPT_LEN));
    transaction
}

/// Drops what nobody needs any more with a tip. Mined transactions are looked at one by one.
async fn drop_after(store: &impl WalletStore, place: (u32, u64), tip: u32) {
    let mut next = Some(place);
    while let Some(after) = next {
        let long = store.list(GetLong { after, tip, limit: 1 }).await.unwrap();
        for transaction in long.numbers {
            store.execute(DropBytes { transaction, tip }).await.unwrap();
        }
        next = long.next;
    }
}

/// The chain grows up to a height. Everything is looked at one by one.
async fn follow(store: &impl WalletStore, height: u32) {
    let followed = store.followed_tip().await.unwrap().map(|tip| tip.height);
    drop_after(store, GetLong::begin(followed), height).await;
    let tip = FollowedBlock { height, hash: BlockHash::from_bytes([height as u8; 32]) };
    store.execute(FollowTip { tip, now: at(0) }).await.unwrap();
}

/// Whether the bytes of a transaction are dropped. All answers must agree about that.
async fn is_dropped(store: &impl WalletStore, number: u64) -> bool {
    let record = store.record(number).await.unwrap().unwrap();
    let is_dropped = record.raw == RawBytes::Dropped;
    if is_dropped {
        let answer = store.transaction(number).await;
        assert_refused!(answer, Refusal::BytesDropped(txid) if txid == record.txid);
    } else {
        let transaction = store.transaction(number).await.unwrap().unwrap();
        assert_eq!(transaction.txid(), record.txid);
    }
    let items = items(store).await;
    let listed = items.transactions.iter().find(|it| it.number == number).unwrap();
    assert_eq!((listed.are_bytes_dropped, listed.transaction.is_none()), (is_dropped, is_dropped));
    let dropped = items.transactions.iter().filter(|it| it.are_bytes_dropped).count() as u64;
    assert_eq!(items.totals.raw + dropped, items.totals.transactions);
    is_dropped
}

async fn movements(store: &impl WalletStore) -> Vec<Movement> {
    let all = MovementQuery { after: 0, from: Timestamp::from_micros(0), to: Timestamp::MAX };
    store.list(GetMovements(all)).await.unwrap().movements
}

/// Pays this amount to somebody, and a block holds the payment. Returns its transaction.
async fn spend(store: &impl WalletStore, payee: &str, satoshis: u64, height: u8) -> u64 {
    let payment = pay(store, outgoing(payee, satoshis)).await.unwrap();
    let spender = transaction_of(store, payment.number).await;
    store.mine(spender, proof(height), at(6)).await.unwrap();
    spender
}

/// The bytes stay until the transaction and the last spender of its outputs are deep.
pub(super) async fn after_the_last_spender(store: &impl WalletStore) {
    shown(store, 1).await;
    let two = paying_invoices(&[(1, SATOSHIS), (1, 2 * SATOSHIS)], 1);
    let two = with_len(two, MAX_KEPT_LEN + 1);
    let short = with_len(paying_invoices(&[(1, 5)], 2), MAX_KEPT_LEN);
    for transaction in [&two, &short] {
        notice(store, transaction, block(7), 1).await;
    }
    follow(store, 150).await;
    spend(store, "a", 2 * SATOSHIS, 60).await;
    spend(store, "b", SATOSHIS, 40).await;
    spend(store, "c", 5, 40).await;
    assert!(!is_dropped(store, 1).await);
    follow(store, 159).await;
    assert!(!is_dropped(store, 1).await);
    let before = movements(store).await;
    follow(store, 160).await;
    assert!(is_dropped(store, 1).await);
    for number in 2..=5 {
        assert!(!is_dropped(store, number).await, "transaction {number} is not long");
    }
    let txid = store.record(1).await.unwrap().unwrap().txid;
    assert_refused!(store.get(GetShown(txid)).await, Refusal::BytesDropped(_));
    let after = movements(store).await;
    assert!(after.iter().all(|it| it.are_bytes_dropped == (it.txid == txid)), "{after:?}");
    let without = |it: Movement| Movement { are_bytes_dropped: false, ..it };
    assert_eq!(after.into_iter().map(without).collect::<Vec<_>>(), before);
    assert_eq!(store.balance().await.unwrap(), 0);
}

/// The spender of the output is in the same block, or the wallet's payment makes no output.
pub(super) async fn with_the_spender(store: &impl WalletStore) {
    shown(store, 1).await;
    notice(store, &long(paying_invoices(&[(1, SATOSHIS)], 1)), block(7), 1).await;
    let payment = outgoing("long", SATOSHIS);
    let reservation = reserve(store, payment.clone()).await;
    let mut record = signed(&payment, &reservation);
    record.payment.transaction = long(record.payment.transaction);
    let made = store.record_payment(record).await.unwrap();
    store.mine(2, proof(7), at(6)).await.unwrap();
    follow(store, 106).await;
    assert!(!is_dropped(store, 1).await && !is_dropped(store, 2).await);
    assert_eq!(transaction_of(store, made.number).await, 2);
    follow(store, 107).await;
    assert!(is_dropped(store, 1).await && is_dropped(store, 2).await);
    let answer = store.outgoing_transaction(made.number).await;
    assert_refused!(answer, Refusal::BytesDropped(_));
}

/// A rescan finds what is deep already, and spent.
pub(super) async fn found_late(store: &impl WalletStore) {
    shown(store, 1).await;
    follow(store, 200).await;
    notice(store, &long(paying_invoices(&[(1, SATOSHIS)], 1)), block(7), 1).await;
    assert!(!is_dropped(store, 1).await);
    spend(store, "a", SATOSHIS, 100).await;
    drop_after(store, (6, 0), 200).await;
    assert!(is_dropped(store, 1).await);
    notice(store, &long(paying_invoices(&[(1, SATOSHIS)], 2)), block(7), 1).await;
    spend(store, "b", SATOSHIS, 101).await;
    assert!(!is_dropped(store, 3).await);
    follow(store, 201).await;
    assert!(is_dropped(store, 3).await);
}

/// Outputs are looked at in parts. One that is not spent is enough.
pub(super) async fn of_many_outputs(store: &impl WalletStore) {
    const AT_ONCE: usize = 1000;
    shown(store, 1).await;
    for (count, spent) in [(AT_ONCE, AT_ONCE), (AT_ONCE + 1, AT_ONCE), (AT_ONCE + 1, AT_ONCE + 1)] {
        let wide = long(paying_invoices(&vec![(1, 1); count], count + spent));
        notice(store, &wide, block(7), 1).await;
        let outpoints = (0..spent as u32).map(|vout| OutPoint { txid: wide.txid(), vout });
        let input = |previous_output| TxIn { previous_output, ..wide.inputs[0].clone() };
        let inputs = outpoints.map(input).collect();
        let spender = Transaction { inputs, ..paying_invoices(&[(200, 1)], 0) };
        notice(store, &spender, block(7), 2).await;
    }
    follow(store, 107).await;
    for (number, expected) in [(1, true), (3, false), (5, true)] {
        assert_eq!(is_dropped(store, number).await, expected, "transaction {number}");
    }
}

/// A process that is interrupted begins again, and finds what is left.
pub(super) async fn in_parts(store: &impl WalletStore) {
    shown(store, 1).await;
    follow(store, 50).await;
    for number in [1, 3] {
        notice(store, &long(paying_invoices(&[(1, SATOSHIS)], number)), block(7), 1).await;
        spend(store, &format!("payee {number}"), SATOSHIS, 7).await;
    }
    let long = async |after, limit| {
        let long = store.list(GetLong { after, tip: 107, limit }).await.unwrap();
        (long.numbers, long.next)
    };
    assert_eq!(GetLong::begin(Some(50)), (0, u64::MAX));
    assert_eq!(long((0, u64::MAX), 2).await, (vec![1], Some((7, 2))));
    assert_eq!(long((7, 2), 2).await, (vec![3], Some((7, 4))));
    assert_eq!(long((7, 4), 2).await, (vec![], None));
    store.execute(DropBytes { transaction: 1, tip: 107 }).await.unwrap();
    assert!(is_dropped(store, 1).await && !is_dropped(store, 3).await);
    assert_eq!(long((0, u64::MAX), 4).await, (vec![3], Some((7, 4))));
    assert_eq!(GetLong::begin(Some(107)), (7, u64::MAX));
    assert_eq!(long((7, u64::MAX), 2).await, (vec![], None));
}

/// A reorganisation that is not deep loses nothing. After one that is, the bytes are kept again when
/// the network shows the transaction.
pub(super) async fn after_a_reorganisation(store: &impl WalletStore) {
    shown(store, 1).await;
    let payment = long(paying_invoices(&[(1, SATOSHIS)], 1));
    notice(store, &payment, block(7), 1).await;
    let spender = spend(store, "a", SATOSHIS, 7).await;
    follow(store, 106).await;
    store.forget_block(proof(7).block, at(7)).await.unwrap();
    assert!(!is_dropped(store, 1).await);
    for number in [1, spender] {
        store.mine(number, proof(8), at(8)).await.unwrap();
    }
    follow(store, 107).await;
    assert!(!is_dropped(store, 1).await);
    follow(store, 108).await;
    assert!(is_dropped(store, 1).await);
    notice(store, &payment, block(8), 9).await;
    assert!(is_dropped(store, 1).await, "nothing has changed");
    store.forget_block(proof(8).block, at(9)).await.unwrap();
    assert!(is_dropped(store, 1).await);
    notice(store, &payment, MEMPOOL, 10).await;
    assert!(!is_dropped(store, 1).await);
}

/// The bytes of a lost transaction stay while the wallet follows it. They come back with it.
pub(super) async fn of_a_lost_transaction(store: &impl WalletStore) {
    create(store, at(0), HOUR).await;
    let transaction = long(paying(&[SATOSHIS], 1));
    let offer = Offer { transaction: (&transaction).into(), ..incoming(1, 1, at(1)) };
    let payment = begin_with(store, offer.clone()).await.number;
    for (is_noticed, s) in [(false, 2), (true, 20)] {
        store.see(payment, at(s)).await.unwrap();
        store.displace(payment, at(s + 1)).await.unwrap();
        assert!(!is_dropped(store, payment).await);
        store.unfollow(payment).await.unwrap();
        assert!(is_dropped(store, payment).await);
        match is_noticed {
            false => assert_eq!(begin_with(store, offer.clone()).await.number, payment),
            true => notice(store, &transaction, MEMPOOL, s + 2).await,
        }
        assert!(!is_dropped(store, payment).await);
    }
}

/// Only the bytes tell the fee of a transaction that another copy of the wallet has made.
pub(super) async fn with_the_fee(store: &impl WalletStore) {
    shown(store, 1).await;
    let coin = paying_invoices(&[(1, SATOSHIS)], 1);
    notice(store, &coin, block(7), 1).await;
    let previous_output = OutPoint { txid: coin.txid(), vout: 0 };
    let inputs = vec![TxIn { previous_output, ..coin.inputs[0].clone() }];
    let outputs = [(1, 500), (200, SATOSHIS - 530)];
    let spender = long(Transaction { inputs, ..paying_invoices(&outputs, 2) });
    notice(store, &spender, block(8), 2).await;
    spend(store, "a", 500, 9).await;
    follow(store, 200).await;
    assert!(!is_dropped(store, 2).await);
    let fees = movements(store).await.into_iter().filter(|it| it.fee > 0);
    assert_eq!(fees.map(|it| (it.txid, it.fee)).collect::<Vec<_>>(), [(spender.txid(), 30)]);
}

/// The ancestors of a transaction of which services tell stay until it is deep: services take it again
/// after a reorganisation only with them.
pub(super) async fn ancestors_until_deep(store: &impl WalletStore) {
    create(store, at(0), HOUR).await;
    let ancestor = paying(&[1], 7);
    let offer = Offer { ancestors: ancestor.to_bytes(), ..incoming(1, 1, at(1)) };
    let offer = Offer { may_have_rivals: true, ..offer };
    let number = begin_with(store, offer).await.number;
    told(store, number, WORD, 2).await;
    mined(store, number, 7, 3).await;
    assert_eq!(store.followed(0, 9).await.unwrap(), []);
    let are_kept = async || store.get(GetAncestors(number)).await.unwrap() == [ancestor.clone()];
    follow(store, 8).await;
    assert!(are_kept().await);
    let forget = ForgetBlock {
        block: proof(7).block,
        is_replaced: true,
        may_have_rivals: true,
        after: 0,
        limit: 9,
        now: at(4),
    };
    store.execute(forget).await.unwrap();
    assert_eq!(store.record(number).await.unwrap().unwrap().state, GONE);
    assert!(are_kept().await, "it may have to be sent again");
    mined(store, number, 9, 5).await;
    follow(store, 108).await;
    assert!(are_kept().await);
    follow(store, 109).await;
    assert!(!are_kept().await);
    assert!(!is_dropped(store, number).await);
}
