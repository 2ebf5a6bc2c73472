//! Answers in the formats that callers depend on.

use bytes::Bytes;
use futures_util::Stream;
use http_body_util::Full;
use hyper::header::{CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};
use serde::Serialize;
use tokio::sync::mpsc;

use super::{Answer, AnswerBody, BrokenOff};

/// The value of `Retry-After`, in seconds.
const RETRY_SECONDS: u32 = 5;

const JSON: &str = "application/json; charset=utf-8";

/// An answer in `text/plain`, the format of nearly all answers of the miner identity service.
pub fn text(status: StatusCode, body: impl Into<Bytes>) -> Answer {
    answer(status, "text/plain; charset=utf-8", body)
}

/// A success in `text/plain`: bytes in hexadecimal.
pub fn hexadecimal(bytes: &[u8]) -> Answer {
    // `hex::encode` is three times slower, because it builds characters.
    let mut body = vec![0; bytes.len() * 2];
    hex::encode_to_slice(bytes, &mut body).expect("there is room for two digits per byte");
    text(StatusCode::OK, body)
}

/// A success in `application/json`.
pub fn json(status: StatusCode, body: &impl Serialize) -> Answer {
    let text = serde_json::to_vec(body).expect("answers consist of strings, numbers and lists");
    json_text(status, text)
}

/// A success in `application/json` whose text is given.
pub fn json_text(status: StatusCode, body: impl Into<Bytes>) -> Answer {
    answer(status, JSON, body)
}

/// A success in `application/json` whose text is sent in parts.
pub fn json_stream(parts: mpsc::Receiver<Option<Bytes>>) -> Answer {
    with_body(StatusCode::OK, JSON, AnswerBody::Stream(parts))
}

/// A success in `text/csv` whose text is sent in parts.
pub fn csv_stream(parts: mpsc::Receiver<Option<Bytes>>) -> Answer {
    with_body(StatusCode::OK, "text/csv; charset=utf-8; header=present", AnswerBody::Stream(parts))
}

/// A success in `text/event-stream` whose blocks are made while they are sent.
pub fn event_stream(
    blocks: impl Stream<Item = Result<Bytes, BrokenOff>> + Send + 'static,
) -> Answer {
    with_body(StatusCode::OK, "text/event-stream", AnswerBody::Events(Box::pin(blocks)))
}

/// A success in bytes that are sent in parts.
pub fn bytes_stream(parts: mpsc::Receiver<Option<Bytes>>) -> Answer {
    with_body(StatusCode::OK, "application/octet-stream", AnswerBody::Stream(parts))
}

/// A success without a body.
pub fn no_content() -> Answer {
    let mut answer = answer(StatusCode::NO_CONTENT, JSON, Bytes::new());
    answer.headers_mut().remove(CONTENT_TYPE);
    answer
}

/// Tells the caller that its copy is current.
pub(crate) fn not_modified() -> Answer {
    let mut answer = no_content();
    *answer.status_mut() = StatusCode::NOT_MODIFIED;
    answer
}

/// The answer to a request whose head cannot be read, after which the connection is closed.
pub(super) fn bad_head() -> Answer {
    let mut answer = Response::new(AnswerBody::Whole(Full::default()));
    *answer.status_mut() = StatusCode::BAD_REQUEST;
    answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    answer
}

/// Any answer.
pub(crate) fn answer(
    status: StatusCode,
    content_type: &'static str,
    body: impl Into<Bytes>,
) -> Answer {
    with_body(status, content_type, AnswerBody::Whole(Full::new(body.into())))
}

fn with_body(status: StatusCode, content_type: &'static str, body: AnswerBody) -> Answer {
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    // Answers must not be cached: a GET may rotate a key, and each answer is true only now.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if status == StatusCode::SERVICE_UNAVAILABLE {
        headers.insert(RETRY_AFTER, HeaderValue::from(RETRY_SECONDS));
    }
    answer
}
