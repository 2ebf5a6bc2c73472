use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bsv_invoicing::events::{EventFilter, EventKind, EventQuery};
use bsv_invoicing::invoices::{InvoicePage, InvoiceQuery, MAX_SATOSHIS};
use bsv_invoicing::ledger::{GetEventPage, NoteKeyEvent};
use bsv_invoicing::store::WalletStore;
use bsv_invoicing::{Invoice, InvoiceDraft, Timestamp, UserDraft};
use bsv_store::{AuditPage, KeyEvent};

use super::counted::Counted;
use super::*;

pub(super) async fn nothing(store: &impl WalletStore) {
    for number in [0, 1, 1 << 40] {
        assert_eq!(store.invoice(number).await.unwrap(), None);
        assert_eq!(store.user(number).await.unwrap(), None);
        let deleted = store.delete_invoice(number, at(0)).await;
        assert_refused!(deleted, Refusal::UnknownInvoice(named) if named == number);
    }
    let query = InvoiceQuery {
        after: None,
        state: None,
        needs_decision: false,
        newest_first: false,
        limit: 10,
    };
    let page = store.invoices(query, at(0)).await.unwrap();
    assert_eq!(page, InvoicePage { invoices: Vec::new(), next: None, now: at(0) });
    assert_eq!(store.sweep(at(0), 10).await.unwrap(), 0);
    let nothing = Held {
        invoices: Vec::new(),
        users: Vec::new(),
        events: Vec::new(),
        log: None,
        last_event_at: Timestamp::from_micros(0),
        balance: 0,
        owner: None,
        accounts: Vec::new(),
        followed: Vec::new(),
        followed_tip: None,
        outgoing: Vec::new(),
        webhooks: vec![],
        deliveries: vec![],
    };
    assert_eq!(Held::of(store).await, nothing);
}

pub(super) async fn numbers(store: &impl WalletStore) {
    for number in 1..=5 {
        let created = create(store, at(number), HOUR).await;
        let draft = InvoiceDraft { satoshis: 1000, ..InvoiceDraft::default() };
        let expected = Invoice::new((number, id(number)), draft, at(number), HOUR);
        assert_eq!(expected.expires_at, at(number + 3600));
        assert_eq!(created, expected);
        assert_eq!(store.invoice(number).await.unwrap(), Some(expected));
        let happened = happened(store, number as usize - 1).await;
        assert_eq!(happened, [(at(number), (EventKind::InvoiceCreated, number))]);
        let expired = store.create_invoice(new_invoice(at(number), Duration::ZERO)).await;
        assert_refused!(expired, Refusal::AlreadyExpired);
    }
    assert_eq!(store.balance().await.unwrap(), 0);
}

pub(super) async fn every_form(store: &impl WalletStore) {
    let texts = [None, Some(""), Some("\0\"\\\n\u{7f}"), Some("é€😀\u{fffd}")];
    let owned = |text: Option<&str>| text.map(str::to_owned);
    for (place, description) in texts.into_iter().enumerate() {
        for reference in texts {
            for expires_at in [None, Some(at(0).after(YEAR)), Some(Timestamp::MAX)] {
                let satoshis = if place == 0 { 1 } else { MAX_SATOSHIS };
                let draft = InvoiceDraft {
                    satoshis,
                    description: owned(description),
                    reference: owned(reference),
                    expires_at,
                };
                let invoice = CreateInvoice { draft, ..new_invoice(at(0), HOUR) };
                let created = store.create_invoice(invoice).await.unwrap();
                assert_eq!(created.satoshis, satoshis);
                assert_eq!(created.description.as_deref(), description);
                assert_eq!(created.reference.as_deref(), reference);
                assert_eq!(created.expires_at, expires_at.unwrap_or(at(3600)));
                assert_eq!(store.invoice(created.number).await.unwrap(), Some(created));
            }
        }
    }
}

pub(super) async fn clock_set_back(store: &impl WalletStore) {
    create(store, at(100), HOUR).await;
    let earlier = create(store, at(50), HOUR).await;
    assert_eq!((earlier.created_at, earlier.expires_at), (at(100), at(3700)));
    store.create_user(user_named("Ada"), at(200), None).await.unwrap();
    let earlier = create(store, at(150), HOUR).await;
    assert_eq!((earlier.created_at, earlier.expires_at), (at(200), at(3800)));
    store.create_user(user_named("Grace"), at(150), None).await.unwrap();
    store.delete_invoice(1, at(0)).await.unwrap();
    assert_eq!(store.invoice(1).await.unwrap().unwrap().deleted_at, Some(at(200)));
    let times: Vec<_> = events(store).await.iter().map(|event| event.at).collect();
    assert_eq!(times, [100, 100, 200, 200, 200, 200].map(at));
}

pub(super) async fn already_expired(store: &impl WalletStore) {
    create(store, at(100), HOUR).await;
    let before = Held::of(store).await;
    let expiring_at = |expires_at, now| {
        let draft = InvoiceDraft { satoshis: 1, expires_at, ..InvoiceDraft::default() };
        CreateInvoice { draft, ..new_invoice(now, HOUR) }
    };
    for (expires_at, now) in [
        (at(200), at(200)),
        (at(199), at(200)),
        (Timestamp::from_micros(0), at(200)),
        // This time is after `now`, but not after the last event.
        (at(60), at(50)),
        (at(100), at(50)),
    ] {
        let refused = store.create_invoice(expiring_at(Some(expires_at), now)).await;
        assert_refused!(refused, Refusal::AlreadyExpired);
    }
    assert_eq!(Held::of(store).await, before);
    let soon = at(100).after(MICROSECOND);
    let created = store.create_invoice(expiring_at(Some(soon), at(50))).await.unwrap();
    assert_eq!((created.number, created.created_at, created.expires_at), (2, at(100), soon));
}

pub(super) async fn delete(store: &impl WalletStore) {
    let [first, second] = [create(store, at(0), HOUR).await, create(store, at(0), HOUR).await];
    assert_refused!(store.delete_invoice(3, at(10)).await, Refusal::UnknownInvoice(3));
    store.delete_invoice(2, at(10)).await.unwrap();
    let deleted = Invoice { deleted_at: Some(at(10)), ..second };
    assert_eq!(store.invoice(2).await.unwrap(), Some(deleted.clone()));
    assert_refused!(store.delete_invoice(2, at(11)).await, Refusal::UnknownInvoice(2));
    assert_eq!(store.invoice(2).await.unwrap(), Some(deleted));
    assert_eq!(store.invoice(1).await.unwrap(), Some(first));
    assert_eq!(create(store, at(20), HOUR).await.number, 3);
    let expected =
        [(at(10), (EventKind::InvoiceDeleted, 2)), (at(20), (EventKind::InvoiceCreated, 3))];
    assert_eq!(happened(store, 2).await, expected);
}

pub(super) async fn delete_expired(store: &impl WalletStore) {
    for _ in 1..=4 {
        create(store, at(0), HOUR).await;
    }
    let expiry = at(3600);
    store.delete_invoice(1, expiry.before(MICROSECOND)).await.unwrap();
    store.delete_invoice(2, expiry).await.unwrap();
    // The last event shows that it is later.
    store.delete_invoice(3, at(0)).await.unwrap();
    assert_eq!(store.sweep(at(4000), 10).await.unwrap(), 1);
    store.delete_invoice(4, at(4001)).await.unwrap();
    assert_eq!(store.sweep(at(4002), 10).await.unwrap(), 0);
    let expired = |number| (EventKind::InvoiceExpired, number);
    let deleted = |number| (EventKind::InvoiceDeleted, number);
    let expected = [
        (expiry.before(MICROSECOND), deleted(1)),
        (expiry, expired(2)),
        (expiry, deleted(2)),
        (expiry, expired(3)),
        (expiry, deleted(3)),
        (at(4000), expired(4)),
        (at(4001), deleted(4)),
    ];
    assert_eq!(happened(store, 4).await, expected);
}

pub(super) async fn users(store: &impl WalletStore) {
    let full = UserDraft {
        name: "\0é😀".to_owned(),
        email: "a@b".to_owned(),
        avatar: "https://example.com/a.png".to_owned(),
        address: "1 Road\nTown".to_owned(),
        phone_number: "+1 (2)".to_owned(),
    };
    for (id, details) in [(1, user_named("Ada")), (2, full), (3, user_named("Ada"))] {
        let created = store.create_user(details.clone(), at(id), None).await.unwrap();
        assert_eq!(created, (id, details));
        assert_eq!(store.user(id).await.unwrap(), Some(created));
        create(store, at(id), HOUR).await;
        let expected =
            [(at(id), (EventKind::UserCreated, id)), (at(id), (EventKind::InvoiceCreated, id))];
        assert_eq!(happened(store, 2 * (id as usize - 1)).await, expected);
    }
    for unknown in [0, 4, 1 << 40] {
        assert_eq!(store.user(unknown).await.unwrap(), None);
    }
}

pub(super) async fn adopt(store: &impl WalletStore) {
    assert_eq!(store.owner().await.unwrap(), None);
    store.adopt([1; 20], KeyEvent::Made).await.unwrap();
    store.adopt([1; 20], KeyEvent::Made).await.unwrap();
    assert_refused!(store.adopt([2; 20], KeyEvent::Made).await, Refusal::OtherWallet);
    let note = NoteKeyEvent { event: KeyEvent::Exported, subject: "words".to_owned() };
    store.execute(note).await.unwrap();
    let log = store.audit_log(AuditPage::After(0), 9).await.unwrap();
    let entries: Vec<_> = log.iter().map(|it| (&*it.event, &*it.subject)).collect();
    let names = [KeyEvent::Made, KeyEvent::Exported].map(KeyEvent::name);
    assert_eq!(entries, [(names[0], "wallet.seed"), (names[1], "words")]);
    for (page, limit, expected) in [
        (AuditPage::After(1), 9, &log[1..]),
        (AuditPage::Before(2), 9, &log[..1]),
        (AuditPage::Before(u64::MAX), 9, &log[..]),
        (AuditPage::Before(u64::MAX), 1, &log[1..]),
    ] {
        assert_eq!(store.audit_log(page, limit).await.unwrap(), expected, "{page:?}");
    }
    assert_eq!(store.owner().await.unwrap(), Some([1; 20]));
    assert_eq!(events(store).await, []);
}

pub(super) async fn events_in_parts(store: &impl WalletStore) {
    for second in 0..7 {
        create(store, at(second), HOUR).await;
    }
    let all = events(store).await;
    assert_eq!(all.len(), 7);
    for after in 0..=8_u64 {
        for limit in 0..=8 {
            let rest = &all[all.len().min(after as usize)..];
            let expected = &rest[..rest.len().min(limit)];
            assert_eq!(store.events(after, limit).await.unwrap(), expected, "{after} {limit}");
        }
    }
    assert_eq!(store.events(u64::MAX, 1).await.unwrap(), []);
}

/// A filter of all types reads no more rows than a page has.
pub(super) async fn page_of_all_types(store: &impl WalletStore) {
    for second in 0..30 {
        store.create_user(user_named("Ada"), at(second), None).await.unwrap();
    }
    let filter: EventFilter = "*".parse().unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let query = GetEventPage(EventQuery { after: 0, filter, limit: 10 });
    let page = store.list(Counted { query, count: Arc::clone(&count) }).await.unwrap();
    assert_eq!(page.events.len(), 10);
    // A back end may run the query more than once, and the figures are a row, too.
    assert!(count.load(Ordering::Relaxed) < 20, "{count:?}");
}
