//! Reorganisations, and what the network has shown before them.

use bsv_invoicing::InvoiceState;
use bsv_invoicing::invoices::{Counting, NextStep, PaymentRules};
use bsv_invoicing::ledger::queries::{
    GetBlocks, GetInvoice, GetProofs, GetReceivedSum, GetRecord, GetSettlement, GetSums,
};
use bsv_invoicing::ledger::rows::FollowedBlock;
use bsv_invoicing::ledger::{
    CheckedProof, FollowReorganisation, FollowTip, ForgetBlock, GetReorganisations, Mine, Notice,
    Noticed, Offer, See, SetRules, ShownPlace, Sighting,
};
use bsv_invoicing::receiving::IncomingState;
use bsv_invoicing::store::WalletStore;
use bsv_invoicing::transactions::{COINBASE_MATURITY, ShownAs, TransactionState};
use bsv_tx::{BlockHash, OutPoint, Transaction, Txid};

use super::making::*;
use super::noticed::{MEMPOOL, block, notice, paying_invoices, shown};
use super::*;

/// A proof that was checked before a reorganisation says nothing after it. A chain that only grows
/// changes nothing.
pub(super) async fn late_proofs(store: &impl WalletStore) {
    shown(store, 2).await;
    let [first, second] = [1, 2].map(|it| paying_invoices(&[(it, SATOSHIS)], it as usize));
    notice(store, &first, MEMPOOL, 1).await;
    let checked = |reorganisations| CheckedProof { proof: proof(7), reorganisations };
    let mine = |reorganisations| {
        let checked = checked(reorganisations);
        store.execute(Mine { transaction: 1, checked, now: at(3) })
    };
    let noticing = |reorganisations| {
        let place = ShownPlace::Block(checked(reorganisations));
        let noticed =
            Noticed { transaction: (&second).into(), place, came_at: at(3), ancestry: Vec::new() };
        store.execute(Notice { shown: vec![noticed], now: at(3) })
    };
    store.execute(FollowReorganisation).await.unwrap();
    assert_eq!(store.get(GetReorganisations).await.unwrap(), 1);
    assert_refused!(mine(0).await, Refusal::Reorganised);
    assert_refused!(noticing(0).await, Refusal::Reorganised);
    assert_eq!(store.get(GetRecord(1)).await.unwrap().unwrap().state, TransactionState::Seen);
    assert_eq!(store.get(GetRecord(2)).await.unwrap(), None);
    let tip = FollowedBlock { height: 8, hash: BlockHash::from_bytes([8; 32]) };
    store.execute(FollowTip { tip, now: at(0) }).await.unwrap();
    mine(1).await.unwrap();
    noticing(1).await.unwrap();
    for number in [1, 2] {
        assert_eq!(store.get(GetProofs(number)).await.unwrap().len(), 1);
    }
}

/// A block is forgotten in parts. Whoever begins anew finds what is left.
pub(super) async fn forgotten_in_parts(store: &impl WalletStore) {
    shown(store, 1).await;
    for salt in 1..=5 {
        notice(store, &paying_invoices(&[(1, 100)], salt), block(7), 1).await;
    }
    let forget = |after, limit| {
        let block = proof(7).block;
        store.execute(ForgetBlock {
            block,
            is_replaced: true,
            may_have_rivals: false,
            after,
            limit,
            now: at(2),
        })
    };
    let contested = async || {
        let payments = store.incoming(1).await.unwrap();
        payments.iter().filter(|it| it.state == IncomingState::Contested).count()
    };
    assert_eq!((forget(0, 2).await.unwrap(), contested().await), (Some(2), 2));
    assert_eq!((forget(2, 2).await.unwrap(), contested().await), (Some(4), 4));
    assert_eq!(store.get(GetBlocks(7)).await.unwrap(), [proof(7).block]);
    assert_eq!((forget(0, 2).await.unwrap(), contested().await), (None, 5));
    assert_eq!(store.get(GetBlocks(7)).await.unwrap(), []);
}

/// A transaction like this one, but of a miner.
fn coinbase(mut transaction: Transaction) -> Transaction {
    transaction.inputs[0].previous_output =
        OutPoint { txid: Txid::from_bytes([0; 32]), vout: u32::MAX };
    transaction
}

async fn balance_and_state(store: &impl WalletStore) -> (u64, InvoiceState, TransactionState) {
    let invoice = store.get(GetInvoice(1)).await.unwrap().unwrap();
    let record = store.get(GetRecord(1)).await.unwrap().unwrap();
    (store.balance().await.unwrap(), invoice.state(at(9)), record.state)
}

/// No other block can hold the coinbase transaction of a lost block. What was spent of it is lost,
/// too.
pub(super) async fn rewards(store: &impl WalletStore) {
    shown(store, 2).await;
    let reward = coinbase(paying_invoices(&[(1, SATOSHIS)], 1));
    notice(store, &reward, block(7), 1).await;
    notice(store, &paying_invoices(&[(2, SATOSHIS)], 2), block(7), 1).await;
    let tip = FollowedBlock { height: 7 + COINBASE_MATURITY, hash: BlockHash::from_bytes([9; 32]) };
    store.execute(FollowTip { tip, now: at(0) }).await.unwrap();
    let mined = TransactionState::Mined(proof(7).block);
    assert_eq!(balance_and_state(store).await, (2 * SATOSHIS, InvoiceState::Paid, mined));
    let last_event = store.events(0, 1000).await.unwrap().len() as u64;
    store.forget_block(proof(7).block, at(2)).await.unwrap();
    let lost = (SATOSHIS, InvoiceState::Pending, TransactionState::Invalid);
    assert_eq!(balance_and_state(store).await, lost);
    let other = store.get(GetRecord(2)).await.unwrap().unwrap().state;
    assert_eq!(other, TransactionState::Contested { told: false });
    notice(store, &reward, block(7), 3).await;
    assert_eq!(balance_and_state(store).await, (2 * SATOSHIS, InvoiceState::Paid, mined));
    let events = store.events(last_event, 1000).await.unwrap();
    let told: Vec<_> = events.iter().filter(|it| it.subject == 1).map(|event| event.kind).collect();
    let expected = [
        EventKind::PaymentInvalid,
        EventKind::InvoiceUnpaid,
        EventKind::PaymentRestored,
        EventKind::PaymentMined,
        EventKind::InvoicePaid,
    ];
    assert_eq!(told, expected);

    // A payment that spends it is displaced.
    pay(store, outgoing("a", SATOSHIS)).await.unwrap();
    let payment = transaction_of(store, 1).await;
    store.see(payment, at(6)).await.unwrap();
    store.forget_block(proof(7).block, at(7)).await.unwrap();
    assert_eq!(balance_and_state(store).await, lost);
    let payment = store.get(GetRecord(payment)).await.unwrap().unwrap();
    assert_eq!(payment.state, TransactionState::Displaced);
}

/// A node that may just not know a block proves nothing.
pub(super) async fn unknown_block(store: &impl WalletStore) {
    shown(store, 1).await;
    notice(store, &coinbase(paying_invoices(&[(1, SATOSHIS)], 1)), block(7), 1).await;
    let (block, now) = (proof(7).block, at(2));
    let forget =
        ForgetBlock { block, is_replaced: false, may_have_rivals: false, after: 0, limit: 9, now };
    store.execute(forget).await.unwrap();
    let contested = TransactionState::Contested { told: false };
    assert_eq!(balance_and_state(store).await, (SATOSHIS, InvoiceState::Paid, contested));
}

/// Above the limit, what a block has paid stays paid until it is lost, and nothing else pays.
pub(super) async fn paid_by_a_block(store: &impl WalletStore) {
    let rules = PaymentRules { zero_conf_limit: Some(SATOSHIS - 1), ..PaymentRules::default() };
    store.execute(SetRules { rules }).await.unwrap();
    shown(store, 2).await;
    let [whole, part, rest] = [&[(1, SATOSHIS)][..], &[(2, 400)], &[(2, SATOSHIS - 400)]]
        .map(|paid| paying_invoices(paid, paid[0].1 as usize));
    for transaction in [&whole, &part] {
        notice(store, transaction, block(7), 1).await;
    }
    let state = async |invoice| store.get(GetInvoice(invoice)).await.unwrap().unwrap().state(at(9));
    assert_eq!(state(1).await, InvoiceState::Paid);
    let last_event = store.events(0, 1000).await.unwrap().len();
    store.forget_block(proof(7).block, at(2)).await.unwrap();
    assert_eq!(state(1).await, InvoiceState::Paid, "contested");
    let settlement = store.get(GetSettlement(1, at(9))).await.unwrap().unwrap();
    assert_eq!((settlement.confirmations, settlement.contested), (Some(0), true));
    let unmined = Counting { unconfirmed: 0, unmined: SATOSHIS, mined: 0 };
    assert_eq!(store.get(GetReceivedSum(1)).await.unwrap().in_time, unmined);
    notice(store, &whole, MEMPOOL, 3).await;
    assert_eq!(state(1).await, InvoiceState::Paid, "seen");
    let events = store.events(last_event as u64, 1000).await.unwrap();
    let told: Vec<_> = events.iter().map(|event| event.kind).collect();
    assert!(!told.contains(&EventKind::InvoiceUnpaid), "{told:?}");
    // Blocks have never paid the second one, though the parts that they have held would suffice.
    notice(store, &rest, block(8), 4).await;
    assert_eq!(state(2).await, InvoiceState::Pending);
    store.displace(1, at(5)).await.unwrap();
    assert_eq!(state(1).await, InvoiceState::Pending, "displaced");
    notice(store, &whole, MEMPOOL, 6).await;
    assert_eq!(state(1).await, InvoiceState::Pending, "seen again");
}

/// Where a payment needs two confirmations, a block above its own makes it count. A reorganisation
/// that is being followed says nothing about depths.
pub(super) async fn paid_by_two_blocks(store: &impl WalletStore) {
    let zero_conf_limit = Some(SATOSHIS - 1);
    let rules = PaymentRules { zero_conf_limit, mined_blocks: 2, ..PaymentRules::default() };
    store.execute(SetRules { rules }).await.unwrap();
    shown(store, 4).await;
    let follow = async |height, s| {
        let tip = FollowedBlock { height, hash: BlockHash::from_bytes([height as u8; 32]) };
        assert!(!store.execute(FollowTip { tip, now: at(s) }).await.unwrap());
    };
    let state = async |invoice| store.get(GetInvoice(invoice)).await.unwrap().unwrap().state(at(9));
    let in_time = async |invoice| store.get(GetReceivedSum(invoice)).await.unwrap().in_time;
    let shallow = Counting { unmined: SATOSHIS, ..Counting::default() };
    let deep = Counting { mined: SATOSHIS, ..Counting::default() };
    let [first, second, third, fourth] =
        [1, 2, 3, 4].map(|invoice| paying_invoices(&[(invoice, SATOSHIS)], invoice as usize));
    follow(6, 1).await;
    notice(store, &first, block(7), 1).await;
    follow(7, 1).await;
    assert_eq!((state(1).await, in_time(1).await), (InvoiceState::Pending, shallow));
    let invoice = store.get(GetInvoice(1)).await.unwrap().unwrap();
    let next = store.get(GetSums(invoice, at(2))).await.unwrap().next;
    assert_eq!(next, NextStep::AwaitBlock(2));
    let last_event = store.events(0, 1000).await.unwrap().len() as u64;
    follow(8, 2).await;
    assert_eq!((state(1).await, in_time(1).await), (InvoiceState::Paid, deep));
    let events = store.events(last_event, 1000).await.unwrap();
    assert_eq!(
        events.iter().map(|it| it.kind).collect::<Vec<_>>(),
        [EventKind::InvoiceSumsChanged, EventKind::InvoicePaid]
    );
    assert_eq!((events[0].at, events[0].subject), (at(2), 1));

    // One that is found late has its depth already.
    notice(store, &second, block(7), 3).await;
    assert_eq!(state(2).await, InvoiceState::Paid);

    // After a reorganisation, the height of the lost tip says nothing.
    store.execute(FollowReorganisation).await.unwrap();
    store.forget_block(proof(7).block, at(4)).await.unwrap();
    let reorganised = |transaction: &Transaction, height, s| {
        let place = ShownPlace::Block(CheckedProof { proof: proof(height), reorganisations: 1 });
        let noticed = Noticed {
            transaction: transaction.into(),
            place,
            came_at: at(s),
            ancestry: Vec::new(),
        };
        store.execute(Notice { shown: vec![noticed], now: at(s) })
    };
    reorganised(&third, 7, 4).await.unwrap();
    assert_eq!((state(3).await, in_time(3).await), (InvoiceState::Pending, shallow));
    follow(7, 5).await;
    assert_eq!((state(3).await, in_time(3).await), (InvoiceState::Pending, shallow));
    // What was deep once stays paid in another block that is not.
    assert_eq!((state(1).await, in_time(1).await), (InvoiceState::Paid, shallow));
    follow(8, 6).await;
    assert_eq!((state(3).await, in_time(3).await), (InvoiceState::Paid, deep));

    // A block that is lost before another one follows it has not paid anything.
    reorganised(&fourth, 9, 7).await.unwrap();
    store.forget_block(proof(9).block, at(8)).await.unwrap();
    follow(10, 8).await;
    assert_eq!((state(4).await, in_time(4).await), (InvoiceState::Pending, shallow));
    // Rules that ask for no confirmation at all do no harm.
    let rules = PaymentRules { mined_blocks: 0, ..rules };
    store.execute(SetRules { rules }).await.unwrap();
    follow(11, 9).await;
}

/// A fee that was sufficient once stays sufficient.
pub(super) async fn paid_for_once(store: &impl WalletStore) {
    shown(store, 1).await;
    let see = |is_fee_sufficient, s| {
        store.execute(See {
            transaction: 1,
            sighting: Sighting::judged(is_fee_sufficient),
            now: at(s),
        })
    };
    let record = async || store.get(GetRecord(1)).await.unwrap().unwrap();
    let waiting = ShownPlace::Mempool(Sighting::judged(false));
    notice(store, &paying_invoices(&[(1, SATOSHIS)], 1), waiting, 1).await;
    assert_eq!(
        (record().await.state, record().await.shown),
        (TransactionState::Waiting, ShownAs::Waiting)
    );
    see(true, 2).await.unwrap();
    see(false, 3).await.unwrap();
    assert_eq!(record().await.state, TransactionState::Seen);
    store.displace(1, at(4)).await.unwrap();
    see(false, 5).await.unwrap();
    assert_eq!(
        (record().await.state, record().await.shown),
        (TransactionState::Seen, ShownAs::Seen)
    );
}

/// Once the network has shown a transaction, no message says where its refunds go.
pub(super) async fn wishes_of_strangers(store: &impl WalletStore) {
    create(store, at(0), HOUR).await;
    let wishing = |wish: &str, s| {
        let refund_to = Some(wish.to_owned());
        store.offer(Offer { refund_to, ..incoming(1, 1, at(s)) })
    };
    wishing("payer", 1).await.unwrap();
    store.refuse(1, at(1)).await.unwrap();
    wishing("stranger", 1).await.unwrap();
    store
        .execute(See { transaction: 1, sighting: Sighting::judged(true), now: at(2) })
        .await
        .unwrap();
    store.displace(1, at(3)).await.unwrap();
    wishing("thief", 4).await.unwrap();
    store
        .execute(See { transaction: 1, sighting: Sighting::judged(true), now: at(5) })
        .await
        .unwrap();
    let invoice = store.get(GetInvoice(1)).await.unwrap().unwrap();
    assert_eq!(invoice.refund_to.as_deref(), Some("payer"));
}
