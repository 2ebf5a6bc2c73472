use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use hyper::body::Incoming;
use hyper::{Method, Request};

use crate::http::{Answer, AwaitedBody};
use crate::instance::Instance;
use crate::surface::Surface;

/// Answers a request, and logs that where the settings say so.
pub(crate) async fn answer_and_log(
    instance: Arc<Instance>,
    surface: Surface,
    address: Option<IpAddr>,
    request: Request<AwaitedBody<Incoming>>,
) -> Answer {
    if !instance.config.log_requests {
        return instance.answer_peer(surface, address, request).await;
    }
    let begun = Instant::now();
    // Neither path nor query, which may hold what is not for the log.
    let route = instance.pattern(surface, request.uri().path()).unwrap_or(NO_ROUTE);
    let method = METHODS[place_of_method(request.method())];
    let answer = instance.answer_peer(surface, address, request).await;
    tracing::info!(
        target: "bsv_server::requests",
        listener = surface.name(),
        method,
        route,
        status = answer.status().as_u16(),
        micros = begun.elapsed().as_micros() as u64,
        "request"
    );
    answer
}

/// What a path is called that there is not.
pub(crate) const NO_ROUTE: &str = "none";

/// The methods that are told apart, and one name for all others: strangers can send any word.
pub(crate) const METHODS: [&str; 8] =
    ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "other"];

/// Where a method stands among [`METHODS`].
pub(crate) fn place_of_method(method: &Method) -> usize {
    let place = METHODS.iter().position(|known| *known == method.as_str());
    place.unwrap_or(METHODS.len() - 1)
}
