//! Keystores of revocation keys that the command line has, and hands over file by file: the service may not be able to
//! reach their directory.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use bsv_store::{HandedFiles, KeystoreFile};
use bytes::Bytes;
use hyper::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;
use zeroize::Zeroizing;

use super::managed::bad_request;
use crate::http::{Answer, Problem, answer};

/// The files of a keystore, as they are handed over.
pub(super) type Handed = Arc<HandedFiles>;

/// What a request hands over, besides what else it says.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HandingOver {
    revocation_keystore: Option<Box<RawValue>>,
}

/// A keystore: its directory, which messages name, and its files, hexadecimal.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct KeystoreJson {
    /// The directory.
    pub dir: PathBuf,
    /// Its files by their names, hexadecimal.
    pub files: BTreeMap<String, Zeroizing<String>>,
}

/// The code of an answer that names files to write before the same is asked for again.
pub const WRITE_FIRST: &str = "write-first";

/// The keystore that a request hands over, if its body is an object that has one.
pub(super) fn handed(body: &Bytes) -> Result<Option<Handed>, Problem> {
    let Ok(HandingOver { revocation_keystore: Some(keystore) }) = serde_json::from_slice(body)
    else {
        return Ok(None);
    };
    let keystore = serde_json::from_str(keystore.get());
    let KeystoreJson { dir, files } =
        keystore.map_err(|_| bad_request("revocationKeystore has to be {\"dir\", \"files\"}"))?;
    let files = files.into_iter().map(|(name, contents)| {
        let contents = hex::decode(&*contents).map(Zeroizing::new);
        contents.map(|contents| KeystoreFile { name, contents })
    });
    let files: Vec<_> = files
        .collect::<Result<_, _>>()
        .map_err(|_| bad_request("the files of revocationKeystore are hexadecimal"))?;
    let handed = HandedFiles::new(dir, files).map_err(|error| bad_request(error.to_string()))?;
    Ok(Some(Arc::new(handed)))
}

/// What becomes of a request: where files have to be written first, that is the answer.
///
/// It is `{"code": "write-first", "files"}` with the status 409: nothing was done, and the same is asked for again with
/// these files among those of the keystore.
pub(super) fn or_write_first(
    handed: Option<&Handed>,
    answered: Result<Answer, Problem>,
) -> Result<Answer, Problem> {
    let unwritten = handed.map(|handed| handed.unwritten()).unwrap_or_default();
    if unwritten.is_empty() || answered.is_ok() {
        return answered;
    }
    let files: BTreeMap<_, _> =
        unwritten.iter().map(|file| (&file.name, hex::encode(&file.contents))).collect();
    let detail = "files of the keystore have to be written first";
    let body = json!({ "code": WRITE_FIRST, "detail": detail, "files": files });
    Ok(answer::json(StatusCode::CONFLICT, &body))
}
