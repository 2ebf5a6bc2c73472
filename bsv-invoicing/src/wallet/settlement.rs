//! The settlement of an invoice, and marking it as paid.

use crate::error::Error;
use crate::ledger::MarkPaid;
use crate::ledger::queries::{GetReceived, GetSums};
use crate::model::invoice::Invoice;
use crate::model::settlement::{Received, Settlement};
use crate::store::WalletStore;
use crate::wallet::Wallet;
use crate::wallet::invoices::of_invoice;

impl Wallet {
    /// The details of an invoice's state.
    pub async fn settlement(&self, id: &str) -> Result<Settlement, Error> {
        let invoice = self.invoice(id).await?;
        let stored = self.store.list(GetReceived(invoice.number)).await?;
        let sums = self.store.list(GetSums(invoice.clone(), self.expiry_time())).await?;
        Ok(Settlement {
            sums,
            late: stored.received.late.sum() > 0,
            confirmations: stored.confirmations,
            contested: stored.contested,
            marked: stored.marked,
            refunds: stored.refunds,
            invoice,
        })
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
