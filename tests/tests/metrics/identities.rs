use std::fs;

use bsv_tests::{Metrics, Server, Site, vectors};

const HASH: &str = "70f5701644897c92b60e98dbbfe72e1cfd7a2728c6fa3a29c4b4f6e986b0ccaa";

fn signatures(server: &Server, alias: &str) -> f64 {
    let sample = format!("bsv_minerid_signatures_total{{alias=\"{alias}\"}}");
    Metrics::of(server.minerid()).value(&sample)
}

fn state(alias: &str, state: &str) -> String {
    format!("bsv_minerid_state{{alias=\"{alias}\",state=\"{state}\"}}")
}

#[test]
fn every_signature_is_counted() {
    let site = Site::new();
    let home = vectors::write_home(&vectors::minerid_0_2(), site.data_dir());
    site.cli_ok(&["importminerid", "--from", home.to_str().unwrap()]);
    site.cli_ok(&["generateminerid", "--name", "modern", "--protocol", "1.0"]);
    let server = site.server();
    assert_eq!(signatures(&server, "first"), 0.0);
    for (path, made) in [
        (format!("/minerid/first/sign/{HASH}"), 1.0),
        (format!("/minerid/first/pksign/{HASH}"), 2.0),
        // The first document also holds the signature of the previous key over this one.
        ("/opreturn/first/1000".to_owned(), 4.0),
        ("/opreturn/first/1000".to_owned(), 4.0),
        ("/opreturn/first/1001".to_owned(), 5.0),
        ("/minerid/first".to_owned(), 5.0),
    ] {
        server.text(&path);
        assert_eq!(signatures(&server, "first"), made, "{path}");
    }
    assert_eq!(signatures(&server, "modern"), 0.0);
    server.text("/opreturn/modern/1000");
    let before = signatures(&server, "modern");
    assert!(before >= 2.0, "{before}");
    let body = format!(
        "{{\"alias\":\"modern\",\"minerInfoTxId\":\"{HASH}\",\"prevhash\":\"{HASH}\",\
         \"merkleProof\":[],\"coinbase2\":\"ffffffff0100f2052a010000001976a9145deb9155942e7d38febc15\
         de8870222fd24d080e88ac00000000\"}}"
    );
    assert_eq!(server.post("/coinbase2", body).status, 200);
    let after = signatures(&server, "modern");
    assert!(after > before, "the reference is signed: {after}");
}

#[test]
fn the_age_of_the_last_document_begins_anew_with_each() {
    let site = Site::new();
    site.cli_ok(&["generateminerid", "--name", "pool", "--protocol", "1.0"]);
    let server = site.server();
    let sample = r#"bsv_minerid_document_age_seconds{alias="pool"}"#;
    let age = || Metrics::of(server.minerid()).get(sample);
    assert_eq!(age(), None);
    server.request("HEAD", "/opreturn/pool/1000", b"");
    assert_eq!(age(), None, "a HEAD hands no document out");
    server.text("/opreturn/pool/1000");
    std::thread::sleep(std::time::Duration::from_millis(300));
    let first = age().unwrap();
    assert!(first >= 0.3, "{first}");
    std::thread::sleep(std::time::Duration::from_millis(300));
    let older = age().unwrap();
    assert!(older >= first + 0.3, "{older}");
    server.text("/opreturn/pool/1000");
    assert!(age().unwrap() < older);
}

#[test]
fn announcements_and_states_are_told_of_each_alias() {
    let mut site = Site::new();
    site.set_env("BSV_LOG", "off");
    site.cli_ok(&["generateminerid", "--name", "old"]);
    site.cli_ok(&["generateminerid", "--name", "pool", "--protocol", "1.0"]);
    site.cli_ok(&["generateminerid", "--name", "spoilt", "--protocol", "1.0"]);
    let server = site.server();
    let metrics = Metrics::of(server.minerid());
    for (sample, value) in [
        (state("old", "none"), 1.0),
        (state("old", "unspent"), 0.0),
        (state("old", "open"), 0.0),
        (state("pool", "open"), 1.0),
        (state("pool", "closed"), 0.0),
        (state("pool", "stale"), 0.0),
        (state("pool", "broken"), 0.0),
        (r#"bsv_minerid_unseen_alarm{alias="pool"}"#.to_owned(), 0.0),
        (r#"bsv_minerid_unseen_announcements{alias="pool"}"#.to_owned(), 0.0),
    ] {
        assert_eq!(metrics.value(&sample), value, "{sample}");
    }
    // After this document, somebody may know the key. Blocks therefore have to show the next one.
    server.text("/opreturn/pool/1000");
    site.cli_ok(&["rotateminerid", "--name", "pool"]);
    let announced = r#"bsv_minerid_unseen_announcements{alias="pool"}"#;
    assert_eq!(Metrics::of(server.minerid()).value(announced), 1.0);

    assert_eq!(server.stop(), 0);
    fs::remove_file(site.network_dir().join("keystore/spoilt_1.key")).unwrap();
    let server = site.server();
    let metrics = Metrics::of(server.minerid());
    assert_eq!(metrics.value(&state("spoilt", "broken")), 1.0);
    assert_eq!(metrics.value(&state("pool", "broken")), 0.0);
    for listener in [server.minerid(), server.wallet()] {
        let ready = listener.get("/readyz");
        assert!(ready.body.contains(r#""brokenAliases":["spoilt"]"#), "{}", ready.body);
    }
}
