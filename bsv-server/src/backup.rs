//! The contents of a backup, and how they are written: see `docs/adr/0017-backups.md`.

use std::any::Any;
use std::fs::File;
use std::io::{self, Cursor, Read, Write};
use std::path::Path;

use bsv_invoicing::{RedbWalletStore, Timestamp, Wallet};
use bsv_minerid::store::RedbIdentityStore;
use bsv_store::{
    ArchiveError, ArchiveReader, ArchiveWriter, JsonFormat, Keystore, KeystoreError, StoreError,
};
use bsv_tx::Network;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::access::{TOKENS_FILE_NAME, Tokens};
use crate::minerid::MinerIds;
use crate::store_move::{MoveError, copy_as_file};
use crate::wallet_store::database;

/// The beginning of a sealed backup. The length of this beginning precedes it in four bytes,
/// little-endian. The contents of the files follow.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Manifest {
    pub(crate) network: String,
    pub(crate) created_at: String,
    pub(crate) files: Vec<BackedUpFile>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct BackedUpFile {
    pub(crate) place: Dir,
    pub(crate) name: String,
    pub(crate) len: u64,
}

/// The directory of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Dir {
    /// The directory of the network's data.
    Data,
    /// The directory of the identities.
    MinerId,
    /// The directory of the keys.
    Keystore,
    /// The directory of the revocation keys, unless they are stored elsewhere.
    Revocation,
}

const FORMAT: JsonFormat = JsonFormat { name: "bsv-backup", migrations: &[] };
const MAX_MANIFEST_LEN: u32 = 64 << 20;

/// Why a backup could not be made.
#[derive(Debug, Error)]
pub(crate) enum BackupError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Keystore(#[from] KeystoreError),
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    #[error("cannot read {path}: {source}")]
    Read { path: String, source: io::Error },
    #[error("the wallet cannot be copied from its database: {0}")]
    Database(#[from] MoveError),
    #[error("the length of {0} has changed")]
    Changed(String),
}

/// The contents of a backup at one moment.
pub(crate) struct Contents {
    manifest: Manifest,
    sources: Vec<Box<dyn Read + Send>>,
}

impl Contents {
    /// Copies the stores first, and then the keys. No key is missing, because a key is durable
    /// before a store refers to it.
    pub(crate) async fn collect(
        network: Network,
        network_dir: &Path,
        tokens: &Tokens,
        wallet: Option<&Wallet>,
        ids: Option<&MinerIds>,
        keystore: &Keystore,
        revocation_dir: &Path,
    ) -> Result<Self, BackupError> {
        let manifest = Manifest {
            network: network.name().to_owned(),
            created_at: Timestamp::of_system().to_string(),
            files: Vec::new(),
        };
        let mut contents = Self { manifest, sources: Vec::new() };
        if let Some(wallet) = wallet {
            let file = copy_wallet(wallet, network_dir).await?;
            contents.add_file(Dir::Data, RedbWalletStore::FILE_NAME, file)?;
        }
        if let Some(ids) = ids {
            let file = ids.store().copy()?.into_file()?;
            contents.add_file(Dir::MinerId, RedbIdentityStore::FILE_NAME, file)?;
        }
        if !tokens.all().is_empty() {
            contents.add_bytes(Dir::Data, TOKENS_FILE_NAME, tokens.to_file());
        }
        for file in keystore.files()? {
            contents.add_bytes(Dir::Keystore, &file.name, file.contents);
        }
        if Keystore::is_in(revocation_dir) {
            for file in Keystore::files_in(revocation_dir)? {
                contents.add_bytes(Dir::Revocation, &file.name, file.contents);
            }
        }
        Ok(contents)
    }

    fn add_file(&mut self, place: Dir, name: &str, file: File) -> Result<(), BackupError> {
        let len = file.metadata().map(|metadata| metadata.len());
        let len = len.map_err(|source| BackupError::Read { path: name.to_owned(), source })?;
        self.manifest.files.push(BackedUpFile { place, name: name.to_owned(), len });
        self.sources.push(Box::new(file));
        Ok(())
    }

    fn add_bytes(&mut self, place: Dir, name: &str, bytes: impl AsRef<[u8]> + Send + 'static) {
        let len = bytes.as_ref().len() as u64;
        self.manifest.files.push(BackedUpFile { place, name: name.to_owned(), len });
        self.sources.push(Box::new(Cursor::new(bytes)));
    }

    /// Writes the sealed backup.
    pub(crate) fn write(
        self,
        out: impl Write,
        passphrase: &SecretString,
    ) -> Result<(), BackupError> {
        let mut archive = ArchiveWriter::new(out, passphrase)?;
        let Self { manifest, sources } = self;
        let text = FORMAT.write(&manifest);
        let len = u32::try_from(text.len()).ok().filter(|len| *len <= MAX_MANIFEST_LEN);
        let len = len.ok_or_else(|| BackupError::Changed("the list of files".to_owned()))?;
        archive.write_all(&len.to_le_bytes()).map_err(ArchiveError::Io)?;
        archive.write_all(&text).map_err(ArchiveError::Io)?;
        for (file, mut source) in manifest.files.iter().zip(sources) {
            let copied = io::copy(&mut source, &mut archive).map_err(ArchiveError::Io)?;
            if copied != file.len {
                return Err(BackupError::Changed(file.name.clone()));
            }
        }
        archive.finish()?;
        Ok(())
    }
}

impl Manifest {
    /// Reads the beginning of a backup, and checks that all names stay inside their directories.
    pub(crate) fn read<R: Read>(archive: &mut ArchiveReader<R>) -> Result<Self, String> {
        Self::read_as(&FORMAT, archive)
    }

    fn read_as<R: Read>(
        format: &JsonFormat,
        archive: &mut ArchiveReader<R>,
    ) -> Result<Self, String> {
        let mut len = [0; 4];
        archive.read_exact(&mut len).map_err(|error| error.to_string())?;
        let len = u32::from_le_bytes(len);
        if len > MAX_MANIFEST_LEN {
            return Err("its list of files is too long".to_owned());
        }
        let mut text = vec![0; len as usize];
        archive.read_exact(&mut text).map_err(|error| error.to_string())?;
        let manifest: Self = format
            .read(&text)
            .map_err(|error| format!("its list of files cannot be read: {error}"))?;
        match manifest.files.iter().find(|file| !file.is_known()) {
            Some(file) => Err(format!("it holds an unknown file: {:?}", file.name)),
            None => Ok(manifest),
        }
    }
}

impl BackedUpFile {
    fn is_known(&self) -> bool {
        let name = self.name.as_str();
        match self.place {
            Dir::Data => [RedbWalletStore::FILE_NAME, TOKENS_FILE_NAME].contains(&name),
            Dir::MinerId => name == RedbIdentityStore::FILE_NAME,
            Dir::Keystore | Dir::Revocation => Keystore::is_file_name(name),
        }
    }
}

/// A copy of the wallet as it is at one moment: a file without a name, of the form of the wallet's file.
async fn copy_wallet(wallet: &Wallet, network_dir: &Path) -> Result<File, BackupError> {
    if let Some(database) = database(wallet) {
        return Ok(copy_as_file(database, network_dir).await?);
    }
    let store: &dyn Any = wallet.store();
    let file: &RedbWalletStore =
        store.downcast_ref().ok_or_else(|| StoreError::damaged("it is no file"))?;
    Ok(file.copy().await?.into_file()?)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_backup_of_an_older_version_is_read_as_one_of_the_newest() {
        /// As if the files of version 1 had had no places.
        const NEXT: JsonFormat = JsonFormat {
            name: FORMAT.name,
            migrations: &[|manifest| {
                let files = manifest["files"].as_array_mut().into_iter().flatten();
                files.for_each(|file| file["place"] = json!("data"));
            }],
        };
        let passphrase = SecretString::from("correct horse");
        let read = |format: &JsonFormat, manifest: &Value| {
            let text = manifest.to_string();
            let mut archive = ArchiveWriter::new(Vec::new(), &passphrase).unwrap();
            archive.write_all(&(text.len() as u32).to_le_bytes()).unwrap();
            archive.write_all(text.as_bytes()).unwrap();
            let sealed = archive.finish().unwrap();
            Manifest::read_as(format, &mut ArchiveReader::open(&*sealed, &passphrase).unwrap())
        };
        let mut manifest = json!({
            "format": "bsv-backup", "version": 1, "network": "regtest",
            "createdAt": "2026-01-01T00:00:00Z", "files": [{"name": TOKENS_FILE_NAME, "len": 7}],
        });
        let migrated = read(&NEXT, &manifest).unwrap();
        assert_eq!(migrated.files[0].place, Dir::Data);
        assert!(read(&FORMAT, &manifest).unwrap_err().contains("missing field `place`"));
        manifest["version"] = json!(2);
        assert!(read(&FORMAT, &manifest).unwrap_err().contains("it has version 2"));
    }
}
