//! Properties of every body and every text, tested with random ones.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

use bsv_invoicing::invoices::{
    BodyError, MAX_DESCRIPTION_LEN, MAX_NAME_LEN, MAX_REFERENCE_LEN, MAX_SATOSHIS,
    MAX_USER_FIELD_LEN,
};
use bsv_invoicing::{InvoiceDraft, Timestamp, UserDraft};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::Value;
use serde_json::value::RawValue;

/// Values of members. Many of them are valid.
fn value() -> impl Strategy<Value = String> {
    let texts = prop_oneof!["\\PC{0,20}", "[a-c@]{0,4}", "[a€😀]{120,136}", "[aé]{1020,1030}"];
    let texts = texts.prop_map(|text| Value::from(text).to_string());
    let numbers = prop_oneof![
        any::<u64>().prop_map(|number| number.to_string()),
        any::<i128>().prop_map(|number| number.to_string()),
        any::<f64>().prop_map(|number| Value::from(number).to_string()),
        (0..=2_u64).prop_map(|number| (MAX_SATOSHIS - 1 + number).to_string()),
        (0..5_u8).prop_map(|number| number.to_string()),
    ];
    let times = "20[0-9]{2}-[01][0-9]-[0-3][0-9]T[012][0-9]:[0-6][0-9]:[0-6][0-9](\\.[0-9]{0,10})?(Z|[+-][0-2][0-9]:[0-6][0-9])";
    const OTHERS: [&str; 6] =
        ["null", "true", "[]", "{}", "\"\\ud800\"", "{\"name\":\"x\",\"satoshis\":1}"];
    prop_oneof![
        3 => texts,
        3 => numbers,
        1 => times.prop_map(|time| format!("\"{time}\"")),
        1 => select(&OTHERS[..]).prop_map(str::to_owned),
    ]
}

/// Objects with known members and others.
fn object() -> impl Strategy<Value = String> {
    const NAMES: [&str; 12] = [
        "satoshis",
        "description",
        "reference",
        "expiresAt",
        "name",
        "email",
        "avatar",
        "address",
        "phoneNumber",
        "s\\u0061toshis",
        "",
        "other",
    ];
    vec((select(&NAMES[..]), value()), 0..8).prop_map(|members| {
        let members: Vec<_> =
            members.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
        format!("{{{}}}", members.join(","))
    })
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => object().prop_map(String::into_bytes),
        1 => vec(any::<u8>(), 0..60),
        1 => "[{}\\[\\]\",:0-9a-e\\\\ ]{0,40}".prop_map(String::into_bytes),
        1 => (object(), any::<prop::sample::Index>(), any::<u8>()).prop_map(|(object, at, byte)| {
            let mut bytes = object.into_bytes();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            bytes
        }),
    ]
}

fn is_within(text: &str, max: usize) -> bool {
    text.chars().count() <= max
}

/// The body as another parser reads it. That parser refuses lone surrogates and huge numbers even
/// in members that are not used.
fn reread(body: &[u8]) -> Option<Value> {
    serde_json::from_slice::<&RawValue>(body).unwrap();
    serde_json::from_slice(body).ok()
}

/// The value that another parser reads of a member that occurs once.
fn member<'a>(body: &'a Value, name: &str) -> &'a Value {
    body.get(name).unwrap_or(&Value::Null)
}

fn assert_has_reason(error: &BodyError) {
    match error {
        BodyError::Malformed(reason) => assert!(!reason.is_empty()),
        BodyError::Invalid(errors) => assert!(!errors.is_empty() && !errors.to_string().is_empty()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn invoices_that_are_read_are_within_limits(body in body(), now: u64) {
        match InvoiceDraft::from_json(&body, Timestamp::from_micros(now)) {
            Ok(draft) => {
                prop_assert!((1..=MAX_SATOSHIS).contains(&draft.satoshis));
                let Some(body) = reread(&body) else { return Ok(()) };
                prop_assert_eq!(member(&body, "satoshis").as_u64(), Some(draft.satoshis));
                for (name, text, max) in [
                    ("description", &draft.description, MAX_DESCRIPTION_LEN),
                    ("reference", &draft.reference, MAX_REFERENCE_LEN),
                ] {
                    prop_assert_eq!(member(&body, name).as_str(), text.as_deref());
                    prop_assert!(text.as_ref().is_none_or(|text| is_within(text, max)));
                }
                let expires_at = member(&body, "expiresAt").as_str();
                prop_assert_eq!(expires_at.map(|text| text.parse().unwrap()), draft.expires_at);
            }
            Err(error) => assert_has_reason(&error),
        }
    }

    #[test]
    fn users_that_are_read_are_within_limits(body in body()) {
        match UserDraft::from_json(&body) {
            Ok(UserDraft { name, email, avatar, address, phone_number }) => {
                let Some(body) = reread(&body) else { return Ok(()) };
                prop_assert!(!name.trim().is_empty());
                prop_assert!(email.is_empty() || email.matches('@').count() == 1);
                for (member_name, text, max) in [
                    ("name", name, MAX_NAME_LEN),
                    ("email", email, MAX_USER_FIELD_LEN),
                    ("avatar", avatar, MAX_USER_FIELD_LEN),
                    ("address", address, MAX_USER_FIELD_LEN),
                    ("phoneNumber", phone_number, MAX_USER_FIELD_LEN),
                ] {
                    prop_assert!(is_within(&text, max));
                    prop_assert_eq!(member(&body, member_name).as_str().unwrap_or_default(), text);
                }
            }
            Err(error) => assert_has_reason(&error),
        }
    }

    #[test]
    fn a_moment_is_read_as_it_was_written(micros: u64) {
        let time = Timestamp::from_micros(micros % (Timestamp::MAX.as_micros() + 1));
        let text = time.to_string();
        prop_assert_eq!(text.len(), 27);
        prop_assert_eq!(text.parse(), Ok(time));
        let whole = Timestamp::from_micros(time.as_micros() / 1_000_000 * 1_000_000);
        prop_assert_eq!(format!("{}Z", &text[..19]).parse(), Ok(whole));
        prop_assert_eq!(serde_json::to_string(&time).unwrap(), format!("\"{text}\""));
    }

    #[test]
    fn moments_are_in_the_order_of_their_texts(a in 0..=Timestamp::MAX.as_micros(), b in 0..=Timestamp::MAX.as_micros()) {
        let [a, b] = [a, b].map(Timestamp::from_micros);
        prop_assert_eq!(a.cmp(&b), a.to_string().cmp(&b.to_string()));
    }

    #[test]
    fn a_text_is_a_moment_or_not(text in prop_oneof![
        "\\PC{0,40}",
        "[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]{0,10})?([Zz]|[+-][0-9]{2}:?[0-9]{2})?",
        "(1970|2026|9999)-(0[1-9]|1[0-2])-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9](\\.[0-9]{1,9})?(Z|[+-][0-2][0-9]:[0-5][0-9])",
    ]) {
        if let Ok(time) = text.parse::<Timestamp>() {
            prop_assert!(time <= Timestamp::MAX);
            prop_assert_eq!(time.to_string().parse(), Ok(time));
            let is_leap_second = text[17..].starts_with("60");
            let is_within_bounds = time != Timestamp::MAX && time != Timestamp::from_micros(0);
            if let Some(local) = text.strip_suffix('Z') && !is_leap_second && is_within_bounds {
                prop_assert_eq!(&time.to_string()[..19], &local[..19].to_uppercase());
            }
        }
    }
}
