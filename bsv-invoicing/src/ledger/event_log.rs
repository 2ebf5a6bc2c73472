//! The log of events: which events a change writes.

use std::collections::BTreeMap;

use crate::ledger::events::{EventDetails, EventRow, PaymentDetails, ReceiptDetails};
use crate::ledger::keys::user_of;
use crate::ledger::rows::{Engine, EventLog, Events, Invoices, Unassigned, WalletStoreError};
use crate::ledger::{Books, Command, Query};
use crate::model::event::{EventKind, LogName};
use crate::model::outgoing::OutgoingPurpose;
use crate::model::receipt::{Receipt, ReceiptKey};
use crate::model::time::Timestamp;
use crate::model::transaction::{BlockPlace, Purpose, TransactionRecord, TransactionState};

/// Gives the log of events a name. A new log needs one, and so does a log that goes on in a
/// restored backup. In a restored backup this also disables all webhooks, because the original
/// wallet may still send events to them.
#[derive(Clone, Copy, Debug)]
pub struct NameLog(pub LogName);

impl Command for NameLog {
    type Answer = ();

    fn run(&self, books: &mut Books<'_>) -> Result<(), WalletStoreError> {
        if books.rows.get::<EventLog>(&())?.is_some() {
            books.disable_webhooks()?;
        }
        books.rows.put::<EventLog>((), &self.0)
    }
}

/// The name of the log of events, once it has one.
#[derive(Clone, Copy, Debug)]
pub struct GetLogName;

impl Query for GetLogName {
    type Answer = Option<LogName>;

    fn run(self, rows: &dyn Engine) -> Result<Option<LogName>, WalletStoreError> {
        rows.get::<EventLog>(&())
    }
}

/// The events that a change of a transaction's state writes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tellings {
    /// The events for a payment by the wallet.
    pub(crate) outgoing: [Option<EventKind>; 2],
    /// The events for a payment of an invoice.
    pub(crate) incoming: [Option<EventKind>; 2],
}

impl Books<'_> {
    /// The time of an event that happens at `now`. It is never earlier than the last event.
    pub(crate) fn next_event_at(&self, now: Timestamp) -> Timestamp {
        now.max(Timestamp::from_micros(self.figures.last_event_at))
    }

    /// Writes an event that needs no details besides its subject.
    pub(crate) fn append_event(
        &mut self,
        at: Timestamp,
        kind: EventKind,
        subject: u64,
    ) -> Result<(), WalletStoreError> {
        self.append_row(&EventRow { at, kind, subject, details: EventDetails::None, block: None })
    }

    pub(crate) fn append_row(&mut self, row: &EventRow) -> Result<(), WalletStoreError> {
        self.figures.last_event += 1;
        self.figures.last_event_at = row.at.as_micros();
        self.told.push(row.kind);
        self.rows.add::<Events>(self.figures.last_event, row)
    }

    /// Writes the events for a change of state of a payment by the wallet, or of its cancellation.
    pub(crate) fn tell_outgoing(
        &mut self,
        (before, after): (&TransactionRecord, &TransactionRecord),
        at: Timestamp,
    ) -> Result<(), WalletStoreError> {
        match after.purpose {
            Purpose::Outgoing(payment) => {
                let block = after.state.block();
                for kind in Tellings::of(before, after.state).outgoing.into_iter().flatten() {
                    let block = block.filter(|_| kind.is_mined());
                    let (subject, details) = (payment, EventDetails::None);
                    self.append_row(&EventRow { at, kind, subject, details, block })?;
                    if kind == EventKind::OutgoingSettled {
                        self.tell_settled(payment, at)?;
                    }
                }
                Ok(())
            }
            Purpose::Cancellation(payment) => {
                let what = |state: TransactionState| (state.spends(), state.counts());
                match after.state.spends() {
                    _ if what(before.state) == what(after.state) => Ok(()),
                    true => self.append_event(at, EventKind::CancellationShown, payment),
                    false => self.append_event(at, EventKind::CancellationLost, payment),
                }
            }
            Purpose::Incoming(_) | Purpose::Found | Purpose::Coinbase => Ok(()),
        }
    }

    /// Writes the events that follow when the network has taken a refund or a whole withdrawal.
    fn tell_settled(&mut self, payment: u64, at: Timestamp) -> Result<(), WalletStoreError> {
        match self.payment(payment)?.purpose {
            OutgoingPurpose::Refund { .. } => {
                self.append_event(at, EventKind::InvoiceRefunded, payment)
            }
            OutgoingPurpose::Withdrawal(number) if self.is_settled(number)? => {
                self.append_event(at, EventKind::WithdrawalSettled, number)
            }
            _ => Ok(()),
        }
    }

    /// Writes events of a payment of an invoice.
    pub(crate) fn tell_payment(
        &mut self,
        kinds: &[Option<EventKind>],
        (invoice, details): (u64, PaymentDetails),
        block: Option<BlockPlace>,
        at: Timestamp,
    ) -> Result<(), WalletStoreError> {
        let details = EventDetails::Payment(details);
        for kind in kinds.iter().copied().flatten() {
            let block = block.filter(|_| kind.is_mined());
            self.append_row(&EventRow { at, kind, subject: invoice, details, block })?;
        }
        Ok(())
    }

    /// Writes events of receipts that belong to no invoice: one for each user whose keys they pay,
    /// and one for the other keys of the wallet. If the transaction has no receipt with an event,
    /// writes events of the transaction itself.
    pub(crate) fn tell_unassigned(
        &mut self,
        (number, after): (u64, &TransactionRecord),
        made: &[(ReceiptKey, Receipt)],
        kinds: &[Option<EventKind>],
        at: Timestamp,
    ) -> Result<(), WalletStoreError> {
        let mut told = BTreeMap::<_, ReceiptDetails>::new();
        let mut pays_invoice = false;
        for (key, receipt) in made.iter().filter(|_| kinds.iter().any(Option::is_some)) {
            match self.invoice_of(receipt.key)? {
                Some(invoice) if self.rows.get::<Invoices>(&invoice)?.is_some() => {
                    pays_invoice = true;
                }
                _ if self.rows.get::<Unassigned>(key)?.is_some() => {
                    let user = user_of(&self.rows, &self.figures, receipt.key)?;
                    let nothing = ReceiptDetails { user, ..ReceiptDetails::default() };
                    told.entry(user).or_insert(nothing).add(key.vout, receipt.satoshis);
                }
                _ => {}
            }
        }
        let is_told = pays_invoice || !told.is_empty();
        for kind in kinds.iter().copied().flatten() {
            let block = after.state.block().filter(|_| kind.is_mined());
            let row = EventRow { at, kind, subject: number, details: EventDetails::None, block };
            for details in told.values().copied().map(EventDetails::Receipt) {
                self.append_row(&EventRow { kind: kind.of_receipt(), details, ..row })?;
            }
            if !is_told {
                self.append_row(&EventRow { kind: kind.of_transaction(), ..row })?;
            }
        }
        Ok(())
    }
}

impl Tellings {
    /// The events for a transaction whose record was `before`. A stranger's payment that the
    /// network has never shown gets no event when it is lost.
    pub(crate) fn of(before: &TransactionRecord, new: TransactionState) -> Self {
        let told = changes(before, new);
        match before.purpose {
            Purpose::Incoming(_) | Purpose::Found | Purpose::Coinbase => {
                let is_untold = new.is_lost() && !before.was_seen();
                if is_untold { Self::default() } else { told }
            }
            Purpose::Outgoing(_) | Purpose::Cancellation(_) => Self { incoming: [None; 2], ..told },
        }
    }
}

/// The events for a change of state, for payments by the wallet and for payments to it.
fn changes(before: &TransactionRecord, new: TransactionState) -> Tellings {
    use EventKind as Kind;
    use TransactionState as State;
    let (old, was_seen) = (before.state, before.was_seen());
    if old == new {
        return Tellings::default();
    }
    let both = |outgoing, incoming| (Some(outgoing), Some(incoming));
    let shown = match (old, new) {
        (_, new) if !new.can_be_spent() => (None, None),
        (State::Contested { told: true }, _) => both(Kind::OutgoingRestored, Kind::PaymentRestored),
        (old, _) if old.counts() => (None, None),
        (old, _) if was_seen && old != State::Waiting => {
            both(Kind::OutgoingRestored, Kind::PaymentRestored)
        }
        _ => both(Kind::OutgoingSettled, Kind::PaymentReceived),
    };
    let state = match new {
        State::Mined(_) => both(Kind::OutgoingMined, Kind::PaymentMined),
        State::Waiting => both(Kind::OutgoingWaiting, Kind::PaymentWaiting),
        State::Contested { told: true } => both(Kind::OutgoingContested, Kind::PaymentContested),
        State::Seen | State::Contested { told: false } if old.block().is_some() => {
            both(Kind::OutgoingUnmined, Kind::PaymentUnmined)
        }
        State::Displaced => both(Kind::OutgoingDisplaced, Kind::PaymentDisplaced),
        State::Invalid => both(Kind::OutgoingInvalid, Kind::PaymentInvalid),
        State::Unseen => (Some(Kind::OutgoingAccepted), None),
        State::Refused => (Some(Kind::OutgoingRefused), None),
        State::Cancelled => (Some(Kind::OutgoingCancelled), None),
        State::Offered | State::Seen | State::Contested { told: false } => (None, None),
    };
    Tellings { outgoing: [shown.0, state.0], incoming: [shown.1, state.1] }
}
