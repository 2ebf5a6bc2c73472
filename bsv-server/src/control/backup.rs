use std::io::{self, Write};
use std::sync::Arc;

use bsv_store::{KeyEvent, Keystore};
use bytes::Bytes;
use hyper::{Method, StatusCode};
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::mpsc;

use super::keystore::{ALL_KEYS, parse_passphrase};
use super::managed::Services;
use crate::backup::{BackupError, Contents};
use crate::http::{Answer, Problem, Received, answer};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PassphraseJson {
    passphrase: SecretString,
}

/// The length of the parts in which a backup is sent, in bytes.
const PART_LEN: usize = 256 << 10;

/// | method and path | body | answer |
/// | --- | --- | --- |
/// | `GET /control/backup` | | `{"lacksRevocationKeysOf"}`, aliases |
/// | `POST /control/backup` | `{"passphrase"}` | a sealed backup |
pub(super) async fn answer(managed: &Services, request: Received<'_>) -> Result<Answer, Problem> {
    if request.method() == Method::GET {
        let lacking = json!({ "lacksRevocationKeysOf": lacks_revocation_keys_of(managed) });
        return Ok(answer::json(StatusCode::OK, &lacking));
    }
    send(managed, request.body()).await
}

/// The identities whose revocation key is stored outside the directory that a backup covers.
fn lacks_revocation_keys_of(managed: &Services) -> Vec<String> {
    let dir = managed.revocation_keys.dir();
    let names = managed.ids().into_iter().flat_map(|ids| ids.revocation_key_names());
    let lacking = names.filter(|(_, names)| !names.iter().all(|name| Keystore::has(dir, name)));
    lacking.map(|(alias, _)| alias.to_string()).collect()
}

/// Starts to send a backup, once its contents are collected.
async fn send(managed: &Services, body: &Bytes) -> Result<Answer, Problem> {
    let PassphraseJson { passphrase } = parse_passphrase(body)?;
    // If an enabled service is missing, the backup would look complete without being so.
    managed.check_complete()?;
    let keystore = managed.keystore()?;
    let place = Arc::clone(&managed.backing_up)
        .try_lock_owned()
        .map_err(|_| Problem::of_status(StatusCode::CONFLICT, "a backup is already being made"))?;
    managed.note(KeyEvent::BackedUp, ALL_KEYS).await?;
    let contents = Contents::collect(
        managed.network,
        &managed.network_dir,
        &managed.tokens,
        managed.wallet().ok().map(AsRef::as_ref),
        managed.ids().ok().map(AsRef::as_ref),
        keystore,
        managed.revocation_keys.dir(),
    )
    .await;
    let contents = match contents {
        Ok(contents) => contents,
        Err(error) => {
            managed.note(KeyEvent::Failed, KeyEvent::BackedUp.name()).await?;
            return Err(backup_problem(&error));
        }
    };
    let (parts, body) = mpsc::channel(4);
    tokio::task::spawn_blocking(move || {
        let _place = place;
        match contents.write(io::BufWriter::with_capacity(PART_LEN, Parts(&parts)), &passphrase) {
            // Sending fails if the reader is gone.
            Ok(()) => drop(parts.blocking_send(None)),
            Err(error) => tracing::error!("a backup was cut off: {error}"),
        }
    });
    Ok(answer::bytes_stream(body))
}

/// A writer that sends what is written to it.
struct Parts<'a>(&'a mpsc::Sender<Option<Bytes>>);

impl Write for Parts<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let sent = self.0.blocking_send(Some(Bytes::copy_from_slice(bytes)));
        sent.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn backup_problem(error: &BackupError) -> Problem {
    tracing::error!("a backup cannot be made: {error}");
    Problem::of_status(StatusCode::SERVICE_UNAVAILABLE, error.to_string())
}
