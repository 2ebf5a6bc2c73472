use bsv_invoicing::ledger::Refusal;
use bsv_invoicing::{Error, InvoiceDraft, UserDraft};

use crate::support::{Place, draft, field_errors, key, user_named};

const SATOSHIS: &str = "satoshis must be from 1 to 2100000000000000";

fn invoice_of(description: &str, reference: &str) -> InvoiceDraft {
    InvoiceDraft {
        description: Some(description.to_owned()),
        reference: Some(reference.to_owned()),
        ..draft(1)
    }
}

fn invoices() -> Vec<(InvoiceDraft, &'static str)> {
    const DESCRIPTION: &str = "description must have at most 1024 characters";
    const REFERENCE: &str = "reference must have at most 128 characters";
    let mut invoices = vec![
        (draft(0), SATOSHIS),
        (draft(1), ""),
        (draft(2_100_000_000_000_000), ""),
        (draft(2_100_000_000_000_001), SATOSHIS),
        (draft(u64::MAX), SATOSHIS),
        (invoice_of("", ""), ""),
    ];
    for character in ["a", "é", "€", "😀", "\0"] {
        let text = |len| character.repeat(len);
        invoices.extend([
            (invoice_of(&text(1024), ""), ""),
            (invoice_of(&text(1025), ""), DESCRIPTION),
            (invoice_of("", &text(128)), ""),
            (invoice_of("", &text(129)), REFERENCE),
        ]);
    }
    let all = InvoiceDraft { satoshis: 0, ..invoice_of(&"a".repeat(1025), &"a".repeat(129)) };
    invoices.push((
        all,
        "description must have at most 1024 characters, reference must have at most 128 \
         characters, satoshis must be from 1 to 2100000000000000",
    ));
    invoices
}

#[tokio::test]
async fn invoices_are_within_limits() {
    let place = Place::new();
    let wallet = place.open().await;
    let mut created = 0;
    for (draft, wrong) in invoices() {
        match wallet.create_invoice(draft.clone(), None).await {
            Ok(invoice) => {
                created += 1;
                assert_eq!((invoice.number, wrong), (created, ""), "{draft:?}");
                assert_eq!(
                    (invoice.satoshis, &invoice.description),
                    (draft.satoshis, &draft.description)
                );
                assert_eq!(wallet.invoice(invoice.id.as_str()).await.unwrap(), invoice);
            }
            Err(error) => assert_eq!(field_errors(error), wrong, "{draft:?}"),
        }
    }
    assert_eq!(wallet.events(0, 99).await.unwrap().len() as u64, created);
}

type Change = fn(&mut UserDraft, String);

/// An address as long as `text`.
fn set_email(user: &mut UserDraft, text: String) {
    user.email = "a@".chars().chain(text.chars().skip(2)).collect();
}

fn users() -> Vec<(UserDraft, &'static str)> {
    const EMAIL: &str = "email must have one @, with something on both sides";
    let emails = [
        ("a@b", ""),
        ("é@ü", ""),
        ("@", EMAIL),
        ("a@", EMAIL),
        ("@b", EMAIL),
        ("a", EMAIL),
        ("a@b@c", EMAIL),
        ("a@@b", EMAIL),
    ];
    let mut users: Vec<_> = emails
        .map(|(email, wrong)| (UserDraft { email: email.to_owned(), ..user_named("Ada") }, wrong))
        .into();
    users.extend(
        ["", " ", "\t\n", "\u{a0}"].map(|name| (user_named(name), "name must not be empty")),
    );
    let fields: [(Change, usize, &str); 5] = [
        (|user, text| user.name = text, 256, "name must have at most 256 characters"),
        (|user, text| user.avatar = text, 1024, "avatar must have at most 1024 characters"),
        (|user, text| user.address = text, 1024, "address must have at most 1024 characters"),
        (
            |user, text| user.phone_number = text,
            1024,
            "phoneNumber must have at most 1024 characters",
        ),
        (set_email, 1024, "email must have at most 1024 characters"),
    ];
    for (set, max, wrong) in fields {
        for character in ["b", "€", "😀"] {
            for (len, wrong) in [(max, ""), (max + 1, wrong)] {
                let mut user = user_named("Ada");
                set(&mut user, character.repeat(len));
                users.push((user, wrong));
            }
        }
    }
    let long = "a".repeat(1025);
    let all = UserDraft {
        name: long.clone(),
        email: long.clone(),
        avatar: long.clone(),
        address: long.clone(),
        phone_number: long,
    };
    users.push((
        all,
        "address must have at most 1024 characters, avatar must have at most 1024 characters, \
         email must have one @, with something on both sides, email must have at most 1024 \
         characters, name must have at most 256 characters, phoneNumber must have at most 1024 \
         characters",
    ));
    users
}

#[tokio::test]
async fn users_are_within_limits() {
    let place = Place::new();
    let wallet = place.open().await;
    let mut created = 0;
    for (details, wrong) in users() {
        match wallet.create_user(details.clone(), None).await {
            Ok(user) => {
                created += 1;
                assert_eq!((user.id, wrong), (created, ""), "{details:?}");
                assert_eq!(user.details, details);
                assert_eq!(wallet.user(user.id).await.unwrap(), user);
            }
            Err(error) => assert_eq!(field_errors(error), wrong, "{details:?}"),
        }
    }
    assert_eq!(wallet.events(0, 99).await.unwrap().len() as u64, created);
    for unknown in [0, created + 1, u64::MAX] {
        let error = wallet.user(unknown).await.unwrap_err();
        assert!(matches!(error, Error::UnknownUser(id) if id == unknown), "{error}");
    }
}

#[tokio::test]
async fn a_request_beyond_the_limits_does_not_use_its_idempotency_key() {
    let place = Place::new();
    let wallet = place.open().await;
    for satoshis in [0, u64::MAX] {
        let error = wallet.create_invoice(draft(satoshis), key("k", "wrong")).await.unwrap_err();
        assert_eq!(field_errors(error), SATOSHIS);
    }
    let error = wallet.create_user(user_named(""), key("k", "wrong")).await.unwrap_err();
    assert_eq!(field_errors(error), "name must not be empty");
    let invoice = wallet.create_invoice(draft(1), key("k", "right")).await.unwrap();
    assert_eq!(wallet.create_invoice(draft(1), key("k", "right")).await.unwrap(), invoice);
    wallet.create_user(user_named("Ada"), key("k", "right")).await.unwrap();
    let reused = wallet.create_invoice(draft(1), key("k", "wrong")).await.unwrap_err();
    assert!(matches!(reused, Error::Refused(Refusal::KeyReused)), "{reused}");
}
