//! A shop that is paid: it makes an invoice, says where to pay it, and waits until it is paid.
//!
//! ```text
//! cargo run -p bsv-invoicing --example shop -- DIRECTORY RPC_HOST RPC_PORT RPC_USER RPC_PASSWORD
//! ```
//!
//! The node is one of a regtest network, with `txindex=1` and `zmqpubrawtx2`. Its own wallet can play
//! the customer: `bitcoin-cli sendtoaddress ADDRESS 0.00001`.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use bsv_invoicing::events::EventQuery;
use bsv_invoicing::{
    Address, DatabaseOptions, DirLock, InvoiceDraft, Keystore, Network, NodeCredentials, NodeRpc,
    NodeSettings, PlainKeys, RedbWalletStore, Wallet, WalletSettings,
};
use tokio::sync::oneshot;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [dir, host, port, user, password] = &arguments[..] else {
        return Err("expected DIRECTORY RPC_HOST RPC_PORT RPC_USER RPC_PASSWORD".into());
    };
    let node = NodeSettings {
        host: host.clone(),
        port: port.parse()?,
        credentials: NodeCredentials::password(user, password.as_str()),
    };
    let wallet = open(Path::new(dir), node).await?;
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(Arc::clone(&wallet).run(async {
        // Completes when the sender is dropped.
        let _ = stopped.await;
    }));
    let id = ask_for(&wallet, 1_000).await?;
    wait_until_paid(&wallet).await?;
    let state = wallet.invoice(&id).await?.state(wallet.now());
    println!("invoice {id} is {}, the balance is {}", state.name(), wallet.balance().await?);
    drop(stop);
    running.await?;
    Ok(())
}

async fn open(dir: &Path, node: NodeSettings) -> Result<Arc<Wallet>, Box<dyn Error>> {
    let keystore = Keystore::open(&dir.join("keystore"), None, PlainKeys::Allowed, "shop")?;
    let lock = DirLock::acquire(&dir.join("wallet"), "shop")?;
    let store = RedbWalletStore::open(lock, DatabaseOptions::default())?;
    let wallet =
        Wallet::open(Arc::new(store), keystore, WalletSettings::new(Network::Regtest)).await?;
    Ok(Arc::new(wallet.with_node(NodeRpc::new(node))))
}

/// Creates an invoice, prints what to pay, and returns the id. A wallet with a payment protocol would get the terms.
async fn ask_for(wallet: &Wallet, satoshis: u64) -> Result<String, Box<dyn Error>> {
    let draft = InvoiceDraft { satoshis, ..InvoiceDraft::default() };
    let id = wallet.create_invoice(draft, None).await?.id.to_string();
    for destination in wallet.terms(&id).await?.destinations {
        let address = Address::of_script(&destination.script, wallet.network());
        let address = address.ok_or("the destination has no address")?;
        println!("pay {} satoshis to {address}", destination.satoshis);
    }
    Ok(id)
}

async fn wait_until_paid(wallet: &Wallet) -> Result<(), Box<dyn Error>> {
    let mut query = EventQuery { after: 0, filter: "invoice.paid".parse()?, limit: 1 };
    loop {
        let page = wallet.await_events(query, std::future::pending()).await?;
        if !page.events.is_empty() {
            return Ok(());
        }
        query.after = page.next;
    }
}
