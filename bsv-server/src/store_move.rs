//! Moving a wallet between the file and a database, and accepting that a database has lost something.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::thread;

use bsv_invoicing::store::{CopyError, OpenWalletStoreError, WalletStoreError, copy_wallet};
use bsv_invoicing::{PostgresOptions, PostgresWalletStore, RedbWalletStore};
use bsv_store::{DatabaseOptions, DirLock, FileError, LockError, StoreError, write_atomically};
use thiserror::Error;

use crate::access::{TOKENS_FILE_NAME, file_of_rows};
use crate::config::{Config, WalletConfig};
use crate::opening::MEMORY_FILE_NAME;

/// Where a wallet is to lie.
#[derive(Clone, Debug)]
pub enum MoveTarget {
    /// In the file of the data directory.
    File,
    /// In a database.
    Database(Box<PostgresOptions>),
}

/// Why a wallet was not moved, or not copied. It is where it was.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MoveError {
    /// The settings have no wallet.
    #[error("the wallet is disabled")]
    Disabled,
    /// It is there already, or nowhere.
    #[error("{0}")]
    Unfitting(&'static str),
    /// A server or another command uses the directory.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// A store cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenWalletStoreError),
    /// Others use the wallet.
    #[error("the wallet cannot be had alone: {0}")]
    NotAlone(WalletStoreError),
    /// The rows cannot be copied.
    #[error(transparent)]
    Copy(#[from] CopyError),
    /// The database did not take that it holds the wallet no more.
    #[error("the wallet is in the file, and also in the database still: {0}")]
    NotRetired(WalletStoreError),
    /// A token in the database does not have the form that this program writes.
    #[error("a token in the database is damaged: {0}")]
    Tokens(String),
    /// The tokens cannot be written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file cannot be moved.
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
}

/// What the file of a wallet is called that was moved to a database.
const MOVED_FILE_NAME: &str = "wallet.redb.moved";
/// The directory in which a file is made.
const STAGE: &str = "wallet.moving";
/// The directory in which a copy is made.
const COPY_STAGE: &str = "wallet.copying";

/// Moves the wallet of the settings to a target, where nothing may be yet. Answers how many rows it has. The settings
/// are to name the target from then on.
pub async fn move_wallet(config: &Config, target: MoveTarget) -> Result<u64, MoveError> {
    let wallet = config.wallet.as_ref().ok_or(MoveError::Disabled)?;
    let lock = DirLock::acquire(&config.network_dir, "bsv-cli")?;
    match (&wallet.store, target) {
        (None, MoveTarget::Database(database)) => {
            to_database(config, wallet, lock, *database).await
        }
        (Some(database), MoveTarget::File) => to_file(config, wallet, database.clone()).await,
        (None, MoveTarget::File) => {
            Err(MoveError::Unfitting("the settings say that the wallet lies in the file already"))
        }
        (Some(_), MoveTarget::Database(_)) => Err(MoveError::Unfitting(
            "the settings say that the wallet lies in a database: move that with the tools of PostgreSQL",
        )),
    }
}

async fn to_database(
    config: &Config,
    wallet: &WalletConfig,
    lock: DirLock,
    database: PostgresOptions,
) -> Result<u64, MoveError> {
    let file = config.network_dir.join(RedbWalletStore::FILE_NAME);
    let moved = config.network_dir.join(MOVED_FILE_NAME);
    if !file.is_file() {
        return Err(MoveError::Unfitting("there is no wallet in a file of the data directory"));
    }
    if moved.exists() {
        return Err(MoveError::Unfitting("wallet.redb.moved of an earlier move is in the way"));
    }
    let from = RedbWalletStore::open(lock, options(wallet))?;
    let database = database.for_server(config.network_dir.join(MEMORY_FILE_NAME));
    let to = PostgresWalletStore::open(database)?;
    to.be_alone().await.map_err(MoveError::NotAlone)?;
    let count = copy_wallet(&from, &to).await?;
    rename(&file, &moved)?;
    Ok(count)
}

async fn to_file(
    config: &Config,
    wallet: &WalletConfig,
    database: PostgresOptions,
) -> Result<u64, MoveError> {
    let file = config.network_dir.join(RedbWalletStore::FILE_NAME);
    if file.exists() {
        return Err(MoveError::Unfitting("there is a wallet in a file of the data directory"));
    }
    let from =
        PostgresWalletStore::open(database.for_server(config.network_dir.join(MEMORY_FILE_NAME)))?;
    from.be_alone().await.map_err(MoveError::NotAlone)?;
    write_tokens(&from, &config.network_dir)?;
    let stage = config.network_dir.join(STAGE);
    let count = copy_to_file(&from, &stage, options(wallet)).await?;
    // Others may have taken this process for dead meanwhile, and have changed the wallet.
    from.be_alone().await.map_err(MoveError::NotAlone)?;
    let staged = stage.join(RedbWalletStore::FILE_NAME);
    rename(&staged, &file)?;
    if let Err(error) = from.retire().await {
        if !from.is_overtaken() {
            return Err(MoveError::NotRetired(error));
        }
        rename(&file, &staged)?;
        return Err(MoveError::NotAlone(error));
    }
    let _ = fs::remove_dir_all(&stage);
    Ok(count)
}

/// Writes the tokens of a database to the file in which they lie without one.
fn write_tokens(from: &PostgresWalletStore, dir: &Path) -> Result<(), MoveError> {
    // Whoever calls may be in a runtime, which must not be blocked by another one.
    let rows = thread::scope(|scope| scope.spawn(|| from.tokens()).join());
    let rows = rows.unwrap_or(Err(StoreError::Panicked)).map_err(WalletStoreError::from);
    let rows = rows.map_err(CopyError::from)?;
    if rows.is_empty() {
        return Ok(());
    }
    let text = file_of_rows(&rows).map_err(MoveError::Tokens)?;
    Ok(write_atomically(dir, TOKENS_FILE_NAME, &text)?)
}

/// A copy of a wallet that lies in a database, as it is at one moment: a file without a name.
pub(crate) async fn copy_as_file(
    from: &PostgresWalletStore,
    network_dir: &Path,
) -> Result<File, MoveError> {
    let stage = network_dir.join(COPY_STAGE);
    copy_to_file(from, &stage, DatabaseOptions::default()).await?;
    let path = stage.join(RedbWalletStore::FILE_NAME);
    let file = File::open(&path).map_err(io_error("open", &path))?;
    fs::remove_dir_all(&stage).map_err(io_error("remove", &stage))?;
    Ok(file)
}

/// Copies a wallet to the file of a new directory.
async fn copy_to_file(
    from: &PostgresWalletStore,
    stage: &Path,
    options: DatabaseOptions,
) -> Result<u64, MoveError> {
    // An earlier attempt may have been cut short.
    match fs::remove_dir_all(stage) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(io_error("remove", stage)(error));
        }
        _ => {}
    }
    let to = RedbWalletStore::open(DirLock::acquire(stage, "bsv-cli")?, options)?;
    Ok(copy_wallet(from, &to).await?)
}

/// Moves the wallet of a backup, which was restored in the file, to the database that the settings name, if they name
/// one. Answers whether they do.
pub async fn move_restored(config: &Config) -> Result<bool, MoveError> {
    let Some(wallet) = &config.wallet else { return Ok(false) };
    let Some(database) = wallet.store.clone() else { return Ok(false) };
    let lock = DirLock::acquire(&config.network_dir, "bsv-cli")?;
    to_database(config, wallet, lock, database).await?;
    // The backup still has the wallet.
    let moved = config.network_dir.join(MOVED_FILE_NAME);
    fs::remove_file(&moved).map_err(io_error("remove", &moved))?;
    Ok(true)
}

/// Forgets which step of the wallet this server has seen last, so that it takes a database as it is that has lost it.
/// Answers whether there was something to forget.
pub fn accept_loss(config: &Config) -> Result<bool, MoveError> {
    let _lock = DirLock::acquire(&config.network_dir, "bsv-cli")?;
    let path = config.network_dir.join(MEMORY_FILE_NAME);
    match fs::remove_file(&path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(io_error("remove", &path)(error)),
    }
}

fn options(wallet: &WalletConfig) -> DatabaseOptions {
    DatabaseOptions { cache_bytes: wallet.cache_bytes, ..DatabaseOptions::default() }
}

fn rename(from: &Path, to: &Path) -> Result<(), MoveError> {
    fs::rename(from, to).map_err(io_error("create", to))?;
    let dir = to.parent().unwrap_or(Path::new("."));
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(io_error("sync", dir))
}

fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> MoveError {
    let path = path.to_owned();
    move |source| MoveError::Io { action, path, source }
}
