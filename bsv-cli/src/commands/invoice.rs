//! Invoices, and lists of invoices of any length.

mod pages;
mod paid;
mod qr;
mod refund;

use std::io::{self, IsTerminal};

use bsv_invoicing::invoices::MAX_SATOSHIS;
use bsv_invoicing::{InvoiceId, InvoiceState};
use bsv_server::wire::{Invoice, Settlement};
use bsv_tx::Txid;
use clap::{Args, Subcommand};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde_json::json;

use self::pages::Pages;
#[cfg(test)]
pub(super) use self::paid::PAYMENT_COLUMNS;
use crate::context::{Context, Stores};
use crate::error::CliError;
use crate::output::{self, Column, Table, line, optional};
use crate::service::Answer;
use crate::shared_arguments::Expiry;

#[derive(Debug, Subcommand)]
pub(crate) enum InvoiceCommand {
    /// Create an invoice, and print it with its payment URL
    ///
    /// In a terminal, this also shows a QR code of the payment page for the customer.
    Create(CreateArguments),
    /// Show an invoice, its payment URL and its payment page
    #[command(alias = "get")]
    Show(ShowArguments),
    /// List invoices, the newest first
    List(ListArguments),
    /// Show the payments for an invoice, one by one
    Payments(paid::ShowArguments),
    /// Show the sums of an invoice: received, counted, refunded, due, surplus, and what to do next
    Settlement(paid::ShowArguments),
    /// Mark an invoice as paid, regardless of what was received
    Mark(paid::MarkArguments),
    /// Delete an invoice that is not paid
    Delete(DeleteArguments),
    /// Refund what was paid to an invoice
    ///
    /// This asks before it sends. For example: bsv-cli invoice refund ID --full
    Refund(refund::RefundArguments),
}

#[derive(Debug, Args)]
pub(crate) struct CreateArguments {
    /// The amount, in satoshis
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MAX_SATOSHIS))]
    satoshis: u64,
    /// The description of what is sold
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Your own reference
    #[arg(long, value_name = "TEXT")]
    reference: Option<String>,
    /// When the invoice expires [default: after wallet.paymentExpiryHours]
    #[command(flatten)]
    expiry: Expiry,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArguments {
    /// The id of the invoice
    id: InvoiceId,
}

#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// List only invoices in this state: pending, paid or expired
    #[arg(long, value_name = "STATE")]
    state: Option<InvoiceState>,
    /// List only invoices that need a decision: late, partly paid and expired, overpaid, with a
    /// payment that the network has not shown for 6 blocks, or waiting for a block for a day
    #[arg(long)]
    attention: bool,
    /// List only invoices with this reference, the newest first
    #[arg(long, value_name = "TEXT",
          conflicts_with_all = ["state", "attention", "txid", "oldest_first"])]
    reference: Option<String>,
    /// List only invoices that this transaction pays
    #[arg(long, value_name = "TXID", conflicts_with_all = ["state", "attention", "oldest_first"])]
    txid: Option<Txid>,
    /// The most invoices to list [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// List the oldest invoices first
    #[arg(long)]
    oldest_first: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DeleteArguments {
    /// The id of the invoice
    id: InvoiceId,
}

pub(super) const COLUMNS: &[Column] = &[
    Column::whole("id"),
    Column::whole("state"),
    Column::number("satoshis"),
    Column::whole("expires"),
    Column::words("reference and description", 25),
];

impl InvoiceCommand {
    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        match self {
            Self::Create(arguments) => arguments.run(context).await,
            Self::Show(arguments) => arguments.run(context).await,
            Self::List(arguments) => arguments.run(context).await,
            Self::Payments(arguments) => arguments.payments(context).await,
            Self::Settlement(arguments) => arguments.settlement(context).await,
            Self::Mark(arguments) => arguments.run(context).await,
            Self::Delete(arguments) => arguments.run(context).await,
            Self::Refund(arguments) => arguments.run(context).await,
        }
    }
}

impl CreateArguments {
    async fn run(self, context: &Context) -> Result<(), CliError> {
        let invoice = json!({
            "satoshis": self.satoshis,
            "description": self.description,
            "reference": self.reference,
            "expiresAt": self.expiry.moment(),
        });
        let mut service = context.service(Stores::Wallet).await?;
        let answer = service.post("/api/v1/invoices", invoice).await?;
        show(context, &answer, None)?;
        match answer.page_url {
            Some(url) if !context.is_json && io::stdout().is_terminal() => {
                Ok(output::print(&qr::code(&url, context.colors.stdout))?)
            }
            _ => Ok(()),
        }
    }
}

impl ShowArguments {
    async fn run(self, context: &Context) -> Result<(), CliError> {
        let mut service = context.service(Stores::Wallet).await?;
        let answer = service.get(format!("/api/v1/invoices/{}", self.id)).await?;
        let settlement = service.get(format!("/api/v1/invoices/{}/settlement", self.id)).await?;
        show(context, &answer, Some(settlement.read()?))
    }
}

impl DeleteArguments {
    async fn run(self, context: &Context) -> Result<(), CliError> {
        let id = self.id;
        let effect = format!("Invoice {id} can then neither be paid nor be shown.");
        context.ask(&effect, "Delete it?", "deleted")?;
        let mut service = context.service(Stores::Wallet).await?;
        service.delete(format!("/api/v1/invoices/{id}")).await?;
        context.print(json!({ "deleted": id.as_str() }), || format!("Invoice {id} is deleted\n"))
    }
}

/// An invoice, and where it is paid and shown.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ShownInvoice<'a> {
    #[serde(flatten)]
    invoice: Invoice,
    payment_url: Option<&'a str>,
    page_url: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    received_satoshis: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// Shows an invoice, with a line for each field. A new one has no settlement yet.
fn show(
    context: &Context,
    answer: &Answer,
    settlement: Option<Settlement>,
) -> Result<(), CliError> {
    let (payment_url, page_url) = (answer.payment_url.as_deref(), answer.page_url.as_deref());
    let received_satoshis = settlement.as_ref().map(|it| it.received_satoshis);
    let next = settlement.map(|it| it.next);
    let invoice = answer.read()?;
    let shown = ShownInvoice { invoice, payment_url, page_url, received_satoshis, next };
    context.print(output::json(&shown), || {
        let Invoice { id, satoshis, state, .. } = &shown.invoice;
        let paid_at = shown.invoice.payment_received_at.as_ref();
        let until = if state == "expired" { "expired" } else { "expires" };
        [
            format!("Invoice {id} of {satoshis} satoshis, {state}\n"),
            line("description", optional(shown.invoice.description.as_ref())),
            line("reference", optional(shown.invoice.reference.as_ref())),
            line("created", context.time(&shown.invoice.created_at)),
            line(until, context.time(&shown.invoice.expires_at)),
            line("paid", optional(paid_at.map(|at| context.time(at)))),
            line("received", optional(shown.received_satoshis)),
            line("next", optional(shown.next.as_ref())),
            line("pay to", optional(payment_url)),
            line("page", optional(page_url)),
        ]
        .concat()
    })
}

/// How many invoices one request asks for.
const PAGE: u64 = 1000;

impl ListArguments {
    async fn run(self, context: &Context) -> Result<(), CliError> {
        let pages = Pages {
            first: self.first_page(),
            limit: self.limit.unwrap_or(u64::MAX),
            columns: COLUMNS,
            add: &|table, invoice| add_invoice(context, table, invoice),
            is_oldest_first: false,
            none: match self.attention {
                true => "No invoice needs a decision\n",
                false => "There is no such invoice\n",
            },
        };
        pages.print(context).await
    }

    fn first_page(&self) -> String {
        if let Some(reference) = &self.reference {
            let reference = utf8_percent_encode(reference, NON_ALPHANUMERIC);
            return format!("/api/v1/invoices?reference={reference}");
        }
        let mut path = format!("/api/v1/invoices?limit={}", self.limit.unwrap_or(PAGE).min(PAGE));
        if let Some(txid) = self.txid {
            path.push_str(&format!("&txid={txid}"));
        }
        if self.attention {
            path.push_str("&attention=true");
        }
        if let Some(state) = self.state {
            path.push_str(&format!("&state={state}"));
        }
        if !self.oldest_first && self.txid.is_none() {
            path.push_str("&order=desc");
        }
        path
    }
}

fn add_invoice(context: &Context, table: &mut Table, invoice: &Invoice) {
    let Invoice { id, state, satoshis, expires_at, reference, description, .. } = invoice;
    let words = [reference, description].into_iter().flatten().map(String::as_str);
    let words: Vec<_> = words.filter(|words| !words.is_empty()).collect();
    table.add([id, state, satoshis, &context.time(expires_at), &words.join("  ")]);
}
