//! Where a payment is posted: where its terms say, if the payee may say that.

use bsv_tests::payee::{Answer, Payee, bip270_terms, brc_terms, go_dpp_terms, output};
use bsv_tests::tls::authority;
use bsv_tx::TxOut;
use serde_json::{Value, json};

use super::payees::trusting;
use super::paying_scene::{buyer, check_problem};

type Terms = fn(&[TxOut]) -> Value;

/// A payee whose terms, in this form, name this URL for the payment.
fn naming(terms: Terms, payment_url: &str) -> Payee {
    let mut terms = terms(&[output(1_000)]);
    terms["paymentUrl"] = json!(payment_url);
    Payee::asking(&terms)
}

/// The paths of the posts to a payee.
fn posts(payee: &Payee) -> Vec<String> {
    payee.requests("POST").into_iter().map(|post| post.path).collect()
}

#[test]
fn a_payment_is_posted_where_its_terms_say_in_every_dialect() {
    let buyer = buyer(&[100_000]);
    for terms in [go_dpp_terms as Terms, brc_terms, bip270_terms] {
        for (named, path) in [
            ("", "/api/v1/payment/order-1"),
            ("/take/1?x=y#z", "/take/1?x=y"),
            ("receipts/", "/api/v1/payment/receipts/"),
            ("?now", "/api/v1/payment/order-1?now"),
        ] {
            let payee = naming(terms, named);
            buyer.pay_ok(&payee.url());
            assert_eq!(posts(&payee), [path], "{named}");
        }
        let till = Payee::asking(&Value::Null);
        let desk = naming(terms, &till.url());
        till.on_post(|_| Answer::text(503, "{}"));
        check_problem(&buyer.pay(&desk.url()), 503, "payment-outcome-unknown");
        desk.on_get(|_| Answer::text(404, "{}"));
        till.on_post(Answer::accept);
        let paid = buyer.pay_ok(&desk.url());
        assert_eq!(paid["tx_id"], till.paid_with().txid().to_string());
        assert_eq!(buyer.pay_ok(&desk.url()), paid);
        assert!(posts(&till).len() >= 2 && posts(&desk).is_empty());
        let listed = &buyer.outgoing()[0];
        assert_eq!((&listed["url"], &listed["state"]), (&json!(desk.url()), &json!("settled")));
    }
}

#[test]
fn terms_relative_to_where_a_redirect_led_say_so_too() {
    let buyer = buyer(&[50_000]);
    let desk = naming(go_dpp_terms, "take");
    let front = Payee::asking(&Value::Null);
    let elsewhere = Answer::redirect(&desk.url());
    front.on_get(move |_| elsewhere.clone());
    buyer.pay_ok(&front.url());
    assert_eq!((posts(&desk), posts(&front)), (vec!["/api/v1/payment/take".to_owned()], vec![]));
}

#[test]
fn a_payment_is_posted_neither_to_another_host_nor_to_listeners_of_ours() {
    let buyer = buyer(&[50_000]);
    let trap = Payee::asking(&go_dpp_terms(&[output(1_000)]));
    let ours = [
        buyer.server.address(),
        buyer.server.wallet().address(),
        buyer.server.payments().address(),
    ];
    let ours = ours.map(|address| format!("http://{address}/opreturn/pool/rotate"));
    for named in [
        trap.url().replace("127.0.0.1", "localhost"),
        trap.url().replace("127.0.0.1", "user@127.0.0.1"),
        "//pay.example/order-1".to_owned(),
        "https://pay.example/order-1".to_owned(),
        "ftp://127.0.0.1/order-1".to_owned(),
        "bitcoin:?r=http://127.0.0.1/order-1".to_owned(),
    ]
    .iter()
    .chain(&ours)
    {
        let payee = naming(go_dpp_terms, named);
        let detail = check_problem(&buyer.pay(&payee.url()), 422, "unpayable-terms");
        assert!(detail.contains("paymentUrl"), "{named}: {detail}");
        assert_eq!(posts(&payee), Vec::<String>::new());
        let refused = buyer.site.cli(&["wallet", "faucet", &payee.url()]);
        assert!(refused.stderr.contains("paymentUrl"), "{named}: {}", refused.stderr);
    }
    for named in ["http://127.0.0.1:x/".to_owned(), "x".repeat(2049)] {
        let payee = naming(go_dpp_terms, &named);
        check_problem(&buyer.pay(&payee.url()), 502, "payee-nonsense");
    }
    assert_eq!((buyer.balance(), buyer.outgoing()), (50_000, vec![]));
    assert_eq!(trap.count(), 0);
}

#[test]
fn a_payment_over_tls_is_not_posted_in_the_clear() {
    let mut terms = go_dpp_terms(&[output(1_000)]);
    let plain = Payee::asking(&Value::Null);
    terms["paymentUrl"] = json!(plain.url());
    let secure = Payee::secure(&terms);
    let buyer = trusting(&authority());
    check_problem(&buyer.pay(&secure.url()), 422, "unpayable-terms");

    terms["paymentUrl"] = json!(secure.url());
    plain.on_get(move |_| Answer::json(200, &terms));
    buyer.pay_ok(&plain.url());
    assert_eq!((posts(&secure).len(), posts(&plain).len()), (1, 0));
}

#[test]
fn the_faucet_posts_where_the_terms_say() {
    let buyer = buyer(&[]);
    let payee = naming(go_dpp_terms, "/take");
    buyer.site.cli_ok(&["wallet", "faucet", &payee.url()]);
    assert_eq!(posts(&payee), ["/take"]);
}
