//! A wallet whose store does a step and loses the answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bsv_invoicing::coins::{Chain, KeyPath};
use bsv_invoicing::ledger::queries::GetHoldings;
use bsv_invoicing::ledger::{CheckedProof, Notice, Noticed, ReservedWithdrawal, ShownPlace, Watch};
use bsv_invoicing::store::{
    Answering, BoxedAnswer, BoxedCommand, Store, WalletStore, WalletStoreError,
};
use bsv_invoicing::transactions::{BlockPlace, Proof};
use bsv_invoicing::{
    Error, NodeRpc, RedbWalletStore, Timestamp, Wallet, WalletSettings, WithdrawalDraft,
};
use bsv_store::{DatabaseOptions, DirLock, Keystore, PlainKeys, StoreError};
use bsv_tests::Node;
use bsv_tx::{
    BlockHash, MerkleBranch, Network, OutPoint, Script, Sibling, Transaction, TxIn, TxOut, Txid,
};
use serde_json::json;
use tokio::time::{sleep, timeout};

use crate::postgres::store_conformance::forward::{forward_others, forward_queries};

/// A store that reserves what it is told to, and does not say so. It is away from then on.
struct LosingStore {
    store: RedbWalletStore,
    is_away: Arc<AtomicBool>,
}

fn lost() -> WalletStoreError {
    StoreError::Panicked.into()
}

impl LosingStore {
    async fn run(
        &self,
        weight: usize,
        command: BoxedCommand,
    ) -> Result<BoxedAnswer, WalletStoreError> {
        if self.is_away.load(Ordering::SeqCst) {
            return Err(lost());
        }
        let answer = self.store.run_command(weight, command).await?;
        if answer.is::<ReservedWithdrawal>() {
            self.is_away.store(true, Ordering::SeqCst);
            return Err(lost());
        }
        Ok(answer)
    }
}

impl Store for LosingStore {
    fn run_command(&self, weight: usize, command: BoxedCommand) -> Answering<'_, BoxedAnswer> {
        Box::pin(self.run(weight, command))
    }

    forward_queries!(self => self.store);
    forward_others!(self => self.store);
}

const SATOSHIS: u64 = 100_000;

/// A block that pays a key of the wallet.
fn payment() -> Noticed {
    let input = TxIn {
        previous_output: OutPoint { txid: Txid::from_bytes([9; 32]), vout: 0 },
        unlocking_script: Script::default(),
        sequence: u32::MAX,
    };
    let output = TxOut { satoshis: SATOSHIS, locking_script: Script::p2pkh(&[7; 20]) };
    let transaction =
        Transaction { version: 1, inputs: vec![input], outputs: vec![output], lock_time: 0 };
    let block = BlockPlace { height: 1, hash: BlockHash::from_bytes([1; 32]) };
    let branch = MerkleBranch { position: 0, siblings: vec![Sibling::Hash([1; 32])] };
    let checked = CheckedProof { proof: Proof { block, branch }, reorganisations: 0 };
    Noticed {
        transaction: (&transaction).into(),
        place: ShownPlace::Block(checked),
        came_at: Timestamp::of_system(),
        ancestry: Vec::new(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn coins_that_were_reserved_without_an_answer_are_released() {
    let node = Node::start();
    node.mine(1);
    let dir = tempfile::tempdir().unwrap();
    let lock = DirLock::acquire(&dir.path().join("wallet"), "test").unwrap();
    let store = RedbWalletStore::open(lock, DatabaseOptions::default()).unwrap();
    let key = KeyPath { account: 0, chain: Chain::User, index: 1 };
    store.execute(Watch { keys: vec![([7; 20], key)] }).await.unwrap();
    let now = Timestamp::of_system();
    store.execute(Notice { shown: vec![payment()], now }).await.unwrap();

    let is_away = Arc::new(AtomicBool::new(false));
    let store = LosingStore { store, is_away: Arc::clone(&is_away) };
    let keystore = Keystore::open(&dir.path().join("keys"), None, PlainKeys::Allowed, "test");
    let settings = WalletSettings::new(Network::Regtest);
    let wallet = Wallet::open(Arc::new(store), keystore.unwrap(), settings).await.unwrap();
    let wallet = Arc::new(wallet.with_node(NodeRpc::new(node.settings())));
    let draft = json!({ "script": "51", "satoshis": SATOSHIS / 2 }).to_string();
    let draft = WithdrawalDraft::from_json(draft.as_bytes(), Network::Regtest).unwrap();
    let withdrawn = wallet.withdraw(draft, None).await;
    assert!(matches!(withdrawn, Err(Error::Store(_))), "{withdrawn:?}");
    let reserved = async || wallet.store().get(GetHoldings).await.unwrap().reserved;
    assert_eq!(reserved().await, SATOSHIS);
    is_away.store(false, Ordering::SeqCst);
    let released = async {
        while reserved().await > 0 {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(Duration::from_secs(60), released).await.unwrap();
}
