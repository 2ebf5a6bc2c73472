//! Home directories of the older generator.

use std::fs;
use std::path::Path;

use bsv_minerid::Network;
use bsv_tests::purse::{Purse, send};
use bsv_tests::{Done, Node, Site, vectors};
use bsv_tx::{ExtendedPrivateKey, Script, Transaction, TxOut};
use serde_json::{Value, json};

const RECORDED: [&str; 5] = ["contact", "first", "nl", "rot", "under_score"];

#[test]
fn a_home_directory_is_taken_over_once_from_any_path() {
    for with_server in [false, true] {
        let site = Site::new();
        let _server = with_server.then(|| site.server());
        vectors::write_home(&vectors::minerid_0_2(), site.data_dir());
        let relative =
            |arguments: &[&str]| Done::of(site.cli_command(arguments).current_dir(site.data_dir()));

        let missing = relative(&["importminerid", "--from", "nowhere"]);
        assert_eq!((missing.code, missing.stdout.as_str()), (1, ""));
        assert!(missing.stderr.starts_with("bsv-cli: cannot import "), "{}", missing.stderr);
        match with_server {
            true => assert_eq!(site.cli_ok(&["miner", "list", "--json"]), "[]"),
            false => assert!(!site.network_dir().exists(), "a failed import makes no directory"),
        }

        let imported = relative(&["importminerid", "--from", "./home"]);
        assert_eq!((imported.code, imported.stderr.as_str()), (0, ""));
        let listed = site.cli_json(&["miner", "list"]);
        for identity in listed.as_array().unwrap() {
            let [alias, key] = ["alias", "minerId"].map(|name| identity[name].as_str().unwrap());
            let head = format!("Imported alias \"{alias}\" of protocol 0.2\nminer id     {key}\n");
            assert!(imported.stdout.contains(&head), "{head}: {}", imported.stdout);
        }
        for part in ["did not tell whether the VCTx is unspent", "Stop the older generator"] {
            assert!(imported.stdout.contains(part), "{part}: {}", imported.stdout);
        }
        let again = relative(&["importminerid", "--from", "home"]);
        let stays = RECORDED
            .map(|alias| format!("Alias \"{alias}\" already exists, and stays unchanged\n"));
        assert_eq!((again.code, again.stdout), (0, stays.concat()));
        assert_eq!(site.cli_json(&["miner", "list"]), listed);
    }
}

#[test]
fn an_import_continues_after_an_alias_that_exists() {
    let site = Site::new();
    let home = vectors::write_home(&vectors::minerid_0_2(), site.data_dir());
    let import = ["miner", "import", "--from", home.to_str().unwrap()];
    site.cli_ok(&["miner", "create", "--name", "nl"]);
    let own = site.cli_ok(&["miner", "id", "--name", "nl"]);
    let imported = site.cli_json(&import);
    assert_eq!(imported["aliases"], json!(["contact", "first", "rot", "under_score"]));
    assert_eq!(imported["known"], json!([{ "alias": "nl", "hasKeys": false }]));
    assert_eq!(site.cli_ok(&["miner", "id", "--name", "nl"]), own);
    let said = site.cli_ok(&import);
    assert!(said.contains("Alias \"nl\" already exists with other keys, and stays"), "{said}");
    assert!(!said.contains("Stop the older generator"), "{said}");
}

/// Writes the older generator's files for an alias with one key and a VCTx with this id.
fn write_alias(home: &Path, alias: &str, wif: &str, txid: &str) {
    let key = ExtendedPrivateKey::generate(Network::Regtest).unwrap();
    for (path, content) in [
        (format!(".keystore/{alias}_1.key"), key.as_text().to_owned()),
        (
            format!(".minerid-client/{alias}/aliases"),
            json!([{ "name": format!("{alias}_1") }]).to_string(),
        ),
        (format!(".minerid-client/{alias}/vctx"), json!({ "prv": wif, "txid": txid }).to_string()),
    ] {
        let path = home.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
}

/// A home directory with VCTxs of all kinds. The name of each alias says which kind it has.
fn home_of_all_kinds(node: &Node, home: &Path) {
    let purse = Purse::filled(node, 4, 100_000);
    let make = |outputs: Vec<TxOut>| {
        let transaction = purse.spend(&[purse.coin()], outputs, 500);
        send(node, &transaction);
        transaction
    };
    let strangers = TxOut { satoshis: 10_000, locking_script: Script::p2pkh(&[7; 20]) };
    let [unspent, spent] = [(); 2].map(|()| make(Vec::new()));
    let foreign = make(vec![strangers]);
    send(node, &purse.spend(&purse.coins_of(&spent), Vec::new(), 500));
    node.mine(1);
    let in_mempool = make(Vec::new());
    let txid = |transaction: &Transaction| transaction.txid().to_string();
    for (alias, txid) in [
        ("foreign", txid(&foreign)),
        ("in-mempool", txid(&in_mempool)),
        ("spent", txid(&spent)),
        ("unknown", "11".repeat(32)),
        ("unspent", txid(&unspent)),
    ] {
        write_alias(home, alias, &purse.wif(), &txid);
    }
}

#[test]
fn an_import_reports_the_nodes_answer_for_each_vctx_and_skips_foreign_ones() {
    let mut node = Node::start();
    node.mine(101);
    let site = Site::on(&node);
    let home = site.data_dir().join("home");
    home_of_all_kinds(&node, &home);
    let imported = site.cli_json(&["miner", "import", "--from", home.to_str().unwrap()]);
    let found = |identity: &Value| {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let state = text(&identity["vctx"]["state"]);
        [text(&identity["alias"]), text(&identity["vctxFinding"]), state]
    };
    let identities: Vec<_> = imported["identities"].as_array().unwrap().iter().map(found).collect();
    let expected = [
        ["foreign", "foreign", "none"],
        ["in-mempool", "notFound", "notSeen"],
        ["spent", "spent", "spent"],
        ["unknown", "notFound", "notSeen"],
        ["unspent", "unspent", "unspent"],
    ];
    assert_eq!(identities, expected.map(|row| row.map(str::to_owned)));
    let keys = site.network_dir().join("keystore");
    assert!(keys.join("unspent_vctx.key").is_file() && !keys.join("foreign_vctx.key").exists());
    let server = site.server();
    for (alias, status) in
        [("foreign", 422), ("in-mempool", 200), ("spent", 422), ("unknown", 200), ("unspent", 200)]
    {
        assert_eq!(server.get(&format!("/opreturn/{alias}/9")).status, status, "{alias}");
    }
    // Its own VCTx can be set up as usual.
    site.cli_ok(&["miner", "vctx", "--name", "foreign"]);
    assert_eq!(server.get("/opreturn/foreign/9").status, 200);

    let elsewhere = Site::on(&node);
    let said = elsewhere.cli_ok(&["miner", "import", "--from", home.to_str().unwrap()]);
    for part in [
        "the node     shows the VCTx unspent, and its key is here\n",
        "the node     shows that the VCTx is spent, which revokes the alias\n",
        "the node     shows that the key of the VCTx does not own it: the VCTx was not imported\n",
        "the node     has the VCTx in no block, so it is unknown whether it is unspent\n",
        "Set up a VCTx for alias \"foreign\": bsv-cli miner vctx --name foreign\n",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    // An import works while the node is away.
    node.stop();
    let elsewhere = Site::on(&node);
    let said = elsewhere.cli_ok(&["miner", "import", "--from", home.to_str().unwrap()]);
    assert_eq!(said.matches("the node     did not tell whether").count(), 5, "{said}");
}
