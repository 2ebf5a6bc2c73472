use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bsv_invoicing::invoices::IdempotencyKey;
use bsv_invoicing::{Error, InvoiceDraft, RedbWalletStore, UserDraft, Wallet, WalletSettings};
use bsv_store::{DatabaseOptions, DirLock, Keystore, PlainKeys};
use bsv_tx::Network;
use tempfile::TempDir;

/// The directories of a wallet. It can be opened several times.
pub(crate) struct Place {
    dir: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn seed_file(&self) -> PathBuf {
        self.path("keystore").join("wallet.seed.key")
    }

    pub(crate) fn keystore(&self) -> Keystore {
        Keystore::open(&self.path("keystore"), None, PlainKeys::Allowed, "test").unwrap()
    }

    pub(crate) fn store(&self) -> RedbWalletStore {
        let lock = DirLock::acquire(&self.path("wallet"), "test").unwrap();
        RedbWalletStore::open(lock, DatabaseOptions::default()).unwrap()
    }

    pub(crate) async fn try_open(&self) -> Result<Wallet, Error> {
        let settings = WalletSettings::new(Network::Regtest);
        Wallet::open(Arc::new(self.store()), self.keystore(), settings).await
    }

    pub(crate) async fn open(&self) -> Wallet {
        self.try_open().await.unwrap()
    }

    /// A wallet whose invoices expire soon.
    pub(crate) async fn open_with_expiry(&self, expiry: Duration) -> Wallet {
        let settings = WalletSettings { expiry, ..WalletSettings::new(Network::Regtest) };
        Wallet::open(Arc::new(self.store()), self.keystore(), settings).await.unwrap()
    }
}

pub(crate) fn draft(satoshis: u64) -> InvoiceDraft {
    InvoiceDraft { satoshis, ..InvoiceDraft::default() }
}

pub(crate) fn user_named(name: &str) -> UserDraft {
    UserDraft { name: name.to_owned(), ..UserDraft::default() }
}

pub(crate) fn key(name: &str, request: &str) -> Option<IdempotencyKey> {
    Some(IdempotencyKey::new(name, request.as_bytes()).unwrap())
}

/// The text of the field errors.
#[track_caller]
pub(crate) fn field_errors(error: impl Into<Error>) -> String {
    match error.into() {
        Error::Invalid(errors) => errors.to_string(),
        error => panic!("the fields are not what is wrong: {error}"),
    }
}

#[track_caller]
pub(crate) fn assert_unknown<T: std::fmt::Debug>(id: &str, result: Result<T, Error>) {
    let error = result.unwrap_err();
    assert!(matches!(&error, Error::UnknownInvoice(named) if named == id), "{error}");
}
