//! Both back ends do the same with the same commands: all rows compare equal after each step.

use std::sync::Arc;

use bsv_invoicing::ledger::rows::Rows;
use bsv_invoicing::ledger::{Books, Command, Query};
use bsv_invoicing::{PostgresWalletStore, RedbWalletStore, WalletStore, WalletStoreError};
use bsv_store::{AuditCheck, AuditEntry, AuditPage, DatabaseOptions, DirLock};
use tempfile::TempDir;
use tokio::sync::watch;

use crate::postgres::dump::{Dump, DumpFigures};
use crate::postgres::store_conformance::{self, Place};
use crate::postgres::{SERVER, open, random_sequences};

/// A store of each engine, which get the same commands. Questions go to PostgreSQL.
struct Both {
    redb: RedbWalletStore,
    postgres: PostgresWalletStore,
}

/// A command that runs in several stores.
struct Shared<C>(Arc<C>);

impl<C: Command> Command for Shared<C> {
    type Answer = C::Answer;

    fn run<R: Rows>(&self, books: &mut Books<R>) -> Result<C::Answer, R::Error> {
        self.0.run(books)
    }
}

impl WalletStore for Both {
    async fn execute<C: Command>(&self, command: C) -> Result<C::Answer, WalletStoreError> {
        let command = Arc::new(command);
        let of_redb = self.redb.execute(Shared(Arc::clone(&command))).await;
        let of_postgres = self.postgres.execute(Shared(command)).await;
        let text = |answer: &Result<C::Answer, WalletStoreError>| {
            answer.as_ref().map(drop).map_err(ToString::to_string)
        };
        assert_eq!(text(&of_redb), text(&of_postgres));
        let rows = [self.redb.list(Dump).await.unwrap(), self.postgres.list(Dump).await.unwrap()];
        for (of_redb, of_postgres) in rows[0].iter().zip(&rows[1]) {
            assert_eq!(of_redb, of_postgres);
        }
        assert_eq!(rows[0].len(), rows[1].len());
        let figures = self.redb.verify(DumpFigures).await.unwrap();
        assert_eq!(figures, self.postgres.verify(DumpFigures).await.unwrap());
        of_postgres
    }

    async fn get<Q: Query + Clone>(&self, query: Q) -> Result<Q::Answer, WalletStoreError> {
        self.postgres.get(query).await
    }

    async fn list<Q: Query + Clone>(&self, query: Q) -> Result<Q::Answer, WalletStoreError> {
        self.postgres.list(query).await
    }

    async fn verify<Q: Query>(&self, query: Q) -> Result<Q::Answer, WalletStoreError> {
        self.postgres.verify(query).await
    }

    fn last_event(&self) -> watch::Receiver<u64> {
        self.postgres.last_event()
    }

    async fn audit_log(
        &self,
        page: AuditPage,
        limit: usize,
    ) -> Result<Vec<AuditEntry>, WalletStoreError> {
        self.postgres.audit_log(page, limit).await
    }

    async fn verify_audit_log(&self) -> Result<AuditCheck, WalletStoreError> {
        self.postgres.verify_audit_log().await
    }
}

/// A directory, and a schema of a database.
struct BothPlaces(TempDir, String);

impl Place for BothPlaces {
    type Store = Both;

    fn fresh() -> Self {
        Self(tempfile::tempdir().unwrap(), SERVER.fresh_url())
    }

    fn open(&self) -> Both {
        let lock = DirLock::acquire(self.0.path(), "test").unwrap();
        let redb = RedbWalletStore::open(lock, DatabaseOptions::default()).unwrap();
        Both { redb, postgres: open(&self.1) }
    }
}

#[test]
fn both_back_ends_hold_the_same_rows_after_each_of_many_random_steps() {
    store_conformance::run_random_steps::<BothPlaces>(random_sequences());
}
