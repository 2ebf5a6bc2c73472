use std::collections::BTreeMap;

use super::exposition::{Exposition, Number};
use crate::headers::seconds_since;
use crate::services::Report;

/// Writes how services answer. Some have several places, such as the seeds of the network.
pub(super) fn write(exposition: &mut Exposition, reports: &[Report]) {
    let mut services = BTreeMap::<_, Vec<&Report>>::new();
    for report in reports {
        services.entry((report.kind, report.host.as_str())).or_default().push(report);
    }
    let help = "Number of questions to a service, by how they ended.";
    let mut requests = exposition.counter("bsv_service_requests_total", help);
    for ((kind, host), places) in &services {
        for (index, (outcome, _)) in places[0].outcomes.iter().enumerate() {
            let count: u64 = places.iter().map(|it| it.outcomes[index].1).sum();
            requests.add(&[("kind", *kind), ("host", *host), ("outcome", *outcome)], count);
        }
    }
    let help = "Time since the last answer of a service that could be used, in seconds.";
    let mut ages = exposition.gauge("bsv_service_last_answer_age_seconds", help);
    for ((kind, host), places) in &services {
        if let Some(last) = places.iter().filter_map(|it| it.last_answer).max() {
            ages.add(&[("kind", *kind), ("host", *host)], Number::Whole(seconds_since(last)));
        }
    }
}
