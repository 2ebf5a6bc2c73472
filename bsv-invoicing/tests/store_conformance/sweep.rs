use bsv_invoicing::InvoiceDraft;
use bsv_invoicing::events::EventKind;
use bsv_invoicing::invoices::IDEMPOTENCY_PERIOD;
use bsv_invoicing::ledger::{Offer, Sweep};
use bsv_invoicing::store::WalletStore;

use super::making::{begin_with, incoming};
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
    assert_eq!(store.invoice(1).await.unwrap(), Some(invoice));
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

/// While the clock is doubted, nothing expires after the time since which it is doubted.
pub(super) async fn doubted_clock(store: &impl WalletStore) {
    create(store, at(0), HOUR).await;
    create(store, at(600), HOUR).await;
    let (now, doubted_since) = (at(9000), Some(at(4000)));
    let doubted = |doubted_since| Sweep { now, doubted_since, limit: 9 };
    assert_eq!(store.execute(doubted(doubted_since)).await.unwrap(), 1);
    assert_eq!(happened(store, 2).await, [(now, (EventKind::InvoiceExpired, 1))]);
    assert_refused!(store.execute(doubted(doubted_since)).await, Refusal::NothingDue);
    let late = Offer { doubted_since, ..incoming(1, 1, now) };
    assert_refused!(store.offer(late).await, Refusal::Expired(1));
    assert_refused!(store.offer(incoming(2, 2, now)).await, Refusal::Expired(2));
    let payment = begin_with(store, Offer { doubted_since, ..incoming(2, 2, now) }).await;
    store.refuse(payment.number, now).await.unwrap();
    assert_eq!(store.execute(doubted(None)).await.unwrap(), 1);
    assert_eq!(happened(store, 3).await, [(now, (EventKind::InvoiceExpired, 2))]);
}
