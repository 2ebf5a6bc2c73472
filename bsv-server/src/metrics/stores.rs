use bsv_store::StoreCounts;

use super::exposition::Exposition;
use crate::api::Api;
use crate::instance::Instance;

/// An opened store.
struct Opened<'a> {
    counts: &'a StoreCounts,
    file_len: Option<u64>,
    is_damaged: bool,
}

/// Writes the metrics of a service's store.
pub(super) fn write(exposition: &mut Exposition, instance: &Instance, api: Api) {
    let opened = match api {
        Api::Wallet => instance.wallet.as_ref().map(|service| {
            let store = service.wallet().store();
            let (file_len, damage) = (store.file_len(), store.damage());
            Opened { counts: store.counts(), file_len, is_damaged: damage.is_some() }
        }),
        _ => instance.minerid.as_ref().map(|service| {
            let store = service.ids().store();
            let (file_len, damage) = (store.file_len().ok(), store.damage());
            Opened { counts: store.counts(), file_len, is_damaged: damage.is_some() }
        }),
    };
    let labels = [("store", api.name())];
    let is_damaged = opened.as_ref().is_none_or(|opened| opened.is_damaged);
    let help = "Whether the store is damaged or could not be opened.";
    exposition.gauge("bsv_store_damaged", help).add(&labels, is_damaged);
    let Some(Opened { counts, file_len, .. }) = opened else { return };
    let help = "Duration of commits, in seconds.";
    let commits = counts.commits.counts();
    exposition.histogram("bsv_store_commit_duration_seconds", help).add(&[], &commits);
    let help = "Number of commands that the store has run. Several share a commit.";
    exposition.counter("bsv_store_commands_total", help).add(&[], counts.commands());
    if let Some(len) = file_len {
        let help = "Length of the store's file, in bytes.";
        exposition.gauge("bsv_store_file_bytes", help).add(&labels, len);
    }
}
