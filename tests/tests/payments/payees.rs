//! Payees that offer no terms, or terms that a wallet should not pay. The wallet reserves no coin
//! for them.

use std::net::TcpListener;
use std::path::Path;
use std::thread;
use std::time::Duration;

use bsv_invoicing::Timestamp;
use bsv_tests::clock::Clock;
use bsv_tests::payee::{Answer, Payee, bip270_terms, brc_terms, go_dpp_terms, output};
use bsv_tests::tls::authority;
use bsv_tx::{ScriptBuilder, TxOut};
use serde_json::{Value, json};

use super::merchant::{Merchant, json_of, wait_until};
use super::paying_scene::{buyer, check_problem, node, site_with};

/// Checks that paying a payee with this answer to a GET is refused with this problem and leaves no
/// trace. Answers the problem's detail.
fn check_refused(buyer: &Merchant, get: Answer, status: u16, code: &str) -> String {
    let payee = Payee::asking(&Value::Null);
    payee.on_get(move |_| get.clone());
    let detail = check_problem(&buyer.pay(&payee.url()), status, code);
    assert!(payee.requests("POST").is_empty(), "{detail}");
    detail
}

fn check_untouched(buyer: &Merchant) {
    assert_eq!((buyer.balance(), buyer.outgoing()), (50_000, Vec::new()));
    buyer.pay_ok(&Payee::asking(&go_dpp_terms(&[output(49_900)])).url());
}

#[test]
fn a_payee_without_terms_at_the_moment_is_unavailable() {
    let buyer = buyer(&[50_000]);
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for url in [format!("http://{closed}/x"), format!("https://{closed}/x")] {
        check_problem(&buyer.pay(&url), 503, "payee-unavailable");
    }
    let answers = [
        Answer::Bytes(Vec::new()),
        Answer::Bytes(b"\0\x01\x02 what?\r\n\r\n".to_vec()),
        Answer::Bytes(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{".to_vec()),
        Answer::text(500, "{}"),
        Answer::text(503, "{}"),
        Answer::text(429, "{}"),
        Answer::silence(),
        Answer::Stalled(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{".to_vec()),
    ];
    thread::scope(|scope| {
        for answer in answers {
            scope.spawn(|| check_refused(&buyer, answer, 503, "payee-unavailable"));
        }
    });
    check_untouched(&buyer);
}

#[test]
fn a_payee_that_has_no_terms_at_all_refuses() {
    let buyer = buyer(&[50_000]);
    for status in [400, 401, 402, 404, 409, 410, 422] {
        let answer = Answer::text(status, "<html>");
        check_refused(&buyer, answer, 422, "refused-by-payee");
    }
    let words = json!({ "title": "Gone", "detail": "sold\u{1b}[2J out" });
    let detail = check_refused(&buyer, Answer::json(410, &words), 422, "refused-by-payee");
    assert_eq!(detail, "the payee offers no terms: sold [2J out");

    let payable = buyer.invoice(1_000);
    let (paid, unknown) = (buyer.invoice(1_000), "abcdefghijkl");
    buyer.pay_ok(&buyer.payment_url(&paid));
    let until = Timestamp::of_system().after(Duration::from_secs(1));
    let body = json!({ "satoshis": 1_000, "expiresAt": until.to_string() }).to_string();
    let expired = json_of(&buyer.server.wallet().post("/api/v1/invoices", body));
    let expired = expired["id"].as_str().unwrap();
    wait_until("it expires", || buyer.state(expired) == "expired");
    let other = self::buyer(&[5_000]);
    for id in [&paid, unknown, expired] {
        let detail = check_problem(&other.pay(&buyer.payment_url(id)), 422, "refused-by-payee");
        assert!(detail.contains(id), "{detail}");
    }
    assert_eq!(other.outgoing(), Vec::<Value>::new());
    other.pay_ok(&buyer.payment_url(&payable));
}

#[test]
fn terms_that_make_no_sense_are_refused() {
    let buyer = buyer(&[50_000]);
    let asked = [output(1_000)];
    for text in ["", " ", "x", "<html>", "null", "[]", "{}", "1", "{\"destinations\":{}}"] {
        check_refused(&buyer, Answer::text(200, text), 502, "payee-nonsense");
    }
    let whole = go_dpp_terms(&asked);
    for status in [201, 204, 206, 300, 304] {
        check_refused(&buyer, Answer::json(status, &whole), 502, "payee-nonsense");
    }
    for (pointer, value) in [
        ("/destinations/outputs", json!([])),
        ("/destinations/outputs", json!({})),
        ("/destinations/outputs/0/amount", json!(0)),
        ("/destinations/outputs/0/amount", json!(-1)),
        ("/destinations/outputs/0/amount", json!(0.5)),
        ("/destinations/outputs/0/amount", json!("1000")),
        ("/destinations/outputs/0/amount", json!(2_100_000_000_000_001_u64)),
        ("/destinations/outputs/0/amount", json!(u64::MAX)),
        ("/destinations/outputs/0/script", json!("")),
        ("/destinations/outputs/0/script", json!("76a")),
        ("/destinations/outputs/0/script", json!("zz")),
        ("/destinations/outputs/0/script", json!(null)),
        ("/fees/standard/miningFee/bytes", json!(0)),
        ("/fees/standard/miningFee/satoshis", json!(-1)),
        ("/fees", json!(null)),
        ("/creationTimestamp", json!("yesterday")),
        ("/expirationTimestamp", json!(1_700_000_000)),
        ("/network", json!(null)),
    ] {
        let mut terms = whole.clone();
        *terms.pointer_mut(pointer).unwrap() = value.clone();
        check_refused(&buyer, Answer::json(200, &terms), 502, "payee-nonsense");
    }
    let most = 2_100_000_000_000_000;
    let both = [output(most), output(most)];
    for terms in [go_dpp_terms(&both), brc_terms(&both), bip270_terms(&both)] {
        check_refused(&buyer, Answer::json(200, &terms), 502, "payee-nonsense");
    }
    let text = whole.to_string();
    for cut in [1, text.len() / 2, text.len() - 1] {
        check_refused(&buyer, Answer::text(200, &text[..cut]), 502, "payee-nonsense");
    }
    check_untouched(&buyer);
}

#[test]
fn terms_that_the_wallet_cannot_meet_are_refused() {
    let buyer = buyer(&[50_000]);
    let asked = [output(1_000)];
    let [mut mainnet, mut expired] = [(); 2].map(|()| go_dpp_terms(&asked));
    mainnet["network"] = json!("mainnet");
    expired["expirationTimestamp"] = json!("2020-01-01T00:00:00Z");
    let [mut testnet, mut mode, mut lock_time, mut tokens] = [(); 4].map(|()| brc_terms(&asked));
    testnet["network"] = json!("testnet");
    mode["modes"] = json!({ "00000000dead": mode["modes"]["ef63d9775da5"] });
    let transaction = "/modes/ef63d9775da5/choiceID0/transactions/0";
    let at = |terms: &mut Value, path: &str, value: Value| {
        *terms.pointer_mut(&format!("{transaction}/{path}")).unwrap() = value;
    };
    at(&mut lock_time, "policies", json!({ "lockTime": 7 }));
    at(&mut tokens, "outputs", json!({ "native": [], "bitcoin-token": [{ "amount": 1 }] }));
    let many: Vec<_> = (0..1001).map(|_| asked[0].clone()).collect();
    let mut bip270 = bip270_terms(&asked);
    bip270["network"] = json!("bitcoin");
    for terms in [mainnet, expired, testnet, mode, lock_time, tokens, go_dpp_terms(&many), bip270] {
        check_refused(&buyer, Answer::json(200, &terms), 422, "refused-by-payee");
    }
    check_untouched(&buyer);
}

#[test]
fn terms_of_ten_megabytes_are_read_and_no_more() {
    const MOST: usize = 10_000_000;
    let buyer = buyer(&[50_000]);
    let text = go_dpp_terms(&[output(1_000)]).to_string();
    let padded = |len: usize| text.clone() + &" ".repeat(len - text.len());
    let whole = Answer::text(200, &padded(MOST));
    check_refused(&buyer, Answer::text(200, &padded(MOST + 1)), 502, "payee-nonsense");
    let head = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n";
    let unannounced = Answer::Stalled((head.to_owned() + &padded(MOST + 1)).into_bytes());
    check_refused(&buyer, unannounced, 502, "payee-nonsense");
    let huge = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(MOST));
    check_refused(&buyer, Answer::Bytes(huge.into_bytes()), 503, "payee-unavailable");
    assert_eq!((buyer.balance(), buyer.outgoing()), (50_000, Vec::new()));
    let payee = Payee::asking(&Value::Null);
    payee.on_get(move |_| whole.clone());
    buyer.pay_ok(&payee.url());
}

#[test]
fn redirects_lead_to_the_same_scheme_and_not_too_far() {
    let buyer = buyer(&[50_000]);
    for location in [
        "file:///etc/passwd",
        "ftp://127.0.0.1/x",
        "https://127.0.0.1/x",
        "data:application/json,{}",
        "gopher://127.0.0.1/x",
    ] {
        check_refused(&buyer, Answer::redirect(location), 502, "payee-nonsense");
    }
    check_refused(&buyer, Answer::redirect("/api/v1/payment/order-1"), 502, "payee-nonsense");
    let hop = |limit: usize| {
        let payee = Payee::asking(&Value::Null);
        let terms = go_dpp_terms(&[output(1_000)]);
        payee.on_get(move |request| {
            let hops = request.path.matches('+').count();
            match hops < limit {
                true => Answer::redirect(&format!("{}+", request.path)),
                false => Answer::json(200, &terms),
            }
        });
        payee
    };
    let far = hop(6);
    check_problem(&buyer.pay(&far.url()), 502, "payee-nonsense");
    assert_eq!(buyer.outgoing(), Vec::<Value>::new());
    buyer.pay_ok(&hop(5).url());

    let [desk, front] = [(); 2].map(|()| Payee::asking(&go_dpp_terms(&[output(2_000)])));
    let elsewhere = Answer::redirect(&desk.url());
    let elsewhere_too = elsewhere.clone();
    front.on_get(move |_| elsewhere.clone());
    front.on_post(move |_| elsewhere_too.clone());
    buyer.pay_ok(&front.url());
    assert_eq!(front.paid_with(), desk.paid_with());
    assert_eq!(buyer.outgoing()[0]["url"], front.url());
}

#[test]
fn terms_that_do_not_expire_are_paid() {
    let buyer = buyer(&[50_000]);
    let mut go_dpp = go_dpp_terms(&[output(1_000)]);
    go_dpp["expirationTimestamp"] = json!("0001-01-01T00:00:00Z");
    let mut brc = brc_terms(&[output(1_000)]);
    brc.as_object_mut().unwrap().remove("expirationTimestamp");
    for terms in [go_dpp, brc] {
        buyer.pay_ok(&Payee::asking(&terms).url());
    }
}

#[test]
fn the_wallets_own_clock_decides_whether_terms_have_expired() {
    let mut site = site_with(node(), json!({}));
    let clock = Clock::install(&mut site);
    let buyer = Merchant { server: site.server(), site };
    buyer.fill(10_000);
    let payee = Payee::asking(&go_dpp_terms(&[output(1_000)]));
    clock.set(&buyer.site, 25 * 60 * 60);
    let detail = check_problem(&buyer.pay(&payee.url()), 422, "refused-by-payee");
    assert!(detail.contains("expired"), "{detail}");
}

/// A wallet with 10,000 satoshis on a machine that trusts only the authorities in this file.
pub(crate) fn trusting(certificates: &Path) -> Merchant {
    let mut site = site_with(node(), json!({}));
    site.set_env("SSL_CERT_FILE", certificates);
    site.set_env("SSL_CERT_DIR", "/nowhere");
    let buyer = Merchant { server: site.server(), site };
    buyer.fill(10_000);
    buyer
}

#[test]
fn a_payee_is_paid_over_tls_if_a_trusted_authority_vouches_for_it() {
    let terms = go_dpp_terms(&[output(1_000)]);
    let payee = Payee::secure(&terms);
    payee.on_post(|request| {
        let txid = request.transaction().txid().to_string();
        let channel = json!({ "host": "h", "path": "", "channel_id": "c", "token": "t" });
        Answer::json(201, &json!({ "tx_id": txid, "peer_channel": channel }))
    });
    let result = trusting(&authority()).pay_ok(&payee.url());
    assert_eq!(result["peer_channel"]["host"], "https://h");
    let plain = Payee::asking(&terms);
    let elsewhere = Answer::redirect(&plain.url());
    payee.on_get(move |_| elsewhere.clone());
    let other = trusting(&authority());
    check_problem(&other.pay(&payee.url()), 502, "payee-nonsense");

    let stranger = Payee::secure(&terms);
    let buyer = buyer(&[50_000]);
    check_problem(&buyer.pay(&stranger.url()), 503, "payee-unavailable");
    check_problem(
        &buyer.pay(&stranger.url().replace("127.0.0.1", "localhost")),
        503,
        "payee-unavailable",
    );
    assert!(stranger.requests("GET").is_empty());
    check_untouched(&buyer);
}

#[test]
fn a_machine_without_certificates_pays_over_plain_http() {
    let buyer = trusting(Path::new("/nowhere"));
    let terms = go_dpp_terms(&[output(1_000)]);
    buyer.pay_ok(&Payee::asking(&terms).url());
    check_problem(&buyer.pay(&Payee::secure(&terms).url()), 503, "payee-unavailable");
}

#[test]
fn scripts_of_any_kind_are_paid_to() {
    let buyer = buyer(&[50_000]);
    let script = |op: u8| ScriptBuilder::new().op(op).push(b"x").into_script();
    let outputs = [0x51, 0x6a, 0xac].map(|op| TxOut { satoshis: 600, locking_script: script(op) });
    let payee = Payee::asking(&go_dpp_terms(&outputs));
    buyer.pay_ok(&payee.url());
    assert_eq!(payee.paid_with().outputs[..3], outputs);
}
