//! What a service knows: the transactions that it was given, and what the node behind it shows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard};

use bsv_network::{
    Mempool, NodeError, NodeRpc, NodeSettings, OutputState, Submitted, TransactionPlace,
};
use bsv_tx::{BlockHash, BlockHeader, Bump, MerkleBranch, Transaction, TxIn, TxOut, Txid};
use serde_json::{Value, json};

use super::mood::{HeaderPart, Mood, Path, Word};
use crate::node::{block_on, solve};
use crate::payee::Request;

/// How many blocks make a mined transaction immutable.
const DEEP: u32 = 100;

#[derive(Debug)]
pub(super) struct Network {
    rpc: NodeRpc,
    mood: Mutex<Mood>,
    rows: Mutex<BTreeMap<Txid, Row>>,
    /// The node's main chain, as far as it was read.
    chain: Mutex<Vec<BlockHeader>>,
    /// The transactions whose state may have changed.
    touched: Mutex<BTreeSet<Txid>>,
}

/// A transaction that a service was given.
#[derive(Clone, Debug)]
struct Row {
    transaction: Transaction,
    fate: Fate,
    /// Transactions that spend the same coins and that the service was given too.
    rivals: BTreeSet<Txid>,
    /// The blocks in which it was seen, the last one at the end.
    blocks: Vec<Place>,
    subscriptions: Vec<Subscription>,
    /// The state that subscribers were told last.
    told: Option<State>,
}

/// What became of a transaction when it was submitted.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Fate {
    Kept,
    Given,
    /// The node does not know its parents yet, or did not answer.
    Waiting,
    Refused(Refusal),
}

/// Why a transaction is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) code: u16,
    pub(super) reason: String,
    /// The transactions that spend its coins.
    pub(super) rivals: BTreeSet<Txid>,
}

/// A block that holds a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) block: BlockHash,
    pub(super) height: u32,
}

/// What a service knows of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    Received,
    Waiting,
    Seen { rivals: BTreeSet<Txid> },
    Refused { refusal: Refusal, is_rival_mined: bool },
    Mined { place: Place, path: Option<String>, is_deep: bool, left: Vec<Place> },
    Orphaned { left: Vec<Place> },
    Said(Word),
}

/// A wish to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Subscription {
    pub(super) dialect: Dialect,
    pub(super) url: Option<String>,
    pub(super) token: Option<String>,
    pub(super) is_full: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    Arcade,
    Arc,
}

/// News for the subscribers of a transaction.
#[derive(Debug)]
pub(super) struct News {
    pub(super) txid: Txid,
    pub(super) state: State,
    pub(super) subscriptions: Vec<Subscription>,
}

impl Refusal {
    pub(super) fn new(code: u16, reason: impl Into<String>) -> Self {
        Self { code, reason: reason.into(), rivals: BTreeSet::new() }
    }

    /// The members of an answer that describe the code.
    pub(super) fn described(&self) -> Value {
        let code = self.code;
        let (title, detail) = match code {
            400 => ("Bad request", "The request seems to be malformed and cannot be processed"),
            404 => ("Not found", "The requested resource could not be found"),
            460 => ("Not extended format", "Missing input scripts"),
            461 => ("Malformed transaction", "Transaction unlocking scripts are invalid"),
            462 => ("Invalid inputs", "Inputs are non-existent or spent"),
            463 => ("Malformed transaction", "Transaction is malformed and cannot be processed"),
            464 => ("Invalid outputs", "Transaction outputs are invalid"),
            465 => ("Fee too low", "Fees are insufficient"),
            466 => ("Conflicting tx found", "Transaction is valid, but there is a conflicting tx"),
            468 => ("Invalid BEEF", "Error validating BEEF"),
            469 => ("Merkle Roots validation failed", "Could not validate Merkle Roots"),
            476 => ("Transaction not final", "Transaction is not final"),
            _ => ("Generic error", "Transaction could not be processed"),
        };
        let page = format!("https://bitcoin-sv.github.io/arc/#/errors?id=_{code}");
        json!({ "type": page, "title": title, "detail": detail })
    }
}

impl Subscription {
    /// No wish.
    pub(super) fn none() -> Self {
        Self { dialect: Dialect::Arcade, url: None, token: None, is_full: false }
    }

    /// The wish in the headers of a submission.
    pub(super) fn of(request: &Request, dialect: Dialect) -> Self {
        let header = |name: &str| request.header(name).map(str::to_owned);
        let is_full = request.header("x-fullstatusupdates") == Some("true");
        Self { dialect, url: header("x-callbackurl"), token: header("x-callbacktoken"), is_full }
    }
}

impl Network {
    pub(super) fn of(node: NodeSettings) -> Self {
        Self {
            rpc: NodeRpc::new(node),
            mood: Mutex::default(),
            rows: Mutex::default(),
            chain: Mutex::default(),
            touched: Mutex::default(),
        }
    }

    pub(super) fn mood(&self) -> Mood {
        self.mood.lock().unwrap().clone()
    }

    pub(super) fn change_mood(&self, change: impl FnOnce(&mut Mood)) {
        change(&mut self.mood.lock().unwrap());
        self.touch_all();
    }

    pub(super) fn forget(&self) {
        self.rows().clear();
    }

    fn rows(&self) -> MutexGuard<'_, BTreeMap<Txid, Row>> {
        self.rows.lock().unwrap()
    }

    pub(super) fn touch_all(&self) {
        let all: Vec<_> = self.rows().keys().copied().collect();
        self.touched.lock().unwrap().extend(all);
    }

    /// Takes a transaction, and gives it to the node.
    pub(super) fn submit(
        &self,
        transaction: &Transaction,
        wish: &Subscription,
    ) -> Result<(), Refusal> {
        let (txid, mood) = (transaction.txid(), self.mood());
        if let Some(code) = mood.refuses {
            return Err(Refusal::new(code, "the service does not want it"));
        }
        let fate = if mood.relays { self.give(transaction)? } else { Fate::Kept };
        self.keep(transaction, fate);
        self.subscribe(&txid, wish);
        self.give_waiting();
        Ok(())
    }

    /// Keeps a refused transaction, unless it was taken before.
    pub(super) fn keep_refused(&self, transaction: &Transaction, refusal: &Refusal) {
        let is_taken = |row: &Row| row.fate == Fate::Given || !row.blocks.is_empty();
        if !self.rows().get(&transaction.txid()).is_some_and(is_taken) {
            self.keep(transaction, Fate::Refused(refusal.clone()));
        }
    }

    pub(super) fn subscribe(&self, txid: &Txid, wish: &Subscription) {
        if let Some(row) = self.rows().get_mut(txid)
            && (wish.url.is_some() || wish.token.is_some())
            && !row.subscriptions.contains(wish)
        {
            row.subscriptions.push(wish.clone());
        }
        self.touched.lock().unwrap().insert(*txid);
    }

    fn keep(&self, transaction: &Transaction, fate: Fate) {
        let (txid, mut rows) = (transaction.txid(), self.rows());
        if let Fate::Refused(Refusal { rivals, .. }) = &fate {
            for rival in rivals {
                if let Some(rival) = rows.get_mut(rival) {
                    rival.rivals.insert(txid);
                }
            }
            self.touched.lock().unwrap().extend(rivals);
        }
        let row = rows.entry(txid).or_insert_with(|| Row {
            transaction: transaction.clone(),
            fate: Fate::Kept,
            rivals: BTreeSet::new(),
            blocks: Vec::new(),
            subscriptions: Vec::new(),
            told: None,
        });
        row.fate = fate;
        self.touched.lock().unwrap().insert(txid);
    }

    /// Gives the node what it could not take before.
    pub(super) fn give_waiting(&self) {
        loop {
            let rows = self.rows();
            let waiting = rows.values().filter(|row| row.fate == Fate::Waiting);
            let waiting: Vec<_> = waiting.map(|row| row.transaction.clone()).collect();
            drop(rows);
            let mut has_changed = false;
            for transaction in waiting {
                let fate = self.give(&transaction).unwrap_or_else(Fate::Refused);
                has_changed |= fate != Fate::Waiting;
                self.keep(&transaction, fate);
            }
            if !has_changed {
                return;
            }
        }
    }

    /// Gives a transaction to the node. Fails if the node refuses it for what it is.
    fn give(&self, transaction: &Transaction) -> Result<Fate, Refusal> {
        let (rpc, sent) = (self.rpc.clone(), transaction.clone());
        match block_on(async move { rpc.submit_transaction(&sent).await }) {
            Ok(Submitted::InMempool(_)) => Ok(Fate::Given),
            // It is mined, or time-locked.
            Ok(Submitted::NotShown) if self.is_shown(transaction) => Ok(Fate::Given),
            Ok(Submitted::NotShown) => Ok(Fate::Kept),
            Err(_) if self.is_shown(transaction) => Ok(Fate::Given),
            Err(error) => match error.verdict() {
                None => Ok(Fate::Waiting),
                Some(reason) => self.judge(transaction, reason),
            },
        }
    }

    fn judge(&self, transaction: &Transaction, reason: &str) -> Result<Fate, Refusal> {
        let is = |words: &[&str]| words.iter().any(|words| reason.contains(words));
        let is_missing = is(&["issing inputs", "missing-inputs", "inputs-spent"]);
        if is_missing && self.spent_outputs(transaction).is_none() {
            Ok(Fate::Waiting)
        } else if is_missing || is(&["conflict", "double-spend"]) {
            let rivals = self.spenders(transaction);
            Ok(Fate::Refused(Refusal { rivals, ..Refusal::new(466, reason) }))
        } else if is(&["script-verify"]) {
            Err(Refusal::new(461, reason))
        } else if is(&["vout", "belowout", "dust"]) {
            Err(Refusal::new(464, reason))
        } else if is(&["fee", "priority"]) {
            Err(Refusal::new(465, reason))
        } else {
            Err(Refusal::new(463, reason))
        }
    }

    /// Whether the node has a transaction in its mempool or its chain.
    fn is_shown(&self, transaction: &Transaction) -> bool {
        let place = self.place(&transaction.txid());
        place.is_ok_and(|place| place != TransactionPlace::Nowhere)
    }

    /// The transactions of the mempool that spend the coins of another one.
    fn spenders(&self, transaction: &Transaction) -> BTreeSet<Txid> {
        let coins: Vec<_> = transaction.inputs.iter().map(|input| input.previous_output).collect();
        let rpc = self.rpc.clone();
        let states = block_on(async move { rpc.outputs(&coins, Mempool::Include).await });
        let spender = |state| if let OutputState::Spent { by } = state { Some(by) } else { None };
        states.unwrap_or_default().into_iter().filter_map(spender).collect()
    }

    /// The outputs that a transaction spends, if the node knows their transactions.
    pub(super) fn spent_outputs(&self, transaction: &Transaction) -> Option<Vec<TxOut>> {
        let output = |input: &TxIn| {
            let (rpc, of) = (self.rpc.clone(), input.previous_output);
            let parent = block_on(async move { rpc.transaction(&of.txid).await }).ok()??;
            parent.outputs.get(of.vout as usize).cloned()
        };
        transaction.inputs.iter().map(output).collect()
    }

    /// Refuses a transaction that pays less than the lowest fee for the outputs that it spends.
    pub(super) fn check_fee(
        &self,
        transaction: &Transaction,
        spent: &[TxOut],
    ) -> Result<(), Refusal> {
        let worth = |outputs: &[TxOut]| outputs.iter().map(|it| u128::from(it.satoshis)).sum();
        let (inputs, outputs): (u128, u128) = (worth(spent), worth(&transaction.outputs));
        let Some(fee) = inputs.checked_sub(outputs) else {
            return Err(Refusal::new(464, format!("outputs of {outputs}, inputs of {inputs}")));
        };
        let (size, (satoshis, bytes)) = (transaction.to_bytes().len() as u128, self.mood().fee);
        if fee * u128::from(bytes) < size * u128::from(satoshis) {
            return Err(Refusal::new(465, format!("a fee of {fee} for {size} bytes is too low")));
        }
        Ok(())
    }

    /// Whether the next block may hold a transaction.
    pub(super) fn is_final(&self, transaction: &Transaction) -> bool {
        let rpc = self.rpc.clone();
        let tip = block_on(async move { rpc.tip().await });
        tip.is_ok_and(|tip| transaction.is_final_at(tip.height + 1, tip.median_time))
    }

    fn place(&self, txid: &Txid) -> Result<TransactionPlace, NodeError> {
        let (rpc, txid) = (self.rpc.clone(), *txid);
        block_on(async move { rpc.transaction_place(&txid).await })
    }

    /// What it says of a transaction. `None` if it was never given it.
    pub(super) fn state(&self, txid: &Txid) -> Result<Option<State>, NodeError> {
        let Some(mut row) = self.rows().get(txid).cloned() else { return Ok(None) };
        let (mood, place) = (self.mood(), self.place(txid)?);
        if let TransactionPlace::Block(block) = place {
            let height = self.header_of(block)?.1;
            if row.blocks.last().is_none_or(|last| last.block != block) {
                row.blocks.push(Place { block, height });
                let blocks = row.blocks.clone();
                self.rows().entry(*txid).and_modify(|row| row.blocks = blocks);
            }
        }
        let is_mined = matches!(place, TransactionPlace::Block(_));
        if let Some((place, left)) = row.blocks.split_last()
            && (is_mined || mood.keeps_orphans)
        {
            let path = self.path(txid, place, mood.path)?;
            let tip = self.main_chain()?.len() as u32;
            let is_deep = is_mined && place.height + DEEP < tip;
            return Ok(Some(State::Mined { place: *place, path, is_deep, left: left.to_vec() }));
        }
        if let Some(word) = mood.says_of.get(txid).or(mood.says.as_ref()) {
            return Ok(Some(State::Said(word.clone())));
        }
        Ok(Some(match (place, row.fate) {
            _ if !row.blocks.is_empty() => State::Orphaned { left: row.blocks },
            (TransactionPlace::Mempool, _) => State::Seen { rivals: row.rivals },
            (_, Fate::Waiting) => State::Waiting,
            (_, Fate::Kept) => State::Received,
            (_, Fate::Refused(refusal)) => {
                let is_rival_mined = self.is_any_mined(&refusal.rivals);
                State::Refused { refusal, is_rival_mined }
            }
            (_, Fate::Given) if self.is_any_mined(&row.rivals) => {
                let refusal =
                    Refusal { rivals: row.rivals, ..Refusal::new(466, "it was displaced") };
                State::Refused { refusal, is_rival_mined: true }
            }
            (_, Fate::Given) => State::Seen { rivals: row.rivals },
        }))
    }

    fn is_any_mined(&self, txids: &BTreeSet<Txid>) -> bool {
        txids.iter().any(|txid| matches!(self.place(txid), Ok(TransactionPlace::Block(_))))
    }

    /// The BUMP of a transaction in a block.
    fn path(&self, txid: &Txid, at: &Place, path: Path) -> Result<Option<String>, NodeError> {
        let (rpc, block, mut txid) = (self.rpc.clone(), at.block, *txid);
        if path == Path::Foreign {
            let rpc = rpc.clone();
            let coinbase = block_on(async move { rpc.block_coinbase(&block).await })?;
            txid = coinbase.map_or(txid, |it| it.coinbase.txid());
        }
        let branch = block_on(async move { rpc.merkle_branch(&block, &txid).await })?;
        let Some(branch) = branch else { return Ok(None) };
        let bump = |height, branch| Bump::of(height, &[(txid, branch)]).ok();
        let bump = match path {
            Path::Missing => None,
            Path::Right | Path::Foreign => bump(at.height, branch),
            Path::Lifted => bump(at.height + 1, branch),
            Path::Shifted => (0..branch.siblings.len()).find_map(|level| {
                let position = branch.position ^ (1 << level);
                bump(at.height, MerkleBranch { position, siblings: branch.siblings.clone() })
            }),
        };
        Ok(bump.map(|bump| hex::encode(bump.to_bytes())))
    }

    fn header_of(&self, block: BlockHash) -> Result<(BlockHeader, u32), NodeError> {
        let rpc = self.rpc.clone();
        let info = block_on(async move { rpc.block_header(&block).await })?;
        let info = info.expect("nodes keep the headers that they have shown");
        Ok((info.header, info.height))
    }

    /// The node's main chain.
    fn main_chain(&self) -> Result<MutexGuard<'_, Vec<BlockHeader>>, NodeError> {
        let mut chain = self.chain.lock().unwrap();
        let rpc = self.rpc.clone();
        let mut next = block_on(async move { rpc.tip().await })?.hash;
        let mut new = Vec::new();
        if chain.last().is_some_and(|last| last.block_hash() == next) {
            return Ok(chain);
        }
        loop {
            let (header, height) = self.header_of(next)?;
            new.push(header);
            next = header.previous_block;
            let below = (height as usize).checked_sub(1);
            let is_below =
                |place: usize| chain.get(place).is_some_and(|it| it.block_hash() == next);
            if below.is_none_or(is_below) {
                chain.truncate(height as usize);
                chain.extend(new.into_iter().rev());
                return Ok(chain);
            }
        }
    }

    /// The headers that the service shows, from the first block on.
    pub(super) fn headers(&self) -> Result<Vec<BlockHeader>, NodeError> {
        let (mood, mut headers) = (self.mood(), self.main_chain()?.clone());
        headers.truncate(headers.len().saturating_sub(mood.withheld));
        if let (Some(part), Some(last)) = (mood.altered, headers.last_mut()) {
            match part {
                HeaderPart::Bits => *last = solve(BlockHeader { bits: last.bits ^ 1, ..*last }),
                HeaderPart::Time => *last = solve(BlockHeader { time: 0, ..*last }),
                HeaderPart::Nonce => {
                    while last.has_proof_of_work() {
                        last.nonce = last.nonce.wrapping_add(1);
                    }
                }
            }
        }
        Ok(headers)
    }

    /// The states that subscribers have not been told yet.
    pub(super) fn news(&self) -> Vec<News> {
        let touched = std::mem::take(&mut *self.touched.lock().unwrap());
        let mut news = Vec::new();
        for txid in touched {
            let is_subscribed = |row: &Row| !row.subscriptions.is_empty();
            if !self.rows().get(&txid).is_some_and(is_subscribed) {
                continue;
            }
            let Ok(state) = self.state(&txid) else {
                self.touched.lock().unwrap().insert(txid);
                continue;
            };
            let mut rows = self.rows();
            let (Some(state), Some(row)) = (state, rows.get_mut(&txid)) else { continue };
            if row.told.as_ref() != Some(&state) {
                row.told = Some(state.clone());
                let subscriptions = row.subscriptions.clone();
                news.push(News { txid, state, subscriptions });
            }
        }
        news
    }

    /// The tip of the node's chain, whatever the service shows.
    pub(super) fn tip(&self) -> Option<BlockHash> {
        let rpc = self.rpc.clone();
        block_on(async move { rpc.tip().await }).ok().map(|tip| tip.hash)
    }
}
