//! Transactions with very many outputs, and very many transactions.

use std::sync::Arc;

use bsv_invoicing::coins::{Chain, KeyPath};
use bsv_invoicing::ledger::queries::{GetBalance, GetBlocks, GetRecord};
use bsv_invoicing::ledger::{
    CheckedProof, ForgetBlock, GetKnown, Notice, Noticed, ShownPlace, Sighting, Watch,
};
use bsv_invoicing::store::WalletStore;
use bsv_invoicing::transactions::{BlockPlace, EncodedTransaction, Proof, TransactionState};
use bsv_invoicing::{PostgresWalletStore, Timestamp};
use bsv_tests::repetitions;
use bsv_tx::{BlockHash, MerkleBranch, OutPoint, Script, Sibling, Transaction, TxIn, TxOut, Txid};

use crate::postgres::{SERVER, open, user};

/// The hash of a key of the wallet.
const HASH: [u8; 20] = [7; 20];
const KEY: KeyPath = KeyPath { account: 0, chain: Chain::User, index: 1 };

fn now() -> Timestamp {
    Timestamp::from_micros(1)
}

/// A transaction of a stranger that pays the key so often.
fn paying(outputs: usize, salt: u32) -> EncodedTransaction {
    let output = TxOut { satoshis: 1, locking_script: Script::p2pkh(&HASH) };
    let transaction = Transaction {
        version: 1,
        inputs: vec![TxIn {
            previous_output: OutPoint { txid: Txid::from_bytes([9; 32]), vout: salt },
            unlocking_script: Script::default(),
            sequence: u32::MAX,
        }],
        outputs: vec![output; outputs],
        lock_time: 0,
    };
    (&transaction).into()
}

fn proof(height: u32) -> Proof {
    let hash = BlockHash::from_bytes([height as u8; 32]);
    let branch = MerkleBranch { position: 0, siblings: vec![Sibling::Hash([1; 32])] };
    Proof { block: BlockPlace { hash, height }, branch }
}

fn mined(proof: Proof) -> ShownPlace {
    ShownPlace::Block(CheckedProof { proof, reorganisations: 0 })
}

async fn notice(store: &PostgresWalletStore, transaction: &EncodedTransaction, place: ShownPlace) {
    let noticed =
        Noticed { transaction: transaction.clone(), place, came_at: now(), ancestry: Vec::new() };
    store.execute(Notice { shown: vec![noticed], now: now() }).await.unwrap();
}

/// Forgets a block in one step.
async fn forget(store: &PostgresWalletStore, block: BlockPlace) {
    let forget = ForgetBlock {
        block,
        is_replaced: true,
        may_have_rivals: false,
        after: 0,
        limit: usize::MAX,
        now: now(),
    };
    assert_eq!(store.execute(forget).await.unwrap(), None);
}

async fn state(store: &PostgresWalletStore) -> TransactionState {
    store.get(GetRecord(1)).await.unwrap().unwrap().state
}

/// A transaction that pays the wallet with so many outputs that each step about it reads more rows than a guess of nothing
/// may read. A store that has just been opened remembers none of them.
#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_with_very_many_outputs_is_followed() {
    let outputs = repetitions("outputs of a transaction", 100_000, 40_000);
    let url = SERVER.fresh_url();
    let store = open(&url);
    store.execute(user("Ada")).await.unwrap();
    store.execute(Watch { keys: vec![(HASH, KEY)] }).await.unwrap();
    let transaction = paying(outputs, 1);
    notice(&store, &transaction, ShownPlace::Mempool(Sighting::judged(true))).await;
    drop(store);
    let store = open(&url);
    assert_eq!(store.get(GetBalance).await.unwrap(), outputs as u64);
    let known = store.get(GetKnown(Arc::new(transaction.clone()))).await.unwrap();
    assert!(known.lacking.is_empty());
    let block = proof(7);
    notice(&store, &transaction, mined(block.clone())).await;
    assert_eq!(state(&store).await, TransactionState::Mined(block.block));
    drop(store);
    let store = open(&url);
    forget(&store, block.block).await;
    assert_eq!(state(&store).await, TransactionState::Contested { told: false });
    notice(&store, &transaction, mined(proof(8))).await;
    assert_eq!(state(&store).await, TransactionState::Mined(proof(8).block));
    assert_eq!(store.get(GetBalance).await.unwrap(), outputs as u64);
}

/// The blocks of more transactions of the wallet than a guess of nothing may read have left the chain.
#[tokio::test(flavor = "multi_thread")]
async fn blocks_with_very_many_transactions_leave_the_chain() {
    let count = repetitions("transactions after a fork", 100_000, 51_000) as u64;
    let store = open(&SERVER.fresh_url());
    store.execute(Watch { keys: vec![(HASH, KEY)] }).await.unwrap();
    let block = proof(7);
    for first in (1..=count).step_by(1_000) {
        let noticed = |number: u64| Noticed {
            transaction: paying(1, u32::try_from(number).unwrap()),
            place: mined(block.clone()),
            came_at: now(),
            ancestry: Vec::new(),
        };
        let shown = (first..first + 1_000).map(noticed).collect();
        store.execute(Notice { shown, now: now() }).await.unwrap();
    }
    assert_eq!(store.list(GetBlocks(1)).await.unwrap(), [block.block]);
    forget(&store, block.block).await;
    assert_eq!(store.list(GetBlocks(1)).await.unwrap(), []);
    assert_eq!(store.get(GetBalance).await.unwrap(), count);
}
