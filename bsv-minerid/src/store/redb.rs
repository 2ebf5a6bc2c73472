use std::path::Path;

use bsv_store::{
    AuditCheck, AuditEntry, AuditPage, Database, DatabaseCopy, DatabaseOptions, DirLock, FileError,
    KeyEvent, LockError, Migration, Schema, StoreCounts, StoreError, append_to_audit_log,
    create_audit_log, read_audit_log, verify_audit_log,
};
use redb::{ReadableTable, Table, TableDefinition, WriteTransaction};
use thiserror::Error;

use crate::alias::Alias;
use crate::state::{Change, IdentityRecord};
use crate::store::key_events::{found_keys, key_events};
use crate::store::record_json::{decode, encode, protocol_added, sightings_moved};
use crate::store::{FoundIdentity, IdentityStore, IdentityStoreError};

/// From alias to record, as JSON.
const IDENTITIES: TableDefinition<'_, &str, &str> = TableDefinition::new("identities");

const MIGRATIONS: &[Migration] = &[
    create_tables,
    add_protocol,
    begin_audit_log,
    tell_who_can_know_identities,
    tell_where_something_was_seen,
    tell_deleted,
    tell_sightings_of_both_generations,
    tell_left_vctx,
    tell_where_the_identity_was_seen,
];
const SCHEMA: Schema = Schema { name: "minerid", migrations: MIGRATIONS };

/// The cache is small because identities are few and small.
const CACHE_BYTES: usize = 1 << 20;

fn create_tables(transaction: &WriteTransaction) -> Result<(), StoreError> {
    transaction.open_table(IDENTITIES)?;
    Ok(())
}

/// Version 2 distinguishes the generations of the protocol.
fn add_protocol(transaction: &WriteTransaction) -> Result<(), StoreError> {
    rewrite(transaction, protocol_added)
}

fn rewrite(
    transaction: &WriteTransaction,
    rewritten: impl Fn(&str) -> Result<String, StoreError>,
) -> Result<(), StoreError> {
    let mut table = transaction.open_table(IDENTITIES)?;
    let mut records = Vec::new();
    for entry in table.iter()? {
        let (alias, record) = entry?;
        records.push((alias.value().to_owned(), rewritten(record.value())?));
    }
    for (alias, record) in records {
        table.insert(alias.as_str(), record.as_str())?;
    }
    Ok(())
}

/// Version 3 adds an audit log, which begins with the existing keys.
fn begin_audit_log(transaction: &WriteTransaction) -> Result<(), StoreError> {
    create_audit_log(transaction)?;
    let mut found = Vec::new();
    for entry in transaction.open_table(IDENTITIES)?.iter()? {
        let (alias, record) = entry?;
        let alias: Alias = alias.value().parse().map_err(StoreError::damaged)?;
        // Later versions change nothing about keys.
        found.extend(found_keys(&alias, &decode(&sightings_moved(record.value())?)?));
    }
    append_to_audit_log(transaction, found.iter().map(|(event, key)| (*event, key.as_str())))
}

/// Version 4 records whether others can know an identity. Older records lack this information.
fn tell_who_can_know_identities(_transaction: &WriteTransaction) -> Result<(), StoreError> {
    Ok(())
}

/// Version 5 records in which blocks announcements were seen. Older records lack this information.
fn tell_where_something_was_seen(_transaction: &WriteTransaction) -> Result<(), StoreError> {
    Ok(())
}

/// Version 6 records which identities are deleted. None is deleted yet.
fn tell_deleted(_transaction: &WriteTransaction) -> Result<(), StoreError> {
    Ok(())
}

/// Version 7 records what blocks have shown in both generations.
fn tell_sightings_of_both_generations(transaction: &WriteTransaction) -> Result<(), StoreError> {
    rewrite(transaction, sightings_moved)
}

/// Version 8 records what remains of the VCTx of upgraded identities. Older records lack this
/// information.
fn tell_left_vctx(_transaction: &WriteTransaction) -> Result<(), StoreError> {
    Ok(())
}

/// Version 9 records in which block an identity was first seen. Older records lack this
/// information.
fn tell_where_the_identity_was_seen(_transaction: &WriteTransaction) -> Result<(), StoreError> {
    Ok(())
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
