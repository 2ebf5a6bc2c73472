//! Invoices with money that may leave a decision to their owner. They are listed when payments and
//! refunds change, so that nobody looks at all invoices.

use crate::ledger::Books;
use crate::ledger::effects::transaction;
use crate::ledger::refunds::refunded;
use crate::ledger::rows::Order::Descending;
use crate::ledger::rows::{
    Attention, Engine, FollowedTip, Incoming, Invoices, ReceivedFor, Rules, WalletStoreError,
    try_all,
};
use crate::model::invoice::Invoice;
use crate::model::settlement::{InvoiceSums, Received, StoredSums};
use crate::model::time::Timestamp;
use crate::model::transaction::TransactionState;

impl Books<'_> {
    /// Lists an invoice, or takes it from the list, after its payments or refunds have changed.
    pub(crate) fn list_attention(&mut self, number: u64) -> Result<(), WalletStoreError> {
        let listed = self.rows.get::<Attention>(&number)?;
        let received = self.rows.get::<ReceivedFor>(&number)?.unwrap_or_default();
        let invoice = self.rows.get::<Invoices>(&number)?;
        let invoice = invoice.filter(|invoice| may_need_attention(invoice, received));
        let is_open = match invoice {
            Some(invoice) => received.contested > 0 || holds_more(&self.rows, &invoice, received)?,
            None => false,
        };
        if !is_open {
            return match listed {
                Some(_) => self.rows.remove::<Attention>(number).map(drop),
                None => Ok(()),
            };
        }
        let contested_since = match received.contested {
            0 => None,
            _ => Some(match listed.flatten() {
                Some(since) => since,
                None => followed_height(&self.rows)?,
            }),
        };
        match listed == Some(contested_since) {
            true => Ok(()),
            false => self.rows.put::<Attention>(number, &contested_since),
        }
    }
}

/// Whether an invoice may have to be listed. Most are not, and cost no further look.
pub(crate) fn may_need_attention(invoice: &Invoice, received: Received) -> bool {
    let holds_what_it_asks =
        invoice.payment_received_at.is_some() && received.sum() <= invoice.satoshis;
    let is_settled = received.sum() == 0 || (holds_what_it_asks && received.contested == 0);
    invoice.deleted_at.is_none() && !is_settled
}

/// Whether an invoice holds more than it should: more than its amount, or anything at all if it is
/// not paid.
fn holds_more(
    rows: &dyn Engine,
    invoice: &Invoice,
    received: Received,
) -> Result<bool, WalletStoreError> {
    let left = received.sum().saturating_sub(refunded(rows, invoice.number)?);
    Ok(left > if invoice.payment_received_at.is_some() { invoice.satoshis } else { 0 })
}

/// The height up to which the chain was followed.
fn followed_height(rows: &dyn Engine) -> Result<u32, WalletStoreError> {
    Ok(rows.get::<FollowedTip>(&())?.map_or(0, |tip| tip.height))
}

/// Whether the list is right about an invoice.
pub(crate) fn is_listed_rightly(
    rows: &dyn Engine,
    invoice: &Invoice,
    received: Received,
) -> Result<bool, WalletStoreError> {
    let is_open = may_need_attention(invoice, received)
        && (received.contested > 0 || holds_more(rows, invoice, received)?);
    let listed = rows.get::<Attention>(&invoice.number)?;
    let since_when = |since: Option<u32>| since.is_some() == (received.contested > 0);
    Ok(listed.map_or(!is_open, |since| is_open && since_when(since)))
}

/// How many payments of an invoice are searched for those that wait. Strangers may send any number.
const SEARCHED_FOR_WAITING: usize = 32;

/// The sum of an invoice's payments that wait for a block, among the newest ones.
pub(crate) fn waiting_sum(rows: &dyn Engine, invoice: u64) -> Result<u64, WalletStoreError> {
    let all = (invoice, 0)..=(invoice, u64::MAX);
    let newest = rows.first::<Incoming>(all, Descending, SEARCHED_FOR_WAITING)?;
    let sums = try_all(newest, |((_, number), paid)| {
        let waits = transaction(rows, number)?.state == TransactionState::Waiting;
        Ok::<u64, WalletStoreError>(if waits { paid.satoshis } else { 0 })
    })?;
    Ok(sums.into_iter().fold(0, u64::saturating_add))
}

/// The sums of an invoice at a time.
pub(crate) fn invoice_sums(
    rows: &dyn Engine,
    invoice: &Invoice,
    now: Timestamp,
) -> Result<InvoiceSums, WalletStoreError> {
    let number = invoice.number;
    let rules = rows.get::<Rules>(&())?.unwrap_or_default();
    let received = rows.get::<ReceivedFor>(&number)?.unwrap_or_default();
    let refunded = refunded(rows, number)?;
    let waiting = match invoice.payment_received_at {
        Some(_) => 0,
        None => waiting_sum(rows, number)?,
    };
    let contested_for = match received.contested {
        0 => 0,
        _ => {
            let since = rows.get::<Attention>(&number)?.flatten();
            let height = followed_height(rows)?;
            since.map_or(0, |since| height.saturating_sub(since))
        }
    };
    let stored = StoredSums { received, waiting, refunded, contested_for };
    Ok(rules.sums(invoice, stored, now))
}
