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
            if matches!(preview, PayPreview::Asked { .. }) {
                context.ask(&format!("{}.", describe(&preview)), "Pay?", "paid")?;
            }
            payment["maxSatoshis"] = json!(self.max.unwrap_or(cost(&preview)));
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

/// What was shown, fee included. It is the limit: the payee may ask for more the next time, and an
/// earlier payment may have come to nothing.
fn cost(preview: &PayPreview) -> u64 {
    match preview {
        PayPreview::Made { made: Outgoing { satoshis, fee, .. } }
        | PayPreview::Asked { satoshis, fee, .. } => satoshis.saturating_add(*fee),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_the_limit_for_a_payment_that_is_made_already_too() {
        let asked = json!({
            "payee": "a shop", "memo": "", "satoshis": 400, "fee": 24, "feeRate": 100,
            "expiresAt": "2026-11-28T11:09:58Z",
        });
        let made = json!({ "made": {
            "id": 1, "state": "offered", "purpose": "url", "satoshis": 400, "fee": 24, "txid": "",
            "createdAt": "", "memo": "",
        }});
        for preview in [asked, made] {
            assert_eq!(cost(&serde_json::from_value(preview).unwrap()), 424);
        }
    }
}
