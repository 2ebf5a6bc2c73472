//! Bytes as a payment in any dialect. If they are read, what is written from them is read as the
//! same.

#![no_main]

use bsv_invoicing::dpp::{
    Acknowledgement, Dialect, MAX_REFUND_TO_LEN, Payment, read_posted_transaction,
};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

fuzz_target!(|bytes: &[u8]| {
    check_echo(bytes);
    check_posted(bytes);
    let payment = match Payment::from_json(bytes) {
        Ok(payment) => payment,
        Err(error) => return check_words(&error.to_string()),
    };
    let refund_to = payment.refund_to.as_deref();
    assert!(refund_to.is_none_or(|to| (1..=MAX_REFUND_TO_LEN).contains(&to.chars().count())));
    assert_eq!(Payment::from_json(write(&payment).to_string().as_bytes()), Ok(payment));
});

fn write(payment: &Payment) -> Value {
    let Payment { dialect, transaction, memo, refund_to, reference } = payment;
    let hex: String = transaction.iter().map(|byte| format!("{byte:02x}")).collect();
    match dialect {
        Dialect::GoDpp => json!({
            "rawTx": hex, "memo": memo, "refundTo": refund_to,
            "merchantData": { "extendedData": { "paymentReference": reference } },
        }),
        Dialect::Brc => json!({
            "modeId": "ef63d9775da5", "mode": { "transactions": [hex] },
            "memo": memo, "originator": { "return_address": refund_to },
        }),
        Dialect::Bip270 => json!({
            "transaction": hex, "memo": memo, "refundTo": refund_to, "merchantData": reference,
        }),
    }
}

/// A transaction that is posted without a message is the same in digits and in JSON.
fn check_posted(bytes: &[u8]) {
    let transaction = match read_posted_transaction(bytes) {
        Ok(transaction) if transaction.is_empty() => return,
        Ok(transaction) => transaction,
        Err(error) => return check_words(&error.to_string()),
    };
    let hex: String = transaction.iter().map(|byte| format!("{byte:02x}")).collect();
    let json = json!({ "rawTx": hex }).to_string();
    for text in [hex, json] {
        assert_eq!(read_posted_transaction(text.as_bytes()), Ok(transaction.clone()));
    }
}

/// A refusal repeats what was posted, if that is JSON.
fn check_echo(posted: &[u8]) {
    let refusal = Acknowledgement::bip270_refusal("no", posted);
    // `serde_json` refuses numbers beyond its range.
    if let Ok(posted) = serde_json::from_slice::<Value>(posted) {
        let refusal: Value = serde_json::from_slice(&refusal).unwrap();
        assert_eq!(refusal, json!({ "payment": posted, "memo": "no", "error": 1 }));
    }
}

fn check_words(words: &str) {
    assert!(words.len() < 2000 && !words.contains(char::is_control), "{words}");
}
