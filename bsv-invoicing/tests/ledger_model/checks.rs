//! Checks of the rows.

use std::collections::{BTreeMap, BTreeSet};

use bsv_invoicing::Timestamp;
use bsv_invoicing::events::EventKind;
use bsv_invoicing::ledger::Query;
use bsv_invoicing::ledger::events::{EventDetails, EventRow, PaymentDetails, Sums};
use bsv_invoicing::ledger::movements::GetMovements;
use bsv_invoicing::ledger::queries::{GetInvoice, GetRefundable};
use bsv_invoicing::ledger::rows::{
    AllFigures, Attention, Contested, Counted, Engine, Events, Expiries, Exposed,
    FollowedTransactions, InFlight, Incoming, Invoices, Messages, MinedAt, OUTSIDE_BLOCKS,
    Outgoing, Paid, PostingUrls, Proofs, RawTransactions, Receipts, ReceivedFor, Refunds,
    Reservations, Shallow, Spendable, Spends, TransactionNumbers, Transactions, UnprovenCoins,
    Wishes,
};
use bsv_invoicing::movements::MovementQuery;
use bsv_invoicing::receiving::ReceiptKey;
use bsv_invoicing::sending::OutgoingPurpose;
use bsv_invoicing::transactions::{BlockPlace, Purpose, RawBytes, TransactionState, WaitReason};

use crate::network::Network;
use crate::rows::MemoryRows;
use crate::told::{Entry, Owner, Told, counts, is_lost, spends};

/// Compares all rows about money with what follows from what the wallet was told.
pub(crate) fn check(rows: &MemoryRows, told: &Told, network: &Network) {
    let holders = told.holders();
    let figures = rows.get::<AllFigures>(&()).unwrap_or_default();
    assert_eq!(figures.holdings, told.holdings(&holders), "what the wallet holds");
    let held = figures.holdings.balance() + figures.holdings.waiting;
    let spent = told.spent_before_shown(&holders) + told.spent_by_others(&holders);
    assert_eq!(moved(rows) + i128::from(spent), i128::from(held), "movements");
    assert_eq!(rows.all::<Spendable>(), told.spendable(&holders), "what can be spent");

    let expected = told.entries.iter().map(|(number, it)| {
        let shown = &network.transactions[it.transaction];
        let raw = match it.are_bytes_dropped {
            true => RawBytes::Dropped,
            false if shown.is_long => RawBytes::Long,
            false => RawBytes::Short,
        };
        let word = it.word.map(|_| (it.has_rival(), wait_reason(it.state, it.wait_reason())));
        (*number, (shown.txid, it.purpose, it.state, it.shown, raw, word))
    });
    let stored = rows.all::<Transactions>().into_iter();
    let stored = stored.map(|(number, it)| {
        let word = it.word.map(|_| (it.has_rival(), wait_reason(it.state, it.wait_reason())));
        (number, (it.txid, it.purpose, it.state, it.shown, it.raw, word))
    });
    same(stored, expected, "transactions");
    let kept = told.entries.iter().filter(|(_, it)| !it.are_bytes_dropped);
    same(
        rows.all::<RawTransactions>().into_keys(),
        kept.map(|(number, _)| *number),
        "bytes of transactions",
    );
    let txid = |it: &Entry| network.transactions[it.transaction].txid;
    let expected = told.entries.iter().map(|(number, it)| (txid(it), *number));
    same_set(rows.all::<TransactionNumbers>().into_keys(), expected, "numbers of transactions");

    let expected = told
        .receipts()
        .map(|(key, it, _)| (key, (it.satoshis, it.key, holders.get(&key).copied())));
    let stored = rows
        .all::<Receipts>()
        .into_iter()
        .map(|(key, it)| (key, (it.satoshis, it.key, it.spender)));
    same(stored, expected, "receipts");

    let reserved = told.reservations.iter().map(|(number, keys)| (*number, keys.clone()));
    let stored = rows.all::<Reservations>().into_iter();
    let stored = stored.map(|(number, keys)| (number, keys.into_iter().collect()));
    same(stored, reserved, "reservations");

    check_indexes(rows, told);
    check_invoices(rows, told);
    check_payments(rows, told);
    told.check_exposure(rows);
}

/// Why a transaction waits, if it does.
fn wait_reason(state: TransactionState, reason: WaitReason) -> Option<WaitReason> {
    (state == TransactionState::Waiting).then_some(reason)
}

/// Compares the blocks of transactions with the main chain, as far as the wallet was told of it.
pub(crate) fn check_blocks(rows: &MemoryRows, network: &Network, untold: &[BlockPlace]) {
    for block in rows.all::<Transactions>().into_values().filter_map(|it| it.state.block()) {
        assert!(network.chain.contains(&block) || untold.contains(&block), "{block:?} is lost");
    }
}

/// The sum of what came, less what left and the fees.
fn moved(rows: &MemoryRows) -> i128 {
    let all = MovementQuery { after: 0, from: Timestamp::from_micros(0), to: Timestamp::MAX };
    let page = GetMovements(all).run(rows).unwrap();
    assert_eq!(page.next, None);
    page.movements
        .iter()
        .fold(0, |sum, it| sum + i128::from(it.received) - i128::from(it.sent) - i128::from(it.fee))
}

fn check_indexes(rows: &MemoryRows, told: &Told) {
    let entries = || told.entries.iter();
    let expected = entries().flat_map(|(number, it)| it.spends.iter().map(|key| (*number, *key)));
    same(rows.all::<Spends>().into_keys(), expected, "what spends what");
    let expected = entries().filter_map(|(number, it)| Some((it.state.block()?.height, *number)));
    same_set(rows.all::<MinedAt>().into_keys(), expected, "what is in which block");
    let expected = entries().filter_map(|(number, it)| Some((*number, it.until?)));
    same(rows.all::<FollowedTransactions>().into_iter(), expected, "what is followed");
    for (number, it) in entries() {
        let is_settled = matches!(it.state, TransactionState::Mined(_)) || is_lost(it.state);
        assert!(is_settled || it.until.is_some(), "{number} is open, and not followed");
    }
    let listed = entries().flat_map(|(number, it)| {
        let known = it.known_coins.iter().flatten();
        known.map(|coin| (*coin, *number))
    });
    let listed: BTreeSet<_> = listed.collect();
    let figures = rows.get::<AllFigures>(&()).unwrap_or_default();
    assert_eq!(figures.unproven_coins, listed.len() as u64, "how many coins rivals may spend");
    same_set(rows.all::<UnprovenCoins>().into_keys(), listed.into_iter(), "coins of rivals");
    let exposed = entries().filter(|(_, it)| it.exposed > 0).map(|(number, it)| {
        let height = it.state.block().map_or(OUTSIDE_BLOCKS, |block| block.height);
        ((height, *number), it.exposed)
    });
    same_set(rows.all::<Exposed>().into_iter(), exposed, "what counts by a word");
    let proofs = entries().flat_map(|(number, it)| (1..=it.proofs).map(|proof| (*number, proof)));
    same(rows.all::<Proofs>().into_keys(), proofs, "proofs");
}

fn check_invoices(rows: &MemoryRows, told: &Told) {
    let flying = told.invoices.keys().filter_map(|it| Some((*it, told.in_flight(*it)?)));
    same(rows.all::<InFlight>().into_iter(), flying, "what is offered");
    let is_paid =
        told.invoices.iter().map(|(it, invoice)| (*it, (told.is_paid(*it), invoice.is_deleted)));
    let stored = rows
        .all::<Invoices>()
        .into_iter()
        .map(|(number, it)| (number, (it.payment_received_at.is_some(), it.deleted_at.is_some())));
    same(stored, is_paid, "which invoices are paid, and which deleted");
    let awaiting = told.invoices.keys().copied().filter(|it| told.awaits_block(*it));
    let stored = rows.all::<Invoices>().into_values();
    let stored = stored.filter(|it| it.awaits_block_since.is_some()).map(|it| it.number);
    same(stored, awaiting, "for which invoices only a block is missing");
    let listed = rows.all::<Attention>().into_keys();
    same(listed, told.attention().into_iter(), "which invoices may need a decision");
    let contested = rows.all::<Contested>().into_iter();
    same(contested, told.contested().into_iter(), "since when payments are contested");
    let paying = |(number, it): (&u64, &Entry)| {
        let number = *number;
        let mut paid = BTreeMap::<_, Paid>::new();
        for (vout, output) in &it.outputs {
            let Some(invoice) = output.invoice else { continue };
            let first = Paid { first: *vout, satoshis: 0 };
            paid.entry((invoice, number)).or_insert(first).satoshis += output.satoshis;
        }
        paid
    };
    let expected: BTreeMap<_, _> = told.entries.iter().flat_map(paying).collect();
    assert_eq!(rows.all::<Incoming>(), expected, "which transactions pay which invoices, and what");
    let wishes = told.entries.iter().filter_map(|(number, it)| Some((*number, it.wish.clone()?)));
    same(rows.all::<Refunds>().into_iter(), wishes, "wishes for refunds");
    let received = told.invoices.keys().map(|it| (*it, told.received(*it)));
    let stored = |it: &u64| rows.get::<ReceivedFor>(it).unwrap_or_default();
    let stored = told.invoices.keys().map(|it| (*it, stored(it)));
    same(stored, received, "what was received");
    check_counting(rows, told);
}

/// Compares what is kept about the payments that count with the payments.
fn check_counting(rows: &MemoryRows, told: &Told) {
    let invoices = || told.invoices.keys().copied();
    let counting = || {
        invoices().flat_map(|invoice| told.counting(invoice).map(move |(it, of)| (invoice, it, of)))
    };
    let counted = counting().map(|(invoice, number, it)| {
        let height = it.state.block().map_or(OUTSIDE_BLOCKS, |block| block.height);
        (invoice, height, number)
    });
    same_set(rows.all::<Counted>().into_keys(), counted, "which payments count");
    let paying = invoices().flat_map(|invoice| {
        let paying = told.entries.iter().filter(move |(_, it)| it.pays(invoice));
        paying.map(move |(number, it)| (invoice, *number, it))
    });
    let shallow = paying.filter_map(|(invoice, number, it)| {
        let height = it.state.block()?.height;
        Some(((height, invoice, number), told.shallowness(invoice, it)?))
    });
    assert_eq!(rows.all::<Shallow>(), shallow.collect(), "payments that are not deep enough");
    let wishes = counting().filter(|(.., it)| it.wish.is_some());
    let wishes = wishes.map(|(invoice, number, _)| (invoice, number));
    same_set(rows.all::<Wishes>().into_keys(), wishes, "wishes that count");
    for invoice in invoices() {
        let now = Timestamp::from_micros(0);
        let refundable = GetRefundable(invoice, now).run(rows).unwrap();
        assert_eq!(refundable.received, told.received(invoice).sum(), "invoice {invoice}");
        assert_eq!(refundable.to, told.agreed_wish(invoice), "refunds of invoice {invoice}");
        let first = told.counting(invoice).find_map(|(_, it)| it.wish.clone());
        let shown = GetInvoice(invoice).run(rows).unwrap().unwrap();
        if shown.payment_received_at.is_some() && shown.refunded_at.is_none() {
            assert_eq!(shown.refund_to, first, "the first wish of invoice {invoice}");
        }
    }
}

fn check_payments(rows: &MemoryRows, told: &Told) {
    let expected =
        told.payments.iter().map(|(number, it)| (*number, (it.transaction, it.cancellation)));
    let stored = rows.all::<Outgoing>().into_iter();
    let stored = stored.map(|(number, it)| (number, (it.transaction, it.cancellation)));
    same(stored, expected, "payments");
    let open = told
        .payments
        .iter()
        .filter(|(_, it)| it.purpose.url().is_some())
        .filter(|(_, it)| told.state(it.transaction) == TransactionState::Offered);
    let open: Vec<_> = open.map(|(number, _)| *number).collect();
    same(rows.all::<Messages>().into_keys(), open.iter().copied(), "messages to payees");
    same(
        rows.all::<PostingUrls>().into_keys(),
        open.into_iter(),
        "the URLs that they are posted to",
    );
}

fn same<T: PartialEq + std::fmt::Debug>(
    stored: impl Iterator<Item = T>,
    expected: impl Iterator<Item = T>,
    what: &str,
) {
    let (stored, expected): (Vec<_>, Vec<_>) = (stored.collect(), expected.collect());
    assert_eq!(stored, expected, "{what}: those stored, and those expected");
}

fn same_set<T: Ord + std::fmt::Debug>(
    stored: impl Iterator<Item = T>,
    expected: impl Iterator<Item = T>,
    what: &str,
) {
    let (stored, expected): (BTreeSet<_>, BTreeSet<_>) = (stored.collect(), expected.collect());
    assert_eq!(stored, expected, "{what}: those stored, and those expected");
}

/// The states of things according to the events.
#[derive(Clone, Debug, Default)]
pub(crate) struct Replay {
    read: u64,
    last_at: Option<Timestamp>,
    invoices: BTreeMap<u64, EventKind>,
    /// The states of payments, by number.
    outgoing: BTreeMap<u64, Heard>,
    /// The states of transactions, by number.
    incoming: BTreeMap<u64, Heard>,
    /// What transactions pay to each owner according to their last events, and their states.
    paid: BTreeMap<(u64, Owner), (Heard, u64)>,
    /// The sum that an invoice has received according to its last event.
    sums: BTreeMap<u64, Sums>,
    /// How many events told that the limit of what counts by a word is reached.
    exposures: u64,
    /// The payments whose cancellation the network shows.
    taken_back: BTreeSet<u64>,
}

/// A state as far as events show it. They do not show the block of a transaction.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Heard {
    Open,
    Agreed,
    Waiting,
    Shown,
    InBlock,
    Contested,
    Lost(TransactionState),
}

impl Heard {
    fn of(state: TransactionState) -> Self {
        match state {
            TransactionState::Offered => Self::Open,
            TransactionState::Unseen => Self::Agreed,
            TransactionState::Waiting => Self::Waiting,
            // An event tells of a contested transaction only after a minute.
            TransactionState::Seen | TransactionState::Contested { told: false } => Self::Shown,
            TransactionState::Contested { told: true } => Self::Contested,
            TransactionState::Mined(_) => Self::InBlock,
            lost => Self::Lost(lost),
        }
    }
}

/// The details of an event of a payment.
fn payment(event: &EventRow) -> PaymentDetails {
    match event.details {
        EventDetails::Payment(details) => details,
        other => panic!("{event:?} tells {other:?}"),
    }
}

impl Replay {
    /// Reads the new events. Returns their number.
    pub(crate) fn read(&mut self, rows: &MemoryRows) -> usize {
        let from = self.read + 1;
        let engine: &dyn Engine = rows;
        let new = engine.range::<Events>(from..).unwrap();
        let count = new.len();
        for (number, event) in new {
            assert_eq!(number, self.read + 1, "events without a gap");
            assert!(self.last_at.is_none_or(|last| last <= event.at), "events in order");
            (self.read, self.last_at) = (number, Some(event.at));
            self.hear(rows, &event);
        }
        count
    }

    fn hear(&mut self, rows: &MemoryRows, event: &EventRow) {
        use EventKind as Kind;
        use TransactionState as State;
        let (subject, kind) = (event.subject, event.kind);
        let (heard, is_outgoing) = match kind {
            Kind::InvoiceCreated | Kind::InvoiceExpired | Kind::InvoiceDeleted => {
                self.invoices.insert(subject, kind);
                return;
            }
            Kind::InvoiceSumsChanged => {
                self.sums.insert(subject, payment(event).sums);
                return;
            }
            Kind::InvoicePaid | Kind::InvoiceUnpaid => {
                let sums = payment(event).sums;
                self.sums.insert(subject, sums);
                assert_eq!(sums.due == 0, kind == Kind::InvoicePaid, "{event:?}");
                self.invoices.insert(subject, kind);
                return;
            }
            Kind::ExposureReached => {
                self.exposures += 1;
                return;
            }
            Kind::UserCreated | Kind::InvoiceRefunded | Kind::WithdrawalSettled => return,
            Kind::CancellationShown => {
                self.taken_back.insert(subject);
                return;
            }
            Kind::CancellationLost => {
                self.taken_back.remove(&subject);
                return;
            }
            Kind::OutgoingStarted => (Heard::Open, true),
            Kind::OutgoingAccepted => (Heard::Agreed, true),
            Kind::OutgoingWaiting => (Heard::Waiting, true),
            Kind::OutgoingSettled | Kind::OutgoingRestored | Kind::OutgoingUnmined => {
                (Heard::Shown, true)
            }
            Kind::OutgoingMined => (Heard::InBlock, true),
            Kind::OutgoingContested => (Heard::Contested, true),
            Kind::OutgoingRefused => (Heard::Lost(State::Refused), true),
            Kind::OutgoingCancelled => (Heard::Lost(State::Cancelled), true),
            Kind::OutgoingDisplaced => (Heard::Lost(State::Displaced), true),
            Kind::OutgoingInvalid => (Heard::Lost(State::Invalid), true),
            Kind::PaymentWaiting | Kind::ReceiptWaiting | Kind::TransactionWaiting => {
                (Heard::Waiting, false)
            }
            Kind::PaymentReceived
            | Kind::ReceiptUnassigned
            | Kind::TransactionFound
            | Kind::PaymentRestored
            | Kind::ReceiptRestored
            | Kind::TransactionRestored
            | Kind::PaymentUnmined
            | Kind::ReceiptUnmined
            | Kind::TransactionUnmined => (Heard::Shown, false),
            Kind::PaymentMined | Kind::ReceiptMined | Kind::TransactionMined => {
                (Heard::InBlock, false)
            }
            Kind::PaymentContested | Kind::ReceiptContested | Kind::TransactionContested => {
                (Heard::Contested, false)
            }
            Kind::PaymentDisplaced | Kind::ReceiptDisplaced | Kind::TransactionDisplaced => {
                (Heard::Lost(State::Displaced), false)
            }
            Kind::PaymentInvalid | Kind::ReceiptInvalid | Kind::TransactionInvalid => {
                (Heard::Lost(State::Invalid), false)
            }
            other => panic!("what is {other}?"),
        };
        assert_eq!(event.block.is_some(), heard == Heard::InBlock, "{event:?}");
        if is_outgoing {
            self.outgoing.insert(subject, heard);
        } else if kind.name().starts_with("invoice.") {
            let details = payment(event);
            self.sums.insert(subject, details.sums);
            self.incoming.insert(details.transaction, heard);
            let owner = (Some(subject), None);
            self.paid.insert((details.transaction, owner), (heard, details.satoshis));
        } else {
            self.incoming.insert(subject, heard);
            let (user, satoshis) = match event.details {
                EventDetails::Receipt(details) => (details.user, details.satoshis),
                _ => (None, rows.get::<Transactions>(&subject).unwrap().satoshis),
            };
            self.paid.insert((subject, (None, user)), (heard, satoshis));
        }
    }

    /// Checks that the events of a transaction tell once what it pays to each owner. Their sums are
    /// then what has come in.
    fn check_paid(&self, number: u64, it: &Entry) {
        let all = (number, (None, None))..(number + 1, (None, None));
        let told = self.paid.range(all).map(|((_, owner), it)| (*owner, *it));
        let state = Heard::of(it.state);
        let expected = it.paid().into_iter().map(|(owner, satoshis)| (owner, (state, satoshis)));
        same(told, expected, "what events tell of what a transaction pays");
    }

    /// Checks that the events together show the states of all things.
    pub(crate) fn check(&self, rows: &MemoryRows, told: &Told) {
        for (number, it) in &told.entries {
            let state = Heard::of(it.state);
            let heard = match it.purpose {
                Purpose::Cancellation(_) => continue,
                Purpose::Outgoing(payment) => self.outgoing.get(&payment),
                _ => self.incoming.get(number),
            };
            let is_strangers = it.purpose.is_from_outside();
            // There is no event of a stranger's payment that the network has not taken.
            let is_untold =
                state == Heard::Open || (matches!(state, Heard::Lost(_)) && !it.was_seen());
            if is_strangers && is_untold {
                let was_lost = |it: &Heard| matches!(it, Heard::Lost(_));
                assert!(heard.is_none_or(was_lost), "{number}: {state:?}, heard of {heard:?}");
            } else {
                assert_eq!(heard, Some(&state), "transaction {number}: heard of, and expected");
                if is_strangers {
                    self.check_paid(*number, it);
                }
            }
        }
        let cancellations = told.entries.values().filter(|it| spends(it.state));
        let taken_back = cancellations.filter_map(|it| match it.purpose {
            Purpose::Cancellation(payment) => Some(payment),
            _ => None,
        });
        assert_eq!(self.exposures, told.exposure_events, "when the limit is told of");
        same_set(self.taken_back.iter().copied(), taken_back, "what was taken back");
        for (number, invoice) in &told.invoices {
            let received = told.received(*number);
            let due = match told.is_paid(*number) {
                true => 0,
                false => told.rules.due(invoice.satoshis, received),
            };
            let sums = self.sums.get(number).copied();
            let untouched = Sums { paid: 0, due: invoice.satoshis.max(1), counted: 0 };
            let counted = told.counted(*number);
            let expected = Sums { paid: received.sum(), due, counted };
            let sums = sums.unwrap_or(untouched);
            assert_eq!(sums, expected, "invoice {number}: what events tell, and what is due");
            let is_told = match self.invoices.get(number) {
                Some(EventKind::InvoicePaid) => told.is_paid(*number),
                Some(EventKind::InvoiceDeleted) => invoice.is_deleted,
                Some(_) => !invoice.is_deleted && !told.is_paid(*number),
                None => false,
            };
            assert!(is_told, "invoice {number}: {invoice:?}, {:?}", self.invoices.get(number));
            let is_expired = self.invoices.get(number) == Some(&EventKind::InvoiceExpired);
            let is_waiting = !invoice.is_deleted && !told.is_paid(*number);
            let is_held = told.in_flight(*number).is_some() || told.awaits_block(*number);
            if is_waiting && !is_held {
                let is_expected = rows.get::<Expiries>(&(invoice.expires_at, *number)).is_some();
                assert!(is_expected || is_expired, "invoice {number} will never be told expired");
            }
        }
    }
}

/// The facts that no command may change without an event.
#[derive(Debug, PartialEq)]
pub(crate) struct Visible {
    balance: u64,
    paid: Vec<u64>,
}

impl Visible {
    pub(crate) fn of(rows: &MemoryRows) -> Self {
        let paid =
            rows.all::<Invoices>().into_values().filter(|it| it.payment_received_at.is_some());
        Self {
            balance: rows.get::<AllFigures>(&()).map_or(0, |it| it.holdings.balance()),
            paid: paid.map(|it| it.number).collect(),
        }
    }

    /// Checks that this number of new events tells what has changed.
    pub(crate) fn check_told(&self, after: &Self, events: usize) {
        if events == 0 {
            assert_eq!(self, after, "changed without an event");
        }
    }
}

/// Checks, after payment `new` was recorded, that no chain can hold two payments for its purpose. A
/// chain that loses blocks which contradict one of them does not count, because miners bury what
/// they mine. Refunds that have not failed do not count either.
pub(crate) fn check_one_per_purpose(told: &Told, network: &Network, new: u64) {
    let payment = &told.payments[&new];
    let this = told.entries[&payment.transaction].transaction;
    let buried = |index: usize| {
        network.transactions[index].was_buried
            || network.rival_block(index).is_some()
            || told.entries.values().any(|it| {
                matches!(it.state, TransactionState::Mined(_))
                    && network.contradict(it.transaction, index)
            })
    };
    for (number, other) in told.payments.iter().filter(|(number, _)| **number != new) {
        let that = told.entries[&other.transaction].transaction;
        let stays = matches!(other.purpose, OutgoingPurpose::Refund { .. })
            && !is_lost(told.state(other.transaction));
        if other.purpose == payment.purpose && !stays {
            assert!(
                network.contradict(this, that) || buried(that),
                "payments {number} and {new} for the same purpose can both be mined"
            );
        }
    }
}

/// The receipts, the balance and the invoices, to compare before with after.
pub(crate) fn books(rows: &MemoryRows) -> impl PartialEq + std::fmt::Debug + use<> {
    let receipts: Vec<(ReceiptKey, _)> = rows.all::<Receipts>().into_iter().collect();
    let paid = rows
        .all::<Invoices>()
        .into_values()
        .map(|it| (it.number, it.payment_received_at.is_some()));
    let states =
        rows.all::<Transactions>().into_iter().map(|(number, it)| (number, counts(it.state)));
    let balance = rows.get::<AllFigures>(&()).map(|it| it.holdings.balance());
    (
        balance,
        receipts,
        rows.all::<Spendable>(),
        paid.collect::<Vec<_>>(),
        states.collect::<Vec<_>>(),
    )
}
