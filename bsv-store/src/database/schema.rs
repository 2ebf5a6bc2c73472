//! What a database file holds, and how it is migrated to the newest version.

use std::path::Path;

use redb::{TableDefinition, WriteTransaction};

use super::engine::{Engine, commit};
use crate::error::StoreError;

/// One step of a schema, which creates or changes tables in the transaction that raises the
/// version.
pub type Migration = fn(&WriteTransaction) -> Result<(), StoreError>;

/// What a database file holds: a name, and the migrations to each version in turn. The newest
/// version is the number of migrations. An empty file has version 0.
#[derive(Clone, Copy, Debug)]
pub struct Schema {
    /// The name distinguishes the files of different services.
    pub name: &'static str,
    /// The migrations. The first makes version 1 from an empty file.
    pub migrations: &'static [Migration],
}

const SCHEMA_VERSIONS: TableDefinition<'_, &str, u64> = TableDefinition::new("schema_version");

/// Migrates a file to the newest version of `schema`.
pub(super) fn migrate(engine: &Engine, path: &Path, schema: &Schema) -> Result<(), StoreError> {
    let known = schema.migrations.len() as u64;
    let found = schema_version(engine, path, schema)?;
    if found > known {
        return Err(StoreError::NewerSchema { path: path.to_owned(), found, known });
    }
    if found == known {
        return Ok(());
    }
    if found > 0 {
        let file = path.display();
        tracing::info!("{file} is brought from schema {found} to schema {known}");
    }
    let transaction = engine.begin_write()?;
    for migration in &schema.migrations[found as usize..] {
        migration(&transaction)?;
    }
    transaction.open_table(SCHEMA_VERSIONS)?.insert(schema.name, known)?;
    commit(transaction)
}

/// The version of the file: 0 if the file is empty. Builds before the first release named their
/// schemas without the prefix `bsv-`.
fn schema_version(engine: &Engine, path: &Path, schema: &Schema) -> Result<u64, StoreError> {
    let transaction = engine.begin_read()?;
    if transaction.list_tables()?.next().is_none() {
        return Ok(0);
    }
    let path = path.to_owned();
    let versions = match transaction.open_table(SCHEMA_VERSIONS) {
        Ok(versions) => versions,
        Err(redb::TableError::TableDoesNotExist(_)) => {
            return Err(StoreError::OtherSchema { path, expected: schema.name });
        }
        Err(error) => return Err(error.into()),
    };
    if let Some(version) = versions.get(schema.name)? {
        return Ok(version.value());
    }
    let unreleased = schema.name.strip_prefix("bsv-").map(|name| versions.get(name));
    match unreleased.transpose()?.flatten() {
        Some(_) => Err(StoreError::Unreleased { path }),
        None => Err(StoreError::OtherSchema { path, expected: schema.name }),
    }
}
