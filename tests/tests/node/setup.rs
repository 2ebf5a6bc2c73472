//! Helpers for the beginning of tests.

use bsv_network::{ChainTip, NodeError, NodeRpc};
use bsv_tests::Node;
use bsv_tx::{
    Address, BlockHash, Network, OutPoint, PrivateKey, Script, SighashCache, Transaction, TxIn,
    TxOut,
};

pub(crate) const BSV: u64 = 100_000_000;

pub(crate) struct Payee {
    pub(crate) key: PrivateKey,
    pub(crate) address: Address,
}

impl Payee {
    pub(crate) fn new() -> Self {
        let key = PrivateKey::generate().unwrap();
        let address = Address::p2pkh(&key.public_key(), Network::Regtest);
        Self { key, address }
    }

    /// The output of `transaction` that pays this payee.
    pub(crate) fn coin_in(&self, transaction: &Transaction) -> (OutPoint, TxOut) {
        let script = self.address.locking_script();
        let vout = transaction.outputs.iter().position(|o| o.locking_script == script).unwrap();
        let outpoint = OutPoint { txid: transaction.txid(), vout: vout.try_into().unwrap() };
        (outpoint, transaction.outputs[vout].clone())
    }

    /// Has the node's wallet pay this payee, and answers the coin.
    pub(crate) async fn receive(&self, rpc: &NodeRpc, satoshis: u64) -> (OutPoint, TxOut) {
        let txid = rpc.send_to_address(&self.address, satoshis).await.unwrap();
        self.coin_in(&rpc.transaction(&txid).await.unwrap().unwrap())
    }

    /// Pays a coin of this payee to `receiver`, less `fee`.
    pub(crate) fn pay(
        &self,
        (outpoint, output): &(OutPoint, TxOut),
        receiver: &Self,
        fee: u64,
    ) -> Transaction {
        let transaction = Transaction {
            version: 1,
            inputs: vec![TxIn {
                previous_output: *outpoint,
                unlocking_script: Script::default(),
                sequence: u32::MAX,
            }],
            outputs: vec![TxOut {
                satoshis: output.satoshis - fee,
                locking_script: receiver.address.locking_script(),
            }],
            lock_time: 0,
        };
        self.sign(transaction, output)
    }

    /// Signs the only input of a transaction, which spends `spent`.
    fn sign(&self, mut transaction: Transaction, spent: &TxOut) -> Transaction {
        let script = SighashCache::new(&transaction).sign_p2pkh(0, spent, &self.key);
        transaction.inputs[0].unlocking_script = script.unwrap();
        transaction
    }

    /// Changes the lock time and the sequence number of a payment, and signs it again.
    pub(crate) fn lock(
        &self,
        mut payment: Transaction,
        spent: &TxOut,
        lock_time: u32,
        sequence: u32,
    ) -> Transaction {
        payment.lock_time = lock_time;
        payment.inputs[0].sequence = sequence;
        self.sign(payment, spent)
    }
}

/// A node whose wallet has coins to spend.
pub(crate) fn rich_node() -> Node {
    let node = Node::start();
    node.mine(110);
    node
}

/// A node whose wallet has coins, a payee, and a coin of the payee that is in a block.
pub(crate) async fn node_with_coin() -> (Node, Payee, (OutPoint, TxOut)) {
    let (node, payee) = (rich_node(), Payee::new());
    let coin = payee.receive(node.rpc(), BSV).await;
    node.mine(1);
    (node, payee, coin)
}

pub(crate) fn code_of(error: &NodeError) -> i64 {
    match error {
        NodeError::Rejected { code, .. } => *code,
        other => panic!("not a refusal: {other}"),
    }
}

pub(crate) fn place_of(tip: &ChainTip) -> (u32, BlockHash) {
    (tip.height, tip.hash)
}
