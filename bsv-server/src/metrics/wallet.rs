use bsv_invoicing::Timestamp;
use bsv_invoicing::ledger::webhooks::Lag;

use super::exposition::{Exposition, Number};
use crate::instance::Instance;
use crate::wallet_store::Wallet;

/// Writes what the wallet does and has.
pub(super) async fn write(exposition: &mut Exposition, instance: &Instance) {
    let Some(api) = &instance.wallet else { return };
    let wallet = api.wallet();
    let events = wallet.store().event_counts();
    let help = "What happened to invoices.";
    let mut invoices = exposition.counter("bsv_invoices_total", help);
    for (event, count) in events.invoices() {
        invoices.add(&[("event", event)], count);
    }
    let help = "What became of payments to the wallet. A payment may become several of these.";
    let mut incoming = exposition.counter("bsv_incoming_payments_total", help);
    for (outcome, count) in events.incoming().chain(wallet.not_taken().all()) {
        incoming.add(&[("outcome", outcome)], count);
    }
    let help = "The number of the last event.";
    let last_event = *wallet.last_event().borrow();
    exposition.gauge("bsv_events_last_number", help).add(&[], last_event);
    let help = "Attempts to send an event to a webhook.";
    let mut attempts = exposition.counter("bsv_webhook_attempts_total", help);
    for (outcome, count) in wallet.webhook_attempts().all() {
        attempts.add(&[("outcome", outcome)], count);
    }
    if let Ok(lags) = wallet.webhook_lags().await {
        write_lags(exposition, wallet, &lags);
    }
    if instance.metrics.tells_balance
        && let Ok(satoshis) = wallet.balance().await
    {
        let help = "The balance, in satoshis.";
        exposition.gauge("bsv_balance_satoshis", help).add(&[], satoshis);
    }
}

/// Writes how far webhooks are behind.
fn write_lags(exposition: &mut Exposition, wallet: &Wallet, lags: &[Lag]) {
    let now = wallet.now();
    let help = "Events after the last one up to which a webhook is done.";
    let mut behind = exposition.gauge("bsv_webhook_behind_events", help);
    for lag in lags {
        behind.add(&[("webhook", &lag.id.to_string())], lag.events);
    }
    let help = "Age of the oldest event that a webhook has not got, in seconds.";
    let mut ages = exposition.gauge("bsv_webhook_oldest_pending_seconds", help);
    for lag in lags {
        let age = lag.oldest.map_or(0, |oldest| seconds_between(oldest, now));
        ages.add(&[("webhook", &lag.id.to_string())], Number::Whole(age));
    }
}

fn seconds_between(from: Timestamp, to: Timestamp) -> u64 {
    to.as_micros().saturating_sub(from.as_micros()) / 1_000_000
}
