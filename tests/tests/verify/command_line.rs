//! Tests of `bsv-cli miner verify`.

use bsv_minerid::node::GatheredBlock;
use bsv_minerid::verify::MinerInfoEvidence;
use bsv_tests::identified_block::{self, HEIGHT, Keys, VCTX};
use bsv_tests::{Done, Site};
use bsv_tx::{MerkleBranch, PrivateKey, Transaction};
use serde_json::{Value, json};

use crate::verify::node::Chain;
use crate::verify::spoilt::signed;

fn siblings(branch: &MerkleBranch) -> String {
    let texts: Vec<_> = branch.siblings.iter().map(ToString::to_string).collect();
    texts.join(",")
}

fn json_of(done: &Done) -> Value {
    serde_json::from_str(&done.stdout).unwrap_or_else(|_| panic!("{done:?}"))
}

fn outcomes(report: &Value) -> Vec<(&str, &str)> {
    let outputs = report["outputs"].as_array().unwrap();
    let of_outputs = outputs.iter().flat_map(|output| output["checks"].as_array().unwrap());
    let checks = report["checks"].as_array().unwrap().iter().chain(of_outputs);
    checks
        .map(|check| (check["check"].as_str().unwrap(), check["outcome"].as_str().unwrap()))
        .collect()
}

#[test]
fn without_a_node_a_block_is_verified_from_files_and_arguments() {
    let site = Site::new();
    let keys = Keys::first();
    let script = signed(&keys, keys.miner_info(HEIGHT).to_json());
    let (block, evidence) =
        identified_block::with_miner_info(&script, &keys.miner_id, |right| right.to_script());
    let MinerInfoEvidence::Found { transaction, branch: Some(branch) } = evidence.miner_info else {
        panic!()
    };
    let (coinbase, header) = (block.coinbase.to_hex(), hex::encode(block.header.to_bytes()));
    let (coinbase_branch, miner_info) = (siblings(&block.branch), transaction.to_hex());
    let given = [
        "miner",
        "verify",
        "--coinbase",
        &coinbase,
        "--header",
        &header,
        "--branch",
        &coinbase_branch,
    ];
    let with_miner_info = [&given[..], &["--minerinfo-tx", &miner_info]].concat();
    let branch = siblings(&branch);
    let whole =
        [&with_miner_info[..], &["--minerinfo-branch", &branch, "--minerinfo-index", "1"]].concat();

    let done = site.cli(&whole);
    assert_eq!((done.code, done.stderr.as_str()), (0, ""), "{done:?}");
    let id = keys.miner_id.public_key().to_string();
    for line in [
        "A valid miner identity",
        &format!("block        {}\nheight       {HEIGHT}\n", block.header.block_hash()),
        &format!("miner id     {id}"),
        "name         a pool",
        "By this block alone, nodes take it.",
        "output 1, protocol 1.0",
        "  document-signature         holds",
        "  block-binding-signature    holds",
    ] {
        assert!(done.stdout.contains(line), "{line}: {}", done.stdout);
    }
    let report = json_of(&site.cli(&[&whole[..], &["--json"]].concat()));
    assert_eq!((&report["verdict"], &report["acceptedByNode"]), (&json!("valid"), &json!(true)));
    assert_eq!(
        (&report["identity"]["minerId"], &report["inMainChain"]),
        (&json!(id), &Value::Null)
    );
    let names: Vec<_> = outcomes(&report).iter().map(|(check, _)| *check).collect();
    assert_eq!(
        names,
        [
            "proof-of-work",
            "coinbase-inclusion",
            "output-script",
            "block-binding",
            "miner-info-inclusion",
            "miner-info-transaction",
            "document",
            "document-signature",
            "height",
            "miner-id-succession",
            "revocation-key-succession",
            "block-binding-signature",
        ]
    );
    assert!(outcomes(&report).iter().all(|(_, outcome)| *outcome == "holds"), "{report:#}");

    for part in [&given[..], &with_miner_info] {
        let done = site.cli(part);
        assert_eq!(done.code, 1, "{done:?}");
        assert!(done.stdout.contains("could not be fully checked"), "{}", done.stdout);
        let report = json_of(&site.cli(&[part, &["--json"]].concat()));
        assert_eq!((&report["verdict"], &report["identity"]), (&json!("undecided"), &Value::Null));
    }
    let none = identified_block::with_outputs(&[]);
    let (coinbase, header) = (none.coinbase.to_hex(), hex::encode(none.header.to_bytes()));
    let branch = siblings(&none.branch);
    let done = site.cli(&[
        "miner",
        "verify",
        "--header",
        &header,
        "--branch",
        &branch,
        "--coinbase",
        &coinbase,
    ]);
    assert_eq!(done.code, 1);
    assert!(done.stdout.contains("No miner identity\n"), "{}", done.stdout);
}

#[test]
fn wrong_usage_is_refused_and_nothing_is_verified() {
    let site = Site::new();
    let hash = "ab".repeat(32);
    let block = identified_block::with_outputs(&[]);
    let (coinbase, header) = (block.coinbase.to_hex(), hex::encode(block.header.to_bytes()));
    for (arguments, reason) in [
        (&[][..], "required arguments were not provided"),
        (&["--block", &hash, "--height", "1"], "cannot be used with"),
        (&["--block", "abc"], "64 hexadecimal characters"),
        (&["--height", "0"], "0 is not in 1..=2147483647"),
        (&["--coinbase", &coinbase], "--header"),
        (&["--header", &header], "--coinbase"),
        (&["--coinbase", "01", "--header", &header], "bytes end"),
        (&["--coinbase", &coinbase, "--header", "00"], "bytes end"),
        (&["--coinbase", &coinbase, "--header", &header, "--branch", "xy"], "64 hexadecimal"),
        (&["--block", &hash, "--branch", &hash], "--coinbase"),
        (&["--block", &hash, "--minerinfo-tx", &coinbase], "--coinbase"),
    ] {
        let done = site.cli(&[&["miner", "verify"][..], arguments].concat());
        assert_eq!((done.code, done.stdout.as_str()), (2, ""), "{arguments:?}: {done:?}");
        assert!(done.stderr.contains(reason), "{arguments:?}: {}", done.stderr);
    }
    for arguments in [["--block", hash.as_str()], ["--height", "1"]] {
        let done = site.cli(&[&["miner", "verify"][..], &arguments].concat());
        assert_eq!(done.code, 1);
        assert!(done.stderr.contains("no node is configured"), "{}", done.stderr);
    }
}

#[test]
fn blocks_of_a_node_are_found_by_hash_and_height() {
    let chain = Chain::start();
    let site = Site::on(&chain.node);
    let keys = Keys::first();
    // The command works although a server uses the data directory.
    let _server = site.server();
    let block = chain.announce(&keys);
    let mut document = keys.miner_info(chain.next_height());
    document.height += 1;
    let wrong = chain.mine_document(&keys, &document);
    let empty = chain.node.mine(1)[0];
    let old = chain.mine_output(&keys.sign(&keys.document(chain.next_height()).to_json()));
    let capital = keys.document(chain.next_height()).to_json();
    let txid = VCTX.txid.to_string();
    let capital = chain.mine_output(&keys.sign(&capital.replace(&txid, &txid.to_uppercase())));

    let GatheredBlock { proof, in_main_chain, .. } = chain.gather(&block);
    assert!(in_main_chain);
    let height = proof.height.unwrap().to_string();
    for source in [["--block", &block.to_string()], ["--height", &height]] {
        let report = site.cli_json(&[&["miner", "verify"][..], &source].concat());
        assert_eq!((&report["verdict"], &report["inMainChain"]), (&json!("valid"), &json!(true)));
        assert_eq!(report["identity"]["minerId"], keys.miner_id.public_key().to_string());
        assert_eq!(report["block"], block.to_string());
    }
    let verify = |block: &str| site.cli(&["miner", "verify", "--block", block]);
    let done = verify(&wrong.to_string());
    assert_eq!(done.code, 1);
    for line in [
        "No valid miner identity",
        "By this block alone, nodes take it.",
        "FAILS, but nodes take it: the document is for height",
    ] {
        assert!(done.stdout.contains(line), "{line}: {}", done.stdout);
    }
    let done = verify(&empty.to_string());
    assert_eq!((done.code, done.stdout.contains("No miner identity")), (1, true), "{done:?}");
    let done = verify(&old.to_string());
    assert_eq!(done.code, 0, "{done:?}");
    let unknown = "  vctx                       not checked: whether";
    assert!(done.stdout.contains(unknown), "{}", done.stdout);
    let done = verify(&capital.to_string());
    assert_eq!(done.code, 1, "{done:?}");
    let stricter = "FAILS: it is signed as specified, but nodes read no number";
    for line in [stricter, "Nodes do not take it."] {
        assert!(done.stdout.contains(line), "{line}: {}", done.stdout);
    }
    let done = verify(&"ab".repeat(32));
    assert_eq!(done.code, 1);
    assert!(done.stderr.contains("does not know block abab"), "{}", done.stderr);
    let done = site.cli(&["miner", "verify", "--height", "100000"]);
    assert!(done.stderr.contains("ends before height 100000"), "{}", done.stderr);

    let parent = proof.header.previous_block.to_string();
    chain.node.call("invalidateblock", json!([block.to_string()]));
    assert_eq!(chain.node.call("getbestblockhash", json!([])), parent);
    let done = verify(&block.to_string());
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.stdout.contains("not in the main chain"), "{}", done.stdout);
}

#[test]
fn the_state_of_a_vctx_and_data_come_from_the_node() {
    let chain = Chain::start();
    let keys = Keys::first();
    let spend = |outpoint: &Value| {
        let address = chain.node.call("getnewaddress", json!([]));
        let inputs = json!([{ "txid": outpoint["txid"], "vout": outpoint["vout"] }]);
        let raw = chain
            .node
            .call("createrawtransaction", json!([inputs, { address.as_str().unwrap(): 0.5 }]));
        let signed = chain.node.call("signrawtransaction", json!([raw]));
        chain.node.call("sendrawtransaction", json!([signed["hex"], true]))
    };
    let coin = chain.node.call("listunspent", json!([]))[0].clone();
    let mut document = keys.document(chain.next_height());
    document.vctx.txid = coin["txid"].as_str().unwrap().parse().unwrap();
    document.vctx.vout = coin["vout"].as_u64().unwrap() as u32;
    let vouching = |key: &PrivateKey| {
        let id = key.public_key();
        key.sign(&bsv_minerid::formats::succession_digest(&id, &id, &document.vctx.txid))
    };
    let document = bsv_minerid::formats::Document {
        previous_miner_id_signature: vouching(&keys.miner_id),
        ..document.clone()
    };
    let block = chain.mine_output(&keys.sign(&document.to_json()));
    let vctx = |report: &Value| {
        let found = outcomes(report).into_iter().find(|(check, _)| *check == "vctx");
        found.unwrap().1.to_owned()
    };
    let site = Site::on(&chain.node);
    let report =
        || json_of(&site.cli(&["miner", "verify", "--block", &block.to_string(), "--json"]));
    assert_eq!((&report()["verdict"], vctx(&report()).as_str()), (&json!("valid"), "holds"));
    let spending = spend(&coin);
    assert_eq!(vctx(&report()), "holds", "in the mempool only, it is not spent");
    chain.node.mine(1);
    let mined = chain.node.call("getrawtransaction", json!([spending]));
    assert!(Transaction::from_hex(mined.as_str().unwrap()).is_ok());
    assert_eq!((&report()["verdict"], vctx(&report()).as_str()), (&json!("invalid"), "fails"));
    assert_eq!(report()["acceptedByNode"], true);
}
