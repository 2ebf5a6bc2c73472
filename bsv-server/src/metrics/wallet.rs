use super::exposition::Exposition;
use crate::instance::Instance;

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
    if instance.metrics.tells_balance
        && let Ok(satoshis) = wallet.balance().await
    {
        let help = "The balance, in satoshis.";
        exposition.gauge("bsv_balance_satoshis", help).add(&[], satoshis);
    }
}
