//! Finding a wallet's coins with nothing but its words: by walking the chain.

use std::collections::{BTreeMap, HashMap, HashSet};

use bsv_network::NodeRpc;
use bsv_tx::{BlockHash, OutPoint, Transaction, Txid};

use crate::error::Error;
use crate::ledger::{BeginAccount, Recover, Recovered, SkipNumbers};
use crate::model::coin::{Chain, KeyPath};
use crate::model::receipt::ReceiptKey;
use crate::model::time::Timestamp;
use crate::model::transaction::{BlockPlace, Proof};
use crate::store::WalletStore;
use crate::wallet::seed::{Account, WalletKeys, account_of};
use crate::wallet::{Wallet, away};

/// How many keys in a row may be unused before the next used one.
pub const DEFAULT_LOOKAHEAD: u32 = 100_000;

/// How many keys of each account are looked for besides, that a restore on some day may have begun, until one
/// of them is found to be used: of invoices, and of change, whose keys are used one after the other.
const TRIED_KEYS: [(Chain, u32); 2] = [(Chain::Receive, 1_000), (Chain::Change, 20)];

/// How a wallet is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walk {
    /// The height of the first block that is read: one from before the wallet received anything.
    pub from_height: u32,
    /// How many keys in a row may be unused, among those of invoices and among those for change.
    pub lookahead: u32,
}

/// What was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// The height of the last block that was read.
    pub height: u32,
    /// The transactions that make or spend coins of the wallet.
    pub transactions: u64,
    /// The coins that are left.
    pub coins: u64,
    /// What they are worth, in satoshis.
    pub balance: u64,
}

impl<S: WalletStore> Wallet<S> {
    /// Finds the coins of a new wallet, whose seed was used before, in the blocks from a height on and
    /// in the mempool, and stores them. `progress` is told the height that was read and the last one.
    ///
    /// Numbers of keys are given out again only beyond the lookahead, since somebody may know the keys
    /// of invoices that were not paid, and of users. What invoices and users there were is not found.
    pub async fn recover(
        &self,
        walk: Walk,
        mut progress: impl FnMut(u32, u32),
    ) -> Result<Recovery, Error> {
        let node = self.node()?;
        let mut search = Search::new(&self.keys, walk.lookahead)?;
        let mut tip = node.tip().await.map_err(away)?;
        if walk.from_height > tip.height {
            let (from, last) = (walk.from_height, tip.height);
            let reason = format!("block {from} is beyond the node's last one, {last}");
            return Err(Error::BadChain(reason));
        }
        let (mut height, mut last) = (walk.from_height, None);
        while height <= tip.height {
            progress(height, tip.height);
            let found = search.read_block(node, height, &mut last).await?;
            if !found.is_empty() {
                self.store.execute(Recover { found }).await?;
            }
            height += 1;
            if height > tip.height {
                tip = node.tip().await.map_err(away)?;
            }
        }
        let unconfirmed = search.read_mempool(node, self.now()).await?;
        self.store.execute(Recover { found: unconfirmed }).await?;
        self.store.execute(search.used_numbers(walk.lookahead)).await?;
        let last_used = search.used_accounts().max().unwrap_or(0);
        let account = account_of(Timestamp::of_system()).max(last_used + 1);
        self.store.execute(BeginAccount { account }).await?;
        Ok(Recovery {
            height: height - 1,
            transactions: search.last_number,
            coins: search.coins.len() as u64,
            balance: self.balance().await?,
        })
    }
}

impl<S: WalletStore> Wallet<S> {
    /// Has the first keys of a new wallet not given out, whose seed was used before, and of which nothing can
    /// be found without a node.
    pub async fn skip_keys(&self, lookahead: u32) -> Result<(), Error> {
        let skip = SkipNumbers { invoices: lookahead, users: lookahead, change: lookahead };
        self.store.execute(skip).await?;
        self.begin_account().await.map(drop)
    }
}

/// What is known on the way.
struct Search {
    lookahead: u32,
    /// Hashes of public keys that outputs may pay to.
    keys: HashMap<[u8; 20], KeyPath>,
    /// The accounts that may have been begun.
    accounts: BTreeMap<u32, SearchedAccount>,
    /// What was found and not spent yet: the number of the transaction that makes it.
    coins: HashMap<OutPoint, u64>,
    last_number: u64,
}

/// An account whose keys are looked for.
struct SearchedAccount {
    keys: Account,
    receive: Window,
    change: Window,
}

/// The keys of a chain that are looked for.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    /// Up to which number keys were derived; this one not included.
    end: u32,
    /// The number after the highest one that is used.
    used_end: u32,
}

/// Keys are derived for numbers below this.
const KEYS_END: u32 = 1 << 31;

impl SearchedAccount {
    fn window(&mut self, chain: Chain) -> &mut Window {
        match chain {
            Chain::Receive => &mut self.receive,
            Chain::Change => &mut self.change,
        }
    }

    fn is_used(&self) -> bool {
        self.receive.used_end > 0 || self.change.used_end > 0
    }
}

impl Search {
    fn new(keys: &WalletKeys, lookahead: u32) -> Result<Self, Error> {
        let mut search = Self {
            lookahead,
            keys: HashMap::new(),
            accounts: BTreeMap::new(),
            coins: HashMap::new(),
            last_number: 0,
        };
        // The tip may be of tomorrow already where it is.
        for number in 0..=account_of(Timestamp::of_system()) + 1 {
            let keys = keys.account(number)?;
            let (receive, change) = (Window::default(), Window::default());
            search.accounts.insert(number, SearchedAccount { keys, receive, change });
        }
        search.derive_first_keys()?;
        Ok(search)
    }

    /// Derives the keys of all accounts that are looked for before any is found, on all processors.
    fn derive_first_keys(&mut self) -> Result<(), Error> {
        let mut ranges = Vec::new();
        for (number, account) in &mut self.accounts {
            for (chain, tried) in TRIED_KEYS {
                let end = if *number == 0 { self.lookahead } else { tried.min(self.lookahead) };
                account.window(chain).end = end;
                ranges.push((*number, chain, end));
            }
        }
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let accounts = &self.accounts;
        let derive = |ranges: &[(u32, Chain, u32)]| -> Result<Vec<_>, Error> {
            let mut derived = Vec::new();
            for &(account, chain, end) in ranges {
                for index in 0..end {
                    let hash = accounts[&account].keys.hash(chain, index)?;
                    derived.push((hash, KeyPath { account, chain, index }));
                }
            }
            Ok(derived)
        };
        let derive = &derive;
        let parts = ranges.chunks(ranges.len().div_ceil(threads));
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

    /// Takes note of a key that is used, and derives keys up to the lookahead beyond it.
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

    /// The accounts of which keys were found.
    fn used_accounts(&self) -> impl Iterator<Item = u32> {
        self.accounts.iter().filter(|(_, account)| account.is_used()).map(|(number, _)| *number)
    }

    /// Reads the block of the main chain at a height, after the one of the hash `last`.
    async fn read_block(
        &mut self,
        node: &NodeRpc,
        height: u32,
        last: &mut Option<BlockHash>,
    ) -> Result<Vec<Recovered>, Error> {
        let moved = || Error::BadChain(format!("it changed at height {height}: try again"));
        let hash = node.block_hash(height).await.map_err(away)?.ok_or_else(moved)?;
        let mut block = node.block(&hash).await.map_err(away)?.ok_or_else(moved)?;
        if last.is_some_and(|last| last != block.header.previous_block) {
            return Err(moved());
        }
        let at = Timestamp::from_micros(u64::from(block.header.time) * 1_000_000);
        let (mut found, mut position) = (Vec::new(), 0);
        while let Some(transaction) = block.next().await.map_err(away)? {
            if let Some(recovered) = self.take(transaction, at)? {
                found.push((position, recovered));
            }
            position += 1;
        }
        *last = Some(hash);
        let proved = found.into_iter().map(|(position, recovered)| {
            let branch = block.branch(position).ok_or_else(moved)?;
            let proof = Proof { block: BlockPlace { hash, height }, branch };
            Ok(Recovered { proof: Some(proof), ..recovered })
        });
        proved.collect()
    }

    /// Looks through what is in no block. A transaction may come before one whose coins it spends, so
    /// that all are looked through until no more are found.
    async fn read_mempool(
        &mut self,
        node: &NodeRpc,
        now: Timestamp,
    ) -> Result<Vec<Recovered>, Error> {
        let txids = node.mempool().await.map_err(away)?;
        let (mut found, mut known) = (Vec::<Transaction>::new(), HashSet::<Txid>::new());
        let mut made = HashSet::<OutPoint>::new();
        loop {
            let count = found.len();
            for txid in
                txids.iter().filter(|txid| !known.contains(*txid)).copied().collect::<Vec<_>>()
            {
                let Some(transaction) = node.transaction(&txid).await.map_err(away)? else {
                    continue;
                };
                let own = self.own_outputs(&transaction)?;
                let spends_own = transaction.inputs.iter().any(|input| {
                    let spent = &input.previous_output;
                    self.coins.contains_key(spent) || made.contains(spent)
                });
                if spends_own || !own.is_empty() {
                    made.extend(own.iter().map(|(vout, _)| OutPoint { txid, vout: *vout }));
                    known.insert(txid);
                    found.push(transaction);
                }
            }
            if found.len() == count {
                break;
            }
        }
        let mut recovered = Vec::new();
        while !found.is_empty() {
            let waiting: HashSet<_> = found.iter().map(Transaction::txid).collect();
            let (later, ready): (Vec<_>, Vec<_>) = found.into_iter().partition(|transaction| {
                let mut spent = transaction.inputs.iter().map(|input| input.previous_output.txid);
                spent.any(|txid| waiting.contains(&txid))
            });
            for transaction in ready {
                recovered.extend(self.take(transaction, now)?);
            }
            found = later;
        }
        Ok(recovered)
    }

    /// Takes a transaction, if it makes or spends coins of the wallet.
    fn take(
        &mut self,
        transaction: Transaction,
        at: Timestamp,
    ) -> Result<Option<Recovered>, Error> {
        let spent = transaction.inputs.iter().filter_map(|input| {
            let outpoint = input.previous_output;
            let maker = self.coins.remove(&outpoint)?;
            Some(ReceiptKey { maker, vout: outpoint.vout })
        });
        let spends: Vec<_> = spent.collect();
        let receipts = self.own_outputs(&transaction)?;
        if spends.is_empty() && receipts.is_empty() {
            return Ok(None);
        }
        self.last_number += 1;
        let txid = transaction.txid();
        for (vout, _) in &receipts {
            self.coins.insert(OutPoint { txid, vout: *vout }, self.last_number);
        }
        let number = self.last_number;
        Ok(Some(Recovered { number, transaction, proof: None, receipts, spends, at }))
    }

    /// The outputs that pay to keys of the wallet, which are noted as used.
    fn own_outputs(&mut self, transaction: &Transaction) -> Result<Vec<(u32, KeyPath)>, Error> {
        let mut own = Vec::new();
        for (vout, output) in (0_u32..).zip(&transaction.outputs) {
            let hash = p2pkh_hash(output.locking_script.as_bytes());
            let Some(path) = hash.and_then(|hash| self.keys.get(hash).copied()) else { continue };
            own.push((vout, path));
            self.note_used(path)?;
        }
        Ok(own)
    }

    fn used_numbers(&self, lookahead: u32) -> SkipNumbers {
        let beyond = |used_end: u32| used_end.saturating_add(lookahead).min(KEYS_END - 1);
        let first = &self.accounts[&0];
        SkipNumbers {
            invoices: beyond(first.receive.used_end),
            users: beyond(0),
            change: first.change.used_end,
        }
    }
}

/// The hash that a script which pays to the hash of a public key names.
fn p2pkh_hash(script: &[u8]) -> Option<&[u8; 20]> {
    let rest = script.strip_prefix(&[0x76, 0xa9, 20])?;
    let (hash, rest) = rest.split_first_chunk::<20>()?;
    (rest == [0x88, 0xac]).then_some(hash)
}
