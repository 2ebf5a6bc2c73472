//! Watched scripts: those of keys that were shown to somebody.

use bsv_tx::Script;

use crate::ledger::rows::Order::Ascending;
use crate::ledger::rows::{ReadRows, Rows, WatchBacklog, Watched};
use crate::ledger::{Books, Command, Query};
use crate::model::coin::{Change, KeyPath};

/// Watches the P2PKH scripts of keys, for ever.
#[derive(Clone, Debug)]
pub struct Watch {
    /// Hashes of public keys, and the keys.
    pub keys: Vec<([u8; 20], KeyPath)>,
}

impl Command for Watch {
    type Answer = ();

    fn run<R: Rows>(&self, books: &mut Books<R>) -> Result<(), R::Error> {
        self.keys.iter().try_for_each(|(hash, key)| books.rows.put::<Watched>(*hash, key))
    }
}

impl<R: Rows> Books<R> {
    /// Watches the script of a change output, because everybody can see it in the chain.
    pub(crate) fn watch_change(&mut self, script: &Script, change: Change) -> Result<(), R::Error> {
        match script.public_key_hash() {
            Some(hash) => self.rows.put::<Watched>(*hash, &change.key),
            None => Ok(()),
        }
    }
}

/// Watches keys of the backlog, from its first one on.
#[derive(Clone, Debug)]
pub struct WatchBacklogged {
    /// The first key.
    pub from: KeyPath,
    /// The hashes of its public key and of the ones that follow.
    pub hashes: Vec<[u8; 20]>,
}

impl Command for WatchBacklogged {
    type Answer = ();

    fn run<R: Rows>(&self, books: &mut Books<R>) -> Result<(), R::Error> {
        let Some(end) = books.rows.get::<WatchBacklog>(&self.from)? else { return Ok(()) };
        let mut index = self.from.index;
        for hash in &self.hashes {
            books.rows.put::<Watched>(*hash, &KeyPath { index, ..self.from })?;
            index += 1;
        }
        books.rows.remove::<WatchBacklog>(self.from)?;
        if index < end {
            books.rows.put::<WatchBacklog>(KeyPath { index, ..self.from }, &end)?;
        }
        Ok(())
    }
}

/// The first keys of the backlog, and the index after the last of them.
#[derive(Clone, Copy, Debug)]
pub struct GetWatchBacklog;

impl Query for GetWatchBacklog {
    type Answer = Option<(KeyPath, u32)>;

    fn run<R: ReadRows>(self, rows: &R) -> Result<Self::Answer, R::Error> {
        Ok(rows.first::<WatchBacklog>(.., Ascending, 1)?.pop())
    }
}

/// Whether the script of a public key with this hash is watched.
#[derive(Clone, Copy, Debug)]
pub struct IsWatched(pub [u8; 20]);

impl Query for IsWatched {
    type Answer = bool;

    fn run<R: ReadRows>(self, rows: &R) -> Result<bool, R::Error> {
        Ok(rows.get::<Watched>(&self.0)?.is_some())
    }
}

/// Up to `.1` hashes of public keys whose scripts are watched after this one, in their order.
#[derive(Clone, Copy, Debug)]
pub struct GetWatched(pub Option<[u8; 20]>, pub usize);

impl Query for GetWatched {
    type Answer = Vec<[u8; 20]>;

    fn run<R: ReadRows>(self, rows: &R) -> Result<Self::Answer, R::Error> {
        use std::ops::Bound;
        let from = self.0.map_or(Bound::Unbounded, Bound::Excluded);
        let watched = rows.first::<Watched>((from, Bound::Unbounded), Ascending, self.1)?;
        Ok(watched.into_iter().map(|(hash, _)| hash).collect())
    }
}
