use std::path::Path;

use bsv_store::{
    AuditCheck, AuditEntry, AuditPage, Database, DatabaseCopy, DatabaseOptions, DirLock, FileError,
    KeyEvent, LockError, Schema, StoreCounts, StoreError, append_to_audit_log, create_audit_log,
    read_audit_log, verify_audit_log,
};
use redb::{ReadableTable, Table, TableDefinition, WriteTransaction};
use thiserror::Error;

use crate::alias::Alias;
use crate::state::{Change, IdentityRecord};
use crate::store::key_events::key_events;
use crate::store::record_json::{decode, encode};
use crate::store::{FoundIdentity, IdentityStore, IdentityStoreError};

/// From alias to record, as JSON.
const IDENTITIES: TableDefinition<'_, &str, &str> = TableDefinition::new("identities");

const SCHEMA: Schema = Schema { name: "bsv-minerid", migrations: &[create_tables] };

/// The cache is small because identities are few and small.
const CACHE_BYTES: usize = 1 << 20;

fn create_tables(transaction: &WriteTransaction) -> Result<(), StoreError> {
    transaction.open_table(IDENTITIES)?;
    create_audit_log(transaction)
}

/// The identity store in a redb file, `minerid.redb` in a directory that it locks.
#[derive(Debug)]
pub struct RedbIdentityStore {
    database: Database,
    _lock: DirLock,
}

/// Why an identity store could not be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenStoreError {
    /// Another process uses the directory, or the directory cannot be locked.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The file cannot be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl RedbIdentityStore {
    /// The name of the file in its directory.
    pub const FILE_NAME: &'static str = "minerid.redb";

    /// Opens the store in `dir`. Creates the directory and the file if they are missing. `program`
    /// is the name that other processes are told while the directory is locked.
    pub fn open(dir: &Path, program: &str) -> Result<Self, OpenStoreError> {
        let lock = DirLock::acquire(dir, program)?;
        let options = DatabaseOptions { cache_bytes: CACHE_BYTES, ..DatabaseOptions::default() };
        let database = Database::open(&dir.join(Self::FILE_NAME), &SCHEMA, options)?;
        Ok(Self { database, _lock: lock })
    }

    /// Compares a long file with its checksums: see [`Database::check`].
    pub fn check(&self) -> Result<Option<u64>, StoreError> {
        self.database.check()
    }

    /// The damage of the file, if any was found.
    pub fn damage(&self) -> Option<&StoreError> {
        self.database.damage()
    }

    /// The length of the file, in bytes.
    pub fn file_len(&self) -> Result<u64, FileError> {
        self.database.file_len()
    }

    /// Counts of what the store has done since it was opened.
    pub fn counts(&self) -> &StoreCounts {
        self.database.counts()
    }

    /// Copies the file, and checks the copy.
    pub fn copy(&self) -> Result<DatabaseCopy, StoreError> {
        self.database.copy()
    }

    /// Runs a command that also answers the events of keys.
    fn write_with_events<T>(
        &self,
        command: impl FnOnce(
            &mut Table<'_, &'static str, &'static str>,
        ) -> Result<
            Result<(T, Vec<(KeyEvent, String)>), IdentityStoreError>,
            StoreError,
        >,
    ) -> Result<T, IdentityStoreError> {
        let done = self.database.write(|transaction| {
            let done = command(&mut transaction.open_table(IDENTITIES)?)?;
            if let Ok((_, events)) = &done {
                let entries = events.iter().map(|(event, subject)| (*event, subject.as_str()));
                append_to_audit_log(transaction, entries)?;
            }
            Ok(done)
        })?;
        let (value, events) = done?;
        for (event, subject) in events {
            tracing::info!(target: "bsv_audit", subject, "{}", event.name());
        }
        Ok(value)
    }

    fn write<T>(
        &self,
        command: impl FnOnce(
            &mut Table<'_, &'static str, &'static str>,
        ) -> Result<Result<T, IdentityStoreError>, StoreError>,
    ) -> Result<T, IdentityStoreError> {
        self.database.write(|transaction| command(&mut transaction.open_table(IDENTITIES)?))?
    }
}

impl IdentityStore for RedbIdentityStore {
    fn identities(&self) -> Result<Vec<FoundIdentity>, IdentityStoreError> {
        Ok(self.database.read(|transaction| all(&transaction.open_table(IDENTITIES)?))?)
    }

    fn identity(&self, alias: &Alias) -> Result<IdentityRecord, IdentityStoreError> {
        let record =
            self.database.read(|transaction| get(&transaction.open_table(IDENTITIES)?, alias))?;
        record.ok_or_else(|| IdentityStoreError::Unknown(alias.clone()))
    }

    fn create(
        &self,
        identities: &[(Alias, IdentityRecord)],
        origin: KeyEvent,
    ) -> Result<(), IdentityStoreError> {
        self.write_with_events(|table| {
            let mut events = Vec::new();
            for (alias, record) in identities {
                if get(table, alias)?.is_some() {
                    return Ok(Err(IdentityStoreError::Exists(alias.clone())));
                }
                put(table, alias, record)?;
                events.extend(key_events(alias, None, record, origin));
            }
            Ok(Ok(((), events)))
        })
    }

    fn change(&self, alias: &Alias, change: &Change) -> Result<IdentityRecord, IdentityStoreError> {
        self.write_with_events(|table| {
            let Some(before) = get(table, alias)? else {
                return Ok(Err(IdentityStoreError::Unknown(alias.clone())));
            };
            Ok(apply(table, alias, &before, change)?.map(|record| {
                let events = key_events(alias, Some(&before), &record, KeyEvent::Made);
                (record, events)
            }))
        })
    }

    fn change_all(&self, changes: &[(Alias, Change)]) -> Result<(), IdentityStoreError> {
        self.write(|table| {
            for (alias, change) in changes {
                let Some(before) = get(table, alias)? else { continue };
                if let Err(refusal) = apply(table, alias, &before, change)? {
                    return Ok(Err(refusal));
                }
            }
            Ok(Ok(()))
        })
    }

    fn note_key_event(&self, event: KeyEvent, subject: &str) -> Result<(), IdentityStoreError> {
        self.database.write(|transaction| {
            append_to_audit_log(transaction, [(event, subject)])?;
            Ok(Ok(()))
        })?
    }

    fn audit_log(
        &self,
        page: AuditPage,
        limit: usize,
    ) -> Result<Vec<AuditEntry>, IdentityStoreError> {
        Ok(self.database.read(|transaction| read_audit_log(transaction, page, limit))?)
    }

    fn verify_audit_log(&self) -> Result<AuditCheck, IdentityStoreError> {
        Ok(self.database.copy()?.read(|transaction| verify_audit_log(transaction))?)
    }
}

/// Applies a change to a record, and stores the result.
fn apply(
    table: &mut Table<'_, &'static str, &'static str>,
    alias: &Alias,
    before: &IdentityRecord,
    change: &Change,
) -> Result<Result<IdentityRecord, IdentityStoreError>, StoreError> {
    let mut record = before.clone();
    if let Err(reason) = record.apply(change) {
        return Ok(Err(IdentityStoreError::Conflict { alias: alias.clone(), reason }));
    }
    put(table, alias, &record)?;
    Ok(Ok(record))
}

fn all(
    table: &impl ReadableTable<&'static str, &'static str>,
) -> Result<Vec<FoundIdentity>, StoreError> {
    let mut identities = Vec::new();
    for entry in table.iter()? {
        let (alias, record) = entry?;
        let alias: Alias = alias.value().parse().map_err(StoreError::damaged)?;
        identities.push((alias, decode(record.value())));
    }
    Ok(identities)
}

fn get(
    table: &impl ReadableTable<&'static str, &'static str>,
    alias: &Alias,
) -> Result<Option<IdentityRecord>, StoreError> {
    table.get(alias.as_str())?.map(|record| decode(record.value())).transpose()
}

fn put(
    table: &mut Table<'_, &'static str, &'static str>,
    alias: &Alias,
    record: &IdentityRecord,
) -> Result<(), StoreError> {
    table.insert(alias.as_str(), encode(record).as_str())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A later version spells a member of all records in another way.
    fn rename_a_member(transaction: &WriteTransaction) -> Result<(), StoreError> {
        let mut table = transaction.open_table(IDENTITIES)?;
        let all = |table: &Table<'_, &str, &str>| -> Result<Vec<(String, String)>, StoreError> {
            let row =
                |entry: Result<(redb::AccessGuard<'_, &str>, redb::AccessGuard<'_, &str>), _>| {
                    let (alias, record) = entry?;
                    Ok((alias.value().to_owned(), record.value().to_owned()))
                };
            table.iter()?.map(row).collect()
        };
        for (alias, record) in all(&table)? {
            table.insert(&*alias, &*record.replace("before", "after"))?;
        }
        Ok(())
    }

    #[test]
    fn a_later_version_migrates_the_file_and_older_ones_refuse_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(RedbIdentityStore::FILE_NAME);
        let open = || RedbIdentityStore::open(dir.path(), "test");
        drop(open().unwrap());
        let write = |change: &dyn Fn(&WriteTransaction)| {
            let file = redb::Database::open(&path).unwrap();
            let transaction = file.begin_write().unwrap();
            change(&transaction);
            transaction.commit().unwrap();
        };
        write(&|transaction| {
            let mut table = transaction.open_table(IDENTITIES).unwrap();
            table.insert("pool", r#"{"before":1}"#).unwrap();
        });
        let schema = Schema { migrations: &[create_tables, rename_a_member], ..SCHEMA };
        for _ in 0..2 {
            let later = Database::open(&path, &schema, DatabaseOptions::default()).unwrap();
            let record = later.read(|transaction| {
                let table = transaction.open_table(IDENTITIES)?;
                Ok(table.get("pool")?.map(|record| record.value().to_owned()))
            });
            assert_eq!(record.unwrap().as_deref(), Some(r#"{"after":1}"#));
        }
        let refused = open().unwrap_err();
        let is_newer = matches!(
            refused,
            OpenStoreError::Store(StoreError::NewerSchema { found: 2, known: 1, .. })
        );
        assert!(is_newer, "{refused}");
        write(&|transaction| {
            let versions: TableDefinition<'_, &str, u64> = TableDefinition::new("schema_version");
            let mut versions = transaction.open_table(versions).unwrap();
            versions.remove("bsv-minerid").unwrap();
            versions.insert("minerid", 9).unwrap();
        });
        let refused = open().unwrap_err();
        let is_unreleased = matches!(refused, OpenStoreError::Store(StoreError::Unreleased { .. }));
        assert!(is_unreleased, "{refused}");
    }
}
