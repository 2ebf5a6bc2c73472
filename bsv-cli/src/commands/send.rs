//! Sending money to an address.

use std::str::FromStr;

use bsv_invoicing::invoices::MAX_SATOSHIS;
use clap::Args;
use serde_json::{Value, json};

use crate::context::{Context, Stores};
use crate::error::CliError;
use crate::output::{elements, field, number};

#[derive(Debug, Args)]
pub(crate) struct SendArguments {
    /// The address
    address: String,
    /// The amount in satoshis, or all
    #[arg(value_name = "AMOUNT|all")]
    amount: Amount,
    /// The highest fee, in satoshis
    #[arg(long, value_name = "N")]
    max_fee: Option<u64>,
    /// Your own reference
    #[arg(long, value_name = "TEXT")]
    reference: Option<String>,
    /// Show what would be sent, and send nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Clone, Copy, Debug)]
enum Amount {
    Satoshis(u64),
    All,
}

impl FromStr for Amount {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            _ if text == "all" => Ok(Self::All),
            Ok(satoshis) if (1..=MAX_SATOSHIS).contains(&satoshis) => Ok(Self::Satoshis(satoshis)),
            _ => Err(format!("give a number of satoshis from 1 to {MAX_SATOSHIS}, or all")),
        }
    }
}

impl SendArguments {
    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        let mut asked = json!({
            "address": self.address, "maxFee": self.max_fee, "reference": self.reference,
        });
        match self.amount {
            Amount::Satoshis(satoshis) => asked["satoshis"] = json!(satoshis),
            Amount::All => asked["all"] = json!(true),
        }
        let mut service = context.service(Stores::Wallet).await?;
        if self.dry_run || !context.has_consent()? {
            asked["dryRun"] = json!(true);
            let answer = service.post("/api/v1/withdrawals", &asked).await?;
            let preview = answer.value()?;
            let effect = describe(&preview, &self.address);
            if self.dry_run {
                return context.print(&answer.body, || format!("{effect}\n"));
            }
            context.ask(&format!("{effect}."), "Send?", "sent")?;
            asked["dryRun"] = json!(false);
            // The fee that was shown is the limit.
            asked["maxFee"] = json!(preview["fee"]);
        }
        let waiting = context.wait("sending");
        let answer = service.post("/api/v1/withdrawals", &asked).await?;
        drop(waiting);
        let sent = answer.value()?;
        context.print(&answer.body, || {
            let (satoshis, fee) = (number(&sent, "satoshis"), number(&sent, "fee"));
            let mut said = format!("Sent {satoshis} satoshis at a fee of {fee}\n");
            for transaction in elements(&sent["transactions"]) {
                said.push_str(&field("transaction", &transaction["txid"]));
                said.push_str(&field("state", &transaction["state"]));
            }
            said
        })
    }
}

/// Describes what would be sent.
fn describe(preview: &Value, to: &str) -> String {
    let (satoshis, fee) = (number(preview, "satoshis"), number(preview, "fee"));
    let transactions = match elements(&preview["transactions"]).len() {
        1 => String::new(),
        count => format!(", in {count} transactions"),
    };
    format!("{satoshis} satoshis go to {to}, and the fee is {fee}{transactions}")
}
