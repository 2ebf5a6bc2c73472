//! What a database file holds, and how it becomes the newest version of that.

use std::path::Path;

use redb::{TableDefinition, WriteTransaction};

use super::engine::{Engine, commit};
use crate::error::StoreError;

/// One step of a schema: makes or changes tables. It runs in the transaction that raises the
/// version.
pub type Migration = fn(&WriteTransaction) -> Result<(), StoreError>;

/// What a database file holds: a name, and the migrations that lead to each version in turn. The
/// newest version is their number; an empty file has version 0.
#[derive(Clone, Copy, Debug)]
pub struct Schema {
    /// Tells files of different services apart.
    pub name: &'static str,
    /// The first makes version 1 out of an empty file.
    pub migrations: &'static [Migration],
}

const SCHEMA_VERSIONS: TableDefinition<'_, &str, u64> = TableDefinition::new("schema_version");

/// Brings a file to the newest version of `schema`.
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

/// The version of the file, 0 if it is empty; `None` if it belongs to another schema.
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
