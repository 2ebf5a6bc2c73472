//! Finding a wallet's coins with nothing but its words: by walking the chain.

use std::collections::{HashMap, HashSet};

use bsv_network::NodeRpc;
use bsv_tx::{BlockHash, OutPoint, Transaction, Txid};

use crate::error::Error;
use crate::model::coin::{Chain, KeyPath};
use crate::model::payment::{BlockPlace, Proof, Recovered, UsedNumbers};
use crate::model::time::Timestamp;
use crate::store::WalletStore;
use crate::wallet::Wallet;
use crate::wallet::receive::away;

/// How many keys in a row may be unused before the next used one.
pub const DEFAULT_LOOKAHEAD: u32 = 100_000;

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
        let mut search = Search::new(self, walk.lookahead)?;
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
                self.store.recover(found).await?;
            }
            height += 1;
            if height > tip.height {
                tip = node.tip().await.map_err(away)?;
            }
        }
        let unconfirmed = search.read_mempool(node, self.now()).await?;
        self.store.recover(unconfirmed).await?;
        self.store.pass_over(search.used_numbers(walk.lookahead)).await?;
        Ok(Recovery {
            height: height - 1,
            transactions: search.last_number,
            coins: search.coins.len() as u64,
            balance: self.balance().await?,
        })
    }
}

/// What is known on the way.
struct Search<'w, S> {
    wallet: &'w Wallet<S>,
    lookahead: u32,
    /// Hashes of public keys that outputs may pay to.
    keys: HashMap<[u8; 20], KeyPath>,
    receive: Window,
    change: Window,
    /// What was found and not spent yet: the number of the transaction that makes it.
    coins: HashMap<OutPoint, u64>,
    last_number: u64,
}

/// The keys of a chain that are looked for.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    /// Up to which number keys were derived; this one not included.
    end: u32,
    /// The number after the highest one that is used.
    used_end: u32,
}

impl Window {
    /// Takes note of a key that is used.
    fn note(&mut self, index: u32) {
        self.used_end = self.used_end.max(index + 1);
    }
}

/// Keys are derived for numbers below this.
const KEYS_END: u32 = 1 << 31;

impl<'w, S: WalletStore> Search<'w, S> {
    fn new(wallet: &'w Wallet<S>, lookahead: u32) -> Result<Self, Error> {
        let mut search = Self {
            wallet,
            lookahead,
            keys: HashMap::new(),
            receive: Window::default(),
            change: Window::default(),
            coins: HashMap::new(),
            last_number: 0,
        };
        search.extend_windows()?;
        Ok(search)
    }

    /// Derives keys up to the lookahead beyond those that are used.
    fn extend_windows(&mut self) -> Result<(), Error> {
        let Self { wallet, lookahead, keys, receive, change, .. } = self;
        for (chain, window) in [(Chain::Receive, receive), (Chain::Change, change)] {
            let end = window.used_end.saturating_add(*lookahead).min(KEYS_END);
            for index in window.end..end {
                let path = KeyPath { chain, index };
                keys.insert(wallet.keys.coin_hash(path)?, path);
            }
            window.end = window.end.max(end);
        }
        Ok(())
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
            self.coins.remove(&outpoint).map(|maker| (maker, outpoint.vout))
        });
        let spends: Vec<_> = spent.collect();
        let coins = self.own_outputs(&transaction)?;
        if spends.is_empty() && coins.is_empty() {
            return Ok(None);
        }
        self.last_number += 1;
        let txid = transaction.txid();
        for (vout, _) in &coins {
            self.coins.insert(OutPoint { txid, vout: *vout }, self.last_number);
        }
        let number = self.last_number;
        Ok(Some(Recovered { number, transaction, proof: None, coins, spends, at }))
    }

    /// The outputs that pay to keys of the wallet, which are noted as used.
    fn own_outputs(&mut self, transaction: &Transaction) -> Result<Vec<(u32, KeyPath)>, Error> {
        let mut own = Vec::new();
        for (vout, output) in (0_u32..).zip(&transaction.outputs) {
            let hash = p2pkh_hash(output.locking_script.as_bytes());
            let Some(path) = hash.and_then(|hash| self.keys.get(hash).copied()) else { continue };
            own.push((vout, path));
            match path.chain {
                Chain::Receive => self.receive.note(path.index),
                Chain::Change => self.change.note(path.index),
            }
        }
        if !own.is_empty() {
            self.extend_windows()?;
        }
        Ok(own)
    }

    fn used_numbers(&self, lookahead: u32) -> UsedNumbers {
        let beyond = |used_end: u32| used_end.saturating_add(lookahead).min(KEYS_END - 1);
        UsedNumbers {
            invoices: beyond(self.receive.used_end),
            users: beyond(0),
            change: self.change.used_end,
        }
    }
}

/// The hash that a script which pays to the hash of a public key names.
fn p2pkh_hash(script: &[u8]) -> Option<&[u8; 20]> {
    let rest = script.strip_prefix(&[0x76, 0xa9, 20])?;
    let (hash, rest) = rest.split_first_chunk::<20>()?;
    (rest == [0x88, 0xac]).then_some(hash)
}
