//! The terms of invoices.

use crate::dpp::{Destination, FeeRate, Fees, Terms};
use crate::error::Error;
use crate::ledger::queries::GetReceivedSum;
use crate::model::invoice::{Invoice, InvoiceState};
use crate::store::WalletStore;
use crate::wallet::Wallet;
use crate::wallet::pay::draft::url_of_invoice;

/// The addition to the memo of an invoice for which only payments in blocks count.
fn counts_once(mined_blocks: u32) -> String {
    match mined_blocks {
        1 => " (a payment counts once it is in a block)".to_owned(),
        count => format!(" (a payment counts once it has {count} confirmations)"),
    }
}

impl Wallet {
    /// The terms of an invoice that can be paid.
    pub async fn terms(&self, id: &str) -> Result<Terms, Error> {
        let invoice = self.invoice(id).await?;
        self.check_payable(&invoice)?;
        let description = format!("invoice {id}");
        let script = self.show_destination(invoice.number).await?;
        let received = self.store.get(GetReceivedSum(invoice.number)).await?;
        let mut memo = invoice.description.clone().unwrap_or_else(|| description.clone());
        let rules = self.settings.payment_rules;
        if rules.needs_block(invoice.satoshis) {
            memo.push_str(&counts_once(rules.mined_blocks));
        }
        let rate = FeeRate { satoshis: self.quoted_fee_rate(), bytes: 1000 };
        Ok(Terms {
            network: self.settings.network,
            destinations: vec![Destination {
                satoshis: self.asked_for(&invoice, received)?,
                script,
                description,
            }],
            created_at: invoice.created_at,
            expires_at: Some(invoice.expires_at),
            payment_url: self.payment_url(id),
            memo,
            merchant: self.settings.merchant.clone(),
            reference: id.to_owned(),
            fees: Some(Fees { standard: rate, data: rate }),
            wants_ancestry: self.sources().is_ok_and(|it| it.receiving.takes_extended()),
        })
    }

    /// The payment URL of an invoice.
    pub fn payment_url(&self, id: &str) -> String {
        url_of_invoice(&self.settings.public_url, id)
    }

    /// Fails unless an invoice waits for a new payment.
    pub(crate) fn check_payable(&self, invoice: &Invoice) -> Result<(), Error> {
        match invoice.state_for_new_payment(self.expiry_time()) {
            InvoiceState::Pending => Ok(()),
            InvoiceState::Paid => Err(Error::Paid(invoice.id.to_string())),
            InvoiceState::Expired => Err(Error::Expired(invoice.id.to_string())),
        }
    }
}
