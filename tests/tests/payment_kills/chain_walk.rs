//! Adds up what a node's chain and mempool pay to scripts, without the wallet's code.

use std::collections::{HashMap, HashSet};

use bsv_tests::Node;
use bsv_tests::rival::tip;
use bsv_tx::{BlockHeader, OutPoint, Reader, Script, Transaction, TxOut};
use serde_json::{Value, json};

/// Reads the blocks of the main chain, each of them only once.
pub(crate) struct ChainWalk<'n> {
    node: &'n Node,
    blocks: HashMap<String, Block>,
}

struct Block {
    previous: String,
    moves: Moves,
}

/// The outputs that transactions make and spend.
#[derive(Clone, Default)]
pub(crate) struct Moves {
    made: HashMap<OutPoint, TxOut>,
    spent: HashSet<OutPoint>,
}

impl<'n> ChainWalk<'n> {
    pub(crate) fn of(node: &'n Node) -> Self {
        Self { node, blocks: HashMap::new() }
    }

    /// The outputs that the mempool and all blocks of the main chain make and spend.
    pub(crate) fn read(&mut self) -> Moves {
        let mut moves = self.mempool();
        let mut hash = tip(self.node).as_str().unwrap().to_owned();
        // The first block names zeros as its previous block.
        while !hash.trim_start_matches('0').is_empty() {
            let block = self.block(hash);
            moves.made.extend(block.moves.made.iter().map(|(at, output)| (*at, output.clone())));
            moves.spent.extend(&block.moves.spent);
            hash = block.previous.clone();
        }
        moves
    }

    fn block(&mut self, hash: String) -> &Block {
        let node = self.node;
        self.blocks.entry(hash).or_insert_with_key(|hash| {
            let block = node.call("getblock", json!([hash, false]));
            Block::read(&hex::decode(block.as_str().unwrap()).unwrap())
        })
    }

    fn mempool(&self) -> Moves {
        let mut moves = Moves::default();
        for txid in self.node.call("getrawmempool", json!([])).as_array().unwrap() {
            // A transaction may have left the mempool meanwhile.
            if let Ok(Value::String(hex)) = self.node.try_call("getrawtransaction", json!([txid])) {
                moves.add(&Transaction::from_hex(&hex).unwrap());
            }
        }
        moves
    }
}

impl Block {
    fn read(bytes: &[u8]) -> Self {
        let mut reader = Reader::new(bytes);
        let previous = BlockHeader::read(&mut reader).unwrap().previous_block.to_string();
        let mut moves = Moves::default();
        for _ in 0..reader.var_int().unwrap() {
            moves.add(&Transaction::read(&mut reader).unwrap());
        }
        assert_eq!(reader.remaining(), 0);
        Self { previous, moves }
    }
}

impl Moves {
    fn add(&mut self, transaction: &Transaction) {
        let txid = transaction.txid();
        let outputs = (0..).zip(transaction.outputs.iter().cloned());
        self.made.extend(outputs.map(|(vout, output)| (OutPoint { txid, vout }, output)));
        self.spent.extend(transaction.inputs.iter().map(|input| input.previous_output));
    }

    /// The sum of the unspent outputs to these scripts, in satoshis.
    pub(crate) fn unspent(&self, scripts: &HashSet<Script>) -> u64 {
        let own = self.made.iter().filter(|(_, output)| scripts.contains(&output.locking_script));
        let left = own.filter(|(outpoint, _)| !self.spent.contains(outpoint));
        left.map(|(_, output)| output.satoshis).sum()
    }

    /// The amounts that were paid to each script.
    pub(crate) fn paid(&self) -> HashMap<&Script, Vec<u64>> {
        let mut paid = HashMap::<_, Vec<_>>::new();
        for output in self.made.values() {
            paid.entry(&output.locking_script).or_default().push(output.satoshis);
        }
        paid
    }
}
