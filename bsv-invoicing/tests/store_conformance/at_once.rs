use std::collections::BTreeSet;
use std::sync::Arc;

use bsv_invoicing::events::EventKind;
use bsv_invoicing::invoices::InvoiceQuery;
use bsv_invoicing::store::WalletStore;
use tokio::task::JoinSet;

use super::*;

const TASKS: u64 = 32;

/// Runs the scenarios of many callers at once, on a runtime of several threads. Each caller creates so many invoices.
pub(crate) async fn run_at_once<P: Place>(each: u64) {
    for scenario in 0..3 {
        let place = P::fresh();
        let store = Arc::new(place.open());
        match scenario {
            0 => creations(&store, each).await,
            1 => same_key(&store).await,
            _ => deletions(&store).await,
        }
        let held = Held::of(&*store).await;
        drop(Arc::into_inner(store).expect("all tasks have ended"));
        assert_eq!(Held::of(&place.open()).await, held);
    }
}

/// The answers of `TASKS` tasks that do the same at once.
async fn all_of<S, T, F>(store: &Arc<S>, task: impl Fn(Arc<S>, u64) -> F) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let mut tasks = JoinSet::new();
    for number in 0..TASKS {
        tasks.spawn(task(Arc::clone(store), number));
    }
    tasks.join_all().await
}

async fn creations<S: WalletStore>(store: &Arc<S>, each: u64) {
    let created: Vec<_> = all_of(store, move |store, task| async move {
        let mut created = Vec::new();
        for count in 0..each {
            let invoice = create(&*store, at(task * count), YEAR).await;
            assert_eq!(store.invoice(invoice.number).await.unwrap().as_ref(), Some(&invoice));
            created.push(invoice);
            if count % 10 == task % 10 {
                look_around(&*store).await;
            }
        }
        assert!(created.is_sorted_by_key(|invoice| invoice.number));
        created
    })
    .await
    .concat();
    let numbers: BTreeSet<_> = created.iter().map(|invoice| invoice.number).collect();
    assert!(numbers.into_iter().eq(1..=TASKS * each));
    for invoice in &created {
        assert_eq!(invoice.id, id(invoice.number));
        assert_eq!(store.invoice(invoice.number).await.unwrap().as_ref(), Some(invoice));
    }
    let told: Vec<_> = happened(&**store, 0).await.into_iter().map(|(_, kind)| kind).collect();
    let expected: Vec<_> =
        (1..=TASKS * each).map(|number| (EventKind::InvoiceCreated, number)).collect();
    assert_eq!(told, expected);
}

/// A reader sees no gap while others write.
async fn look_around(store: &impl WalletStore) {
    let events = store.events(0, 10_000).await.unwrap();
    assert!(events.iter().map(|event| event.number).eq(1..=events.len() as u64));
    assert!(events.is_sorted_by_key(|event| event.at));
    let all = InvoiceQuery {
        after: None,
        state: None,
        needs_decision: false,
        newest_first: false,
        limit: 10_000,
    };
    let page = store.invoices(all, at(0)).await.unwrap();
    assert!(page.invoices.len() >= events.len());
    assert!(page.invoices.iter().map(|invoice| invoice.number).eq(1..=page.invoices.len() as u64));
}

async fn same_key<S: WalletStore>(store: &Arc<S>) {
    let answered = all_of(store, |store, _| async move {
        let invoice = with_key(new_invoice(at(0), HOUR), key("k", "{}"));
        let invoice = store.create_invoice(invoice).await.unwrap();
        let user = store.create_user(user_named("Ada"), at(0), Some(key("k", "{}"))).await;
        (invoice, user.unwrap())
    })
    .await;
    assert!(answered.iter().all(|answer| *answer == answered[0]));
    let held = Held::of(&**store).await;
    assert_eq!((held.invoices.len(), held.users.len(), held.events.len()), (1, 1, 2));
}

async fn deletions<S: WalletStore>(store: &Arc<S>) {
    for _ in 0..4 {
        create(&**store, at(0), HOUR).await;
    }
    let deleted = all_of(store, |store, task| async move {
        let number = 1 + task % 4;
        let deleted = store.delete_invoice(number, at(1)).await;
        store.sweep(at(3600), 1).await.unwrap();
        let is_deleted = deleted.is_ok();
        if !is_deleted {
            assert_refused!(deleted, Refusal::UnknownInvoice(named) if named == number);
        }
        is_deleted
    })
    .await;
    assert_eq!(deleted.iter().filter(|is_deleted| **is_deleted).count(), 4);
    let kinds: Vec<_> = happened(&**store, 4).await.into_iter().map(|(_, kind)| kind).collect();
    for number in 1..=4 {
        let count = |kind| kinds.iter().filter(|other| **other == kind).count();
        assert_eq!(count((EventKind::InvoiceDeleted, number)), 1);
        assert!(count((EventKind::InvoiceExpired, number)) <= 1);
    }
}
