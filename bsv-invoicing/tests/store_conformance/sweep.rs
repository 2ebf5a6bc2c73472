use bsv_invoicing::events::EventKind;
use bsv_invoicing::invoices::{IDEMPOTENCY_PERIOD, PaymentRules};
use bsv_invoicing::ledger::queries::GetInvoice;
use bsv_invoicing::ledger::{Contest, Offer, SetRules, Sweep};
use bsv_invoicing::receiving::NewReceipt;
use bsv_invoicing::store::WalletStore;
use bsv_invoicing::{InvoiceDraft, InvoiceState};

use super::making::{SATOSHIS, begin_with, incoming, key_of, offering, proof};
use super::noticed::{MEMPOOL, block, notice, paying_invoices, shown};
use super::*;

pub(super) async fn once(store: &impl WalletStore) {
    let invoice = create(store, at(0), HOUR).await;
    let expiry = at(3600);
    assert_eq!(store.sweep(expiry.before(MICROSECOND), 10).await.unwrap(), 0);
    assert_eq!(happened(store, 1).await, []);
    assert_eq!(store.sweep(expiry, 10).await.unwrap(), 1);
    for later in [expiry, at(7200)] {
        assert_eq!(store.sweep(later, 10).await.unwrap(), 0);
    }
    assert_eq!(happened(store, 1).await, [(expiry, (EventKind::InvoiceExpired, 1))]);
    let expired = Invoice { expired_at: Some(expiry), ..invoice };
    assert_eq!(store.invoice(1).await.unwrap(), Some(expired));
}

pub(super) async fn in_order(store: &impl WalletStore) {
    for expires_at in [50, 30, 30, 10, 99, 20] {
        let expires_at = Some(at(expires_at));
        let draft = InvoiceDraft { satoshis: 1, expires_at, ..InvoiceDraft::default() };
        let invoice = CreateInvoice { draft, ..new_invoice(at(0), HOUR) };
        store.create_invoice(invoice).await.unwrap();
    }
    assert_eq!(store.sweep(at(60), 0).await.unwrap(), 0);
    assert_eq!(happened(store, 6).await, []);
    for (now, limit, count) in [(60, 2, 2), (61, 2, 2), (62, 2, 1), (63, 2, 0), (100, 1, 1)] {
        assert_eq!(store.sweep(at(now), limit).await.unwrap(), count, "at {now}");
    }
    let expected = [(60, 4), (60, 6), (61, 2), (61, 3), (62, 1), (100, 5)]
        .map(|(now, number)| (at(now), (EventKind::InvoiceExpired, number)));
    assert_eq!(happened(store, 6).await, expected);
}

pub(super) async fn deleted(store: &impl WalletStore) {
    for _ in 0..3 {
        create(store, at(0), HOUR).await;
    }
    store.delete_invoice(2, at(1)).await.unwrap();
    assert_eq!(store.sweep(at(3600), 10).await.unwrap(), 2);
    let expected = [1, 3].map(|number| (at(3600), (EventKind::InvoiceExpired, number)));
    assert_eq!(happened(store, 4).await, expected);
}

pub(super) async fn clock_set_back(store: &impl WalletStore) {
    create(store, at(0), HOUR).await;
    create(store, at(3600), HOUR).await;
    assert_eq!(store.sweep(at(10), 10).await.unwrap(), 1);
    assert_eq!(happened(store, 2).await, [(at(3600), (EventKind::InvoiceExpired, 1))]);
}

pub(super) async fn keys(store: &impl WalletStore) {
    let due = at(0).after(IDEMPOTENCY_PERIOD).after(MICROSECOND);
    for name in ["a", "b", "c"] {
        let invoice = with_key(new_invoice(at(0), HOUR), key(name, "{}"));
        store.create_invoice(invoice).await.unwrap();
        store.create_user(user_named(name), at(0), Some(key(name, "{}"))).await.unwrap();
    }
    assert_eq!(store.sweep(at(3600), 2).await.unwrap(), 2);
    for (limit, count) in [(4, 4), (2, 2), (10, 1), (10, 0)] {
        assert_eq!(store.sweep(due, limit).await.unwrap(), count);
    }
    let told = happened(store, 6).await;
    assert_eq!(told.len(), 3, "{told:?}");
}

/// An invoice does not expire while only a block is missing. It expires once its payment is lost, and
/// then stays expired until it is paid.
pub(super) async fn only_a_block_is_missing(store: &impl WalletStore) {
    let rules = PaymentRules { zero_conf_limit: Some(SATOSHIS - 1), ..PaymentRules::default() };
    store.execute(SetRules { rules }).await.unwrap();
    shown(store, 3).await;
    let late = HOUR.as_secs() + 1;
    let whole = paying_invoices(&[(1, SATOSHIS), (3, SATOSHIS)], 1);
    notice(store, &whole, MEMPOOL, 1).await;
    notice(store, &paying_invoices(&[(2, SATOSHIS - 1)], 2), MEMPOOL, 1).await;
    notice(store, &paying_invoices(&[(2, 1)], 3), MEMPOOL, late).await;
    let state =
        async |number| store.get(GetInvoice(number)).await.unwrap().unwrap().state(at(late + 9));
    assert_eq!(store.sweep(at(late), 10).await.unwrap(), 3);
    let expired = |number| (EventKind::InvoiceExpired, number);
    let told = async || {
        let told = happened(store, 3).await;
        told.into_iter().map(|(_, it)| it).filter(|it| *it == expired(it.1)).collect::<Vec<_>>()
    };
    assert_eq!(told().await, [expired(2)]);
    assert_eq!(state(1).await, InvoiceState::Pending);
    assert_eq!(state(2).await, InvoiceState::Expired, "a part of it came late");

    store.execute(Contest { transaction: 1, now: at(late + 1) }).await.unwrap();
    assert_eq!(state(1).await, InvoiceState::Pending, "contested");
    store.delete_invoice(3, at(late + 1)).await.unwrap();
    store.displace(1, at(late + 2)).await.unwrap();
    assert_eq!(state(1).await, InvoiceState::Expired, "displaced");
    store.sweep(at(late + 2), 10).await.unwrap();
    assert_eq!(told().await, [expired(2), expired(1)]);
    notice(store, &whole, MEMPOOL, late + 3).await;
    assert_eq!(state(1).await, InvoiceState::Expired, "seen again");
    store.sweep(at(late + 3), 10).await.unwrap();
    assert_eq!(told().await, [expired(2), expired(1)]);
    notice(store, &whole, block(7), late + 4).await;
    assert_eq!(state(1).await, InvoiceState::Paid);
    store.forget_block(proof(7).block, at(late + 5)).await.unwrap();
    assert_eq!(state(1).await, InvoiceState::Paid, "contested");
    store.sweep(at(late + 6), 10).await.unwrap();
    assert_eq!(told().await, [expired(2), expired(1)]);
}

/// An invoice that has expired stays so while a payment of another one, which pays it too, is in
/// flight.
pub(super) async fn paid_beside_another(store: &impl WalletStore) {
    create(store, at(0), HOUR).await;
    create(store, at(0), 2 * HOUR).await;
    assert_eq!(store.sweep(at(3600), 9).await.unwrap(), 1);
    let beside = NewReceipt { vout: 1, satoshis: SATOSHIS, key: key_of(1) };
    let mut both = offering(2, &[SATOSHIS, SATOSHIS], 1, at(3601));
    both.receipts[1] = beside;
    let payment = begin_with(store, both).await;
    let state = async |s| store.get(GetInvoice(1)).await.unwrap().unwrap().state(at(s));
    assert_eq!(state(3602).await, InvoiceState::Expired);
    store.refuse(payment.number, at(3603)).await.unwrap();
    assert_eq!(state(3604).await, InvoiceState::Expired);
    assert_eq!(store.sweep(at(3605), 9).await.unwrap(), 0, "it expires once");
}

/// While the clock is doubted, nothing expires after the time since which it is doubted, and no payment
/// is late for what has not expired.
pub(super) async fn doubted_clock(store: &impl WalletStore) {
    for created in [0, 600, 600] {
        create(store, at(created), HOUR).await;
    }
    let (now, doubted_since) = (at(9000), Some(at(4000)));
    let doubted = |doubted_since| Sweep { now, doubted_since, limit: 9 };
    assert_eq!(store.execute(doubted(doubted_since)).await.unwrap(), 1);
    assert_eq!(happened(store, 3).await, [(now, (EventKind::InvoiceExpired, 1))]);
    assert_refused!(store.execute(doubted(doubted_since)).await, Refusal::NothingDue);
    let late = Offer { doubted_since, ..incoming(1, 1, now) };
    assert_refused!(store.offer(late).await, Refusal::Expired(1));
    assert_refused!(store.offer(incoming(2, 2, now)).await, Refusal::Expired(2));
    let payment = begin_with(store, Offer { doubted_since, ..incoming(2, 2, now) }).await;
    store.refuse(payment.number, now).await.unwrap();
    let payment = begin_with(store, Offer { doubted_since, ..incoming(3, 3, now) }).await;
    store.see(payment.number, now).await.unwrap();
    let paid = store.get(GetInvoice(3)).await.unwrap().unwrap();
    assert_eq!(paid.payment_received_at, Some(now), "it is not late");
    // Time stands still at a moment before the payment, and then beyond the expiry of the invoice.
    for since in [4000, 5000] {
        assert_eq!(paid.state(at(since)), InvoiceState::Paid, "at {since}");
    }
    let standing_still = Sweep { now: at(9001), doubted_since: Some(at(5000)), limit: 9 };
    assert_eq!(store.execute(standing_still).await.unwrap(), 2);
    assert_eq!(store.get(GetInvoice(3)).await.unwrap().unwrap().expired_at, None);
    let [.., last] = &happened(store, 4).await[..] else { panic!("no event") };
    assert_eq!(*last, (at(9001), (EventKind::InvoiceExpired, 2)));
}
