//! How much work strangers can make for the node, while others need it too.

use std::thread;
use std::time::Duration;

use bsv_tests::Hold;
use bsv_tests::purse::FEE;
use bsv_tx::{Script, TxOut};

use super::counter::Counter;
use super::merchant::wait_until;

/// More than the calls that a service makes at once.
const PAYERS: usize = 14;

#[test]
fn strangers_who_keep_the_node_busy_do_not_keep_others_from_it() {
    let (counter, gate) = Counter::with_gate(PAYERS + 1);
    let Counter { node, shop, purse } = &counter;
    let (id, bill) = counter.bill();
    assert_eq!(bill.post(&purse.transaction_for(&bill)).status, 201);
    let bills: Vec<_> = (0..PAYERS).map(|_| counter.bill().1).collect();
    let transactions: Vec<_> = bills.iter().map(|bill| purse.transaction_for(bill)).collect();

    gate.shut("sendrawtransaction", Hold::Call);
    thread::scope(|scope| {
        let payments = bills.iter().zip(&transactions);
        let payers: Vec<_> =
            payments.map(|(bill, it)| scope.spawn(|| bill.post(it).status)).collect();
        gate.wait_for(3);
        let block = node.mine(1)[0].to_string();
        wait_until("the block is followed", || shop.payments(&id)[0]["state"] == "mined");
        assert_eq!(shop.payments(&id)[0]["blockHash"], block);
        // The result of the last check of readiness counts for two seconds.
        thread::sleep(Duration::from_millis(2100));
        for listener in [shop.server.wallet(), shop.server.payments()] {
            let ready = listener.get("/readyz");
            assert_eq!(ready.status, 200, "{}", ready.body);
        }
        assert!(payers.iter().all(|payer| !payer.is_finished()), "they keep the node busy");

        // The node gets no further calls when payers stop waiting.
        let statuses = payers.into_iter().map(|payer| payer.join().unwrap());
        assert!(statuses.into_iter().all(|status| status == 503));
        assert_eq!(gate.heard("sendrawtransaction", ""), 4);
        let ready = shop.server.wallet().get("/readyz");
        assert_eq!(ready.status, 200, "{}", ready.body);
        gate.open();
    });
}

#[test]
fn large_payments_do_not_keep_small_ones_from_the_node() {
    const LARGE: usize = 4;
    let (counter, gate) = Counter::with_gate(LARGE + 1);
    let bills: Vec<_> = (0..LARGE).map(|_| counter.bill().1).collect();
    let large: Vec<_> = bills
        .iter()
        .map(|bill| {
            let data =
                [&[0x00, 0x6a, 0x4e][..], &200_000_u32.to_le_bytes(), &[7; 200_000]].concat();
            let data = TxOut { satoshis: 0, locking_script: Script::from_bytes(data) };
            let outputs = [bill.outputs(), vec![data]].concat();
            counter.purse.spend(&[counter.purse.coin()], outputs, 30_000)
        })
        .collect();
    let (id, bill) = counter.bill();
    let small = counter.purse.spend(&[counter.purse.coin()], bill.outputs(), FEE);
    gate.shut("sendrawtransaction", Hold::Call);
    thread::scope(|scope| {
        let payments = bills.iter().zip(&large);
        let payers: Vec<_> =
            payments.map(|(bill, it)| scope.spawn(|| bill.post(it).status)).collect();
        wait_until("all are checked", || gate.heard("gettxouts", "") >= LARGE);
        gate.wait_for(1);
        // All that get a turn are held up.
        thread::sleep(Duration::from_millis(500));
        gate.let_pass();
        assert_eq!(bill.post(&small).status, 201);
        counter.check_paid(&id, &small);
        assert!(payers.iter().all(|payer| !payer.is_finished()), "the large ones wait");
        gate.open();
    });
}
