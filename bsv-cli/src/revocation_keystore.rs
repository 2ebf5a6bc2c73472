//! A keystore of revocation keys in a directory that an argument names. The service may be unable
//! to reach this directory. So the command line hands over the sealed files, and writes the files
//! that the service makes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bsv_server::wire::{FilesToWrite, HandedKeystore, WRITE_FIRST};
use bsv_store::{DirLock, Keystore, write_atomically};
use clap::Args;
use serde::Serialize;
use serde_json::json;
use zeroize::Zeroizing;

use crate::context::Context;
use crate::error::CliError;
use crate::service::{Answer, Service};

#[derive(Debug, Default, Args)]
pub(crate) struct RevocationKeystore {
    /// The keystore of revocation keys, which may be on a disk that is connected only for this
    /// command [default: revocation in the keystore]
    #[arg(long = "revocation-keystore", value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// The name that other processes are told while the keystore is in use.
const PROGRAM: &str = "bsv-cli";
/// More files than any request makes.
const MAX_ROUNDS: usize = 1000;

impl RevocationKeystore {
    /// `POST path` with a JSON object as its body, and with the keystore, if one is named.
    pub(crate) async fn post(
        &self,
        context: &Context,
        service: &mut Service,
        path: impl Into<String>,
        body: impl Serialize,
    ) -> Result<Answer, CliError> {
        post(context, self.dir.as_deref(), service, path, body).await
    }
}

/// `POST path` with a JSON object as its body, and with the keystore in a directory, if one is
/// named.
pub(crate) async fn post(
    context: &Context,
    dir: Option<&Path>,
    service: &mut Service,
    path: impl Into<String>,
    body: impl Serialize,
) -> Result<Answer, CliError> {
    let (path, mut body) = (path.into(), json!(body));
    let default = context.config()?.keystore.revocation_dir();
    let dir = dir.map(absolute).filter(|dir| *dir != default);
    let Some(dir) = dir else { return service.post(path, body).await };
    let mut lock = None;
    if dir.is_dir() {
        lock = Some(DirLock::acquire(&dir, PROGRAM)?);
    }
    for _ in 0..MAX_ROUNDS {
        body["revocationKeystore"] = json!(read(&dir)?);
        let refusal = match service.post(&path, &body).await {
            Err(CliError::Refused(refusal)) if refusal.code == WRITE_FIRST => refusal,
            answered => return answered,
        };
        if lock.is_none() {
            lock = Some(DirLock::acquire(&dir, PROGRAM)?);
        }
        write(&dir, &refusal.problem)?;
    }
    Err(CliError::CheckFailed("the service asks for too many files".to_owned()))
}

fn absolute(dir: &Path) -> PathBuf {
    std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned())
}

/// The files of the keystore. There may be none.
fn read(dir: &Path) -> Result<HandedKeystore, CliError> {
    let found = if Keystore::is_in(dir) { Keystore::files_in(dir)? } else { Vec::new() };
    let files =
        found.into_iter().map(|file| (file.name, Zeroizing::new(hex::encode(&file.contents))));
    Ok(HandedKeystore { dir: dir.to_owned(), files: files.collect::<BTreeMap<_, _>>() })
}

/// Writes the files that an answer names durably.
fn write(dir: &Path, asked: &str) -> Result<(), CliError> {
    let nonsense = || CliError::CheckFailed("the service asks for invalid files".to_owned());
    let FilesToWrite { files, .. } = serde_json::from_str(asked).map_err(|_| nonsense())?;
    for (name, contents) in files {
        let contents = hex::decode(contents).map_err(|_| nonsense())?;
        if !Keystore::is_file_name(&name) {
            return Err(nonsense());
        }
        write_atomically(dir, &name, &contents)?;
    }
    Ok(())
}
