//! Deleting an alias that is revoked completely.

use bsv_tests::{Gate, Refusal, Site, miner_info};
use serde_json::json;

use crate::minerid_1_0::scene::{identity, miner_id, node};

fn delete(site: &Site, alias: &str, flags: &[&str]) -> bsv_tests::Done {
    site.cli(&[&["miner", "delete", "--yes", "--name", alias], flags].concat())
}

fn aliases(site: &Site) -> Vec<String> {
    let list = site.cli_json(&["miner", "list"]);
    let alias = |identity: &serde_json::Value| identity["alias"].as_str().unwrap().to_owned();
    list.as_array().unwrap().iter().map(alias).collect()
}

#[test]
fn an_alias_is_deleted_once_it_is_closed_and_its_name_is_not_used_again() {
    let node = node();
    let site = Site::on(&node);
    let server = site.server();
    for alias in ["kept", "without"] {
        site.cli_ok(&["miner", "create", "--name", alias, "--protocol", "1.0"]);
        miner_info::mine_from(&node, &server, alias);
        let refused = delete(&site, alias, &[]);
        assert_eq!(refused.code, 1);
        let expected = format!("alias \"{alias}\" is not closed: revoke it first");
        assert!(refused.stderr.contains(&expected), "{}", refused.stderr);
        site.cli_ok(&["miner", "revoke", "--all", "--yes", "--name", alias]);
        // The revocation is announced, and no block has shown it.
        assert_eq!(delete(&site, alias, &[]).code, 1);
        site.cli_ok(&["miner", "confirm", "--yes", "--name", alias]);
    }
    let key = miner_id(&server, "kept");
    let said = delete(&site, "kept", &[]).stdout;
    assert!(said.contains("is deleted; its keys stay in the keystore"), "{said}");
    let said = delete(&site, "without", &["--with-keys"]).stdout;
    assert!(said.contains("is deleted; its keys are deleted"), "{said}");
    let keys = site.network_dir().join("keystore");
    let check = |server: &bsv_tests::Server| {
        assert_eq!(aliases(&site), [""; 0]);
        assert_eq!(server.get("/minerid/kept").status, 422);
        assert!(keys.join("kept_1.key").is_file() && !keys.join("without_1.key").exists());
        assert!(keys.join("revocation/without_1.key").is_file());
        // A new alias of this name would use the revoked key again.
        let again = site.cli(&["miner", "create", "--name", "kept", "--json"]);
        assert!(again.stderr.contains("\"alias-deleted\""), "{}", again.stderr);
        assert_eq!(server.get(&format!("/minerid/{key}")).status, 422);
    };
    check(&server);
    server.kill();
    let server = site.server();
    check(&server);
    assert_eq!(delete(&site, "kept", &[]).code, 1);
    let verified = site.cli_json(&["keystore", "verify"]);
    assert_eq!((&verified["faults"], &verified["unchecked"]), (&json!([]), &json!([])));
    let audit = site.cli_ok(&["audit", "list"]);
    for subject in ["kept", "without", "without_1"] {
        let is_deletion = |line: &str| line.contains("deleted") && line.ends_with(subject);
        assert!(audit.lines().any(is_deletion), "{subject}: {audit}");
    }
    site.cli_ok(&["audit", "verify"]);
}

#[test]
fn a_revocation_that_the_network_does_not_have_is_sent_before_its_alias_is_deleted() {
    let node = node();
    let gate = Gate::before(&node);
    let site = gate.site();
    site.cli_ok(&["miner", "create", "--name", "old"]);
    assert_eq!(delete(&site, "old", &[]).code, 1);
    site.cli_ok(&["miner", "vctx", "--name", "old"]);
    let outpoint = identity(&site, "old")["vctx"]["outpoint"].as_str().unwrap().to_owned();
    let (txid, index) = outpoint.split_once(':').unwrap();
    let is_unspent =
        || node.call("gettxout", json!([txid, index.parse::<u32>().unwrap(), true])) != json!(null);
    let (method, message) = ("sendrawtransaction", "not now");
    gate.refuse(Refusal { method, code: -26, message });
    assert_eq!(site.cli(&["miner", "revoke", "--yes", "--name", "old"]).code, 1);
    let refused = delete(&site, "old", &["--with-keys"]);
    assert_eq!((refused.code, is_unspent(), aliases(&site)), (1, true, vec!["old".to_owned()]));
    assert!(refused.stderr.contains("but the node was not told"), "{}", refused.stderr);
    gate.accept();
    assert_eq!(delete(&site, "old", &["--with-keys"]).code, 0);
    assert!(!is_unspent() && aliases(&site).is_empty());
    // This key owns the coins that the spending of the VCTx left.
    let keys = site.network_dir().join("keystore");
    assert!(keys.join("old_vctx.key").is_file() && !keys.join("old_1.key").exists());
}
