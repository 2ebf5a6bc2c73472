use std::collections::BTreeSet;

use crate::support::{Place, assert_unknown, draft};

#[tokio::test]
async fn ids_tell_nothing_about_their_numbers() {
    let place = Place::new();
    let wallet = place.open().await;
    let mut ids = Vec::new();
    for number in 1..=40 {
        let invoice = wallet.create_invoice(draft(1), None).await.unwrap();
        assert_eq!(invoice.number, number);
        assert_eq!(wallet.invoice_number(invoice.id.as_str()).await.unwrap(), number);
        ids.push(invoice.id.to_string());
    }
    assert!(ids.iter().all(|id| id.len() == 12 && id.bytes().all(|c| c.is_ascii_alphanumeric())));
    assert!(!ids.is_sorted() && !ids.iter().rev().is_sorted());
    for part in [0..6, 6..12] {
        let parts: BTreeSet<_> = ids.iter().map(|id| &id[part.clone()]).collect();
        assert_eq!(parts.len(), ids.len());
    }
    let shared = ids.windows(2).filter(|pair| pair[0][..3] == pair[1][..3]).count();
    assert!(shared < 3, "{ids:?}");
}

#[tokio::test]
async fn ids_that_were_not_handed_out_are_unknown() {
    let place = Place::new();
    let wallet = place.open().await;
    let invoice = wallet.create_invoice(draft(1), None).await.unwrap();
    let second = wallet.create_invoice(draft(2), None).await.unwrap();
    let (id, second) = (invoice.id.as_str(), second.id.as_str());
    let other_wallet = Place::new().open().await.create_invoice(draft(1), None).await.unwrap();
    let swap_case =
        |c: char| if c.is_lowercase() { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() };
    let other_last = if id.ends_with('0') { "1" } else { "0" };
    for unknown in [
        "",
        "1",
        "000000000000",
        "zzzzzzzzzzzz",
        &format!("{}{}", &id[..6], &second[6..]),
        &format!("{}{}", &second[..6], &id[6..]),
        &format!("{}{other_last}", &id[..11]),
        &format!("{}000000", &id[..6]),
        &id.chars().map(swap_case).collect::<String>(),
        &id.chars().rev().collect::<String>(),
        &id[..11],
        &format!("{id}0"),
        &format!("{id} "),
        &format!("{}é", &id[..10]),
        other_wallet.id.as_str(),
    ] {
        assert_unknown(unknown, wallet.invoice(unknown).await);
        assert_unknown(unknown, wallet.invoice_number(unknown).await);
        assert_unknown(unknown, wallet.delete_invoice(unknown).await);
    }
    assert_eq!(wallet.invoice(id).await.unwrap(), invoice);
}

#[tokio::test]
async fn a_deleted_invoice_is_unknown_but_keeps_its_number() {
    let place = Place::new();
    let wallet = place.open().await;
    let deleted = wallet.create_invoice(draft(1), None).await.unwrap();
    let id = deleted.id.as_str();
    wallet.delete_invoice(id).await.unwrap();
    drop(wallet);
    let wallet = place.open().await;
    assert_unknown(id, wallet.invoice(id).await);
    assert_unknown(id, wallet.delete_invoice(id).await);
    assert_eq!(wallet.invoice_number(id).await.unwrap(), 1);
    assert_eq!(wallet.create_invoice(draft(1), None).await.unwrap().number, 2);
}
