use std::time::Duration;

use bsv_invoicing::events::EventKind;
use bsv_invoicing::invoices::{IdCipher, InvoiceQuery, NewId};
use bsv_invoicing::ledger::{CreateInvoice, CreateUser};
use bsv_invoicing::store::WalletStore;
use bsv_invoicing::{InvoiceDraft, InvoiceState, Timestamp, Wallet};
use tokio::time::sleep;

use crate::support::{Place, draft, field_errors, key};

const ALL: InvoiceQuery =
    InvoiceQuery { after: None, state: None, needs_decision: false, newest_first: false, limit: 9 };
const SOON: Duration = Duration::from_millis(200);
const DAY: Duration = Duration::from_secs(24 * 3600);

fn expiring_at(expires_at: Timestamp) -> InvoiceDraft {
    InvoiceDraft { expires_at: Some(expires_at), ..draft(1) }
}

async fn wait_until(wallet: &Wallet, time: Timestamp) {
    while wallet.now() < time {
        sleep(Duration::from_millis(5)).await;
    }
}

async fn numbers(wallet: &Wallet, state: InvoiceState) -> Vec<u64> {
    let page = wallet.invoices(InvoiceQuery { state: Some(state), ..ALL }).await.unwrap();
    page.invoices.iter().map(|invoice| invoice.number).collect()
}

#[tokio::test]
async fn an_invoice_expires_a_day_after_its_creation_by_default() {
    let place = Place::new();
    let wallet = place.open().await;
    let before = wallet.now();
    let invoice = wallet.create_invoice(draft(1), None).await.unwrap();
    assert!((before..=wallet.now()).contains(&invoice.created_at));
    assert!(before >= Timestamp::of_system().before(Duration::from_secs(60)));
    assert_eq!(invoice.expires_at, invoice.created_at.after(DAY));
    drop(wallet);
    let wallet = place.open_with_expiry(SOON).await;
    let invoice = wallet.create_invoice(draft(1), None).await.unwrap();
    assert_eq!(invoice.expires_at, invoice.created_at.after(SOON));
    let said = invoice.created_at.after(DAY * 2);
    let invoice = wallet.create_invoice(expiring_at(said), None).await.unwrap();
    assert_eq!(invoice.expires_at, said);
}

#[tokio::test]
async fn an_expiry_in_the_past_is_refused() {
    let place = Place::new();
    let wallet = place.open().await;
    let json = br#"{"satoshis":1,"expiresAt":"2020-01-01T00:00:00Z"}"#;
    let past = InvoiceDraft::from_json(json, wallet.now()).unwrap();
    for expires_at in [past.expires_at.unwrap(), wallet.now(), Timestamp::from_micros(0)] {
        let refused = wallet.create_invoice(expiring_at(expires_at), key("k", "past")).await;
        assert_eq!(field_errors(refused.unwrap_err()), "expiresAt must be in the future");
    }
    assert_eq!(wallet.events(0, 9).await.unwrap(), []);
    assert_eq!(wallet.create_invoice(draft(1), key("k", "right")).await.unwrap().number, 1);
}

#[tokio::test]
async fn a_request_repeated_after_the_expiry_gets_the_first_answer() {
    let place = Place::new();
    let wallet = place.open().await;
    let expires_at = wallet.now().after(SOON);
    let body = format!(r#"{{"satoshis":5,"expiresAt":"{expires_at}"}}"#);
    let draft = || InvoiceDraft::from_json(body.as_bytes(), wallet.now()).unwrap();
    let first = wallet.create_invoice(draft(), key("k", &body)).await.unwrap();
    wait_until(&wallet, expires_at).await;
    let again = wallet.create_invoice(draft(), key("k", &body)).await.unwrap();
    assert_eq!(again, first);
    assert_eq!(again.state(wallet.now()), InvoiceState::Expired);
    let as_first = again.clone().as_created().to_json(again.created_at);
    let as_first = serde_json::from_str::<serde_json::Value>(&as_first).unwrap();
    assert_eq!(as_first["state"], "pending");
    let other_key = wallet.create_invoice(draft(), key("other", &body)).await.unwrap_err();
    assert_eq!(field_errors(other_key), "expiresAt must be in the future");
    let draft = draft();
    drop(wallet);
    let wallet = place.open().await;
    assert_eq!(wallet.create_invoice(draft, key("k", &body)).await.unwrap(), first);
}

#[tokio::test]
async fn an_invoice_is_expired_in_every_answer_before_and_after_the_sweep() {
    let place = Place::new();
    let wallet = place.open_with_expiry(SOON).await;
    let invoice = wallet.create_invoice(draft(1), None).await.unwrap();
    let lasting = wallet.now().after(DAY);
    wallet.create_invoice(expiring_at(lasting), None).await.unwrap();
    wait_until(&wallet, invoice.expires_at).await;
    for told in [0, 1, 1] {
        assert_eq!(numbers(&wallet, InvoiceState::Expired).await, [1]);
        assert_eq!(numbers(&wallet, InvoiceState::Pending).await, [2]);
        let found = wallet.invoice(invoice.id.as_str()).await.unwrap();
        assert_eq!(found.state(wallet.now()), InvoiceState::Expired);
        assert_eq!(found.updated_at(wallet.now()), invoice.expires_at);
        let events = wallet.events(2, 9).await.unwrap();
        let kinds: Vec<_> = events.iter().map(|event| event.kind).collect();
        assert_eq!(kinds, vec![EventKind::InvoiceExpired; told]);
        assert!(!wallet.sweep().await.unwrap());
    }
    wallet.delete_invoice(invoice.id.as_str()).await.unwrap();
    assert_eq!(numbers(&wallet, InvoiceState::Expired).await, [0; 0]);
}

#[tokio::test]
async fn a_sweep_says_whether_there_is_more_to_do() {
    let place = Place::new();
    let store = place.store();
    let now = Timestamp::from_micros(1_000_000);
    let id = NewId { cipher: IdCipher::new(&[7; 32]), random: 1 };
    for _ in 0..251 {
        let (draft, id) = (draft(1), id.clone());
        let invoice = CreateInvoice { draft, expiry: SOON, id, idempotency: None, now };
        store.execute(invoice).await.unwrap();
    }
    drop(store);
    let wallet = place.open().await;
    assert!(wallet.sweep().await.unwrap());
    assert!(!wallet.sweep().await.unwrap());
    assert_eq!(wallet.events(0, 999).await.unwrap().len(), 2 * 251);
}

#[tokio::test]
async fn a_clock_that_was_set_back_revives_nothing() {
    let place = Place::new();
    let future = Timestamp::of_system().after(DAY * 365);
    let store = place.store();
    let details = crate::support::user_named("Ada");
    store.execute(CreateUser { details, idempotency: None, now: future }).await.unwrap();
    drop(store);
    let wallet = place.open().await;
    assert_eq!(wallet.now(), future);
    let refused = wallet.create_invoice(expiring_at(future), None).await.unwrap_err();
    assert_eq!(field_errors(refused), "expiresAt must be in the future");
    let invoice = wallet.create_invoice(draft(1), None).await.unwrap();
    assert_eq!((invoice.created_at, invoice.expires_at), (future, future.after(DAY)));
}
