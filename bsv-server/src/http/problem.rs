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

    /// Adds the faults of a field.
    pub(crate) fn with_field(mut self, field: &str, messages: &[String]) -> Self {
        self.errors.insert(field.to_owned(), messages.into());
        self
    }

    /// The status.
    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// What went wrong.
    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }

    /// Whether a field has faults.
    pub(crate) fn has_fields(&self) -> bool {
        !self.errors.is_empty()
    }

    /// Adds a header to the answer.
    pub(crate) fn with_header(mut self, name: HeaderName, value: &'static str) -> Self {
        self.header = Some((name, value));
        self
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
        let body = ProblemJson {
            kind: "about:blank",
            title: self.status.canonical_reason().unwrap_or_default(),
            status: self.status.as_u16(),
            detail: &self.detail,
            message: is_for_payer.then_some(&self.detail),
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
