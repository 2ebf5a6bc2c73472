//! Tests of the node's own wallet.

use bsv_network::{Broadcast, NodeError, TransactionPlace};
use bsv_tx::{Address, Network, Script, TxOut};
use serde_json::json;

use crate::node::setup::{BSV, Payee, code_of, rich_node};

#[tokio::test]
async fn the_wallet_makes_the_requested_transaction_and_reserves_its_coins() {
    let node = rich_node();
    let rpc = node.rpc();
    let payee = Payee::new();
    let output = |satoshis| TxOut { satoshis, locking_script: payee.address.locking_script() };
    let data = TxOut { satoshis: 0, locking_script: Script::from_bytes([0x00, 0x6a, 0x01, 0x07]) };
    let locked = || node.call("listlockunspent", json!([])).as_array().unwrap().len();
    for outputs in [
        vec![output(20_000)],
        vec![output(20_000), output(1000), output(20_000), data],
        vec![output(120 * BSV + 1)],
    ] {
        let transaction = rpc.wallet_transaction(&outputs).await.unwrap();
        let mut made = transaction.outputs.clone();
        made.retain(|output| outputs.contains(output));
        assert_eq!(made, outputs);
        assert!(transaction.outputs.len() <= outputs.len() + 1);
        assert_eq!(rpc.transaction_place(&transaction.txid()).await, Ok(TransactionPlace::Nowhere));
        assert_eq!(locked(), transaction.inputs.len());
        assert_eq!(rpc.send_transaction(&transaction).await, Ok(Broadcast::Accepted));
        rpc.unlock_coins(&transaction).await.unwrap();
        assert_eq!(locked(), 0);
    }

    let one = rpc.wallet_transaction(&[output(1000)]).await.unwrap();
    let two = rpc.wallet_transaction(&[output(1000)]).await.unwrap();
    assert_ne!(one.inputs[0].previous_output, two.inputs[0].previous_output);
    for transaction in [&one, &two, &one] {
        rpc.unlock_coins(transaction).await.unwrap();
    }
    assert_eq!(locked(), 0);
    let error = rpc.wallet_transaction(&[output(21_000_000 * BSV)]).await.unwrap_err();
    assert_eq!(code_of(&error), -4, "{error}");
    let error = rpc.wallet_transaction(&[]).await.unwrap_err();
    assert_eq!(code_of(&error), -8, "{error}");
}

#[tokio::test]
async fn the_wallet_watches_a_foreign_address() {
    let node = rich_node();
    let rpc = node.rpc();
    let payee = Payee::new();
    rpc.import_address(&payee.address).await.unwrap();
    rpc.import_address(&payee.address).await.unwrap();
    assert_eq!(rpc.coins_of(&payee.address).await, Ok(vec![]));
    let first = payee.receive(rpc, 12_345_678).await;
    node.mine(1);
    let second = payee.receive(rpc, 1).await;
    let mut coins = rpc.coins_of(&payee.address).await.unwrap();
    coins.sort_by_key(|coin| coin.confirmations);
    let found: Vec<_> =
        coins.into_iter().map(|c| ((c.outpoint, c.output), c.confirmations)).collect();
    assert_eq!(found, [(second, 0), (first, 1)]);

    let own = node.call("getnewaddress", json!([]));
    let own = Address::parse(own.as_str().unwrap(), Network::Regtest).unwrap();
    rpc.import_address(&own).await.unwrap();
    let livenet = Address::p2pkh(&payee.key.public_key(), Network::Livenet);
    assert_eq!(code_of(&rpc.import_address(&livenet).await.unwrap_err()), -5);
    assert_eq!(code_of(&rpc.coins_of(&livenet).await.unwrap_err()), -5);
}

#[tokio::test]
async fn amounts_are_exact() {
    let node = rich_node();
    let rpc = node.rpc();
    let payee = Payee::new();
    for satoshis in [1, 12_345_678, 21 * BSV, 30 * BSV + 70_000_001] {
        let (_, output) = payee.receive(rpc, satoshis).await;
        assert_eq!(output.satoshis, satoshis);
    }
    let error = rpc.send_to_address(&payee.address, 21_000_000 * BSV).await.unwrap_err();
    assert_eq!(code_of(&error), -6, "{error}");
    let error = rpc.send_to_address(&payee.address, u64::MAX).await.unwrap_err();
    assert!(matches!(error, NodeError::Rejected { .. }), "{error}");
}
