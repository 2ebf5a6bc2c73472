//! Checkout: an invoice as its payer sees it.

use bsv_tx::Address;

use crate::error::Error;
use crate::ledger::queries::{GetReceivedSum, GetWaitingSum};
use crate::model::invoice::{Invoice, InvoiceState};
use crate::model::invoice_id::InvoiceId;
use crate::model::time::Timestamp;
use crate::store::WalletStore;
use crate::wallet::Wallet;

/// What the payer of an invoice may know about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkout {
    number: u64,
    /// The id.
    pub id: InvoiceId,
    /// Its state.
    pub state: InvoiceState,
    /// What the payment is for.
    pub description: Option<String>,
    /// The amount, in satoshis.
    pub satoshis: u64,
    /// The sum of the payments that count, in satoshis.
    pub paid: u64,
    /// The sum of the payments that do not count before they are in a block, because their fees are
    /// too low, in satoshis. It is 0 once the invoice is paid.
    pub waiting: u64,
    /// What the payer must still send, in satoshis. It is 0 if the invoice is not pending, and also
    /// once everything was sent and only a block is missing.
    pub due: u64,
    /// Until when it can be paid.
    pub expires_at: Timestamp,
    /// Whether it is paid and all its payments are in blocks.
    pub is_mined: bool,
    /// Whether a payment counts only once it is in a block.
    pub needs_block: bool,
}

impl Checkout {
    /// Whether the payer has nothing more to wait for: the invoice is paid, and all its payments
    /// are in blocks. An invoice that its owner has marked as paid may have no payments.
    pub fn is_final(&self) -> bool {
        self.state == InvoiceState::Paid && (self.is_mined || self.paid == 0)
    }
}

impl Wallet {
    /// An invoice as its payer sees it.
    pub async fn checkout(&self, id: &str) -> Result<Checkout, Error> {
        let invoice = self.invoice(id).await?;
        let received = self.store.get(GetReceivedSum(invoice.number)).await?;
        let state = invoice.state(self.expiry_time());
        let rules = self.settings.payment_rules;
        let waiting = match state {
            InvoiceState::Pending | InvoiceState::Expired => {
                self.store.get(GetWaitingSum(invoice.number)).await?
            }
            InvoiceState::Paid => 0,
        };
        let mut sent = received;
        sent.in_time.unconfirmed = sent.in_time.unconfirmed.saturating_add(waiting);
        let due = match state {
            InvoiceState::Pending => rules.in_any_place().due(invoice.satoshis, sent),
            InvoiceState::Paid | InvoiceState::Expired => 0,
        };
        let Invoice { number, id, satoshis, description, expires_at, .. } = invoice;
        Ok(Checkout {
            number,
            id,
            state,
            description,
            satoshis,
            paid: received.sum(),
            waiting,
            due,
            expires_at,
            is_mined: state == InvoiceState::Paid
                && received.outside_blocks() == 0
                && received.sum() > 0,
            needs_block: rules.needs_block(satoshis),
        })
    }

    /// The address that an invoice is paid to. It is watched from now on. `None` if nothing is due.
    pub async fn show_address(&self, checkout: &Checkout) -> Result<Option<Address>, Error> {
        if checkout.due == 0 {
            return Ok(None);
        }
        let script = self.show_destination(checkout.number).await?;
        Ok(Address::of_script(&script, self.settings.network))
    }

    /// The URL of the payment page of an invoice, if there are such pages.
    pub fn page_url(&self, id: &str) -> Option<String> {
        self.settings.has_page.then(|| [&self.settings.public_url, "/pay/", id].concat())
    }
}
