use std::path::Path;

use bsv_store::{Database, DatabaseOptions, DirLock, LockError, Schema, StoreError};
use bsv_tx::{OutPoint, Transaction};
use redb::{ReadableTable, Table, TableDefinition, WriteTransaction};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::alias::Alias;
use crate::json_object::MinerContact;
use crate::store::{IdentityRecord, IdentityStore, IdentityStoreError, KeyRecord, Vctx, VctxView};

/// Alias to record, as JSON.
const IDENTITIES: TableDefinition<'_, &str, &str> = TableDefinition::new("identities");

const SCHEMA: Schema = Schema { name: "minerid", migrations: &[create_tables] };

/// Identities are few and small.
const CACHE_BYTES: usize = 1 << 20;

fn create_tables(transaction: &WriteTransaction) -> Result<(), StoreError> {
    transaction.open_table(IDENTITIES)?;
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
    /// Another process holds the directory, or it cannot be locked.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The file cannot be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl RedbIdentityStore {
    /// Opens the store in `dir`; both are made where they do not exist. `program` is what others
    /// are told who find the directory locked.
    pub fn open(dir: &Path, program: &str) -> Result<Self, OpenStoreError> {
        let lock = DirLock::acquire(dir, program)?;
        let options = DatabaseOptions { cache_bytes: CACHE_BYTES, ..DatabaseOptions::default() };
        let database = Database::open(&dir.join("minerid.redb"), &SCHEMA, options)?;
        Ok(Self { database, _lock: lock })
    }

    /// Applies `change` to one record and stores the result.
    fn update(
        &self,
        alias: &Alias,
        change: impl FnOnce(&mut IdentityRecord) -> Result<(), &'static str>,
    ) -> Result<IdentityRecord, IdentityStoreError> {
        self.write(|table| {
            let Some(mut record) = get(table, alias)? else {
                return Ok(Err(IdentityStoreError::Unknown(alias.clone())));
            };
            if let Err(reason) = change(&mut record) {
                return Ok(Err(IdentityStoreError::Conflict { alias: alias.clone(), reason }));
            }
            put(table, alias, &record)?;
            Ok(Ok(record))
        })
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
        Ok(self.database.read(|transaction| {
            let table = transaction.open_table(IDENTITIES)?;
            let mut identities = Vec::new();
            for entry in table.iter()? {
                let (alias, record) = entry?;
                let alias: Alias = alias.value().parse().map_err(StoreError::damaged)?;
                identities.push((alias, decode(record.value())?));
            }
            Ok(identities)
        })?)
    }

    fn identity(&self, alias: &Alias) -> Result<IdentityRecord, IdentityStoreError> {
        let record =
            self.database.read(|transaction| get(&transaction.open_table(IDENTITIES)?, alias))?;
        record.ok_or_else(|| IdentityStoreError::Unknown(alias.clone()))
    }

    fn create(&self, alias: &Alias, key: KeyRecord) -> Result<IdentityRecord, IdentityStoreError> {
        let record = IdentityRecord::new(key);
        self.import(&[(alias.clone(), record.clone())])?;
        Ok(record)
    }

    fn import(&self, identities: &[(Alias, IdentityRecord)]) -> Result<(), IdentityStoreError> {
        self.write(|table| {
            for (alias, record) in identities {
                if get(table, alias)?.is_some() {
                    return Ok(Err(IdentityStoreError::Exists(alias.clone())));
                }
                put(table, alias, record)?;
            }
            Ok(Ok(()))
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

    fn set_contact(
        &self,
        alias: &Alias,
        contact: &MinerContact,
    ) -> Result<IdentityRecord, IdentityStoreError> {
        self.update(alias, |record| {
            record.contact = contact.clone();
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

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RecordJson {
    keys: Vec<KeyJson>,
    handed_out: bool,
    contact: String,
    vctx: VctxJson,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct KeyJson {
    number: u32,
    public_key: String,
}

#[derive(Serialize, Deserialize)]
#[serde(
    tag = "state",
    rename_all = "camelCase",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
enum VctxJson {
    None {},
    AwaitingFunds {},
    Broadcasting { transaction: String },
    Recorded { outpoint: String, last_seen: Option<u32>, gone_since: Option<u32>, is_spent: bool },
}

fn encode(record: &IdentityRecord) -> String {
    let json = RecordJson {
        keys: record
            .keys
            .iter()
            .map(|key| KeyJson { number: key.number, public_key: key.public_key.to_string() })
            .collect(),
        handed_out: record.handed_out,
        contact: record.contact.to_json(),
        vctx: match &record.vctx {
            Vctx::None => VctxJson::None {},
            Vctx::AwaitingFunds => VctxJson::AwaitingFunds {},
            Vctx::Broadcasting(transaction) => {
                VctxJson::Broadcasting { transaction: transaction.to_hex() }
            }
            Vctx::Recorded(outpoint, VctxView { last_seen, gone_since, is_spent }) => {
                VctxJson::Recorded {
                    outpoint: outpoint.to_string(),
                    last_seen: *last_seen,
                    gone_since: *gone_since,
                    is_spent: *is_spent,
                }
            }
        },
    };
    serde_json::to_string(&json).expect("numbers and strings always serialise")
}

fn decode(text: &str) -> Result<IdentityRecord, StoreError> {
    let json: RecordJson = serde_json::from_str(text).map_err(StoreError::damaged)?;
    let key = |key: &KeyJson| {
        let public_key = key.public_key.parse().map_err(StoreError::damaged)?;
        Ok(KeyRecord { number: key.number, public_key })
    };
    let keys: Vec<_> = json.keys.iter().map(key).collect::<Result<_, StoreError>>()?;
    if keys.is_empty() {
        return Err(StoreError::damaged("an identity without a key"));
    }
    Ok(IdentityRecord {
        keys,
        handed_out: json.handed_out,
        contact: MinerContact::from_json(&json.contact).map_err(StoreError::damaged)?,
        vctx: match json.vctx {
            VctxJson::None {} => Vctx::None,
            VctxJson::AwaitingFunds {} => Vctx::AwaitingFunds,
            VctxJson::Broadcasting { transaction } => Vctx::Broadcasting(
                Transaction::from_hex(&transaction).map_err(StoreError::damaged)?,
            ),
            VctxJson::Recorded { outpoint, last_seen, gone_since, is_spent } => Vctx::Recorded(
                outpoint.parse().map_err(StoreError::damaged)?,
                VctxView { last_seen, gone_since, is_spent },
            ),
        },
    })
}
