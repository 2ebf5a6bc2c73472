//! The demonstration: a real Bitcoin SV node on a private network, an invoice that is paid and a
//! payment to another wallet, a miner identity with its VCTx, and a block that carries it.

#![allow(clippy::unwrap_used, reason = "what fails here fails the demonstration")]

use std::time::Duration;

use bsv_minerid::formats::IdentityScript;
use bsv_tests::{Node, Server, Site, Template, build};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};

fn main() {
    println!("A wallet and a miner identity, on a real Bitcoin SV node (regtest)\n");
    step("building bsv-server and bsv-cli", || {
        build::server_program();
    });
    let node = step("fetching (once) and starting a Bitcoin SV node", Node::start);
    let site = Site::on(&node);
    step("mining the faucet's first coins", || node.mine(101));
    let server = step("starting bsv-server", || site.server());
    let supplier = Site::on(&node);
    let supplier_server = step("starting a second one, of a supplier", || supplier.server());
    let payment = be_paid(&site);
    let bill = pay(&site, &supplier);
    step("mining a block", || node.mine(1));
    show_proof(&server, &payment);
    show_proof(&supplier_server, &bill);
    drop(supplier_server);

    println!("\nThe same server holds the identity of a mining pool.");
    cli(&site, &["miner", "create", "--name", "pool"]);
    cli(&site, &["config", "--name", "pool", "name=Demo Pool", "email=ops@pool.example"]);
    cli(&site, &["miner", "vctx", "--name", "pool"]);

    mine(&node, &server);
    println!("\nThe pool rotates its key: GET /opreturn/pool/rotate");
    println!("  {}", server.text("/opreturn/pool/rotate"));
    mine(&node, &server);

    cli(&site, &["miner", "list"]);
    step("stopping", || drop(server));
}

/// Creates an invoice and lets the faucet pay it. Returns its id.
fn be_paid(site: &Site) -> String {
    let invoice = create_invoice(site, "50000", "a box of coffee");
    cli(site, &["wallet", "faucet", invoice["paymentUrl"].as_str().unwrap()]);
    cli(site, &["wallet", "balance"]);
    invoice["id"].as_str().unwrap().to_owned()
}

/// Pays an invoice of another wallet. Returns the invoice's id.
fn pay(site: &Site, payee: &Site) -> String {
    println!("\nThe supplier sends a bill.");
    let invoice = create_invoice(payee, "20000", "raw coffee");
    cli(site, &["pay", invoice["paymentUrl"].as_str().unwrap()]);
    cli(site, &["wallet", "balance"]);
    println!("\nThe supplier's:");
    cli(payee, &["wallet", "balance"]);
    invoice["id"].as_str().unwrap().to_owned()
}

fn create_invoice(site: &Site, satoshis: &str, description: &str) -> Value {
    let arguments = ["invoice", "create", "--satoshis", satoshis, "--description", description];
    let invoice = site.cli_json(&arguments);
    cli(site, &["invoice", "get", invoice["id"].as_str().unwrap()]);
    invoice
}

/// Waits for the proof that the payment of an invoice is in a block, and shows it.
fn show_proof(server: &Server, id: &str) {
    let path = format!("/api/v1/invoices/{id}/payments");
    let payments = step("waiting for the proof", || {
        loop {
            let payments = server.wallet().get(&path).body;
            if payments.contains("\"mined\"") {
                break payments;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    });
    println!("\nGET {path}\n  {payments}");
}

/// Mines a block that carries the identity, and shows what the node says about it.
fn mine(node: &Node, server: &Server) {
    let template = step("asking the node what to mine (getminingcandidate, getinfo)", || {
        Template::of(node, 1)
    });
    let request = template.coinbase2_request(node, "pool");
    println!("\nPOST /coinbase2 for block {}", template.height());
    println!("  coinbase2 sent     {} bytes", template.coinbase2.len() / 2);
    let reply = server.post("/coinbase2", request.to_string());
    assert_eq!(reply.status, 200, "{}", reply.body);
    println!("  coinbase2 returned {} bytes, one output more", reply.body.len() / 2);

    let coinbase = template.coinbase(&reply.body);
    let script = &coinbase.outputs.last().unwrap().locking_script;
    let script = IdentityScript::parse(script).unwrap();
    println!("  the document in it {}\n", String::from_utf8(script.document).unwrap());

    let block = step("mining the block", || template.mine(node, &reply.body));
    println!("\nWhat the node says about block {block} (dumpminerids):");
    let dump = node.call("dumpminerids", json!([]));
    for miner in dump["miners"].as_array().unwrap() {
        println!("  miner {}, blocks {}", miner["name"], miner["numrecentblocks"]);
        for id in miner["minerids"].as_array().unwrap() {
            println!("    {} {}", id["minerid"], id["state"]);
        }
    }
}

/// Runs the command line and shows it.
fn cli(site: &Site, arguments: &[&str]) {
    let shown: Vec<_> = arguments
        .iter()
        .map(|word| if word.contains(' ') { format!("'{word}'") } else { (*word).to_owned() })
        .collect();
    println!("\n$ bsv-cli {}", shown.join(" "));
    for line in site.cli_ok(arguments).lines() {
        println!("  {line}");
    }
}

/// Does something, and shows a sign of life while it is slow.
fn step<T>(name: &'static str, work: impl FnOnce() -> T) -> T {
    let style = ProgressStyle::with_template("{spinner} {msg} {elapsed}").unwrap();
    let bar = ProgressBar::new_spinner().with_style(style).with_message(name);
    bar.enable_steady_tick(Duration::from_millis(100));
    let result = work();
    bar.finish_and_clear();
    println!("✓ {name} ({:.1?})", bar.elapsed());
    result
}
