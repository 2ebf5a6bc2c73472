use bsv_tests::{Bill, Metrics, Node, Purse, Server, Site};
use serde_json::{Value, json};

const COIN: u64 = 100_000;

fn create(server: &Server, body: &Value) -> String {
    let reply = server.wallet().post("/api/v1/invoices", body.to_string());
    assert_eq!(reply.status, 201, "{}", reply.body);
    let invoice: Value = serde_json::from_str(&reply.body).unwrap();
    invoice["id"].as_str().unwrap().to_owned()
}

fn bill(server: &Server, id: &str) -> Bill {
    Bill::at(&format!("http://{}/api/v1/payment/{id}", server.payments().address()))
}

fn invoices(event: &str) -> String {
    format!("bsv_invoices_total{{event=\"{event}\"}}")
}

fn payments(outcome: &str) -> String {
    format!("bsv_incoming_payments_total{{outcome=\"{outcome}\"}}")
}

#[test]
fn what_happens_to_invoices_and_payments_is_counted() {
    let mut node = Node::start();
    node.mine(101);
    let purse = Purse::filled(&node, 4, COIN);
    let mut site = Site::on(&node);
    site.set_env("BSV_LOG", "off");
    site.set("metrics", json!({"balance": true}));
    let server = site.server();
    let wallet = server.wallet();
    assert_eq!(Metrics::of(wallet).value("bsv_events_last_number"), 0.0);

    let [paid, deleted] =
        [5_000, 1].map(|satoshis| create(&server, &json!({"satoshis": satoshis})));
    assert_eq!(wallet.request("DELETE", &format!("/api/v1/invoices/{deleted}"), b"").status, 204);
    let soon = bsv_invoicing::Timestamp::of_system().after(std::time::Duration::from_secs(2));
    create(&server, &json!({"satoshis": 5, "expiresAt": soon.to_string()}));
    crate::metrics::wait_for(wallet, &invoices("expired"), 1.0);
    let metrics = Metrics::of(wallet);
    assert_eq!(metrics.value(&invoices("created")), 3.0);
    assert_eq!(metrics.value(&invoices("deleted")), 1.0);
    assert_eq!(metrics.value("bsv_events_last_number"), 5.0);

    let bill = bill(&server, &paid);
    let transaction = purse.transaction_for(&bill);
    assert_eq!(server.payments().post(&format!("/api/v1/payment/{paid}"), "{}").status, 400);
    let worthless = purse.spend(&[purse.coin()], Vec::new(), 1);
    let refusal = bill.post(&worthless).status;
    assert!((400..500).contains(&refusal), "{refusal}");
    for _ in 0..2 {
        assert_eq!(bill.post(&transaction).status, 201);
    }
    let metrics = Metrics::of(wallet);
    assert_eq!(metrics.value(&payments("received")), 1.0);
    assert_eq!(metrics.value(&payments("refused")), 1.0);
    assert_eq!(metrics.value(&payments("mined")), 0.0);
    assert_eq!(metrics.value(&invoices("paid")), 1.0);
    assert_eq!(metrics.value("bsv_balance_satoshis"), 5_000.0);
    node.mine(1);
    crate::metrics::wait_for(wallet, &payments("mined"), 1.0);

    let other = create(&server, &json!({"satoshis": 5_000}));
    let bill = self::bill(&server, &other);
    let transaction = purse.transaction_for(&bill);
    node.stop();
    assert_eq!(bill.post(&transaction).status, 503);
    assert_eq!(Metrics::of(wallet).value(&payments("unavailable")), 1.0);
}

#[test]
fn metrics_report_the_node_as_it_was_last_found() {
    let mut node = Node::start();
    node.mine(3);
    let mut site = Site::on(&node);
    site.set_env("BSV_LOG", "off");
    let server = site.server();
    let listeners = [server.wallet(), server.minerid()];
    for listener in listeners {
        crate::metrics::wait_for(listener, "bsv_node_reachable", 1.0);
        crate::metrics::wait_for(listener, "bsv_node_tip_height", 3.0);
        let age = Metrics::of(listener).value("bsv_node_tip_age_seconds");
        assert!((0.0..600.0).contains(&age), "{age}");
    }
    node.mine(2);
    crate::metrics::wait_for(server.wallet(), "bsv_node_tip_height", 5.0);
    node.stop();
    for listener in listeners {
        crate::metrics::wait_for(listener, "bsv_node_reachable", 0.0);
        assert_eq!(Metrics::of(listener).value("bsv_node_tip_height"), 5.0);
    }
}

#[test]
fn the_balance_is_a_metric_only_if_the_settings_say_so() {
    let site = Site::new();
    let metrics = Metrics::of(site.server().wallet());
    assert!(!metrics.0.contains("bsv_balance_satoshis"), "{}", metrics.0);
    assert_eq!(metrics.get("bsv_node_reachable"), None, "no node is configured");
}
