use std::sync::Arc;

use bsv_minerid::Identity;

use super::exposition::Exposition;
use crate::control::{STATES, is_overdue, state};
use crate::instance::Instance;
use crate::minerid::MinerIds;

/// Writes the metrics of identities.
pub(super) fn write(exposition: &mut Exposition, instance: &Instance) {
    let Some(api) = &instance.minerid else { return };
    let identities = api.ids().all();
    let help = "Number of signatures, including those in documents.";
    let mut signatures = exposition.counter("bsv_minerid_signatures_total", help);
    for identity in &identities {
        signatures.add(&labels(identity), identity.usage().signatures());
    }
    let help = "Time since the last document was handed out by this process, in seconds.";
    let mut ages = exposition.gauge("bsv_minerid_document_age_seconds", help);
    for identity in &identities {
        if let Some(age) = identity.usage().document_age() {
            ages.add(&labels(identity), age);
        }
    }
    let help = "Number of announcements that no block was seen to show.";
    let mut announcements = exposition.gauge("bsv_minerid_unseen_announcements", help);
    for identity in &identities {
        announcements.add(&labels(identity), identity.announced() as u64);
    }
    let help = "Whether blocks should have shown the announcements by now.";
    let mut alarms = exposition.gauge("bsv_minerid_unseen_alarm", help);
    for identity in &identities {
        alarms.add(&labels(identity), is_overdue(&identity.record()));
    }
    write_states(exposition, api.ids(), &identities);
}

/// Writes 1 for the state of each identity, and 0 for the other states.
fn write_states(exposition: &mut Exposition, ids: &MinerIds, identities: &[Arc<Identity>]) {
    let help = "Whether an identity is in a state: one of its protocol, stale, or broken.";
    let mut states = exposition.gauge("bsv_minerid_state", help);
    let mut add = |alias: &str, state: &'static str, holds: bool| {
        states.add(&[("alias", alias), ("state", state)], holds);
    };
    for identity in identities {
        let alias = identity.alias().as_str();
        let own = state(&identity.record());
        for state in STATES {
            add(alias, state, state == own);
        }
        add(alias, "stale", identity.is_stale());
        add(alias, "broken", false);
    }
    for (alias, _) in ids.broken() {
        add(alias.as_str(), "broken", true);
    }
}

fn labels(identity: &Identity) -> [(&'static str, &str); 1] {
    [("alias", identity.alias().as_str())]
}
