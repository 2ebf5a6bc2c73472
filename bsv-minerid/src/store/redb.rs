use std::path::Path;

use bsv_store::{
    AuditCheck, AuditEntry, Database, DatabaseCopy, DatabaseOptions, DirLock, KeyEvent, LockError,
    Migration, Schema, StoreError, append_to_audit_log, create_audit_log, read_audit_log,
    verify_audit_log,
};
use bsv_tx::{OutPoint, Transaction};
use redb::{ReadableTable, Table, TableDefinition, WriteTransaction};
use thiserror::Error;

use crate::alias::Alias;
use crate::operator_members::OperatorMembers;
use crate::store::key_events::{found_keys, key_events};
use crate::store::record_json::{decode, encode, protocol_added};
use crate::store::{
    IdentityRecord, IdentityStore, IdentityStoreError, KeyRecord, MinerInfoChange, VctxView,
};

/// Alias to record, as JSON.
const IDENTITIES: TableDefinition<'_, &str, &str> = TableDefinition::new("identities");

const MIGRATIONS: &[Migration] = &[create_tables, add_protocol, begin_audit_log];
const SCHEMA: Schema = Schema { name: "minerid", migrations: MIGRATIONS };

/// Identities are few and small.
const CACHE_BYTES: usize = 1 << 20;

fn create_tables(transaction: &WriteTransaction) -> Result<(), StoreError> {
    transaction.open_table(IDENTITIES)?;
    Ok(())
}

/// Version 2 tells generations of the protocol apart.
fn add_protocol(transaction: &WriteTransaction) -> Result<(), StoreError> {
    let mut table = transaction.open_table(IDENTITIES)?;
    let mut records = Vec::new();
    for entry in table.iter()? {
        let (alias, record) = entry?;
        records.push((alias.value().to_owned(), protocol_added(record.value())?));
    }
    for (alias, record) in records {
        table.insert(alias.as_str(), record.as_str())?;
    }
    Ok(())
}

/// Version 3 has an audit log, which begins with the keys that there are.
fn begin_audit_log(transaction: &WriteTransaction) -> Result<(), StoreError> {
    create_audit_log(transaction)?;
    let mut found = Vec::new();
    for (alias, record) in all(&transaction.open_table(IDENTITIES)?)? {
        found.extend(found_keys(&alias, &record));
    }
    append_to_audit_log(transaction, found.iter().map(|(event, key)| (*event, key.as_str())))
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
    /// Another process holds the directory, or it cannot be locked.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The file cannot be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl RedbIdentityStore {
    /// The file's name in its directory.
    pub const FILE_NAME: &'static str = "minerid.redb";

    /// Opens the store in `dir`; both are made where they do not exist. `program` is what others
    /// are told who find the directory locked.
    pub fn open(dir: &Path, program: &str) -> Result<Self, OpenStoreError> {
        let lock = DirLock::acquire(dir, program)?;
        let options = DatabaseOptions { cache_bytes: CACHE_BYTES, ..DatabaseOptions::default() };
        let database = Database::open(&dir.join(Self::FILE_NAME), &SCHEMA, options)?;
        Ok(Self { database, _lock: lock })
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

    /// Copies the file, and proves the copy.
    pub fn copy(&self) -> Result<DatabaseCopy, StoreError> {
        self.database.copy()
    }

    /// Applies `change` to one record and stores the result.
    fn update(
        &self,
        alias: &Alias,
        change: impl FnOnce(&mut IdentityRecord) -> Result<(), &'static str>,
    ) -> Result<IdentityRecord, IdentityStoreError> {
        self.write_with_events(|table| {
            let Some(before) = get(table, alias)? else {
                return Ok(Err(IdentityStoreError::Unknown(alias.clone())));
            };
            let mut record = before.clone();
            if let Err(reason) = change(&mut record) {
                return Ok(Err(IdentityStoreError::Conflict { alias: alias.clone(), reason }));
            }
            put(table, alias, &record)?;
            let events = key_events(alias, Some(&before), &record, KeyEvent::Made);
            Ok(Ok((record, events)))
        })
    }

    /// Runs a command that answers what happens to keys, too.
    fn write_with_events<T>(
        &self,
        command: impl FnOnce(
            &mut Table<'_, &'static str, &'static str>,
        ) -> Result<
            Result<(T, Vec<(KeyEvent, String)>), IdentityStoreError>,
            StoreError,
        >,
    ) -> Result<T, IdentityStoreError> {
        self.database.write(|transaction| {
            let done = command(&mut transaction.open_table(IDENTITIES)?)?;
            let (value, events) = match done {
                Ok(done) => done,
                Err(refusal) => return Ok(Err(refusal)),
            };
            let entries = events.iter().map(|(event, subject)| (*event, subject.as_str()));
            append_to_audit_log(transaction, entries)?;
            Ok(Ok(value))
        })?
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
    fn identities(&self) -> Result<Vec<(Alias, IdentityRecord)>, IdentityStoreError> {
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

    fn rotate(
        &self,
        alias: &Alias,
        from: u32,
        key: KeyRecord,
    ) -> Result<IdentityRecord, IdentityStoreError> {
        self.update(alias, |record| record.rotate(from, key))
    }

    fn set_operator(
        &self,
        alias: &Alias,
        operator: &OperatorMembers,
    ) -> Result<IdentityRecord, IdentityStoreError> {
        self.update(alias, |record| {
            record.operator = operator.clone();
            Ok(())
        })
    }

    fn set_blind_signing(
        &self,
        alias: &Alias,
        is_on: bool,
    ) -> Result<IdentityRecord, IdentityStoreError> {
        self.update(alias, |record| {
            record.blind_signing = is_on;
            Ok(())
        })
    }

    fn await_vctx_funding(&self, alias: &Alias) -> Result<IdentityRecord, IdentityStoreError> {
        self.update(alias, IdentityRecord::await_vctx_funding)
    }

    fn begin_vctx(
        &self,
        alias: &Alias,
        transaction: &Transaction,
    ) -> Result<IdentityRecord, IdentityStoreError> {
        self.update(alias, |record| record.begin_vctx(transaction))
    }

    fn abandon_vctx(&self, alias: &Alias) -> Result<IdentityRecord, IdentityStoreError> {
        self.update(alias, IdentityRecord::abandon_vctx)
    }

    fn record_vctx(
        &self,
        alias: &Alias,
        outpoint: OutPoint,
    ) -> Result<IdentityRecord, IdentityStoreError> {
        self.update(alias, |record| record.record_vctx(outpoint))
    }

    fn revoke_vctx(
        &self,
        alias: &Alias,
        spending: &Transaction,
    ) -> Result<IdentityRecord, IdentityStoreError> {
        self.update(alias, |record| record.revoke_vctx(spending))
    }

    fn change_miner_info(
        &self,
        alias: &Alias,
        change: &MinerInfoChange,
    ) -> Result<IdentityRecord, IdentityStoreError> {
        self.update(alias, |record| record.change(change))
    }

    fn note_vctx_views(
        &self,
        views: &[(Alias, OutPoint, VctxView)],
    ) -> Result<(), IdentityStoreError> {
        self.write(|table| {
            for (alias, outpoint, view) in views {
                if let Some(mut record) = get(table, alias)? {
                    record.note_vctx_view(*outpoint, *view);
                    put(table, alias, &record)?;
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

    fn audit_log(&self, after: u64, limit: usize) -> Result<Vec<AuditEntry>, IdentityStoreError> {
        Ok(self.database.read(|transaction| read_audit_log(transaction, after, limit))?)
    }

    fn verify_audit_log(&self) -> Result<AuditCheck, IdentityStoreError> {
        Ok(self.database.copy()?.read(|transaction| verify_audit_log(transaction))?)
    }

    fn note_handed_out(&self, keys: &[(Alias, u32)]) -> Result<(), IdentityStoreError> {
        self.write(|table| {
            for (alias, number) in keys {
                if let Some(mut record) = get(table, alias)?
                    && record.current_key().number == *number
                {
                    record.handed_out = true;
                    put(table, alias, &record)?;
                }
            }
            Ok(Ok(()))
        })
    }
}

fn all(
    table: &impl ReadableTable<&'static str, &'static str>,
) -> Result<Vec<(Alias, IdentityRecord)>, StoreError> {
    let mut identities = Vec::new();
    for entry in table.iter()? {
        let (alias, record) = entry?;
        let alias: Alias = alias.value().parse().map_err(StoreError::damaged)?;
        identities.push((alias, decode(record.value())?));
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
