use std::time::Duration;

use hyper::header::{
    ACCEPT_ENCODING, ALLOW, CONNECTION, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE,
};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};

use crate::access::Denied;
use crate::api::Api;
use crate::http::{Answer, NoRoute, Problem, answer};

/// Why a request is refused.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The path or the method does not exist.
    NoRoute(NoRoute),
    /// The caller lacks a token, or the token does not allow this request.
    Denied(Denied),
    /// A browser sent the request, perhaps without the intent of its user.
    Forbidden(&'static str),
    /// The named service is disabled, or has no store.
    Disabled(&'static str),
    /// The named service could not be opened, for this reason.
    Unavailable(&'static str, String),
    /// The body is compressed, or encoded in another way.
    Encoded,
    /// The sender makes too many requests.
    TooMany {
        /// How long the sender has to wait.
        wait: Duration,
        /// Whether the connection is closed, so that further requests already sent cost nothing.
        closes: bool,
    },
    /// The miner identity service refuses it.
    Answered(Problem),
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Self::Answered(problem)
    }
}

impl From<NoRoute> for Refusal {
    fn from(missing: NoRoute) -> Self {
        Self::NoRoute(missing)
    }
}

impl From<Denied> for Refusal {
    fn from(denied: Denied) -> Self {
        Self::Denied(denied)
    }
}

impl Refusal {
    /// The answer to a request with this head.
    pub(crate) fn into_answer(self, api: Api, head: &Parts) -> Answer {
        let (method, path) = (&head.method, head.uri.path());
        match self {
            Self::NoRoute(NoRoute::Method(methods)) if *method == Method::OPTIONS => {
                allowing(answer::no_content(), methods)
            }
            Self::NoRoute(NoRoute::Method(methods)) => {
                let problem = || format!("{method} is not possible here, only {methods}");
                let status = StatusCode::METHOD_NOT_ALLOWED;
                allowing(refuse(api, status, "Method Not Allowed", problem), methods)
            }
            Self::NoRoute(NoRoute::Path) => {
                let problem = || format!("there is nothing at {path}");
                refuse(api, StatusCode::NOT_FOUND, "Not Found", problem)
            }
            Self::Denied(denied) => deny(api, &denied),
            Self::Forbidden(reason) => {
                refuse(api, StatusCode::FORBIDDEN, reason, || reason.to_owned())
            }
            Self::Disabled(service) => {
                let reason = format!("the {service} is disabled");
                refuse(api, StatusCode::NOT_FOUND, &reason, || reason.clone())
            }
            Self::Unavailable(service, reason) => {
                let text = match api {
                    // Strangers need not know the reason.
                    Api::Payments => format!("the {service} is not available"),
                    _ => format!("the {service} is not available: {reason}"),
                };
                refuse(api, StatusCode::SERVICE_UNAVAILABLE, &text, || text.clone())
            }
            Self::Encoded => encoded(api),
            Self::TooMany { wait, closes } => too_many_requests(api, wait, closes),
            Self::Answered(problem) => match api {
                Api::MinerId | Api::Node => problem.into_text(),
                _ => problem.into_answer(),
            },
        }
    }
}

/// A failure in the format of the API: text from the miner identity service, a problem from the
/// others.
pub(crate) fn refuse(
    api: Api,
    status: StatusCode,
    text: &str,
    detail: impl FnOnce() -> String,
) -> Answer {
    match api {
        Api::MinerId | Api::Node => answer::text(status, text.to_owned()),
        Api::Wallet | Api::Control => Problem::of_status(status, detail()).into_answer(),
        Api::Payments => Problem::of_status(status, detail()).into_answer_for_payer(),
    }
}

fn allowing(mut answer: Answer, methods: &'static str) -> Answer {
    let methods = HeaderValue::try_from([methods, ", OPTIONS"].concat());
    answer.headers_mut().insert(ALLOW, methods.expect("methods are letters"));
    answer
}

fn deny(api: Api, denied: &Denied) -> Answer {
    let status = denied.status(api);
    let mut answer = match api {
        Api::MinerId => {
            let title = status.canonical_reason().unwrap_or_default();
            answer::text(status, format!("{title}: {denied}"))
        }
        _ => Problem::new(status, denied.code(), denied.to_string()).into_answer(),
    };
    answer.headers_mut().insert(WWW_AUTHENTICATE, denied.challenge());
    answer
}

fn encoded(api: Api) -> Answer {
    let text = "the request body must not be compressed: send it without Content-Encoding";
    let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
    let mut answer = match api {
        Api::MinerId | Api::Node => answer::text(status, text),
        Api::Wallet | Api::Control => Problem::new(status, ENCODED, text).into_answer(),
        Api::Payments => Problem::new(status, ENCODED, text).into_answer_for_payer(),
    };
    // RFC 9110, section 12.5.3: this tells the reason from other reasons for the status.
    answer.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    answer
}

/// The code of a request whose body is compressed.
const ENCODED: &str = "body-encoded";

fn too_many_requests(api: Api, wait: Duration, closes: bool) -> Answer {
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    let detail = format!("too many requests come from your address: wait for {seconds} s");
    let status = StatusCode::TOO_MANY_REQUESTS;
    let mut answer = refuse(api, status, &detail, || detail.clone());
    answer.headers_mut().insert(RETRY_AFTER, seconds.into());
    if closes {
        answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    answer
}
