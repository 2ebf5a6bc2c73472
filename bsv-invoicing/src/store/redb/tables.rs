//! The tables of the wallet's file, their rows, and the changes that commands make to them.

use std::sync::Arc;

use bsv_store::{
    KeyEvent, LazyReadTable, LazyTable, Migration, Schema, StoreError, Tables, View,
    append_to_audit_log, create_audit_log,
};
use redb::{ReadOnlyTable, ReadTransaction, ReadableTable, TableDefinition, WriteTransaction};

use super::money::{self, IN_FLIGHT, MoneyTables, REFUNDS, ReadMoney};
use crate::model::event::{Event, EventKind};
use crate::model::idempotency::{IDEMPOTENCY_PERIOD, IdempotencyKey};
use crate::model::invoice::{Invoice, InvoiceState};
use crate::model::invoice_id::InvoiceId;
use crate::model::time::Timestamp;
use crate::model::user::UserDraft;
use crate::store::{NewInvoice, UserRecord, WalletStoreError};
use crate::wallet::seed::NAME as SEED_NAME;

/// Number to invoice.
pub(super) const INVOICES: TableDefinition<'_, u64, InvoiceRow<'static>> =
    TableDefinition::new("invoices");
/// Id to user.
const USERS: TableDefinition<'_, u64, UserRow<'static>> = TableDefinition::new("users");
/// Number to event.
pub(super) const EVENTS: TableDefinition<'_, u64, EventRow> = TableDefinition::new("events");
/// The time at which an invoice expires, and its number: those that a sweep has to look at then. That
/// an invoice is paid changes nothing here, which spares who pays it the pages.
const EXPIRIES: TableDefinition<'_, (u64, u64), ()> = TableDefinition::new("expiries");
/// Route and key to the hash of the request, the number of what it created, and the time.
const IDEMPOTENCY: TableDefinition<'_, (u8, &str), ([u8; 32], u64, u64)> =
    TableDefinition::new("idempotency");
/// The time, and the route and key that were used then.
const IDEMPOTENCY_AGES: TableDefinition<'_, (u64, u8, &str), ()> =
    TableDefinition::new("idempotency_ages");
/// Name to figure: see [`Figures`].
const FIGURES: TableDefinition<'_, &str, u64> = TableDefinition::new("figures");
/// What tells the wallet apart: [`FINGERPRINT`].
const WALLET: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("wallet");
pub(super) const FINGERPRINT: &str = "fingerprint";

/// Id, satoshis, when created, when it expires, when paid, when deleted, reference, description.
/// Times are microseconds since 1970.
pub(super) type InvoiceRow<'a> =
    ([u8; 12], u64, u64, u64, Option<u64>, Option<u64>, Option<&'a str>, Option<&'a str>);
/// Name, email, avatar, address, phone number.
pub(super) type UserRow<'a> = (&'a str, &'a str, &'a str, &'a str, &'a str);
/// When, what (see [`event`]), and the number of the invoice or user.
type EventRow = (u64, u8, u64);

const INVOICE_CREATED: u8 = 1;
const USER_CREATED: u8 = 2;
const INVOICE_EXPIRED: u8 = 3;
const INVOICE_DELETED: u8 = 4;
pub(super) const INVOICE_PAID: u8 = 5;
pub(super) const INVOICE_PAYMENT_DISPLACED: u8 = 6;
pub(super) const PAYMENT_STARTED: u8 = 7;
pub(super) const PAYMENT_SETTLED: u8 = 8;
pub(super) const PAYMENT_REFUSED: u8 = 9;
pub(super) const PAYMENT_CANCELLED: u8 = 10;
pub(super) const PAYMENT_DISPLACED: u8 = 11;

/// What idempotency keys are used for: a key is known per route.
#[derive(Clone, Copy)]
pub(super) enum Route {
    Invoices = 1,
    Users = 2,
    Pay = 3,
}

/// Keys are derived for numbers up to this.
const MAX_NUMBER: u64 = (1 << 31) - 1;

pub(super) const SCHEMA: Schema = Schema { name: "wallet", migrations: MIGRATIONS };

const MIGRATIONS: &[Migration] = &[
    create_tables,
    add_expiries_and_idempotency,
    money::create_tables,
    begin_audit_log,
    money::forget_hashes_of_mined,
];

fn create_tables(transaction: &WriteTransaction) -> Result<(), StoreError> {
    transaction.open_table(INVOICES)?;
    transaction.open_table(USERS)?;
    transaction.open_table(EVENTS)?;
    transaction.open_table(FIGURES)?;
    transaction.open_table(WALLET)?;
    Ok(())
}

fn add_expiries_and_idempotency(transaction: &WriteTransaction) -> Result<(), StoreError> {
    transaction.open_table(IDEMPOTENCY)?;
    transaction.open_table(IDEMPOTENCY_AGES)?;
    let mut expiries = transaction.open_table(EXPIRIES)?;
    for row in transaction.open_table(INVOICES)?.iter()? {
        let (number, row) = row?;
        let (_, _, _, expires_at, paid_at, deleted_at, ..) = row.value();
        if paid_at.is_none() && deleted_at.is_none() {
            expiries.insert((expires_at, number.value()), ())?;
        }
    }
    Ok(())
}

/// The log begins with the seed, if there is one.
fn begin_audit_log(transaction: &WriteTransaction) -> Result<(), StoreError> {
    create_audit_log(transaction)?;
    let has_seed = transaction.open_table(WALLET)?.get(FINGERPRINT)?.is_some();
    append_to_audit_log(transaction, has_seed.then_some((KeyEvent::Found, SEED_NAME)))
}

/// The tables, opened for a batch of commands.
pub(super) struct OpenTables<'t> {
    transaction: &'t WriteTransaction,
    pub(super) money: MoneyTables<'t>,
    pub(super) invoices: LazyTable<'t, u64, InvoiceRow<'static>>,
    users: LazyTable<'t, u64, UserRow<'static>>,
    events: LazyTable<'t, u64, EventRow>,
    pub(super) expiries: LazyTable<'t, (u64, u64), ()>,
    idempotency: LazyTable<'t, (u8, &'static str), ([u8; 32], u64, u64)>,
    idempotency_ages: LazyTable<'t, (u64, u8, &'static str), ()>,
    figures_table: LazyTable<'t, &'static str, u64>,
    wallet: LazyTable<'t, &'static str, &'static [u8]>,
    pub(super) figures: Figures,
    /// As they are stored.
    stored_figures: Figures,
}

/// The tables of which single rows are read.
pub(super) struct ReadTables {
    pub(super) invoices: LazyReadTable<u64, InvoiceRow<'static>>,
    pub(super) users: LazyReadTable<u64, UserRow<'static>>,
    pub(super) figures: LazyReadTable<&'static str, u64>,
    pub(super) wallet: LazyReadTable<&'static str, &'static [u8]>,
    pub(super) links: PaymentLinks,
    pub(super) money: ReadMoney,
}

/// What payments add to an invoice.
pub(super) struct PaymentLinks {
    in_flight: LazyReadTable<u64, u64>,
    refunds: LazyReadTable<u64, &'static str>,
}

impl PaymentLinks {
    pub(super) fn new(transaction: &Arc<ReadTransaction>) -> Self {
        Self {
            in_flight: LazyReadTable::new(transaction, IN_FLIGHT),
            refunds: LazyReadTable::new(transaction, REFUNDS),
        }
    }
}

impl View for ReadTables {
    fn open(transaction: &Arc<ReadTransaction>) -> Result<Self, StoreError> {
        Ok(Self {
            invoices: LazyReadTable::new(transaction, INVOICES),
            users: LazyReadTable::new(transaction, USERS),
            figures: LazyReadTable::new(transaction, FIGURES),
            wallet: LazyReadTable::new(transaction, WALLET),
            links: PaymentLinks::new(transaction),
            money: ReadMoney::new(transaction),
        })
    }
}

/// Figures that are kept up to date, and in memory during a batch.
#[derive(Clone, Default)]
pub(super) struct Figures {
    pub(super) last_invoice: u64,
    pub(super) last_user: u64,
    pub(super) last_event: u64,
    pub(super) last_event_at: u64,
    pub(super) last_transaction: u64,
    pub(super) last_payment: u64,
    /// How many keys for change are used.
    pub(super) last_change: u64,
    pub(super) balance: u64,
}

impl Figures {
    /// As they are stored.
    pub(super) fn of(transaction: &ReadTransaction) -> Result<Self, StoreError> {
        let table = transaction.open_table(FIGURES)?;
        Self::read(|name| Ok(table.get(name)?.map(|row| row.value())))
    }

    fn read(
        figure_of: impl Fn(&'static str) -> Result<Option<u64>, StoreError>,
    ) -> Result<Self, StoreError> {
        let mut figures = Self::default();
        for (name, figure) in figures.named() {
            *figure = figure_of(name)?.unwrap_or(0);
        }
        Ok(figures)
    }

    fn named(&mut self) -> [(&'static str, &mut u64); 8] {
        [
            ("last invoice", &mut self.last_invoice),
            ("last user", &mut self.last_user),
            ("last event", &mut self.last_event),
            ("last event at", &mut self.last_event_at),
            ("last transaction", &mut self.last_transaction),
            ("last payment", &mut self.last_payment),
            ("last change", &mut self.last_change),
            ("balance", &mut self.balance),
        ]
    }
}

pub(super) struct WalletTables;

impl Tables for WalletTables {
    type Open<'t> = OpenTables<'t>;

    fn open(transaction: &WriteTransaction) -> Result<OpenTables<'_>, StoreError> {
        let figures_table = LazyTable::new(transaction, FIGURES);
        let figures = Figures::read(|name| Ok(figures_table.get(name)?.map(|row| row.value())))?;
        Ok(OpenTables {
            transaction,
            money: MoneyTables::new(transaction),
            invoices: LazyTable::new(transaction, INVOICES),
            users: LazyTable::new(transaction, USERS),
            events: LazyTable::new(transaction, EVENTS),
            expiries: LazyTable::new(transaction, EXPIRIES),
            idempotency: LazyTable::new(transaction, IDEMPOTENCY),
            idempotency_ages: LazyTable::new(transaction, IDEMPOTENCY_AGES),
            figures_table,
            wallet: LazyTable::new(transaction, WALLET),
            stored_figures: figures.clone(),
            figures,
        })
    }

    fn close(mut tables: OpenTables<'_>) -> Result<(), StoreError> {
        let changed = tables.figures.named().into_iter().zip(tables.stored_figures.named());
        for ((name, figure), (_, stored)) in changed {
            if figure != stored {
                tables.figures_table.insert(name, *figure)?;
            }
        }
        Ok(())
    }
}

/// No invoice has expired, and no key is old enough to be forgotten.
pub(super) struct NothingDue;

/// What a command answers: the outer error undoes the batch, the inner one refuses.
pub(super) type Outcome<T> = Result<Result<T, WalletStoreError>, StoreError>;

impl<'t> OpenTables<'t> {
    pub(super) fn adopt(&mut self, fingerprint: [u8; 20], origin: KeyEvent) -> Outcome<()> {
        let owner = self.wallet.get(FINGERPRINT)?.map(|owner| owner.value().to_vec());
        Ok(match owner {
            None => {
                self.wallet.insert(FINGERPRINT, fingerprint.as_slice())?;
                self.note_key_event(origin, SEED_NAME)?;
                Ok(())
            }
            Some(owner) if owner == fingerprint => Ok(()),
            Some(_) => Err(WalletStoreError::OtherWallet),
        })
    }

    pub(super) fn note_key_event(
        &mut self,
        event: KeyEvent,
        subject: &str,
    ) -> Result<(), StoreError> {
        append_to_audit_log(self.transaction, [(event, subject)])
    }

    pub(super) fn create_invoice(
        &mut self,
        NewInvoice { draft, expiry, now, idempotency }: NewInvoice,
        id: impl FnOnce(u64) -> InvoiceId,
    ) -> Outcome<Invoice> {
        match self.first_answer(Route::Invoices, idempotency.as_ref(), now)? {
            Ok(Some(number)) => {
                let missing = || StoreError::damaged("an invoice is missing").into();
                let invoice = self.invoice(number)?;
                return Ok(invoice.and_then(|invoice| invoice.ok_or_else(missing)));
            }
            Ok(None) => {}
            Err(refusal) => return Ok(Err(refusal)),
        }
        if self.figures.last_invoice == MAX_NUMBER {
            return Ok(Err(WalletStoreError::Full(MAX_NUMBER)));
        }
        let created_at = self.next_event_at(now);
        let expires_at = draft.expires_at.unwrap_or_else(|| created_at.after(expiry));
        if expires_at <= created_at {
            return Ok(Err(WalletStoreError::AlreadyExpired));
        }
        self.figures.last_invoice += 1;
        let number = self.figures.last_invoice;
        let invoice = Invoice {
            number,
            id: id(number),
            satoshis: draft.satoshis,
            description: draft.description,
            reference: draft.reference,
            created_at,
            expires_at,
            payment_received_at: None,
            refund_to: None,
            in_flight: false,
            deleted_at: None,
        };
        self.invoices.insert(number, invoice_row(&invoice))?;
        self.expiries.insert((expires_at.as_micros(), number), ())?;
        self.append_event(created_at, INVOICE_CREATED, number)?;
        self.remember(Route::Invoices, idempotency, number, now)?;
        Ok(Ok(invoice))
    }

    pub(super) fn delete_invoice(&mut self, number: u64, now: Timestamp) -> Outcome<()> {
        let mut invoice = match self.invoice(number)? {
            Ok(Some(invoice)) if invoice.deleted_at.is_none() => invoice,
            Ok(_) => return Ok(Err(WalletStoreError::UnknownInvoice(number))),
            Err(refusal) => return Ok(Err(refusal)),
        };
        if invoice.payment_received_at.is_some() {
            return Ok(Err(WalletStoreError::Paid(number)));
        }
        if invoice.in_flight {
            return Ok(Err(WalletStoreError::InFlight(number)));
        }
        let at = self.next_event_at(now);
        let expiry = (invoice.expires_at.as_micros(), number);
        if self.expiries.remove(expiry)?.is_some() && invoice.expires_at <= at {
            self.append_event(at, INVOICE_EXPIRED, number)?;
        }
        invoice.deleted_at = Some(at);
        self.invoices.insert(number, invoice_row(&invoice))?;
        self.append_event(at, INVOICE_DELETED, number)?;
        Ok(Ok(()))
    }

    pub(super) fn sweep(
        &mut self,
        now: Timestamp,
        limit: usize,
    ) -> Result<Result<usize, NothingDue>, StoreError> {
        let at = self.next_event_at(now);
        let expired = self.expiries.range(..=(at.as_micros(), u64::MAX))?.take(limit);
        let expired =
            expired.map(|row| Ok(row?.0.value())).collect::<Result<Vec<_>, StoreError>>()?;
        for expiry in &expired {
            self.expiries.remove(expiry)?;
            // What is being paid is looked at again if that fails.
            if self.is_expired(expiry.1, at)? {
                self.append_event(at, INVOICE_EXPIRED, expiry.1)?;
            }
        }
        let forgotten = self.forget_keys(at, limit - expired.len())?;
        Ok(match expired.len() + forgotten {
            0 => Err(NothingDue),
            count => Ok(count),
        })
    }

    /// Whether an invoice has expired that was due. One that cannot be read cannot be paid either.
    fn is_expired(&mut self, number: u64, at: Timestamp) -> Result<bool, StoreError> {
        let invoice = self.invoice(number)?.ok().flatten();
        Ok(invoice.is_none_or(|invoice| invoice.state(at) == InvoiceState::Expired))
    }

    pub(super) fn create_user(
        &mut self,
        details: UserDraft,
        now: Timestamp,
        idempotency: Option<IdempotencyKey>,
    ) -> Outcome<UserRecord> {
        match self.first_answer(Route::Users, idempotency.as_ref(), now)? {
            Ok(Some(id)) => {
                return Ok(match self.users.get(id)? {
                    Some(row) => Ok((id, user(row.value()))),
                    None => Err(StoreError::damaged("a user is missing").into()),
                });
            }
            Ok(None) => {}
            Err(refusal) => return Ok(Err(refusal)),
        }
        if self.figures.last_user == MAX_NUMBER {
            return Ok(Err(WalletStoreError::Full(MAX_NUMBER)));
        }
        self.figures.last_user += 1;
        let id = self.figures.last_user;
        let UserDraft { name, email, avatar, address, phone_number } = &details;
        self.users.insert(
            id,
            (
                name.as_str(),
                email.as_str(),
                avatar.as_str(),
                address.as_str(),
                phone_number.as_str(),
            ),
        )?;
        self.append_event(self.next_event_at(now), USER_CREATED, id)?;
        self.remember(Route::Users, idempotency, id, now)?;
        Ok(Ok((id, details)))
    }

    /// The invoice of this number. A damaged row is no reason to undo what others do.
    pub(super) fn invoice(&mut self, number: u64) -> Outcome<Option<Invoice>> {
        let in_flight = self.money.in_flight(number)?.is_some();
        let row = self.invoices.get(number)?;
        let invoice = row.map(|row| invoice(number, row.value())).transpose();
        let invoice =
            invoice.map(|invoice| invoice.map(|invoice| Invoice { in_flight, ..invoice }));
        Ok(invoice.map_err(WalletStoreError::from))
    }

    /// The number of what was created with this key, if it is known.
    pub(super) fn first_answer(
        &self,
        route: Route,
        idempotency: Option<&IdempotencyKey>,
        now: Timestamp,
    ) -> Outcome<Option<u64>> {
        Ok(match self.remembered(route, idempotency, now)? {
            None => Ok(None),
            Some((number, true)) => Ok(Some(number)),
            Some((_, false)) => Err(WalletStoreError::KeyReused),
        })
    }

    /// The number of what was created with this key, if it is known, and whether the request was the
    /// same.
    pub(super) fn remembered(
        &self,
        route: Route,
        idempotency: Option<&IdempotencyKey>,
        now: Timestamp,
    ) -> Result<Option<(u64, bool)>, StoreError> {
        let Some(IdempotencyKey { key, request_hash }) = idempotency else { return Ok(None) };
        let Some(row) = self.idempotency.get((route as u8, key.as_str()))? else {
            return Ok(None);
        };
        let (first_hash, number, stored_at) = row.value();
        let end = Timestamp::from_micros(stored_at).after(IDEMPOTENCY_PERIOD);
        let is_known = end > self.next_event_at(now);
        Ok(is_known.then_some((number, first_hash == *request_hash)))
    }

    pub(super) fn remember(
        &mut self,
        route: Route,
        idempotency: Option<IdempotencyKey>,
        number: u64,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let Some(IdempotencyKey { key, request_hash }) = idempotency else { return Ok(()) };
        let key = (route as u8, key.as_str());
        let stored_at = self.next_event_at(now).as_micros();
        if let Some(old) = self.idempotency.insert(key, (request_hash, number, stored_at))? {
            self.idempotency_ages.remove((old.value().2, key.0, key.1))?;
        }
        self.idempotency_ages.insert((stored_at, key.0, key.1), ())?;
        Ok(())
    }

    fn forget_keys(&mut self, now: Timestamp, limit: usize) -> Result<usize, StoreError> {
        let end = now.before(IDEMPOTENCY_PERIOD).as_micros();
        let old = self.idempotency_ages.range((0, 0, "")..(end + 1, 0, ""))?.take(limit);
        let old = old
            .map(|row| {
                let row = row?;
                let (stored_at, route, key) = row.0.value();
                Ok((stored_at, route, key.to_owned()))
            })
            .collect::<Result<Vec<_>, StoreError>>()?;
        for (stored_at, route, key) in &old {
            self.idempotency_ages.remove((*stored_at, *route, key.as_str()))?;
            self.idempotency.remove((*route, key.as_str()))?;
        }
        Ok(old.len())
    }

    /// The time of an event that happens at `now`: never before the last one.
    pub(super) fn next_event_at(&self, now: Timestamp) -> Timestamp {
        now.max(Timestamp::from_micros(self.figures.last_event_at))
    }

    pub(super) fn append_event(
        &mut self,
        at: Timestamp,
        kind: u8,
        subject: u64,
    ) -> Result<(), StoreError> {
        self.figures.last_event += 1;
        self.figures.last_event_at = at.as_micros();
        self.events.insert(self.figures.last_event, (at.as_micros(), kind, subject))?;
        Ok(())
    }
}

pub(super) fn invoice_row(invoice: &Invoice) -> InvoiceRow<'_> {
    (
        *invoice.id.as_bytes(),
        invoice.satoshis,
        invoice.created_at.as_micros(),
        invoice.expires_at.as_micros(),
        invoice.payment_received_at.map(Timestamp::as_micros),
        invoice.deleted_at.map(Timestamp::as_micros),
        invoice.reference.as_deref(),
        invoice.description.as_deref(),
    )
}

pub(super) fn invoice(number: u64, row: InvoiceRow<'_>) -> Result<Invoice, StoreError> {
    let (id, satoshis, created_at, expires_at, paid_at, deleted_at, reference, description) = row;
    Ok(Invoice {
        number,
        id: InvoiceId::from_bytes(&id)
            .map_err(|_| StoreError::damaged("an invoice id that is not one"))?,
        satoshis,
        description: description.map(str::to_owned),
        reference: reference.map(str::to_owned),
        created_at: Timestamp::from_micros(created_at),
        expires_at: Timestamp::from_micros(expires_at),
        payment_received_at: paid_at.map(Timestamp::from_micros),
        refund_to: None,
        in_flight: false,
        deleted_at: deleted_at.map(Timestamp::from_micros),
    })
}

impl PaymentLinks {
    /// The invoice, with what payments add to it.
    pub(super) fn add_to(&self, mut invoice: Invoice) -> Result<Invoice, StoreError> {
        if invoice.payment_received_at.is_some() {
            let refund_to = self.refunds.get(invoice.number)?;
            invoice.refund_to = refund_to.map(|row| row.value().to_owned());
        } else {
            invoice.in_flight = self.in_flight.get(invoice.number)?.is_some();
        }
        Ok(invoice)
    }
}

pub(super) fn user((name, email, avatar, address, phone_number): UserRow<'_>) -> UserDraft {
    UserDraft {
        name: name.to_owned(),
        email: email.to_owned(),
        avatar: avatar.to_owned(),
        address: address.to_owned(),
        phone_number: phone_number.to_owned(),
    }
}

pub(super) fn event(
    number: u64,
    (at, kind, subject): EventRow,
    invoices: &ReadOnlyTable<u64, InvoiceRow<'static>>,
) -> Result<Event, StoreError> {
    let invoice_id = || {
        let row = invoices.get(subject)?;
        let row =
            row.ok_or_else(|| StoreError::damaged("an event of an invoice that is not there"))?;
        InvoiceId::from_bytes(&row.value().0)
            .map_err(|_| StoreError::damaged("an invoice id that is not one"))
    };
    let kind = match kind {
        INVOICE_CREATED => EventKind::InvoiceCreated(invoice_id()?),
        INVOICE_EXPIRED => EventKind::InvoiceExpired(invoice_id()?),
        INVOICE_DELETED => EventKind::InvoiceDeleted(invoice_id()?),
        INVOICE_PAID => EventKind::InvoicePaid(invoice_id()?),
        INVOICE_PAYMENT_DISPLACED => EventKind::InvoicePaymentDisplaced(invoice_id()?),
        USER_CREATED => EventKind::UserCreated(subject),
        PAYMENT_STARTED => EventKind::PaymentStarted(subject),
        PAYMENT_SETTLED => EventKind::PaymentSettled(subject),
        PAYMENT_REFUSED => EventKind::PaymentRefused(subject),
        PAYMENT_CANCELLED => EventKind::PaymentCancelled(subject),
        PAYMENT_DISPLACED => EventKind::PaymentDisplaced(subject),
        _ => return Err(StoreError::damaged("an event of an unknown kind")),
    };
    Ok(Event { number, at: Timestamp::from_micros(at), kind })
}

pub(super) fn fingerprint(bytes: &[u8]) -> Result<[u8; 20], StoreError> {
    bytes.try_into().map_err(|_| StoreError::damaged("a wallet's fingerprint of a wrong length"))
}
