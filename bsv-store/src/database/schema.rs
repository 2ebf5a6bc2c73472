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
    let found = schema_version(engine, schema)?
        .ok_or_else(|| StoreError::OtherSchema { path: path.to_owned(), expected: schema.name })?;
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

/// The version of the file: 0 if the file is empty, `None` if it belongs to another schema.
fn schema_version(engine: &Engine, schema: &Schema) -> Result<Option<u64>, StoreError> {
    let transaction = engine.begin_read()?;
    if transaction.list_tables()?.next().is_none() {
        return Ok(Some(0));
    }
    match transaction.open_table(SCHEMA_VERSIONS) {
        Ok(versions) => Ok(versions.get(schema.name)?.map(|version| version.value())),
        Err(redb::TableError::TableDoesNotExist(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
