//! Lets web pages of all origins use a listener that knows no browser credentials. Anybody may send
//! requests to it anyway.

use hyper::Method;
use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, HeaderName, HeaderValue,
};

use super::Answer;

static EVERY_ANSWER: [(HeaderName, &str); 2] = [
    (ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
    (ACCESS_CONTROL_EXPOSE_HEADERS, "etag, retry-after, link"),
];
/// The headers that answer a browser's preflight request.
static PREFLIGHT: [(HeaderName, &str); 3] = [
    (ACCESS_CONTROL_ALLOW_METHODS, "GET, HEAD, POST"),
    (ACCESS_CONTROL_ALLOW_HEADERS, "content-type, accept, authorization"),
    (ACCESS_CONTROL_MAX_AGE, "600"),
];

/// Adds the headers that let pages read the answer to a request of this method.
pub(crate) fn allow_pages(method: &Method, answer: &mut Answer) {
    let preflight = if *method == Method::OPTIONS { &PREFLIGHT[..] } else { &[] };
    for (name, value) in EVERY_ANSWER.iter().chain(preflight) {
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    }
}
