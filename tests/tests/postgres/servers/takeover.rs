//! What a killed server had begun, the other one finishes.

use std::thread;
use std::time::{Duration, Instant};

use bsv_invoicing::Timestamp;
use bsv_tests::payee::{Answer, Payee, go_dpp_terms, output};
use bsv_tests::purse::{FEE, send};
use bsv_tests::till::wait_until;
use bsv_tests::{Bill, Hold, Till};
use bsv_tx::TxOut;
use serde_json::{Value, json};

use super::{COIN, PRICE, Pair, check_paid, is_of};

const SEND: &str = "sendrawtransaction";
const WITHDRAWALS: &str = "/api/v1/withdrawals";
const ADDRESS: &str = "mrCDrCybB6J1vRfbwM5hemdJz73FwDBC8r";

/// A server that is killed, and the other one.
#[derive(Clone, Copy, Debug)]
struct Roles {
    killed: usize,
    other: usize,
}

/// Each of the servers, the first time as the leader and the second time not.
const ROLES: [Roles; 2] = [Roles { killed: 1, other: 0 }, Roles { killed: 0, other: 1 }];

impl Pair {
    fn kill(&self, Roles { killed, .. }: Roles) -> &Till {
        self.tills[killed].kill();
        &self.tills[1 - killed]
    }

    /// Starts the killed server again, and has the first one lead.
    fn restore(&self, Roles { killed, .. }: Roles) {
        self.wait_for_processes(1);
        if killed == 0 {
            assert_eq!(self.tills[1].stop(), 0);
            self.tills[0].start();
            self.wait_for_leader();
        }
        self.tills[1].start();
    }
}

#[test]
fn a_payment_in_flight_is_completed() {
    let (pair, gates) = Pair::gated("payment_taken_over", 4);
    for roles in ROLES {
        for hold in [Hold::Call, Hold::Answer] {
            let Roles { killed, other } = roles;
            let (id, bills) = pair.bills(other);
            let transaction = pair.purse.transaction_for(&bills[0]);
            gates[killed].shut(SEND, hold);
            thread::scope(|scope| {
                let post = scope.spawn(|| bills[killed].try_post(&transaction));
                gates[killed].wait_for(1);
                let survivor = pair.kill(roles);
                assert!(post.join().unwrap().is_err());
                gates[killed].cut();
                wait_until("the payment is completed", || survivor.state(&id) == "paid");
                check_paid(survivor, &id, &transaction);
            });
            let [first, second] = [(); 2].map(|()| bills[other].post(&transaction));
            assert_eq!((first.status, &first.body), (201, &second.body), "{roles:?} {hold:?}");
            pair.restore(roles);
        }
    }
    assert_eq!(pair.tills[0].balance(), 4 * PRICE);
    pair.check_books();
}

/// The payer gets the answer at the other server, whether that has taken over already or not.
#[test]
fn a_payer_who_asks_the_other_server_after_a_kill_is_told_the_outcome() {
    let (pair, gates) = Pair::gated("asked_after_kill", 2);
    for roles in ROLES {
        let Roles { killed, other } = roles;
        let (id, bills) = pair.bills(other);
        let transaction = pair.purse.transaction_for(&bills[0]);
        gates[killed].shut(SEND, Hold::Call);
        thread::scope(|scope| {
            let post = scope.spawn(|| bills[killed].try_post(&transaction));
            gates[killed].wait_for(1);
            let survivor = pair.kill(roles);
            assert!(post.join().unwrap().is_err());
            gates[killed].cut();
            let reply = loop {
                let reply = bills[other].post(&transaction);
                if reply.status != 503 {
                    break reply;
                }
                thread::sleep(Duration::from_millis(50));
            };
            assert_eq!(reply.status, 201, "{}", reply.body);
            check_paid(survivor, &id, &transaction);
        });
        pair.restore(roles);
    }
    pair.check_books();
}

#[test]
fn a_payment_to_a_payee_is_completed_with_the_same_transaction() {
    let pair = Pair::start("outgoing_taken_over", 0);
    pair.tills.iter().for_each(|till| till.fill(50_000));
    for roles in ROLES {
        let payee = Payee::asking(&go_dpp_terms(&[output(1_000)]));
        payee.on_post(|_| Answer::silence());
        let payer = &pair.tills[roles.killed];
        let survivor = thread::scope(|scope| {
            let body = json!({ "payToURL": payee.url() });
            let pay = scope.spawn(move || {
                payer.post_with_key("/api/v1/pay", &format!("key {}", roles.killed), &body)
            });
            wait_until("the payee is paid", || !payee.requests("POST").is_empty());
            let survivor = pair.kill(roles);
            payee.on_post(Answer::accept);
            assert!(pay.join().unwrap().is_err());
            survivor
        });
        let payment = || survivor.outgoing().remove(0);
        wait_until("the payment is settled", || payment()["state"] == "settled");
        assert_eq!(payment()["url"], payee.url());
        let txid = json!(payee.paid_with().txid().to_string());
        assert_eq!(payment()["txid"], txid);
        let reply = survivor.pay(&payee.url());
        assert_eq!(reply.status, 200, "{}", reply.body);
        assert_eq!(serde_json::from_str::<Value>(&reply.body).unwrap()["tx_id"], txid);
        pair.restore(roles);
    }
    pair.check_books();
}

/// Has a payer pay an invoice with very many outputs, each of which is a coin of the wallet.
fn fill_with_small_coins(pair: &Pair, till: &Till, coins: usize) {
    let id = till.invoice(1);
    let bill = Bill::at(&till.payment_url(&id));
    let output = TxOut { satoshis: 150, ..bill.outputs()[0].clone() };
    let fee = FEE + 4 * coins as u64;
    let transaction = pair.purse.spend(&[pair.purse.coin()], vec![output; coins], fee);
    let reply = bill.post(&transaction);
    assert_eq!(reply.status, 201, "{}", reply.body);
    // A withdrawal of all spends mined coins.
    pair.node.mine(1);
    wait_until("it is mined", || till.payments_of(&id)[0]["state"] == "mined");
}

/// Makes the database refuse to record payments, as if another writer were always first. The server tries again.
const REFUSE: &str = "CREATE FUNCTION $.refuse() RETURNS trigger LANGUAGE plpgsql AS \
    'BEGIN RAISE ''not now'' USING ERRCODE = ''serialization_failure''; END'; \
    CREATE TRIGGER refuse BEFORE INSERT ON $.outgoing EXECUTE FUNCTION $.refuse()";

/// Kills the server when it has reserved the coins of a withdrawal and before it has recorded it.
fn kill_before_it_records(pair: &Pair, roles: Roles, key: &str, body: &Value) {
    let payer = &pair.tills[roles.killed];
    pair.query(REFUSE);
    thread::scope(|scope| {
        let ask = scope.spawn(|| payer.post_with_key(WITHDRAWALS, key, body));
        let reserved = || pair.query("SELECT count(*) FROM $.reservations") != "0";
        wait_until("the coins are reserved", reserved);
        pair.kill(roles);
        assert!(ask.join().unwrap().is_err());
    });
    pair.query("DROP FUNCTION $.refuse() CASCADE");
    assert_eq!(pair.query("SELECT count(*) FROM $.outgoing"), "0");
}

#[test]
fn coins_that_a_killed_server_had_reserved_are_free_again() {
    const COINS: usize = 50;
    for (roles, schema) in ROLES.into_iter().zip(["reserved", "reserved_by_leader"]) {
        let pair = Pair::start(schema, 1);
        fill_with_small_coins(&pair, &pair.tills[0], COINS);
        let survivor = &pair.tills[roles.other];
        let before = survivor.balance();
        let body = json!({ "address": ADDRESS, "all": true });
        kill_before_it_records(&pair, roles, "all", &body);
        let deadline = Instant::now() + Duration::from_secs(120);
        let answer = loop {
            let reply = survivor.post_with_key(WITHDRAWALS, "all", &body).unwrap();
            if reply.status == 201 {
                break serde_json::from_str::<Value>(&reply.body).unwrap();
            }
            let (status, code) = super::problem(&reply);
            let may_be = ["insufficient-funds", "payment-running"];
            assert!(may_be.contains(&code.as_str()), "{status} {code}");
            assert!(Instant::now() < deadline, "the coins stay reserved: {}", reply.body);
            thread::sleep(Duration::from_millis(100));
        };
        let [satoshis, fee] = ["satoshis", "fee"].map(|it| answer[it].as_u64().unwrap());
        assert_eq!((satoshis + fee, survivor.balance()), (before, 0));
        pair.wait_for_processes(1);
        assert_eq!(pair.query("SELECT count(*) FROM $.reservations"), "0");
        // A server lets go of what it has done after it has answered.
        wait_until("nothing is claimed", || {
            pair.query("SELECT count(*) FROM $.claims WHERE get_byte(key, 0) <> 0") == "0"
        });
        pair.tills[roles.killed].start();
        pair.check_books();
    }
}

#[test]
fn a_payment_without_a_message_is_seen_after_the_leader_was_killed() {
    let pair = Pair::start("seen_after_kill", 3);
    let survivor = &pair.tills[1];
    let invoices = [(); 3].map(|()| pair.bills(1));
    let pay = |which: usize| {
        let transaction = pair.purse.transaction_for(&invoices[which].1[0]);
        send(&pair.node, &transaction);
        transaction
    };
    let is_paid = |which: usize| survivor.state(&invoices[which].0) == "paid";
    let before = pay(0);
    wait_until("it is seen", || is_paid(0));
    pair.tills[0].kill();
    let nobody_leads = pay(1);
    wait_until("what came meanwhile is seen", || is_paid(1));
    let after = pay(2);
    wait_until("what comes afterwards is seen", || is_paid(2));
    for (which, transaction) in [before, nobody_leads, after].iter().enumerate() {
        check_paid(survivor, &invoices[which].0, transaction);
    }
    pair.node.mine(1);
    wait_until("the block is followed", || {
        invoices.iter().all(|(id, _)| survivor.payments_of(id)[0]["state"] == "mined")
    });
    assert_eq!(survivor.balance(), 3 * PRICE);
    pair.tills[0].start();
    pair.check_books();
}

#[test]
fn invoices_expire_after_the_leader_was_killed() {
    let pair = Pair::start("expired_after_kill", 0);
    let soon = Timestamp::of_system().after(Duration::from_secs(3));
    let body = json!({ "satoshis": COIN, "expiresAt": soon.to_string() });
    let id = pair.tills[1].invoice_of(&body);
    pair.tills[0].kill();
    let survivor = &pair.tills[1];
    let is_told = |event: &Value| is_of(event, "invoice.expired", &id);
    wait_until("the expiry is told", || survivor.events().iter().any(is_told));
    assert_eq!(survivor.events().iter().filter(|event| is_told(event)).count(), 1);
}

/// A server that is told to stop leaves, so that nobody waits for it.
#[test]
fn a_server_that_stops_hands_over_at_once() {
    let pair = Pair::start("handed_over", 1);
    let before = pair.leader();
    assert_eq!(pair.tills[0].stop(), 0);
    assert_eq!(pair.query("SELECT count(*) FROM $.processes"), "1");
    wait_until("the other one leads", || ![String::new(), before.clone()].contains(&pair.leader()));
    let id = pair.tills[1].invoice(PRICE);
    let bill = Bill::at(&pair.tills[1].payment_url(&id));
    let transaction = pair.purse.transaction_for(&bill);
    send(&pair.node, &transaction);
    wait_until("a payment is seen", || pair.tills[1].state(&id) == "paid");
    pair.tills[0].start();
    pair.check_books();
}

/// A script that was shown by a server which is gone is watched by the one that reads the blocks.
#[test]
fn a_mined_payment_to_a_script_that_a_killed_server_had_shown_is_seen() {
    let pair = Pair::start("shown_by_killed", 1);
    let (id, bills) = pair.bills(1);
    pair.tills[1].kill();
    let transaction = pair.purse.transaction_for(&bills[1]);
    send(&pair.node, &transaction);
    pair.node.mine(1);
    let survivor = &pair.tills[0];
    wait_until("the payment is seen", || survivor.state(&id) == "paid");
    pair.restore(ROLES[0]);
    pair.check_books();
}
