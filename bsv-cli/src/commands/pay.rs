//! Paying.

use bsv_server::wire::{Outgoing, PayPreview};
use clap::Args;
use serde_json::json;

use crate::context::{Context, Stores};
use crate::error::CliError;
use crate::output::{field, optional, printable};

#[derive(Debug, Args)]
pub(crate) struct PayArguments {
    /// The payment URL, or a link with one: bitcoin:?sv&r=URL, bitcoin:ADDRESS?sv&amount=N&r=URL or
    /// pay:?r=URL. The payee decides the amount, not the link
    url: String,
    /// The most to pay, in satoshis, including the fee
    #[arg(long, value_name = "N")]
    max: Option<u64>,
    /// Show what would be paid, and pay nothing
    #[arg(long)]
    dry_run: bool,
}

impl PayArguments {
    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        let mut payment = json!({ "payToURL": self.url, "maxSatoshis": self.max });
        let mut service = context.service(Stores::Wallet).await?;
        if self.dry_run || !context.has_consent()? {
            let answer = service.post("/control/wallet/pay/preview", &payment).await?;
            let preview: PayPreview = answer.read()?;
            if self.dry_run {
                return context.print(&answer.body, || format!("{}\n", describe(&preview)));
            }
            // Continuing an earlier payment spends nothing more.
            if let PayPreview::Asked { satoshis, fee, .. } = preview {
                context.ask(&format!("{}.", describe(&preview)), "Pay?", "paid")?;
                // The payee may ask for more the next time.
                payment["maxSatoshis"] = json!(self.max.unwrap_or(satoshis.saturating_add(fee)));
            }
        }
        let waiting = context.wait("paying");
        let answer = service.post("/api/v1/pay", &payment).await?;
        drop(waiting);
        let paid = answer.value()?;
        context.print(&answer.body, || {
            [
                "Paid\n".to_owned(),
                field("id", &paid["id"]),
                field("transaction", &paid["tx_id"]),
                field("memo", &paid["memo"]),
            ]
            .concat()
        })
    }
}

/// Describes what would be paid.
fn describe(preview: &PayPreview) -> String {
    match preview {
        PayPreview::Made { made: Outgoing { id, satoshis, fee, state, .. } } => {
            format!("Payment {id} of {satoshis} satoshis and a fee of {fee} is already {state}")
        }
        PayPreview::Asked { payee, memo, satoshis, fee, link_satoshis, .. } => {
            let (payee, memo) = (printable(payee), printable(memo));
            let memo = if memo.is_empty() { memo } else { format!(" for \"{memo}\"") };
            let link = optional(link_satoshis.map(|named| format!(" (the link names {named})")));
            format!("{payee} asks for {satoshis} satoshis{link}{memo}, and the fee is {fee}")
        }
    }
}
