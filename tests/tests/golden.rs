//! The recorded answers of the older generator, through the command line and over HTTP.

use bsv_tests::{Server, Site, vectors};
use bsv_tx::{PublicKey, Signature};
use serde_json::Value;

/// For hashes of at least the order of the group, the reference computes its nonce from another
/// number.
const ORDER: &str = "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141";

fn check_cases(server: &Server, vectors: &Value) {
    for case in vectors["cases"].as_array().unwrap() {
        let request = &case["request"];
        let path = request["path"].as_str().unwrap();
        let reply = match request["body"].as_str() {
            Some(body) => server.post(path, body),
            None => server.get(path),
        };
        assert_eq!(
            (reply.status, Some(reply.body.as_str())),
            (200, vectors::expected(case, "response"))
        );
        assert_eq!(reply.header("content-type"), Some("text/plain; charset=utf-8"));
    }
}

fn check_signatures(server: &Server, vectors: &Value) {
    for case in vectors["sign"].as_array().unwrap() {
        let (alias, hash) = (case["alias"].as_str().unwrap(), case["hash"].as_str().unwrap());
        let key = vectors["keys"][case["key"].as_str().unwrap()]["public_key"].as_str().unwrap();
        let digest: [u8; 32] = hex::decode(hash).unwrap().try_into().unwrap();
        assert_eq!(server.text(&format!("/minerid/{alias}")), key);

        let signature = server.text(&format!("/minerid/{alias}/sign/{}", hash.to_uppercase()));
        let pksign = server.get(&format!("/minerid/{alias}/pksign/{hash}"));
        assert_eq!(pksign.status, 200);
        assert_eq!(pksign.header("content-type"), Some("application/json; charset=utf-8"));
        if hash < ORDER {
            assert_eq!(signature, case["sign"].as_str().unwrap());
            assert_eq!(pksign.body, case["pksign"].as_str().unwrap());
        } else {
            let key: PublicKey = key.parse().unwrap();
            assert!(key.verify(&digest, &signature.parse::<Signature>().unwrap()));
            let body = format!(r#"{{"publicKey":"{key}","signature":"{signature}"}}"#);
            assert_eq!(pksign.body, body);
        }
    }
}

/// This covers the network of the home directory and the others.
#[test]
fn every_recorded_answer_is_repeated_byte_for_byte() {
    let vectors = vectors::minerid_0_2();
    for network in ["livenet", "testnet", "regtest"] {
        let site = Site::with(serde_json::json!({
            "network": network, "allowPlainKeystore": true
        }));
        let home = vectors::write_home(&vectors, site.data_dir());
        let imported = site.cli_ok(&["importminerid", "--from", home.to_str().unwrap()]);
        let taken_over = imported.lines().filter(|line| line.starts_with("Imported alias"));
        assert_eq!(taken_over.count(), 5, "{imported}");

        let server = site.server();
        check_cases(&server, &vectors);
        check_signatures(&server, &vectors);
        // The second answers come from memory.
        check_cases(&server, &vectors);
    }
}

#[test]
fn the_command_line_prints_the_recorded_scripts_with_and_without_a_server() {
    let vectors = vectors::minerid_0_2();
    let site = Site::new();
    let home = vectors::write_home(&vectors, site.data_dir());
    site.cli_ok(&["importminerid", "--from", home.to_str().unwrap()]);
    let check = || {
        for case in vectors["cases"].as_array().unwrap() {
            let path: Vec<_> = case["request"]["path"].as_str().unwrap().split('/').collect();
            if let ["", "opreturn", alias, height] = path[..] {
                let script = site.cli_ok(&["miner", "script", "--name", alias, "--height", height]);
                assert_eq!(Some(script.as_str()), vectors::expected(case, "response"));
                let older = site.cli_ok(&["--height", height, "--name", alias]);
                assert_eq!(older, script);
            }
        }
        for key in ["first_1", "rot_2", "contact_2", "under_score_2", "nl_1"] {
            let alias = key.rsplit_once('_').unwrap().0;
            let current = site.cli_ok(&["getcurrentminerid", "--name", alias]);
            assert_eq!(current, vectors["keys"][key]["public_key"].as_str().unwrap());
        }
    };
    check();
    let server = site.server();
    check();
    drop(server);
}
