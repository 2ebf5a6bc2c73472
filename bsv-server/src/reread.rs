use std::sync::Arc;

use serde_json::Value;
use tokio::signal::unix::Signal;
use tokio::task::spawn_blocking;

use crate::config::{ConfigError, ConfigSources, ShownSettings};
use crate::instance::Instance;

/// The only setting that counts at once.
const LOG_REQUESTS: &str = "log.requests";

/// Reads the settings again at each signal, for as long as it is polled. The log says what counts from then on, and what
/// only counts after a restart.
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
                "SIGHUP: the settings were read again; these have changed, and count from the next start on: {}",
                names.join(", ")
            ),
        }
    }
}

fn tell_unusable(error: &ConfigError) {
    tracing::error!(
        "SIGHUP: the settings cannot be used, and those that were read before stay: {error}"
    );
}

/// Each setting with its name, such as `wallet.port`, as [`ShownSettings`] tells them.
async fn leaves(sources: &Arc<ConfigSources>) -> Result<Vec<(String, Value)>, ConfigError> {
    let sources = Arc::clone(sources);
    let shown = spawn_blocking(move || ShownSettings::load(&sources)).await;
    let mut leaves = Vec::new();
    add_leaves("", shown.expect("it does not panic, and is not cancelled")?.to_json(), &mut leaves);
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

/// The names of those that differ and that a running server does not take over.
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
