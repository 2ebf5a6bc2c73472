//! Helpers for sites with a wallet and identities, and for payments between wallets.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::thread;
use std::time::{Duration, Instant};

use bsv_tests::build::workspace;
use bsv_tests::{Client, Node, Server, Site};
use serde_json::{Value, json};

/// The passphrase of the keys.
pub(crate) const PASSPHRASE: &str = "keys of the keeper";

/// A site whose keys are sealed.
pub(crate) fn sealed_site(node: Option<&Node>) -> Site {
    let mut site = node.map_or_else(Site::new, Site::on);
    site.set_env("BSV_LOG", "error");
    site.set_env("BSV_KEYSTORE_PASSPHRASE", PASSPHRASE);
    site
}

/// Such a site whose commands open the keys at once: its keystore, without keys as yet, gives Argon2id 8 KiB and one
/// iteration.
pub(crate) fn quickly_sealed_site(node: Option<&Node>) -> Site {
    let site = sealed_site(node);
    let dir = site.network_dir().join("keystore");
    DirBuilder::new().recursive(true).mode(0o700).create(&dir).unwrap();
    fs::copy(workspace().join("tests/vectors/quick-keystore.json"), dir.join("keystore.json"))
        .unwrap();
    site
}

/// Such a site with a wallet and a store of identities.
pub(crate) fn begun_site() -> Site {
    let site = quickly_sealed_site(None);
    site.cli_ok(&["init"]);
    site
}

pub(crate) fn member(body: &str, name: &str) -> String {
    let body: Value = serde_json::from_str(body).unwrap();
    body[name].as_str().unwrap_or_else(|| panic!("{name} in {body}")).to_owned()
}

pub(crate) fn create_invoice(wallet: &Client, satoshis: u64) -> String {
    let body = json!({ "satoshis": satoshis }).to_string();
    let headers = [("Content-Type", "application/json")];
    let reply = wallet.try_send("POST", "/api/v1/invoices", &headers, body.as_bytes()).unwrap();
    assert_eq!(reply.status, 201, "{}", reply.body);
    member(&reply.body, "id")
}

/// The payment URL of an invoice.
pub(crate) fn payment_url(server: &Server, id: &str) -> String {
    format!("http://{}/dpp/api/v1/payment/{id}", server.payments().address())
}

/// Creates an invoice, and has the faucet pay it.
pub(crate) fn fill(site: &Site, server: &Server, satoshis: u64) {
    let id = create_invoice(server.wallet(), satoshis);
    site.cli_ok(&["wallet", "faucet", &payment_url(server, &id)]);
}

/// Has one wallet pay a new invoice of another one.
pub(crate) fn pay(payer: &Server, payee: &Server, satoshis: u64) {
    let id = create_invoice(payee.wallet(), satoshis);
    let body = json!({ "payToURL": payment_url(payee, &id) }).to_string();
    let headers = [("Content-Type", "application/json")];
    let reply = payer.wallet().try_send("POST", "/api/v1/pay", &headers, body.as_bytes()).unwrap();
    assert_eq!(reply.status, 200, "{}", reply.body);
}

pub(crate) fn balance(server: &Server) -> u64 {
    let reply = server.wallet().get("/api/v1/balance");
    let body: Value = serde_json::from_str(&reply.body).unwrap();
    body["satoshis"].as_u64().unwrap()
}

/// Waits until the wallet has proofs for so many transactions. A restored wallet first derives many
/// keys, which takes long while other tests run.
pub(crate) fn wait_for_proofs(site: &Site, count: u64) {
    let started = Instant::now();
    loop {
        let books = site.cli_json(&["books", "verify"]);
        if books["proofs"] == count {
            return;
        }
        assert!(started.elapsed() < Duration::from_secs(240), "{books}");
        thread::sleep(Duration::from_millis(100));
    }
}
