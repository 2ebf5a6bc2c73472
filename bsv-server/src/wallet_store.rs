//! Where the wallet is stored: in a file of the data directory, or in a database.

use std::fs::File;
use std::path::Path;

use bsv_invoicing::ledger::{Command, Query};
use bsv_invoicing::{
    EventCounts, PostgresWalletStore, RedbWalletStore, Timestamp, WalletStore, WalletStoreError,
};
use bsv_store::{AuditCheck, AuditEntry, AuditPage, StoreCounts, StoreError};
use tokio::sync::watch;

use crate::backup::BackupError;
use crate::store_move::copy_as_file;

/// The wallet of this server.
pub(crate) type Wallet = bsv_invoicing::Wallet<AnyWalletStore>;

/// A wallet's store, whichever it is.
#[derive(Debug)]
pub(crate) enum AnyWalletStore {
    /// A file of the data directory.
    Redb(RedbWalletStore),
    /// A schema of a PostgreSQL database.
    Postgres(PostgresWalletStore),
}

impl AnyWalletStore {
    /// The database, if it is one.
    pub(crate) fn database(&self) -> Option<&PostgresWalletStore> {
        match self {
            Self::Redb(_) => None,
            Self::Postgres(store) => Some(store),
        }
    }

    /// Compares the file with its checksums, if it was too long for that when it was opened. A database
    /// checks itself.
    pub(crate) fn check(&self) -> Result<Option<u64>, StoreError> {
        match self {
            Self::Redb(store) => store.check(),
            Self::Postgres(_) => Ok(None),
        }
    }

    /// The damage that was found in the file, if any.
    pub(crate) fn damage(&self) -> Option<&StoreError> {
        match self {
            Self::Redb(store) => store.damage(),
            Self::Postgres(_) => None,
        }
    }

    /// The length of the file, in bytes, if it is one.
    pub(crate) fn file_len(&self) -> Option<u64> {
        match self {
            Self::Redb(store) => store.file_len().ok(),
            Self::Postgres(_) => None,
        }
    }

    /// A copy of the wallet as it is at one moment: a file without a name, of the form of the wallet's file.
    pub(crate) async fn copy(&self, network_dir: &Path) -> Result<File, BackupError> {
        Ok(match self {
            Self::Redb(store) => store.copy().await?.into_file()?,
            Self::Postgres(store) => copy_as_file(store, network_dir).await?,
        })
    }

    /// Whether the database does what it is told, if it is one.
    pub(crate) async fn probe(&self) -> Result<(), WalletStoreError> {
        match self {
            Self::Redb(_) => Ok(()),
            Self::Postgres(store) => store.probe().await,
        }
    }

    /// Completes when other servers of the wallet take this one for dead.
    pub(crate) async fn overtaken(&self) {
        match self {
            Self::Redb(_) => std::future::pending().await,
            Self::Postgres(store) => store.overtaken().await,
        }
    }

    /// Counts of what the store has done since it was opened.
    pub(crate) fn counts(&self) -> &StoreCounts {
        match self {
            Self::Redb(store) => store.counts(),
            Self::Postgres(store) => store.counts(),
        }
    }

    /// Counts of the events that were written since the store was opened.
    pub(crate) fn event_counts(&self) -> &EventCounts {
        match self {
            Self::Redb(store) => store.event_counts(),
            Self::Postgres(store) => store.event_counts(),
        }
    }
}

impl WalletStore for AnyWalletStore {
    async fn execute<C: Command>(&self, command: C) -> Result<C::Answer, WalletStoreError> {
        match self {
            Self::Redb(store) => store.execute(command).await,
            Self::Postgres(store) => store.execute(command).await,
        }
    }

    async fn get<Q: Query + Clone>(&self, query: Q) -> Result<Q::Answer, WalletStoreError> {
        match self {
            Self::Redb(store) => store.get(query).await,
            Self::Postgres(store) => store.get(query).await,
        }
    }

    async fn list<Q: Query + Clone>(&self, query: Q) -> Result<Q::Answer, WalletStoreError> {
        match self {
            Self::Redb(store) => store.list(query).await,
            Self::Postgres(store) => store.list(query).await,
        }
    }

    async fn verify<Q: Query>(&self, query: Q) -> Result<Q::Answer, WalletStoreError> {
        match self {
            Self::Redb(store) => store.verify(query).await,
            Self::Postgres(store) => store.verify(query).await,
        }
    }

    fn last_event(&self) -> watch::Receiver<u64> {
        match self {
            Self::Redb(store) => store.last_event(),
            Self::Postgres(store) => store.last_event(),
        }
    }

    fn changes_by_others(&self) -> Option<watch::Receiver<i64>> {
        match self {
            Self::Redb(store) => store.changes_by_others(),
            Self::Postgres(store) => store.changes_by_others(),
        }
    }

    fn clock(&self) -> Option<Timestamp> {
        match self {
            Self::Redb(store) => store.clock(),
            Self::Postgres(store) => store.clock(),
        }
    }

    async fn audit_log(
        &self,
        page: AuditPage,
        limit: usize,
    ) -> Result<Vec<AuditEntry>, WalletStoreError> {
        match self {
            Self::Redb(store) => store.audit_log(page, limit).await,
            Self::Postgres(store) => store.audit_log(page, limit).await,
        }
    }

    async fn verify_audit_log(&self) -> Result<AuditCheck, WalletStoreError> {
        match self {
            Self::Redb(store) => store.verify_audit_log().await,
            Self::Postgres(store) => store.verify_audit_log().await,
        }
    }
}
