//! The tables of the wallet's file, their rows, and the changes that commands make to them.

use bsv_store::{Migration, Schema, StoreError, Tables};
use redb::{ReadOnlyTable, ReadableTable, Table, TableDefinition, WriteTransaction};

use crate::event::{Event, EventKind};
use crate::invoice::Invoice;
use crate::invoice_id::InvoiceId;
use crate::store::{NewInvoice, UserRecord, WalletStoreError};
use crate::time::Timestamp;
use crate::user::UserDraft;

/// Number to invoice.
pub(super) const INVOICES: TableDefinition<'_, u64, InvoiceRow<'static>> =
    TableDefinition::new("invoices");
/// Id to user.
pub(super) const USERS: TableDefinition<'_, u64, UserRow<'static>> = TableDefinition::new("users");
/// Number to event.
pub(super) const EVENTS: TableDefinition<'_, u64, EventRow> = TableDefinition::new("events");
/// Name to figure: see [`Figures`].
pub(super) const FIGURES: TableDefinition<'_, &str, u64> = TableDefinition::new("figures");
/// What tells the wallet apart: [`FINGERPRINT`].
pub(super) const WALLET: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("wallet");
pub(super) const FINGERPRINT: &str = "fingerprint";

/// Id, satoshis, when created, when it expires, when paid, when deleted, reference, description.
/// Times are microseconds since 1970.
pub(super) type InvoiceRow<'a> =
    ([u8; 12], u64, u64, u64, Option<u64>, Option<u64>, Option<&'a str>, Option<&'a str>);
/// Name, email, avatar, address, phone number.
type UserRow<'a> = (&'a str, &'a str, &'a str, &'a str, &'a str);
/// When, what (see [`event`]), and the number of the invoice or user.
type EventRow = (u64, u8, u64);

const INVOICE_CREATED: u8 = 1;
const USER_CREATED: u8 = 2;

/// Keys are derived for numbers below this.
const MAX_NUMBER: u64 = (1 << 31) - 1;

pub(super) const SCHEMA: Schema = Schema { name: "wallet", migrations: MIGRATIONS };

const MIGRATIONS: &[Migration] = &[create_tables];

fn create_tables(transaction: &WriteTransaction) -> Result<(), StoreError> {
    transaction.open_table(INVOICES)?;
    transaction.open_table(USERS)?;
    transaction.open_table(EVENTS)?;
    transaction.open_table(FIGURES)?;
    transaction.open_table(WALLET)?;
    Ok(())
}

/// The tables, opened for a batch of commands.
pub(super) struct OpenTables<'t> {
    invoices: Table<'t, u64, InvoiceRow<'static>>,
    users: Table<'t, u64, UserRow<'static>>,
    events: Table<'t, u64, EventRow>,
    figures_table: Table<'t, &'static str, u64>,
    wallet: Table<'t, &'static str, &'static [u8]>,
    figures: Figures,
}

/// Figures that are kept up to date, and in memory during a batch.
#[derive(Default)]
struct Figures {
    last_invoice: u64,
    last_user: u64,
    last_event: u64,
    last_event_at: u64,
}

pub(super) struct WalletTables;

impl Tables for WalletTables {
    type Open<'t> = OpenTables<'t>;

    fn open(transaction: &WriteTransaction) -> Result<OpenTables<'_>, StoreError> {
        let table = transaction.open_table(FIGURES)?;
        let figure = |name| Ok::<_, StoreError>(table.get(name)?.map_or(0, |row| row.value()));
        let figures = Figures {
            last_invoice: figure("last invoice")?,
            last_user: figure("last user")?,
            last_event: figure("last event")?,
            last_event_at: figure("last event at")?,
        };
        Ok(OpenTables {
            invoices: transaction.open_table(INVOICES)?,
            users: transaction.open_table(USERS)?,
            events: transaction.open_table(EVENTS)?,
            figures_table: table,
            wallet: transaction.open_table(WALLET)?,
            figures,
        })
    }

    fn close(tables: OpenTables<'_>) -> Result<(), StoreError> {
        let mut table = tables.figures_table;
        let Figures { last_invoice, last_user, last_event, last_event_at } = tables.figures;
        for (name, figure) in [
            ("last invoice", last_invoice),
            ("last user", last_user),
            ("last event", last_event),
            ("last event at", last_event_at),
        ] {
            table.insert(name, figure)?;
        }
        Ok(())
    }
}

/// What a command answers: the outer error undoes the batch, the inner one refuses.
type Outcome<T> = Result<Result<T, WalletStoreError>, StoreError>;

impl OpenTables<'_> {
    pub(super) fn adopt(&mut self, fingerprint: [u8; 20]) -> Outcome<()> {
        let owner = self.wallet.get(FINGERPRINT)?.map(|owner| owner.value().to_vec());
        Ok(match owner {
            None => {
                self.wallet.insert(FINGERPRINT, fingerprint.as_slice())?;
                Ok(())
            }
            Some(owner) if owner == fingerprint => Ok(()),
            Some(_) => Err(WalletStoreError::OtherWallet),
        })
    }

    pub(super) fn create_invoice(
        &mut self,
        NewInvoice { draft, expiry, now }: NewInvoice,
        id: impl FnOnce(u64) -> InvoiceId,
    ) -> Outcome<Invoice> {
        if self.figures.last_invoice == MAX_NUMBER {
            return Ok(Err(WalletStoreError::Full(MAX_NUMBER)));
        }
        let created_at = self.next_event_at(now);
        self.figures.last_invoice += 1;
        let number = self.figures.last_invoice;
        let invoice = Invoice {
            number,
            id: id(number),
            satoshis: draft.satoshis,
            description: draft.description,
            reference: draft.reference,
            created_at,
            expires_at: draft.expires_at.unwrap_or_else(|| created_at.after(expiry)),
            payment_received_at: None,
            deleted_at: None,
        };
        self.invoices.insert(number, invoice_row(&invoice))?;
        self.append_event(created_at, INVOICE_CREATED, number)?;
        Ok(Ok(invoice))
    }

    pub(super) fn create_user(
        &mut self,
        details: UserDraft,
        now: Timestamp,
    ) -> Outcome<UserRecord> {
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
        Ok(Ok((id, details)))
    }

    /// The time of an event that happens at `now`: never before the last one.
    fn next_event_at(&self, now: Timestamp) -> Timestamp {
        now.max(Timestamp::from_micros(self.figures.last_event_at))
    }

    fn append_event(&mut self, at: Timestamp, kind: u8, subject: u64) -> Result<(), StoreError> {
        self.figures.last_event += 1;
        self.figures.last_event_at = at.as_micros();
        self.events.insert(self.figures.last_event, (at.as_micros(), kind, subject))?;
        Ok(())
    }
}

fn invoice_row(invoice: &Invoice) -> InvoiceRow<'_> {
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
        deleted_at: deleted_at.map(Timestamp::from_micros),
    })
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
        USER_CREATED => EventKind::UserCreated(subject),
        _ => return Err(StoreError::damaged("an event of an unknown kind")),
    };
    Ok(Event { number, at: Timestamp::from_micros(at), kind })
}

pub(super) fn fingerprint(bytes: &[u8]) -> Result<[u8; 20], StoreError> {
    bytes.try_into().map_err(|_| StoreError::damaged("a wallet's fingerprint of a wrong length"))
}
