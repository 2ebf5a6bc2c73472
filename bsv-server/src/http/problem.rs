use hyper::StatusCode;
use hyper::header::{HeaderName, HeaderValue};
use serde::Serialize;
use serde_json::{Map, Value};

use super::{Answer, answer};

/// A failure in `application/problem+json` (RFC 9457), with two additional members: `code`, a
/// stable name for programs, and `errors`, the faults of each field.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    code: &'static str,
    detail: String,
    errors: Map<String, Value>,
    header: Option<(HeaderName, &'static str)>,
}

/// The longest text about a fault, in bytes. Some texts repeat what the caller has sent, which may
/// be long and become longer when it is made visible.
const MAX_TEXT_LEN: usize = 2 << 10;

fn shorten(mut text: String) -> String {
    if text.len() > MAX_TEXT_LEN {
        text.truncate(text.floor_char_boundary(MAX_TEXT_LEN));
        text.push('…');
    }
    text
}

impl Problem {
    pub(crate) fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self { status, code, detail: detail.into(), errors: Map::new(), header: None }
    }

    /// A failure that is sufficiently described by its status.
    pub(crate) fn of_status(status: StatusCode, detail: impl Into<String>) -> Self {
        let code = match status {
            StatusCode::BAD_REQUEST => "bad-request",
            StatusCode::FORBIDDEN => "forbidden",
            StatusCode::NOT_FOUND => "not-found",
            StatusCode::METHOD_NOT_ALLOWED => "method-not-allowed",
            StatusCode::REQUEST_TIMEOUT => "request-timeout",
            StatusCode::CONFLICT => "conflict",
            StatusCode::PAYLOAD_TOO_LARGE => "too-large",
            StatusCode::UNSUPPORTED_MEDIA_TYPE => "not-json",
            StatusCode::UNPROCESSABLE_ENTITY => "unprocessable",
            StatusCode::TOO_MANY_REQUESTS => "too-many-requests",
            StatusCode::SERVICE_UNAVAILABLE => "unavailable",
            _ => "internal-error",
        };
        Self::new(status, code, detail)
    }

    /// A request that makes no sense.
    pub(crate) fn bad_request(detail: impl Into<String>) -> Self {
        Self::of_status(StatusCode::BAD_REQUEST, detail)
    }

    /// A request that makes sense, but cannot be carried out.
    pub(crate) fn unprocessable(detail: impl Into<String>) -> Self {
        Self::of_status(StatusCode::UNPROCESSABLE_ENTITY, detail)
    }

    /// Adds the faults of a field.
    pub(crate) fn with_field(mut self, field: &str, messages: &[String]) -> Self {
        let messages = messages.iter().cloned().map(shorten);
        self.errors.insert(field.to_owned(), messages.collect());
        self
    }

    /// The status.
    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// What went wrong.
    pub(crate) fn detail(&self) -> String {
        shorten(self.detail.clone())
    }

    /// The value, unless a field has faults.
    pub(crate) fn unless_faulty<T>(self, value: T) -> Result<T, Self> {
        if self.errors.is_empty() { Ok(value) } else { Err(self) }
    }

    /// Adds a header to the answer.
    pub(crate) fn with_header(mut self, name: HeaderName, value: &'static str) -> Self {
        self.header = Some((name, value));
        self
    }

    /// The detail alone, for callers of the miner identity listener.
    pub(crate) fn into_text(self) -> Answer {
        answer::text(self.status, self.detail)
    }

    pub(crate) fn into_answer(self) -> Answer {
        self.write(false)
    }

    /// The answer for a payer. The answer repeats the detail as `message`, the only member that
    /// wallets of go-dpp show.
    pub(crate) fn into_answer_for_payer(self) -> Answer {
        self.write(true)
    }

    fn write(self, is_for_payer: bool) -> Answer {
        let detail = self.detail();
        let body = ProblemJson {
            kind: "about:blank",
            title: self.status.canonical_reason().unwrap_or_default(),
            status: self.status.as_u16(),
            detail: &detail,
            message: is_for_payer.then_some(&detail),
            code: self.code,
            errors: &self.errors,
        };
        let body = serde_json::to_vec(&body).expect("texts, a number and lists always serialise");
        let mut answer = answer::answer(self.status, "application/problem+json", body);
        if let Some((name, value)) = self.header {
            answer.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        answer
    }
}

#[derive(Serialize)]
struct ProblemJson<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    title: &'static str,
    status: u16,
    detail: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    code: &'static str,
    #[serde(skip_serializing_if = "Map::is_empty")]
    errors: &'a Map<String, Value>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_two_characters() {
        let text = "é".repeat(MAX_TEXT_LEN);
        let problem = Problem::of_status(StatusCode::BAD_REQUEST, format!("a{text}"))
            .with_field("field", &[text.clone(), "short".to_owned()]);
        assert_eq!(problem.detail().len(), MAX_TEXT_LEN - 1 + "…".len());
        let messages = problem.errors["field"].as_array().unwrap();
        assert_eq!(messages[0].as_str().unwrap().len(), MAX_TEXT_LEN + "…".len());
        assert_eq!(messages[1], "short");
        assert_eq!(shorten("a".repeat(MAX_TEXT_LEN)).len(), MAX_TEXT_LEN);
    }
}
