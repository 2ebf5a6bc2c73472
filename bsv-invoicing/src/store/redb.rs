mod rows;

use std::fmt;
use std::sync::Arc;

use bsv_store::{
    AuditCheck, AuditEntry, AuditPage, Database, DatabaseBatches, DatabaseCopy, DatabaseOptions,
    DirLock, GroupWriter, Schema, StoreCounts, StoreError, Tables, create_audit_log,
    read_audit_log, verify_audit_log,
};
use redb::WriteTransaction;
use tokio::sync::watch;

use self::rows::{RowsToRead, RowsToWrite, create_tables};
use crate::ledger::queries::GetFigures;
use crate::ledger::rows::{Engine, KeyRange, RawRow};
use crate::ledger::{BooksOn, Query};
use crate::model::event::EventKind;
use crate::store::wallet_store::{
    Answering, BoxedAnswer, BoxedCommand, BoxedOnce, BoxedQuery, Store, refused,
};
use crate::store::{EventCounts, OpenWalletStoreError, WalletStoreError};

const SCHEMA: Schema = Schema { name: "bsv-wallet", migrations: &[make_tables] };

fn make_tables(transaction: &WriteTransaction) -> Result<(), StoreError> {
    create_tables(transaction)?;
    create_audit_log(transaction)
}

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

    /// Up to `limit` rows of a range in the file of a directory that is locked. This works with a file that cannot be
    /// opened as a store, and changes nothing.
    pub fn peek(lock: &DirLock, range: &KeyRange, limit: usize) -> Result<Vec<RawRow>, StoreError> {
        let path = lock.dir().join(Self::FILE_NAME);
        Database::peek(&path, |transaction| RowsToRead::new(transaction).scan(range, limit))
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

impl Store for RedbWalletStore {
    fn run_command(&self, weight: usize, command: BoxedCommand) -> Answering<'_, BoxedAnswer> {
        let run = move |books: &mut BooksOn<RowsToWrite<'_>>| match command(books) {
            Ok(answer) => Ok(Ok(answer)),
            Err(error) => refused(error),
        };
        Box::pin(
            async move { self.writer.run(weight, run).await?.map_err(WalletStoreError::Refused) },
        )
    }

    fn run_short(&self, query: BoxedQuery) -> Answering<'_, BoxedAnswer> {
        Box::pin(async move { self.database.view(|rows: &RowsToRead| Ok(query(rows)))? })
    }

    fn run_long(&self, query: BoxedQuery) -> Answering<'_, BoxedAnswer> {
        Box::pin(self.wait_for(move |database| {
            database.read(|transaction| Ok(query(&RowsToRead::new(transaction))))?
        }))
    }

    fn run_on_disk(&self, query: BoxedOnce) -> Answering<'_, BoxedAnswer> {
        Box::pin(self.wait_for(|database| {
            database.copy()?.read(|transaction| Ok(query(&RowsToRead::new(transaction))))?
        }))
    }

    fn last_event(&self) -> watch::Receiver<u64> {
        self.last_event.clone()
    }

    fn audit_log(&self, page: AuditPage, limit: usize) -> Answering<'_, Vec<AuditEntry>> {
        Box::pin(self.wait_for(move |database| {
            Ok(database.read(|transaction| read_audit_log(transaction, page, limit))?)
        }))
    }

    fn verify_audit_log(&self) -> Answering<'_, AuditCheck> {
        Box::pin(self.wait_for(|database| {
            Ok(database.copy()?.read(|transaction| verify_audit_log(transaction))?)
        }))
    }

    fn counts(&self) -> &StoreCounts {
        self.database.counts()
    }

    fn event_counts(&self) -> &EventCounts {
        &self.events
    }

    fn check(&self) -> Result<Option<u64>, StoreError> {
        self.database.check()
    }

    fn damage(&self) -> Option<&StoreError> {
        self.database.damage()
    }

    fn file_len(&self) -> Option<u64> {
        self.database.file_len().ok()
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
    type Open<'t> = BooksOn<RowsToWrite<'t>>;
    type Told = Told;

    fn open(transaction: &WriteTransaction) -> Result<Self::Open<'_>, StoreError> {
        BooksOn::open(RowsToWrite::new(transaction)).map_err(store_error)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::CreateUser;
    use crate::ledger::queries::GetUser;
    use crate::ledger::rows::{Change, Table};
    use crate::model::time::Timestamp;
    use crate::model::user::UserDraft;
    use crate::store::WalletStore;

    /// A later version puts a member at the end of each user.
    fn add_a_member(transaction: &WriteTransaction) -> Result<(), StoreError> {
        let mut rows = RowsToWrite::new(transaction);
        for (key, mut row) in rows.scan(&KeyRange::all(Table::Users), usize::MAX)? {
            // An array of one more item, which is the number 7.
            row[0] += 1;
            row.push(7);
            rows.write(Table::Users, key, Change::Set(row))?;
        }
        Ok(())
    }

    #[tokio::test]
    async fn a_later_version_migrates_the_file_and_an_older_one_refuses_it() {
        let dir = tempfile::tempdir().unwrap();
        let lock = || DirLock::acquire(dir.path(), "test").unwrap();
        let open = || RedbWalletStore::open(lock(), DatabaseOptions::default());
        let details = UserDraft { name: "Ada".to_owned(), ..UserDraft::default() };
        let now = Timestamp::from_micros(1);
        let user = CreateUser { details: details.clone(), idempotency: None, now };
        open().unwrap().execute(user).await.unwrap();
        let schema = Schema { migrations: &[make_tables, add_a_member], ..SCHEMA };
        let path = dir.path().join(RedbWalletStore::FILE_NAME);
        for _ in 0..2 {
            let later = Database::open(&path, &schema, DatabaseOptions::default()).unwrap();
            let user = |rows: &RowsToRead| Ok(GetUser(1).run(rows));
            // A reader that does not know a member passes it over.
            assert_eq!(later.view(user).unwrap().unwrap(), Some((1, details.clone())));
            let bytes = |rows: &RowsToRead| rows.read(Table::Users, &1_u64.to_be_bytes());
            assert_eq!(later.view(bytes).unwrap().unwrap().last(), Some(&7), "it is migrated once");
        }
        let refused = open().unwrap_err();
        let is_newer = matches!(
            refused,
            OpenWalletStoreError::Store(StoreError::NewerSchema { found: 2, known: 1, .. })
        );
        assert!(is_newer, "{refused}");
    }
}
