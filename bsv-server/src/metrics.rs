//! `GET /metrics`, for monitoring systems.
//!
//! No metric is computed by reading rows. Events are counted when they happen; other values are
//! read from memory. No label holds the input of a stranger.

mod counts;
mod exposition;
mod format;
mod headers;
mod listener;
mod minerid;
mod node;
mod process;
mod refused;
mod services;
mod stores;
mod wallet;

use hyper::{HeaderMap, StatusCode};

pub(crate) use self::counts::Metrics;
pub(crate) use self::listener::{METHODS, NO_ROUTE, place_of_method};
pub(crate) use self::refused::Refused;

use self::exposition::Exposition;
use self::format::Format;
use crate::api::Api;
use crate::http::{Answer, answer};
use crate::instance::Instance;
use crate::services::reports;

/// Answers the metrics of the process and of the API's service.
pub(crate) async fn answer(instance: &Instance, api: Api, headers: &HeaderMap) -> Answer {
    let format = Format::asked_for(headers);
    let mut exposition = Exposition::new(format);
    let build = "The version of the program.";
    let labels = [("version", env!("CARGO_PKG_VERSION"))];
    exposition.gauge("bsv_build_info", build).add(&labels, 1);
    write_http(&mut exposition, instance, api);
    stores::write(&mut exposition, instance, api);
    match api {
        Api::Wallet => wallet::write(&mut exposition, instance).await,
        _ => minerid::write(&mut exposition, instance),
    }
    node::write(&mut exposition, &instance.metrics.node);
    if let Some(headers) = &instance.headers {
        headers::write(&mut exposition, headers);
    }
    let wallet = instance.wallet.as_ref().map(|wallet| &**wallet.wallet());
    let services = reports(instance.headers.as_deref(), wallet);
    if !services.is_empty() {
        services::write(&mut exposition, &services);
    }
    process::write(&mut exposition);
    answer::answer(StatusCode::OK, format.content_type(), exposition.finish())
}

fn write_http(exposition: &mut Exposition, instance: &Instance, api: Api) {
    let listeners = || instance.metrics.listeners_of(api);
    let help = "Number of answered requests.";
    let mut answered = exposition.counter("bsv_http_requests_total", help);
    listeners().for_each(|listener| listener.write_answered(&mut answered));
    let help = "Time from the head of a request to the head of its answer, in seconds.";
    let mut durations = exposition.histogram("bsv_http_request_duration_seconds", help);
    listeners().for_each(|listener| listener.write_durations(&mut durations));
    let mut connections = exposition.gauge("bsv_http_connections", "Number of open connections.");
    for listener in listeners() {
        let labels = [("listener", listener.api().name())];
        connections.add(&labels, listener.connections().count());
    }
    if let Some(service) = instance.wallet.as_ref().filter(|_| api == Api::Wallet) {
        let mut streams = exposition.gauge("bsv_http_streams", "Number of open streams of events.");
        streams.add(&[("listener", api.name())], service.open_streams());
        if let Some(payments) = &instance.payments {
            streams.add(&[("listener", Api::Payments.name())], payments.open_streams());
        }
    }
    let help = "Number of refused requests and connections.";
    let mut refused = exposition.counter("bsv_refused_requests_total", help);
    for reason in Refused::ALL {
        let count: u64 = listeners().map(|listener| listener.refused(reason)).sum();
        refused.add(&[("reason", reason.name())], count);
    }
}
