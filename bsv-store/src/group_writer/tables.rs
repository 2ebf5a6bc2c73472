//! Batches of commands on the tables of a database file.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use redb::WriteTransaction;

use super::{Batch, BatchRun, Batches};
use crate::database::Database;
use crate::error::StoreError;

/// The tables that commands work on, which are opened once for all commands of a commit.
pub trait Tables: 'static {
    /// The opened tables.
    type Open<'t>;
    /// What the observer of commits is told about a batch once it is durable.
    type Told: Send;

    /// Opens the tables.
    fn open(transaction: &WriteTransaction) -> Result<Self::Open<'_>, StoreError>;

    /// Writes back the changes that commands made only in memory. `None` if the commands have changed nothing: then
    /// nothing is committed.
    fn close(tables: Self::Open<'_>) -> Result<Option<Self::Told>, StoreError>;
}

/// Batches of commands on tables of a [`Database`].
pub struct DatabaseBatches<T> {
    database: Arc<Database>,
    tables: PhantomData<fn() -> T>,
}

impl<T> DatabaseBatches<T> {
    /// Batches on `database`.
    pub fn new(database: Arc<Database>) -> Self {
        Self { database, tables: PhantomData }
    }
}

impl<T: Tables> Batches for DatabaseBatches<T> {
    type Open<'t> = T::Open<'t>;
    type Told = T::Told;

    fn write(&mut self, batch: &mut Batch<Self>) -> Result<Option<T::Told>, StoreError> {
        self.database.counts().note_commands(batch.len());
        loop {
            let written = self.database.write_batch(|transaction| {
                let mut tables = T::open(transaction)?;
                let run = batch.run(&mut tables)?;
                if run == BatchRun::Again {
                    return Ok(Err(run));
                }
                let told = T::close(tables)?.filter(|_| run == BatchRun::Done);
                Ok(told.ok_or(BatchRun::NothingWritten))
            })?;
            match written {
                Ok(told) => return Ok(Some(told)),
                // The loop ends: each round excludes at least one command that failed.
                Err(BatchRun::Again) => {}
                Err(_) => return Ok(None),
            }
        }
    }
}

impl<T> fmt::Debug for DatabaseBatches<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DatabaseBatches").field("database", &self.database).finish()
    }
}
