//! Access tokens, which all servers of a wallet accept. The server defines what a token holds.

use bsv_store::StoreError;

use super::connection::Connection;
use super::error::Failure;
use super::known::Wants;
use super::shared::Shared;
use super::statements::{Parameter, StatementKey};
use super::transaction::{begin, in_time};

const READ: StatementKey = StatementKey::Other("SELECT id, body FROM @token ORDER BY id");
const READ_DIGEST: StatementKey = StatementKey::Other(
    "SELECT coalesce(md5(string_agg(id || encode(body, 'hex'), ',' ORDER BY id)), '') FROM @token",
);
const ADD: StatementKey = StatementKey::Other(
    "INSERT INTO @token (id, body) SELECT * FROM unnest($1::text[], $2::bytea[]) \
     ON CONFLICT (id) DO NOTHING RETURNING id",
);
const REMOVE: StatementKey = StatementKey::Other("DELETE FROM @token WHERE id = $1 RETURNING id");

/// A token by its id, as it is stored.
pub(super) type TokenRow = (String, Vec<u8>);

/// All tokens.
pub(super) fn read(shared: &Shared) -> Result<Vec<TokenRow>, StoreError> {
    shared.with_connection(async |connection| {
        let read = async {
            connection.prepare(&[READ]).await?;
            Ok(connection.run(READ, Vec::new()).await?)
        };
        let rows = in_time(read).await?;
        let tokens = rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?)));
        tokens.collect()
    })
}

/// Takes note of whether the tokens have changed.
pub(super) async fn note_changes(connection: &Connection, shared: &Shared) -> Result<(), Failure> {
    connection.prepare(&[READ_DIGEST]).await?;
    let rows = connection.run(READ_DIGEST, Vec::new()).await?;
    let digest: String = rows.first().map(|row| row.try_get(0)).transpose()?.unwrap_or_default();
    shared.token_digest.send_if_modified(|last| std::mem::replace(last, digest.clone()) != digest);
    Ok(())
}

/// Adds tokens, unless one of their ids is taken. Answers whether it did.
pub(super) fn add(shared: &Shared, tokens: &[TokenRow]) -> Result<bool, StoreError> {
    let ids: Vec<_> = tokens.iter().map(|(id, _)| id.as_str()).collect();
    let bodies: Vec<_> = tokens.iter().map(|(_, body)| body.as_slice()).collect();
    change(shared, ADD, tokens.len(), vec![Box::new(ids), Box::new(bodies)])
}

/// Removes a token. Answers whether there was one.
pub(super) fn remove(shared: &Shared, id: &str) -> Result<bool, StoreError> {
    change(shared, REMOVE, 1, vec![Box::new(id)])
}

/// Runs a statement for a server that has the wallet open. Answers whether it has changed this number of rows. It
/// changes none rather than fewer.
fn change(
    shared: &Shared,
    statement: StatementKey,
    count: usize,
    given: Vec<Parameter<'_>>,
) -> Result<bool, StoreError> {
    shared.with_connection(async move |connection| {
        let mut wants = Wants::default();
        shared.want_presence(&mut wants);
        let (_, known) = begin(connection, 0, &wants, Wants::default).await?;
        shared.read_presence(&known)?;
        let change = async {
            connection.prepare(&[statement]).await?;
            let is_done = connection.run(statement, given).await?.len() == count;
            let end = if is_done { "COMMIT" } else { "ROLLBACK" };
            connection.control(end).await?;
            Ok(is_done)
        };
        in_time(change).await
    })
}
