//! What a service manager is told, where one asks for it: see sd_notify(3).

use std::future;
use std::time::Duration;

use sd_notify::NotifyState;
use tokio::time::sleep;

/// Tells that all listeners answer.
pub(crate) fn tell_ready() {
    tell(NotifyState::Ready);
}

/// Tells that the server stops, once it has finished what is in flight.
pub(crate) fn tell_stopping() {
    tell(NotifyState::Stopping);
}

/// Tells again and again, for as long as it is polled, that the threads that answer requests do their work, if the
/// service manager watches that.
pub(crate) async fn keep_watchdog_quiet() {
    let timeout = sd_notify::watchdog_enabled().filter(|timeout| *timeout > Duration::ZERO);
    let Some(timeout) = timeout else { return future::pending().await };
    loop {
        // It is not run where all of them hang.
        if tokio::spawn(future::ready(())).await.is_ok() {
            tell(NotifyState::Watchdog);
        }
        sleep(timeout / 3).await;
    }
}

fn tell(state: NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(&[state]) {
        tracing::warn!("the service manager cannot be told how the server is: {error}");
    }
}
