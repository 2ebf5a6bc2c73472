//! Paying.

use clap::Args;
use serde_json::{Value, json};

use crate::consent::Consent;
use crate::context::{Context, Stores, Unattended};
use crate::error::CliError;
use crate::output::{field, number, text};

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
    /// Do not ask before paying. Outside a terminal, this never asks
    #[arg(long)]
    yes: bool,
}

impl PayArguments {
    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        let context = &context.with_unattended(Unattended::GoOn);
        let consent = Consent::new(self.yes);
        let mut payment = json!({ "payToURL": self.url, "maxSatoshis": self.max });
        let mut service = context.service(Stores::Wallet).await?;
        if self.dry_run || consent.would_ask() {
            let answer = service.post("/control/wallet/pay/preview", &payment).await?;
            let preview = answer.value()?;
            if self.dry_run {
                return context.print(&answer.body, || format!("{}\n", describe(&preview)));
            }
            // Continuing an earlier payment spends nothing more.
            if preview["made"].is_null() {
                consent.ask(context, &format!("{}.", describe(&preview)), "Pay?", "paid")?;
                // The payee may ask for more the next time.
                payment["maxSatoshis"] = json!(self.max.unwrap_or_else(|| cost(&preview)));
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

/// The existing payment, or the terms of a new one.
fn terms(preview: &Value) -> &Value {
    Some(&preview["made"]).filter(|made| !made.is_null()).unwrap_or(preview)
}

/// The amount and the fee, in satoshis.
fn cost(preview: &Value) -> u64 {
    let satoshis = |name: &str| terms(preview)[name].as_u64().unwrap_or_default();
    satoshis("satoshis").saturating_add(satoshis("fee"))
}

/// Describes what would be paid.
fn describe(preview: &Value) -> String {
    let terms = terms(preview);
    let (satoshis, fee) = (number(terms, "satoshis"), number(terms, "fee"));
    if !preview["made"].is_null() {
        let (id, state) = (number(terms, "id"), text(terms, "state"));
        return format!(
            "Payment {id} of {satoshis} satoshis and a fee of {fee} is already {state}"
        );
    }
    let memo = match text(terms, "memo") {
        memo if memo.is_empty() => memo,
        memo => format!(" for \"{memo}\""),
    };
    let link = match number(terms, "linkSatoshis") {
        named if named.is_empty() => named,
        named => format!(" (the link names {named})"),
    };
    let payee = text(terms, "payee");
    format!("{payee} asks for {satoshis} satoshis{link}{memo}, and the fee is {fee}")
}
