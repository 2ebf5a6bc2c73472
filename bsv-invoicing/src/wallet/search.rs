//! Searching blocks and the mempool for transactions that pay the wallet's keys or spend its coins.

mod mempool;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use bsv_network::NodeRpc;
use bsv_tx::{BlockHash, OutPoint, TransactionView, Txid, public_key_hash};

use crate::error::Error;
use crate::ledger::{Recovered, SkipNumbers};
use crate::model::coin::{Chain, KeyPath};
use crate::model::receipt::ReceiptKey;
use crate::model::time::Timestamp;
use crate::model::transaction::{BlockPlace, EncodedTransaction, Proof};
use crate::wallet::block_parts::{BlockParts, Found};
use crate::wallet::node::away;
use crate::wallet::seed::{Account, WalletKeys, account_of};

/// How many first keys of each later account are searched until one of them is found to be used. A
/// restore may have begun such an account on any day. Keys for change are used one after the other,
/// so few suffice.
const TRIED_KEYS: [(Chain, u32); 2] = [(Chain::Receive, 1_000), (Chain::Change, 20)];

/// The state of a search.
pub(crate) struct Search {
    lookahead: u32,
    /// Hashes of public keys that outputs may pay to.
    keys: HashMap<[u8; 20], KeyPath>,
    /// The accounts that may have been used.
    accounts: BTreeMap<u32, SearchedAccount>,
    /// The coins that were found and are not spent, with the numbers of the transactions that make
    /// them.
    coins: HashMap<OutPoint, u64>,
    last_number: u64,
    /// The transactions that the books already have.
    known: HashSet<Txid>,
}

/// A block that is being searched.
pub(crate) struct SearchedBlock<'n> {
    parts: BlockParts<'n, Taken>,
    /// The time of the block.
    at: Timestamp,
}

/// How a transaction that was found concerns the wallet.
struct Taken {
    number: u64,
    receipts: Vec<(u32, KeyPath)>,
    spends: Vec<ReceiptKey>,
}

impl Taken {
    fn recovered(
        self,
        transaction: EncodedTransaction,
        proof: Option<Proof>,
        at: Timestamp,
    ) -> Recovered {
        let Self { number, receipts, spends } = self;
        Recovered { number, transaction, proof, receipts, spends, at }
    }
}

/// What the books know before the search.
#[derive(Debug, Default)]
pub(crate) struct KnownBooks {
    /// All transactions.
    pub(crate) transactions: HashSet<Txid>,
    /// The unspent coins, with the numbers of the transactions that make them.
    pub(crate) coins: HashMap<OutPoint, u64>,
    /// The number of the last transaction.
    pub(crate) last_number: u64,
    /// The number of keys of each account and chain that were given out, as far as the books know.
    pub(crate) used: Vec<(u32, Chain, u32)>,
}

/// An account whose keys are searched.
struct SearchedAccount {
    keys: Account,
    receive: Window,
    change: Window,
    user: Window,
}

/// The keys of a chain that are searched.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    /// The number after the last derived key.
    end: u32,
    /// The number after the last used key.
    used_end: u32,
}

/// Keys can be derived for numbers below this.
const KEYS_END: u32 = 1 << 31;
/// How many keys for change beyond those of the books are searched. They are used one after the
/// other, except for those of payments that were not made.
const CHANGE_LOOKAHEAD: u32 = 1000;
/// How many keys are one part of the work of a thread.
const KEYS_AT_ONCE: u32 = 1000;

impl SearchedAccount {
    fn window(&mut self, chain: Chain) -> &mut Window {
        match chain {
            Chain::Receive => &mut self.receive,
            Chain::Change => &mut self.change,
            Chain::User => &mut self.user,
        }
    }

    fn is_used(&self) -> bool {
        self.receive.used_end > 0 || self.change.used_end > 0
    }
}

impl Search {
    /// A search for everything that a wallet may have, if only its words are known.
    pub(crate) fn of_words(keys: &WalletKeys, lookahead: u32) -> Result<Self, Error> {
        // In another time zone it may already be tomorrow.
        let accounts = 0..=account_of(Timestamp::of_system()) + 1;
        let mut search = Self::of_accounts(keys, accounts, lookahead, KnownBooks::default())?;
        for (number, account) in &mut search.accounts {
            for (chain, tried) in TRIED_KEYS {
                let end = if *number == 0 { lookahead } else { tried.min(lookahead) };
                account.window(chain).end = end;
            }
        }
        search.derive_first_keys()?;
        Ok(search)
    }

    /// A search for what the books lack, up to `lookahead` keys beyond those that were given out.
    pub(crate) fn of_books(
        keys: &WalletKeys,
        books: KnownBooks,
        lookahead: u32,
    ) -> Result<Self, Error> {
        let used = books.used.clone();
        let accounts: Vec<_> = used.iter().map(|(account, ..)| *account).collect();
        let mut search = Self::of_accounts(keys, accounts, lookahead, books)?;
        for account in search.accounts.values_mut() {
            account.change.end = lookahead.min(CHANGE_LOOKAHEAD);
        }
        for (account, chain, count) in used {
            let account = search.accounts.get_mut(&account).expect("it was just put there");
            let beyond = match chain {
                Chain::Receive | Chain::User => lookahead,
                Chain::Change => lookahead.min(CHANGE_LOOKAHEAD),
            };
            let window = account.window(chain);
            window.end = window.end.max(count.saturating_add(beyond).min(KEYS_END));
        }
        search.derive_first_keys()?;
        Ok(search)
    }

    fn of_accounts(
        keys: &WalletKeys,
        numbers: impl IntoIterator<Item = u32>,
        lookahead: u32,
        KnownBooks { transactions: known, coins, last_number, .. }: KnownBooks,
    ) -> Result<Self, Error> {
        let mut accounts = BTreeMap::new();
        for number in numbers {
            let keys = keys.account(number)?;
            let [receive, change, user] = [Window::default(); 3];
            accounts.insert(number, SearchedAccount { keys, receive, change, user });
        }
        let keys = HashMap::new();
        Ok(Self { lookahead, keys, accounts, coins, last_number, known })
    }

    pub(crate) fn last_number(&self) -> u64 {
        self.last_number
    }

    /// The number of coins that were found and are not spent.
    pub(crate) fn coins_left(&self) -> u64 {
        self.coins.len() as u64
    }

    /// Derives the first keys of all accounts before the search, on all processors.
    fn derive_first_keys(&mut self) -> Result<(), Error> {
        let mut ranges = Vec::new();
        for (number, account) in &self.accounts {
            for (chain, window) in
                [(Chain::Receive, account.receive), (Chain::Change, account.change)]
            {
                // The work is split into parts, so that all threads get the same amount.
                let starts = (0..window.end).step_by(KEYS_AT_ONCE as usize);
                ranges.extend(starts.map(|from| {
                    (*number, chain, from..window.end.min(from.saturating_add(KEYS_AT_ONCE)))
                }));
            }
        }
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let accounts = &self.accounts;
        let derive = |ranges: &[(u32, Chain, Range<u32>)]| -> Result<Vec<_>, Error> {
            let mut derived = Vec::new();
            for (account, chain, indexes) in ranges {
                let (account, chain) = (*account, *chain);
                for index in indexes.clone() {
                    let hash = accounts[&account].keys.hash(chain, index)?;
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
        let Some(searched) = self.accounts.get_mut(&account) else { return Ok(()) };
        for other in [Chain::Receive, Chain::Change] {
            let window = searched.window(other);
            if other == chain {
                window.used_end = window.used_end.max(index + 1);
            }
            let end = window.used_end.saturating_add(self.lookahead).min(KEYS_END);
            let new = window.end..end;
            window.end = window.end.max(end);
            for index in new {
                let hash = searched.keys.hash(other, index)?;
                self.keys.insert(hash, KeyPath { account, chain: other, index });
            }
        }
        Ok(())
    }

    /// The accounts with used keys.
    pub(crate) fn used_accounts(&self) -> impl Iterator<Item = u32> {
        self.accounts.iter().filter(|(_, account)| account.is_used()).map(|(number, _)| *number)
    }

    /// Begins to read the block of the main chain at a height. It must follow the block with the
    /// hash `last`.
    pub(crate) async fn begin_block<'n>(
        &mut self,
        node: &'n NodeRpc,
        height: u32,
        last: &mut Option<BlockHash>,
    ) -> Result<SearchedBlock<'n>, Error> {
        let moved = || Error::BadChain(format!("the chain changed at height {height}: try again"));
        let hash = node.block_hash(height).await.map_err(away)?.ok_or_else(moved)?;
        let block = node.block(&hash).await.map_err(away)?.ok_or_else(moved)?;
        if last.is_some_and(|last| last != block.header.previous_block) {
            return Err(moved());
        }
        let at = Timestamp::from_micros(u64::from(block.header.time) * 1_000_000);
        let mut take = |transaction: TransactionView<'_>| self.take(transaction);
        let place = BlockPlace { hash, height };
        let parts = BlockParts::read(node, block, place, &mut take).await?;
        *last = Some(hash);
        Ok(SearchedBlock { parts, at })
    }

    /// The next transactions of a block that make or spend coins of the wallet. Empty at the end of
    /// the block.
    pub(crate) async fn next_found(
        &mut self,
        block: &mut SearchedBlock<'_>,
    ) -> Result<Vec<Recovered>, Error> {
        let mut take = |transaction: TransactionView<'_>| self.take(transaction);
        let part = block.parts.next(&mut take).await?;
        let at = block.at;
        let recovered = |Found { transaction, proof, picked }: Found<Taken>| {
            picked.recovered(transaction, Some(proof), at)
        };
        Ok(part.into_iter().map(recovered).collect())
    }

    /// Takes note of a transaction if it makes or spends coins of the wallet and the books lack it.
    fn take(&mut self, transaction: TransactionView<'_>) -> Result<Option<(Txid, Taken)>, Error> {
        let pays_key =
            |script| public_key_hash(script).is_some_and(|it| self.keys.contains_key(it));
        if !transaction.outputs().any(|(_, script)| pays_key(script))
            && !transaction.spent().any(|spent| self.coins.contains_key(&spent))
        {
            return Ok(None);
        }
        let txid = transaction.txid();
        if self.known.contains(&txid) {
            return Ok(None);
        }
        let spent = transaction.spent().filter_map(|outpoint| {
            let maker = self.coins.remove(&outpoint)?;
            Some(ReceiptKey { maker, vout: outpoint.vout })
        });
        let spends = spent.collect();
        let receipts = self.own_outputs(transaction)?;
        self.last_number += 1;
        for (vout, _) in &receipts {
            self.coins.insert(OutPoint { txid, vout: *vout }, self.last_number);
        }
        Ok(Some((txid, Taken { number: self.last_number, receipts, spends })))
    }

    /// The outputs that pay to keys of the wallet. Records these keys as used.
    fn own_outputs(
        &mut self,
        transaction: TransactionView<'_>,
    ) -> Result<Vec<(u32, KeyPath)>, Error> {
        let mut own = Vec::new();
        for (vout, (_, script)) in (0_u32..).zip(transaction.outputs()) {
            let hash = public_key_hash(script);
            let Some(path) = hash.and_then(|hash| self.keys.get(hash).copied()) else { continue };
            own.push((vout, path));
            self.note_used(path)?;
        }
        Ok(own)
    }

    pub(crate) fn used_numbers(&self, lookahead: u32) -> SkipNumbers {
        let beyond = |used_end: u32| used_end.saturating_add(lookahead).min(KEYS_END - 1);
        let first = &self.accounts[&0];
        SkipNumbers {
            invoices: beyond(first.receive.used_end),
            users: beyond(0),
            change: first.change.used_end,
        }
    }
}

fn view(transaction: &EncodedTransaction) -> TransactionView<'_> {
    transaction.view().expect("it was decoded before")
}
