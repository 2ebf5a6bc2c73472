//! Invoices, users, and the sweep.

use bsv_tx::KeyError;

use crate::error::Error;
use crate::ledger::queries::{GetInvoice, GetInvoices, GetInvoicesOf, GetInvoicesPaidBy, GetUser};
use crate::ledger::{CreateInvoice, CreateUser, DeleteInvoice, Refusal, Sweep, UserRecord};
use crate::model::fields::FieldErrors;
use crate::model::idempotency::IdempotencyKey;
use crate::model::invoice::{Invoice, InvoiceDraft, InvoicePage, InvoiceQuery};
use crate::model::invoice_id::{InvoiceId, NewId};
use crate::model::payment::{PaidByPage, PaidByQuery};
use crate::model::user::{User, UserDraft};
use crate::store::{WalletStore, WalletStoreError};
use crate::wallet::Wallet;

/// How much one step of the sweep does. Other commands wait for the step.
const MAX_SWEPT: usize = 250;

impl Wallet {
    /// Creates an invoice, or returns the one that was created first with the same key.
    /// [`as_created`](Invoice::as_created) shows that invoice as it was then.
    pub async fn create_invoice(
        &self,
        draft: InvoiceDraft,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<Invoice, Error> {
        let now = self.now();
        let mut errors = FieldErrors::default();
        draft.check(&mut errors);
        errors.into_result()?;
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(KeyError::NoRandomness)?;
        let id = NewId { cipher: self.keys.ids.clone(), random: u64::from_le_bytes(random) };
        let expiry = self.settings.expiry;
        Ok(self.store.execute(CreateInvoice { draft, expiry, id, idempotency, now }).await?)
    }

    /// The invoice with this id.
    pub async fn invoice(&self, id: &str) -> Result<Invoice, Error> {
        let invoice = self.invoice_even_deleted(id).await?;
        if invoice.deleted_at.is_some() {
            return Err(Error::UnknownInvoice(id.to_owned()));
        }
        Ok(invoice)
    }

    /// The number of the invoice with this id, even if it is deleted.
    pub async fn invoice_number(&self, id: &str) -> Result<u64, Error> {
        Ok(self.invoice_even_deleted(id).await?.number)
    }

    pub(super) async fn invoice_even_deleted(&self, id: &str) -> Result<Invoice, Error> {
        let parsed: InvoiceId = id.parse()?;
        let invoice = self.store.get(GetInvoice(self.keys.ids.number(&parsed))).await?;
        invoice
            .filter(|invoice| invoice.id == parsed)
            .ok_or_else(|| Error::UnknownInvoice(id.to_owned()))
    }

    /// Invoices in the order of their creation, or the other way round.
    pub async fn invoices(&self, query: InvoiceQuery) -> Result<InvoicePage, Error> {
        Ok(self.store.list(GetInvoices(query, self.expiry_time())).await?)
    }

    /// Up to `limit` invoices that have this reference, the newest first.
    pub async fn invoices_of(&self, reference: &str, limit: usize) -> Result<Vec<Invoice>, Error> {
        Ok(self.store.list(GetInvoicesOf(reference.to_owned(), limit)).await?)
    }

    /// Invoices that a transaction pays, in the order of its outputs.
    pub async fn invoices_paid_by(&self, query: PaidByQuery) -> Result<PaidByPage, Error> {
        Ok(self.store.list(GetInvoicesPaidBy(query)).await?)
    }

    /// Deletes an invoice that is not paid. It is not shown to anybody from then on.
    pub async fn delete_invoice(&self, id: &str) -> Result<(), Error> {
        let number = self.invoice(id).await?.number;
        let deleted = self.store.execute(DeleteInvoice { number, now: self.now() }).await;
        deleted.map_err(|error| match of_invoice(id, error) {
            Error::Paid(id) => Error::PaidForever(id),
            error => error,
        })
    }

    /// Writes events of invoices that have expired, deletes old idempotency keys, and lists receipts
    /// of deleted invoices as unassigned. Returns whether there may be more to do at once.
    /// [`run`](Self::run) calls it about every second.
    pub async fn sweep(&self) -> Result<bool, Error> {
        let (now, doubted_since) = (self.now(), self.doubted_since());
        let sweep = Sweep { now, doubted_since, limit: MAX_SWEPT };
        match self.store.execute(sweep).await {
            Ok(count) => Ok(count >= MAX_SWEPT),
            Err(WalletStoreError::Refused(Refusal::NothingDue)) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Creates a user, or returns the one that was created first with the same key.
    pub async fn create_user(
        &self,
        details: UserDraft,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<User, Error> {
        let mut errors = FieldErrors::default();
        details.check(&mut errors);
        errors.into_result()?;
        let create = CreateUser { details, idempotency, now: self.now() };
        self.user_of(self.store.execute(create).await?).await
    }

    /// The user of this id.
    pub async fn user(&self, id: u64) -> Result<User, Error> {
        self.user_of(self.store.get(GetUser(id)).await?.ok_or(Error::UnknownUser(id))?).await
    }

    async fn user_of(&self, (id, details): UserRecord) -> Result<User, Error> {
        let (pki, key) = self.keys.user(id)?;
        self.watch_script(pki.hash(), key).await?;
        Ok(User { id, details, pki })
    }
}

/// The error of a command on an invoice, with the id that callers use instead of the number.
pub(crate) fn of_invoice(id: &str, error: WalletStoreError) -> Error {
    match error {
        WalletStoreError::Refused(Refusal::UnknownInvoice(_)) => {
            Error::UnknownInvoice(id.to_owned())
        }
        WalletStoreError::Refused(Refusal::Paid(_)) => Error::Paid(id.to_owned()),
        WalletStoreError::Refused(Refusal::Expired(_)) => Error::Expired(id.to_owned()),
        WalletStoreError::Refused(Refusal::InFlight(_)) => Error::InFlight(id.to_owned()),
        error => error.into(),
    }
}
