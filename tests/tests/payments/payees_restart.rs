//! Payments that are open when the server is killed. The server completes them after its next
//! start.

use std::io::Write;
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::thread;

use bsv_tests::payee::{Answer, Payee, go_dpp_terms, output};
use bsv_tests::purse::knows;
use serde_json::json;

use super::merchant::{Merchant, wait_until};
use super::paying_scene::{broadcast, buyer, node};

/// A wallet with 50,000 satoshis that was killed while it waited for the payee's answer, and then
/// started again.
fn killed_while_waiting(payee: &Payee) -> Merchant {
    killed_while_posting(&payee.url(), payee)
}

/// Such a wallet that paid this URL, for which payments are posted to `till`.
fn killed_while_posting(url: &str, till: &Payee) -> Merchant {
    let buyer = buyer(&[50_000]);
    let (arrive, arrived) = channel();
    till.on_post(move |_| {
        let _ = arrive.send(());
        Answer::silence()
    });
    let body = json!({ "payToURL": url }).to_string();
    let Merchant { site, server } = buyer;
    let wallet = server.wallet().clone();
    let headers = [("Content-Type", "application/json")];
    let call =
        thread::spawn(move || wallet.try_send("POST", "/api/v1/pay", &headers, body.as_bytes()));
    arrived.recv().unwrap();
    server.kill();
    assert!(call.join().unwrap().is_err());
    Merchant { server: site.server(), site }
}

fn payee() -> Payee {
    Payee::asking(&go_dpp_terms(&[output(10_000)]))
}

fn check_paid(buyer: &Merchant, payee: &Payee) {
    wait_until("it is settled", || buyer.outgoing_states() == ["settled"]);
    let payment = &buyer.outgoing()[0];
    assert_eq!(payment["txid"], payee.paid_with().txid().to_string());
    assert_eq!(buyer.balance(), 40_000 - payment["fee"].as_u64().unwrap());
    wait_until("the node has it", || knows(node(), &payee.paid_with()));
    let result = buyer.pay_ok(&payee.url());
    assert_eq!(result["tx_id"], payment["txid"]);
}

#[test]
fn an_open_payment_is_sent_again_unchanged() {
    let payee = payee();
    let buyer = killed_while_waiting(&payee);
    payee.on_post(Answer::accept);
    check_paid(&buyer, &payee);
}

#[test]
fn an_open_payment_is_sent_again_where_its_terms_said() {
    let till = payee();
    let mut terms = go_dpp_terms(&[output(10_000)]);
    terms["paymentUrl"] = json!(till.url());
    let desk = Payee::asking(&terms);
    let buyer = killed_while_posting(&desk.url(), &till);
    desk.on_get(|_| Answer::text(404, "{}"));
    till.on_post(Answer::accept);
    wait_until("it is settled", || buyer.outgoing_states() == ["settled"]);
    assert_eq!(buyer.outgoing()[0]["txid"], till.paid_with().txid().to_string());
    assert!(desk.requests("POST").is_empty());
}

#[test]
fn a_payment_that_the_payee_has_broadcast_meanwhile_is_settled() {
    let payee = payee();
    let buyer = killed_while_waiting(&payee);
    let (site, server) = (buyer.site, buyer.server);
    server.kill();
    broadcast(&payee.paid_with());
    payee.on_post(|_| Answer::text(400, "{}"));
    let buyer = Merchant { server: site.server(), site };
    check_paid(&buyer, &payee);
}

#[test]
fn a_payment_that_the_payee_then_refuses_frees_its_coins() {
    let payee = payee();
    let buyer = killed_while_waiting(&payee);
    payee.on_post(|_| Answer::text(400, "{}"));
    wait_until("it is refused", || buyer.outgoing_states() == ["refused"]);
    assert_eq!(buyer.balance(), 50_000);
    payee.on_post(Answer::accept);
    buyer.pay_ok(&payee.url());
    assert_eq!(buyer.outgoing_states(), ["settled", "refused"]);
}

#[test]
fn a_payment_continues_after_its_caller_has_left() {
    let buyer = buyer(&[50_000]);
    let payee = payee();
    let (arrive, arrived) = channel();
    let (open, gate) = channel::<()>();
    let gate = Mutex::new(gate);
    payee.on_post(move |request| {
        let _ = arrive.send(());
        assert!(gate.lock().unwrap().recv().is_err());
        Answer::accept(request)
    });
    let body = json!({ "payToURL": payee.url() }).to_string();
    let mut caller = TcpStream::connect(buyer.server.wallet().address()).unwrap();
    let request = format!(
        "POST /api/v1/pay HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    caller.write_all(request.as_bytes()).unwrap();
    arrived.recv().unwrap();
    drop(caller);
    drop(open);
    check_paid(&buyer, &payee);
    assert_eq!(buyer.outgoing()[0]["memo"], "thanks");
}
