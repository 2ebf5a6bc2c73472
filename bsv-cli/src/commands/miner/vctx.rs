//! The validity check transaction.

use bsv_tx::OutPoint;
use clap::Args;
use serde_json::json;

use super::Name;
use crate::context::{Context, Stores};
use crate::error::CliError;
use crate::output::{number, text};

#[derive(Debug, Args)]
pub(crate) struct VctxArguments {
    #[command(flatten)]
    name: Name,
    /// The output that funds it, where the node's wallet does not find it by itself
    #[arg(long, value_name = "TXID:N")]
    outpoint: Option<OutPoint>,
}

impl VctxArguments {
    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        let alias = self.name.alias;
        let funding = json!({ "outpoint": self.outpoint.map(|outpoint| outpoint.to_string()) });
        let mut service = context.service(Stores::Identities).await?;
        let waiting = context.wait("asking the node");
        let answer = service.post(format!("/control/minerids/{alias}/vctx"), funding).await?;
        drop(waiting);
        let vctx = answer.value()?;
        if vctx["state"] != "done" {
            return context.print(&answer.body, || {
                format!(
                    "Send at least {} satoshis to {} ({} have arrived), then run this again.\n",
                    number(&vctx, "leastSatoshis"),
                    text(&vctx, "address"),
                    number(&vctx, "foundSatoshis")
                )
            });
        }
        context.print(&answer.body, || {
            let outpoint = text(&vctx, "outpoint");
            format!("The VCTx of alias \"{alias}\" is on the network: {outpoint}\n")
        })?;
        context.advise("Keep it unspent: spending it revokes the identity.")
    }
}
