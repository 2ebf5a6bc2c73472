//! Keys beyond those that are watched, which a reading of the chain looks for. They are in memory
//! only.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use crate::error::Error;
use crate::ledger::{KEYS_END, SkipNumbers};
use crate::model::coin::{Chain, KeyPath};
use crate::model::time::Timestamp;
use crate::wallet::seed::{Account, WalletKeys, account_of};

/// How many first keys of each later account are searched until one of them is found to be used. A
/// restore may have begun such an account on any day. Keys for change are used one after the other,
/// so few suffice.
const TRIED_KEYS: [(Chain, u32); 2] = [(Chain::Receive, 1_000), (Chain::Change, 20)];

/// The keys, of which those beyond the last used one move on when a further one is found.
#[derive(Default)]
pub(crate) struct LookAhead {
    lookahead: u32,
    /// Hashes of the public keys.
    keys: HashMap<[u8; 20], KeyPath>,
    /// The accounts that may have been used.
    accounts: BTreeMap<u32, Account>,
    windows: BTreeMap<(u32, Chain), Window>,
    /// The keys that were found to be used and that are not watched yet.
    found: HashMap<[u8; 20], KeyPath>,
}

/// The keys of a chain that are searched.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    /// The number after the last derived key.
    end: u32,
    /// The number after the last used key.
    used_end: u32,
}

/// How many keys are one part of the work of a thread.
const KEYS_AT_ONCE: u32 = 1000;

impl LookAhead {
    /// The keys of everything that a wallet may have, if only its words are known.
    pub(crate) fn of_words(keys: &WalletKeys, lookahead: u32) -> Result<Self, Error> {
        // In another time zone it may already be tomorrow.
        let accounts = 0..=account_of(Timestamp::of_system()) + 1;
        let ends = accounts.flat_map(|number| {
            TRIED_KEYS.map(|(chain, tried)| {
                let end = if number == 0 { lookahead } else { tried.min(lookahead) };
                (number, chain, end)
            })
        });
        Self::up_to(keys, ends, lookahead)
    }

    /// The keys of accounts and chains up to an index each, and `lookahead` keys beyond each one that
    /// is found.
    pub(crate) fn up_to(
        keys: &WalletKeys,
        ends: impl IntoIterator<Item = (u32, Chain, u32)>,
        lookahead: u32,
    ) -> Result<Self, Error> {
        let mut ahead = Self { lookahead, ..Self::default() };
        for (number, chain, end) in ends {
            if let Entry::Vacant(place) = ahead.accounts.entry(number) {
                place.insert(keys.account(number)?);
            }
            let window = ahead.windows.entry((number, chain)).or_default();
            window.end = window.end.max(end.min(KEYS_END));
        }
        ahead.derive_first_keys()?;
        Ok(ahead)
    }

    /// Whether there are no such keys.
    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    pub(crate) fn contains(&self, hash: &[u8; 20]) -> bool {
        self.keys.contains_key(hash)
    }

    /// Takes note that the keys with these hashes are used, as far as they are among these keys.
    /// Answers the first one.
    pub(crate) fn note_paid<'t>(
        &mut self,
        hashes: impl Iterator<Item = &'t [u8; 20]>,
    ) -> Result<Option<&'t [u8; 20]>, Error> {
        let mut first = None;
        if !self.is_empty() {
            for hash in hashes {
                let Some(path) = self.keys.get(hash).copied() else { continue };
                self.found.insert(*hash, path);
                self.note_used(path)?;
                first.get_or_insert(hash);
            }
        }
        Ok(first)
    }

    /// Takes out the keys that were found to be used.
    pub(crate) fn take_found(&mut self) -> Vec<([u8; 20], KeyPath)> {
        self.found.drain().collect()
    }

    /// Derives the first keys of all accounts on all processors.
    fn derive_first_keys(&mut self) -> Result<(), Error> {
        let mut ranges = Vec::new();
        for ((number, chain), window) in &self.windows {
            // The work is split into parts, so that all threads get the same amount.
            let starts = (0..window.end).step_by(KEYS_AT_ONCE as usize);
            ranges.extend(starts.map(|from| {
                (*number, *chain, from..window.end.min(from.saturating_add(KEYS_AT_ONCE)))
            }));
        }
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let accounts = &self.accounts;
        let derive = |ranges: &[(u32, Chain, Range<u32>)]| -> Result<Vec<_>, Error> {
            let mut derived = Vec::new();
            for (account, chain, indexes) in ranges {
                let (account, chain) = (*account, *chain);
                for index in indexes.clone() {
                    let hash = accounts[&account].hash(chain, index)?;
                    derived.push((hash, KeyPath { account, chain, index }));
                }
            }
            Ok(derived)
        };
        let derive = &derive;
        let parts = ranges.chunks(ranges.len().div_ceil(threads).max(1));
        let derived = std::thread::scope(|scope| {
            let parts: Vec<_> = parts.map(|part| scope.spawn(move || derive(part))).collect();
            let join = |part: std::thread::ScopedJoinHandle<'_, _>| {
                part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            parts.into_iter().map(join).collect::<Result<Vec<_>, _>>()
        })?;
        self.keys.extend(derived.into_iter().flatten());
        Ok(())
    }

    /// Records that a key is used, and derives keys up to the lookahead beyond it.
    fn note_used(&mut self, KeyPath { account, chain, index }: KeyPath) -> Result<(), Error> {
        let keys = &self.accounts[&account];
        for other in [Chain::Receive, Chain::Change] {
            let Some(window) = self.windows.get_mut(&(account, other)) else { continue };
            if other == chain {
                window.used_end = window.used_end.max(index + 1);
            }
            let end = window.used_end.saturating_add(self.lookahead).min(KEYS_END);
            let new = window.end..end;
            window.end = window.end.max(end);
            for index in new {
                let hash = keys.hash(other, index)?;
                self.keys.insert(hash, KeyPath { account, chain: other, index });
            }
        }
        Ok(())
    }

    /// The last used keys of all chains.
    pub(crate) fn last_used(&self) -> impl Iterator<Item = KeyPath> {
        self.windows.iter().filter_map(|((account, chain), window)| {
            let index = window.used_end.checked_sub(1)?;
            Some(KeyPath { account: *account, chain: *chain, index })
        })
    }

    /// The numbers that a wallet must not give out, if these keys were found with its words alone.
    pub(crate) fn used_numbers(&self) -> SkipNumbers {
        let beyond = |used_end: u32| used_end.saturating_add(self.lookahead).min(KEYS_END - 1);
        let used_end = |chain| self.windows.get(&(0, chain)).map_or(0, |window| window.used_end);
        SkipNumbers {
            invoices: beyond(used_end(Chain::Receive)),
            users: beyond(0),
            change: used_end(Chain::Change),
            used: self.last_used().filter(|key| key.account > 0).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use bsv_tx::Network;

    use super::*;
    use crate::wallet::seed::WalletSeed;

    #[test]
    fn as_many_keys_as_before_are_searched_beyond_a_found_one() {
        let keys = WalletSeed::generate().unwrap().keys(Network::Regtest).unwrap();
        let ends = [(0, Chain::Receive, 5), (0, Chain::Change, 5), (9, Chain::Receive, 2)];
        let mut ahead = LookAhead::up_to(&keys, ends, 5).unwrap();
        let hash = |account, index| {
            keys.coin_hash(KeyPath { account, chain: Chain::Receive, index }).unwrap()
        };
        let mut pay = |account, index, end: u32| {
            let hash_of_paid = hash(account, index);
            let other = [7; 20];
            let hashes = [&other, &hash_of_paid];
            assert_eq!(ahead.note_paid(hashes.into_iter()).unwrap(), Some(&hash_of_paid));
            let searched = (0..100).filter(|it| ahead.contains(&hash(account, *it)));
            assert_eq!(searched.collect::<Vec<_>>(), (0..end).collect::<Vec<_>>());
        };
        // The first key, the one at the edge, one that is far from it, and the one at the edge again.
        for (index, end) in [(0, 6), (5, 11), (2, 11), (10, 16)] {
            pay(0, index, end);
        }
        pay(9, 1, 7);
        assert_eq!(ahead.note_paid([&hash(0, 16)].into_iter()).unwrap(), None);
        let used = ahead.used_numbers();
        let last = KeyPath { account: 9, chain: Chain::Receive, index: 1 };
        let expected = SkipNumbers { invoices: 16, users: 5, change: 0, used: vec![last] };
        assert_eq!(used, expected);
        assert_eq!(ahead.take_found().len(), 5);
    }
}
