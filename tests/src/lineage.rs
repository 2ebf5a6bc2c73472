//! Random transactions with their ancestors.

use std::collections::BTreeMap;

use bsv_tx::{
    Ancestry, Bump, MerkleRoot, MerkleTree, OutPoint, PrivateKey, Script, SighashCache,
    Transaction, TxIn, TxOut, Txid, sha256,
};

use crate::Dice;

/// A signed transaction, and its ancestors back to mined ones.
#[derive(Clone, Debug)]
pub struct Lineage {
    /// The transaction itself. It is not mined.
    pub subject: Transaction,
    /// Its ancestors, some unrelated transactions, and a Merkle path for each mined one.
    pub ancestry: Ancestry,
    /// The Merkle roots of the blocks, by height.
    pub roots: BTreeMap<u32, MerkleRoot>,
}

/// Makes transactions. One key unlocks all their outputs.
struct Maker<'a> {
    dice: &'a mut Dice,
    key: PrivateKey,
    coins: Vec<(OutPoint, TxOut)>,
}

impl Lineage {
    /// One to six mined transactions in one or two blocks, and up to six unmined ones before the last.
    pub fn random(dice: &mut Dice) -> Self {
        let blocks = 1 + dice.roll(2);
        let (mined, unmined) = (1 + dice.roll(3), dice.roll(7));
        Self::with(dice, &vec![mined; blocks], unmined)
    }

    /// A lineage with blocks of the given numbers of mined transactions, and `unmined` unmined ones
    /// before the last.
    pub fn with(dice: &mut Dice, mined: &[usize], unmined: usize) -> Self {
        let key = PrivateKey::from_bytes(&random_hash(dice)).unwrap();
        let mut maker = Maker { dice, key, coins: Vec::new() };
        let mut ancestry = Ancestry::default();
        let mut roots = BTreeMap::new();
        for (block, count) in mined.iter().enumerate() {
            let transactions: Vec<_> = (0..*count).map(|_| maker.mined()).collect();
            let height = 800_000 + block as u32;
            let bumps = mine(&transactions, height, maker.dice);
            roots.insert(height, bumps[0].root());
            ancestry.transactions.extend(transactions);
            ancestry.bumps.extend(bumps);
        }
        for _ in 0..unmined {
            let transaction = maker.spend_some();
            ancestry.transactions.push(transaction);
        }
        let subject = maker.spend_some();
        Self { subject, ancestry, roots }
    }
}

impl Maker<'_> {
    /// A transaction that spends a foreign coin, and perhaps one of ours.
    fn mined(&mut self) -> Transaction {
        let spent = OutPoint { txid: Txid::from_bytes(random_hash(self.dice)), vout: 1 };
        let mut inputs = vec![(spent, self.output(1_000_000))];
        if self.dice.roll(3) == 0 {
            inputs.extend(self.coin());
        }
        self.spend(&inputs)
    }

    /// A transaction that spends one to three of the coins that are left.
    fn spend_some(&mut self) -> Transaction {
        let count = 1 + self.dice.roll(3);
        let inputs: Vec<_> = (0..count).filter_map(|_| self.coin()).collect();
        self.spend(&inputs)
    }

    fn coin(&mut self) -> Option<(OutPoint, TxOut)> {
        let count = self.coins.len();
        (count > 0).then(|| self.coins.swap_remove(self.dice.roll(count)))
    }

    fn output(&self, satoshis: u64) -> TxOut {
        TxOut { satoshis, locking_script: Script::p2pkh(&self.key.public_key().hash()) }
    }

    /// Makes one to three new coins, so that there is always one to spend.
    fn spend(&mut self, inputs: &[(OutPoint, TxOut)]) -> Transaction {
        let input = |(previous_output, _): &(OutPoint, TxOut)| TxIn {
            previous_output: *previous_output,
            unlocking_script: Script::default(),
            sequence: u32::MAX,
        };
        let worth: u64 = inputs.iter().map(|(_, output)| output.satoshis).sum();
        let count = 1 + self.dice.roll(3);
        let outputs = vec![self.output(worth / (count as u64 + 1)); count];
        let mut transaction = Transaction {
            version: 1,
            inputs: inputs.iter().map(input).collect(),
            outputs,
            lock_time: 0,
        };
        for (index, (_, spent)) in inputs.iter().enumerate() {
            let script = SighashCache::new(&transaction).sign_p2pkh(index, spent, &self.key);
            transaction.inputs[index].unlocking_script = script.unwrap();
        }
        let txid = transaction.txid();
        let outputs = transaction.outputs.iter().cloned();
        let outpoint = |vout: usize| OutPoint { txid, vout: vout as u32 };
        self.coins.extend(outputs.enumerate().map(|(vout, output)| (outpoint(vout), output)));
        transaction
    }
}

/// Mines transactions among others, and returns a Merkle path for each.
fn mine(transactions: &[Transaction], height: u32, dice: &mut Dice) -> Vec<Bump> {
    let mut txids: Vec<_> =
        (0..dice.roll(40)).map(|_| Txid::from_bytes(random_hash(dice))).collect();
    for transaction in transactions {
        txids.insert(dice.roll(txids.len() + 1), transaction.txid());
    }
    let tree = MerkleTree::of(&txids);
    let bump = |transaction: &Transaction| {
        let txid = transaction.txid();
        let position = txids.iter().position(|each| *each == txid).unwrap();
        Bump::of(height, &[(txid, tree.branch(position).unwrap())]).unwrap()
    };
    transactions.iter().map(bump).collect()
}

fn random_hash(dice: &mut Dice) -> [u8; 32] {
    let parts: [[u8; 4]; 4] = [(); 4].map(|()| (dice.roll(1 << 31) as u32).to_le_bytes());
    sha256(&parts.concat())
}
