use std::fmt;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use hyper::body::Incoming;
use hyper::header::{HeaderName, HeaderValue};
use hyper::{Method, Request, StatusCode};
use tracing::field::{DisplayValue, display};

use crate::http::{Answer, AwaitedBody};
use crate::instance::Instance;
use crate::surface::Surface;

/// The name of a request in the log: 16 hexadecimal digits that do not soon occur again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestId(u64);

tokio::task_local! {
    /// The request that the current task answers.
    static CURRENT: RequestId;
}

/// Distinguishes the ids of different processes.
static PROCESS: LazyLock<u64> = LazyLock::new(|| getrandom::u32().map_or(0, u64::from));
static COUNT: AtomicU32 = AtomicU32::new(0);

impl RequestId {
    fn next() -> Self {
        Self(*PROCESS << 32 | u64::from(COUNT.fetch_add(1, Ordering::Relaxed)))
    }

    /// The id of the request that the current task answers, for the field `request` of a log line.
    pub(crate) fn current() -> Option<DisplayValue<Self>> {
        CURRENT.try_with(|id| display(*id)).ok()
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Answers a request. Logs the request if the settings say so. Logs changes by the command line in
/// any case. If the log may have more on an answer, the answer carries the request's id.
pub(crate) async fn answer_and_log(
    instance: Arc<Instance>,
    surface: Surface,
    address: Option<IpAddr>,
    request: Request<AwaitedBody<Incoming>>,
) -> Answer {
    let id = RequestId::next();
    let logs_all = instance.logs_requests();
    let is_operation = surface == Surface::Control && !request.method().is_safe();
    let mut answer = match logs_all || is_operation {
        true => {
            let logged = Box::pin(answer_logged(instance, surface, address, request));
            CURRENT.scope(id, logged).await
        }
        false => CURRENT.scope(id, instance.answer_peer(surface, address, request)).await,
    };
    if logs_all || answer.status() >= StatusCode::INTERNAL_SERVER_ERROR {
        let value = HeaderValue::from_str(&id.to_string()).expect("the id consists of digits");
        answer.headers_mut().insert(REQUEST_ID, value);
    }
    answer
}

async fn answer_logged(
    instance: Arc<Instance>,
    surface: Surface,
    address: Option<IpAddr>,
    request: Request<AwaitedBody<Incoming>>,
) -> Answer {
    let begun = Instant::now();
    let logs_all = instance.logs_requests();
    let path = request.uri().path();
    // The path and the query are not logged, because they may hold secrets.
    let route = instance.pattern(surface, path).unwrap_or(NO_ROUTE);
    let method = METHODS[place_of_method(request.method())];
    // The paths of the owner's requests may be logged.
    let operation = (surface == Surface::Control).then(|| format!("{method} {path}"));
    let answer = instance.answer_peer(surface, address, request).await;
    let (status, micros) = (answer.status().as_u16(), begun.elapsed().as_micros() as u64);
    let request = RequestId::current();
    if logs_all {
        tracing::info!(
            target: "bsv_server::requests",
            listener = surface.name(),
            method,
            route,
            status,
            micros,
            request,
            "request"
        );
    } else if let Some(operation) = operation {
        tracing::info!(target: "bsv_server::control", operation, status, micros, request, "control");
    }
    answer
}

/// The name of unknown paths.
pub(crate) const NO_ROUTE: &str = "none";

/// The methods with their own label, and one name for all others: strangers can send any word.
pub(crate) const METHODS: [&str; 8] =
    ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "other"];

/// The index of a method in [`METHODS`].
pub(crate) fn place_of_method(method: &Method) -> usize {
    let place = METHODS.iter().position(|known| *known == method.as_str());
    place.unwrap_or(METHODS.len() - 1)
}
