use std::time::Duration;

use bsv_invoicing::invoices::MAX_SATOSHIS;
use bsv_invoicing::{Invoice, InvoiceDraft, InvoiceState, Timestamp, UserDraft};

use crate::support::{Place, draft, user_named};

const CREATED_AT: &str = "2026-11-21T08:48:56.767571Z";
const EXPIRES_AT: &str = "2026-11-22T08:48:56.767571Z";

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn invoice() -> Invoice {
    let day = Duration::from_secs(24 * 60 * 60);
    let id = "bwWEkOWIH8Ck".parse().unwrap();
    let invoice = Invoice::new((1, id), draft(1000), time(CREATED_AT), day);
    assert_eq!(invoice.expires_at, time(EXPIRES_AT));
    invoice
}

fn wire(invoice: &Invoice, now: Timestamp) -> String {
    invoice.to_json(now)
}

fn whole_seconds(time: Timestamp) -> String {
    format!("{}Z", time.to_string().split_once('.').unwrap().0)
}

#[test]
fn an_invoice_is_written_as_the_specification_shows_it() {
    let full = Invoice {
        satoshis: MAX_SATOSHIS,
        description: Some("\"a\"\n\u{1}€😀/".to_owned()),
        reference: Some(String::new()),
        ..invoice()
    };
    let paid = Invoice { payment_received_at: Some(time("2026-11-21T09:00:00Z")), ..invoice() };
    for (invoice, now, expected) in [
        (
            invoice(),
            CREATED_AT,
            r#"{"id":"bwWEkOWIH8Ck","reference":null,"description":null,"satoshis":1000,"expiresAt":"2026-11-22T08:48:56.767571Z","paymentReceivedAt":null,"refundTo":null,"refundedAt":null,"state":"pending","createdAt":"2026-11-21T08:48:56.767571Z","updatedAt":"2026-11-21T08:48:56Z","deletedAt":null}"#,
        ),
        (
            full,
            CREATED_AT,
            r#"{"id":"bwWEkOWIH8Ck","reference":"","description":"\"a\"\n\u0001€😀/","satoshis":2100000000000000,"expiresAt":"2026-11-22T08:48:56.767571Z","paymentReceivedAt":null,"refundTo":null,"refundedAt":null,"state":"pending","createdAt":"2026-11-21T08:48:56.767571Z","updatedAt":"2026-11-21T08:48:56Z","deletedAt":null}"#,
        ),
        (
            paid,
            "2026-11-21T09:00:00Z",
            r#"{"id":"bwWEkOWIH8Ck","reference":null,"description":null,"satoshis":1000,"expiresAt":"2026-11-22T08:48:56.767571Z","paymentReceivedAt":"2026-11-21T09:00:00.000000Z","refundTo":null,"refundedAt":null,"state":"paid","createdAt":"2026-11-21T08:48:56.767571Z","updatedAt":"2026-11-21T09:00:00Z","deletedAt":null}"#,
        ),
    ] {
        assert_eq!(wire(&invoice, time(now)), expected);
    }
}

#[test]
fn the_state_of_an_invoice_depends_on_the_time() {
    let paid_at = time("2026-11-21T09:00:00.25Z");
    let paid = Invoice { payment_received_at: Some(paid_at), ..invoice() };
    let (pending, expired) = (InvoiceState::Pending, InvoiceState::Expired);
    for (invoice, now, state, updated_at) in [
        (invoice(), CREATED_AT, pending, CREATED_AT),
        (invoice(), "1970-01-01T00:00:00Z", pending, CREATED_AT),
        (invoice(), "2026-11-22T08:48:56.767570Z", pending, CREATED_AT),
        (invoice(), EXPIRES_AT, expired, EXPIRES_AT),
        (invoice(), "2026-11-22T08:48:56.767572Z", expired, EXPIRES_AT),
        (invoice(), "9999-01-01T00:00:00Z", expired, EXPIRES_AT),
        (paid.clone().as_created(), CREATED_AT, pending, CREATED_AT),
        (paid.clone(), CREATED_AT, InvoiceState::Paid, "2026-11-21T09:00:00.25Z"),
        (paid.clone(), "2026-11-21T09:00:00.25Z", InvoiceState::Paid, "2026-11-21T09:00:00.25Z"),
        (paid, "9999-01-01T00:00:00Z", InvoiceState::Paid, "2026-11-21T09:00:00.25Z"),
    ] {
        let now = time(now);
        let updated_at = time(updated_at);
        assert_eq!((invoice.state(now), invoice.updated_at(now)), (state, updated_at), "{now}");
        let written = format!(
            r#""state":"{state}","createdAt":"{CREATED_AT}","updatedAt":"{}","deletedAt":null}}"#,
            whole_seconds(updated_at)
        );
        assert!(wire(&invoice, now).ends_with(&written), "{now}");
    }
}

#[test]
fn states_are_known_by_their_names() {
    for (name, state) in [
        ("pending", InvoiceState::Pending),
        ("paid", InvoiceState::Paid),
        ("expired", InvoiceState::Expired),
    ] {
        assert_eq!(name.parse(), Ok(state));
        assert_eq!((state.name(), state.to_string().as_str()), (name, name));
    }
    for name in ["", "Paid", "paid ", "deleted"] {
        let error = name.parse::<InvoiceState>().unwrap_err();
        assert_eq!(error.to_string(), "must be pending, paid or expired");
    }
}

#[tokio::test]
async fn a_new_invoice_is_written_with_its_id_and_times() {
    let place = Place::new();
    let wallet = place.open().await;
    let draft = InvoiceDraft {
        description: Some("coffee".to_owned()),
        expires_at: Some(time("2126-11-21T08:48:56Z")),
        ..draft(1)
    };
    let invoice = wallet.create_invoice(draft, None).await.unwrap();
    let (id, created_at) = (invoice.id, invoice.created_at);
    let updated_at = whole_seconds(created_at);
    let expected = format!(
        r#"{{"id":"{id}","reference":null,"description":"coffee","satoshis":1,"expiresAt":"2126-11-21T08:48:56.000000Z","paymentReceivedAt":null,"refundTo":null,"refundedAt":null,"state":"pending","createdAt":"{created_at}","updatedAt":"{updated_at}","deletedAt":null}}"#
    );
    let found = wallet.invoice(id.as_str()).await.unwrap();
    assert_eq!(wire(&found, wallet.now()), expected);
}

#[tokio::test]
async fn a_user_is_written_as_the_specification_shows_it() {
    let place = Place::new();
    let wallet = place.open().await;
    let full = UserDraft {
        name: "Ada \"L\"".to_owned(),
        email: "ada@example.com".to_owned(),
        avatar: "https://example.com/a.png".to_owned(),
        address: "1 Road\nTown".to_owned(),
        phone_number: "+1".to_owned(),
    };
    for (details, expected) in [
        (
            user_named("Ada"),
            r#"{"id":1,"name":"Ada","email":"","avatar":"","address":"","phoneNumber":"","extendedData":{"pki":"PKI"}}"#,
        ),
        (
            full,
            r#"{"id":2,"name":"Ada \"L\"","email":"ada@example.com","avatar":"https://example.com/a.png","address":"1 Road\nTown","phoneNumber":"+1","extendedData":{"pki":"PKI"}}"#,
        ),
    ] {
        let user = wallet.create_user(details, None).await.unwrap();
        let pki = user.pki.to_string();
        assert!(pki.len() == 66 && (pki.starts_with("02") || pki.starts_with("03")), "{pki}");
        let written = user.to_json();
        assert_eq!(written, expected.replace("PKI", &pki));
    }
}
