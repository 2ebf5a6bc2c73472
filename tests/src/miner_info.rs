//! Blocks with miner-info documents, which carry the identities of generation 1.0.

use std::thread;
use std::time::{Duration, Instant};

use bsv_minerid::formats::{Coinbase2, CoinbaseReference, MinerInfo};
use bsv_tx::{Address, BlockHash, Network, PrivateKey, Script, Transaction, Txid};
use serde_json::{Value, json};

use crate::node::Node;
use crate::pool::Template;
use crate::site::Server;

/// A block whose coinbase transaction refers to a miner-info document.
#[derive(Clone, Debug)]
pub struct MinedInfo {
    /// The block.
    pub block: BlockHash,
    /// Its height.
    pub height: u32,
    /// The transaction that carries the document.
    pub txid: Txid,
    /// The coinbase transaction.
    pub coinbase: Transaction,
    /// The template of the node.
    pub template: Template,
}

/// Gives a node the key and the coins for miner-info transactions. The node's wallet must already
/// have a coin.
pub fn fund(node: &Node) {
    node.call("makeminerinfotxsigningkey", json!([]));
    let funding = node.call("getminerinfotxfundingaddress", json!([]));
    let address = funding["address"].as_str().or(funding.as_str()).unwrap();
    let txid = node.call("sendtoaddress", json!([address, 1]));
    node.mine(1);
    let transaction = node.call("getrawtransaction", json!([txid]));
    let transaction = Transaction::from_hex(transaction.as_str().unwrap()).unwrap();
    let address = Address::parse(address, Network::Regtest).unwrap();
    let script = address.locking_script();
    let is_ours = |output: &bsv_tx::TxOut| output.locking_script == script;
    let index = transaction.outputs.iter().position(is_ours).unwrap();
    node.call("setminerinfotxfundingoutpoint", json!([txid, index]));
}

/// Makes the node put a miner-info script into a transaction of the next block. It replaces an
/// earlier one for that block.
///
/// # Panics
/// If it does not offer that in half a minute.
pub fn publish(node: &Node, script: &Script) -> Txid {
    let before = Template::of(node, 1).merkle_branch();
    let waiting = node.call("getrawmempool", json!([]));
    let txid = node.call("replaceminerinfotx", json!([script.to_hex()]));
    // A template with the earlier script has the same number of transactions.
    if !waiting.as_array().unwrap().contains(&txid) {
        wait_for_template(node, |template| template.merkle_branch() != before);
    }
    txid.as_str().unwrap().parse().unwrap()
}

/// Makes the node put data into a transaction of the next block.
pub fn publish_data(node: &Node, scripts: &[String]) -> Txid {
    let txid = node.call("createdatareftx", json!([scripts]));
    txid.as_str().unwrap().parse().unwrap()
}

/// A template with all transactions of the mempool.
///
/// # Panics
/// If the node does not offer one in half a minute.
pub fn template_with_all(node: &Node) -> Template {
    let waiting = node.call("getmempoolinfo", json!([]))["size"].as_u64().unwrap();
    wait_for_template(node, |template| template.transactions() > waiting)
}

/// Waits for a template that fits. A node adds new transactions of its mempool to the template some
/// seconds later.
fn wait_for_template(node: &Node, is_it: impl Fn(&Template) -> bool) -> Template {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let template = Template::of(node, 1);
        if is_it(&template) {
            return template;
        }
        assert!(Instant::now() < deadline, "the node offers {template:?}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Mines the next block with a miner-info script. `rewrite` gets the id of the script's
/// transaction, and returns the second part of the coinbase transaction with a reference to it, in
/// hexadecimal.
pub fn mine(
    node: &Node,
    script: &Script,
    rewrite: impl FnOnce(&Template, Txid) -> String,
) -> MinedInfo {
    let txid = publish(node, script);
    let template = template_with_all(node);
    let coinbase2 = rewrite(&template, txid);
    let block = template.mine(node, &coinbase2);
    let coinbase = template.coinbase(&coinbase2);
    MinedInfo { block, height: template.height(), txid, coinbase, template }
}

/// Mines the next block with the document that the server makes for `alias`. `POST /coinbase2`
/// makes the reference.
pub fn mine_from(node: &Node, server: &Server, alias: &str) -> MinedInfo {
    let height = Template::of(node, 1).height();
    let script = server.text(&format!("/opreturn/{alias}/{height}"));
    mine(node, &Script::from_hex(&script).unwrap(), |template, txid| {
        let request = template.reference_request(alias, txid);
        let reply = server.post("/coinbase2", request.to_string());
        assert_eq!(reply.status, 200, "{}", reply.body);
        reply.body
    })
}

/// Mines the next block with the document of generation 0.2 that `POST /coinbase2` makes for `alias`.
pub fn mine_coinbase_document(node: &Node, server: &Server, alias: &str) -> BlockHash {
    let template = template_with_all(node);
    let reply = server.post("/coinbase2", template.coinbase2_request(node, alias).to_string());
    assert_eq!(reply.status, 200, "{}", reply.body);
    template.mine(node, &reply.body)
}

/// Mines the next block with any `document`, signed by `key`.
pub fn mine_document(node: &Node, document: &MinerInfo, key: &PrivateKey) -> MinedInfo {
    mine(node, &document.sign(key).unwrap().to_script(), |template, txid| {
        reference_with(template, txid, key)
    })
}

/// The second part of a template's coinbase transaction with a reference, signed by `key`, to a
/// miner-info transaction.
pub fn reference_with(template: &Template, txid: Txid, key: &PrivateKey) -> String {
    let coinbase2 = hex::decode(&template.coinbase2).unwrap();
    let coinbase2 = Coinbase2::parse(&coinbase2).unwrap();
    let (previous_block, branch) = (template.previous_block(), template.merkle_branch());
    let reference =
        CoinbaseReference::sign(key, txid, &coinbase2, &previous_block, &branch).unwrap();
    hex::encode(coinbase2.with_output(&reference.to_script()).unwrap())
}

/// The node's answer about a miner id (`getmineridinfo`). Null if it does not know the miner id.
pub fn known(node: &Node, miner_id: &str) -> Value {
    node.try_call("getmineridinfo", json!([miner_id])).unwrap_or_default()
}

/// The node's answer about all miner ids (`dumpminerids`): each with its state, the current one
/// first, for each miner.
pub fn states(node: &Node) -> Vec<Vec<(String, String)>> {
    let dump = node.call("dumpminerids", json!([]));
    let miners = dump["miners"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let ids = |miner: &Value| {
        let ids = miner["minerids"].as_array().unwrap().iter();
        ids.map(|id| (text(&id["minerid"]), text(&id["state"]))).collect()
    };
    miners.iter().map(ids).collect()
}
