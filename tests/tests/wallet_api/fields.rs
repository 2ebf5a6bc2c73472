//! Every field of a request, with values of every kind, valid and invalid.

use serde_json::{Value, json};

use crate::wallet_api::owner::check_errors;
use crate::wallet_api::times::{HOUR, now, text};
use crate::wallet_api::{INVOICES, Owner, USERS};

const NO_INTEGER: &str = "must be an integer";
const NEGATIVE: &str = "must not be negative";
const OUT_OF_RANGE: &str = "must be from 1 to 2100000000000000";
const NO_TIME: &str = "must be a time in RFC 3339 form, such as 2026-11-21T08:48:56Z";
const PAST: &str = "must be in the future";
const NO_STRING: &str = "must be a string";
const NO_UNICODE: &str = "must consist of Unicode characters";
const TWICE: &str = "must be there only once";

/// Checks that `POST path` is refused for these fields.
fn refuse(owner: &Owner, path: &str, body: &str, errors: &[(&str, &str)]) {
    let shown: String = body.chars().take(300).collect();
    check_errors(&owner.post(path, body), "invalid-fields", errors, &shown);
}

#[test]
fn an_amount_is_a_whole_number_of_satoshis_that_can_exist() {
    let owner = Owner::start();
    let body = |amount: &str| format!(r#"{{"satoshis":{amount}}}"#);
    for (amount, message) in [
        ("\"1\"", NO_INTEGER),
        ("\"\"", NO_INTEGER),
        ("1.0", NO_INTEGER),
        ("1.5", NO_INTEGER),
        ("1e3", NO_INTEGER),
        ("1E+3", NO_INTEGER),
        ("1e-7", NO_INTEGER),
        ("1e400", NO_INTEGER),
        ("-1.0", NO_INTEGER),
        ("true", NO_INTEGER),
        ("false", NO_INTEGER),
        ("[]", NO_INTEGER),
        ("[1]", NO_INTEGER),
        ("{}", NO_INTEGER),
        ("{\"satoshis\":1}", NO_INTEGER),
        ("null", "is required"),
        ("0", OUT_OF_RANGE),
        ("-0", OUT_OF_RANGE),
        ("-1", NEGATIVE),
        ("-9223372036854775809", NEGATIVE),
        ("2100000000000001", OUT_OF_RANGE),
        ("9007199254740993", OUT_OF_RANGE),
        ("18446744073709551615", OUT_OF_RANGE),
        ("18446744073709551616", OUT_OF_RANGE),
        ("18446744073709551617", OUT_OF_RANGE),
        (&"9".repeat(1000), OUT_OF_RANGE),
        ("1,\"satoshis\":1", TWICE),
        ("null,\"satoshis\":1", TWICE),
    ] {
        refuse(&owner, INVOICES, &body(amount), &[("satoshis", message)]);
    }
    refuse(&owner, INVOICES, "{}", &[("satoshis", "is required")]);
    let other_name = [("Satoshis", "is not known here"), ("satoshis", "is required")];
    refuse(&owner, INVOICES, r#"{"Satoshis":1}"#, &other_name);
    for amount in ["1", "2", "546", "2099999999999999", "2100000000000000"] {
        let created = owner.create(INVOICES, body(amount));
        assert!(created.contains(&format!(",\"satoshis\":{amount},")), "{created}");
    }
    owner.check_alive(5);
}

#[test]
fn a_time_is_of_rfc_3339_and_in_the_future() {
    let owner = Owner::start();
    let body = |time: &str| format!(r#"{{"satoshis":1,"expiresAt":{time}}}"#);
    let yesterday = text(now() - 24 * HOUR);
    for (time, message) in [
        ("1", NO_STRING),
        ("1795250936", NO_STRING),
        ("true", NO_STRING),
        ("[]", NO_STRING),
        ("{}", NO_STRING),
        (r#""""#, NO_TIME),
        (r#""tomorrow""#, NO_TIME),
        (r#""1795250936""#, NO_TIME),
        (r#""2040-01-01""#, NO_TIME),
        (r#""2040-01-01T00:00:00""#, NO_TIME),
        (r#""2040-01-01T00:00:00.123456""#, NO_TIME),
        (r#""2040-01-01 00:00:00Z""#, NO_TIME),
        (r#""2040-01-01T00:00Z""#, NO_TIME),
        (r#""2040-01-01T24:00:00Z""#, NO_TIME),
        (r#""2040-01-01T00:60:00Z""#, NO_TIME),
        (r#""2040-01-01T00:00:61Z""#, NO_TIME),
        (r#""2040-02-30T00:00:00Z""#, NO_TIME),
        (r#""2041-02-29T00:00:00Z""#, NO_TIME),
        (r#""2040-13-01T00:00:00Z""#, NO_TIME),
        (r#""2040-00-01T00:00:00Z""#, NO_TIME),
        (r#""2040-01-01T00:00:00+0530""#, NO_TIME),
        (r#""2040-01-01T00:00:00+05""#, NO_TIME),
        (r#""2040-01-01T00:00:00 Z""#, NO_TIME),
        (r#"" 2040-01-01T00:00:00Z""#, NO_TIME),
        (r#""2040-01-01T00:00:00Z\n""#, NO_TIME),
        (r#""2040-01-01T00:00:00Z\u0000""#, NO_TIME),
        (r#""12040-01-01T00:00:00Z""#, NO_TIME),
        (r#""+12040-01-01T00:00:00Z""#, NO_TIME),
        (r#""٢٠٤٠-01-01T00:00:00Z""#, NO_TIME),
        (r#""\ud8002040-01-01T00:00:00Z""#, NO_UNICODE),
        (r#""1970-01-01T00:00:00Z""#, PAST),
        (r#""2016-12-31T23:59:60Z""#, PAST),
        (r#""2009-01-03T18:15:05.999999-12:00""#, PAST),
        (&format!("\"{yesterday}\""), PAST),
        (r#""2040-01-01T00:00:00Z","expiresAt":"2040-01-01T00:00:00Z""#, TWICE),
    ] {
        refuse(&owner, INVOICES, &body(time), &[("expiresAt", message)]);
    }
    for before_1970 in [r#""1969-12-31T23:59:59Z""#, r#""0001-01-01T00:00:00Z""#] {
        let reply = owner.post(INVOICES, body(before_1970));
        let problem = crate::wallet_api::check_problem(&reply, 400, "invalid-fields", before_1970);
        assert_eq!(problem["errors"].as_object().unwrap().len(), 1);
        assert!(problem["errors"]["expiresAt"].is_array());
    }
    for (time, utc) in [
        ("2040-01-01T00:00:00Z", "2040-01-01T00:00:00.000000Z"),
        ("2040-01-01t00:00:00.5z", "2040-01-01T00:00:00.500000Z"),
        ("2040-02-29T12:34:56.123456Z", "2040-02-29T12:34:56.123456Z"),
        ("2040-02-29T12:34:56.123456789Z", "2040-02-29T12:34:56.123456Z"),
        ("2040-01-01T00:00:00+05:30", "2039-12-31T18:30:00.000000Z"),
        ("2040-12-31T23:00:00-11:00", "2041-01-01T10:00:00.000000Z"),
        ("2040-01-01T00:00:00-00:00", "2040-01-01T00:00:00.000000Z"),
        ("2040-01-01T00:00:00+23:59", "2039-12-31T00:01:00.000000Z"),
        ("2040-12-31T23:59:60Z", "2040-12-31T23:59:59.000000Z"),
        ("9999-01-01T00:00:00Z", "9999-01-01T00:00:00.000000Z"),
    ] {
        let created = owner.create(INVOICES, body(&format!("\"{time}\"")));
        assert!(created.contains(&format!(",\"expiresAt\":\"{utc}\",")), "{time}: {created}");
        assert!(created.contains(",\"state\":\"pending\","), "{time}: {created}");
    }
    owner.check_alive(10);
}

/// The last time that can be stored is in the evening before the last day of RFC 3339.
#[test]
fn a_time_that_cannot_be_stored_is_refused_and_the_last_one_that_can_is_named() {
    const LAST: &str = "9999-12-30T21:59:59.999999Z";
    let owner = Owner::start();
    let too_late = format!("must not be after {LAST}, the last time that can be stored");
    for time in [
        "9999-12-30T22:00:00Z",
        "9999-12-30T21:59:59.999999-00:01",
        "9999-12-31T00:00:00Z",
        "9999-12-31T23:59:59-12:00",
    ] {
        let body = format!(r#"{{"satoshis":1,"expiresAt":"{time}"}}"#);
        refuse(&owner, INVOICES, &body, &[("expiresAt", &too_late)]);
    }
    let body = format!(r#"{{"satoshis":1,"expiresAt":"{LAST}"}}"#);
    let created = owner.create(INVOICES, body);
    assert!(created.contains(&format!(",\"expiresAt\":\"{LAST}\",")), "{created}");
}

/// The text fields: the route, the start of a valid body, the field, and the length of its longest
/// text.
const TEXTS: [(&str, &str, &str, usize); 7] = [
    (INVOICES, "\"satoshis\":1", "description", 1024),
    (INVOICES, "\"satoshis\":1", "reference", 128),
    (USERS, "\"createdAt\":1", "name", 256),
    (USERS, "\"name\":\"me\"", "email", 1024),
    (USERS, "\"name\":\"me\"", "avatar", 1024),
    (USERS, "\"name\":\"me\"", "address", 1024),
    (USERS, "\"name\":\"me\"", "phoneNumber", 1024),
];

#[test]
fn a_text_is_a_string_of_some_characters_at_most() {
    let owner = Owner::start();
    for (path, right, field, max) in TEXTS {
        let body = |value: &str| format!("{{{right},\"{field}\":{value}}}");
        for (value, message) in [
            ("1", NO_STRING),
            ("1.5", NO_STRING),
            ("true", NO_STRING),
            ("[]", NO_STRING),
            ("[\"x@y\"]", NO_STRING),
            ("{}", NO_STRING),
            (r#""x@y\ud800""#, NO_UNICODE),
            (r#""\udc00x@y""#, NO_UNICODE),
            (r#""\udc00\ud800x@y""#, NO_UNICODE),
            (&format!("\"x@y\",\"{field}\":\"x@y\""), TWICE),
            (&format!("null,\"\\u{:04x}{}\":null", field.as_bytes()[0], &field[1..]), TWICE),
        ] {
            refuse(&owner, path, &body(value), &[(field, message)]);
        }
        for unit in ["a", "é", "€", "😀"] {
            let longest = format!("x@{}", unit.repeat(max - 2));
            let reply = owner.create(path, body(&format!("\"{longest}\"")));
            let created: Value = serde_json::from_str(&reply).unwrap();
            assert_eq!(created[field], longest, "{field}");
            let too_long = body(&format!("\"{longest}{unit}\""));
            refuse(
                &owner,
                path,
                &too_long,
                &[(field, &format!("must have at most {max} characters"))],
            );
        }
    }
}

#[test]
fn every_character_comes_back_as_it_was_sent() {
    let owner = Owner::start();
    let controls: String = (0..=0x9f_u8).map(char::from).filter(|c| *c != '@').collect();
    for text in [
        controls.as_str(),
        "\0",
        "\"\\/",
        "\u{feff}a\u{202e}b\u{2028}c",
        "\u{fffe}\u{ffff}\u{10ffff}",
        "e\u{301}é",
        "<script>alert(1)</script>",
        "' OR 1=1; --",
        "   ",
    ] {
        for (path, right, field, max) in TEXTS {
            let is_name_of_nothing = field == "name" && text.trim().is_empty();
            if text.chars().count() + 2 > max || is_name_of_nothing {
                continue;
            }
            let text = if field == "email" { format!("{text}@x") } else { text.to_owned() };
            let right: Value = serde_json::from_str(&format!("{{{right}}}")).unwrap();
            let mut body = right;
            body[field] = json!(text);
            let reply = owner.post(path, body.to_string());
            let created = crate::wallet_api::json(&reply);
            assert_eq!(created[field], text, "{field}");
            let read = owner.text(reply.header("location").unwrap());
            assert_eq!(read, reply.body, "{field}");
        }
    }
    let escaped = r#"{"satoshis":1,"description":"\ud83d\ude00\u0041\u0000\/\b"}"#;
    let created = owner.create(INVOICES, escaped);
    assert!(created.contains("\"description\":\"😀A\\u0000/\\b\","), "{created}");
}

#[test]
fn a_user_has_a_name_and_may_have_an_address_for_mail() {
    let owner = Owner::start();
    let is_empty = [("name", "must not be empty")];
    for (body, errors) in [
        ("{}", [("name", "is required")]),
        (r#"{"name":null}"#, [("name", "is required")]),
        (r#"{"name":""}"#, is_empty),
        (r#"{"name":" \t\n\u00a0"}"#, is_empty),
    ] {
        refuse(&owner, USERS, body, &errors);
    }
    let other_name = [("Name", "is not known here"), ("name", "is required")];
    refuse(&owner, USERS, r#"{"Name":"me"}"#, &other_name);
    for email in ["x", "@", "x@", "@x", "x@y@z", "@@", " "] {
        let body = json!({"name": "me", "email": email}).to_string();
        let message = "must have one @, with something on both sides";
        refuse(&owner, USERS, &body, &[("email", message)]);
    }
    assert!(owner.create(USERS, r#"{"name":"me"}"#).starts_with("{\"id\":1,"));
}

#[test]
fn all_that_is_wrong_is_told_at_once() {
    let owner = Owner::start();
    let long = "x".repeat(1025);
    let invoice = json!({
        "satoshis": 0, "description": long, "reference": long, "expiresAt": "2020-01-01T00:00:00Z",
    });
    let invoice_errors = [
        ("description", "must have at most 1024 characters"),
        ("expiresAt", PAST),
        ("reference", "must have at most 128 characters"),
        ("satoshis", OUT_OF_RANGE),
    ];
    refuse(&owner, INVOICES, &invoice.to_string(), &invoice_errors);
    let types = r#"{"satoshis":"1","description":1,"reference":[],"expiresAt":"soon"}"#;
    let type_errors = [
        ("description", NO_STRING),
        ("expiresAt", NO_TIME),
        ("reference", NO_STRING),
        ("satoshis", NO_INTEGER),
    ];
    refuse(&owner, INVOICES, types, &type_errors);
    let user = json!({
        "name": long, "email": "x", "avatar": long, "address": long, "phoneNumber": true,
    });
    let user_errors = [
        ("address", "must have at most 1024 characters"),
        ("avatar", "must have at most 1024 characters"),
        ("email", "must have one @, with something on both sides"),
        ("name", "must have at most 256 characters"),
        ("phoneNumber", NO_STRING),
    ];
    refuse(&owner, USERS, &user.to_string(), &user_errors);
    owner.check_alive(0);
    assert_eq!(owner.get(&format!("{USERS}/1")).status, 404);
}

#[test]
fn members_that_are_not_known_are_refused_by_name() {
    let owner = Owner::start();
    let body = r#"{"id":"mine","x":{"satoshis":[2]},"satoshis":3,"Description":"no"}"#;
    let unknown = ["Description", "id", "x"].map(|name| (name, "is not known here"));
    check_errors(&owner.post(INVOICES, body), "invalid-fields", &unknown, body);
    let body = r#"{"name":"Ada","id":7,"extendedData":{"pki":"x"}}"#;
    let unknown = ["extendedData", "id"].map(|name| (name, "is not known here"));
    check_errors(&owner.post(USERS, body), "invalid-fields", &unknown, body);
    let body = r#"{"payToURL":"http://127.0.0.1:1/x","max":7}"#;
    let unknown = [("max", "is not known here")];
    check_errors(&owner.post("/api/v1/pay", body), "invalid-fields", &unknown, body);
    owner.check_alive(0);
}

#[test]
fn members_of_the_older_wallet_are_ignored() {
    let owner = Owner::start();
    let body = r#"{"satoshis":3,"spvRequired":true,"createdAt":"1999-01-01T00:00:00Z"}"#;
    let reply = owner.post(INVOICES, body);
    assert_eq!(reply.status, 201, "{}", reply.body);
    let created: Value = serde_json::from_str(&reply.body).unwrap();
    assert_ne!(created["createdAt"], "1999-01-01T00:00:00Z");
    owner.check_alive(1);
}
