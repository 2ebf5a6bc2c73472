//! Tests of whether outputs are spent.

use bsv_network::{Broadcast, Mempool, NodeRpc, NodeSettings, OutputState};
use bsv_tests::Gate;
use bsv_tx::{OutPoint, TxOut, Txid};

use crate::node::away::client_of;
use crate::node::setup::{BSV, Payee, rich_node};

#[tokio::test]
async fn an_output_is_unspent_until_it_is_spent() {
    let node = rich_node();
    let rpc = node.rpc();
    let (payee, other) = (Payee::new(), Payee::new());
    let coin = payee.receive(rpc, 3 * BSV).await;
    let depths = async |outpoint| {
        let mut depths = Vec::new();
        for mempool in [Mempool::Include, Mempool::Ignore] {
            let found = rpc.unspent_output(&outpoint, mempool).await.unwrap();
            depths.push(found.map(|found| {
                assert_eq!(found.output, coin.1);
                found.confirmations
            }));
        }
        depths
    };

    assert_eq!(depths(coin.0).await, [Some(0), None], "made in the mempool");
    node.mine(2);
    assert_eq!(depths(coin.0).await, [Some(2), Some(2)], "made in a block");
    let spending = payee.pay(&coin, &other, 500);
    assert_eq!(rpc.send_transaction(&spending).await, Ok(Broadcast::Accepted));
    assert_eq!(depths(coin.0).await, [None, Some(2)], "spent in the mempool");
    node.mine(1);
    assert_eq!(depths(coin.0).await, [None, None], "spent in a block");
    let beyond = OutPoint { txid: coin.0.txid, vout: 1000 };
    assert_eq!(depths(beyond).await, [None, None], "never made");
}

#[tokio::test]
async fn many_outputs_are_looked_up_a_thousand_at_once() {
    let node = rich_node();
    let rpc = node.rpc();
    let (payee, other) = (Payee::new(), Payee::new());
    let coin = payee.receive(rpc, 12_345_678).await;
    node.mine(1);
    let fresh = payee.receive(rpc, 1).await;
    let spending = payee.pay(&coin, &other, 500);
    rpc.send_transaction(&spending).await.unwrap();
    let made = other.coin_in(&spending);
    let never = OutPoint { txid: Txid::from_bytes([7; 32]), vout: 0 };
    let beyond = OutPoint { vout: u32::MAX, ..coin.0 };
    assert_eq!(rpc.unspent_output(&beyond, Mempool::Include).await, Ok(None));
    let asked = [coin.0, made.0, never, beyond, made.0, fresh.0, coin.0];

    let unspent = |output: &TxOut, confirmations| OutputState::Unspent {
        satoshis: output.satoshis,
        confirmations,
    };
    let spent = OutputState::Spent { by: spending.txid() };
    let missing = OutputState::Missing;
    let expected = [
        spent,
        unspent(&made.1, 0),
        missing,
        missing,
        unspent(&made.1, 0),
        unspent(&fresh.1, 0),
        spent,
    ];
    assert_eq!(rpc.outputs(&asked, Mempool::Include).await.unwrap(), expected);
    let expected =
        [unspent(&coin.1, 1), missing, missing, missing, missing, missing, unspent(&coin.1, 1)];
    assert_eq!(rpc.outputs(&asked, Mempool::Ignore).await.unwrap(), expected);

    node.mine(1);
    for mempool in [Mempool::Include, Mempool::Ignore] {
        let found = rpc.outputs(&[coin.0, made.0], mempool).await.unwrap();
        assert_eq!(found, [missing, unspent(&made.1, 1)]);
    }
    let gate = Gate::before(&node);
    let rpc = NodeRpc::new(NodeSettings { port: gate.port(), ..node.settings() });
    let is_made = |place: &usize| place % 7 > 2;
    let many = (0..2500).map(|place| if is_made(&place) { made.0 } else { coin.0 });
    let found = rpc.outputs(&many.collect::<Vec<_>>(), Mempool::Include).await.unwrap();
    let expected =
        (0..2500).map(|place| if is_made(&place) { unspent(&made.1, 1) } else { missing });
    assert_eq!(found, expected.collect::<Vec<_>>());
    assert_eq!(gate.heard("gettxouts", ""), 3, "a thousand at once");
}

#[tokio::test]
async fn looking_up_no_outputs_makes_no_call() {
    let rpc = client_of(|_| panic!("the node was called"));
    assert_eq!(rpc.outputs(&[], Mempool::Include).await, Ok(vec![]));
}
