//! Opening a data directory: creation of missing parts, locks, and the stores.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use bsv_invoicing::store::{OpenWalletStoreError, Store};
use bsv_invoicing::webhooks::OwnListeners;
use bsv_invoicing::{PostgresWalletStore, RedbWalletStore, Wallet, WalletSeed, WalletSettings};
use bsv_minerid::store::{OpenStoreError, RedbIdentityStore};
use bsv_network::headers::{HeaderFileError, HeaderFollower};
use bsv_network::{NetworkSource, NodeRpc};
use bsv_store::{
    DatabaseOptions, DirLock, KeyEvent, Keystore, KeystoreError, LockError, StoreError,
    StretchedPassphrase,
};
use thiserror::Error;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use crate::access::{TokenFileError, Tokens};
use crate::api::Api;
use crate::config::{Config, MinerIdConfig, StaleCopy, WalletConfig};
use crate::headers::open_headers;
use crate::minerid::MinerIds;
use crate::services::source;
use crate::wallet_store::database;

/// The parts that are created if they are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Create {
    /// Nothing. Missing parts are not opened.
    Nothing,
    /// The keystore and the store of identities.
    Identities,
    /// Everything that the settings enable, including a wallet with its seed.
    All,
}

/// Why a data directory could not be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The requested part does not exist.
    #[error("there is {what} in {}", dir.display())]
    Nothing {
        /// The missing part, such as "no wallet".
        what: &'static str,
        /// The directory that was searched.
        dir: PathBuf,
    },
    /// Another process holds the data directory.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The keystore cannot be opened.
    #[error("{error}{hint}", error = .0, hint = passphrase_hint(.0))]
    Keystore(#[from] KeystoreError),
    /// The identity store cannot be opened.
    #[error(transparent)]
    Store(#[from] OpenStoreError),
    /// The wallet's store cannot be opened.
    #[error(transparent)]
    WalletStore(#[from] OpenWalletStoreError),
    /// The wallet cannot be opened.
    #[error("the wallet cannot be opened: {0}")]
    Wallet(#[from] bsv_invoicing::Error),
    /// The tokens cannot be read.
    #[error(transparent)]
    Tokens(#[from] TokenFileError),
    /// The block headers cannot be read.
    #[error(transparent)]
    Headers(#[from] HeaderFileError),
    /// The identities cannot be loaded.
    #[error(transparent)]
    MinerId(#[from] bsv_minerid::Error),
}

/// The settings that an error about the passphrase is about.
fn passphrase_hint(error: &KeystoreError) -> &'static str {
    match error {
        KeystoreError::PlainRefused(_) | KeystoreError::PassphraseMissing(_) => {
            ": set keystorePassphraseFile or BSV_KEYSTORE_PASSPHRASE"
        }
        _ => "",
    }
}

impl OpenError {
    /// Whether the database of the wallet is not available.
    pub fn is_store_away(&self) -> bool {
        match self {
            Self::WalletStore(OpenWalletStoreError::Store(error))
            | Self::Wallet(bsv_invoicing::Error::Store(error))
            | Self::Tokens(TokenFileError::Database(error)) => {
                error.of_server().is_some_and(|error| error.is_away)
            }
            _ => false,
        }
    }

    /// Whether another server holds the data directory.
    pub(crate) fn is_held_by_server(&self) -> bool {
        let (Self::Lock(lock)
        | Self::Keystore(KeystoreError::Lock(lock))
        | Self::Store(OpenStoreError::Lock(lock))) = self
        else {
            return false;
        };
        matches!(lock, LockError::Held { holder, .. } if holder.starts_with(SERVER))
    }
}

/// Which of the enabled services must open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// All of them.
    All,
    /// At least one: a damaged store of one service must not stop the other.
    Any,
}

/// Why services could not be opened while another one works.
#[derive(Clone, Debug, Default)]
pub(crate) struct Failures(Vec<(Api, String)>);

impl Failures {
    /// Takes the result of opening a service: the service, or `None` if it failed and another
    /// service works without it.
    fn sort_out<T>(
        &mut self,
        api: Api,
        opened: Result<T, OpenError>,
        needs: Needs,
    ) -> Result<Option<Arc<T>>, OpenError> {
        let error = match opened {
            Ok(opened) => return Ok(Some(Arc::new(opened))),
            Err(error) => error,
        };
        let is_of_other_process = matches!(error, OpenError::Store(OpenStoreError::Lock(_)));
        if needs == Needs::All || is_of_other_process || !self.0.is_empty() {
            return Err(error);
        }
        tracing::error!(
            "{error}. The {} listener answers with this error, and the other service works: put the data \
             directory aside, and restore the last backup with bsv-cli restore",
            api.name()
        );
        self.0.push((api, error.to_string()));
        Ok(None)
    }

    /// Why a service could not be opened, if it could not.
    pub(crate) fn reason(&self, api: Api) -> Option<&str> {
        self.all().find(|(failed, _)| *failed == api).map(|(_, reason)| reason)
    }

    /// The failed services, and why each failed.
    pub(crate) fn all(&self) -> impl Iterator<Item = (Api, &str)> {
        self.0.iter().map(|(api, reason)| (*api, reason.as_str()))
    }
}

/// The contents of an opened data directory.
pub(crate) struct Stores {
    /// The settings, without the services whose stores are missing.
    pub(crate) config: Config,
    pub(crate) tokens: Arc<Tokens>,
    pub(crate) node: Option<NodeRpc>,
    pub(crate) keystore: Option<Arc<Keystore>>,
    pub(crate) ids: Option<Arc<MinerIds>>,
    pub(crate) wallet: Option<Arc<Wallet>>,
    pub(crate) headers: Option<Arc<HeaderFollower>>,
    pub(crate) failures: Failures,
    pub(crate) lock: Arc<DirLock>,
}

impl Stores {
    /// Opens the directories that `config` names. `program` is the name that other processes are
    /// told while they are in use. Waits up to `patience` for a server that holds them.
    pub(crate) async fn open(
        config: Config,
        program: &str,
        create: Create,
        needs: Needs,
        patience: Duration,
    ) -> Result<Self, OpenError> {
        let config = without_missing(config, create)?;
        // The passphrase is stretched before the lock is taken: it takes a while, and nobody should
        // wait for it.
        let passphrase = match (&config.minerid, &config.wallet) {
            (None, None) => None,
            _ => {
                let keystore = config.keystore.clone();
                let stretched = spawn_blocking(move || keystore.stretched_passphrase());
                stretched.await.expect("the task neither panics nor is cancelled")?
            }
        };
        let lock = Arc::new(lock(&config.network_dir, program, patience).await?);
        for dir in open_to_others(&own_dirs(&config)) {
            tracing::warn!("{}", open_to_others_text(dir));
        }
        let headers = open_headers(&config)?.map(Arc::new);
        let node = config.node.clone().map(NodeRpc::new);
        let keystore = match (&config.minerid, &config.wallet) {
            (None, None) => None,
            _ => Some(Arc::new(open_keystore(&config, passphrase.as_ref(), program)?)),
        };
        let needs = match (&config.minerid, &config.wallet) {
            (Some(_), Some(_)) => needs,
            _ => Needs::All,
        };
        let mut failures = Failures::default();
        let ids = match config.minerid.as_ref().zip(keystore.clone()) {
            Some((minerid, keystore)) => {
                let opened = open_identities(&config, minerid, node.clone(), keystore, program);
                failures.sort_out(Api::MinerId, opened, needs)?
            }
            None => None,
        };
        let wallet = match config.wallet.as_ref().zip(keystore.clone()) {
            Some((wallet, keystore)) => {
                // Another server may have the database, or it comes soon: there is nothing to restore.
                let needs = if wallet.store.is_some() { Needs::All } else { needs };
                let (node, headers, lock) = (node.clone(), headers.clone(), Arc::clone(&lock));
                let source = |wallet: &Wallet| source(&config, node, headers, wallet);
                let opened =
                    open_wallet(&config, wallet, source, lock, keystore, KeyEvent::Made).await;
                failures.sort_out(Api::Wallet, opened, needs)?
            }
            None => None,
        };
        let tokens = Arc::new(open_tokens(&config.network_dir, wallet.clone())?);
        Ok(Self { config, tokens, node, keystore, ids, wallet, headers, failures, lock })
    }
}

/// The directories that hold the data.
pub(crate) fn own_dirs(config: &Config) -> Vec<PathBuf> {
    let data_dir = config.network_dir.parent().map(Path::to_owned);
    let minerid = config.minerid.as_ref().map(|minerid| minerid.data_dir.clone());
    let keystore = &config.keystore;
    let others = [config.network_dir.clone(), keystore.dir.clone(), keystore.revocation_dir()];
    data_dir.into_iter().chain(others).chain(minerid).collect()
}

/// Those of these directories in which other users can replace files.
pub(crate) fn open_to_others(dirs: &[PathBuf]) -> impl Iterator<Item = &Path> {
    let mode = |dir: &Path| fs::metadata(dir).map_or(0, |found| found.permissions().mode());
    dirs.iter().map(PathBuf::as_path).filter(move |dir| mode(dir) & WRITABLE_BY_OTHERS != 0)
}

/// The right of the group and of everybody to write.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// Tells of a directory that is open to others.
pub(crate) fn open_to_others_text(dir: &Path) -> String {
    format!("other users can write to {}: run chmod go-w {0}", dir.display())
}

/// Removes the services whose stores are missing and are not to be created.
fn without_missing(config: Config, create: Create) -> Result<Config, OpenError> {
    let has_wallet = create == Create::All || is_wallet_in(&config);
    let has_identities = create != Create::Nothing || are_identities_in(&config);
    let is_used = create == Create::All || DirLock::is_in(&config.network_dir);
    let what = match (&config.wallet, &config.minerid) {
        (None, None) if !is_used => "nothing",
        (Some(_), None) if !has_wallet => "no wallet",
        (None, Some(_)) if !has_identities => "no store of identities",
        (Some(_), Some(_)) if !has_wallet && !has_identities => {
            "neither a wallet nor a store of identities"
        }
        _ => {
            let wallet = config.wallet.clone().filter(|_| has_wallet);
            let minerid = config.minerid.clone().filter(|_| has_identities);
            return Ok(Config { wallet, minerid, ..config });
        }
    };
    Err(OpenError::Nothing { what, dir: config.network_dir })
}

/// Whether there is a wallet in the configured directory. A wallet without its store counts too, if
/// its seed exists.
pub fn is_wallet_in(config: &Config) -> bool {
    config.wallet.as_ref().is_some_and(|wallet| wallet.store.is_some())
        || config.network_dir.join(RedbWalletStore::FILE_NAME).is_file()
        || WalletSeed::is_in(&config.keystore.dir)
}

/// Whether there is a store of identities in the configured directory.
pub fn are_identities_in(config: &Config) -> bool {
    let dir = config.minerid.as_ref().map(|minerid| &minerid.data_dir);
    dir.is_some_and(|dir| dir.join(RedbIdentityStore::FILE_NAME).is_file())
}

/// The file in which a server remembers what it has seen of a wallet in a database.
pub(crate) const MEMORY_FILE_NAME: &str = "wallet.step";

/// The name of a server in a lock. Commands release a lock soon, a server does not.
pub(crate) const SERVER: &str = "bsv-server";
/// The user agent of the server when it posts events.
const USER_AGENT: &str = concat!("bsv-server/", env!("CARGO_PKG_VERSION"));
/// How long to wait for a command that holds the data directory.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
/// The time between two attempts to lock it.
const LOCK_PERIOD: Duration = Duration::from_millis(2);

/// Locks a data directory. Waits for a command that holds it, and up to `patience` for a server.
async fn lock(dir: &Path, program: &str, patience: Duration) -> Result<DirLock, LockError> {
    let begun = Instant::now();
    loop {
        match DirLock::acquire(dir, program) {
            Err(LockError::Held { holder, .. })
                if begun.elapsed()
                    < if holder.starts_with(SERVER) { patience } else { LOCK_TIMEOUT } => {}
            locked => return locked,
        }
        sleep(LOCK_PERIOD).await;
    }
}

/// The error that names the other process with a data directory, if there is one. `program` is the
/// name that others are told for the moment of the look.
pub(crate) fn holder_of(network_dir: &Path, program: &str) -> Option<LockError> {
    if !DirLock::is_in(network_dir) {
        return None;
    }
    let tried = DirLock::acquire(network_dir, program);
    tried.err().filter(|error| matches!(error, LockError::Held { .. }))
}

/// Opens the tokens, which lie where the wallet does if that is a database.
fn open_tokens(dir: &Path, wallet: Option<Arc<Wallet>>) -> Result<Tokens, TokenFileError> {
    match wallet.filter(|wallet| database(wallet).is_some()) {
        Some(wallet) => {
            let dir = dir.to_owned();
            // Whoever calls may be in a runtime, which must not be blocked by another one.
            let opened = thread::spawn(move || Tokens::open_in_database(wallet, &dir)).join();
            opened.unwrap_or(Err(StoreError::Panicked.into()))
        }
        None => Tokens::open(dir),
    }
}

fn open_keystore(
    config: &Config,
    passphrase: Option<&StretchedPassphrase>,
    program: &str,
) -> Result<Keystore, KeystoreError> {
    let keys = &config.keystore;
    let keystore = Keystore::open(&keys.dir, passphrase, keys.plain_keys, program)?;
    if keystore.is_plain() {
        tracing::warn!(
            "the keys in {} are not sealed: set a passphrase before they protect real money",
            keys.dir.display()
        );
    }
    Ok(keystore)
}

fn open_identities(
    config: &Config,
    minerid: &MinerIdConfig,
    node: Option<NodeRpc>,
    keystore: Arc<Keystore>,
    program: &str,
) -> Result<MinerIds, OpenError> {
    let store = RedbIdentityStore::open(&minerid.data_dir, program)?;
    let ids = MinerIds::open(store, keystore, config.network)?;
    ids.refuse_if_stale(minerid.stale_copy == StaleCopy::Refuse);
    Ok(match node {
        Some(node) => ids.with_node(node),
        None => ids,
    })
}

fn open_wallet_store(
    config: &Config,
    wallet: &WalletConfig,
    lock: Arc<DirLock>,
) -> Result<Arc<dyn Store>, OpenError> {
    if let Some(database) = &wallet.store {
        let database = database.clone().for_server(config.network_dir.join(MEMORY_FILE_NAME));
        return Ok(Arc::new(PostgresWalletStore::open(database)?));
    }
    let options = DatabaseOptions { cache_bytes: wallet.cache_bytes, ..DatabaseOptions::default() };
    Ok(Arc::new(RedbWalletStore::open(lock, options)?))
}

/// Opens the wallet, and then its source. For a new store, `origin` tells where the seed comes from.
pub(crate) async fn open_wallet(
    config: &Config,
    wallet: &WalletConfig,
    source: impl FnOnce(&Wallet) -> Option<NetworkSource>,
    lock: Arc<DirLock>,
    keystore: Arc<Keystore>,
    origin: KeyEvent,
) -> Result<Wallet, OpenError> {
    let store = open_wallet_store(config, wallet, lock)?;
    let settings = WalletSettings {
        network: config.network,
        expiry: wallet.expiry,
        public_url: wallet.payments.public_url(),
        has_page: wallet.payments.page.is_some(),
        merchant: wallet.merchant.clone(),
        fee_rate: wallet.payments.fee_rate,
        max_fee_rate: wallet.max_fee_rate,
        pay_limit: wallet.pay_limit,
        payment_rules: wallet.payment_rules,
        transaction_feed: wallet.transaction_feed.clone(),
        consolidate: wallet.consolidate,
        own_listeners: OwnListeners {
            payments: Some(wallet.payments.address),
            others: config
                .minerid
                .iter()
                .flat_map(|minerid| {
                    let of_node = minerid.node_listener.as_ref().map(|listener| listener.address);
                    [Some(minerid.address), of_node].into_iter().flatten()
                })
                .chain([wallet.address])
                .collect(),
        },
        webhook_networks: wallet.webhook_networks.clone(),
        user_agent: USER_AGENT.to_owned(),
    };
    let opened = Wallet::open_of(store, keystore, settings, origin).await?;
    Ok(match source(&opened) {
        Some(source) => opened.with_source(source),
        None => opened,
    })
}
