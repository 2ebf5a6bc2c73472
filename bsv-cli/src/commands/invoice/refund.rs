//! Refunding what was paid to an invoice.

use bsv_invoicing::InvoiceId;
use bsv_invoicing::invoices::MAX_SATOSHIS;
use bsv_server::wire::{Outgoing, RefundPreview};
use clap::Args;
use serde_json::json;

use crate::context::{Context, Stores};
use crate::error::CliError;
use crate::output::{line, printable};

#[derive(Debug, Args)]
pub(crate) struct RefundArguments {
    /// The id of the invoice
    id: InvoiceId,
    /// The recipient: an address, or a script in hex [default: the one that the payer gave]
    #[arg(long, value_name = "ADDRESS")]
    to: Option<String>,
    /// The amount to refund, in satoshis [default: the surplus]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MAX_SATOSHIS))]
    satoshis: Option<u64>,
    /// Refund everything that has not been refunded yet
    #[arg(long, conflicts_with = "satoshis")]
    full: bool,
    /// Show what would be sent, and send nothing
    #[arg(long)]
    dry_run: bool,
}

impl RefundArguments {
    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        let path = format!("/api/v1/invoices/{}/refund", self.id);
        let mut asked = json!({ "satoshis": self.satoshis, "to": self.to, "full": self.full });
        let mut service = context.service(Stores::Wallet).await?;
        if self.dry_run || !context.has_consent()? {
            asked["dryRun"] = json!(true);
            let answer = service.post(&path, &asked).await?;
            let RefundPreview { satoshis, to, fee, .. } = answer.read()?;
            let shown = printable(&to);
            let effect =
                format!("{satoshis} satoshis are refunded to {shown}, and the fee is {fee}");
            if self.dry_run {
                return context.print(&answer.body, || format!("{effect}\n"));
            }
            context.ask(&format!("{effect}."), "Refund?", "refunded")?;
            // The refund is the one that was shown, even if more has been received meanwhile.
            asked = json!({ "satoshis": satoshis, "to": to });
        }
        let waiting = context.wait("refunding");
        let answer = service.post(&path, &asked).await?;
        drop(waiting);
        let Outgoing { satoshis, fee, txid, state, .. } = answer.read()?;
        context.print(&answer.body, || {
            format!("Refunded {satoshis} satoshis at a fee of {fee}\n")
                + &line("transaction", txid)
                + &line("state", state)
        })
    }
}
