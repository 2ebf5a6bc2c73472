//! Watched scripts: those of keys that were shown to somebody.

use bsv_tx::Script;

use crate::ledger::rows::Order::{Ascending, Descending};
use crate::ledger::rows::{Engine, NewlyWatched, WalletStoreError, WatchBacklog, Watched};
use crate::ledger::{Books, Command, Query};
use crate::model::coin::{Chain, Change, KeyPath};
use crate::model::process::ProcessId;

/// Keys can be derived for numbers below this.
pub(crate) const KEYS_END: u32 = 1 << 31;

/// How many keys beyond the last used one of an earlier account are watched, because they may have
/// been given out after a backup was made. Keys for change are used one after the other, except for
/// those of payments that were not made.
fn lookahead(chain: Chain) -> u32 {
    match chain {
        Chain::Receive => 100_000,
        Chain::Change => 1_000,
        Chain::User => 0,
    }
}

/// Watches the P2PKH scripts of keys, for ever.
#[derive(Clone, Debug)]
pub struct Watch {
    /// Hashes of public keys, and the keys.
    pub keys: Vec<([u8; 20], KeyPath)>,
}

impl Command for Watch {
    type Answer = ();

    fn run(&self, books: &mut Books<'_>) -> Result<(), WalletStoreError> {
        books.watch(self.keys.iter().copied())
    }
}

impl Books<'_> {
    /// Watches the scripts of keys. Other processes find the hashes in the list of new ones.
    fn watch(
        &mut self,
        keys: impl Iterator<Item = ([u8; 20], KeyPath)>,
    ) -> Result<(), WalletStoreError> {
        let mut last = match self.process {
            ProcessId::ALONE => None,
            _ => Some(last_newly_watched(&self.rows)?),
        };
        for (hash, key) in keys {
            if let Some(last) = &mut last {
                *last += 1;
                self.rows.put::<NewlyWatched>(*last, &hash)?;
            }
            self.rows.put::<Watched>(hash, &key)?;
        }
        Ok(())
    }

    /// Watches a key of an earlier account that was not used, and those that follow.
    pub(crate) fn watch_ahead(&mut self, from: KeyPath) -> Result<(), WalletStoreError> {
        let end = from.index.saturating_add(lookahead(from.chain)).min(KEYS_END);
        self.rows.put::<WatchBacklog>(from, &end)
    }

    /// Takes note that a key is used. If it is one of an earlier account, as many keys as before are
    /// watched beyond it.
    pub(crate) fn note_used(&mut self, key: KeyPath) -> Result<(), WalletStoreError> {
        if u64::from(key.account) == self.figures.account {
            return Ok(());
        }
        let of_chain = KeyPath { index: 0, ..key }..=KeyPath { index: u32::MAX, ..key };
        let last = self.rows.first::<WatchBacklog>(of_chain, Descending, 1)?;
        let Some((from, end)) = last.first() else { return Ok(()) };
        let ahead = lookahead(key.chain).saturating_add(1);
        let moved = key.index.saturating_add(ahead).min(KEYS_END);
        if *end < moved {
            self.rows.put::<WatchBacklog>(*from, &moved)?;
        }
        Ok(())
    }

    /// Watches the script of a change output, because everybody can see it in the chain.
    pub(crate) fn watch_change(
        &mut self,
        script: &Script,
        change: Change,
    ) -> Result<(), WalletStoreError> {
        match script.public_key_hash() {
            Some(hash) => self.watch(std::iter::once((*hash, change.key))),
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

    fn run(&self, books: &mut Books<'_>) -> Result<(), WalletStoreError> {
        let Some(end) = books.rows.get::<WatchBacklog>(&self.from)? else { return Ok(()) };
        let keys = (self.from.index..).map(|index| KeyPath { index, ..self.from });
        books.watch(self.hashes.iter().copied().zip(keys))?;
        let count = u32::try_from(self.hashes.len()).unwrap_or(u32::MAX);
        let next = KeyPath { index: self.from.index.saturating_add(count), ..self.from };
        books.rows.remove::<WatchBacklog>(self.from)?;
        // The keys that were skipped end where those begin that may have been given out.
        let following = books.rows.get::<WatchBacklog>(&next)?;
        books.rows.put::<WatchBacklog>(next, &following.map_or(end, |following| following.max(end)))
    }
}

/// The first keys of the backlog, and the index after the last of them.
#[derive(Clone, Copy, Debug)]
pub struct GetWatchBacklog;

impl Query for GetWatchBacklog {
    type Answer = Option<(KeyPath, u32)>;

    fn run(self, rows: &dyn Engine) -> Result<Self::Answer, WalletStoreError> {
        let mut backlog = rows.range::<WatchBacklog>(..)?.into_iter();
        Ok(backlog.find(|(from, end)| from.index < *end))
    }
}

/// For each earlier account and chain, the index after the last key that may have been given out.
#[derive(Clone, Copy, Debug)]
pub struct GetWatchedAhead;

impl Query for GetWatchedAhead {
    type Answer = Vec<(KeyPath, u32)>;

    fn run(self, rows: &dyn Engine) -> Result<Self::Answer, WalletStoreError> {
        rows.range::<WatchBacklog>(..)
    }
}

/// Whether the script of a public key with this hash is watched.
#[derive(Clone, Copy, Debug)]
pub struct IsWatched(pub [u8; 20]);

impl Query for IsWatched {
    type Answer = bool;

    fn run(self, rows: &dyn Engine) -> Result<bool, WalletStoreError> {
        Ok(rows.get::<Watched>(&self.0)?.is_some())
    }
}

/// Up to `.1` of the hashes that were added most recently, after the one of this number, with their
/// numbers.
#[derive(Clone, Copy, Debug)]
pub struct GetNewlyWatched(pub u64, pub usize);

impl Query for GetNewlyWatched {
    type Answer = Vec<(u64, [u8; 20])>;

    fn run(self, rows: &dyn Engine) -> Result<Self::Answer, WalletStoreError> {
        rows.first::<NewlyWatched>(self.0.saturating_add(1).., Ascending, self.1)
    }
}

/// Forgets which hashes were added up to the one of this number. The last one is kept, so that no number
/// is given out again.
#[derive(Clone, Copy, Debug)]
pub struct ForgetNewlyWatched {
    /// The number.
    pub until: u64,
}

impl Command for ForgetNewlyWatched {
    type Answer = ();

    fn run(&self, books: &mut Books<'_>) -> Result<(), WalletStoreError> {
        let end = last_newly_watched(&books.rows)?.min(self.until.saturating_add(1));
        for (number, _) in books.rows.range::<NewlyWatched>(..end)? {
            books.rows.remove::<NewlyWatched>(number)?;
        }
        Ok(())
    }
}

/// The number of the last hash that was added, or 0.
fn last_newly_watched(rows: &dyn Engine) -> Result<u64, WalletStoreError> {
    let last = rows.first::<NewlyWatched>(.., Descending, 1)?;
    Ok(last.first().map_or(0, |(number, _)| *number))
}

/// Up to `.1` hashes of public keys whose scripts are watched after this one, in their order.
#[derive(Clone, Copy, Debug)]
pub struct GetWatched(pub Option<[u8; 20]>, pub usize);

impl Query for GetWatched {
    type Answer = Vec<[u8; 20]>;

    fn run(self, rows: &dyn Engine) -> Result<Self::Answer, WalletStoreError> {
        use std::ops::Bound;
        let from = self.0.map_or(Bound::Unbounded, Bound::Excluded);
        let watched = rows.first::<Watched>((from, Bound::Unbounded), Ascending, self.1)?;
        Ok(watched.into_iter().map(|(hash, _)| hash).collect())
    }
}
