use bsv_invoicing::ledger::webhooks::Lag;
use bsv_invoicing::{Timestamp, Wallet};

use super::exposition::{Exposition, Number};
use crate::instance::Instance;

/// Writes the metrics of the wallet.
pub(super) async fn write(exposition: &mut Exposition, instance: &Instance) {
    let Some(api) = &instance.wallet else { return };
    let wallet = api.wallet();
    let events = wallet.store().event_counts();
    let help = "Number of events of invoices.";
    let mut invoices = exposition.counter("bsv_invoices_total", help);
    for (event, count) in events.invoices() {
        invoices.add(&[("event", event)], count);
    }
    let help = "Number of state changes of payments to the wallet. A payment can have several states in turn.";
    let mut incoming = exposition.counter("bsv_incoming_payments_total", help);
    for (outcome, count) in events.incoming().chain(wallet.not_taken().all()) {
        incoming.add(&[("outcome", outcome)], count);
    }
    let help = "The number of the last event.";
    let last_event = *wallet.last_event().borrow();
    exposition.gauge("bsv_events_last_number", help).add(&[], last_event);
    let help = "Number of attempts to send an event to a webhook.";
    let mut attempts = exposition.counter("bsv_webhook_attempts_total", help);
    for (outcome, count) in wallet.webhook_attempts().all() {
        attempts.add(&[("outcome", outcome)], count);
    }
    if let Ok(lags) = wallet.webhook_lags().await {
        write_lags(exposition, wallet, &lags);
    }
    if let Ok(exposure) = wallet.exposure().await {
        let help = "Sum of the payments that count by the word of services alone, in satoshis.";
        exposition.gauge("bsv_exposed_satoshis", help).add(&[], exposure.satoshis);
        if let Some(limit) = exposure.limit {
            let help = "The most that they may be worth together, in satoshis.";
            exposition.gauge("bsv_exposure_limit_satoshis", help).add(&[], limit);
        }
    }
    if instance.metrics.tells_balance
        && let Ok(satoshis) = wallet.balance().await
    {
        let help = "The balance, in satoshis.";
        exposition.gauge("bsv_balance_satoshis", help).add(&[], satoshis);
    }
}

/// Writes the lag of each webhook.
fn write_lags(exposition: &mut Exposition, wallet: &Wallet, lags: &[Lag]) {
    let now = wallet.now();
    let help = "Number of events that a webhook is behind.";
    let mut behind = exposition.gauge("bsv_webhook_behind_events", help);
    for lag in lags {
        behind.add(&[("webhook", &lag.id.to_string())], lag.events);
    }
    let help = "Age of the oldest event that a webhook has not received, in seconds.";
    let mut ages = exposition.gauge("bsv_webhook_oldest_pending_seconds", help);
    for lag in lags {
        let age = lag.oldest.map_or(0, |oldest| seconds_between(oldest, now));
        ages.add(&[("webhook", &lag.id.to_string())], Number::Whole(age));
    }
}

fn seconds_between(from: Timestamp, to: Timestamp) -> u64 {
    to.as_micros().saturating_sub(from.as_micros()) / 1_000_000
}
