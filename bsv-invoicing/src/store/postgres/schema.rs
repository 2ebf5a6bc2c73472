//! The schema of a wallet in the database, and how it becomes the newest version of that.

use super::connection::Connection;
use super::error::{Failure, Unfit};
use super::options::PostgresOptions;
use super::statements::{Parameter, StatementKey};
use super::step::{Incarnation, Seen, expect_known};
use crate::ledger::figures::Figures;
use crate::ledger::rows::{Damaged, Row as _, Table};

/// The tables beside those of rows, in version 1.
const OWN_TABLES: &str = include_str!("schema/1.sql");
/// The name in `meta`. It tells a wallet's schema from that of another service.
const NAME: &str = "bsv-wallet";
/// The name in schemas that builds before the first release made, in forms that nothing reads.
const UNRELEASED_NAME: &str = "wallet";

/// Answers whether the role may use the schema, if there is one.
const FIND_SCHEMA: StatementKey = StatementKey::Other(
    "SELECT has_schema_privilege(nspname, 'USAGE') FROM pg_catalog.pg_namespace WHERE nspname = $1::text",
);
const FIND_TABLE: StatementKey = StatementKey::Other(
    "SELECT 1 FROM pg_catalog.pg_class t JOIN pg_catalog.pg_namespace s ON s.oid = t.relnamespace \
     WHERE s.nspname = $1::text AND t.relname = 'meta'",
);
const READ_META: StatementKey = StatementKey::Other("SELECT name, version, incarnation FROM @meta");

/// Brings the schema to the newest version, and makes it where there is none.
pub(super) async fn migrate(
    connection: &Connection,
    options: &PostgresOptions,
) -> Result<Incarnation, Failure> {
    connection.prepare(&[FIND_SCHEMA, FIND_TABLE]).await?;
    let schema = || vec![Box::new(options.schema.as_str()) as Parameter<'_>];
    let mut make_schema = String::new();
    match connection.run(FIND_SCHEMA, schema()).await?.first() {
        None => make_schema = format!("CREATE SCHEMA \"{}\";", options.schema),
        Some(row) if !row.try_get::<_, bool>(0)? => {
            return Err(Unfit::Forbidden { schema: options.schema.clone() }.into());
        }
        Some(_) => {}
    }
    if connection.run(FIND_TABLE, schema()).await?.is_empty() {
        create(connection, &make_schema).await?;
    }
    let (name, version, incarnation) = read_meta(connection).await?;
    if name != NAME {
        let schema = options.schema.clone();
        return Err(match &*name {
            UNRELEASED_NAME => Unfit::Unreleased { schema },
            _ => Unfit::OtherSchema { schema, expected: NAME },
        }
        .into());
    }
    expect_known(version, options.newest())?;
    if version < options.newest() {
        raise(connection, options).await?;
    }
    Ok(incarnation)
}

/// Makes the schema in one transaction. Fails if another process makes it at the same time; then it exists.
async fn create(connection: &Connection, make_schema: &str) -> Result<(), Failure> {
    let mut incarnation = [0; 16];
    getrandom::fill(&mut incarnation).map_err(|error| Failure::of(&error))?;
    let incarnation = hex::encode(incarnation);
    let figures = hex::encode(Figures::default().encode());
    let tables: String = Table::ALL.iter().copied().map(make_table).collect();
    connection
        .execute_all(&format!(
            "BEGIN; {make_schema} {OWN_TABLES} {tables} INSERT INTO @meta (name, version, incarnation) \
             VALUES ('{NAME}', 1, decode('{incarnation}', 'hex')); \
             INSERT INTO @step SELECT 0, decode('{incarnation}', 'hex'), 0, 0, 0, 0, \
             decode(repeat('00', 32), 'hex'), decode('{figures}', 'hex'); COMMIT"
        ))
        .await
}

/// The statements that make the table of a kind of rows.
fn make_table(table: Table) -> String {
    if table == Table::AllFigures {
        return String::new();
    }
    let name = table.name();
    let (storage, more) = match table {
        // Each process raises its `beat` as long as it is alive.
        Table::Processes => ("", ", beat bigint NOT NULL DEFAULT 0"),
        Table::RawTransactions | Table::Ancestors => (" STORAGE EXTERNAL", ""),
        _ => ("", ""),
    };
    // Room for rows that change often lets them change without a change of the index.
    let room = match table {
        Table::Processes | Table::Claims | Table::Webhooks => " WITH (fillfactor = 50)",
        Table::Invoices
        | Table::Transactions
        | Table::Receipts
        | Table::ReceivedFor
        | Table::Outgoing
        | Table::Deliveries => " WITH (fillfactor = 80)",
        _ => "",
    };
    let (number, meaning) = (table as u8, table.meaning().replace('\'', "''"));
    format!(
        "CREATE TABLE @{name} (key bytea PRIMARY KEY, row bytea{storage} NOT NULL{more}){room}; \
         COMMENT ON TABLE @{name} IS '{number}: {meaning}'; "
    )
}

/// Runs the missing migrations under the lock of the door. Servers of an older version read the version with each step,
/// and refuse to go on.
async fn raise(connection: &Connection, options: &PostgresOptions) -> Result<(), Failure> {
    connection.execute_all("BEGIN; SELECT 1 FROM @door FOR UPDATE").await?;
    let (_, version, _) = read_meta(connection).await?;
    // A server of a newer version may have raised it meanwhile.
    expect_known(version, options.newest())?;
    let done = usize::try_from(version).unwrap_or_default().saturating_sub(1);
    for migration in options.migrations.iter().skip(done) {
        connection.execute_all(migration).await?;
    }
    let set = format!("UPDATE @meta SET version = {}; COMMIT", options.newest());
    connection.execute_all(&set).await
}

async fn read_meta(connection: &Connection) -> Result<(String, i32, Incarnation), Failure> {
    connection.prepare(&[READ_META]).await?;
    let rows = connection.run(READ_META, Vec::new()).await?;
    let row = rows.first().ok_or_else(nameless)?;
    Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?))
}

const READ_STORE: StatementKey = StatementKey::Other(
    "SELECT name, incarnation, (SELECT writer FROM @step WHERE number = $1) FROM @meta",
);

/// Fails if this is not the store that was opened before, or if it does not know a step that was seen there.
pub(super) async fn expect_same(
    connection: &Connection,
    options: &PostgresOptions,
    expected: &Incarnation,
    seen: &Seen,
) -> Result<(), Failure> {
    connection.prepare(&[READ_STORE]).await?;
    let number: Parameter<'_> = Box::new(seen.number);
    let rows = connection.run(READ_STORE, vec![number]).await?;
    let row = rows.first().ok_or_else(nameless)?;
    let (name, found): (&str, Incarnation) = (row.try_get(0)?, row.try_get(1)?);
    let schema = || options.schema.clone();
    if name != NAME {
        return Err(Unfit::OtherSchema { schema: schema(), expected: NAME }.into());
    }
    if found != *expected {
        return Err(Unfit::OtherWallet { schema: schema() }.into());
    }
    match row.try_get::<_, Option<&[u8]>>(2)? {
        Some(writer) if writer == seen.writer => Ok(()),
        _ => Err(Unfit::GoneBack(seen.number).into()),
    }
}

fn nameless() -> Damaged {
    Damaged("the database does not say what it holds".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_table_is_made_in_the_schema_of_the_wallet() {
        let made = OWN_TABLES.matches("CREATE TABLE ").count();
        assert_eq!(OWN_TABLES.matches("CREATE TABLE @").count(), made);
    }
}
