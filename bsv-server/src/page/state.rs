//! The state of an invoice, for payers' programs and for the page itself.

use bsv_invoicing::{Checkout, Timestamp};
use hyper::header::{ETAG, HeaderValue, IF_NONE_MATCH};
use hyper::{HeaderMap, StatusCode};
use serde::Serialize;

use crate::http::{Answer, answer};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StateJson {
    state: &'static str,
    satoshis: u64,
    paid_satoshis: u64,
    due_satoshis: u64,
    received_satoshis: u64,
    counted_satoshis: u64,
    refunded_satoshis: u64,
    surplus_satoshis: u64,
    expires_at: Timestamp,
    now: Timestamp,
    mined: bool,
}

/// The state of an invoice at a time, as JSON.
pub(super) fn to_json(checkout: &Checkout, now: Timestamp) -> Vec<u8> {
    let state = StateJson {
        state: checkout.state.name(),
        satoshis: checkout.satoshis,
        paid_satoshis: checkout.paid,
        due_satoshis: checkout.due,
        received_satoshis: checkout.paid,
        counted_satoshis: checkout.counted,
        refunded_satoshis: checkout.refunded,
        surplus_satoshis: checkout.surplus,
        expires_at: checkout.expires_at,
        now,
        mined: checkout.is_mined,
    };
    serde_json::to_vec(&state).expect("texts, numbers and times always serialise")
}

/// A word that changes whenever the state of an invoice changes.
pub(super) fn word(checkout: &Checkout) -> String {
    let Checkout { state, paid, due, counted, refunded, surplus, is_mined, .. } = checkout;
    format!("{state}-{paid}-{due}-{counted}-{refunded}-{surplus}-{is_mined}")
}

/// Answers the state, or that the caller's state is current.
pub(super) fn answer(checkout: &Checkout, now: Timestamp, headers: &HeaderMap) -> Answer {
    // The tag is weak, because `now` differs each time.
    let tag = format!("W/\"{}\"", word(checkout));
    let mut answer = match knows(headers, &tag) {
        true => answer::not_modified(),
        false => answer::json_text(StatusCode::OK, to_json(checkout, now)),
    };
    let tag = HeaderValue::try_from(tag).expect("names and numbers are printable");
    answer.headers_mut().insert(ETAG, tag);
    answer
}

/// Whether a caller has the version with this tag (RFC 9110, 13.1.2).
fn knows(headers: &HeaderMap, tag: &str) -> bool {
    let lines = headers.get_all(IF_NONE_MATCH).iter().filter_map(|line| line.to_str().ok());
    let bare = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    lines
        .flat_map(|line| line.split(','))
        .any(|known| known.trim() == "*" || bare(known) == bare(tag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_know_a_state_by_its_tag() {
        let tag = "W/\"pending-0-5000-0-0-0-false\"";
        for (lines, expected) in [
            (&[][..], false),
            (&[tag], true),
            (&["\"pending-0-5000-0-0-0-false\""], true),
            (&["W/\"x\", W/\"pending-0-5000-0-0-0-false\" , \"y\""], true),
            (&["\"x\"", tag], true),
            (&["*"], true),
            (&["W/\"pending-0-5000\""], false),
            (&["pending-0-5000-0-0-0-false"], false),
        ] {
            let headers = lines.iter().map(|line| (IF_NONE_MATCH, line.parse().unwrap())).collect();
            assert_eq!(knows(&headers, tag), expected, "{lines:?}");
        }
    }
}
