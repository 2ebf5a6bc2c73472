//! What an invoice has received, and whether that pays it.

use bsv_store::KeyEvent;

use crate::ledger::attention::needs_attention;
use crate::ledger::events::{EventDetails, EventRow, PaymentDetails, Sums};
use crate::ledger::recount::{Payment, Standing, listed_as_shallow};
use crate::ledger::rows::{
    Damaged, Engine, Expiries, Incoming, Invoices, Marked, NewAuditEntry, Paid, ReceivedFor, Rules,
    WalletStoreError,
};
use crate::ledger::{Books, Command, Query, Refusal};
use crate::model::event::EventKind;
use crate::model::invoice::Invoice;
use crate::model::settlement::{PaymentRules, Received};
use crate::model::time::Timestamp;
use crate::model::transaction::TransactionRecord;

/// Sets the rules that decide whether an invoice is paid. They apply to an invoice when one of its
/// payments next changes.
#[derive(Clone, Copy, Debug)]
pub struct SetRules {
    /// The rules.
    pub rules: PaymentRules,
}

impl Command for SetRules {
    type Answer = ();

    fn run(&self, books: &mut Books<'_>) -> Result<(), WalletStoreError> {
        books.rules = self.rules;
        books.rows.put::<Rules>((), &self.rules)
    }
}

/// The current rules.
#[derive(Clone, Copy, Debug)]
pub struct GetRules;

impl Query for GetRules {
    type Answer = PaymentRules;

    fn run(self, rows: &dyn Engine) -> Result<PaymentRules, WalletStoreError> {
        Ok(rows.get::<Rules>(&())?.unwrap_or_default())
    }
}

/// Marks an invoice as paid because its owner says so, whatever it has received. If it is paid, it may
/// stay as it is: its surplus is kept, or what was lost is given up. What is lost after that is a case
/// to decide.
#[derive(Clone, Copy, Debug)]
pub struct MarkPaid {
    /// The number of the invoice.
    pub invoice: u64,
    /// The time.
    pub now: Timestamp,
}

impl Command for MarkPaid {
    type Answer = ();

    fn run(&self, books: &mut Books<'_>) -> Result<(), WalletStoreError> {
        let number = self.invoice;
        let invoice = books.rows.get::<Invoices>(&number)?;
        let invoice = invoice.filter(|invoice| invoice.deleted_at.is_none());
        let invoice = invoice.ok_or(Refusal::UnknownInvoice(number))?;
        let at = books.next_event_at(self.now);
        if books.rows.get::<Marked>(&number)?.is_none() {
            books.rows.put::<Marked>(number, &at)?;
            books
                .rows
                .append_audit(NewAuditEntry::Next(KeyEvent::InvoiceMarked, invoice.id.as_str()))?;
            books.tell_standing(at, EventKind::InvoiceMarked, number)?;
        }
        let mut received = books.rows.get::<ReceivedFor>(&number)?.unwrap_or_default();
        // What is here beyond the amount is surplus, until the owner marks the paid invoice too.
        let kept = match invoice.is_paid() {
            true => received.sum(),
            false => received.sum().min(invoice.satoshis.saturating_add(received.refunded)),
        };
        received.accepted = Some((kept, received.refunded));
        books.rows.put::<ReceivedFor>(number, &received)?;
        let counted = books.rules.counted(invoice.satoshis, received, true);
        let sums = Sums { paid: received.sum(), due: 0, counted };
        let details = PaymentDetails { transaction: 0, satoshis: 0, late: false, sums };
        books.settle(&mut { invoice }, details, received, false, at)?;
        books.list_attention(number)
    }
}

impl Books<'_> {
    /// Counts a payment of an invoice anew because its block is deep enough now.
    pub(crate) fn count_anew(
        &mut self,
        invoice: u64,
        transaction: u64,
        at: Timestamp,
    ) -> Result<(), WalletStoreError> {
        let record = self.transaction(transaction)?;
        let paid = self.rows.get::<Incoming>(&(invoice, transaction))?;
        let Paid { satoshis, .. } =
            paid.ok_or_else(|| Damaged::missing("a payment of an invoice"))?;
        let told = [Some(EventKind::InvoiceSumsChanged), None];
        let payment = Payment { transaction, invoice, satoshis, told };
        self.recount_invoice(&payment, (&record, &record), false, at)
    }

    /// Counts the payments of an invoice anew after the state of a transaction that pays it has
    /// changed, and writes the events.
    pub(crate) fn recount_invoice(
        &mut self,
        payment: &Payment,
        (before, after): (&TransactionRecord, &TransactionRecord),
        was_in_flight: bool,
        at: Timestamp,
    ) -> Result<(), WalletStoreError> {
        let number = payment.invoice;
        // There is no invoice if its payment was recovered with the words alone.
        let Some(mut invoice) = self.rows.get::<Invoices>(&number)? else { return Ok(()) };
        let was_shallow = listed_as_shallow(&self.rows, (number, payment.transaction), before)?;
        let old = Standing::of(before, was_shallow.map(|(_, it)| it));
        let shallow = self.shallow_height(&invoice, after, old)?;
        self.list_shallow(payment, [was_shallow, shallow])?;
        let new = Standing::of(after, shallow.map(|(_, it)| it));
        let has_changed = old.map(|it| it.slot) != new.map(|it| it.slot) || was_in_flight;
        if !has_changed && old == new && payment.told.iter().all(Option::is_none) {
            return Ok(());
        }
        let late = after.at >= invoice.expires_at;
        let [received_before, mut received] = self.recount(payment, [old, new], late)?;
        let was_listed = needs_attention(&invoice, received_before);
        let sums = self.sums_after(&invoice, &mut received, has_changed)?;
        if received != received_before {
            self.rows.put::<ReceivedFor>(number, &received)?;
        }
        let Payment { transaction, satoshis, told, .. } = *payment;
        let details = match after.was_seen() {
            true => PaymentDetails { transaction, satoshis, late, sums },
            // The transaction may be forgotten, and the events that name it stay.
            false => PaymentDetails { transaction: 0, satoshis: 0, late: false, sums },
        };
        self.tell_payment(&told, (number, details), after.state.block(), at)?;
        if has_changed {
            self.settle(&mut invoice, details, received, was_in_flight, at)?;
        }
        match was_listed || needs_attention(&invoice, received) {
            true => self.list_attention(number),
            false => Ok(()),
        }
    }

    /// Looks whether an invoice is paid after its refunds have changed. `before` is what was stored
    /// before that. The rules of today judge a paid invoice only if a refund has come back that was made
    /// before it was paid.
    pub(crate) fn settle_anew(
        &mut self,
        number: u64,
        before: Received,
        at: Timestamp,
    ) -> Result<(), WalletStoreError> {
        let Some(mut invoice) = self.rows.get::<Invoices>(&number)? else { return Ok(()) };
        let stored = self.rows.get::<ReceivedFor>(&number)?.unwrap_or_default();
        let mut received = stored;
        let is_judged = !invoice.is_paid() || stored.refunded_before > before.refunded_before;
        let sums = self.sums_after(&invoice, &mut received, is_judged)?;
        if received != stored {
            self.rows.put::<ReceivedFor>(number, &received)?;
        }
        let details = PaymentDetails { transaction: 0, satoshis: 0, late: false, sums };
        let is_told = self.settle(&mut invoice, details, received, false, at)?;
        if !is_told && received.refunded_before != before.refunded_before {
            let changed = [Some(EventKind::InvoiceSumsChanged)];
            self.tell_payment(&changed, (number, details), None, at)?;
        }
        self.list_attention(number)
    }

    /// The sums of an invoice after a change of what it has received or refunded. If that no longer
    /// pays the invoice, nothing that was refunded counts any more.
    fn sums_after(
        &self,
        invoice: &Invoice,
        received: &mut Received,
        has_changed: bool,
    ) -> Result<Sums, WalletStoreError> {
        let stays_paid = invoice.is_paid()
            && (!has_changed || self.rules.stays_paid(invoice.satoshis, *received));
        let is_marked = self.rows.get::<Marked>(&invoice.number)?.is_some();
        let due = match is_marked || stays_paid {
            true => 0,
            false => {
                received.refunded_before = received.refunded;
                (received.surplus_refunded, received.accepted) = (0, None);
                self.rules.due(invoice.satoshis, *received)
            }
        };
        let is_paid = due == 0 && invoice.deleted_at.is_none();
        let counted = self.rules.counted(invoice.satoshis, *received, is_paid);
        Ok(Sums { paid: received.sum(), due, counted })
    }

    /// Records that an invoice is paid or no longer paid, or that only a block is missing, according
    /// to the sums in `details` and to what it has received. The sweep may already have looked at an
    /// invoice that did not expire, because a payment was in flight or only a block was missing. It
    /// must look again after that has come to nothing. Returns whether an event tells it.
    fn settle(
        &mut self,
        invoice: &mut Invoice,
        details: PaymentDetails,
        received: Received,
        was_in_flight: bool,
        at: Timestamp,
    ) -> Result<bool, WalletStoreError> {
        let number = invoice.number;
        let is_paid = details.sums.due == 0;
        let (is_deleted, expiry) = (invoice.deleted_at.is_some(), (invoice.expires_at, number));
        let awaited_since = invoice.awaits_block_since;
        let can_expire = !is_paid && !is_deleted && invoice.expired_at.is_none();
        let awaits_block = can_expire && self.rules.is_covered_in_time(invoice.satoshis, received);
        invoice.awaits_block_since = awaits_block.then(|| awaited_since.unwrap_or(at));
        let told = match (invoice.payment_received_at, is_paid) {
            (None, true) if !is_deleted => {
                (invoice.payment_received_at, invoice.expired_at) = (Some(at), None);
                let last_payment_before = self.figures.last_payment;
                let received = Received { last_payment_before, ..received };
                self.rows.put::<ReceivedFor>(number, &received)?;
                Some(EventKind::InvoicePaid)
            }
            (Some(_), false) => {
                invoice.payment_received_at = None;
                Some(EventKind::InvoiceUnpaid)
            }
            _ => None,
        };
        if told.is_some() || invoice.awaits_block_since != awaited_since {
            self.rows.put::<Invoices>(number, invoice)?;
        }
        let was_held = was_in_flight || awaited_since.is_some();
        if can_expire && (told.is_some() || was_held) {
            self.rows.put::<Expiries>(expiry, &())?;
        }
        self.tell_payment(&[told], (number, details), None, at)?;
        Ok(told.is_some())
    }

    /// Writes an event of an invoice with the sum that it has received.
    pub(crate) fn tell_standing(
        &mut self,
        at: Timestamp,
        kind: EventKind,
        invoice: u64,
    ) -> Result<(), WalletStoreError> {
        let received = self.rows.get::<ReceivedFor>(&invoice)?.unwrap_or_default();
        let details = EventDetails::Sum(received.sum());
        self.append_row(&EventRow { at, kind, subject: invoice, details, block: None })
    }
}
