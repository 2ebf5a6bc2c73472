//! Verification of the books: whether the balance and the coins follow from the stored transactions
//! and their proofs.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use bsv_network::{NetworkSource, OutputState};
use bsv_tx::{BlockHash, MerkleRoot, OutPoint, Script, Transaction};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use crate::error::Error;
use crate::ledger::items::{
    FoldLedger, LedgerCoin, LedgerInvoice, LedgerItem, LedgerSpend, LedgerSpender, LedgerTotals,
    LedgerTransaction,
};
use crate::ledger::queries::{GetAccounts, GetFigures};
use crate::model::coin::Chain;
use crate::model::transaction::{Purpose, TransactionState};
use crate::store::WalletStore;
use crate::wallet::Wallet;
use crate::wallet::look_ahead::LookAhead;
use crate::wallet::seed::WalletKeys;
use crate::wallet::sources::away;
use crate::wallet::watch::{Missing, Search, tip_from};

/// The result of verifying the books.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BooksCheck {
    /// How many transactions were looked at.
    pub transactions: u64,
    /// How many of them could not be compared with their bytes, because those are dropped.
    pub bytes_dropped: u64,
    /// How many coins count in the balance.
    pub coins: u64,
    /// How many proofs lead from a transaction to a Merkle root.
    pub proofs: u64,
    /// How many blocks these proofs refer to.
    pub blocks: u64,
    /// How many of these blocks the node has in its main chain with that root. `None` without a
    /// node.
    pub blocks_in_chain: Option<u64>,
    /// Whether the network was asked about each coin. Services do not tell which coins are unspent.
    pub are_coins_compared: bool,
    /// The height from which on the chain was searched for what the books lack. `None` if it was not
    /// searched.
    pub searched_from: Option<u32>,
    /// The stored balance, in satoshis.
    pub balance: u64,
    /// The sum of the coins, in satoshis.
    pub recomputed: u64,
    /// The differences that were found, at most [`MAX_DIFFERENCES`](Self::MAX_DIFFERENCES).
    pub differences: Vec<String>,
    /// How many more differences there are.
    pub further_differences: u64,
}

impl BooksCheck {
    /// How many differences are listed.
    pub const MAX_DIFFERENCES: usize = 100;

    fn differ(&mut self, difference: impl fmt::Display) {
        if self.differences.len() < Self::MAX_DIFFERENCES {
            self.differences.push(difference.to_string());
        } else {
            self.further_differences += 1;
        }
    }
}

impl Wallet {
    /// Recomputes the balance and the coins from the stored transactions and their proofs. It reads
    /// them from the disk, as of one moment, and changes nothing. With a node, it also looks up the
    /// blocks of the proofs in the main chain, and asks the node about each coin. With
    /// `from_height`, the books must have all transactions of the wallet in the blocks from that
    /// height on and in the mempool, and `progress` gets the height of each of these blocks and the
    /// height of the last one.
    pub async fn verify_books(
        &self,
        from_height: Option<u32>,
        mut progress: impl FnMut(u32, u32),
    ) -> Result<BooksCheck, Error> {
        let keys = Arc::clone(&self.keys);
        let (sender, coins) = mpsc::channel(COINS_IN_QUEUE);
        let sources = self.sources.as_ref();
        let are_coins_compared = sources.is_some_and(|it| it.operating.reads_blocks());
        let mut coins_to_ask = are_coins_compared.then(|| CoinsToAsk::new(sender));
        let step = move |books: &mut Books, item| match item {
            LedgerItem::Transaction(transaction) => {
                books.add(&transaction, &keys);
                if let Some(coins) = &mut coins_to_ask {
                    coins.add(&transaction);
                }
            }
            LedgerItem::Invoice(invoice) => books.add_invoice(&invoice),
            LedgerItem::Totals(totals) => {
                books.compare(&totals);
                if let Some(mut coins) = coins_to_ask.take() {
                    coins.send();
                }
            }
        };
        let read = self.store.verify(FoldLedger { start: Books::default(), step });
        let (books, asked) = tokio::join!(read, self.ask_about_coins(coins));
        let Books { mut check, blocks, last_change, .. } = books?;
        check.blocks = blocks.len() as u64;
        check.are_coins_compared = are_coins_compared;
        if let Some(sources) = &self.sources {
            asked?.into_iter().for_each(|difference| check.differ(difference));
            check.blocks_in_chain =
                Some(count_in_chain(&sources.operating, &blocks, &mut check).await?);
        }
        if let Some(from_height) = from_height {
            self.find_missing(from_height, last_change, &mut check, &mut progress).await?;
            check.searched_from = Some(from_height);
        }
        Ok(check)
    }

    /// Finds the transactions of the wallet from a height on that the books lack. They may pay any key
    /// that was given out.
    async fn find_missing(
        &self,
        from_height: u32,
        last_change: HashMap<u32, u64>,
        check: &mut BooksCheck,
        progress: &mut impl FnMut(u32, u32),
    ) -> Result<(), Error> {
        let source = &self.sources()?.operating;
        tip_from(source, from_height).await?;
        let count = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        let change = last_change.into_iter().map(|(account, used)| (account, count(used)));
        let keys = self.given_out_keys(change).await?;
        let tell = &mut |difference| check.differ(difference);
        let mut search = Search { keys, missing: Some(Missing::new(tell)) };
        self.walk(source, from_height, &mut search, progress).await?;
        Ok(())
    }

    /// The keys of all invoices, which may not have been shown, and those for change up to an index of
    /// each account.
    pub(crate) async fn given_out_keys(
        &self,
        change: impl Iterator<Item = (u32, u32)>,
    ) -> Result<LookAhead, Error> {
        let last_invoice = self.store.get(GetFigures).await?.last_invoice;
        let accounts = self.store.list(GetAccounts).await?;
        let starts = accounts.iter().map(|(number, it)| (*number, it.last_invoice_before));
        let starts = [(0, 0)].into_iter().chain(starts);
        let ends = accounts.iter().map(|(_, it)| it.last_invoice_before).chain([last_invoice]);
        let receive = starts.zip(ends).map(|((account, start), end)| {
            let end = u32::try_from(end - start + 1).unwrap_or(u32::MAX);
            (account, Chain::Receive, end)
        });
        let change = change.map(|(account, end)| (account, Chain::Change, end));
        LookAhead::up_to(&self.keys, receive.chain(change), 0)
    }

    /// Asks the node about coins, and returns the differences.
    async fn ask_about_coins(
        &self,
        mut coins: mpsc::Receiver<Vec<(u64, OutPoint)>>,
    ) -> Result<Vec<String>, Error> {
        let mut differences = Vec::new();
        while let Some(coins) = coins.recv().await {
            let outpoints: Vec<_> = coins.iter().map(|(_, outpoint)| *outpoint).collect();
            let states = self.sources()?.operating.coins(&outpoints).await.map_err(away)?;
            for ((number, outpoint), state) in coins.into_iter().zip(states) {
                let fault = match state {
                    OutputState::Unspent { .. } => continue,
                    OutputState::Spent { by } => format!("is spent by {by} in the mempool"),
                    OutputState::Missing => "is spent, or has never existed".to_owned(),
                };
                let vout = outpoint.vout;
                differences.push(format!(
                    "transaction {number} ({}): its coin {vout} {fault} according to the node",
                    outpoint.txid
                ));
            }
        }
        Ok(differences)
    }
}

/// How many coins the node is asked about at once.
const COINS_AT_ONCE: usize = 1000;
/// How many such questions may wait while the books are read.
const COINS_IN_QUEUE: usize = 4;

/// Collects the coins that the node is asked about while the books are read.
struct CoinsToAsk {
    coins: Vec<(u64, OutPoint)>,
    sender: mpsc::Sender<Vec<(u64, OutPoint)>>,
}

impl CoinsToAsk {
    fn new(sender: mpsc::Sender<Vec<(u64, OutPoint)>>) -> Self {
        Self { coins: Vec::new(), sender }
    }

    /// Adds the coins of a transaction that are neither spent nor reserved.
    fn add(&mut self, it: &LedgerTransaction) {
        if !it.state.counts() {
            return;
        }
        for coin in it.coins.iter().filter(|coin| coin.spender.is_none()) {
            self.coins.push((it.number, OutPoint { txid: it.txid, vout: coin.vout }));
        }
        if self.coins.len() >= COINS_AT_ONCE {
            self.send();
        }
    }

    fn send(&mut self) {
        // The receiver is gone if asking the node has failed.
        let _ = self.sender.blocking_send(std::mem::take(&mut self.coins));
    }
}

/// A block, as proofs describe it.
#[derive(Clone, Copy)]
struct ProvedBlock {
    height: u32,
    root: MerkleRoot,
    /// A transaction that is proved to be in it.
    transaction: u64,
}

/// What is kept in memory while the books are read: facts about blocks, but not about single coins.
#[derive(Default)]
struct Books {
    check: BooksCheck,
    blocks: HashMap<BlockHash, ProvedBlock>,
    counted: LedgerTotals,
    /// The number of used keys for change of each account.
    last_change: HashMap<u32, u64>,
}

impl Books {
    fn add(&mut self, it: &LedgerTransaction, keys: &WalletKeys) {
        self.check.transactions += 1;
        self.counted.unproven_coins += it.unproven_coins;
        self.counted.exposed = self.counted.exposed.saturating_add(it.exposed);
        self.check.bytes_dropped += u64::from(it.are_bytes_dropped);
        let counted = &mut self.counted;
        counted.transactions += 1;
        counted.last_transaction = it.number;
        counted.coins += it.coins.len() as u64;
        counted.spends += it.spends.len() as u64;
        counted.mined += u64::from(it.is_listed_as_mined);
        counted.payments += it.payments;
        for difference in differences_of(it, keys) {
            self.check.differ(format!("transaction {} ({}): {difference}", it.number, it.txid));
        }
        self.counted.raw += u64::from(it.transaction.is_some());
        for coin in &it.coins {
            self.add_coin(coin);
        }
        self.add_proof(it);
    }

    fn add_invoice(&mut self, it: &LedgerInvoice) {
        let LedgerInvoice { number, received, recounted, .. } = it;
        self.counted.counted += recounted.payments;
        self.counted.shallow += it.shallow;
        self.counted.wishes += recounted.wishes;
        if it.is_paid && !it.is_marked && recounted.payments == 0 {
            let difference = format!("invoice {number} is paid, but has no payment that counts");
            self.check.differ(difference);
        }
        if received.sum() != recounted.sum() {
            let (kept, sum) = (received.sum(), recounted.sum());
            self.check.differ(format!(
                "{kept} satoshis are kept as received for invoice {number}, but its payments add \
                 up to {sum}"
            ));
        } else if received != recounted {
            self.check.differ(format!(
                "what is kept about the payments of invoice {number} ({received:?}) does not \
                 follow from them ({recounted:?})"
            ));
        }
        if !it.is_listed {
            self.check.differ(format!(
                "a payment of invoice {number} or a wish for refunds is not in the list of those \
                 that count"
            ));
        }
    }

    fn add_coin(&mut self, coin: &LedgerCoin) {
        match self.counted.holdings.moved(coin.satoshis, None, coin.holding) {
            Some(holdings) => self.counted.holdings = holdings,
            None => self.check.differ("the sum of the coins is too large for a number"),
        }
        self.counted.spendable += u64::from(coin.is_spendable);
        if coin.key.chain == Chain::Change {
            let used = u64::from(coin.key.index) + 1;
            let last = self.last_change.entry(coin.key.account).or_default();
            *last = used.max(*last);
        }
    }

    fn add_proof(&mut self, it: &LedgerTransaction) {
        let (Some(block), Some(proof)) = (it.state.block(), &it.proof) else { return };
        let Some(root) = proof.branch.root(&it.txid) else {
            let difference =
                format!("transaction {}: its proof does not lead to a Merkle root", it.number);
            return self.check.differ(difference);
        };
        self.check.proofs += 1;
        let proved = ProvedBlock { height: block.height, root, transaction: it.number };
        let known = *self.blocks.entry(block.hash).or_insert(proved);
        if (known.height, known.root) != (proved.height, proved.root) {
            self.check.differ(format!(
                "block {}: transactions {} and {} prove different roots or heights of it",
                block.hash, known.transaction, it.number
            ));
        }
    }

    fn compare(&mut self, kept: &LedgerTotals) {
        let Self { check, counted, last_change, .. } = self;
        check.coins = counted.holdings.coins;
        check.balance = kept.holdings.balance();
        check.recomputed = counted.holdings.balance();
        if kept.holdings != counted.holdings {
            check.differ(format!(
                "the balance is kept as {} satoshis ({}), but the coins add up to {} ({})",
                check.balance, kept.holdings, check.recomputed, counted.holdings
            ));
        }
        for (what, kept, counted) in [
            ("transactions", kept.transactions, counted.transactions),
            ("transactions with their bytes", kept.raw, counted.raw),
            ("coins", kept.coins, counted.coins),
            ("spendable coins", kept.spendable, counted.spendable),
            ("spent coins", kept.spends, counted.spends),
            ("mined transactions", kept.mined, counted.mined),
            ("payments of invoices", kept.payments, counted.payments),
            ("payments that count", kept.counted, counted.counted),
            ("payments that are not deep enough", kept.shallow, counted.shallow),
            ("wishes for refunds", kept.wishes, counted.wishes),
            ("satoshis that count by a word alone", kept.exposed, counted.exposed),
            ("coins of unproven transactions", kept.unproven_coins, counted.unproven_coins),
        ] {
            if kept != counted {
                check.differ(format!(
                    "{kept} {what} are stored or listed, but {counted} of them fit together"
                ));
            }
        }
        for (what, last, used) in [
            ("transactions", kept.last_transaction, counted.last_transaction),
            (
                "keys for change",
                kept.last_change,
                last_change.get(&kept.account).copied().unwrap_or(0),
            ),
        ] {
            if used > last {
                check.differ(format!(
                    "{last} {what} were given a number, but number {used} is used"
                ));
            }
        }
        if kept.is_invoice_beyond_last {
            check.differ("an invoice has a number that was not given out");
        }
    }
}

/// The differences within a transaction and its coins.
fn differences_of(it: &LedgerTransaction, keys: &WalletKeys) -> Vec<String> {
    let mut found = Vec::new();
    match &it.transaction {
        None if it.are_bytes_dropped => {}
        Some(_) if it.are_bytes_dropped => {
            found.push(
                "its bytes are stored, although its record says that they are dropped".to_owned(),
            );
        }
        None => found.push("its bytes are missing or cannot be read".to_owned()),
        Some(transaction) if transaction.txid() != it.txid => {
            found.push(format!("its bytes are those of {}", transaction.txid()));
        }
        Some(transaction) => {
            found
                .extend(it.coins.iter().filter_map(|coin| no_such_output(transaction, coin, keys)));
            found.extend(it.spends.iter().filter_map(|spend| no_such_input(transaction, spend)));
            found.extend(wrong_amounts(it, transaction));
        }
    }
    for coin in &it.coins {
        let name = format!("its coin {} of {} satoshis", coin.vout, coin.satoshis);
        let is_free = it.can_be_spent && coin.spender.is_none();
        if coin.is_spendable != (is_free && !coin.is_immature) {
            let not = if coin.is_spendable { "" } else { "not " };
            found.push(format!("{name} is {not}listed as spendable"));
        }
        // The transaction that has reserved it may not be signed yet.
        if let Some(LedgerSpender { number, is_listed: false, state: Some(_) }) = coin.spender {
            found.push(format!("{name} is spent by transaction {number}, which does not list it"));
        }
    }
    let holds_coins =
        it.state.spends() || (it.state.is_open() && matches!(it.purpose, Purpose::Outgoing(_)));
    // Of two rivals only one holds the coin.
    if holds_coins
        && !it.has_rival
        && it.spends.iter().any(|spend| spend.spender != Some(it.number))
    {
        found.push(
            "a coin that it spends is recorded as spent by another transaction, or as not spent"
                .to_owned(),
        );
    }
    if !it.are_payments_right {
        found.push("what it pays to invoices is not what is listed".to_owned());
    }
    let is_mined = it.state.block().is_some();
    if !is_mined && !it.state.is_lost() && !it.is_followed {
        found.push("it is in no block, and the wallet does not follow it".to_owned());
    }
    if is_mined && (it.proof.is_none() || !it.is_listed_as_mined) {
        found.push(
            "its state says that it is in a block, but there is no proof of that, or it is not \
             listed there"
                .to_owned(),
        );
    }
    if matches!(it.state, TransactionState::Contested { .. }) {
        found.push("the network has shown it before, and does not show it now".to_owned());
    }
    found
}

/// The difference, if a coin is not an output of its transaction or does not pay the wallet.
fn no_such_output(
    transaction: &Transaction,
    coin: &LedgerCoin,
    keys: &WalletKeys,
) -> Option<String> {
    let output = transaction.outputs.get(coin.vout as usize);
    let script = keys.coin_hash(coin.key).map(|hash| Script::p2pkh(&hash)).ok();
    let is_there = output.is_some_and(|output| {
        output.satoshis == coin.satoshis && Some(&output.locking_script) == script.as_ref()
    });
    let LedgerCoin { vout, satoshis, .. } = coin;
    (!is_there).then(|| format!("its output {vout} is not {satoshis} satoshis to the wallet's key"))
}

/// The difference, if a transaction does not spend a coin that it should spend.
fn no_such_input(transaction: &Transaction, spend: &LedgerSpend) -> Option<String> {
    let mut spent = transaction.inputs.iter().map(|input| input.previous_output);
    match spend.outpoint {
        None => Some("it spends a coin that is missing".to_owned()),
        Some(outpoint) if spent.any(|it| it == outpoint) => None,
        Some(outpoint) => {
            Some(format!("it does not spend {outpoint}, although its record says so"))
        }
    }
}

/// The difference, if its amounts are not those on record.
fn wrong_amounts(it: &LedgerTransaction, transaction: &Transaction) -> Option<String> {
    let sum = |amounts: &mut dyn Iterator<Item = u64>| amounts.fold(0, u64::saturating_add);
    let made = sum(&mut it.coins.iter().map(|coin| coin.satoshis));
    let spent = sum(&mut it.spends.iter().map(|spend| spend.satoshis));
    let paid = sum(&mut transaction.outputs.iter().map(|output| output.satoshis));
    let is_right = match it.purpose {
        Purpose::Incoming(_) | Purpose::Found | Purpose::Coinbase => made == it.satoshis,
        Purpose::Outgoing(_) => {
            it.spends.len() == transaction.inputs.len()
                && spent.checked_sub(paid) == it.fee
                && paid.checked_sub(it.satoshis) == Some(made)
        }
        Purpose::Cancellation(_) => {
            it.spends.len() == transaction.inputs.len()
                && (made, paid) == (it.satoshis, it.satoshis)
        }
    };
    (!is_right).then(|| "what it pays or spends is not what is on record".to_owned())
}

/// Looks up blocks in the main chain, and returns how many are there as their proofs say.
async fn count_in_chain(
    source: &NetworkSource,
    blocks: &HashMap<BlockHash, ProvedBlock>,
    check: &mut BooksCheck,
) -> Result<u64, Error> {
    let mut count = 0;
    // Nothing is known of earlier blocks.
    let known = blocks.iter().filter(|(_, proved)| proved.height >= source.begins_at());
    for (hash, proved) in known {
        let block = source.header(hash).await.map_err(away)?;
        let fault = match block.filter(|block| block.in_main_chain) {
            None => "is not in the main chain",
            Some(block) if block.header.merkle_root != proved.root => "has another Merkle root",
            Some(block) if block.height != proved.height => "has another height",
            Some(_) => {
                count += 1;
                continue;
            }
        };
        let ProvedBlock { transaction, height, .. } = proved;
        check.differ(format!(
            "transaction {transaction}: its block {hash} of height {height} {fault}"
        ));
    }
    Ok(count)
}
