use bsv_invoicing::invoices::{IDEMPOTENCY_PERIOD, NewId};

use super::*;

/// A request for an invoice that does not expire soon.
fn keyed(now: Timestamp, name: &str, request: &str) -> CreateInvoice {
    with_key(new_invoice(now, YEAR), key(name, request))
}

pub(super) async fn again(store: &impl WalletStore) {
    let request = |now| with_key(new_invoice(now, HOUR), key("k", "{}"));
    let first = store.create_invoice(request(at(0))).await.unwrap();
    let details = user_named("Ada");
    let user = store.create_user(details, at(0), Some(key("k", "{}"))).await.unwrap();
    let before = Held::of(store).await;
    let another = |now| CreateInvoice { id: NewId { random: 5, ..new_id() }, ..request(now) };
    for now in [at(0), at(10), at(3600), at(7200)] {
        assert_eq!(store.create_invoice(another(now)).await.unwrap(), first);
        let details = user_named("Grace");
        let answered = store.create_user(details, now, Some(key("k", "{}"))).await.unwrap();
        assert_eq!(answered, user);
    }
    assert_eq!(Held::of(store).await, before);
    store.delete_invoice(1, at(7300)).await.unwrap();
    let deleted = Invoice { deleted_at: Some(at(7300)), ..first };
    assert_eq!(store.create_invoice(request(at(7400))).await.unwrap(), deleted);
    let without_key = create(store, at(7500), HOUR).await;
    assert_eq!(without_key.number, 2);
}

pub(super) async fn reused(store: &impl WalletStore) {
    store.create_invoice(keyed(at(0), "k", "{}")).await.unwrap();
    let user =
        |name, request| store.create_user(user_named("Ada"), at(0), Some(key(name, request)));
    // Each route has its own keys.
    assert_eq!(user("k", "other").await.unwrap().0, 1);
    let before = Held::of(store).await;
    assert_refused!(store.create_invoice(keyed(at(0), "k", "other")).await, Refusal::KeyReused);
    assert_refused!(user("k", "{}").await, Refusal::KeyReused);
    assert_eq!(Held::of(store).await, before);
    for (name, number) in [("K", 2), ("k ", 3), ("kk", 4)] {
        let created = store.create_invoice(keyed(at(0), name, "other")).await.unwrap();
        assert_eq!(created.number, number);
        assert_eq!(user(name, "{}").await.unwrap().0, number);
    }
}

pub(super) async fn forgotten(store: &impl WalletStore) {
    let end = at(0).after(IDEMPOTENCY_PERIOD);
    for (name, number) in [("swept", 1), ("kept", 2)] {
        let created = store.create_invoice(keyed(at(0), name, "{}")).await.unwrap();
        assert_eq!(created.number, number);
    }
    let last = end.before(MICROSECOND);
    assert_eq!(store.sweep(last, 10).await.unwrap(), 0);
    let known = store.create_invoice(keyed(last, "swept", "{}")).await.unwrap();
    assert_eq!(known.number, 1);
    assert_refused!(store.create_invoice(keyed(last, "kept", "other")).await, Refusal::KeyReused);
    let created = store.create_invoice(keyed(end, "kept", "other")).await.unwrap();
    assert_eq!((created.number, created.created_at), (3, end));
    assert_eq!(store.sweep(end, 10).await.unwrap(), 1);
    let later = end.after(MICROSECOND);
    let created = store.create_invoice(keyed(later, "swept", "other")).await.unwrap();
    assert_eq!(created.number, 4);
}

pub(super) async fn clock_set_back(store: &impl WalletStore) {
    let end = at(0).after(IDEMPOTENCY_PERIOD);
    for name in ["swept", "kept"] {
        store.create_invoice(keyed(at(0), name, "{}")).await.unwrap();
    }
    store.create_user(user_named("Ada"), end, None).await.unwrap();
    let created = store.create_invoice(keyed(at(0), "kept", "other")).await.unwrap();
    assert_eq!((created.number, created.created_at), (3, end));
    store.create_user(user_named("Ada"), end.after(MICROSECOND), None).await.unwrap();
    assert_eq!(store.sweep(at(0), 10).await.unwrap(), 1);
}

pub(super) async fn used_again(store: &impl WalletStore) {
    let [second, third] = [1, 2].map(|count| at(0).after(IDEMPOTENCY_PERIOD * count));
    store.create_invoice(keyed(at(0), "k", "first")).await.unwrap();
    let again = store.create_invoice(keyed(second, "k", "second")).await.unwrap();
    assert_eq!(again.number, 2);
    assert_eq!(store.sweep(third.before(MICROSECOND), 10).await.unwrap(), 0);
    let known = keyed(third.before(MICROSECOND), "k", "second");
    assert_eq!(store.create_invoice(known).await.unwrap(), again);
    assert_eq!(store.sweep(third.after(MICROSECOND), 10).await.unwrap(), 1);
    assert_eq!(store.sweep(third.after(HOUR), 10).await.unwrap(), 0);
    // The clock is set back, but the last event shows that it is later.
    create(store, third.after(MICROSECOND), HOUR).await;
    store.create_invoice(keyed(at(0), "k", "third")).await.unwrap();
    let known = keyed(third.after(HOUR), "k", "third");
    assert_eq!(store.create_invoice(known).await.unwrap().number, 4);
}

pub(super) async fn refused(store: &impl WalletStore) {
    let draft = InvoiceDraft { satoshis: 1, expires_at: Some(at(0)), ..InvoiceDraft::default() };
    for now in [at(0), at(10)] {
        let expired = CreateInvoice { draft: draft.clone(), ..keyed(now, "k", "expired") };
        assert_refused!(store.create_invoice(expired).await, Refusal::AlreadyExpired);
    }
    let created = store.create_invoice(keyed(at(10), "k", "right")).await.unwrap();
    assert_eq!(created.number, 1);
    assert_refused!(store.create_invoice(keyed(at(20), "k", "wrong")).await, Refusal::KeyReused);
    let again = store.create_invoice(keyed(at(30), "k", "right")).await.unwrap();
    assert_eq!(again, created);
}

/// Keys are as durable as the resources that were created with them.
pub(super) async fn reopened<P: Place>() {
    let place = P::fresh();
    let store = place.open();
    let first = store.create_invoice(keyed(at(0), "k", "{}")).await.unwrap();
    let user = store.create_user(user_named("Ada"), at(0), Some(key("k", "{}"))).await.unwrap();
    drop(store);
    let store = place.open();
    assert_eq!(store.create_invoice(keyed(at(1), "k", "{}")).await.unwrap(), first);
    let again = store.create_user(user_named("Ada"), at(1), Some(key("k", "{}"))).await.unwrap();
    assert_eq!(again, user);
    assert_refused!(store.create_invoice(keyed(at(1), "k", "other")).await, Refusal::KeyReused);
    drop(store);
    let later = at(0).after(IDEMPOTENCY_PERIOD).after(MICROSECOND);
    assert_eq!(place.open().sweep(later, 10).await.unwrap(), 2);
}
