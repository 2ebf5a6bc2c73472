use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use bsv_store::StoreError;
use tokio::sync::oneshot;
use tokio::time::sleep;

use crate::instance::Instance;

/// The time between the start and the first check of the stores.
const FIRST_CHECK: Duration = Duration::from_secs(5);
/// The time before a failed check is repeated. The usual cause is a lack of room on the disk.
const RETRY: Duration = Duration::from_secs(60 * 60);

/// Compares the stores with their checksums that are too long for a check at the start, one after
/// the other, for as long as it is polled: see `docs/adr/0019-what-finds-damage.md`.
pub(crate) async fn check_stores(instance: &Instance) {
    let period = instance.config.check_period;
    sleep(FIRST_CHECK).await;
    loop {
        let mut is_done = true;
        if let Some(api) = &instance.wallet {
            let wallet = Arc::clone(api.wallet());
            is_done &= check("wallet", move || wallet.store().check()).await;
        }
        if let Some(api) = &instance.minerid {
            let ids = Arc::clone(api.ids());
            is_done &= check("minerid", move || ids.store().check()).await;
        }
        sleep(if is_done { period } else { RETRY.min(period) }).await;
    }
}

/// Checks a store. Answers whether the check was possible.
async fn check(
    name: &str,
    check: impl FnOnce() -> Result<Option<u64>, StoreError> + Send + 'static,
) -> bool {
    let begun = Instant::now();
    match detached(check).await {
        Some(Ok(None)) => true,
        Some(Ok(Some(len))) => {
            let millis = begun.elapsed().as_millis();
            tracing::info!("the {name} store of {len} bytes is undamaged ({millis} ms)");
            true
        }
        Some(Err(error)) if error.is_damage() => {
            tracing::error!(
                "{error}. The {name} store is no longer read or written: stop the server, put its data \
                 directory aside, and restore the last backup with bsv-cli restore"
            );
            true
        }
        Some(Err(error)) => {
            tracing::warn!(
                "the {name} store cannot be checked, and will be checked again: {error}"
            );
            false
        }
        None => {
            tracing::warn!("the {name} store cannot be checked, and will be checked again");
            false
        }
    }
}

/// Runs long work on a thread that stopping does not wait for.
async fn detached<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (sender, done) = oneshot::channel();
    let spawned = thread::Builder::new().name("store check".to_owned()).spawn(move || {
        // The server may be stopping.
        let _ = sender.send(run());
    });
    spawned.ok()?;
    done.await.ok()
}
