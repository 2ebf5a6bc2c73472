//! Transactions that spend one coin, and the word of services about them.

use bsv_invoicing::ledger::queries::{GetBalance, GetFigures, GetReceivedSum, GetRecord};
use bsv_invoicing::ledger::{
    CheckedProof, Evidence, ForgetBlock, Mine, NoteRival, Offer, See, ShownPlace, Sighting,
};
use bsv_invoicing::receiving::{IncomingPayment, IncomingState};
use bsv_invoicing::store::WalletStore;
use bsv_invoicing::transactions::TransactionState::{
    self, Contested, Displaced, Mined, Seen, Waiting,
};
use bsv_tx::{OutPoint, Transaction, TxIn, Txid};

use super::making::*;
use super::noticed::{block, notice, paying_invoices, shown};
use super::*;

pub(super) const WORD: Sighting = Sighting { is_fee_sufficient: true, evidence: Evidence::Word };
pub(super) const HEARSAY: Sighting =
    Sighting { is_fee_sufficient: true, evidence: Evidence::Hearsay };
pub(super) const GONE: TransactionState = Contested { told: false };

pub(super) async fn state(store: &impl WalletStore, number: u64) -> TransactionState {
    store.get(GetRecord(number)).await.unwrap().unwrap().state
}

/// Services or a node tell of a transaction. Returns the state that it then has.
pub(super) async fn told(
    store: &impl WalletStore,
    transaction: u64,
    sighting: Sighting,
    s: u64,
) -> TransactionState {
    store.execute(See { transaction, sighting, now: at(s) }).await.unwrap();
    state(store, transaction).await
}

async fn mined(store: &impl WalletStore, transaction: u64, height: u8, s: u64) {
    let checked = CheckedProof { proof: proof(height), reorganisations: 0 };
    store.execute(Mine { transaction, checked, now: at(s) }).await.unwrap();
}

async fn coins(store: &impl WalletStore) -> u64 {
    store.get(GetFigures).await.unwrap().unproven_coins
}

/// A payment of an invoice that spends the coin of this number, of which services will tell. Each
/// `lock_time` gives another transaction.
pub(super) async fn offered(
    store: &impl WalletStore,
    invoice: u64,
    coin: usize,
    lock_time: u32,
) -> IncomingPayment {
    let transaction = Transaction { lock_time, ..paying(&[SATOSHIS], coin) };
    let offer = Offer { transaction: (&transaction).into(), ..incoming(invoice, coin, at(1)) };
    begin_with(store, Offer { may_have_rivals: true, ..offer }).await
}

async fn invoices(store: &impl WalletStore, count: u64) {
    for _ in 0..count {
        create(store, at(0), HOUR).await;
    }
}

/// The second transaction for a coin takes the first one's standing, and neither counts by a word. The
/// one that a block holds counts, and displaces the other.
pub(super) async fn two_for_one_coin(store: &impl WalletStore) {
    invoices(store, 3).await;
    let first = offered(store, 1, 5, 1).await.number;
    assert_eq!(told(store, first, WORD, 2).await, Seen);
    assert_eq!((coins(store).await, store.balance().await.unwrap()), (1, SATOSHIS));
    let second = offered(store, 2, 5, 2).await.number;
    assert_eq!(state(store, first).await, GONE);
    assert_eq!(told(store, second, WORD, 3).await, Waiting);
    for number in [first, second] {
        assert!(store.record(number).await.unwrap().unwrap().has_rival());
        let before = state(store, number).await;
        assert_eq!(told(store, number, WORD, 4).await, before);
        assert_eq!(told(store, number, HEARSAY, 4).await, before);
    }
    assert_eq!((coins(store).await, store.balance().await.unwrap()), (2, SATOSHIS));
    mined(store, second, 7, 5).await;
    assert_eq!(state(store, first).await, Displaced);
    assert_eq!((coins(store).await, store.balance().await.unwrap()), (0, SATOSHIS));
    // The coin is spent in a block, whatever services say.
    assert_eq!(told(store, first, WORD, 6).await, Waiting);
    assert_eq!(store.get(GetReceivedSum(1)).await.unwrap().sum(), 0);
    assert_eq!(store.get(GetReceivedSum(2)).await.unwrap().sum(), SATOSHIS);
}

/// Services know a rival of one payment that counts, of one that is offered, and of one that a block
/// holds.
pub(super) async fn known_to_services(store: &impl WalletStore) {
    invoices(store, 3).await;
    let mut payments = Vec::new();
    for (invoice, coin) in [(1, 1), (2, 2), (3, 3)] {
        payments.push(offered(store, invoice, coin, 1).await.number);
    }
    let [seen, offered, in_block] = payments[..] else { panic!("there are three") };
    assert_eq!(told(store, seen, WORD, 2).await, Seen);
    mined(store, in_block, 7, 2).await;
    let place = state(store, in_block).await;
    let events = store.events(0, 99).await.unwrap().len();
    for transaction in payments {
        store.execute(NoteRival { transaction, now: at(3) }).await.unwrap();
    }
    assert_eq!(store.events(0, 99).await.unwrap().len(), events, "no state is told twice");
    assert_eq!(state(store, seen).await, GONE);
    assert_eq!(told(store, seen, WORD, 4).await, GONE);
    assert_eq!(told(store, offered, WORD, 4).await, Waiting);
    assert_eq!(told(store, in_block, WORD, 4).await, place);
    store.displace(seen, at(5)).await.unwrap();
    assert_eq!(told(store, seen, WORD, 6).await, Waiting, "whatever was shown before");
    mined(store, offered, 8, 7).await;
    assert!(matches!(state(store, offered).await, Mined(_)));
}

/// What services knew of a transaction counts again once its block has left the chain. A transaction
/// that came with a block is compared with others from then on.
pub(super) async fn reorganised(store: &impl WalletStore) {
    shown(store, 2).await;
    let first = paying_invoices(&[(1, SATOSHIS)], 4);
    notice(store, &first, block(7), 1).await;
    let Mined(place) = state(store, 1).await else { panic!("it is mined") };
    assert_eq!(coins(store).await, 0);
    let forget = |may_have_rivals| ForgetBlock {
        block: place,
        is_replaced: true,
        may_have_rivals,
        after: 0,
        limit: 9,
        now: at(2),
    };
    store.execute(forget(true)).await.unwrap();
    assert_eq!((state(store, 1).await, coins(store).await), (GONE, 1));
    assert_eq!(told(store, 1, WORD, 3).await, Seen);
    let second = Transaction { lock_time: 1, ..paying_invoices(&[(2, SATOSHIS)], 4) };
    notice(store, &second, ShownPlace::Mempool(WORD), 4).await;
    assert_eq!((state(store, 1).await, state(store, 2).await), (GONE, Waiting));
    mined(store, 1, 7, 5).await;
    assert_eq!((state(store, 2).await, coins(store).await), (Displaced, 0));
    store.execute(forget(false)).await.unwrap();
    assert_eq!((state(store, 1).await, coins(store).await), (GONE, 1));
    assert_eq!(told(store, 1, WORD, 6).await, GONE, "the mark stands");
}

/// With a node no coins are listed, and what it shows has no rival.
pub(super) async fn judged(store: &impl WalletStore) {
    invoices(store, 2).await;
    begin(store, 1, 1, at(1)).await;
    assert_eq!(told(store, 1, Sighting::judged(true), 2).await, Seen);
    assert_eq!(coins(store).await, 0);
    let second = offered(store, 2, 2, 1).await.number;
    assert_eq!(told(store, second, WORD, 3).await, Seen);
    store.execute(NoteRival { transaction: second, now: at(4) }).await.unwrap();
    assert_eq!(told(store, second, Sighting::judged(true), 5).await, Seen);
    assert_eq!(coins(store).await, 0);
    assert!(!store.record(second).await.unwrap().unwrap().has_rival());
    assert_eq!(told(store, second, HEARSAY, 6).await, Seen);
    assert_eq!(told(store, second, WORD, 6).await, Seen);
}

/// Strangers choose how many coins a transaction spends. Not all are listed, so it counts only in a
/// block.
pub(super) async fn very_many_coins(store: &impl WalletStore) {
    shown(store, 2).await;
    for (invoice, count, expected) in [(1, 1_000_u32, Seen), (2, 1_001, Waiting)] {
        let mut transaction = paying_invoices(&[(invoice, SATOSHIS)], 1);
        let input = transaction.inputs[0].clone();
        let coin = |vout| OutPoint { txid: Txid::from_bytes([invoice as u8; 32]), vout };
        transaction.inputs =
            (0..count).map(|vout| TxIn { previous_output: coin(vout), ..input.clone() }).collect();
        notice(store, &transaction, ShownPlace::Mempool(WORD), 1).await;
        assert_eq!((state(store, invoice).await, coins(store).await), (expected, invoice * 1_000));
    }
    assert_eq!(store.incoming(2).await.unwrap()[0].state, IncomingState::Waiting);
    assert_eq!(store.get(GetBalance).await.unwrap(), SATOSHIS);
}
