//! The log of events: which change is told how.

use crate::ledger::Books;
use crate::ledger::events::{EventCode, EventRow};
use crate::ledger::rows::{Damaged, Events, Invoices, ReadRows, Rows};
use crate::model::event::{Event, EventKind};
use crate::model::time::Timestamp;
use crate::model::transaction::{Purpose, TransactionState};

impl<R: Rows> Books<R> {
    /// The time of an event that happens at `now`: never before the last one.
    pub(crate) fn next_event_at(&self, now: Timestamp) -> Timestamp {
        now.max(Timestamp::from_micros(self.figures.last_event_at))
    }

    pub(crate) fn append_event(
        &mut self,
        at: Timestamp,
        code: EventCode,
        subject: u64,
    ) -> Result<(), R::Error> {
        self.figures.last_event += 1;
        self.figures.last_event_at = at.as_micros();
        self.told.push(code);
        self.rows.put::<Events>(self.figures.last_event, &EventRow { at, code, subject })
    }

    /// Tells that the transaction of this number has come from one state to another.
    pub(crate) fn tell_change(
        &mut self,
        number: u64,
        purpose: Purpose,
        was_seen: bool,
        (old, new): (TransactionState, TransactionState),
        at: Timestamp,
    ) -> Result<(), R::Error> {
        let (subject, is_outgoing) = match purpose {
            Purpose::Outgoing(payment) => (payment, true),
            Purpose::Cancellation(payment) => {
                let is_same = (old.spends(), old.counts()) == (new.spends(), new.counts());
                return match new.spends() {
                    _ if is_same => Ok(()),
                    true => self.append_event(at, EventCode::CancellationShown, payment),
                    false => self.append_event(at, EventCode::CancellationLost, payment),
                };
            }
            Purpose::Incoming(_) | Purpose::Found | Purpose::Coinbase => {
                if new.is_lost() && !was_seen {
                    return Ok(());
                }
                (number, false)
            }
        };
        for (outgoing, incoming) in changes(was_seen, old, new).into_iter().flatten() {
            if let Some(code) = if is_outgoing { Some(outgoing) } else { incoming } {
                self.append_event(at, code, subject)?;
            }
        }
        Ok(())
    }
}

/// What is told of a change of state: of a payment by the wallet, and of one to it. What strangers
/// offered, and the network did not take, is not told.
fn changes(
    was_seen: bool,
    old: TransactionState,
    new: TransactionState,
) -> [Option<(EventCode, Option<EventCode>)>; 2] {
    use EventCode as Code;
    use TransactionState as State;
    let both = |outgoing, incoming| Some((outgoing, Some(incoming)));
    let shown = match (old, new) {
        (_, new) if !new.can_be_spent() => None,
        (State::Contested { told: true }, _) => both(Code::OutgoingRestored, Code::PaymentRestored),
        (old, _) if old.counts() => None,
        (old, _) if was_seen && old != State::Waiting => {
            both(Code::OutgoingRestored, Code::PaymentRestored)
        }
        _ => both(Code::OutgoingSettled, Code::PaymentReceived),
    };
    let state = match new {
        State::Mined(_) => both(Code::OutgoingMined, Code::PaymentMined),
        State::Waiting => both(Code::OutgoingWaiting, Code::PaymentWaiting),
        State::Contested { told: true } => both(Code::OutgoingContested, Code::PaymentContested),
        State::Seen | State::Contested { told: false } if old.block().is_some() => {
            both(Code::OutgoingUnmined, Code::PaymentUnmined)
        }
        State::Displaced => both(Code::OutgoingDisplaced, Code::PaymentDisplaced),
        State::Invalid => both(Code::OutgoingInvalid, Code::PaymentInvalid),
        State::Unseen => Some((Code::OutgoingAccepted, None)),
        State::Refused => Some((Code::OutgoingRefused, None)),
        State::Cancelled => Some((Code::OutgoingCancelled, None)),
        State::Offered | State::Seen | State::Contested { told: false } => None,
    };
    [shown, state]
}

/// The event of a stored row.
pub(crate) fn event<R: ReadRows>(
    rows: &R,
    number: u64,
    EventRow { at, code, subject }: EventRow,
) -> Result<Event, R::Error> {
    use EventCode as Code;
    let invoice_id = || {
        let invoice = rows.get::<Invoices>(&subject)?;
        let missing = || Damaged::missing("an invoice that an event names");
        Ok::<_, R::Error>(invoice.ok_or_else(missing)?.id)
    };
    let kind = match code {
        Code::InvoiceCreated => EventKind::InvoiceCreated(invoice_id()?),
        Code::InvoiceExpired => EventKind::InvoiceExpired(invoice_id()?),
        Code::InvoiceDeleted => EventKind::InvoiceDeleted(invoice_id()?),
        Code::InvoicePaid => EventKind::InvoicePaid(invoice_id()?),
        Code::InvoiceUnpaid => EventKind::InvoiceUnpaid(invoice_id()?),
        Code::UserCreated => EventKind::UserCreated(subject),
        Code::PaymentReceived => EventKind::PaymentReceived(subject),
        Code::PaymentWaiting => EventKind::PaymentWaiting(subject),
        Code::PaymentMined => EventKind::PaymentMined(subject),
        Code::PaymentUnmined => EventKind::PaymentUnmined(subject),
        Code::PaymentContested => EventKind::PaymentContested(subject),
        Code::PaymentRestored => EventKind::PaymentRestored(subject),
        Code::PaymentDisplaced => EventKind::PaymentDisplaced(subject),
        Code::PaymentInvalid => EventKind::PaymentInvalid(subject),
        Code::OutgoingStarted => EventKind::OutgoingStarted(subject),
        Code::OutgoingAccepted => EventKind::OutgoingAccepted(subject),
        Code::OutgoingWaiting => EventKind::OutgoingWaiting(subject),
        Code::OutgoingSettled => EventKind::OutgoingSettled(subject),
        Code::OutgoingMined => EventKind::OutgoingMined(subject),
        Code::OutgoingUnmined => EventKind::OutgoingUnmined(subject),
        Code::OutgoingContested => EventKind::OutgoingContested(subject),
        Code::OutgoingRestored => EventKind::OutgoingRestored(subject),
        Code::OutgoingRefused => EventKind::OutgoingRefused(subject),
        Code::OutgoingCancelled => EventKind::OutgoingCancelled(subject),
        Code::OutgoingDisplaced => EventKind::OutgoingDisplaced(subject),
        Code::OutgoingInvalid => EventKind::OutgoingInvalid(subject),
        Code::CancellationShown => EventKind::CancellationShown(subject),
        Code::CancellationLost => EventKind::CancellationLost(subject),
    };
    Ok(Event { number, at, kind })
}
