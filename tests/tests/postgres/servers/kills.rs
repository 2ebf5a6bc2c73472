//! Servers that are killed at random while they receive and send payments.

use std::thread;
use std::time::Duration;

use bsv_tests::{Dice, Trade, repetitions};

use super::Pair;

/// How many payments customers make at most between two kills.
const PAYMENTS_OF_EACH: usize = 200;

/// Half of the killed servers start again before the other one notices, and half afterwards.
#[test]
fn nothing_is_lost_or_paid_twice_while_servers_are_killed() {
    let kills = repetitions("kills of servers that receive and send payments", 100, 6);
    let pair = Pair::start("killed_servers", 0);
    let trade = Trade::begin(&pair.node, &pair.tills, (kills * PAYMENTS_OF_EACH).min(5_000) as u64);
    let mut dice = Dice::new(21);
    trade.run(|| {
        for kill in 0..kills {
            thread::sleep(Duration::from_millis(dice.roll(2_000) as u64));
            let till = &pair.tills[dice.roll(2)];
            till.kill();
            if kill.is_multiple_of(2) {
                pair.wait_for_processes(1);
            }
            till.start();
            pair.node.mine(1);
        }
    });
    assert_eq!(trade.settle(), Vec::<String>::new());
    assert_eq!(trade.differences(), Vec::<String>::new());
    let told = trade.told();
    eprintln!(
        "{kills} kills; {} invoices, {} and {} of them paid with and without a message; {} \
         payments, {} withdrawals",
        told.invoices.len(),
        told.sales.len(),
        told.silent_sales.len(),
        told.purchases.len(),
        told.withdrawals.len(),
    );
    drop(told);
    check_nothing_is_held(&pair);
}

/// Checks that nothing that killed servers had claimed or reserved is so any more.
fn check_nothing_is_held(pair: &Pair) {
    pair.wait_for_processes(2);
    assert_eq!(pair.query("SELECT count(*) FROM $.claims WHERE get_byte(key, 0) <> 0"), "0");
    assert_eq!(pair.query("SELECT count(*) FROM $.reservations"), "0");
}
