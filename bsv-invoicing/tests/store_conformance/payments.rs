//! Payments, what they do to invoices, and what is known of them afterwards.

use bsv_invoicing::{
    Begun, BlockPlace, IncomingPayment, IncomingState, InvoiceState, NewIncoming, NewOutgoing,
    OutgoingPayment, OutgoingState, Proof, Purpose, Selection, Spending, TransactionState,
    WalletStore, WalletStoreError,
};
use bsv_tx::{BlockHash, MerkleBranch, Sibling, Transaction};

use super::money::{paying, spending};
use super::*;

const SATOSHIS: u64 = 1000;

pub(super) async fn received(store: &impl WalletStore) {
    create(store, at(0), HOUR).await;
    let first = begin(store, 1, 1, at(1)).await;
    assert_eq!((first.state, first.received_at), (IncomingState::InFlight, at(1)));
    assert_eq!(begin(store, 1, 1, at(2)).await, first, "the same comes again");
    let refused = store.begin_payment(incoming(1, 2, at(2))).await.unwrap_err();
    assert!(matches!(refused, WalletStoreError::InFlight(1)), "{refused}");
    assert_eq!(store.balance().await.unwrap(), 0);

    store.settle(first.number, at(3)).await.unwrap();
    let invoice = store.invoice(1).await.unwrap().unwrap();
    assert_eq!(invoice.state(at(9)), InvoiceState::Paid);
    assert_eq!((invoice.payment_received_at, invoice.in_flight), (Some(at(3)), false));
    assert_eq!(invoice.refund_to.as_deref(), Some("refund to 1"));
    assert_eq!(store.balance().await.unwrap(), SATOSHIS);
    assert_eq!(happened(store, 1).await, [(at(3), EventKind::InvoicePaid(id(1)))]);

    let Begun::Before(before) = store.begin_payment(incoming(1, 1, at(4))).await.unwrap() else {
        panic!("it was accepted before")
    };
    assert_eq!((before.number, before.state), (first.number, IncomingState::Accepted));
    assert_eq!(store.incoming(1).await.unwrap(), [before]);
    let refused = store.begin_payment(incoming(1, 2, at(4))).await.unwrap_err();
    assert!(matches!(refused, WalletStoreError::Paid(1)), "{refused}");
    store.settle(first.number, at(5)).await.unwrap();
    assert_eq!(store.balance().await.unwrap(), SATOSHIS, "settled once");
    store.sweep(at(7200), 9).await.unwrap();
    assert_eq!(happened(store, 2).await, [], "what is paid does not expire");
}

pub(super) async fn refused(store: &impl WalletStore) {
    create(store, at(0), HOUR).await;
    let first = begin(store, 1, 1, at(1)).await;
    let refusal = store.delete_invoice(1, at(2)).await.unwrap_err();
    assert!(matches!(refusal, WalletStoreError::InFlight(1)), "{refusal}");
    store.sweep(at(3600), 9).await.unwrap();
    assert_eq!(happened(store, 1).await, [], "it does not expire meanwhile");
    let invoice = store.invoice(1).await.unwrap().unwrap();
    assert_eq!((invoice.in_flight, invoice.state(at(7200))), (true, InvoiceState::Pending));
    store.refuse_payment(first.number).await.unwrap();
    assert_eq!(store.incoming(1).await.unwrap(), []);
    let invoice = store.invoice(1).await.unwrap().unwrap();
    assert_eq!((invoice.in_flight, invoice.state(at(3599))), (false, InvoiceState::Pending));
    let second = begin(store, 1, 2, at(3)).await;
    assert!(second.number > first.number);
    store.refuse_payment(second.number).await.unwrap();
    assert_eq!(store.sweep(at(3600), 9).await.unwrap(), 1);
    assert_eq!(happened(store, 1).await, [(at(3600), EventKind::InvoiceExpired(id(1)))]);
    let late = store.begin_payment(incoming(1, 3, at(3601))).await.unwrap_err();
    assert!(matches!(late, WalletStoreError::Expired(1)), "{late}");
    assert_unknown(2, store.begin_payment(incoming(2, 1, at(3))).await);
}

pub(super) async fn displaced(store: &impl WalletStore) {
    let first = paid_invoice(store, 1).await;
    store.displace(first.number, at(5)).await.unwrap();
    let invoice = store.invoice(1).await.unwrap().unwrap();
    assert_eq!((invoice.payment_received_at, invoice.refund_to.as_deref()), (None, None));
    assert_eq!(invoice.state(at(6)), InvoiceState::Pending);
    assert_eq!(store.balance().await.unwrap(), 0);
    let second = begin(store, 1, 2, at(6)).await;
    store.settle(second.number, at(7)).await.unwrap();
    let states: Vec<_> =
        store.incoming(1).await.unwrap().iter().map(|payment| payment.state).collect();
    assert_eq!(states, [IncomingState::Displaced, IncomingState::Accepted]);
    assert_eq!(store.balance().await.unwrap(), SATOSHIS);
    let told = [
        (at(3), EventKind::InvoicePaid(id(1))),
        (at(5), EventKind::InvoicePaymentDisplaced(id(1))),
        (at(7), EventKind::InvoicePaid(id(1))),
    ];
    assert_eq!(happened(store, 1).await, told);
    // The chain comes back that had the first one: both are money.
    store.settle(first.number, at(8)).await.unwrap();
    assert_eq!(store.balance().await.unwrap(), 2 * SATOSHIS);
    assert_eq!(happened(store, 4).await, [], "it was paid already");
}

pub(super) async fn displaced_late(store: &impl WalletStore) {
    let payment = paid_invoice(store, 1).await;
    store.sweep(at(7200), 9).await.unwrap();
    store.displace(payment.number, at(7201)).await.unwrap();
    for later in [7202, 7203] {
        store.sweep(at(later), 9).await.unwrap();
    }
    let told = [
        (at(7201), EventKind::InvoicePaymentDisplaced(id(1))),
        (at(7202), EventKind::InvoiceExpired(id(1))),
    ];
    assert_eq!(happened(store, 2).await, told);
}

pub(super) async fn paid_out(store: &impl WalletStore) {
    let refusal = store.reserve_coins(outgoing("a", 1), build).await.unwrap_err();
    let is_poor =
        matches!(refusal, WalletStoreError::InsufficientFunds { needed: 1.., spendable: 0 });
    assert!(is_poor, "{refusal}");
    paid_invoice(store, 1).await;
    let payment = store.reserve_coins(outgoing("a", 400), build).await.unwrap();
    assert_eq!((payment.number, payment.state), (1, OutgoingState::Open));
    assert_eq!((payment.satoshis, payment.fee), (400, 0));
    assert_eq!(store.balance().await.unwrap(), SATOSHIS, "reserved coins count");
    let again = store.reserve_coins(outgoing("a", 400), never).await.unwrap();
    assert_eq!(again, payment, "one payment to a URL at a time");
    let refusal = store.reserve_coins(outgoing("b", 1), build).await.unwrap_err();
    assert!(matches!(refusal, WalletStoreError::InsufficientFunds { .. }), "{refusal}");
    assert_eq!(store.outgoing(1).await.unwrap(), Some((payment.clone(), b"message".to_vec())));

    let answer = Some(("thanks".to_owned(), None));
    let settled = store.settle_outgoing(1, answer, at(9)).await.unwrap();
    assert_eq!((settled.state, settled.memo.as_str()), (OutgoingState::Settled, "thanks"));
    assert_eq!(store.balance().await.unwrap(), SATOSHIS - 400);
    assert_eq!(store.outgoing(1).await.unwrap().unwrap().1, b"", "nothing is left to be sent");
    assert_eq!(store.outgoing_to(&payment.url, None, at(9)).await.unwrap(), Some(settled.clone()));
    let again = store.refuse_outgoing(1, "no".to_owned(), at(10)).await.unwrap();
    assert_eq!(again, settled, "what is settled stays so");
    let change = store.reserve_coins(outgoing("b", 600), build).await.unwrap();
    let newest_first: Vec<_> = numbers(&store.outgoing_before(u64::MAX, 9).await.unwrap());
    assert_eq!(newest_first, [2, 1]);
    assert_eq!(numbers(&store.outgoing_before(2, 9).await.unwrap()), [1]);
    assert_eq!(numbers(&store.outgoing_before(u64::MAX, 1).await.unwrap()), [2]);

    store.refuse_outgoing(change.number, "no".to_owned(), at(11)).await.unwrap();
    let anew = store.reserve_coins(outgoing("b", 600), build).await.unwrap();
    assert_eq!((anew.number, anew.state), (3, OutgoingState::Open), "a new attempt");
    let kinds: Vec<_> = happened(store, 2).await.into_iter().map(|(_, kind)| kind).collect();
    let told = [
        EventKind::PaymentStarted(1),
        EventKind::PaymentSettled(1),
        EventKind::PaymentStarted(2),
        EventKind::PaymentRefused(2),
        EventKind::PaymentStarted(3),
    ];
    assert_eq!(kinds, told);
    let unknown = store.settle_outgoing(9, None, at(12)).await.unwrap_err();
    assert!(matches!(unknown, WalletStoreError::UnknownPayment(9)), "{unknown}");
}

pub(super) async fn paid_once_with_a_key(store: &impl WalletStore) {
    paid_invoice(store, 1).await;
    let with_key = |url: &str, request: &str| NewOutgoing {
        idempotency: Some(key("k", request)),
        ..outgoing(url, 10)
    };
    let payment = store.reserve_coins(with_key("a", "a"), build).await.unwrap();
    store.settle_outgoing(payment.number, None, at(9)).await.unwrap();
    let again = store.reserve_coins(with_key("a", "a"), never).await.unwrap();
    assert_eq!((again.number, again.state), (payment.number, OutgoingState::Settled));
    assert_key_reused(store.reserve_coins(with_key("b", "b"), never).await);
}

pub(super) async fn cancelled(store: &impl WalletStore) {
    paid_invoice(store, 1).await;
    let payment = store.reserve_coins(outgoing("a", 400), build).await.unwrap();
    let take_back = async || {
        let whole = Spending { satoshis: 0, output_bytes: 0, fee_rate: 0 };
        let build = |selection: &Selection| {
            let change = selection.change.map(|(satoshis, _)| satoshis);
            Ok(spending(selection, [change, None]))
        };
        store.begin_cancellation(payment.number, whole, at(20), build).await
    };
    let cancellation = take_back().await.unwrap();
    assert_eq!(take_back().await.unwrap(), cancellation, "there is one cancellation");
    let state = store.outgoing(payment.number).await.unwrap().unwrap().0.state;
    assert_eq!(state, OutgoingState::Cancelling);
    let followed = store.followed(0, 99).await.unwrap();
    let of_it = followed.iter().find(|followed| followed.number == cancellation).unwrap();
    assert_eq!(of_it.purpose, Purpose::Cancellation(payment.number));
    store.settle(cancellation, at(21)).await.unwrap();
    let state = store.outgoing(payment.number).await.unwrap().unwrap().0.state;
    assert_eq!(state, OutgoingState::Cancelled);
    assert_eq!(store.balance().await.unwrap(), SATOSHIS);
    let refusal = take_back().await.unwrap_err();
    let is_over = matches!(refusal, WalletStoreError::NotOpen(1, OutgoingState::Cancelled));
    assert!(is_over, "{refusal}");
    let kinds: Vec<_> = happened(store, 2).await.into_iter().map(|(_, kind)| kind).collect();
    assert_eq!(kinds, [EventKind::PaymentStarted(1), EventKind::PaymentCancelled(1)]);
}

pub(super) async fn proved(store: &impl WalletStore) {
    let payment = paid_invoice(store, 1).await;
    let proofs = [7, 8].map(|height| Proof {
        block: BlockPlace { hash: BlockHash::from_bytes([height; 32]), height: height.into() },
        branch: MerkleBranch { position: 0, siblings: vec![Sibling::Hash([height; 32])] },
    });
    let [first, second] = proofs;
    store.prove(payment.number, first.clone(), at(10)).await.unwrap();
    store.prove(payment.number, first.clone(), at(11)).await.unwrap();
    let mined = &store.incoming(1).await.unwrap()[0];
    assert_eq!((mined.state, mined.block), (IncomingState::Mined, Some(first.block)));
    assert_eq!(store.blocks(0).await.unwrap(), [first.block]);
    assert_eq!(store.blocks(8).await.unwrap(), []);
    assert_eq!(store.followed(0, 9).await.unwrap(), [], "what is proved is left alone");

    store.forget_block(second.block).await.unwrap();
    assert_eq!(store.blocks(0).await.unwrap(), [first.block], "another block is forgotten");
    store.forget_block(first.block).await.unwrap();
    let again = &store.incoming(1).await.unwrap()[0];
    assert_eq!((again.state, again.block), (IncomingState::Accepted, None));
    let followed = store.followed(0, 9).await.unwrap();
    assert_eq!(followed[0].state, TransactionState::Settled);
    store.prove(payment.number, second.clone(), at(12)).await.unwrap();
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
}

/// An invoice that is paid, 2 seconds after it was begun to be.
async fn paid_invoice(store: &impl WalletStore, number: u64) -> IncomingPayment {
    create(store, at(0), HOUR).await;
    let payment = begin(store, number, 1, at(1)).await;
    store.settle(payment.number, at(3)).await.unwrap();
    payment
}

async fn begin(
    store: &impl WalletStore,
    invoice: u64,
    salt: usize,
    now: Timestamp,
) -> IncomingPayment {
    match store.begin_payment(incoming(invoice, salt, now)).await.unwrap() {
        Begun::InFlight(payment) => payment,
        Begun::Before(payment) => panic!("accepted before: {payment:?}"),
    }
}

fn incoming(invoice: u64, salt: usize, now: Timestamp) -> NewIncoming {
    let transaction = paying(&[SATOSHIS], salt);
    let refund_to = Some(format!("refund to {salt}"));
    NewIncoming { invoice, transaction, vout: 0, refund_to, now }
}

fn outgoing(payee: &str, satoshis: u64) -> NewOutgoing {
    NewOutgoing {
        url: format!("http://payee.example/{payee}"),
        outputs: paying(&[satoshis], 0).outputs,
        fee_rate: 0,
        expires_at: at(600),
        now: at(5),
        idempotency: None,
    }
}

fn build(selection: &Selection) -> Result<(Transaction, Vec<u8>), bsv_tx::KeyError> {
    let change = selection.change.map(|(satoshis, _)| satoshis);
    Ok((spending(selection, [Some(1), change]), b"message".to_vec()))
}

fn never(_: &Selection) -> Result<(Transaction, Vec<u8>), bsv_tx::KeyError> {
    panic!("nothing new is made")
}

fn numbers(payments: &[OutgoingPayment]) -> Vec<u64> {
    payments.iter().map(|payment| payment.number).collect()
}
