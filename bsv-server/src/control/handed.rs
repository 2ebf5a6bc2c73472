//! Keystores of revocation keys whose files the command line hands over, because the service may be
//! unable to reach their directory.

use std::sync::Arc;

use bsv_store::KeystoreFile;
use bytes::Bytes;
use hyper::StatusCode;
use serde::Deserialize;
use serde_json::value::RawValue;
use zeroize::Zeroizing;

use crate::http::{Answer, Problem, answer};
use crate::wire::{FilesToWrite, HandedKeystore, WRITE_FIRST};

/// The files of a keystore that were handed over.
pub(super) type HandedFiles = Arc<bsv_store::HandedFiles>;

/// The part of a request that hands over a keystore.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HandingOver {
    revocation_keystore: Option<Box<RawValue>>,
}

/// The keystore that a request hands over, if its body is an object with one.
pub(super) fn handed(body: &Bytes) -> Result<Option<HandedFiles>, Problem> {
    let Ok(HandingOver { revocation_keystore: Some(keystore) }) = serde_json::from_slice(body)
    else {
        return Ok(None);
    };
    let keystore = serde_json::from_str(keystore.get());
    let HandedKeystore { dir, files } = keystore
        .map_err(|_| Problem::bad_request("revocationKeystore has to be {\"dir\", \"files\"}"))?;
    let files = files.into_iter().map(|(name, contents)| {
        let contents = hex::decode(&*contents).map(Zeroizing::new);
        contents.map(|contents| KeystoreFile { name, contents })
    });
    let files: Vec<_> = files
        .collect::<Result<_, _>>()
        .map_err(|_| Problem::bad_request("the files of revocationKeystore are hexadecimal"))?;
    let handed = bsv_store::HandedFiles::new(dir, files)
        .map_err(|error| Problem::bad_request(error.to_string()))?;
    Ok(Some(Arc::new(handed)))
}

/// The outcome of a request. If files have to be written first, the answer asks for that.
///
/// Such an answer is `{"code": "write-first", "files"}` with the status 409. Nothing was done. The
/// request has to be repeated with these files among those of the keystore.
pub(super) fn or_write_first(
    handed: Option<&HandedFiles>,
    answered: Result<Answer, Problem>,
) -> Result<Answer, Problem> {
    let unwritten = handed.map(|handed| handed.unwritten()).unwrap_or_default();
    if unwritten.is_empty() || answered.is_ok() {
        return answered;
    }
    let body = FilesToWrite {
        code: WRITE_FIRST.to_owned(),
        detail: "files of the keystore must be written first".to_owned(),
        files: unwritten.iter().map(|it| (it.name.clone(), hex::encode(&it.contents))).collect(),
    };
    Ok(answer::json(StatusCode::CONFLICT, &body))
}
