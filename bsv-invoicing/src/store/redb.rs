mod migrations;
mod rows;

use std::fmt;
use std::sync::Arc;

use bsv_store::{
    AuditCheck, AuditEntry, AuditPage, Database, DatabaseBatches, DatabaseCopy, DatabaseOptions,
    DirLock, FileError, GroupWriter, StoreCounts, StoreError, Tables, read_audit_log,
    verify_audit_log,
};
use redb::WriteTransaction;
use tokio::sync::watch;

use self::migrations::SCHEMA;
use self::rows::{RowsToRead, RowsToWrite};
use crate::ledger::queries::GetFigures;
use crate::ledger::{Books, Command, Query};
use crate::model::event::EventKind;
use crate::store::{EventCounts, OpenWalletStoreError, WalletStore, WalletStoreError, refused};

/// The wallet's store in a redb file, `wallet.redb` in a directory that is locked.
///
/// Commands that wait at the same time share a commit.
pub struct RedbWalletStore {
    writer: GroupWriter<DatabaseBatches<WalletTables>>,
    last_event: watch::Receiver<u64>,
    database: Arc<Database>,
    events: Arc<EventCounts>,
    /// The last field, so that it is released last.
    _lock: Arc<DirLock>,
}

impl RedbWalletStore {
    /// The file's name in its directory.
    pub const FILE_NAME: &'static str = "wallet.redb";

    /// Opens the store in the locked directory. Creates it if it does not exist.
    pub fn open(
        lock: impl Into<Arc<DirLock>>,
        options: DatabaseOptions,
    ) -> Result<Self, OpenWalletStoreError> {
        let lock = lock.into();
        let path = lock.dir().join(Self::FILE_NAME);
        let database = Arc::new(Database::open(&path, &SCHEMA, options)?);
        let figures = database.view(|rows: &RowsToRead| Ok(GetFigures.run(rows)))?;
        let last_event = figures.map_err(store_error)?.last_event;
        let (sender, last_event) = watch::channel(last_event);
        let events = Arc::<EventCounts>::default();
        let counted = Arc::clone(&events);
        let committed = move |Told { last_event, kinds }: Told| {
            counted.note(&kinds);
            sender.send_if_modified(|last| std::mem::replace(last, last_event) != last_event);
        };
        let writer = GroupWriter::start(DatabaseBatches::new(Arc::clone(&database)), committed)?;
        Ok(Self { writer, last_event, database, events, _lock: lock })
    }

    /// Compares the file with its checksums, if it was too long for that when it was opened: see
    /// [`Database::check`].
    pub fn check(&self) -> Result<Option<u64>, StoreError> {
        self.database.check()
    }

    /// The damage that was found in the file, if any.
    pub fn damage(&self) -> Option<&StoreError> {
        self.database.damage()
    }

    /// The length of the file, in bytes.
    pub fn file_len(&self) -> Result<u64, FileError> {
        self.database.file_len()
    }

    /// What the store has done since it was opened.
    pub fn counts(&self) -> &StoreCounts {
        self.database.counts()
    }

    /// Counts of the events that were written since the store was opened.
    pub fn event_counts(&self) -> &EventCounts {
        &self.events
    }

    /// Copies the file on a blocking thread.
    pub async fn copy(&self) -> Result<DatabaseCopy, StoreError> {
        let database = Arc::clone(&self.database);
        let copied = tokio::task::spawn_blocking(move || database.copy()).await;
        copied.map_err(|_| StoreError::Panicked)?
    }

    /// Runs `query` on the database, on a blocking thread.
    async fn wait_for<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Database) -> Result<T, WalletStoreError> + Send + 'static,
    ) -> Result<T, WalletStoreError> {
        let database = Arc::clone(&self.database);
        let read = tokio::task::spawn_blocking(move || query(&database)).await;
        read.map_err(|_| StoreError::Panicked)?
    }
}

impl WalletStore for RedbWalletStore {
    async fn execute<C: Command>(&self, command: C) -> Result<C::Answer, WalletStoreError> {
        let weight = command.weight();
        let run = move |books: &mut Books<RowsToWrite<'_>>| match command.run(books) {
            Ok(answer) => Ok(Ok(answer)),
            Err(error) => refused(error),
        };
        self.writer.run(weight, run).await?.map_err(WalletStoreError::Refused)
    }

    async fn get<Q: Query + Clone>(&self, query: Q) -> Result<Q::Answer, WalletStoreError> {
        self.database.view(|rows: &RowsToRead| Ok(query.run(rows)))?
    }

    async fn list<Q: Query + Clone>(&self, query: Q) -> Result<Q::Answer, WalletStoreError> {
        self.wait_for(|database| {
            database.read(|transaction| Ok(query.run(&RowsToRead::new(transaction))))?
        })
        .await
    }

    async fn verify<Q: Query>(&self, query: Q) -> Result<Q::Answer, WalletStoreError> {
        self.wait_for(|database| {
            database.copy()?.read(|transaction| Ok(query.run(&RowsToRead::new(transaction))))?
        })
        .await
    }

    fn last_event(&self) -> watch::Receiver<u64> {
        self.last_event.clone()
    }

    async fn audit_log(
        &self,
        page: AuditPage,
        limit: usize,
    ) -> Result<Vec<AuditEntry>, WalletStoreError> {
        self.wait_for(move |database| {
            Ok(database.read(|transaction| read_audit_log(transaction, page, limit))?)
        })
        .await
    }

    async fn verify_audit_log(&self) -> Result<AuditCheck, WalletStoreError> {
        self.wait_for(|database| {
            Ok(database.copy()?.read(|transaction| verify_audit_log(transaction))?)
        })
        .await
    }
}

/// The tables, as the writer opens them for a batch.
struct WalletTables;

/// The events of a batch.
struct Told {
    /// The number of the last event in the log.
    last_event: u64,
    kinds: Vec<EventKind>,
}

impl Tables for WalletTables {
    type Open<'t> = Books<RowsToWrite<'t>>;
    type Told = Told;

    fn open(transaction: &WriteTransaction) -> Result<Self::Open<'_>, StoreError> {
        Books::open(RowsToWrite::new(transaction)).map_err(store_error)
    }

    fn close(books: Self::Open<'_>) -> Result<Option<Told>, StoreError> {
        let told = Told { last_event: books.last_event(), kinds: books.told().to_vec() };
        let rows = books.close().map_err(store_error)?;
        Ok(rows.have_changed().then_some(told))
    }
}

/// The failure of an operation that the rules cannot refuse. A refusal means that the store is
/// damaged.
fn store_error(error: WalletStoreError) -> StoreError {
    match error {
        WalletStoreError::Store(error) => error,
        WalletStoreError::Refused(refusal) => StoreError::damaged(refusal),
    }
}

impl fmt::Debug for RedbWalletStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedbWalletStore").field("database", &self.database).finish_non_exhaustive()
    }
}
