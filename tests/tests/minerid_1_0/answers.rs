//! The answers of the routes, without a node.

use bsv_minerid::{Keystore, PlainKeys};
use bsv_tests::{Server, Site, vectors};
use serde_json::{Value, json};

/// A site whose keystores already hold the keys of a recorded scenario, so that it uses these.
fn site_of(scenario: &Value) -> Site {
    let site = Site::new();
    let dir = site.network_dir().join("keystore");
    let keys = Keystore::open(&dir, None, PlainKeys::Allowed, "a test").unwrap();
    let dir = dir.join("revocation");
    let revocation_keys = Keystore::open(&dir, None, PlainKeys::Allowed, "a test").unwrap();
    for (path, key) in scenario["keys"].as_object().unwrap() {
        let (dir, file) = path.split_once('/').unwrap();
        let keystore = if dir == ".keystore" { &keys } else { &revocation_keys };
        let secret = key["xprv"].as_str().unwrap();
        keystore.insert(file.strip_suffix(".key").unwrap(), secret.as_bytes()).unwrap();
    }
    site
}

fn run(site: &Site, step: &Value) {
    let words = step["argv"].as_array().unwrap().iter().map(|word| word.as_str().unwrap());
    let mut words: Vec<_> = words.collect();
    if words[0] == "generateminerid" {
        words.extend(["--protocol", "1.0"]);
    }
    site.cli_ok(&words);
}

fn check(server: &Server, step: &Value) {
    let path = step["path"].as_str().unwrap();
    let reply = match step["method"].as_str().unwrap() {
        "GET" => server.get(path),
        _ => server.post(path, step["body"].to_string()),
    };
    if step.get("ours").is_some() {
        assert_eq!(reply.status, 422);
        return;
    }
    assert_eq!(reply.status, 200, "{path}: {}", reply.body);
    assert_eq!(reply.header("content-type"), step["content_type"].as_str(), "{path}");
    // If the hash is not less than the order of the group, the reference computes the nonce from
    // another number.
    if !path.contains("/ffffffff") {
        assert_eq!(Some(reply.body.as_str()), step["response"].as_str(), "{path}");
    }
}

/// Replays the scenarios without a node. The library's tests replay all scenarios.
#[test]
fn recorded_answers_come_out_byte_for_byte() {
    let vectors = vectors::minerid_1_0();
    let mut answers = 0;
    for scenario in vectors["scenarios"].as_array().unwrap() {
        let name = scenario["scenario"].as_str().unwrap();
        if !["S1", "S8"].iter().any(|start| name.starts_with(start)) {
            continue;
        }
        let site = site_of(scenario);
        let (generate, others) = scenario["steps"].as_array().unwrap().split_first().unwrap();
        run(&site, generate);
        let server = site.server();
        for step in others {
            match step["op"].as_str().unwrap() {
                "http" => {
                    check(&server, step);
                    check(&server, step);
                    answers += 1;
                }
                "cli" => run(&site, step),
                _ => write_file(&site, step),
            }
        }
    }
    assert_eq!(answers, 33);
}

/// Sets with commands what an operator of the older generator writes into a file.
fn write_file(site: &Site, step: &Value) {
    let path = step["path"].as_str().unwrap();
    let content = step["files_changed"][path].as_str().unwrap();
    let file = site.data_dir().join("file.json");
    if path.ends_with("dataRefsTxData") {
        std::fs::write(&file, content).unwrap();
        site.cli_ok(&["miner", "data-refs", "--name", "pool", file.to_str().unwrap()]);
    } else {
        let content: Value = serde_json::from_str(content).unwrap();
        std::fs::write(&file, content["extensions"].to_string()).unwrap();
        site.cli_ok(&["miner", "extensions", "--name", "pool", file.to_str().unwrap()]);
        site.cli_ok(&["config", "--name", "pool", "name=n"]);
    }
}

#[test]
fn the_first_mistake_of_a_request_is_told() {
    let site = Site::new();
    site.cli_ok(&["generateminerid", "--name", "pool", "--protocol", "1.0"]);
    site.cli_ok(&["generateminerid", "--name", "old"]);
    let server = site.server();
    let hash = "f4184fc596403b9d638783cf57adfe4c75c605f6356fbc91338530e9831e9e16";
    let right = json!({
        "alias": "pool", "minerInfoTxId": hash, "prevhash": hash, "merkleProof": [hash],
        "coinbase2": "ffffffff0100f2052a01000000015100000000",
    });
    let ask = |changes: &[(&str, Value)]| {
        let mut request = right.clone();
        for (name, value) in changes {
            request[*name] = value.clone();
        }
        let reply = server.post("/coinbase2", request.to_string());
        (reply.status, reply.body)
    };
    assert_eq!(ask(&[]).0, 200);
    let null = Value::Null;
    let hexadecimal = "must be a 64-characters hexadecimal string";
    let mut mistakes: Vec<(&str, Value)> = Vec::new();
    for (name, value, status, text) in [
        (
            "coinbase2",
            json!("00"),
            422,
            "Invalid Coinbase 2: it does not read as the end of a coinbase transaction from any offset up to 100"
                .to_owned(),
        ),
        ("coinbase2", null.clone(), 400, "Coinbase 2 must be supplied".to_owned()),
        (
            "merkleProof",
            json!(["f4"]),
            422,
            "Invalid merkleProof: must be an array of strings of 64 hexadecimal characters"
                .to_owned(),
        ),
        ("merkleProof", null.clone(), 400, "Merkle proof must be supplied".to_owned()),
        ("prevhash", json!(7), 422, format!("Prevhash {hexadecimal}")),
        ("prevhash", json!(""), 400, "Prevhash must be supplied".to_owned()),
        ("minerInfoTxId", json!("x"), 422, format!("Miner-info txid {hexadecimal}")),
        ("minerInfoTxId", json!(""), 400, "Miner-info txid must be supplied".to_owned()),
        ("alias", json!("other"), 422, "Alias \"other\" doesn't exist".to_owned()),
        ("alias", null.clone(), 400, "Alias must be supplied".to_owned()),
    ] {
        mistakes.push((name, value));
        assert_eq!(ask(&mistakes), (status, text));
    }
    let other = "Alias \"old\" has no VCTx, run generatevctx".to_owned();
    assert_eq!(ask(&[("alias", json!("old"))]), (422, other));
    let old_form = json!({
        "alias": "pool", "blockHeight": 7, "coinbase2": "ffffffff0100f2052a01000000015100000000",
    });
    let reply = server.post("/coinbase2", old_form.to_string());
    let other = "Alias \"pool\" is of protocol 1.0, which does not support this";
    assert_eq!((reply.status, reply.body.as_str()), (422, other));

    for (path, status, text) in [
        (
            "/opreturn/pool/7/f4".to_owned(),
            422,
            "Data refs txid must be a 64-characters hexadecimal string",
        ),
        (format!("/opreturn/pool/x/{hash}"), 404, "Not Found"),
        (format!("/opreturn/other/7/{hash}"), 422, "Alias \"other\" doesn't exist"),
        ("/datarefs/other/opreturns".to_owned(), 422, "Alias \"other\" doesn't exist"),
        ("/datarefs/old/opreturns".to_owned(), 200, "[]"),
    ] {
        let reply = server.get(&path);
        assert_eq!((reply.status, reply.body.as_str()), (status, text), "{path}");
    }
    // Without data, a document has no references, whatever transaction the path names.
    let plain = server.text("/opreturn/pool/7");
    assert_eq!(server.text(&format!("/opreturn/pool/7/{hash}")), plain);
}

#[test]
fn what_an_operator_sets_is_checked_and_named() {
    let site = Site::new();
    site.cli_ok(&["generateminerid", "--name", "pool", "--protocol", "1.0"]);
    site.cli_ok(&["generateminerid", "--name", "old"]);
    let file = site.data_dir().join("file.json");
    let file = file.to_str().unwrap();
    for (command, alias, content, complaint) in [
        ("extensions", "pool", "[]", "\"extensions\" must be an object"),
        ("extensions", "pool", r#"{"dataRefs":{}}"#, "\"dataRefs\" cannot be set"),
        ("extensions", "pool", "{", "not JSON"),
        ("extensions", "old", "{}", "is of protocol 0.2"),
        ("data-refs", "pool", "{}", "malformed dataRefs"),
        ("data-refs", "old", r#"{"dataRefs":{"refs":[]}}"#, "is of protocol 0.2"),
    ] {
        std::fs::write(file, content).unwrap();
        let refused = site.cli(&["miner", command, "--name", alias, file]);
        assert_eq!(refused.code, 1, "{refused:?}");
        assert!(refused.stderr.contains(complaint), "{}", refused.stderr);
    }
    assert_eq!(site.cli(&["miner", "extensions", "--name", "pool", "/no/such/file"]).code, 2);
}

#[test]
fn a_1_0_home_is_taken_over_with_its_revocation_keys() {
    let vectors = vectors::minerid_1_0();
    let scenario = &vectors["scenarios"][1];
    let site = Site::new();
    let home = site.data_dir().join("home");
    for step in &scenario["steps"].as_array().unwrap()[..3] {
        for (path, content) in step["files_changed"].as_object().into_iter().flatten() {
            let path = home.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content.as_str().unwrap()).unwrap();
        }
    }
    site.cli_ok(&["importminerid", "--from", home.to_str().unwrap()]);
    let key = site.network_dir().join("keystore/revocation/pool_1.key");
    assert!(key.is_file());
    let list = site.cli_json(&["miner", "list"]);
    assert_eq!(list[0]["announced"], json!(["rotation"]));
    let server = site.server();
    let recorded = &scenario["steps"][4];
    check(&server, recorded);
}
