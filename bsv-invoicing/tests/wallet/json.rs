use bsv_invoicing::invoices::BodyError;
use bsv_invoicing::{InvoiceDraft, Timestamp, UserDraft};

use crate::support::field_errors;

const NOW: &str = "2026-11-21T08:48:56Z";

fn invoice(json: &str) -> Result<InvoiceDraft, BodyError> {
    InvoiceDraft::from_json(json.as_bytes(), NOW.parse().unwrap())
}

fn user(json: &str) -> Result<UserDraft, BodyError> {
    UserDraft::from_json(json.as_bytes())
}

#[test]
fn satoshis_are_whole_numbers_within_bounds() {
    const NEGATIVE: &str = "satoshis must not be negative";
    const RANGE: &str = "satoshis must be from 1 to 2100000000000000";
    const INTEGER: &str = "satoshis must be an integer";
    const REQUIRED: &str = "satoshis is required";
    for (text, expected) in [
        ("1", Ok(1)),
        ("2100000000000000", Ok(2_100_000_000_000_000)),
        ("2100000000000001", Err(RANGE)),
        // These are 2^53 + 1, 2^64 - 1, 2^64 and 2^64 + 1. The last one must not become 1.
        ("9007199254740993", Err(RANGE)),
        ("18446744073709551615", Err(RANGE)),
        ("18446744073709551616", Err(RANGE)),
        ("18446744073709551617", Err(RANGE)),
        ("1000000000000000000000000000000000000000000", Err(RANGE)),
        ("0", Err(RANGE)),
        ("-0", Err(RANGE)),
        ("-1", Err(NEGATIVE)),
        ("-18446744073709551617", Err(NEGATIVE)),
        ("1.0", Err(INTEGER)),
        ("1.5", Err(INTEGER)),
        ("-1.5", Err(INTEGER)),
        ("1e3", Err(INTEGER)),
        ("1E3", Err(INTEGER)),
        ("1e+3", Err(INTEGER)),
        ("1e-3", Err(INTEGER)),
        ("1e999", Err(INTEGER)),
        ("\"1\"", Err(INTEGER)),
        ("\"\"", Err(INTEGER)),
        ("true", Err(INTEGER)),
        ("[1]", Err(INTEGER)),
        ("{\"satoshis\":1}", Err(INTEGER)),
        ("null", Err(REQUIRED)),
    ] {
        let read = invoice(&format!(r#"{{"satoshis": {text} }}"#));
        let read = read.map(|draft| draft.satoshis).map_err(field_errors);
        assert_eq!(read, expected.map_err(str::to_owned), "{text}");
    }
    assert_eq!(field_errors(invoice("{}").unwrap_err()), REQUIRED);
}

#[test]
fn texts_are_strings_or_null() {
    for (text, expected) in [
        (r#""a \"b\" \u20ac \ud83d\ude00 \u0000""#, Ok(Some("a \"b\" € 😀 \0"))),
        (r#""""#, Ok(Some(""))),
        ("null", Ok(None)),
        ("1", Err("must be a string")),
        ("false", Err("must be a string")),
        (r#"["a"]"#, Err("must be a string")),
        (r#"{"a": "b"}"#, Err("must be a string")),
        (r#""\ud83d""#, Err("must consist of Unicode characters")),
    ] {
        for (field, get) in [
            ("description", (|draft| draft.description) as fn(InvoiceDraft) -> Option<String>),
            ("reference", |draft| draft.reference),
        ] {
            let read = invoice(&format!(r#"{{"satoshis":1,"{field}":{text}}}"#));
            let expected = expected
                .map(|text| text.map(str::to_owned))
                .map_err(|wrong| format!("{field} {wrong}"));
            assert_eq!(read.map(get).map_err(field_errors), expected, "{text}");
        }
    }
}

#[test]
fn times_are_read_and_the_past_is_no_error_by_itself() {
    const FORM: &str = "expiresAt must be a time in RFC 3339 form, such as 2026-11-21T08:48:56Z";
    for (text, expected) in [
        ("null", Ok(None)),
        (r#""2026-11-22T08:48:56Z""#, Ok(Some("2026-11-22T08:48:56Z"))),
        (r#""2026-11-22T10:48:56.5+02:00""#, Ok(Some("2026-11-22T08:48:56.5Z"))),
        (r#""2026-11-21T08:48:56Z""#, Ok(Some(NOW))),
        (r#""1999-01-01T00:00:00Z""#, Ok(Some("1999-01-01T00:00:00Z"))),
        (r#""""#, Err(FORM)),
        (r#""tomorrow""#, Err(FORM)),
        (r#""2026-11-22""#, Err(FORM)),
        (r#""1969-12-31T23:59:59Z""#, Ok(Some("1970-01-01T00:00:00Z"))),
        ("1795250936", Err("expiresAt must be a string")),
    ] {
        let read = invoice(&format!(r#"{{"satoshis":1,"expiresAt":{text}}}"#));
        let expected = expected
            .map(|time| time.map(|time| time.parse::<Timestamp>().unwrap()))
            .map_err(str::to_owned);
        let read = read.map(|draft| draft.expires_at).map_err(field_errors);
        assert_eq!(read, expected, "{text}");
    }
}

#[test]
fn members_are_identified_by_their_names_alone() {
    let plain = InvoiceDraft { satoshis: 7, ..InvoiceDraft::default() };
    for json in [
        r#"{"satoshis":7}"#,
        " \n{ \"satoshis\" :\t7 } \r\n",
        r#"{"s\u0061toshis":7}"#,
        r#"{"satoshis":7,"spvRequired":true,"createdAt":[{}]}"#,
    ] {
        assert_eq!(invoice(json).unwrap(), plain, "{json}");
    }
    for (json, unknown) in [
        (r#"{"id":"x","satoshis":7,"paymentReceivedAt":[{}]}"#, &["id", "paymentReceivedAt"][..]),
        (r#"{"":null,"satoshis":7}"#, &[""]),
        (
            r#"{"SATOSHIS":4,"satoshi":2,"satoshis ":3,"satoshis":7}"#,
            &["SATOSHIS", "satoshi", "satoshis "],
        ),
        (r#"{"other":{"satoshis":1,"satoshis":2},"satoshis":7}"#, &["other"]),
        (r#"{"satoshis":7,"expires_at":"1999-01-01T00:00:00Z"}"#, &["expires_at"]),
    ] {
        let told: Vec<_> = unknown.iter().map(|name| format!("{name} is not known here")).collect();
        assert_eq!(field_errors(invoice(json).unwrap_err()), told.join(", "), "{json}");
    }
    for json in [
        r#"{"satoshis":7,"satoshis":7}"#,
        r#"{"satoshis":7,"s\u0061toshis":8}"#,
        r#"{"satoshis":null,"satoshis":7}"#,
    ] {
        let error = invoice(json).unwrap_err();
        assert_eq!(field_errors(error), "satoshis must be there only once", "{json}");
    }
}

#[test]
fn all_errors_of_an_invoice_are_reported_at_once() {
    let long = "é".repeat(1025);
    for (json, expected) in [
        (
            r#"{"satoshis":0,"description":1,"reference":true,"expiresAt":"1999-01-01T00:00:00Z"}"#,
            "description must be a string, expiresAt must be in the future, reference must be a \
             string, satoshis must be from 1 to 2100000000000000",
        ),
        (
            &format!(r#"{{"description":"{long}","reference":"{long}","expiresAt":"never"}}"#),
            "description must have at most 1024 characters, expiresAt must be a time in RFC 3339 \
             form, such as 2026-11-21T08:48:56Z, reference must have at most 128 characters, \
             satoshis is required",
        ),
        (
            r#"{"satoshis":"1","expiresAt":"2026-11-21T08:48:56Z"}"#,
            "expiresAt must be in the future, satoshis must be an integer",
        ),
        (
            r#"{"satoshis":"1","expiresAt":"2026-11-21T08:48:56.000001Z"}"#,
            "satoshis must be an integer",
        ),
    ] {
        assert_eq!(field_errors(invoice(json).unwrap_err()), expected, "{json}");
    }
}

#[test]
fn users_need_only_a_name() {
    let full = UserDraft {
        name: "Ada".to_owned(),
        email: "ada@example.com".to_owned(),
        avatar: "https://example.com/ada.png".to_owned(),
        address: "1 Road".to_owned(),
        phone_number: "+1".to_owned(),
    };
    let only_name = UserDraft { name: "Ada".to_owned(), ..UserDraft::default() };
    for (json, expected) in [
        (
            r#"{"name":"Ada","email":"ada@example.com","avatar":"https://example.com/ada.png",
                "address":"1 Road","phoneNumber":"+1"}"#,
            &full,
        ),
        (r#"{"name":"Ada"}"#, &only_name),
        (r#"{"name":"Ada","email":"","avatar":null,"address":"","phoneNumber":null}"#, &only_name),
        (r#"{"n\u0061me":"A\u0064a"}"#, &only_name),
    ] {
        assert_eq!(user(json).unwrap(), *expected, "{json}");
    }
    for (json, expected) in [
        ("{}", "name is required"),
        (r#"{"name":null}"#, "name is required"),
        (r#"{"name":5}"#, "name must be a string"),
        (r#"{"name":"  "}"#, "name must not be empty"),
        (r#"{"name":"Ada","name":"Ada"}"#, "name must be there only once"),
        (r#"{"name":"Ada","phone_number":"+1"}"#, "phone_number is not known here"),
        (
            r#"{"email":"a","avatar":1,"address":[],"phoneNumber":{}}"#,
            "address must be a string, avatar must be a string, email must have one @, with \
             something on both sides, name is required, phoneNumber must be a string",
        ),
    ] {
        assert_eq!(field_errors(user(json).unwrap_err()), expected, "{json}");
    }
}

#[test]
fn a_body_that_is_not_one_json_object_is_malformed() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for body in [
        &b""[..],
        b" ",
        b"null",
        b"7",
        b"[{\"satoshis\":7}]",
        b"\"{}\"",
        b"{\"satoshis\":7",
        b"{\"satoshis\":7}}",
        b"{\"satoshis\":7,}",
        b"{\"satoshis\":07}",
        b"{\"satoshis\":+7}",
        b"{\"satoshis\":NaN}",
        b"{'satoshis':7}",
        b"satoshis=7",
        b"\xef\xbb\xbf{\"satoshis\":7}",
        b"{\"satoshis\":7,\"description\":\"\xff\"}",
        b"{\"satoshis\":7,\"\xc0\x80\":1}",
        deep.as_bytes(),
    ] {
        let text = String::from_utf8_lossy(&body[..body.len().min(40)]);
        let refused = InvoiceDraft::from_json(body, NOW.parse().unwrap());
        assert!(matches!(refused, Err(BodyError::Malformed(_))), "{text}");
        let refused = UserDraft::from_json(body);
        assert!(matches!(refused, Err(BodyError::Malformed(_))), "{text}");
    }
}
