mod money;
mod tables;

use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use bsv_store::{
    AuditCheck, AuditEntry, Database, DatabaseCopy, DatabaseOptions, DirLock, FileError,
    GroupWriter, KeyEvent, StoreError, read_audit_log, verify_audit_log,
};
use bsv_tx::{KeyError, Transaction};
use redb::{AccessGuard, ReadTransaction, StorageError};
use thiserror::Error;

use self::tables::{
    EVENTS, FINGERPRINT, INVOICES, InvoiceRow, OpenTables, PaymentLinks, ReadTables, SCHEMA,
    WalletTables,
};
use crate::dpp::PeerChannel;
use crate::model::coin::Spending;
use crate::model::event::Event;
use crate::model::idempotency::IdempotencyKey;
use crate::model::invoice::{Invoice, InvoicePage, InvoiceQuery, MAX_LOOKED_AT, MAX_PAGE_TEXT};
use crate::model::invoice_id::InvoiceId;
use crate::model::payment::{
    Begun, BlockPlace, Followed, FoundProof, IncomingPayment, NewIncoming, NewOutgoing,
    OutgoingPayment, Proof, Recovered, Selection, UsedNumbers,
};
use crate::model::time::Timestamp;
use crate::model::user::UserDraft;
use crate::store::{NewInvoice, UserRecord, WalletStore, WalletStoreError};
use crate::wallet::books::LedgerItem;

/// The wallet's store in a redb file, `wallet.redb` in a directory that is locked.
///
/// Changes that wait at the same time share a commit.
pub struct RedbWalletStore {
    writer: GroupWriter<WalletTables>,
    database: Arc<Database>,
    /// Let go of last.
    _lock: Arc<DirLock>,
}

/// Why a wallet store could not be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenWalletStoreError {
    /// The file cannot be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The writer cannot be started.
    #[error(transparent)]
    Writer(#[from] FileError),
}

impl RedbWalletStore {
    /// The file's name in its directory.
    pub const FILE_NAME: &'static str = "wallet.redb";

    /// Opens the store in the locked directory; it is made where it does not exist.
    pub fn open(
        lock: impl Into<Arc<DirLock>>,
        options: DatabaseOptions,
    ) -> Result<Self, OpenWalletStoreError> {
        let lock = lock.into();
        let path = lock.dir().join(Self::FILE_NAME);
        let database = Arc::new(Database::open(&path, &SCHEMA, options)?);
        let writer = GroupWriter::start(Arc::clone(&database))?;
        Ok(Self { writer, database, _lock: lock })
    }

    async fn change<T: Send + 'static>(
        &self,
        command: impl FnOnce(&mut OpenTables<'_>) -> Result<Result<T, WalletStoreError>, StoreError>
        + Send
        + 'static,
    ) -> Result<T, WalletStoreError> {
        self.writer.run(command).await?
    }

    /// Reads a few rows, here and now.
    fn view<T>(
        &self,
        query: impl FnOnce(&ReadTables) -> Result<T, StoreError>,
    ) -> Result<T, WalletStoreError> {
        Ok(self.database.view(query)?)
    }

    fn figure(&self, name: &str) -> Result<u64, WalletStoreError> {
        self.view(|tables| Ok(tables.figures.get(name)?.map_or(0, |figure| figure.value())))
    }

    /// Compares a file that is too long for that when it is opened with its checksums: see
    /// [`Database::check`].
    pub fn check(&self) -> Result<Option<u64>, StoreError> {
        self.database.check()
    }

    /// What is wrong with the file, if that was found.
    pub fn damage(&self) -> Option<&StoreError> {
        self.database.damage()
    }

    /// Copies the file, on a thread that may wait for that.
    pub async fn copy(&self) -> Result<DatabaseCopy, StoreError> {
        let database = Arc::clone(&self.database);
        let copied = tokio::task::spawn_blocking(move || database.copy()).await;
        copied.map_err(|_| StoreError::Panicked)?
    }

    /// Reads all of a table or more, out of a copy that is proved to be as it was written.
    async fn read_copy<T: Send + 'static>(
        &self,
        query: impl FnOnce(&ReadTransaction) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, WalletStoreError> {
        let database = Arc::clone(&self.database);
        let read = tokio::task::spawn_blocking(move || database.copy()?.read(query)).await;
        Ok(read.map_err(|_| StoreError::Panicked)??)
    }

    /// Reads many pages, on a thread that may wait for them.
    async fn read_many<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Arc<ReadTransaction>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, WalletStoreError> {
        let database = Arc::clone(&self.database);
        let read = tokio::task::spawn_blocking(move || database.read(query)).await;
        Ok(read.map_err(|_| StoreError::Panicked)??)
    }
}

impl WalletStore for RedbWalletStore {
    async fn owner(&self) -> Result<Option<[u8; 20]>, WalletStoreError> {
        self.view(|tables| {
            let fingerprint = tables.wallet.get(FINGERPRINT)?;
            fingerprint.map(|bytes| tables::fingerprint(bytes.value())).transpose()
        })
    }

    async fn adopt(&self, fingerprint: [u8; 20], origin: KeyEvent) -> Result<(), WalletStoreError> {
        self.change(move |tables| tables.adopt(fingerprint, origin)).await
    }

    async fn create_invoice(
        &self,
        invoice: NewInvoice,
        id: impl FnOnce(u64) -> InvoiceId + Send + 'static,
    ) -> Result<Invoice, WalletStoreError> {
        self.change(move |tables| tables.create_invoice(invoice, id)).await
    }

    async fn delete_invoice(&self, number: u64, now: Timestamp) -> Result<(), WalletStoreError> {
        self.change(move |tables| tables.delete_invoice(number, now)).await
    }

    async fn sweep(&self, now: Timestamp, limit: usize) -> Result<usize, WalletStoreError> {
        let swept = self.writer.run(move |tables| tables.sweep(now, limit)).await?;
        Ok(swept.unwrap_or(0))
    }

    async fn create_user(
        &self,
        details: UserDraft,
        now: Timestamp,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<UserRecord, WalletStoreError> {
        self.change(move |tables| tables.create_user(details, now, idempotency)).await
    }

    async fn invoice(&self, number: u64) -> Result<Option<Invoice>, WalletStoreError> {
        self.view(|tables| {
            let Some(row) = tables.invoices.get(number)? else { return Ok(None) };
            tables.links.add_to(tables::invoice(number, row.value())?).map(Some)
        })
    }

    async fn invoices(
        &self,
        query: InvoiceQuery,
        now: Timestamp,
    ) -> Result<InvoicePage, WalletStoreError> {
        self.read_many(move |transaction| {
            let table = transaction.open_table(INVOICES)?;
            let links = PaymentLinks::new(transaction);
            if query.newest_first {
                let rows = table.range(..query.after.unwrap_or(u64::MAX))?;
                page(rows.rev(), &links, query, now)
            } else {
                let after = query.after.map_or(Bound::Unbounded, Bound::Excluded);
                page(table.range((after, Bound::Unbounded))?, &links, query, now)
            }
        })
        .await
    }

    async fn user(&self, id: u64) -> Result<Option<UserRecord>, WalletStoreError> {
        self.view(|tables| {
            let row = tables.users.get(id)?;
            Ok(row.map(|row| (id, tables::user(row.value()))))
        })
    }

    async fn begin_payment(&self, payment: NewIncoming) -> Result<Begun, WalletStoreError> {
        self.change(move |tables| tables.begin_payment(payment)).await
    }

    async fn refuse_payment(&self, transaction: u64) -> Result<(), WalletStoreError> {
        self.change(move |tables| tables.refuse_payment(transaction)).await
    }

    async fn settle(&self, transaction: u64, now: Timestamp) -> Result<(), WalletStoreError> {
        let change = move |tables: &mut OpenTables<'_>| tables.settle(transaction, now);
        self.change(move |tables| tables.of_transaction(transaction, change)).await
    }

    async fn reserve_coins(
        &self,
        payment: NewOutgoing,
        build: impl FnOnce(&Selection) -> Result<(Transaction, Vec<u8>), KeyError> + Send + 'static,
    ) -> Result<OutgoingPayment, WalletStoreError> {
        self.change(move |tables| tables.reserve_coins(&payment, build)).await
    }

    async fn settle_outgoing(
        &self,
        payment: u64,
        answer: Option<(String, Option<PeerChannel>)>,
        now: Timestamp,
    ) -> Result<OutgoingPayment, WalletStoreError> {
        self.change(move |tables| tables.settle_outgoing(payment, answer, now)).await
    }

    async fn refuse_outgoing(
        &self,
        payment: u64,
        reason: String,
        now: Timestamp,
    ) -> Result<OutgoingPayment, WalletStoreError> {
        self.change(move |tables| tables.refuse_outgoing(payment, &reason, now)).await
    }

    async fn begin_cancellation(
        &self,
        payment: u64,
        spending: Spending,
        now: Timestamp,
        build: impl FnOnce(&Selection) -> Result<Transaction, KeyError> + Send + 'static,
    ) -> Result<u64, WalletStoreError> {
        self.change(move |tables| tables.begin_cancellation(payment, &spending, now, build)).await
    }

    async fn displace(&self, transaction: u64, now: Timestamp) -> Result<(), WalletStoreError> {
        let change = move |tables: &mut OpenTables<'_>| tables.displace(transaction, now);
        self.change(move |tables| tables.of_transaction(transaction, change)).await
    }

    async fn prove(
        &self,
        transaction: u64,
        proof: Proof,
        now: Timestamp,
    ) -> Result<(), WalletStoreError> {
        let change = move |tables: &mut OpenTables<'_>| tables.prove(transaction, &proof, now);
        self.change(move |tables| tables.of_transaction(transaction, change)).await
    }

    async fn forget_block(&self, block: BlockPlace) -> Result<(), WalletStoreError> {
        self.change(move |tables| tables.forget_block(&block).map(Ok)).await
    }

    async fn unfollow(&self, transaction: u64) -> Result<(), WalletStoreError> {
        self.change(move |tables| tables.unfollow(transaction).map(Ok)).await
    }

    async fn mark_read(
        &self,
        transaction: u64,
        sequence: u32,
        is_read: bool,
    ) -> Result<bool, WalletStoreError> {
        self.change(move |tables| tables.mark_read(transaction, sequence, is_read).map(Ok)).await
    }

    async fn incoming(&self, invoice: u64) -> Result<Vec<IncomingPayment>, WalletStoreError> {
        self.view(|tables| {
            let rows = tables.money.incoming.range((invoice, 0)..=(invoice, u64::MAX))?;
            rows.map(|row| Ok(tables.money.transaction(row?.0.value().1)?.incoming())).collect()
        })
    }

    async fn outgoing(
        &self,
        payment: u64,
    ) -> Result<Option<(OutgoingPayment, Vec<u8>)>, WalletStoreError> {
        self.view(|tables| {
            let Some(found) = tables.money.payment(payment)? else { return Ok(None) };
            let message = tables.money.messages.get(payment)?;
            Ok(Some((found, message.map(|row| row.value().to_vec()).unwrap_or_default())))
        })
    }

    async fn outgoing_transaction(&self, payment: u64) -> Result<Transaction, WalletStoreError> {
        let number = self.view(|tables| {
            let row = tables.money.outgoing.get(payment)?;
            Ok(row.map(|row| row.value().0))
        })?;
        let number = number.ok_or(WalletStoreError::UnknownPayment(payment))?;
        let missing = || StoreError::damaged("a transaction is missing");
        Ok(WalletStore::transaction(self, number).await?.ok_or_else(missing)?)
    }

    async fn outgoing_to(
        &self,
        url: &str,
        idempotency: Option<IdempotencyKey>,
        now: Timestamp,
    ) -> Result<Option<OutgoingPayment>, WalletStoreError> {
        if idempotency.is_some() {
            let url = url.to_owned();
            let find = move |tables: &mut OpenTables<'_>| {
                tables.payment_before(&url, idempotency.as_ref(), now)
            };
            return self.change(find).await;
        }
        self.view(|tables| {
            let number = tables.money.outgoing_by_url.get(money::url_hash(url))?;
            let payment = number.map(|number| tables.money.payment(number.value())).transpose()?;
            Ok(payment.flatten().filter(|payment| payment.state.lasts()))
        })
    }

    async fn outgoing_before(
        &self,
        payment: u64,
        limit: usize,
    ) -> Result<Vec<OutgoingPayment>, WalletStoreError> {
        self.view(|tables| {
            let rows = tables.money.outgoing.range(..payment)?.rev().take(limit);
            rows.map(|row| {
                let (number, row) = row?;
                tables.money.with_transaction(number.value(), row.value())
            })
            .collect()
        })
    }

    async fn followed(&self, after: u64, limit: usize) -> Result<Vec<Followed>, WalletStoreError> {
        self.view(|tables| {
            let rows = tables.money.followed.range(after.saturating_add(1)..)?.take(limit);
            rows.map(|row| {
                let (number, until) = row?;
                Ok(tables.money.transaction(number.value())?.followed(until.value()))
            })
            .collect()
        })
    }

    async fn transaction(&self, number: u64) -> Result<Option<Transaction>, WalletStoreError> {
        self.view(|tables| {
            let Some(bytes) = tables.money.raw.get(number)? else { return Ok(None) };
            Transaction::from_bytes(bytes.value())
                .map(Some)
                .map_err(|error| StoreError::damaged(format!("a transaction: {error}")))
        })
    }

    async fn blocks(&self, from: u32) -> Result<Vec<BlockPlace>, WalletStoreError> {
        self.read_many(move |transaction| {
            let transactions = money::ReadMoney::new(transaction);
            let mut blocks = Vec::new();
            for row in transaction.open_table(money::MINED)?.range((from, 0)..)? {
                let (_, number) = row?.0.value();
                let place = transactions.block_of(number)?;
                if blocks.last() != Some(&place) {
                    blocks.push(place);
                }
            }
            Ok(blocks)
        })
        .await
    }

    async fn proofs(&self, transaction: u64) -> Result<Vec<FoundProof>, WalletStoreError> {
        self.view(|tables| {
            let rows = tables.money.proofs.range((transaction, 0)..=(transaction, u32::MAX))?;
            rows.map(|row| {
                let (key, row) = row?;
                money::found_proof(key.value().1, row.value())
            })
            .collect()
        })
    }

    async fn balance(&self) -> Result<u64, WalletStoreError> {
        self.figure("balance")
    }

    async fn events(&self, after: u64, limit: usize) -> Result<Vec<Event>, WalletStoreError> {
        self.read_many(move |transaction| {
            let invoices = transaction.open_table(INVOICES)?;
            let rows = transaction.open_table(EVENTS)?.range(after.saturating_add(1)..)?;
            rows.take(limit)
                .map(|row| {
                    let (number, row) = row?;
                    tables::event(number.value(), row.value(), &invoices)
                })
                .collect()
        })
        .await
    }

    async fn note_key_event(
        &self,
        event: KeyEvent,
        subject: String,
    ) -> Result<(), WalletStoreError> {
        self.change(move |tables| tables.note_key_event(event, &subject).map(Ok)).await
    }

    async fn audit_log(
        &self,
        after: u64,
        limit: usize,
    ) -> Result<Vec<AuditEntry>, WalletStoreError> {
        self.read_many(move |transaction| read_audit_log(transaction, after, limit)).await
    }

    async fn verify_audit_log(&self) -> Result<AuditCheck, WalletStoreError> {
        self.read_copy(verify_audit_log).await
    }

    async fn fold_ledger<A: Send + 'static>(
        &self,
        mut start: A,
        mut step: impl FnMut(&mut A, LedgerItem) + Send + 'static,
    ) -> Result<A, WalletStoreError> {
        self.read_copy(move |transaction| {
            money::read_ledger(transaction, &mut |item| step(&mut start, item))?;
            Ok(start)
        })
        .await
    }

    async fn recover(&self, found: Vec<Recovered>) -> Result<(), WalletStoreError> {
        self.change(move |tables| tables.recover(&found).map(Ok)).await
    }

    async fn pass_over(&self, used: UsedNumbers) -> Result<(), WalletStoreError> {
        self.change(move |tables| {
            tables.pass_over(used);
            Ok(Ok(()))
        })
        .await
    }

    async fn last_event_at(&self) -> Result<Timestamp, WalletStoreError> {
        Ok(Timestamp::from_micros(self.figure("last event at")?))
    }
}

/// The invoices that a query asks for, out of `rows` in its order.
fn page<'t>(
    rows: impl Iterator<Item = Result<InvoiceEntry<'t>, StorageError>>,
    links: &PaymentLinks,
    query: InvoiceQuery,
    now: Timestamp,
) -> Result<InvoicePage, StoreError> {
    let mut invoices = Vec::with_capacity(query.limit.min(1000));
    let mut last = None;
    let mut text_len = 0;
    for (looked_at, row) in rows.enumerate() {
        let is_full = invoices.len() == query.limit || text_len >= MAX_PAGE_TEXT;
        if is_full || looked_at == MAX_LOOKED_AT {
            return Ok(InvoicePage { invoices, next: last, now });
        }
        let (number, row) = row?;
        let invoice = links.add_to(tables::invoice(number.value(), row.value())?)?;
        last = Some((invoice.number, invoice.id));
        let is_asked_for = query.state.is_none_or(|state| invoice.state(now) == state);
        if invoice.deleted_at.is_none() && is_asked_for {
            let texts = [&invoice.reference, &invoice.description];
            text_len += texts.into_iter().flatten().map(String::len).sum::<usize>();
            invoices.push(invoice);
        }
    }
    Ok(InvoicePage { invoices, next: None, now })
}

type InvoiceEntry<'t> = (AccessGuard<'t, u64>, AccessGuard<'t, InvoiceRow<'static>>);

impl fmt::Debug for RedbWalletStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedbWalletStore").field("database", &self.database).finish_non_exhaustive()
    }
}
