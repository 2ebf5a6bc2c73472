use bsv_network::headers::{HeaderFollower, Outcome};

use super::exposition::{Exposition, Number};
use crate::headers::seconds_since;

/// Writes the newest block, and how the sources of headers answer.
pub(super) fn write(exposition: &mut Exposition, headers: &HeaderFollower) {
    let tip = headers.file().chain().tip();
    let help = "Height of the newest block whose header is validated here.";
    exposition.gauge("bsv_headers_height", help).add(&[], u64::from(tip.height));
    if let Some(time) = tip.time {
        let help = "Age of that block, by the time in its header, in seconds.";
        let age = Number::Whole(seconds_since(time.into()));
        exposition.gauge("bsv_headers_tip_age_seconds", help).add(&[], age);
    }
    let help = "Whether blocks of the network may lack.";
    let is_behind = u64::from(headers.behind().is_some());
    exposition.gauge("bsv_headers_behind", help).add(&[], is_behind);
    let help = "Number of blocks that have left the best chain at the deepest reorganisation since the start.";
    let deepest = u64::from(headers.file().deepest_reorganisation());
    exposition.gauge("bsv_headers_deepest_reorganisation", help).add(&[], deepest);
    let sources: Vec<_> = headers.sources().enumerate().collect();
    // The seeds have several places, and other names may be given twice.
    let is_first =
        |place: usize, host: &str| !sources[..place].iter().any(|(_, it)| it.host == host);
    let firsts = || sources.iter().filter(|(place, source)| is_first(*place, &source.host));
    let help = "Number of questions to a service, by how they ended.";
    let mut requests = exposition.counter("bsv_service_requests_total", help);
    for (_, source) in firsts() {
        for outcome in Outcome::ALL {
            let same = sources.iter().filter(|(_, it)| it.host == source.host);
            let count: u64 = same.map(|(_, it)| it.outcomes[outcome as usize]).sum();
            let labels = [
                ("kind", source.kind),
                ("host", source.host.as_str()),
                ("outcome", outcome.name()),
            ];
            requests.add(&labels, count);
        }
    }
    let help = "Time since the last answer of a service that could be used, in seconds.";
    let mut ages = exposition.gauge("bsv_service_last_answer_age_seconds", help);
    for (_, source) in firsts() {
        let same = sources.iter().filter(|(_, it)| it.host == source.host);
        if let Some(last) = same.filter_map(|(_, it)| it.last_answer).max() {
            let labels = [("kind", source.kind), ("host", source.host.as_str())];
            ages.add(&labels, Number::Whole(seconds_since(last)));
        }
    }
}
