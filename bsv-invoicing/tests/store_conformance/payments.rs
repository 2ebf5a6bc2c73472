//! Payments, and their effects on invoices.

use bsv_invoicing::InvoiceState;
use bsv_invoicing::ledger::queries::GetAncestors;
use bsv_invoicing::ledger::{Offer, Offered, RefuseByPayee, Reserve};
use bsv_invoicing::receiving::IncomingState;
use bsv_invoicing::sending::{OutgoingPayment, OutgoingState, Posting};
use bsv_invoicing::store::WalletStore;
use bsv_invoicing::transactions::{FollowedUntil, Purpose, TransactionState};

use super::making::*;
use super::*;

pub(super) async fn received(store: &impl WalletStore) {
    create(store, at(0), HOUR).await;
    let first = begin(store, 1, 1, at(1)).await;
    assert_eq!((first.state, first.received_at), (IncomingState::InFlight, at(1)));
    assert_eq!(begin(store, 1, 1, at(2)).await, first, "the same comes again");
    assert_refused!(store.offer(incoming(1, 2, at(2))).await, Refusal::InFlight(1));
    assert_eq!(store.balance().await.unwrap(), 0);

    store.see(first.number, at(3)).await.unwrap();
    let invoice = store.invoice(1).await.unwrap().unwrap();
    assert_eq!(invoice.state(at(9)), InvoiceState::Paid);
    assert_eq!((invoice.payment_received_at, invoice.in_flight), (Some(at(3)), false));
    assert_eq!(invoice.refund_to.as_deref(), Some("refund to 1"));
    assert_eq!(store.balance().await.unwrap(), SATOSHIS);
    let told = [(EventKind::PaymentReceived, 1), (EventKind::InvoicePaid, 1)];
    assert_eq!(happened(store, 1).await, told.map(|kind| (at(3), kind)));

    let Offered::Before(before) = store.offer(incoming(1, 1, at(4))).await.unwrap() else {
        panic!("it was accepted before")
    };
    assert_eq!((before.number, before.state), (first.number, IncomingState::Accepted));
    assert_eq!(store.incoming(1).await.unwrap(), [before]);
    assert_refused!(store.offer(incoming(1, 2, at(4))).await, Refusal::Paid(1));
    store.see(first.number, at(5)).await.unwrap();
    assert_eq!(store.balance().await.unwrap(), SATOSHIS, "seen once");
    store.sweep(at(7200), 9).await.unwrap();
    assert_eq!(happened(store, 3).await, [], "what is paid does not expire");
}

pub(super) async fn refused(store: &impl WalletStore) {
    create(store, at(0), HOUR).await;
    let first = begin(store, 1, 1, at(1)).await;
    assert_refused!(store.delete_invoice(1, at(2)).await, Refusal::InFlight(1));
    store.sweep(at(3600), 9).await.unwrap();
    assert_eq!(happened(store, 1).await, [], "it does not expire meanwhile");
    let invoice = store.invoice(1).await.unwrap().unwrap();
    assert_eq!((invoice.in_flight, invoice.state(at(7200))), (true, InvoiceState::Pending));
    store.refuse(first.number, at(2)).await.unwrap();
    assert_eq!(store.incoming(1).await.unwrap(), []);
    let invoice = store.invoice(1).await.unwrap().unwrap();
    assert_eq!((invoice.in_flight, invoice.state(at(3599))), (false, InvoiceState::Pending));
    let second = begin(store, 1, 2, at(3)).await;
    assert!(second.number > first.number);
    store.refuse(second.number, at(4)).await.unwrap();
    assert_refused!(
        store.refuse(second.number, at(4)).await,
        Refusal::NotInFlight(number) if number == second.number
    );
    assert_eq!(store.sweep(at(3600), 9).await.unwrap(), 1);
    assert_eq!(happened(store, 1).await, [(at(3600), (EventKind::InvoiceExpired, 1))]);
    assert_refused!(store.offer(incoming(1, 3, at(3601))).await, Refusal::Expired(1));
    assert_refused!(store.offer(incoming(2, 1, at(3))).await, Refusal::UnknownInvoice(2));
}

/// A payment that the network refused and later shows.
pub(super) async fn refused_and_shown(store: &impl WalletStore) {
    create(store, at(0), HOUR).await;
    let payment = begin(store, 1, 1, at(1)).await;
    store.refuse(payment.number, at(2)).await.unwrap();
    let followed = store.followed(0, 9).await.unwrap();
    assert_eq!(followed.len(), 1);
    assert_eq!(followed[0].until, FollowedUntil::Time(at(2).after(HOUR * 24)));
    assert_eq!(store.balance().await.unwrap(), 0);
    let again = begin(store, 1, 1, at(3)).await;
    assert_eq!((again.number, again.state), (payment.number, IncomingState::InFlight));
    store.refuse(payment.number, at(4)).await.unwrap();
    store.see(payment.number, at(5)).await.unwrap();
    assert_eq!(store.incoming(1).await.unwrap()[0].state, IncomingState::Accepted);
    let invoice = store.invoice(1).await.unwrap().unwrap();
    assert_eq!(invoice.payment_received_at, Some(at(5)));
    assert_eq!(store.balance().await.unwrap(), SATOSHIS);
    let told = [(EventKind::PaymentReceived, 1), (EventKind::InvoicePaid, 1)];
    assert_eq!(happened(store, 1).await, told.map(|kind| (at(5), kind)));
}

pub(super) async fn refused_and_forgotten(store: &impl WalletStore) {
    create(store, at(0), HOUR).await;
    let is_kept = async |number| store.record(number).await.unwrap().is_some();
    let refuse = async |offer: Offer| {
        let number = begin_with(store, offer).await.number;
        store.refuse(number, at(2)).await.unwrap();
        number
    };
    // An output that makes the transaction so many bytes long.
    let long = |bytes: usize, salt| {
        let mut transaction = paying(&[SATOSHIS], salt);
        let script = vec![0x6a; bytes - transaction.to_bytes().len() - 8 - 3];
        let locking_script = bsv_tx::Script::from_bytes(script);
        transaction.outputs.push(bsv_tx::TxOut { satoshis: 0, locking_script });
        assert_eq!(transaction.to_bytes().len(), bytes);
        Offer { transaction: (&transaction).into(), ..incoming(1, salt, at(1)) }
    };
    assert!(!is_kept(refuse(long((64 << 10) + 1, 1)).await).await, "long ones are not kept");
    let mut kept = Vec::new();
    kept.push(refuse(long(64 << 10, 7)).await);
    for salt in 3..6 {
        kept.push(refuse(incoming(1, salt, at(1))).await);
    }
    assert!(!is_kept(refuse(incoming(1, 6, at(1))).await).await, "nor are many");
    for number in &kept {
        assert!(is_kept(*number).await);
        store.unfollow(*number).await.unwrap();
        assert!(!is_kept(*number).await, "its time is over");
        assert_refused!(
            store.see(*number, at(9)).await,
            Refusal::UnknownTransaction(unknown) if unknown == *number
        );
    }
    assert_eq!(store.followed(0, 9).await.unwrap(), []);
    assert_eq!(happened(store, 1).await, []);
}

/// The ancestors of a payment are kept as long as the payment is followed.
pub(super) async fn with_ancestors(store: &impl WalletStore) {
    let ancestors = [paying(&[1], 7), paying(&[2], 8)];
    let mut encoded = Vec::new();
    ancestors.iter().for_each(|ancestor| ancestor.encode(&mut encoded));
    let bringing = |invoice, ancestors: &[u8]| Offer {
        ancestors: ancestors.to_vec(),
        ..incoming(invoice, invoice as usize, at(1))
    };
    let kept = async |number| store.get(GetAncestors(number)).await.unwrap();
    for invoice in 1..=5 {
        create(store, at(0), HOUR).await;
        assert_eq!(kept(invoice).await, []);
    }
    let mut numbers = Vec::new();
    for invoice in 1..=4 {
        let number = begin_with(store, bringing(invoice, &encoded)).await.number;
        assert_eq!(kept(number).await, ancestors);
        let again = store.offer(incoming(invoice, invoice as usize, at(2))).await.unwrap();
        let Offered::Now(payment, offered) = again else { panic!("{again:?}") };
        assert_eq!(payment.number, number);
        assert_eq!(offered, ancestors, "it comes again without them");
        assert_eq!(kept(number).await, ancestors);
        numbers.push(number);
    }
    let [mined, displaced, refused, alone] = numbers.try_into().unwrap();
    store.see(mined, at(3)).await.unwrap();
    assert_eq!(kept(mined).await, ancestors);
    store.mine(mined, proof(7), at(4)).await.unwrap();
    assert_eq!(kept(mined).await, [], "in a block it needs them no more");

    store.see(displaced, at(3)).await.unwrap();
    store.displace(displaced, at(4)).await.unwrap();
    store.refuse(refused, at(4)).await.unwrap();
    for number in [displaced, refused] {
        assert_eq!(kept(number).await, ancestors, "it may come back");
        store.unfollow(number).await.unwrap();
        assert_eq!(kept(number).await, []);
    }
    assert_eq!(kept(alone).await, ancestors, "others are not concerned");

    let script = bsv_tx::Script::from_bytes(vec![0x6a; 64 << 10]);
    let mut long = paying(&[1], 9);
    long.outputs.push(bsv_tx::TxOut { satoshis: 0, locking_script: script });
    let number = begin_with(store, bringing(5, &long.to_bytes())).await.number;
    assert_eq!(kept(number).await, [long]);
    store.refuse(number, at(4)).await.unwrap();
    assert_eq!(store.record(number).await.unwrap(), None, "long ones are not kept");
    assert_eq!(kept(number).await, []);
}

/// A payment with too low a fee.
pub(super) async fn waiting(store: &impl WalletStore) {
    create(store, at(0), HOUR).await;
    let payment = begin(store, 1, 1, at(1)).await;
    store.see_waiting(payment.number, at(3)).await.unwrap();
    let told = vec![(at(3), (EventKind::PaymentWaiting, 1))];
    assert_eq!(happened(store, 1).await, told);
    let invoice = store.invoice(1).await.unwrap().unwrap();
    assert_eq!((invoice.payment_received_at, invoice.in_flight), (None, false));
    assert_eq!(store.incoming(1).await.unwrap()[0].state, IncomingState::Waiting);
    assert_eq!(store.balance().await.unwrap(), 0);
    assert_refused!(pay(store, outgoing("a", 1)).await, Refusal::InsufficientFunds { .. });
    store.see_waiting(payment.number, at(4)).await.unwrap();
    store.mine(payment.number, proof(7), at(5)).await.unwrap();
    assert_eq!(store.balance().await.unwrap(), SATOSHIS);
    let told = [
        (EventKind::PaymentReceived, 1),
        (EventKind::PaymentMined, 1),
        (EventKind::InvoicePaid, 1),
    ];
    assert_eq!(happened(store, 2).await, told.map(|kind| (at(5), kind)));
}

pub(super) async fn displaced(store: &impl WalletStore) {
    let first = paid_invoice(store, 1).await;
    store.displace(first.number, at(5)).await.unwrap();
    let invoice = store.invoice(1).await.unwrap().unwrap();
    assert_eq!((invoice.payment_received_at, invoice.refund_to.as_deref()), (None, None));
    assert_eq!(invoice.state(at(6)), InvoiceState::Pending);
    assert_eq!(store.balance().await.unwrap(), 0);
    let second = begin(store, 1, 2, at(6)).await;
    store.see(second.number, at(7)).await.unwrap();
    let states: Vec<_> =
        store.incoming(1).await.unwrap().iter().map(|payment| payment.state).collect();
    assert_eq!(states, [IncomingState::Displaced, IncomingState::Accepted]);
    assert_eq!(store.balance().await.unwrap(), SATOSHIS);
    let told = [
        (at(3), (EventKind::PaymentReceived, 1)),
        (at(3), (EventKind::InvoicePaid, 1)),
        (at(5), (EventKind::PaymentDisplaced, 1)),
        (at(5), (EventKind::InvoiceUnpaid, 1)),
        (at(7), (EventKind::PaymentReceived, 1)),
        (at(7), (EventKind::InvoicePaid, 1)),
    ];
    assert_eq!(happened(store, 1).await, told);
    // The chain with the first one comes back, and then both are money.
    store.see(first.number, at(8)).await.unwrap();
    assert_eq!(store.balance().await.unwrap(), 2 * SATOSHIS);
    let told = vec![(at(8), (EventKind::PaymentRestored, 1))];
    assert_eq!(happened(store, 7).await, told, "it was paid already");
}

pub(super) async fn displaced_late(store: &impl WalletStore) {
    let payment = paid_invoice(store, 1).await;
    store.sweep(at(7200), 9).await.unwrap();
    store.displace(payment.number, at(7201)).await.unwrap();
    for later in [7202, 7203] {
        store.sweep(at(later), 9).await.unwrap();
    }
    let told = [
        (at(7201), (EventKind::PaymentDisplaced, 1)),
        (at(7201), (EventKind::InvoiceUnpaid, 1)),
        (at(7202), (EventKind::InvoiceExpired, 1)),
    ];
    assert_eq!(happened(store, 3).await, told);
}

/// A payment that the network has shown and no longer shows.
pub(super) async fn contested(store: &impl WalletStore) {
    let payment = paid_invoice(store, 1).await;
    let state = async || store.record(payment.number).await.unwrap().unwrap().state;
    store.contest(payment.number, at(5)).await.unwrap();
    assert_eq!(state().await, TransactionState::Contested { told: false });
    assert_eq!(store.incoming(1).await.unwrap()[0].state, IncomingState::Contested);
    assert_eq!(store.invoice(1).await.unwrap().unwrap().payment_received_at, Some(at(3)));
    assert_eq!(store.balance().await.unwrap(), SATOSHIS, "it counts");
    let refused = pay(store, outgoing("a", 1)).await;
    assert_refused!(refused, Refusal::InsufficientFunds { spendable: 0, .. });
    assert_eq!(happened(store, 3).await, [], "it is not told at once");
    for now in [65, 66] {
        store.tell_contested(payment.number, at(now)).await.unwrap();
    }
    store.see(payment.number, at(70)).await.unwrap();
    store.tell_contested(payment.number, at(71)).await.unwrap();
    assert_eq!(state().await, TransactionState::Seen);
    let told =
        [(at(65), (EventKind::PaymentContested, 1)), (at(70), (EventKind::PaymentRestored, 1))];
    assert_eq!(happened(store, 3).await, told);
    pay(store, outgoing("a", 1)).await.unwrap();
    store.invalidate(payment.number, at(80)).await.unwrap();
    assert_eq!(store.balance().await.unwrap(), 0);
    let states = async || {
        let incoming = store.incoming(1).await.unwrap()[0].state;
        (incoming, store.outgoing(1).await.unwrap().unwrap().0.state)
    };
    assert_eq!(states().await, (IncomingState::Invalid, OutgoingState::Displaced));
    let told = [
        (at(70), (EventKind::OutgoingStarted, 1)),
        (at(80), (EventKind::OutgoingDisplaced, 1)),
        (at(80), (EventKind::PaymentInvalid, 1)),
        (at(80), (EventKind::InvoiceUnpaid, 1)),
    ];
    assert_eq!(happened(store, 5).await, told);
}

pub(super) async fn paid_out(store: &impl WalletStore) {
    let refused = pay(store, outgoing("a", 1)).await;
    assert_refused!(refused, Refusal::InsufficientFunds { needed: 1.., spendable: 0 });
    paid_invoice(store, 1).await;
    let payment = pay(store, outgoing("a", 400)).await.unwrap();
    assert_eq!((payment.number, payment.state), (1, OutgoingState::Open));
    assert_eq!((payment.satoshis, payment.fee), (400, 0));
    assert_eq!(store.balance().await.unwrap(), SATOSHIS, "reserved coins count");
    let again = made_before(store, outgoing("a", 400)).await;
    assert_eq!(again, payment, "one payment to a URL at a time");
    assert_refused!(pay(store, outgoing("b", 1)).await, Refusal::InsufficientFunds { .. });
    assert_eq!(store.outgoing(1).await.unwrap(), Some((payment.clone(), posting())));

    let agreed = store.accept(1, "thanks", at(8)).await.unwrap();
    assert_eq!((agreed.state, agreed.memo.as_str()), (OutgoingState::Unseen, "thanks"));
    assert_eq!(store.balance().await.unwrap(), SATOSHIS, "the payee's word is no money");
    assert_refused!(pay(store, outgoing("b", 1)).await, Refusal::InsufficientFunds { .. });
    let left = store.outgoing(1).await.unwrap().unwrap().1;
    assert_eq!(left, Posting::default(), "nothing is left to be sent");
    let again = store.refuse_by_payee(1, "no", at(8)).await.unwrap();
    assert_eq!(again, agreed, "what was agreed to may be mined");
    let reason = "no".to_owned();
    let unclear = RefuseByPayee { payment: 1, reason, is_absent: false, now: at(8) };
    assert_eq!(store.execute(unclear).await.unwrap(), agreed, "nor is it cancelled then");
    store.see(transaction_of(store, 1).await, at(9)).await.unwrap();
    let settled = store.outgoing(1).await.unwrap().unwrap().0;
    assert_eq!((settled.state, settled.memo.as_str()), (OutgoingState::Settled, "thanks"));
    assert_eq!(store.balance().await.unwrap(), SATOSHIS - 400);
    assert_eq!(
        store.outgoing_to(payment.purpose.url().unwrap()).await.unwrap(),
        Some(settled.clone())
    );
    let again = store.refuse_by_payee(1, "no", at(10)).await.unwrap();
    assert_eq!(again, settled, "what is settled stays so");
    let change = pay(store, outgoing("b", 600)).await.unwrap();
    let newest_first: Vec<_> = numbers(&store.outgoing_before(u64::MAX, 9).await.unwrap());
    assert_eq!(newest_first, [2, 1]);
    assert_eq!(numbers(&store.outgoing_before(2, 9).await.unwrap()), [1]);
    assert_eq!(numbers(&store.outgoing_before(u64::MAX, 1).await.unwrap()), [2]);

    store.refuse_by_payee(change.number, "no", at(11)).await.unwrap();
    let anew = pay(store, outgoing("b", 600)).await.unwrap();
    assert_eq!((anew.number, anew.state), (3, OutgoingState::Open), "a new attempt");
    let kinds: Vec<_> = happened(store, 3).await.into_iter().map(|(_, kind)| kind).collect();
    let told = [
        (EventKind::OutgoingStarted, 1),
        (EventKind::OutgoingAccepted, 1),
        (EventKind::OutgoingSettled, 1),
        (EventKind::OutgoingStarted, 2),
        (EventKind::OutgoingRefused, 2),
        (EventKind::OutgoingStarted, 3),
    ];
    assert_eq!(kinds, told);
    assert_refused!(store.accept(9, "", at(12)).await, Refusal::UnknownPayment(9));
}

pub(super) async fn paid_once_with_a_key(store: &impl WalletStore) {
    paid_invoice(store, 1).await;
    let with_key = |url: &str, request: &str| Reserve {
        idempotency: Some(key("k", request)),
        ..outgoing(url, 10)
    };
    let payment = pay(store, with_key("a", "a")).await.unwrap();
    store.see(transaction_of(store, payment.number).await, at(9)).await.unwrap();
    let again = made_before(store, with_key("a", "a")).await;
    assert_eq!((again.number, again.state), (payment.number, OutgoingState::Settled));
    assert_refused!(store.reserve(with_key("b", "b")).await, Refusal::KeyReused);
}

pub(super) async fn cancelled(store: &impl WalletStore) {
    paid_invoice(store, 1).await;
    let payment = pay(store, outgoing("a", 400)).await.unwrap();
    let cancellation = take_back(store, payment.number, 0, at(20)).await.unwrap();
    let again = take_back(store, payment.number, 0, at(20)).await.unwrap();
    assert_eq!(again, cancellation, "there is one cancellation");
    let state = async || store.outgoing(payment.number).await.unwrap().unwrap().0.state;
    assert_eq!(state().await, OutgoingState::Cancelling);
    let followed = store.followed(0, 99).await.unwrap();
    let of_it = followed.iter().find(|followed| followed.number == cancellation).unwrap();
    assert_eq!(of_it.record.purpose, Purpose::Cancellation(payment.number));
    store.see(cancellation, at(21)).await.unwrap();
    assert_eq!(state().await, OutgoingState::Cancelled);
    assert_eq!(store.balance().await.unwrap(), SATOSHIS);
    let refused = take_back(store, payment.number, 0, at(22)).await;
    assert_refused!(refused, Refusal::NotOpen(1, OutgoingState::Cancelled));
    store.mine(cancellation, proof(9), at(23)).await.unwrap();
    let kinds: Vec<_> = happened(store, 3).await.into_iter().map(|(_, kind)| kind).collect();
    // It is shown once.
    let expected = [
        (EventKind::OutgoingStarted, 1),
        (EventKind::OutgoingCancelled, 1),
        (EventKind::CancellationShown, 1),
    ];
    assert_eq!(kinds, expected);
}

/// After a cancellation is displaced, another one is made, and then the network has the first one
/// again.
pub(super) async fn cancelled_by_a_lost_cancellation(store: &impl WalletStore) {
    paid_invoice(store, 1).await;
    let payment = pay(store, outgoing("a", 400)).await.unwrap();
    let first = take_back(store, payment.number, 0, at(20)).await.unwrap();
    store.displace(first, at(21)).await.unwrap();
    let second = take_back(store, payment.number, 0, at(22)).await.unwrap();
    assert_ne!(first, second);
    store.see(first, at(23)).await.unwrap();
    let state = async |number| store.record(number).await.unwrap().unwrap().state;
    assert_eq!(state(first).await, TransactionState::Seen);
    assert_eq!(state(second).await, TransactionState::Refused);
    let (payment, _) = store.outgoing(payment.number).await.unwrap().unwrap();
    assert_eq!(payment.state, OutgoingState::Cancelled);
    assert_eq!(store.balance().await.unwrap(), SATOSHIS);
}

/// A payment that is being cancelled is settled if the network shows it first. A payment to which
/// the payee has agreed can be cancelled, too.
pub(super) async fn not_cancelled(store: &impl WalletStore) {
    paid_invoice(store, 1).await;
    let payment = pay(store, outgoing("a", 400)).await.unwrap();
    store.accept(1, "", at(10)).await.unwrap();
    let cancellation = take_back(store, payment.number, 0, at(20)).await.unwrap();
    let state = async || store.outgoing(payment.number).await.unwrap().unwrap().0.state;
    assert_eq!(state().await, OutgoingState::Cancelling);
    store.see(transaction_of(store, 1).await, at(21)).await.unwrap();
    assert_eq!(state().await, OutgoingState::Settled);
    let of = store.record(cancellation).await.unwrap().unwrap().state;
    assert_eq!(of, TransactionState::Refused);
    assert_eq!(store.balance().await.unwrap(), SATOSHIS - 400);
    // The chain now has the other one.
    store.mine(cancellation, proof(9), at(22)).await.unwrap();
    assert_eq!(state().await, OutgoingState::Cancelled);
    assert_eq!(store.balance().await.unwrap(), SATOSHIS);
}

pub(super) async fn proved(store: &impl WalletStore) {
    let payment = paid_invoice(store, 1).await;
    let [first, second] = [7, 8].map(proof);
    store.mine(payment.number, first.clone(), at(10)).await.unwrap();
    store.mine(payment.number, first.clone(), at(11)).await.unwrap();
    let mined = &store.incoming(1).await.unwrap()[0];
    assert_eq!((mined.state, mined.block), (IncomingState::Mined, Some(first.block)));
    assert_eq!(store.blocks(0).await.unwrap(), [first.block]);
    assert_eq!(store.blocks(8).await.unwrap(), []);
    assert_eq!(store.followed(0, 9).await.unwrap(), [], "what is proved is left alone");

    store.forget_block(second.block, at(11)).await.unwrap();
    assert_eq!(store.blocks(0).await.unwrap(), [first.block], "another block is forgotten");
    store.forget_block(first.block, at(11)).await.unwrap();
    let again = &store.incoming(1).await.unwrap()[0];
    assert_eq!((again.state, again.block), (IncomingState::Contested, None));
    assert_eq!(store.balance().await.unwrap(), SATOSHIS, "it counts until something contradicts");
    let followed = store.followed(0, 9).await.unwrap();
    assert_eq!(followed[0].record.state, TransactionState::Contested { told: false });
    assert_eq!(followed[0].until, FollowedUntil::Mined);
    store.mine(payment.number, second.clone(), at(12)).await.unwrap();
    let found = store.proofs(payment.number).await.unwrap();
    let [one, two] = &found[..] else { panic!("{found:?}") };
    assert_eq!((one.sequence, &one.proof, one.found_at), (1, &first, at(10)));
    assert_eq!((two.sequence, &two.proof, two.is_read), (2, &second, false));
    assert!(store.mark_read(payment.number, 2, true).await.unwrap());
    assert!(!store.mark_read(payment.number, 3, true).await.unwrap());
    let read: Vec<_> =
        store.proofs(payment.number).await.unwrap().iter().map(|found| found.is_read).collect();
    assert_eq!(read, [false, true]);
    let transaction = store.transaction(payment.number).await.unwrap().unwrap();
    assert_eq!(transaction.txid(), payment.txid);
    assert_eq!(store.transaction(99).await.unwrap(), None);
    let told = [
        (at(10), (EventKind::PaymentMined, 1)),
        (at(11), (EventKind::PaymentUnmined, 1)),
        (at(12), (EventKind::PaymentMined, 1)),
    ];
    assert_eq!(happened(store, 3).await, told);
}

fn numbers(payments: &[OutgoingPayment]) -> Vec<u64> {
    payments.iter().map(|payment| payment.number).collect()
}
