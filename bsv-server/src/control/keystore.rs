mod check;

use std::sync::Arc;

use bsv_store::{KeyEvent, KeystoreError};
use bytes::Bytes;
use hyper::StatusCode;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::handed::{HandedFiles, handed, or_write_first};
use super::managed::Services;
use crate::http::{Answer, Declared, Problem, Received, answer};

/// | method and path | body | answer |
/// | --- | --- | --- |
/// | `POST /control/keystore/check` | `{"revocationKeystore"?}` | `{"readable", "faults", "unchecked"}` |
/// | `POST /control/keystore/passphrase` | `{"passphrase", "revocationKeystore"?}` | `{}` |
///
/// `"revocationKeystore"` hands over a keystore of revocation keys. The answer first asks to write
/// its new `keystore.json`: see [`or_write_first`].
pub(super) const ROUTES: &[Declared<Route>] = &[
    ("/control/keystore/check", "POST", Route::Check),
    ("/control/keystore/passphrase", "POST", Route::Passphrase),
];

#[derive(Clone, Copy, Debug)]
pub(crate) enum Route {
    Check,
    Passphrase,
}

#[derive(Deserialize)]
struct NewPassphraseJson {
    passphrase: SecretString,
}

/// The name of all keys together in the audit log.
pub(super) const ALL_KEYS: &str = "keystore";

/// Proves that keys can be read, and changes their passphrase.
pub(super) async fn answer(
    managed: &Services,
    route: Route,
    request: Received<'_>,
) -> Result<Answer, Problem> {
    let handed = handed(request.body())?;
    match route {
        Route::Check => {
            Ok(answer::json(StatusCode::OK, &check::answer(managed, handed.as_ref()).await?))
        }
        Route::Passphrase => {
            let new = parse_passphrase(request.body())?;
            let changed = change_passphrase(managed, new, handed.clone()).await;
            let answered = changed.map(|()| answer::json(StatusCode::OK, &json!({})));
            or_write_first(handed.as_ref(), answered)
        }
    }
}

/// Changes the passphrase. The audit log records the change before it happens, so that it never
/// happens unrecorded.
///
/// The revocation keys come first, starting with those that are handed over. If the command is
/// interrupted after them, it can be repeated with the passphrase that the keystore still has.
async fn change_passphrase(
    managed: &Services,
    new: NewPassphraseJson,
    handed: Option<HandedFiles>,
) -> Result<(), Problem> {
    let NewPassphraseJson { passphrase } = new;
    if passphrase.expose_secret().is_empty() {
        return Err(KeystoreError::EmptyPassphrase.into());
    }
    let keystore = Arc::clone(managed.keystore()?);
    let revocation_keys = Arc::clone(&managed.revocation_keys);
    if let Some(handed) = handed {
        let (keys, passphrase) = (Arc::clone(&revocation_keys), passphrase.clone());
        let sealed = move || keys.change_passphrase_of(&handed, &passphrase);
        let sealed = tokio::task::spawn_blocking(sealed).await;
        sealed.expect("the task neither panics nor is cancelled")?;
    }
    managed.note(KeyEvent::PassphraseChanged, ALL_KEYS).await?;
    let changed = tokio::task::spawn_blocking(move || {
        revocation_keys.change_passphrase(&passphrase)?;
        let changed = keystore.change_passphrase(&passphrase);
        if matches!(changed, Ok(()) | Err(KeystoreError::NotDurable(_))) {
            revocation_keys.set_passphrase(passphrase);
        }
        Ok(changed)
    });
    let problem = match changed.await.expect("the task neither panics nor is cancelled") {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(error @ KeystoreError::NotDurable(_))) => return Err(error.into()),
        Ok(Err(error)) => error.into(),
        Err(problem) => problem,
    };
    managed.note(KeyEvent::Failed, KeyEvent::PassphraseChanged.name()).await?;
    Err(problem)
}

pub(super) fn parse_passphrase<T: DeserializeOwned>(body: &Bytes) -> Result<T, Problem> {
    // The error is not quoted: it may contain the passphrase.
    serde_json::from_slice(body).map_err(|_| {
        Problem::of_status(StatusCode::BAD_REQUEST, "the body must be {\"passphrase\": \"…\"}")
    })
}
