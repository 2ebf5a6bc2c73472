//! Books: whether the balance and the coins are what the stored transactions and their proofs make
//! them.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use bsv_network::NodeRpc;
use bsv_tx::{BlockHash, MerkleRoot, OutPoint, Script, Transaction, Txid};

use crate::error::Error;
use crate::model::coin::{Chain, KeyPath};
use crate::model::payment::{BlockPlace, Proof, Purpose, TransactionState};
use crate::store::WalletStore;
use crate::wallet::Wallet;
use crate::wallet::receive::away;
use crate::wallet::seed::WalletKeys;

/// Something that a store knows about money.
#[derive(Debug)]
pub enum LedgerItem {
    /// A transaction, in the order of the numbers.
    Transaction(Box<LedgerTransaction>),
    /// An invoice that is paid.
    PaidInvoice {
        /// Its number.
        number: u64,
        /// Whether there is a settled payment of it.
        has_payment: bool,
    },
    /// What is kept of them all; the last item.
    Totals(LedgerTotals),
}

/// A transaction, and all that is stored with it.
#[derive(Debug)]
pub struct LedgerTransaction {
    /// Its number.
    pub number: u64,
    /// The id that is on record.
    pub txid: Txid,
    /// The transaction, if its bytes are there and can be read.
    pub transaction: Option<Transaction>,
    /// What it is for.
    pub purpose: Purpose,
    /// Where it stands.
    pub state: TransactionState,
    /// What is on record as paid by it.
    pub satoshis: u64,
    /// What is on record as its fee, of a payment by the wallet.
    pub fee: Option<u64>,
    /// The block that it is said to be in.
    pub block: Option<BlockPlace>,
    /// The proof of that.
    pub proof: Option<Proof>,
    /// Whether the list of what is in blocks has it there.
    pub is_listed_as_mined: bool,
    /// Whether it is looked after.
    pub is_followed: bool,
    /// Whether the invoice that it is for is paid, or deleted; true where it is for none.
    pub is_invoice_paid: bool,
    /// The coins that it makes.
    pub coins: Vec<LedgerCoin>,
    /// The coins that it spends.
    pub spends: Vec<LedgerSpend>,
}

/// A coin, with the transaction that makes it.
#[derive(Debug)]
pub struct LedgerCoin {
    /// The index of the output.
    pub vout: u32,
    /// The amount.
    pub satoshis: u64,
    /// The key.
    pub key: KeyPath,
    /// What spends it, or is to.
    pub spender: Option<LedgerSpender>,
    /// Whether it is listed as one that can be chosen.
    pub is_spendable: bool,
}

/// What spends a coin.
#[derive(Debug)]
pub struct LedgerSpender {
    /// The number of the transaction.
    pub number: u64,
    /// Where that stands, if it is there.
    pub state: Option<TransactionState>,
    /// Whether it is listed there that it spends the coin.
    pub is_listed: bool,
}

/// A coin, with a transaction that spends it.
#[derive(Debug)]
pub struct LedgerSpend {
    /// Where it is, if the transaction is there that makes it.
    pub outpoint: Option<OutPoint>,
    /// The amount; 0 where the coin is missing.
    pub satoshis: u64,
    /// The number of the transaction that is on record as spending it.
    pub spender: Option<u64>,
}

/// What is kept of all transactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LedgerTotals {
    /// The balance, in satoshis.
    pub balance: u64,
    /// The last number that a transaction was given.
    pub last_transaction: u64,
    /// How many keys for change were given out.
    pub last_change: u64,
    /// Whether an invoice has a number that was not given out.
    pub is_invoice_beyond_last: bool,
    /// How many transactions there are.
    pub transactions: u64,
    /// How many of them with their bytes.
    pub raw: u64,
    /// How many coins.
    pub coins: u64,
    /// How many of them are listed as ones that can be chosen.
    pub spendable: u64,
    /// How many times a transaction is listed as spending one.
    pub spends: u64,
    /// How many transactions are listed as being in blocks.
    pub mined: u64,
}

/// What was found when the books were read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BooksCheck {
    /// How many transactions were looked at.
    pub transactions: u64,
    /// How many coins count to the balance.
    pub coins: u64,
    /// How many proofs lead from a transaction to a Merkle root.
    pub proofs: u64,
    /// In how many blocks.
    pub blocks: u64,
    /// How many of these blocks the node has in its main chain with that root; nothing without a node.
    pub blocks_in_chain: Option<u64>,
    /// The balance that is kept, in satoshis.
    pub balance: u64,
    /// The balance that the coins add up to.
    pub recomputed: u64,
    /// What does not fit, the first [`MAX_DIFFERENCES`](Self::MAX_DIFFERENCES) of it.
    pub differences: Vec<String>,
    /// How much more does not fit.
    pub further_differences: u64,
}

impl BooksCheck {
    /// How many differences are told.
    pub const MAX_DIFFERENCES: usize = 100;

    fn differ(&mut self, difference: impl fmt::Display) {
        if self.differences.len() < Self::MAX_DIFFERENCES {
            self.differences.push(difference.to_string());
        } else {
            self.further_differences += 1;
        }
    }
}

impl<S: WalletStore> Wallet<S> {
    /// Recomputes the balance and the coins from the stored transactions and their proofs, as of one
    /// moment and off the disk. With a node, the blocks of the proofs are looked up in its main chain.
    /// Nothing is changed.
    pub async fn verify_books(&self) -> Result<BooksCheck, Error> {
        let keys = Arc::clone(&self.keys);
        let books = self.store.fold_ledger(Books::default(), move |books, item| match item {
            LedgerItem::Transaction(transaction) => books.add(&transaction, &keys),
            LedgerItem::PaidInvoice { has_payment: true, .. } => {}
            LedgerItem::PaidInvoice { number, .. } => {
                let difference = format!("invoice {number} is paid, but by no settled transaction");
                books.check.differ(difference);
            }
            LedgerItem::Totals(totals) => books.compare(&totals),
        });
        let Books { mut check, blocks, .. } = books.await?;
        check.blocks = blocks.len() as u64;
        if let Some(node) = &self.node {
            check.blocks_in_chain = Some(count_in_chain(node, &blocks, &mut check).await?);
        }
        Ok(check)
    }
}

/// A block as proofs tell of it.
#[derive(Clone, Copy)]
struct ProvedBlock {
    height: u32,
    root: MerkleRoot,
    /// A transaction that is proved to be in it.
    transaction: u64,
}

/// What is kept while the ledger is read: of blocks, but of no single coin.
#[derive(Default)]
struct Books {
    check: BooksCheck,
    blocks: HashMap<BlockHash, ProvedBlock>,
    counted: LedgerTotals,
}

impl Books {
    fn add(&mut self, it: &LedgerTransaction, keys: &WalletKeys) {
        self.check.transactions += 1;
        let counted = &mut self.counted;
        counted.transactions += 1;
        counted.last_transaction = it.number;
        counted.coins += it.coins.len() as u64;
        counted.spends += it.spends.len() as u64;
        counted.mined += u64::from(it.is_listed_as_mined);
        for difference in differences_of(it, keys) {
            self.check.differ(format!("transaction {} ({}): {difference}", it.number, it.txid));
        }
        self.counted.raw += u64::from(it.transaction.is_some());
        for coin in &it.coins {
            self.add_coin(it.state, coin);
        }
        self.add_proof(it);
    }

    fn add_coin(&mut self, maker: TransactionState, coin: &LedgerCoin) {
        let spender = coin.spender.as_ref();
        let is_spent = spender.and_then(|it| it.state) == Some(TransactionState::Settled);
        if maker == TransactionState::Settled && !is_spent {
            self.check.coins += 1;
            self.check.recomputed = self.check.recomputed.saturating_add(coin.satoshis);
        }
        self.counted.spendable += u64::from(coin.is_spendable);
        if coin.key.chain == Chain::Change {
            let used = u64::from(coin.key.index) + 1;
            self.counted.last_change = self.counted.last_change.max(used);
        }
    }

    fn add_proof(&mut self, it: &LedgerTransaction) {
        let (Some(block), Some(proof)) = (it.block, &it.proof) else { return };
        let Some(root) = proof.branch.root(&it.txid) else {
            let difference = format!("transaction {}: its proof leads to no root", it.number);
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
        let Self { check, counted, .. } = self;
        check.balance = kept.balance;
        if kept.balance != check.recomputed {
            let recomputed = check.recomputed;
            check.differ(format!(
                "the balance is kept as {} satoshis, and the coins add up to {recomputed}",
                kept.balance
            ));
        }
        for (what, kept, counted) in [
            ("transactions", kept.transactions, counted.transactions),
            ("transactions with their bytes", kept.raw, counted.raw),
            ("coins", kept.coins, counted.coins),
            ("coins that can be chosen", kept.spendable, counted.spendable),
            ("coins that are spent", kept.spends, counted.spends),
            ("transactions in blocks", kept.mined, counted.mined),
        ] {
            if kept != counted {
                check.differ(format!("{kept} {what} are stored, and {counted} belong together"));
            }
        }
        for (what, last, used) in [
            ("transactions", kept.last_transaction, counted.last_transaction),
            ("keys for change", kept.last_change, counted.last_change),
        ] {
            if used > last {
                check.differ(format!("{last} {what} were numbered, but number {used} is used"));
            }
        }
        if kept.is_invoice_beyond_last {
            check.differ("an invoice has a number that was not given out");
        }
    }
}

/// What does not fit together of a transaction and its coins.
fn differences_of(it: &LedgerTransaction, keys: &WalletKeys) -> Vec<String> {
    let mut found = Vec::new();
    match &it.transaction {
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
    let is_settled = it.state == TransactionState::Settled;
    for coin in &it.coins {
        let name = format!("its coin {} of {} satoshis", coin.vout, coin.satoshis);
        if coin.is_spendable != (is_settled && coin.spender.is_none()) {
            let not = if coin.is_spendable { "" } else { "not " };
            found.push(format!("{name} is {not}listed as one that can be chosen"));
        }
        if let Some(LedgerSpender { number, is_listed: false, .. }) = coin.spender {
            found.push(format!("{name} is spent by transaction {number}, which does not list it"));
        }
    }
    let is_spender = is_settled
        || (it.state == TransactionState::InFlight && matches!(it.purpose, Purpose::Outgoing(_)));
    if is_spender && it.spends.iter().any(|spend| spend.spender != Some(it.number)) {
        found.push("a coin that it spends is on record as spent by another, or not".to_owned());
    }
    if is_settled && !it.is_invoice_paid {
        found.push("it is settled, and its invoice is not paid".to_owned());
    }
    if is_settled && it.block.is_none() && !it.is_followed {
        found.push("it is in no block, and nobody looks after it".to_owned());
    }
    if it.block.is_some() && (it.proof.is_none() || !it.is_listed_as_mined) {
        found.push("it is said to be in a block, and that is not proved, or not listed".to_owned());
    }
    found
}

/// Says so if a coin is not an output of its transaction, or is not the wallet's.
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

/// Says so if a transaction does not spend what it is said to.
fn no_such_input(transaction: &Transaction, spend: &LedgerSpend) -> Option<String> {
    let mut spent = transaction.inputs.iter().map(|input| input.previous_output);
    match spend.outpoint {
        None => Some("it spends a coin that is missing".to_owned()),
        Some(outpoint) if spent.any(|it| it == outpoint) => None,
        Some(outpoint) => Some(format!("it does not spend {outpoint}, which it is said to")),
    }
}

/// Says so if what it pays, or brings back, is not what is on record.
fn wrong_amounts(it: &LedgerTransaction, transaction: &Transaction) -> Option<String> {
    let sum = |amounts: &mut dyn Iterator<Item = u64>| amounts.fold(0, u64::saturating_add);
    let made = sum(&mut it.coins.iter().map(|coin| coin.satoshis));
    let spent = sum(&mut it.spends.iter().map(|spend| spend.satoshis));
    let paid = sum(&mut transaction.outputs.iter().map(|output| output.satoshis));
    let is_right = match it.purpose {
        Purpose::Incoming(_) => it.coins.len() == 1 && made == it.satoshis,
        Purpose::Outgoing(_) => {
            it.spends.len() == transaction.inputs.len()
                && spent.checked_sub(paid) == it.fee
                && paid.checked_sub(it.satoshis) == Some(made)
        }
        Purpose::Cancellation(_) => {
            it.spends.len() == transaction.inputs.len()
                && (made, paid) == (it.satoshis, it.satoshis)
        }
        Purpose::Recovered => made == it.satoshis,
    };
    (!is_right).then(|| "what it pays or spends is not what is on record".to_owned())
}

/// Looks blocks up in the main chain, and answers how many are there as their proofs say.
async fn count_in_chain(
    node: &NodeRpc,
    blocks: &HashMap<BlockHash, ProvedBlock>,
    check: &mut BooksCheck,
) -> Result<u64, Error> {
    let mut count = 0;
    for (hash, proved) in blocks {
        let block = node.block_header(hash).await.map_err(away)?;
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
