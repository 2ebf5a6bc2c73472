//! Messages to a service manager, if there is one: see sd_notify(3).

use std::future;
use std::time::Duration;

use sd_notify::NotifyState;
use tokio::time::sleep;

/// Reports that all listeners answer.
pub(crate) fn tell_ready() {
    tell(NotifyState::Ready);
}

/// Reports that the server is stopping, after the requests in flight.
pub(crate) fn tell_stopping() {
    tell(NotifyState::Stopping);
}

/// Reports regularly, for as long as it is polled, that the threads that answer requests work, if
/// the service manager watches them.
pub(crate) async fn keep_watchdog_quiet() {
    let timeout = sd_notify::watchdog_enabled().filter(|timeout| *timeout > Duration::ZERO);
    let Some(timeout) = timeout else { return future::pending().await };
    loop {
        // This task does not run if all threads hang.
        if tokio::spawn(future::ready(())).await.is_ok() {
            tell(NotifyState::Watchdog);
        }
        sleep(timeout / 3).await;
    }
}

fn tell(state: NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(&[state]) {
        tracing::warn!("cannot report to the service manager: {error}");
    }
}
