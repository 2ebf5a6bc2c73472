//! What is kept about the payments of an invoice that count, so that no answer reads all of them.
//! Strangers may send any number.

use crate::ledger::Books;
use crate::ledger::follow_tip::followed_height;
use crate::ledger::rows::Order::{Ascending, Descending};
use crate::ledger::rows::{
    Contested, Counted, Damaged, Engine, Invoices, OUTSIDE_BLOCKS, ReceivedFor, Refunds, Shallow,
    WalletStoreError, Wishes, try_all,
};
use crate::model::event::EventKind;
use crate::model::invoice::Invoice;
use crate::model::outgoing::OutgoingRecord;
use crate::model::settlement::{Counting, Received, Shallowness};
use crate::model::transaction::{ShownAs, TransactionRecord, TransactionState};

/// How a payment counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    /// The sum that it counts in.
    pub(crate) slot: Slot,
    /// The height of its block, or [`OUTSIDE_BLOCKS`].
    pub(crate) height: u32,
    /// Whether the network no longer shows it.
    pub(crate) is_contested: bool,
}

/// The sum that a payment counts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    Unconfirmed,
    Unmined,
    Mined,
}

impl Standing {
    /// How a payment by this transaction counts, if it counts. `shallow` is how it is listed if its block
    /// is not deep enough for it.
    pub(crate) fn of(record: &TransactionRecord, shallow: Option<Shallowness>) -> Option<Self> {
        let block = record.state.block();
        let slot = match (block, record.shown) {
            _ if shallow == Some(Shallowness::Uncounted) => return None,
            (Some(_), _) if shallow.is_none() => Slot::Mined,
            (_, ShownAs::Mined) => Slot::Unmined,
            _ => Slot::Unconfirmed,
        };
        let standing = Self {
            slot,
            height: block.map_or(OUTSIDE_BLOCKS, |block| block.height),
            is_contested: matches!(record.state, TransactionState::Contested { .. }),
        };
        record.state.counts().then_some(standing)
    }
}

impl Slot {
    fn amount(self, counting: &mut Counting) -> &mut u64 {
        match self {
            Self::Unconfirmed => &mut counting.unconfirmed,
            Self::Unmined => &mut counting.unmined,
            Self::Mined => &mut counting.mined,
        }
    }
}

impl Received {
    /// Adds a payment, without its wish.
    pub(crate) fn add(&mut self, it: Standing, satoshis: u64, is_late: bool) {
        let amount = it.slot.amount(self.part(is_late));
        *amount = amount.saturating_add(satoshis);
        self.payments += 1;
        self.contested += u64::from(it.is_contested);
    }

    /// Takes away a payment that was added. `None` if there is no such payment.
    fn take(&mut self, it: Standing, satoshis: u64, is_late: bool) -> Option<()> {
        let amount = it.slot.amount(self.part(is_late));
        *amount = amount.checked_sub(satoshis)?;
        self.payments = self.payments.checked_sub(1)?;
        self.contested = self.contested.checked_sub(u64::from(it.is_contested))?;
        Some(())
    }

    /// Adds a refund of an invoice, or takes it away. `is_before` tells whether the refund was made
    /// before the invoice was paid.
    pub(crate) fn change_refunds(&mut self, refund: &OutgoingRecord, lasts: bool, is_before: bool) {
        let change = |sum: &mut u64, satoshis| {
            *sum = match lasts {
                true => sum.saturating_add(satoshis),
                false => sum.saturating_sub(satoshis),
            };
        };
        change(&mut self.refunded, refund.satoshis);
        match is_before {
            true => change(&mut self.refunded_before, refund.satoshis),
            false => change(&mut self.surplus_refunded, refund.surplus),
        }
    }

    fn part(&mut self, is_late: bool) -> &mut Counting {
        if is_late { &mut self.late } else { &mut self.in_time }
    }
}

/// The payment to an invoice by a transaction that has changed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Payment {
    /// The number of the transaction.
    pub(crate) transaction: u64,
    /// The number of the invoice.
    pub(crate) invoice: u64,
    /// The amount.
    pub(crate) satoshis: u64,
    /// The events that the change writes.
    pub(crate) told: [Option<EventKind>; 2],
}

impl Books<'_> {
    /// Lists a payment as one in a block that is not deep enough for it: in the second way instead of the
    /// first.
    pub(crate) fn list_shallow(
        &mut self,
        payment: &Payment,
        [old, new]: [Option<(u32, Shallowness)>; 2],
    ) -> Result<(), WalletStoreError> {
        if old == new {
            return Ok(());
        }
        let key = |height| (height, payment.invoice, payment.transaction);
        if let Some((height, _)) = old {
            self.rows.remove::<Shallow>(key(height))?;
        }
        if let Some((height, shallowness)) = new {
            self.rows.put::<Shallow>(key(height), &shallowness)?;
        }
        Ok(())
    }

    /// The height of the block that holds a transaction, if it is not deep enough for a payment of this
    /// invoice, and whether the payment counts meanwhile. `old` is how it counted before.
    pub(crate) fn shallow_height(
        &self,
        invoice: &Invoice,
        record: &TransactionRecord,
        old: Option<Standing>,
    ) -> Result<Option<(u32, Shallowness)>, WalletStoreError> {
        let Some(block) = record.state.block() else { return Ok(None) };
        let shallowness = match (self.rules.needs_block(invoice.satoshis), old) {
            (true, _) => Shallowness::Counted,
            // A block is cheap, so it must not make count what was kept from counting by a word.
            (false, None) if record.word.is_some() || self.has_services()? => {
                Shallowness::Uncounted
            }
            (false, _) => return Ok(None),
        };
        Ok((!self.is_deep(block.height)?).then_some((block.height, shallowness)))
    }

    /// Whether a transaction pays an invoice and does not count for it, because its block is not deep
    /// enough.
    pub(crate) fn is_uncounted(
        &self,
        number: u64,
        record: &TransactionRecord,
    ) -> Result<bool, WalletStoreError> {
        let keys = self.made_by(number)?.into_iter().map(|(_, receipt)| receipt.key);
        let listed = try_all(self.invoices_of(keys)?, |invoice| {
            listed_as_shallow(&self.rows, (invoice, number), record)
        })?;
        Ok(listed.into_iter().flatten().any(|(_, it)| it == Shallowness::Uncounted))
    }

    /// Counts the payments of an invoice anew. Returns the sums before, and those after, which the
    /// caller stores.
    pub(crate) fn recount(
        &mut self,
        payment: &Payment,
        [old, new]: [Option<Standing>; 2],
        is_late: bool,
    ) -> Result<[Received; 2], WalletStoreError> {
        let Payment { transaction, invoice, satoshis, .. } = *payment;
        let stored = self.rows.get::<ReceivedFor>(&invoice)?.unwrap_or_default();
        let mut received = stored;
        if old.is_some() != new.is_some() {
            self.recount_wish(payment, new.is_some(), &mut received)?;
        }
        if let Some(old) = old {
            let wrong = || Damaged("an invoice has received less than what counts".to_owned());
            received.take(old, satoshis, is_late).ok_or_else(wrong)?;
        }
        if let Some(new) = new {
            received.add(new, satoshis, is_late);
        }
        match [old, new].map(|it| it.is_some_and(|it| it.is_contested)) {
            [false, true] => {
                let height = followed_height(&self.rows)?;
                self.rows.put::<Contested>((invoice, transaction), &height)?;
            }
            [true, false] => drop(self.rows.remove::<Contested>((invoice, transaction))?),
            _ => {}
        }
        let [was_at, is_at] = [old, new].map(|it| it.map(|it| (invoice, it.height, transaction)));
        if was_at != is_at {
            if let Some(key) = was_at {
                self.rows.remove::<Counted>(key)?;
            }
            if let Some(key) = is_at {
                self.rows.put::<Counted>(key, &())?;
            }
        }
        Ok([stored, received])
    }

    /// Counts a refund of an invoice from now on, or no longer. Returns what was stored before, with
    /// which the caller then looks whether that pays the invoice: see
    /// [`settle_anew`](Self::settle_anew).
    pub(crate) fn count_refund(
        &mut self,
        invoice: u64,
        (number, refund): (u64, &OutgoingRecord),
        lasts: bool,
    ) -> Result<Received, WalletStoreError> {
        let is_paid = self.rows.get::<Invoices>(&invoice)?.is_some_and(|it| it.is_paid());
        let before = self.rows.get::<ReceivedFor>(&invoice)?.unwrap_or_default();
        let mut received = before;
        let is_before = !is_paid || number <= before.last_payment_before;
        received.change_refunds(refund, lasts, is_before);
        self.rows.put::<ReceivedFor>(invoice, &received)?;
        Ok(before)
    }

    /// Counts the wishes for refunds of an invoice anew after a payment has begun to count, or no
    /// longer counts.
    fn recount_wish(
        &mut self,
        payment: &Payment,
        counts: bool,
        received: &mut Received,
    ) -> Result<(), WalletStoreError> {
        let Payment { transaction: number, invoice, .. } = *payment;
        let Some(wish) = self.rows.get::<Refunds>(&number)? else { return Ok(()) };
        let [before, after] = self.wishes_beside(invoice, number)?;
        let differ =
            |[a, b]: [Option<&String>; 2]| u64::from(a.zip(b).is_some_and(|(a, b)| a != b));
        let [before, after] = [before.as_ref(), after.as_ref()];
        let without = differ([before, after]);
        let with = differ([before, Some(&wish)]) + differ([Some(&wish), after]);
        if counts {
            self.rows.put::<Wishes>((invoice, number), &())?;
            received.wishes += 1;
            received.changes = (received.changes + with).saturating_sub(without);
        } else {
            self.rows.remove::<Wishes>((invoice, number))?;
            received.wishes = received.wishes.saturating_sub(1);
            received.changes = (received.changes + without).saturating_sub(with);
        }
        Ok(())
    }

    /// The wishes that come right before and right after that of a payment.
    fn wishes_beside(
        &self,
        invoice: u64,
        number: u64,
    ) -> Result<[Option<String>; 2], WalletStoreError> {
        let before = (invoice, 0)..(invoice, number);
        let after = (invoice, number.saturating_add(1))..=(invoice, u64::MAX);
        let before = self.rows.first::<Wishes>(before, Descending, 1);
        let after = self.rows.first::<Wishes>(after, Ascending, 1);
        let wish = |listed: &Option<(u64, u64)>| match listed {
            Some((_, number)) => self.rows.get::<Refunds>(number),
            None => Ok(None),
        };
        let beside = [before?, after?].map(|it| it.first().map(|(key, ())| *key));
        let [before, after] = beside.each_ref().map(wish);
        Ok([before?, after?])
    }
}

/// How a payment is listed as one in a block that is not deep enough for it, and at which height.
pub(crate) fn listed_as_shallow(
    rows: &dyn Engine,
    (invoice, number): (u64, u64),
    record: &TransactionRecord,
) -> Result<Option<(u32, Shallowness)>, WalletStoreError> {
    let Some(block) = record.state.block() else { return Ok(None) };
    let listed = rows.get::<Shallow>(&(block.height, invoice, number))?;
    Ok(listed.map(|shallowness| (block.height, shallowness)))
}

/// Where the first payer who said so, and whose payment of the invoice counts, wants refunds.
pub(crate) fn first_wish(
    rows: &dyn Engine,
    invoice: u64,
) -> Result<Option<String>, WalletStoreError> {
    let first = rows.first::<Wishes>((invoice, 0)..=(invoice, u64::MAX), Ascending, 1)?;
    match first.first() {
        Some(((_, number), ())) => rows.get::<Refunds>(number),
        None => Ok(None),
    }
}

/// Where refunds of an invoice go, if all payers whose payments count name the same place: no payer
/// may decide where another payer's money goes.
pub(crate) fn agreed_wish(
    rows: &dyn Engine,
    invoice: u64,
    received: &Received,
) -> Result<Option<String>, WalletStoreError> {
    match received.wishes == received.payments && received.changes == 0 {
        true => first_wish(rows, invoice),
        false => Ok(None),
    }
}

/// The height of the newest block that holds a payment of the invoice that counts, or
/// [`OUTSIDE_BLOCKS`] if one of them is in no block. `None` if none counts.
pub(crate) fn last_height(
    rows: &dyn Engine,
    invoice: u64,
) -> Result<Option<u32>, WalletStoreError> {
    let all = (invoice, 0, 0)..=(invoice, u32::MAX, u64::MAX);
    let last = rows.first::<Counted>(all, Descending, 1)?;
    Ok(last.first().map(|((_, height, _), ())| *height))
}
