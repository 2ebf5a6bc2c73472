//! The settlement of an invoice, and marking it as paid.

use crate::error::Error;
use crate::ledger::MarkPaid;
use crate::ledger::queries::GetSettlement;
use crate::model::invoice::Invoice;
use crate::model::invoice_id::InvoiceId;
use crate::model::settlement::{Received, Settlement};
use crate::store::WalletStore;
use crate::wallet::Wallet;
use crate::wallet::invoices::of_invoice;

impl Wallet {
    /// The details of an invoice's state.
    pub async fn settlement(&self, id: &str) -> Result<Settlement, Error> {
        let parsed: InvoiceId = id.parse()?;
        let question = GetSettlement(self.keys.ids.number(&parsed), self.expiry_time());
        let settlement = self
            .store
            .list(question)
            .await?
            .filter(|it| it.invoice.id == parsed && it.invoice.deleted_at.is_none());
        settlement.ok_or_else(|| Error::UnknownInvoice(id.to_owned()))
    }

    /// Marks an invoice as paid, whatever it has received. This cannot be undone.
    pub async fn mark_paid(&self, id: &str) -> Result<Invoice, Error> {
        let invoice = self.invoice(id).await?.number;
        let marked = self.store.execute(MarkPaid { invoice, now: self.now() }).await;
        marked.map_err(|error| of_invoice(id, error))?;
        self.invoice(id).await
    }

    /// What payers must still send for an invoice that is not paid and has received this, in
    /// satoshis. Fails if everything was sent and only a block is missing.
    pub(crate) fn asked_for(&self, invoice: &Invoice, received: Received) -> Result<u64, Error> {
        match self.settings.payment_rules.in_any_place().due(invoice.satoshis, received) {
            0 => Err(Error::InFlight(invoice.id.to_string())),
            due => Ok(due),
        }
    }
}
