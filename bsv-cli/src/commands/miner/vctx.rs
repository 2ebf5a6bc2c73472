//! The validity check transaction.

use bsv_minerid::Alias;
use bsv_server::wire;
use bsv_tx::OutPoint;
use clap::Args;
use serde_json::Value;

use crate::context::{Context, Stores};
use crate::error::CliError;
use crate::output::{self, field, line, number, text};
use crate::shared_arguments::Name;

#[derive(Debug, Args)]
pub(crate) struct VctxArguments {
    #[command(flatten)]
    name: Name,
    /// The output that funds the VCTx, or that is swept, if the node's wallet does not find it
    #[arg(long, value_name = "TXID:N")]
    outpoint: Option<OutPoint>,
    /// Send the coins in the VCTx of an identity that was upgraded to protocol 1.0 to this address
    #[arg(long, value_name = "ADDRESS")]
    sweep: Option<String>,
    /// Show what would be swept, and send nothing
    #[arg(long, requires = "sweep")]
    dry_run: bool,
}

impl VctxArguments {
    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        let alias = self.name.alias();
        let sweep = Sweep { alias: &alias, outpoint: self.outpoint, dry_run: self.dry_run };
        if let Some(address) = &self.sweep {
            return sweep.run(context, address).await;
        }
        let outpoint = self.outpoint.map(|outpoint| outpoint.to_string());
        let funding = output::json(&wire::Vctx { outpoint });
        let mut service = context.service(Stores::Identities).await?;
        let waiting = context.wait("asking the node");
        let answer = service.post(format!("/control/minerids/{alias}/vctx"), funding).await?;
        drop(waiting);
        let vctx = answer.value()?;
        if vctx["state"] != "done" {
            return context.print(&answer.body, || {
                format!(
                    "Send at least {} satoshis to {} ({} have arrived). Then run this command again.\n",
                    number(&vctx, "leastSatoshis"),
                    text(&vctx, "address"),
                    number(&vctx, "foundSatoshis")
                )
            });
        }
        context.print(&answer.body, || {
            let outpoint = text(&vctx, "outpoint");
            format!("The VCTx of alias \"{alias}\" is on the network:\n{outpoint}\n")
        })?;
        context.advise("Keep it unspent: spending it revokes the identity.")
    }
}

/// Sending the coins in a VCTx to an address.
struct Sweep<'a> {
    alias: &'a Alias,
    outpoint: Option<OutPoint>,
    dry_run: bool,
}

impl Sweep<'_> {
    async fn run(&self, context: &Context, address: &str) -> Result<(), CliError> {
        let alias = self.alias;
        let path = format!("/control/minerids/{alias}/vctx/sweep");
        let outpoint = self.outpoint.map(|outpoint| outpoint.to_string());
        let mut asked = wire::Sweep { address: address.to_owned(), outpoint, dry_run: true };
        let mut service = context.service(Stores::Identities).await?;
        let answer = service.post(&path, output::json(&asked)).await?;
        let planned = answer.value()?;
        let effect = effect(alias, &planned);
        if self.dry_run {
            return context.print(&answer.body, || format!("{effect}\n"));
        }
        if !matches!(planned["state"].as_str(), Some("inMempool" | "mined")) {
            context.ask(&effect, "Send?", "sent")?;
        }
        asked.dry_run = false;
        let waiting = context.wait("sending");
        let answer = service.post(&path, output::json(&asked)).await?;
        drop(waiting);
        let swept = answer.value()?;
        context.print(&answer.body, || {
            let (satoshis, to) = (number(&swept, "satoshis"), text(&swept, "address"));
            let state = match swept["state"].as_str() {
                Some("mined") => "a block has it",
                Some("inMempool") => "the node has it",
                _ => "the node does not show it yet: run this command again",
            };
            format!("Sent {satoshis} satoshis to {to}\n")
                + &field("transaction", &swept["txid"])
                + &line("state", state)
        })
    }
}

/// Describes what a sweep would do, or has done.
fn effect(alias: &Alias, sweep: &Value) -> String {
    let (satoshis, to) = (number(sweep, "satoshis"), text(sweep, "address"));
    let what = format!("{satoshis} satoshis of the VCTx of alias \"{alias}\" go to {to}");
    match (sweep["state"].as_str(), sweep["fee"].as_u64()) {
        (Some("planned"), Some(fee)) => format!("{what}, and the fee is {fee}."),
        (Some("unseen"), _) => {
            format!("{what}: transaction {} is sent again.", text(sweep, "txid"))
        }
        _ => format!("{what}: transaction {} was sent.", text(sweep, "txid")),
    }
}
