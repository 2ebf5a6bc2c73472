//! What tells the wallets of tests of the network: a node, or services in front of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use bsv_network::{NodeRpc, TransactionPlace};
use bsv_tx::{Ancestry, Beef, BeefVersion, Bump, MerkleBranch, Transaction, Txid};
use serde_json::{Value, json};

use crate::http::Client;
use crate::metrics::Metrics;
use crate::node::{Endpoints, Node, block_on, endpoints};
use crate::services::Service;

/// How long services may take to show a block and what it holds.
const PATIENCE: Duration = Duration::from_secs(60);

/// The services in front of nodes, by the RPC ports of these.
static SERVICES: Mutex<BTreeMap<u16, Arc<Service>>> = Mutex::new(BTreeMap::new());

/// Whether wallets ask services instead of their nodes (`BSV_TEST_SOURCE=services`).
pub fn is_services() -> bool {
    std::env::var_os("BSV_TEST_SOURCE").is_some_and(|source| source == "services")
}

/// The tests that need a node though others run with services, each with the reason. A name that ends with `::` is that
/// of a module.
pub fn needing_node() -> Vec<(&'static str, &'static str)> {
    let (mut listed, mut reason) = (Vec::new(), "");
    for line in include_str!("source/needs_node.txt").lines().filter(|line| !line.is_empty()) {
        match line.strip_prefix("# ") {
            Some(text) => reason = text,
            None => listed.push((line, reason)),
        }
    }
    listed
}

/// Why the test of this thread needs a node, if it does.
fn reason_for_node() -> Option<&'static str> {
    let thread = thread::current();
    let test = thread.name()?;
    let is_meant = |name: &str| test == name || (name.ends_with("::") && test.starts_with(name));
    let reason = needing_node().into_iter().find(|(name, _)| is_meant(name))?.1;
    eprintln!("{test} does not run with services: {reason}");
    Some(reason)
}

fn services() -> MutexGuard<'static, BTreeMap<u16, Arc<Service>>> {
    SERVICES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The node of these settings, if a test has started it.
fn node_of(settings: &Value) -> Option<Endpoints> {
    let port = u16::try_from(settings["rpcPort"].as_u64()?).ok()?;
    endpoints().get(&port).cloned()
}

/// The URL of the services in front of a node.
fn services_url(node: &Endpoints) -> String {
    let running: BTreeSet<_> = endpoints().keys().copied().collect();
    let mut services = services();
    services.retain(|port, _| running.contains(port));
    let new = || {
        let service = Service::of(node.rpc.clone());
        // They ask for the fee that nodes of tests ask for.
        service.change(|mood| mood.fee = (1, 1000));
        Arc::new(service)
    };
    services.entry(node.rpc.port).or_insert_with(new).url()
}

/// Makes the wallet of these settings ask services in front of its node. The node is still there for everything else.
///
/// # Panics
/// If the test did not start the node, and is not among those that need one.
pub(crate) fn turn(settings: &mut Value) {
    let has_wallet = settings["wallet"]["enabled"] != json!(false);
    if !is_services() || !has_wallet || settings["rpcPort"].is_null() || reason_for_node().is_some()
    {
        return;
    }
    let node = node_of(settings);
    let node = node.expect("a test on what is no node of its own is listed in needs_node.txt");
    let wallet = &mut settings["wallet"];
    // Blocks count from the first one on, as with a node.
    for (member, value) in [
        ("source", json!("services")),
        ("zeroConfLimitSatoshis", json!("none")),
        ("minedBlocks", json!(1)),
    ] {
        if wallet[member].is_null() {
            wallet[member] = value;
        }
    }
    settings["services"] = json!({
        "acceptTimeoutSeconds": 5,
        "broadcasters": [{ "kind": "arcade", "url": services_url(&node) }],
        "headers": { "peers": [node.peer] },
    });
}

/// Has a block hold what a wallet has received, and waits until services have proven it: a wallet that asks them spends
/// nothing else. Does nothing for a wallet with a node.
///
/// # Panics
/// If that takes too long.
pub(crate) fn prove(settings: &Value, wallet: &Client) {
    if !is_services() || settings["wallet"]["source"] != "services" {
        return;
    }
    let rpc = NodeRpc::new(node_of(settings).expect("the node runs").rpc);
    block_on(async move { rpc.generate(1).await }).unwrap();
    wait_until("the proof of what a block holds", || {
        let details = wallet.get("/api/v1/balance/details").body;
        serde_json::from_str::<Value>(&details).unwrap()["unconfirmed"] == json!(0)
    });
}

fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "timed out, waiting for {what}");
        sleep(Duration::from_millis(50));
    }
}

/// Waits until a wallet that asks services has the newest header of its node.
///
/// # Panics
/// If that takes too long.
pub(crate) fn wait_for_header(settings: &Value, wallet: &Client) {
    if !is_services() || settings["wallet"]["source"] != "services" {
        return;
    }
    let rpc = NodeRpc::new(node_of(settings).expect("the node runs").rpc);
    let height = f64::from(block_on(async move { rpc.tip().await }).unwrap().height);
    wait_until("the header of a block", || {
        Metrics::of(wallet).get("bsv_headers_height") == Some(height)
    });
    // The wallet follows the headers every second, and nothing tells when.
    sleep(Duration::from_secs(2));
}

/// Gives the services in front of a node a transaction that it has, as whoever sends it does.
pub(crate) fn tell(node: &Node, transaction: &Transaction) {
    let service = services().get(&node.port).cloned();
    service.iter().for_each(|service| service.take(transaction));
}

/// A transaction in hexadecimal digits, with its ancestors where services ask for them.
pub fn hex(transaction: &Transaction) -> String {
    hex::encode(with_ancestors(&transaction.to_bytes()))
}

/// The bytes of a transaction with its ancestors, where services ask for them. Other bytes stay as they are.
pub fn with_ancestors(bytes: &[u8]) -> Vec<u8> {
    let beef = Transaction::from_bytes(bytes).ok().as_ref().and_then(beef);
    beef.map_or_else(|| bytes.to_vec(), |beef| beef.to_bytes())
}

/// A transaction with its ancestors, for a payee that asks for them. `None` if no node has all of them, or if wallets
/// have nodes.
pub(crate) fn beef(subject: &Transaction) -> Option<Beef> {
    if !is_services() {
        return None;
    }
    let nodes: Vec<_> = endpoints().values().cloned().collect();
    nodes.into_iter().find_map(|node| {
        let (rpc, subject) = (NodeRpc::new(node.rpc), subject.clone());
        block_on(async move {
            let ancestry = ancestry(&rpc, &subject).await?;
            Beef::new(BeefVersion::V1, subject, ancestry).ok()
        })
    })
}

async fn ancestry(rpc: &NodeRpc, subject: &Transaction) -> Option<Ancestry> {
    let mut ancestry = Ancestry::default();
    let mut asked = BTreeSet::new();
    let mut to_visit: Vec<Txid> = parents(subject).collect();
    while let Some(txid) = to_visit.pop() {
        if !asked.insert(txid) {
            continue;
        }
        let transaction = rpc.transaction(&txid).await.ok()??;
        match bump(rpc, &txid).await {
            Some(bump) => ancestry.bumps.push(bump),
            None => to_visit.extend(parents(&transaction)),
        }
        ancestry.transactions.push(transaction);
    }
    Some(ancestry)
}

async fn bump(rpc: &NodeRpc, txid: &Txid) -> Option<Bump> {
    let TransactionPlace::Block(block) = rpc.transaction_place(txid).await.ok()? else {
        return None;
    };
    let info = rpc.block_header(&block).await.ok()??;
    // Nodes give no proof of a transaction that is alone in its block.
    let alone = MerkleBranch { position: 0, siblings: Vec::new() };
    let branch = rpc.merkle_branch(&block, txid).await.ok()?.unwrap_or(alone);
    Bump::of(info.height, &[(*txid, branch)]).ok()
}

fn parents(transaction: &Transaction) -> impl Iterator<Item = Txid> {
    transaction.inputs.iter().map(|input| input.previous_output.txid)
}
