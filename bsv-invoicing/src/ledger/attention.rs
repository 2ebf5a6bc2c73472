//! Invoices with money that may leave a decision to their owner. They are listed when payments and
//! refunds change, so that nobody looks at all invoices.

use crate::ledger::effects::transaction;
use crate::ledger::follow_tip::followed_height;
use crate::ledger::recount::listed_as_shallow;
use crate::ledger::rows::Order::{Ascending, Descending};
use crate::ledger::rows::{
    Attention, Contested, Engine, Incoming, Invoices, ReceivedFor, Rules, WalletStoreError, try_all,
};
use crate::ledger::{Books, IsTipUnconfirmed, Query};
use crate::model::coin::is_worth_sending;
use crate::model::invoice::Invoice;
use crate::model::settlement::{InvoiceSums, Received, Shallowness, StoredSums};
use crate::model::time::Timestamp;
use crate::model::transaction::{TransactionState, WaitReason};

impl Books<'_> {
    /// Lists an invoice, or takes it from the list, after its payments or refunds have changed.
    pub(crate) fn list_attention(&mut self, number: u64) -> Result<(), WalletStoreError> {
        let is_listed = self.rows.get::<Attention>(&number)?.is_some();
        let received = self.rows.get::<ReceivedFor>(&number)?.unwrap_or_default();
        let invoice = self.rows.get::<Invoices>(&number)?;
        match (is_listed, invoice.is_some_and(|invoice| needs_attention(&invoice, received))) {
            (false, true) => self.rows.put::<Attention>(number, &()),
            (true, false) => self.rows.remove::<Attention>(number).map(drop),
            _ => Ok(()),
        }
    }
}

/// Whether an invoice is listed: the network no longer shows one of its payments, or it holds more
/// than its amount, or anything at all if it is not paid, or something was lost after a refund or after
/// the owner accepted it. Amounts that nobody can send back do not count, because strangers could have
/// them listed.
pub(crate) fn needs_attention(invoice: &Invoice, received: Received) -> bool {
    let paid_amount = invoice.is_paid().then_some(invoice.satoshis);
    let surplus = received.left().saturating_sub(paid_amount.unwrap_or(0));
    let lost = received.lost(paid_amount);
    let is_open = (is_worth_sending(surplus) || is_worth_sending(lost)) && !received.is_accepted();
    invoice.deleted_at.is_none() && (received.contested > 0 || is_open)
}

/// How many payments that the network no longer shows are searched for the one that has been gone the
/// longest. Strangers may send any number.
const SEARCHED_FOR_CONTESTED: usize = 100;

/// For how many blocks the network has not shown a payment of an invoice, if there is such a payment. Those
/// that are not worth sending do not count if all can be looked at: strangers could hide other cases
/// behind them.
fn contested_for(rows: &dyn Engine, invoice: u64) -> Result<Option<u32>, WalletStoreError> {
    let all = (invoice, 0)..=(invoice, u64::MAX);
    let contested = rows.first::<Contested>(all, Ascending, SEARCHED_FOR_CONTESTED)?;
    let are_all = contested.len() < SEARCHED_FOR_CONTESTED;
    let since = try_all(contested, |(key, since)| {
        let paid = rows.get::<Incoming>(&key)?.map_or(0, |paid| paid.satoshis);
        Ok::<_, WalletStoreError>((!are_all || is_worth_sending(paid)).then_some(since))
    })?;
    let height = followed_height(rows)?;
    Ok(since.into_iter().flatten().min().map(|since| height.saturating_sub(since)))
}

/// How many payments of an invoice are searched for those that wait. Strangers may send any number.
const SEARCHED_FOR_WAITING: usize = 32;

/// The sum of an invoice's payments that wait for a block that is deep enough, among the newest ones,
/// and why one of them waits. A fee is the last reason to name.
pub(crate) fn waiting_sum(
    rows: &dyn Engine,
    invoice: u64,
) -> Result<(u64, WaitReason), WalletStoreError> {
    let all = (invoice, 0)..=(invoice, u64::MAX);
    let newest = rows.first::<Incoming>(all, Descending, SEARCHED_FOR_WAITING)?;
    let sums = try_all(newest, |((_, number), paid)| {
        let record = transaction(rows, number)?;
        let listed = listed_as_shallow(rows, (invoice, number), &record)?;
        let is_uncounted = listed.is_some_and(|(_, it)| it == Shallowness::Uncounted);
        let waits = is_uncounted || record.state == TransactionState::Waiting;
        let waiting = waits.then(|| (paid.satoshis, record.wait_reason()));
        Ok::<_, WalletStoreError>(waiting.unwrap_or_default())
    })?;
    let add = |(sum, why): (u64, WaitReason), (satoshis, reason)| {
        (sum.saturating_add(satoshis), why.max(reason))
    };
    Ok(sums.into_iter().fold((0, WaitReason::LowFee), add))
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
    let (waiting, waits_for) = match invoice.payment_received_at {
        Some(_) => (0, WaitReason::LowFee),
        None => waiting_sum(rows, number)?,
    };
    let contested_for = match received.contested {
        0 => None,
        _ => contested_for(rows, number)?,
    };
    let is_tip_unconfirmed = IsTipUnconfirmed.run(rows)?;
    let stored = StoredSums { received, waiting, waits_for, contested_for, is_tip_unconfirmed };
    Ok(rules.sums(invoice, stored, now))
}
