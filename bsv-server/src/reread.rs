use std::sync::Arc;

use serde_json::Value;
use tokio::signal::unix::Signal;
use tokio::task::spawn_blocking;

use crate::config::{ConfigError, ConfigSources, ShownSettings};
use crate::instance::Instance;

/// The only setting that takes effect without a restart.
const LOG_REQUESTS: &str = "log.requests";

/// Reads the settings again at each signal, for as long as it is polled. The log tells what takes
/// effect now, and what needs a restart.
pub(crate) async fn reread_settings(
    instance: &Instance,
    sources: ConfigSources,
    mut hang_ups: Signal,
) {
    let sources = Arc::new(sources);
    let at_start = leaves(&sources).await;
    while hang_ups.recv().await.is_some() {
        let (Ok(before), Ok(now)) = (&at_start, leaves(&sources).await.inspect_err(tell_unusable))
        else {
            continue;
        };
        let requests = now.iter().any(|(name, value)| name == LOG_REQUESTS && *value == true);
        if instance.log_requests(requests) {
            tracing::info!("SIGHUP: {LOG_REQUESTS} is {requests} from now on");
        }
        match changed(before, &now).as_slice() {
            [] => tracing::info!("SIGHUP: the settings were read again; no other one has changed"),
            names => tracing::warn!(
                "SIGHUP: the settings were read again; these have changed, and take effect at the next start: {}",
                names.join(", ")
            ),
        }
    }
}

fn tell_unusable(error: &ConfigError) {
    tracing::error!("SIGHUP: the new settings cannot be used, and the previous ones stay: {error}");
}

/// Each setting with its name, such as `wallet.port`, in the form of [`ShownSettings`].
async fn leaves(sources: &Arc<ConfigSources>) -> Result<Vec<(String, Value)>, ConfigError> {
    let sources = Arc::clone(sources);
    let shown = spawn_blocking(move || ShownSettings::load(&sources)).await;
    let mut leaves = Vec::new();
    add_leaves(
        "",
        shown.expect("the task neither panics nor is cancelled")?.to_json(),
        &mut leaves,
    );
    Ok(leaves)
}

fn add_leaves(name: &str, value: Value, leaves: &mut Vec<(String, Value)>) {
    let Value::Object(members) = value else {
        leaves.push((name.to_owned(), value));
        return;
    };
    for (member, value) in members {
        let name = if name.is_empty() { member } else { format!("{name}.{member}") };
        add_leaves(&name, value, leaves);
    }
}

/// The names of the settings that differ and need a restart.
fn changed(before: &[(String, Value)], now: &[(String, Value)]) -> Vec<String> {
    let differs = |(name, value): &&(String, Value)| {
        now.iter().chain(before).any(|other| other.0 == *name && other.1 != *value)
            || !before.iter().any(|other| other.0 == *name)
            || !now.iter().any(|other| other.0 == *name)
    };
    let mut names: Vec<_> =
        before.iter().chain(now).filter(differs).map(|(name, _)| name.clone()).collect();
    names.retain(|name| name != LOG_REQUESTS);
    names.sort();
    names.dedup();
    names
}
