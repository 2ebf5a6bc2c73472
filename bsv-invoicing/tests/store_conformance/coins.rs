//! Which coins a payment spends.

use bsv_invoicing::coins::Spending;
use bsv_invoicing::ledger::{Offer, Reserve};
use bsv_invoicing::store::WalletStore;
use bsv_tx::{Script, TxOut};

use super::making::*;
use super::*;

/// Makes coins of strangers, each by its own transaction, in a block or in none.
async fn coins(store: &impl WalletStore, amounts: &[u64], is_mined: bool) {
    for satoshis in amounts {
        let invoice = create(store, at(0), HOUR).await.number;
        let offer = offering(invoice, &[*satoshis], invoice as usize, at(1));
        let number = begin_with(store, offer).await.number;
        store.see(number, at(2)).await.unwrap();
        if is_mined {
            store.mine(number, proof(9), at(3)).await.unwrap();
        }
    }
}

/// The amounts of the coins that are chosen. The coins are released again.
async fn chosen(store: &impl WalletStore, payment: Reserve) -> Vec<u64> {
    let reservation = reserve(store, payment).await;
    store.release(reservation.number).await.unwrap();
    reservation.selection.coins.iter().map(|coin| coin.satoshis).collect()
}

fn at_rate(satoshis: u64, fee_rate: u64) -> Reserve {
    let spending = Spending { satoshis, output_bytes: 34, fee_rate };
    Reserve { spending, ..outgoing("a", 1) }
}

pub(super) async fn smallest_single(store: &impl WalletStore) {
    coins(store, &[1000, 600, 700, 5000, 4000, 3000, 2100], true).await;
    for (satoshis, coin) in [
        (650, 700),
        (600, 600),
        (601, 700),
        (1000, 1000),
        (2500, 3000),
        (3001, 4000),
        (5000, 5000),
        // No coin of similar amount exists, or is large enough.
        (1001, 2100),
        (1500, 2100),
        (4001, 5000),
        (1, 600),
    ] {
        assert_eq!(chosen(store, at_rate(satoshis, 0)).await, [coin], "{satoshis}");
    }
    // This includes the fee for 197 bytes.
    assert_eq!(chosen(store, at_rate(600 - 99, 500)).await, [600]);
    assert_eq!(chosen(store, at_rate(600 - 98, 500)).await, [700]);
    // No single coin suffices, so the largest come first.
    assert_eq!(chosen(store, at_rate(5001, 0)).await.len(), 2);
    assert_eq!(chosen(store, at_rate(16_400, 0)).await.len(), 7);
}

pub(super) async fn sure_ones_first(store: &impl WalletStore) {
    coins(store, &[500, 2500], false).await;
    coins(store, &[1000, 900], true).await;
    assert_eq!(chosen(store, at_rate(400, 0)).await, [900], "though a stranger's would fit better");
    assert_eq!(chosen(store, at_rate(1800, 0)).await.len(), 2, "though a stranger's would do");
    assert_eq!(chosen(store, at_rate(1901, 0)).await, [2500]);
    assert_eq!(chosen(store, at_rate(2600, 0)).await.iter().sum::<u64>(), 1900 + 2500);
    assert_eq!(chosen(store, at_rate(4900, 0)).await.len(), 4);
    // The change of a payment is as sure as the payment, even if it spends a stranger's coin.
    let payment = pay(store, Reserve { spending: at_rate(2300, 0).spending, ..outgoing("b", 1) });
    let payment = payment.await.unwrap().number;
    assert_eq!(chosen(store, at_rate(150, 0)).await, [900], "what is not seen is no coin");
    store.see(transaction_of(store, payment).await, at(9)).await.unwrap();
    assert_eq!(chosen(store, at_rate(150, 0)).await, [200]);
    // Coins of a block that leaves the chain are not sure any more.
    store.forget_block(proof(9).block, at(10)).await.unwrap();
    let refused = store.reserve(at_rate(701, 0)).await;
    assert_refused!(refused, Refusal::InsufficientFunds { spendable: 700, .. });
}

/// Coins of transactions that are sent along come last if those are long.
pub(super) async fn long_ones_last(store: &impl WalletStore) {
    let long = |satoshis: u64, salt: usize| {
        let mut transaction = paying(&[satoshis], salt);
        let locking_script = Script::from_bytes(vec![0; 100_000]);
        transaction.outputs.push(TxOut { satoshis: 0, locking_script });
        transaction
    };
    for (satoshis, salt) in [(1000, 101), (1100, 102), (5000, 103)] {
        let invoice = create(store, at(0), HOUR).await.number;
        let transaction = (&long(satoshis, salt)).into();
        let offer = Offer { transaction, ..offering(invoice, &[satoshis], salt, at(1)) };
        let number = begin_with(store, offer).await.number;
        store.mine(number, proof(9), at(3)).await.unwrap();
    }
    coins(store, &[1500, 1200, 1600], true).await;
    let short = |satoshis| Reserve { prefers_short: true, ..at_rate(satoshis, 0) };
    assert_eq!(chosen(store, at_rate(900, 0)).await, [1000]);
    assert_eq!(chosen(store, short(900)).await, [1200]);
    assert_eq!(chosen(store, short(1201)).await, [1500]);
    assert_eq!(chosen(store, at_rate(2000, 0)).await, [5000]);
    assert_eq!(chosen(store, short(2000)).await, [1600, 1500]);
    assert_eq!(chosen(store, short(4300)).await, [1600, 1500, 1200]);
    assert_eq!(chosen(store, short(4301)).await, [5000], "the short ones are too little");
    assert_eq!(chosen(store, short(11_400)).await.len(), 6, "all are needed");
}

pub(super) async fn largest_first(store: &impl WalletStore) {
    // All coins have similar amounts, in no order.
    coins(store, &[1100, 1900, 1300, 1500, 2000], true).await;
    assert_eq!(chosen(store, at_rate(2001, 0)).await, [2000, 1900]);
    assert_eq!(chosen(store, at_rate(3900, 0)).await, [2000, 1900]);
    assert_eq!(chosen(store, at_rate(3901, 0)).await, [2000, 1900, 1500]);
    assert_eq!(chosen(store, at_rate(7000, 0)).await, [2000, 1900, 1500, 1300, 1100]);
    // One coin suffices.
    coins(store, &[5000], true).await;
    assert_eq!(chosen(store, at_rate(2001, 0)).await, [5000]);
    assert_eq!(chosen(store, at_rate(5001, 0)).await, [5000, 2000]);
}

/// The best coin is found among any number of coins of similar amount.
pub(super) async fn compared(store: &impl WalletStore) {
    let amounts = [vec![1900; 62], vec![1500, 1700, 1200, 1100]].concat();
    let invoice = create(store, at(0), HOUR).await.number;
    let payment = begin_with(store, offering(invoice, &amounts, 1, at(1))).await;
    store.mine(payment.number, proof(9), at(3)).await.unwrap();
    assert_eq!(chosen(store, at_rate(1100, 0)).await, [1100]);
    assert_eq!(chosen(store, at_rate(1101, 0)).await, [1200]);
    assert_eq!(chosen(store, at_rate(1600, 0)).await, [1700]);
    assert_eq!(chosen(store, at_rate(1901, 0)).await, [1900, 1900]);
    coins(store, &[2047], true).await;
    assert_eq!(chosen(store, at_rate(1901, 0)).await, [2047]);
}

pub(super) async fn dust(store: &impl WalletStore) {
    // An input has 149 bytes, and the rest has 48.
    coins(store, &[149, 148, 1, 150, 10_000], true).await;
    let refused = store.reserve(at_rate(20_000, 1000)).await;
    assert_refused!(refused, Refusal::InsufficientFunds { spendable: 10_150, .. });
    assert_eq!(chosen(store, at_rate(9_803, 1000)).await, [10_000]);
    assert_eq!(chosen(store, at_rate(9_804, 1000)).await, [10_000, 150]);
    let refused = store.reserve(at_rate(9_805, 1000)).await;
    assert_refused!(refused, Refusal::InsufficientFunds { spendable: 10_150, .. });
    assert_eq!(chosen(store, at_rate(10_448, 0)).await.len(), 5, "without a fee all are coins");
    let refused = store.reserve(at_rate(u64::MAX, u64::MAX)).await;
    assert_refused!(refused, Refusal::InsufficientFunds { needed: u64::MAX, .. });
}

pub(super) async fn many(store: &impl WalletStore) {
    let invoice = create(store, at(0), HOUR).await.number;
    // All coins have similar amounts, and the smaller ones come last.
    let amounts = [[1001; 501], [1000; 501]].concat();
    let payment = begin_with(store, offering(invoice, &amounts, 1, at(1))).await;
    store.mine(payment.number, proof(9), at(3)).await.unwrap();
    assert_eq!(store.balance().await.unwrap(), 1_002_501);
    assert_eq!(chosen(store, at_rate(500_500, 0)).await, [1001; 500]);
    let refused = store.reserve(at_rate(500_501, 0)).await;
    assert_refused!(refused, Refusal::InsufficientFunds { spendable: 500_500, .. });
    // A stranger's coins with higher amounts take the places of sure ones.
    coins(store, &[400_000, 300_000], false).await;
    let chosen = chosen(store, at_rate(1_000_000, 0)).await;
    assert_eq!((chosen.len(), &chosen[..2]), (302, &[400_000, 300_000][..]));
}
