//! Webhooks on the command line.

use bsv_tests::{Receiver, Site};
use serde_json::{Value, json};

use super::{Shop, text};

fn create(site: &Site, receiver: &Receiver, more: &[&str]) -> Value {
    let url = receiver.url();
    site.cli_json(&[&["webhook", "create", &url], more].concat())
}

#[test]
fn webhooks_are_made_shown_changed_and_deleted_with_a_server_and_without() {
    for with_server in [false, true] {
        let site = super::site();
        site.cli_ok(&["init"]);
        let _server = with_server.then(|| site.server());
        assert!(site.cli_ok(&["webhook", "list"]).starts_with("There is no webhook"));
        let receiver = Receiver::start();
        let made = create(&site, &receiver, &["--types", "user.*", "--description", "till"]);
        let (id, secret) = (text(&made, "id"), text(&made, "secret"));
        assert_eq!((&made["types"], &made["inOrder"]), (&json!("user.*"), &json!(false)));
        let said = site.cli_ok(&["webhook", "create", &receiver.url(), "--in-order"]);
        let mut lines = said.lines();
        assert!(lines.next().unwrap().starts_with("whsec_"), "{said}");
        assert!(lines.next().unwrap().ends_with("It is not shown again."), "{said}");

        let listed = site.cli_ok(&["webhook", "list"]);
        assert_eq!(listed.lines().count(), 3, "{listed}");
        for part in [&id, "enabled", "user.*", "till", &receiver.url()] {
            assert!(listed.contains(part), "{part}: {listed}");
        }
        let shown = site.cli_ok(&["webhook", "show", &id]);
        assert!(shown.starts_with(&format!("Webhook {id} is enabled\n")), "{shown}");
        assert!(!shown.contains(&secret));
        let changed = site.cli_ok(&["webhook", "disable", &id]);
        assert_eq!(changed, format!("Webhook {id} is disabled"));
        assert_eq!(site.cli_json(&["webhook", "show", &id])["state"], "disabled");
        site.cli_ok(&["webhook", "enable", &id]);
        let rotated = site.cli_json(&["webhook", "secret", &id, "--grace-seconds", "60"]);
        assert_ne!(text(&rotated, "secret"), secret);
        let third = site.cli(&["webhook", "secret", &id]);
        assert_eq!(third.code, 1);
        assert!(third.stderr.contains("still signs until"), "{}", third.stderr);

        let tested = site.cli_ok(&["webhook", "test", &id]);
        assert!(tested.starts_with("status 200 after "), "{tested}");
        let tested = site.cli_ok(&["webhook", "trigger", &id, "invoice.paid"]);
        assert!(tested.starts_with("status 200 after "), "{tested}");
        let sample = receiver.received().pop().unwrap();
        let body: Value = serde_json::from_slice(&sample.body).unwrap();
        assert!(text(&body, "id").starts_with("test_"), "{body}");
        let data = ["test", "invoiceId", "reference"].map(|member| &body["data"][member]);
        assert_eq!(json!(data), json!([true, "__test__", null]));
        assert_eq!(site.cli(&["webhook", "trigger", &id, "invoice.gone"]).code, 1);
        receiver.reply(500);
        let tested = site.cli(&["webhook", "test", &id]);
        assert_eq!((tested.code, tested.stderr.as_str()), (1, ""));
        assert!(tested.stdout.starts_with("status 500 after "), "{tested:?}");
        site.cli_ok(&["webhook", "delete", "--yes", &id]);
        let gone = site.cli(&["webhook", "show", &id]);
        assert_eq!(gone.code, 1);
        for part in [&format!("there is no webhook {id}"), "bsv-cli webhook list"] {
            assert!(gone.stderr.contains(part), "{gone:?}");
        }
        for wrong in [
            &["webhook", "show", "x"][..],
            &["webhook", "create"],
            &["webhook", "create", "https://a.example", "--after", "-1"],
            &["webhook", "secret", &id, "--grace-seconds", "604801"],
            &["webhook", "deliveries", &id, "--state", "lost"],
            &["webhook", "deliveries", &id, "1", "--state", "failed"],
            &["webhook", "replay", &id],
        ] {
            assert_eq!(site.cli(wrong).code, 2, "{wrong:?}");
        }
    }
}

#[test]
fn deliveries_are_listed_and_sent_again() {
    let site = super::site();
    site.cli_ok(&["init"]);
    let receiver = Receiver::start();
    let id = text(&create(&site, &receiver, &["--after", "0"]), "id");
    let shop = Shop::start_on(site);
    for _ in 0..3 {
        shop.create_user();
    }
    super::until(shop.client(), &super::path(&id), |webhook| webhook["cursor"] == 3);
    let site = &shop.site;
    let listed = site.cli_ok(&["webhook", "deliveries", &id]);
    assert_eq!(listed.lines().count(), 4, "{listed}");
    for part in ["delivered", "user.created", "status 200 after "] {
        assert!(listed.contains(part), "{part}: {listed}");
    }
    let numbers = |arguments: &[&str]| -> Vec<String> {
        let listed = site.cli_ok(&[&["webhook", "deliveries", &id, "-q"], arguments].concat());
        let rows = listed.lines().skip(1);
        rows.map(|row| row.split_whitespace().next().unwrap().to_owned()).collect()
    };
    assert_eq!(numbers(&[]), ["3", "2", "1"]);
    assert_eq!(numbers(&["--limit", "2"]), ["3", "2"]);
    assert_eq!(numbers(&["--after", "0"]), ["1", "2", "3"]);
    let two = site.cli_ok(&["webhook", "deliveries", &id, "--after", "0", "--limit", "2"]);
    assert_eq!(two.lines().last(), Some("There are more: --after 2"), "{two}");
    let rest = site.cli_json(&["webhook", "deliveries", &id, "--after", "2"]);
    assert_eq!((rest.as_array().unwrap().len(), &rest[0]["number"]), (1, &json!(3)));
    let none = site.cli_ok(&["webhook", "deliveries", &id, "--state", "failed"]);
    assert_eq!(none, "There is no such delivery");
    let one = site.cli_ok(&["webhook", "deliveries", &id, "2"]);
    assert!(one.starts_with("Delivery of event 2 is delivered\n"), "{one}");

    let count = receiver.received().len();
    let said = site.cli_ok(&["webhook", "redeliver", &id, "2"]);
    assert_eq!(said, format!("Event 2 is sent again to webhook {id}"));
    receiver.until_count(count + 1);
    let said = site.cli_ok(&["webhook", "replay", &id, "--after", "0", "--until", "2"]);
    assert_eq!(said, format!("2 events are sent again to webhook {id}"));
    receiver.until_count(count + 3);
    let unknown = site.cli(&["webhook", "redeliver", &id, "9"]);
    assert_eq!(unknown.code, 1);
    assert!(unknown.stderr.contains("nothing is known of a delivery of event 9"), "{unknown:?}");

    // A request without a server is sent once there is one.
    let Shop { site, server } = shop;
    assert_eq!(server.stop(), 0);
    let count = receiver.received().len();
    let replayed = site.cli_json(&["webhook", "replay", &id, "--after", "2"]);
    assert_eq!(replayed, json!({ "count": 1 }));
    assert_eq!(receiver.received().len(), count);
    let _shop = Shop::start_on(site);
    receiver.until_count(count + 1);
}
