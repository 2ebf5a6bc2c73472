use bsv_invoicing::InvoiceState;
use bsv_invoicing::invoices::{InvoicePage, InvoiceQuery};
use bsv_invoicing::store::WalletStore;

use super::*;

const ALL: InvoiceQuery = InvoiceQuery {
    after: None,
    state: None,
    needs_decision: false,
    newest_first: false,
    limit: 10,
};

fn numbers(page: &InvoicePage) -> Vec<u64> {
    page.invoices.iter().map(|invoice| invoice.number).collect()
}

/// The numbers on a page, and the number after which the next page begins.
async fn page(
    store: &impl WalletStore,
    query: InvoiceQuery,
    now: Timestamp,
) -> (Vec<u64>, Option<u64>) {
    let page = store.invoices(query, now).await.unwrap();
    for invoice in &page.invoices {
        assert_eq!(store.invoice(invoice.number).await.unwrap().as_ref(), Some(invoice));
    }
    let next = page.next.map(|(number, next_id)| {
        assert_eq!(next_id, id(number));
        number
    });
    (numbers(&page), next)
}

/// Creates nine invoices, which expire an hour and a second apart, and deletes the third and the
/// last.
async fn fill(store: &impl WalletStore) {
    for second in 1..=9 {
        create(store, at(second), HOUR).await;
    }
    store.delete_invoice(3, at(10)).await.unwrap();
    store.delete_invoice(9, at(10)).await.unwrap();
}

pub(super) async fn bounds(store: &impl WalletStore) {
    fill(store).await;
    let up = [1, 2, 4, 5, 6, 7, 8];
    let down = [8, 7, 6, 5, 4, 2, 1];
    for (newest_first, after, limit, expected, next) in [
        (false, None, 10, &up[..], None),
        (false, None, 0, &[], None),
        (false, None, 1, &up[..1], Some(1)),
        (false, None, 2, &up[..2], Some(2)),
        (false, None, 3, &up[..3], Some(4)),
        (false, Some(0), 10, &up, None),
        (false, Some(2), 2, &up[2..4], Some(5)),
        (false, Some(3), 2, &up[2..4], Some(5)),
        (false, Some(4), 4, &up[3..], Some(8)),
        (false, Some(4), 5, &up[3..], None),
        (false, Some(8), 5, &[], None),
        (false, Some(9), 5, &[], None),
        (false, Some(1 << 40), 5, &[], None),
        (true, None, 10, &down, None),
        (true, None, 0, &[], None),
        (true, None, 1, &down[..1], Some(8)),
        (true, None, 7, &down, None),
        (true, Some(1 << 40), 2, &down[..2], Some(7)),
        (true, Some(4), 1, &down[5..6], Some(2)),
        (true, Some(4), 2, &down[5..], None),
        (true, Some(1), 5, &[], None),
        (true, Some(0), 5, &[], None),
    ] {
        let query = InvoiceQuery { after, newest_first, limit, ..ALL };
        let found = page(store, query, at(10)).await;
        assert_eq!(found, (expected.to_vec(), next), "{query:?}");
    }
}

pub(super) async fn states(store: &impl WalletStore) {
    fill(store).await;
    let of = async |state, now| page(store, InvoiceQuery { state, ..ALL }, now).await.0;
    for (now, expired, pending) in [
        (at(3601).before(MICROSECOND), &[][..], &[1, 2, 4, 5, 6, 7, 8][..]),
        (at(3601), &[1], &[2, 4, 5, 6, 7, 8]),
        (at(3605), &[1, 2, 4, 5], &[6, 7, 8]),
        (at(3608), &[1, 2, 4, 5, 6, 7, 8], &[]),
    ] {
        assert_eq!(of(Some(InvoiceState::Expired), now).await, expired, "{now}");
        assert_eq!(of(Some(InvoiceState::Pending), now).await, pending, "{now}");
        assert_eq!(of(Some(InvoiceState::Paid), now).await, [0; 0]);
        assert_eq!(of(None, now).await, [1, 2, 4, 5, 6, 7, 8]);
    }
    // A sweep writes an event, but does not change the pages.
    store.sweep(at(3605), 10).await.unwrap();
    assert_eq!(of(Some(InvoiceState::Expired), at(3605)).await, [1, 2, 4, 5]);
}

pub(super) async fn walk(store: &impl WalletStore) {
    fill(store).await;
    for newest_first in [false, true] {
        for state in [None, Some(InvoiceState::Pending), Some(InvoiceState::Expired)] {
            for limit in 1..=10 {
                let query = InvoiceQuery { state, newest_first, limit, ..ALL };
                let all = InvoiceQuery { limit: 100, ..query };
                let (expected, end) = page(store, all, at(3605)).await;
                assert_eq!(end, None);
                assert_eq!(walked(store, query).await, expected, "{query:?}");
            }
        }
    }
}

async fn walked(store: &impl WalletStore, mut query: InvoiceQuery) -> Vec<u64> {
    let mut all = Vec::new();
    loop {
        let (numbers, next) = page(store, query, at(3605)).await;
        assert!(next.is_none() || numbers.len() == query.limit);
        assert!(numbers.len() <= query.limit);
        all.extend(numbers);
        let Some(next) = next else { return all };
        assert_ne!(Some(next), query.after);
        query.after = Some(next);
    }
}
