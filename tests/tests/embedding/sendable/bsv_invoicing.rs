use std::future::Ready;
use std::sync::Arc;

use bsv_invoicing::sending::faucet;
use bsv_invoicing::store::{Store, copy_wallet, holds_no_wallet};
use bsv_invoicing::webhooks::HttpWebhooks;
use bsv_invoicing::webhooks::{WalletClock, WebhookSender};
use bsv_invoicing::{PostgresWalletStore, RedbWalletStore, Wallet};
use bsv_store::Keystore;

use super::{any, is_send, is_spawnable};

type Sender = WebhookSender<HttpWebhooks, WalletClock>;

pub(super) fn wallet(
    wallet: &Arc<Wallet>,
    store: &RedbWalletStore,
    database: &PostgresWalletStore,
    sender: &Arc<Sender>,
) {
    let text = any::<&str>();
    is_spawnable(Arc::clone(wallet).run(any::<Ready<()>>()));
    is_spawnable(Arc::clone(sender).run(any::<Ready<()>>()));
    is_send(sender.test(any(), None));
    is_send(Wallet::open(any(), any::<Keystore>(), any()));
    is_send(Wallet::open_of(any(), any::<Keystore>(), any(), any()));
    is_send(wallet.begin_account());
    is_send(store.copy());
    is_send(copy_wallet(store, database));
    is_send(database.probe());
    is_send(database.be_alone());
    is_send(database.retire());
    is_send(database.overtaken());
    is_send(holds_no_wallet(database));

    is_send(wallet.create_invoice(any(), any()));
    is_send(wallet.invoice(text));
    is_send(wallet.invoice_number(text));
    is_send(wallet.invoices(any()));
    is_send(wallet.invoices_of(text, any()));
    is_send(wallet.invoices_paid_by(any()));
    is_send(wallet.delete_invoice(text));
    is_send(wallet.sweep());
    is_send(wallet.create_user(any(), any()));
    is_send(wallet.user(any()));

    is_send(wallet.terms(text));
    is_send(wallet.checkout(text));
    is_send(wallet.show_payable(any()));
    is_send(wallet.exposure());
    is_send(wallet.awaits_second_source());
    is_send(wallet.receive(text, any(), any()));
    is_send(wallet.payments(text, any()));
    is_send(wallet.payment_state(text, any()));
    is_send(wallet.channel(text, text, any()));
    is_send(wallet.mark_read(text, text, any(), any(), any()));
    is_send(wallet.settlement(text));
    is_send(wallet.mark_paid(text));

    is_send(wallet.pay(any(), any()));
    is_send(wallet.preview_payment(text));
    is_send(wallet.outgoing_payment(any()));
    is_send(wallet.outgoing_payments(any(), any()));
    is_send(wallet.outgoing_beef(any()));
    is_send(wallet.count_open_payments());
    is_send(wallet.cancel_payment(any()));
    is_send(wallet.refund(text, any(), any()));
    is_send(wallet.preview_refund(text, any()));
    is_send(wallet.withdraw(any(), any()));
    is_send(wallet.preview_withdrawal(any()));
    is_send(wallet.withdrawal(any()));
    is_send(wallet.withdrawals(any(), any()));
    is_send(wallet.consolidate());
    is_send(faucet(any(), text, any()));

    is_send(wallet.balance());
    is_send(wallet.holdings());
    is_send(wallet.unassigned_receipts(any(), any()));
    is_send(wallet.movements(any()));
    is_send(wallet.events(any(), any()));
    is_send(wallet.latest_event());
    is_send(wallet.event_page(any()));
    is_send(wallet.follow_events(any()));
    is_send(wallet.await_events(any(), any::<Ready<()>>()));

    is_send(wallet.create_webhook(any()));
    is_send(wallet.webhooks());
    is_send(wallet.webhook_lags());
    is_send(wallet.webhook(any()));
    is_send(wallet.change_webhook(any(), any()));
    is_send(wallet.rotate_webhook_secret(any(), any()));
    is_send(wallet.delete_webhook(any()));
    is_send(wallet.test_webhook(any(), None));
    is_send(wallet.delivery(any(), any()));
    is_send(wallet.deliveries(any()));
    is_send(wallet.redeliver(any(), any()));
    is_send(wallet.replay(any(), any()));

    is_send(wallet.rescan(any(), |_, _| ()));
    is_send(wallet.recover(any(), |_, _| ()));
    is_send(wallet.skip_keys(any()));
    is_send(wallet.verify_books(any(), |_, _| ()));
    is_send(wallet.export_seed());
    is_send(wallet.note_key_event(any(), text));
    is_send(wallet.audit_log(any(), any()));
    is_send(wallet.verify_audit_log());
}
