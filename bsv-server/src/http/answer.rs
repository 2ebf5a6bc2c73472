//! Answers in the forms that callers depend on.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use serde::Serialize;
use serde_json::json;

use super::Answer;

/// `text/plain`, the form of nearly all answers of the miner identity service.
pub fn text(status: StatusCode, body: impl Into<Bytes>) -> Answer {
    answer(status, "text/plain; charset=utf-8", body)
}

/// A success in `text/plain`: bytes in hexadecimal.
pub fn hexadecimal(bytes: &[u8]) -> Answer {
    // `hex::encode`, which goes through characters, takes three times as long.
    let mut body = vec![0; bytes.len() * 2];
    hex::encode_to_slice(bytes, &mut body).expect("there is room for two digits per byte");
    text(StatusCode::OK, body)
}

/// A success in `application/json`.
pub fn json(status: StatusCode, body: &impl Serialize) -> Answer {
    let body = serde_json::to_vec(body).expect("answers consist of strings, numbers and lists");
    answer(status, "application/json; charset=utf-8", body)
}

/// A failure in `application/problem+json` (RFC 9457).
pub fn problem(status: StatusCode, detail: &str) -> Answer {
    let title = status.canonical_reason().unwrap_or_default();
    let body = json!({ "title": title, "status": status.as_u16(), "detail": detail }).to_string();
    answer(status, "application/problem+json", body)
}

/// 405, naming the methods that the path has.
pub fn method_not_allowed(methods: &'static str) -> Answer {
    let mut answer = text(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed");
    answer.headers_mut().insert(ALLOW, HeaderValue::from_static(methods));
    answer
}

fn answer(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    // A GET may rotate a key, and each answer is true only now.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}
