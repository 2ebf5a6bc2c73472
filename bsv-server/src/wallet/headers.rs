//! The headers of requests and answers.

use bsv_invoicing::Error;
use bsv_invoicing::invoices::{BadIdempotencyKey, IdempotencyKey};
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue, LINK, LOCATION};
use hyper::{HeaderMap, StatusCode};

use crate::http::{Answer, Problem, Received};

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

pub(super) fn check_content_type(headers: &HeaderMap) -> Result<(), Problem> {
    let content_type = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    let essence = content_type.split(|c| *c == b';').next().unwrap_or_default();
    if essence.trim_ascii().eq_ignore_ascii_case(b"application/json") {
        return Ok(());
    }
    Err(Problem::of_status(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "the body must be JSON, with the header Content-Type: application/json",
    ))
}

/// The key of a request, and the bytes that a request with the same key must have.
pub(super) fn idempotency_key(
    request: Received<'_>,
    subject: &str,
) -> Result<Option<IdempotencyKey>, Error> {
    let mut keys = request.headers().get_all(IDEMPOTENCY_KEY).iter();
    let Some(key) = keys.next() else { return Ok(None) };
    let key = key.to_str().ok().filter(|_| keys.next().is_none());
    let asked = [subject.as_bytes(), request.body()].concat();
    Ok(Some(IdempotencyKey::new(key.ok_or(BadIdempotencyKey)?, &asked)?))
}

/// Parses a number in the service's own spelling.
pub(super) fn number(text: &str) -> Option<u64> {
    text.parse().ok().filter(|id: &u64| id.to_string() == text)
}

pub(super) fn set_location(answer: &mut Answer, path: String) {
    answer.headers_mut().insert(LOCATION, header(path));
}

/// Names the page that comes next.
pub(super) fn set_next(answer: &mut Answer, url: &str) {
    answer.headers_mut().insert(LINK, header(format!("<{url}>; rel=\"next\"")));
}

pub(super) fn header(text: String) -> HeaderValue {
    HeaderValue::try_from(text).expect("a checked URL and ids are printable")
}
