//! Refunds: what can be refunded of an invoice, and what was refunded.

use crate::ledger::attempts::attempts;
use crate::ledger::create_invoice::stored_invoice;
use crate::ledger::effects::transaction;
use crate::ledger::recount::agreed_wish;
use crate::ledger::rows::Order::Ascending;
use crate::ledger::rows::{
    Counted, Damaged, Engine, Incoming, Invoices, OUTSIDE_BLOCKS, Receipts, ReceivedFor,
    WalletStoreError, try_all,
};
use crate::ledger::{Books, Refusal};
use crate::model::coin::is_worth_sending;
use crate::model::invoice::Invoice;
use crate::model::outgoing::{OutgoingPurpose, OutgoingRecord};
use crate::model::receipt::ReceiptKey;
use crate::model::time::Timestamp;
use crate::model::transaction::TransactionState;

/// How many unconfirmed receipts a refund spends at most.
const MAX_UNCONFIRMED: usize = 100;
/// How many outputs of unconfirmed payments are searched for them at most. A payment may pay any
/// number of invoices.
const SEARCHED_FOR_UNCONFIRMED: usize = 1_000;

/// What can be refunded of the payments of an invoice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refundable {
    /// The sum of the payments that count, in satoshis.
    pub received: u64,
    /// What was refunded or is being refunded, in satoshis.
    pub refunded: u64,
    /// What was paid beyond what the invoice asks for and is not refunded, in satoshis.
    pub surplus: u64,
    /// Where refunds go, if all payers whose payments count name the same place.
    pub to: Option<String>,
    /// Whether any payer has named a place.
    pub is_any_named: bool,
}

impl Refundable {
    /// What can still be refunded, in satoshis.
    pub fn left(&self) -> u64 {
        self.received.saturating_sub(self.refunded)
    }
}

/// What can be refunded of the payments of an invoice, at a time.
pub(crate) fn refundable(
    rows: &dyn Engine,
    number: u64,
    now: Timestamp,
) -> Result<Refundable, WalletStoreError> {
    let invoice = stored_invoice(rows, number)?.ok_or(Refusal::UnknownInvoice(number))?;
    let sums = rows.get::<ReceivedFor>(&number)?.unwrap_or_default();
    let (received, refunded) = (sums.sum(), sums.refunded);
    let surplus = invoice.surplus(received, refunded, now);
    let to = agreed_wish(rows, number, &sums)?;
    Ok(Refundable { received, refunded, surplus, to, is_any_named: sums.wishes > 0 })
}

/// The refunds of an invoice that are not lost, the newest first.
pub(crate) fn lasting_refunds(
    rows: &dyn Engine,
    invoice: u64,
) -> Result<Vec<(u64, OutgoingRecord)>, WalletStoreError> {
    let mut refunds = Vec::new();
    let purpose = OutgoingPurpose::Refund { invoice, to: String::new() };
    for (number, refund) in attempts(rows, &purpose)? {
        if !transaction(rows, refund.transaction)?.state.is_lost() {
            refunds.push((number, refund));
        }
    }
    Ok(refunds)
}

impl Books<'_> {
    /// The part of a payment for this purpose that sends back surplus of a paid invoice.
    pub(crate) fn surplus_sent(
        &self,
        purpose: &OutgoingPurpose,
        satoshis: u64,
    ) -> Result<u64, WalletStoreError> {
        let OutgoingPurpose::Refund { invoice: number, .. } = purpose else { return Ok(0) };
        let invoice = self.rows.get::<Invoices>(number)?.filter(Invoice::is_paid);
        let Some(invoice) = invoice else { return Ok(0) };
        let received = self.rows.get::<ReceivedFor>(number)?.unwrap_or_default();
        Ok(received.left().saturating_sub(invoice.satoshis).min(satoshis))
    }

    /// The unconfirmed receipts of the invoice. A refund must spend them, so that the refund is
    /// lost if they are lost. Small ones that the network does not show are none of them, and what they
    /// pay is not refunded.
    pub(crate) fn coins_of_refund(
        &self,
        invoice: u64,
        satoshis: u64,
        now: Timestamp,
    ) -> Result<Vec<ReceiptKey>, WalletStoreError> {
        let mut left = refundable(&self.rows, invoice, now)?.left();
        if satoshis > left {
            return Err(Refusal::RefundTooLarge { satoshis, left }.into());
        }
        let outside = (invoice, OUTSIDE_BLOCKS, 0)..=(invoice, OUTSIDE_BLOCKS, u64::MAX);
        let outside = self.rows.first::<Counted>(outside, Ascending, MAX_UNCONFIRMED + 1)?;
        let are_too_many = outside.len() > MAX_UNCONFIRMED;
        let payments = try_all(outside, |((.., number), ())| {
            let paid = self.rows.get::<Incoming>(&(invoice, number))?;
            let paid = paid.ok_or_else(|| Damaged::missing("a payment of an invoice"))?;
            Ok::<_, WalletStoreError>((number, paid, self.transaction(number)?))
        })?;
        let (mut coins, mut to_search) = (Vec::new(), SEARCHED_FOR_UNCONFIRMED);
        for (maker, paid, record) in payments {
            let must_wait = || Refusal::RefundMustWait(record.txid);
            // Nobody can hold up a refund with a small payment that vanishes. It is not refunded.
            if matches!(record.state, TransactionState::Contested { .. })
                && !is_worth_sending(paid.satoshis)
            {
                left = left.saturating_sub(paid.satoshis);
                if satoshis > left || are_too_many {
                    return Err(must_wait().into());
                }
                continue;
            }
            let made =
                ReceiptKey { maker, vout: paid.first }..=ReceiptKey { maker, vout: u32::MAX };
            let made = self.rows.first::<Receipts>(made, Ascending, to_search + 1)?;
            to_search = to_search.checked_sub(made.len()).ok_or_else(must_wait)?;
            for (key, receipt) in made {
                if self.invoice_of(receipt.key)? != Some(invoice) {
                    continue;
                }
                let is_free = record.can_be_spent() && receipt.spender.is_none();
                if !is_free || coins.len() == MAX_UNCONFIRMED {
                    return Err(must_wait().into());
                }
                coins.push(key);
            }
        }
        Ok(coins)
    }
}
