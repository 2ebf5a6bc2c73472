//! Restoring a backup, or a wallet from its 24 words, into an empty data directory.
//!
//! Everything is prepared in directories beside the final ones, opened there as a server would, and
//! then renamed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bsv_invoicing::recovery::{Recovery, Walk};
use bsv_invoicing::store::{WalletStoreError, holds_no_wallet};
use bsv_invoicing::{PostgresWalletStore, WalletSeed};
use bsv_network::{NetworkSource, NodeRpc};
use bsv_store::{
    ArchiveError, ArchiveReader, DirLock, FileError, KeyEvent, Keystore, KeystoreError, LockError,
    create_private_dir,
};
use secrecy::SecretString;
use thiserror::Error;

use crate::backup::{Dir, Manifest};
use crate::config::{Config, KeystoreConfig};
use crate::instance::Instance;
use crate::opening::{Create, OpenError, open_wallet};

/// Why nothing was restored. A failure leaves nothing behind.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// The directory is not empty.
    #[error("{} is not empty, and restore overwrites nothing", .0.display())]
    NotEmpty(PathBuf),
    /// A server or another command uses the directory.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The backup cannot be opened.
    #[error("{}: {source}", path.display())]
    Archive {
        /// The backup.
        path: PathBuf,
        /// Why not.
        #[source]
        source: ArchiveError,
    },
    /// The contents of the backup do not match the settings, or this version.
    #[error("{}: {reason}", path.display())]
    Contents {
        /// The backup.
        path: PathBuf,
        /// What is wrong with the backup.
        reason: String,
    },
    /// A file cannot be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The action that failed.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
    /// A directory cannot be made.
    #[error(transparent)]
    File(#[from] FileError),
    /// The keys cannot be opened or written.
    #[error("{0}; the keys have the passphrase of the time of the backup")]
    Keystore(#[from] KeystoreError),
    /// The restored directory cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The wallet cannot be recovered.
    #[error(transparent)]
    Wallet(#[from] bsv_invoicing::Error),
    /// The settings disable the wallet.
    #[error("the wallet is disabled and cannot be restored")]
    WalletDisabled,
    /// The database that the settings name has a wallet.
    #[error("the database that the settings name holds a wallet already")]
    DatabaseHoldsWallet,
    /// The database that the settings name cannot be read.
    #[error(transparent)]
    Database(#[from] WalletStoreError),
    /// The audit log could not be written.
    #[error("cannot write the audit log: {0}")]
    Audit(String),
}

/// The result of restoring a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// When the backup was made.
    pub created_at: String,
    /// The number of files in the backup.
    pub files: usize,
    /// The number of keys among them.
    pub keys: usize,
}

/// The parts of a wallet that its words restored.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WordsRestored {
    /// The keys, and the coins that the chain shows.
    Coins(Recovery),
    /// Only the keys: there is no node to search the chain with.
    Keys,
    /// Only the keys: the wallet itself is in the configured database.
    KeysOfDatabase,
}

/// Restores a backup, which has its own passphrase, into the configured directories. The wallet is
/// then in its file, and [can be moved](crate::move_restored) to the configured database, which
/// must hold no wallet.
pub async fn restore_backup(
    config: &Config,
    path: &Path,
    passphrase: &SecretString,
) -> Result<Restored, RestoreError> {
    let mut stage = Stage::prepare(config)?;
    if database_holds_wallet(config).await? {
        return Err(RestoreError::DatabaseHoldsWallet);
    }
    // A backup holds the file of a wallet.
    if let Some(wallet) = &mut stage.config.wallet {
        wallet.store = None;
    }
    let of_backup = |source| RestoreError::Archive { path: path.to_owned(), source };
    let contents = |reason| RestoreError::Contents { path: path.to_owned(), reason };
    let file = File::open(path).map_err(io_error("open", path))?;
    let reader = io::BufReader::with_capacity(1 << 20, file);
    let mut archive = ArchiveReader::open(reader, passphrase).map_err(of_backup)?;
    let manifest = Manifest::read(&mut archive).map_err(contents)?;
    if manifest.network != config.network.name() {
        let (of, set) = (&manifest.network, config.network.name());
        return Err(contents(format!("it is of the network {of}, but the settings name {set}")));
    }
    for file in &manifest.files {
        let dir = stage.dir_of(file.place).ok_or_else(|| {
            contents("it holds identities, but the miner identity service is disabled".to_owned())
        })?;
        create_private_dir(&dir)?;
        extract(&mut archive, &dir.join(&file.name), file.len).map_err(|error| match error {
            RestoreError::Io { source, .. } if source.kind() == ErrorKind::InvalidData => {
                contents(source.to_string())
            }
            error => error,
        })?;
    }
    match archive.read(&mut [0]) {
        Ok(0) => {}
        Ok(_) => return Err(contents("it has more data after its last file".to_owned())),
        Err(error) => return Err(contents(error.to_string())),
    }
    let keys = check_keys(&stage.config)?;
    let instance = Instance::open(stage.config.clone(), "bsv-cli", Create::All).await?;
    let origin = format!("backup of {}", manifest.created_at);
    let noted = instance.control.managed().note(KeyEvent::Imported, &origin).await;
    noted.map_err(|problem| RestoreError::Audit(problem.detail().to_owned()))?;
    instance.control.managed().begin_account().await?;
    stage.put_in_place()?;
    Ok(Restored { created_at: manifest.created_at, files: manifest.files.len(), keys })
}

/// Restores a wallet from its words. With a node, searches the chain for its coins as `walk` says.
/// `progress` receives the height that was read, and the last one. If the configured database
/// already holds the wallet, restores only its keys.
pub async fn restore_words(
    config: &Config,
    seed: &WalletSeed,
    walk: Walk,
    progress: impl FnMut(u32, u32),
) -> Result<WordsRestored, RestoreError> {
    let stage = Stage::prepare(&Config { minerid: None, ..config.clone() })?;
    let is_in_database = database_holds_wallet(config).await?;
    let config = &stage.config;
    let wallet = config.wallet.as_ref().ok_or(RestoreError::WalletDisabled)?;
    let keys = &config.keystore;
    let passphrase = keys.stretched_passphrase()?;
    let keystore = Keystore::open(&keys.dir, passphrase.as_ref(), keys.plain_keys, "bsv-cli")?;
    seed.save(&keystore)?;
    let lock = Arc::new(DirLock::acquire(&config.network_dir, "bsv-cli")?);
    let node = config.node.clone().map(NodeRpc::new).map(NetworkSource::node);
    let keystore = Arc::new(keystore);
    let wallet = open_wallet(config, wallet, |_| node, lock, keystore, KeyEvent::Imported).await?;
    let restored = if is_in_database {
        WordsRestored::KeysOfDatabase
    } else if wallet.has_source() {
        WordsRestored::Coins(wallet.recover(walk, progress).await?)
    } else {
        wallet.skip_keys(walk.lookahead).await?;
        WordsRestored::Keys
    };
    stage.put_in_place()?;
    Ok(restored)
}

/// Whether the database that the settings name, if they name one, holds a wallet.
async fn database_holds_wallet(config: &Config) -> Result<bool, RestoreError> {
    let database = config.wallet.as_ref().and_then(|wallet| wallet.store.clone());
    let Some(database) = database else { return Ok(false) };
    let store = PostgresWalletStore::open(database).map_err(OpenError::from)?;
    Ok(!holds_no_wallet(&store).await?)
}

/// Opens every key. Answers their number.
fn check_keys(config: &Config) -> Result<usize, RestoreError> {
    let keys = &config.keystore;
    let revocation_dir = Some(keys.revocation_dir()).filter(|dir| Keystore::is_in(dir));
    let mut count = 0;
    for dir in [keys.dir.clone()].into_iter().chain(revocation_dir) {
        let keys = KeystoreConfig { dir, ..keys.clone() };
        let passphrase = keys.stretched_passphrase()?;
        let keystore = Keystore::open(&keys.dir, passphrase.as_ref(), keys.plain_keys, "bsv-cli")?;
        let check = keystore.check()?;
        if let Some(fault) = check.faults.into_iter().next() {
            return Err(fault.into());
        }
        count += check.readable.len();
    }
    Ok(count)
}

/// Writes the next `len` bytes of a backup to a file.
fn extract(archive: &mut impl Read, path: &Path, len: u64) -> Result<(), RestoreError> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let mut file = options.open(path).map_err(io_error("create", path))?;
    let copied = io::copy(&mut archive.by_ref().take(len), &mut file);
    let copied = copied.map_err(io_error("write", path))?;
    if copied != len {
        let short = io::Error::new(ErrorKind::InvalidData, "it ends inside its last file");
        return Err(io_error("write", path)(short));
    }
    file.flush().and_then(|()| file.sync_all()).map_err(io_error("write", path))
}

/// Directories that are prepared beside their final places.
struct Stage {
    /// The settings, with the prepared directories.
    config: Config,
    /// The renames: from the prepared directory to the final one. The data directory comes last.
    moves: Vec<(PathBuf, PathBuf)>,
}

impl Stage {
    fn prepare(config: &Config) -> Result<Self, RestoreError> {
        let mut staged = config.clone();
        staged.network_dir = beside(&config.network_dir);
        let mut moves = Vec::new();
        let mut stage_dir = |dir: &Path| match dir.strip_prefix(&config.network_dir) {
            Ok(below) => staged.network_dir.join(below),
            Err(_) => {
                moves.push((beside(dir), dir.to_owned()));
                beside(dir)
            }
        };
        staged.keystore.dir = stage_dir(&config.keystore.dir);
        if let (Some(staged), Some(minerid)) = (&mut staged.minerid, &config.minerid) {
            staged.data_dir = stage_dir(&minerid.data_dir);
        }
        moves.push((staged.network_dir.clone(), config.network_dir.clone()));
        for (_, target) in &moves {
            check_empty(target)?;
        }
        for (stage, _) in &moves {
            // Removes what an interrupted attempt has left, unless the attempt is still running.
            drop(DirLock::acquire(stage, "bsv-cli")?);
            fs::remove_dir_all(stage).map_err(io_error("remove", stage))?;
            create_private_dir(stage)?;
        }
        Ok(Self { config: staged, moves })
    }

    fn dir_of(&self, place: Dir) -> Option<PathBuf> {
        match place {
            Dir::Data => Some(self.config.network_dir.clone()),
            Dir::Keystore => Some(self.config.keystore.dir.clone()),
            Dir::Revocation => Some(self.config.keystore.revocation_dir()),
            Dir::MinerId => self.config.minerid.as_ref().map(|minerid| minerid.data_dir.clone()),
        }
    }

    /// Renames the prepared directories. The caller holds the locks of the final ones.
    fn put_in_place(mut self) -> Result<(), RestoreError> {
        for (stage, target) in std::mem::take(&mut self.moves) {
            // The next step fails if somebody has created something there meanwhile.
            let _ = fs::remove_file(target.join(DirLock::FILE_NAME));
            fs::rename(&stage, &target).map_err(io_error("create", &target))?;
            let parent = target.parent().unwrap_or(Path::new("/"));
            let synced = File::open(parent).and_then(|parent| parent.sync_all());
            synced.map_err(io_error("sync", parent))?;
        }
        Ok(())
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        for (stage, _) in &self.moves {
            // Best effort: the next attempt removes the rest.
            let _ = fs::remove_dir_all(stage);
        }
    }
}

fn beside(dir: &Path) -> PathBuf {
    let mut name = dir.file_name().unwrap_or_default().to_owned();
    name.push(".restoring");
    dir.with_file_name(name)
}

/// Checks that a directory is empty, apart from the lock of a program that has ended.
fn check_empty(dir: &Path) -> Result<(), RestoreError> {
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(io_error("list", dir))?,
    };
    let mut has_lock = false;
    for entry in entries {
        let entry = entry.map_err(io_error("list", dir))?;
        if entry.file_name() != DirLock::FILE_NAME {
            return Err(RestoreError::NotEmpty(dir.to_owned()));
        }
        has_lock = true;
    }
    if has_lock {
        drop(DirLock::acquire(dir, "bsv-cli")?);
    }
    Ok(())
}

fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> RestoreError {
    let path = path.to_owned();
    move |source| RestoreError::Io { action, path, source }
}
