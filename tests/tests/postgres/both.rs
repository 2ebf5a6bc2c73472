//! Both back ends do the same with the same commands: all rows compare equal after each step.

use std::sync::Arc;

use bsv_invoicing::store::{
    Answering, BoxedAnswer, BoxedCommand, Store, WalletStore, WalletStoreError,
};
use bsv_invoicing::{PostgresWalletStore, RedbWalletStore};
use bsv_store::{DatabaseOptions, DirLock};
use tempfile::TempDir;

use crate::postgres::dump::{Dump, DumpFigures};
use crate::postgres::store_conformance::forward::{forward_others, forward_queries};
use crate::postgres::store_conformance::{self, Place};
use crate::postgres::{SERVER, open, random_sequences};

/// A store of each engine, which get the same commands. Questions go to PostgreSQL.
struct Both {
    redb: RedbWalletStore,
    postgres: PostgresWalletStore,
}

impl Both {
    async fn run(
        &self,
        weight: usize,
        command: BoxedCommand,
    ) -> Result<BoxedAnswer, WalletStoreError> {
        let of_redb = self.redb.run_command(weight, Arc::clone(&command)).await;
        let of_postgres = self.postgres.run_command(weight, command).await;
        let text = |answer: &Result<BoxedAnswer, WalletStoreError>| {
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
}

impl Store for Both {
    fn run_command(&self, weight: usize, command: BoxedCommand) -> Answering<'_, BoxedAnswer> {
        Box::pin(self.run(weight, command))
    }

    forward_queries!(self => self.postgres);
    forward_others!(self => self.postgres);
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
