use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use hyper::body::Incoming;
use hyper::header::{HeaderName, HeaderValue};
use hyper::{Request, StatusCode};

use crate::api::Api;
use crate::http::{Answer, AwaitedBody};
use crate::instance::Instance;
use crate::metrics::{METHODS, NO_ROUTE, place_of_method};
use crate::request_id::RequestId;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Answers a request. Logs the request if the settings say so. Logs changes by the command line in
/// any case. If the log may have more on an answer, the answer carries the request's id.
pub(crate) async fn answer_and_log(
    instance: Arc<Instance>,
    api: Api,
    address: Option<IpAddr>,
    request: Request<AwaitedBody<Incoming>>,
) -> Answer {
    let id = RequestId::next();
    let logs_all = instance.logs_requests();
    let is_operation = api == Api::Control && !request.method().is_safe();
    let mut answer = match logs_all || is_operation {
        true => {
            let logged = Box::pin(answer_logged(instance, api, address, request));
            id.scope(logged).await
        }
        false => id.scope(instance.answer_peer(api, address, request)).await,
    };
    if logs_all || answer.status() >= StatusCode::INTERNAL_SERVER_ERROR {
        let value = HeaderValue::from_str(&id.to_string()).expect("the id consists of digits");
        answer.headers_mut().insert(REQUEST_ID, value);
    }
    answer
}

async fn answer_logged(
    instance: Arc<Instance>,
    api: Api,
    address: Option<IpAddr>,
    request: Request<AwaitedBody<Incoming>>,
) -> Answer {
    let begun = Instant::now();
    let logs_all = instance.logs_requests();
    let path = request.uri().path();
    // The path and the query are not logged, because they may hold secrets.
    let route = instance.pattern(api, path).unwrap_or(NO_ROUTE);
    let method = METHODS[place_of_method(request.method())];
    // The paths of the owner's requests may be logged.
    let operation = (api == Api::Control).then(|| format!("{method} {path}"));
    let answer = instance.answer_peer(api, address, request).await;
    let (status, micros) = (answer.status().as_u16(), begun.elapsed().as_micros() as u64);
    let request = RequestId::current();
    if logs_all {
        tracing::info!(
            target: "bsv_server::requests",
            listener = api.name(),
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
