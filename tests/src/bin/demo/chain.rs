//! The pool: its identity, and the blocks that carry it.

use bsv_minerid::formats::IdentityScript;
use bsv_tests::{Client, Node, Template};

use crate::programs::Programs;

/// Makes the identity of the pool, unless an earlier start has made it.
pub(crate) fn prepare_identity(programs: &Programs) {
    let identities = programs.ask(&["miner", "list"]);
    if identities.as_array().is_some_and(|it| !it.is_empty()) {
        return;
    }
    println!("The same server holds the identity of a mining pool.");
    programs.show(&["miner", "create", "--name", "pool"]);
    programs.show(&["miner", "contact", "--name", "pool", "name=Demo Pool"]);
    programs.show(&["miner", "vctx", "--name", "pool"]);
}

/// Mines a block that carries the identity, and shows what it says.
pub(crate) fn mine_identity(node: &Node, programs: &Programs) {
    let template = Template::of(node, 1);
    let request = template.coinbase2_request(node, "pool");
    let service = Client::at(&format!("http://127.0.0.1:{}", programs.ports.minerid)).unwrap();
    println!(
        "\nThe pool asks the node for the next block (getminingcandidate, getinfo), and the service for"
    );
    println!("a coinbase2 that carries the identity at height {}:", template.height());
    let file = programs.keep("coinbase2.json", &request.to_string());
    println!("\n$ curl http://{}/coinbase2 -d @{}", service.address(), file.display());
    println!("  coinbase2 sent     {} bytes", template.coinbase2.len() / 2);
    let reply = service.post("/coinbase2", request.to_string());
    if reply.status != 200 {
        return println!("  refused with {}: {}", reply.status, reply.body);
    }
    println!("  coinbase2 returned {} bytes, one output more", reply.body.len() / 2);
    let coinbase = template.coinbase(&reply.body);
    let script = &coinbase.outputs.last().unwrap().locking_script;
    let document = IdentityScript::parse(script).unwrap().document;
    println!("  the document in it {}", String::from_utf8(document).unwrap());
    let block = template.mine(node, &reply.body).to_string();
    println!("\nThe pool mines it (submitminingsolution). The node has accepted block {block}");
    programs.show(&["miner", "verify", "--block", &block]);
}
