//! A model of what the network holds. The wallet is told of it bit by bit.

use std::collections::{BTreeMap, BTreeSet};

use bsv_invoicing::coins::KeyPath;
use bsv_invoicing::transactions::BlockPlace;
use bsv_tx::{BlockHash, OutPoint, Script, Transaction, TxIn, TxOut, Txid};

/// The longest transaction whose bytes stay for ever.
const MAX_KEPT_LEN: usize = 100_000;
/// One of so many transactions is longer.
const ONE_IS_LONG: u32 = 3;

/// Where the network has a transaction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Place {
    Nowhere,
    Mempool,
    Block(BlockPlace),
}

/// An output that pays the script of an invoice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pays {
    pub(crate) vout: u32,
    pub(crate) satoshis: u64,
    pub(crate) invoice: u64,
    pub(crate) key: KeyPath,
    /// Whether the wallet treats everything that the transaction pays as one payment.
    pub(crate) is_joint: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct NetworkTransaction {
    pub(crate) transaction: Transaction,
    pub(crate) txid: Txid,
    pub(crate) place: Place,
    /// Its outputs that pay invoices.
    pub(crate) pays: Vec<Pays>,
    /// Whether it is longer than what is kept for ever.
    pub(crate) is_long: bool,
    /// Whether a stranger made it, so that others may spend its inputs and outputs as they like.
    pub(crate) is_of_stranger: bool,
    /// All outputs that it and its ancestors spend, and the spender of each.
    lineage: BTreeMap<u32, usize>,
    /// Itself and its ancestors.
    ancestors: BTreeSet<usize>,
    /// The transactions that no chain can hold together with it: they or their ancestors spend the
    /// same output as it or its ancestors.
    rivals: BTreeSet<usize>,
    /// Whether a transaction in a block has contradicted it at any time.
    pub(crate) was_buried: bool,
    /// The block whose coinbase transaction it is.
    pub(crate) coinbase_of: Option<BlockPlace>,
}

/// All transactions, each after those that it spends, and the chain.
#[derive(Clone, Debug, Default)]
pub(crate) struct Network {
    pub(crate) transactions: Vec<NetworkTransaction>,
    pub(crate) chain: Vec<BlockPlace>,
    outpoints: BTreeMap<OutPoint, u32>,
    by_txid: BTreeMap<[u8; 32], usize>,
    blocks_made: u64,
    salt: u32,
}

impl Network {
    /// The output of a stranger that nobody has spent.
    pub(crate) fn strangers_coin(&mut self) -> OutPoint {
        self.salt += 1;
        OutPoint { txid: Txid::from_bytes([7; 32]), vout: self.salt }
    }

    /// Makes a transaction that the network does not have. `None` if it contradicts itself.
    pub(crate) fn add(
        &mut self,
        inputs: &[OutPoint],
        amounts: &[u64],
        pays: Vec<Pays>,
        is_of_stranger: bool,
    ) -> Option<usize> {
        let script = Script::from_bytes(vec![0x51; 25]);
        let output = |satoshis: &u64| TxOut { satoshis: *satoshis, locking_script: script.clone() };
        self.add_outputs(inputs, amounts.iter().map(output).collect(), pays, is_of_stranger)
    }

    /// The same as [`add`](Self::add), with these outputs.
    pub(crate) fn add_outputs(
        &mut self,
        inputs: &[OutPoint],
        outputs: Vec<TxOut>,
        pays: Vec<Pays>,
        is_of_stranger: bool,
    ) -> Option<usize> {
        self.salt += 1;
        let is_long = self.salt.is_multiple_of(ONE_IS_LONG);
        let script_len = if is_long { MAX_KEPT_LEN } else { 0 };
        let input = |previous_output: &OutPoint| TxIn {
            previous_output: *previous_output,
            unlocking_script: Script::from_bytes(vec![0; script_len]),
            sequence: u32::MAX,
        };
        let transaction = Transaction {
            version: i32::try_from(self.salt).unwrap(),
            inputs: inputs.iter().map(input).collect(),
            outputs,
            lock_time: 0,
        };
        let txid = transaction.txid();
        let index = self.transactions.len();
        let (lineage, ancestors) = self.lineage(inputs)?;
        let contradicts = |other: &NetworkTransaction| {
            let mut both = lineage.iter().filter_map(|(it, by)| Some((by, other.lineage.get(it)?)));
            both.any(|(one, other)| one != other)
        };
        let all = self.transactions.iter().enumerate();
        let rivals: BTreeSet<_> =
            all.filter(|(_, it)| contradicts(it)).map(|(other, _)| other).collect();
        for rival in &rivals {
            self.transactions[*rival].rivals.insert(index);
        }
        self.by_txid.insert(*txid.as_bytes(), index);
        let place = Place::Nowhere;
        let mut descended_from = ancestors.iter().filter(|it| **it != index);
        let was_buried = descended_from.any(|it| self.transactions[*it].was_buried);
        self.transactions.push(NetworkTransaction {
            transaction,
            txid,
            place,
            pays,
            is_long,
            is_of_stranger,
            lineage,
            ancestors,
            rivals,
            was_buried,
            coinbase_of: None,
        });
        Some(index)
    }

    /// Makes a block with a coinbase transaction of these outputs.
    pub(crate) fn mine_coinbase(&mut self, outputs: Vec<TxOut>) -> usize {
        let coin = self.strangers_coin();
        // Nobody else can spend its input.
        let index = self.add_outputs(&[coin], outputs, Vec::new(), false).unwrap();
        let block = self.new_block();
        let made = &mut self.transactions[index];
        self.by_txid.remove(made.txid.as_bytes());
        made.transaction.inputs[0].previous_output =
            OutPoint { txid: Txid::from_bytes([0; 32]), vout: u32::MAX };
        made.txid = made.transaction.txid();
        (made.coinbase_of, made.place) = (Some(block), Place::Block(block));
        self.by_txid.insert(*made.txid.as_bytes(), index);
        index
    }

    /// A lost block is the last one of the chain again. Its other transactions stay where they are.
    pub(crate) fn return_block(&mut self, coinbase: usize) -> Option<BlockPlace> {
        let block = self.transactions[coinbase].coinbase_of?;
        let is_next = self.chain.last().is_none_or(|last| last.height < block.height);
        if !is_next {
            return None;
        }
        self.chain.push(block);
        self.transactions[coinbase].place = Place::Block(block);
        Some(block)
    }

    /// Whether the network cannot have a transaction, because it is the coinbase transaction of a
    /// lost block, or descends from one.
    pub(crate) fn is_orphan(&self, index: usize) -> bool {
        self.transactions[index].ancestors.iter().any(|it| {
            let ancestor = &self.transactions[*it];
            ancestor.coinbase_of.is_some_and(|block| ancestor.place != Place::Block(block))
        })
    }

    /// All outputs that the next transaction and its ancestors spend, and the set of these
    /// transactions. `None` if the transaction contradicts itself.
    fn lineage(&mut self, inputs: &[OutPoint]) -> Option<(BTreeMap<u32, usize>, BTreeSet<usize>)> {
        let index = self.transactions.len();
        let (mut lineage, mut ancestors) = (BTreeMap::new(), BTreeSet::from([index]));
        for input in inputs {
            let next = u32::try_from(self.outpoints.len()).unwrap();
            lineage.insert(*self.outpoints.entry(*input).or_insert(next), index);
        }
        for input in inputs {
            let Some(parent) = self.by_txid.get(input.txid.as_bytes()) else { continue };
            let parent = &self.transactions[*parent];
            ancestors.extend(&parent.ancestors);
            for (outpoint, spender) in &parent.lineage {
                if lineage.insert(*outpoint, *spender).is_some_and(|other| other != *spender) {
                    return None;
                }
            }
        }
        Some((lineage, ancestors))
    }

    /// The coins that a transaction spends.
    pub(crate) fn coins_of(&self, index: usize) -> BTreeSet<OutPoint> {
        let inputs = &self.transactions[index].transaction.inputs;
        inputs.iter().map(|input| input.previous_output).collect()
    }

    pub(crate) fn place(&self, index: usize) -> Place {
        self.transactions[index].place
    }

    /// Whether no chain can hold both, because they or their ancestors spend the same output.
    pub(crate) fn contradict(&self, one: usize, other: usize) -> bool {
        self.transactions[one].rivals.contains(&other)
    }

    /// Whether no transaction can spend all of these outputs.
    pub(crate) fn contradict_each_other(&mut self, outpoints: &[OutPoint]) -> bool {
        self.lineage(outpoints).is_none()
    }

    /// The transactions that no chain can hold together with this one.
    pub(crate) fn rivals(&self, index: usize) -> &BTreeSet<usize> {
        &self.transactions[index].rivals
    }

    /// The last block with a transaction that contradicts this one. The chain must lose that block
    /// first.
    pub(crate) fn rival_block(&self, index: usize) -> Option<BlockPlace> {
        let blocks = self.rivals(index).iter().filter_map(|rival| match self.place(*rival) {
            Place::Block(block) => Some(block),
            Place::Nowhere | Place::Mempool => None,
        });
        blocks.max_by_key(|block| block.height)
    }

    pub(crate) fn new_block(&mut self) -> BlockPlace {
        self.new_block_after(0)
    }

    /// A block after so many others that hold nothing. The chain loses them together.
    pub(crate) fn new_block_after(&mut self, others: u32) -> BlockPlace {
        self.blocks_made += 1;
        let mut hash = [9; 32];
        hash[..8].copy_from_slice(&self.blocks_made.to_le_bytes());
        let height = self.chain.last().map_or(0, |last| last.height) + others + 1;
        let block = BlockPlace { hash: BlockHash::from_bytes(hash), height };
        self.chain.push(block);
        block
    }

    /// The network takes a transaction that nothing in a block contradicts, with the ancestors that
    /// the network lacks. Transactions that contradict them leave the mempool. Returns the
    /// transactions that have a new place, ancestors first.
    pub(crate) fn show(&mut self, index: usize, place: Place) -> Vec<usize> {
        for rival in self.rivals(index).clone() {
            assert!(!matches!(self.place(rival), Place::Block(_)), "contradictions in the chain");
            self.transactions[rival].place = Place::Nowhere;
            self.transactions[rival].was_buried |= matches!(place, Place::Block(_));
        }
        let mut moved = Vec::new();
        for ancestor in self.transactions[index].ancestors.clone() {
            let old = self.place(ancestor);
            if !matches!(old, Place::Block(_)) && old != place {
                self.transactions[ancestor].place = place;
                moved.push(ancestor);
            }
        }
        moved
    }

    /// The mempool loses a transaction and its descendants.
    pub(crate) fn drop_from_mempool(&mut self, index: usize) {
        for other in &mut self.transactions {
            if other.ancestors.contains(&index) && other.place == Place::Mempool {
                other.place = Place::Nowhere;
            }
        }
    }

    /// The chain loses its last block. Its transactions are in the mempool again, or nowhere.
    pub(crate) fn lose_block(&mut self, to_mempool: bool) -> Option<BlockPlace> {
        let block = self.chain.pop()?;
        for index in 0..self.transactions.len() {
            if self.place(index) == Place::Block(block) {
                self.transactions[index].place = Place::Mempool;
                if !to_mempool || self.transactions[index].coinbase_of.is_some() {
                    self.drop_from_mempool(index);
                }
            }
        }
        Some(block)
    }
}

impl Network {
    /// Removes the last transaction, because it was never signed.
    pub(crate) fn forget_last(&mut self, index: usize) {
        assert_eq!(index + 1, self.transactions.len());
        let forgotten = self.transactions.pop().unwrap();
        self.by_txid.remove(forgotten.txid.as_bytes());
        for rival in forgotten.rivals {
            self.transactions[rival].rivals.remove(&index);
        }
    }
}
