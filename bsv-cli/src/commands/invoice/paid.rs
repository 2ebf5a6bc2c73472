//! The payments of an invoice, and the owner's decision about them.

use bsv_invoicing::InvoiceId;
use bsv_server::wire::{Receipt, Settlement};
use clap::Args;
use serde_json::json;

use super::pages::Pages;
use crate::context::{Context, Stores};
use crate::error::CliError;
use crate::output::{Column, Table, counted, line, optional};

#[derive(Debug, Args)]
pub(crate) struct ShowArguments {
    /// The id of the invoice
    id: InvoiceId,
}

#[derive(Debug, Args)]
pub(crate) struct MarkArguments {
    /// The id of the invoice
    id: InvoiceId,
}

pub(in crate::commands) const PAYMENT_COLUMNS: &[Column] = &[
    Column::key("transaction", 13),
    Column::number("output"),
    Column::number("satoshis"),
    Column::whole("state"),
    Column::number("block"),
];

impl ShowArguments {
    pub(crate) async fn payments(self, context: &Context) -> Result<(), CliError> {
        let pages = Pages {
            first: format!("/api/v1/invoices/{}/payments", self.id),
            limit: u64::MAX,
            columns: PAYMENT_COLUMNS,
            add: &add_payment,
            is_oldest_first: true,
            none: "Nothing was paid for this invoice\n",
        };
        pages.print(context).await
    }

    pub(crate) async fn settlement(self, context: &Context) -> Result<(), CliError> {
        let mut service = context.service(Stores::Wallet).await?;
        let answer = service.get(format!("/api/v1/invoices/{}/settlement", self.id)).await?;
        let it: Settlement = answer.read()?;
        context.print(&answer.body, || {
            let notes =
                [("late", it.late), ("contested", it.contested), ("marked as paid", it.marked)];
            let notes: Vec<_> = notes.iter().filter(|(_, is)| *is).map(|(note, _)| *note).collect();
            [
                format!("Invoice {} is {}\n", self.id, it.state),
                line("satoshis", it.satoshis),
                line("received", it.received_satoshis),
                line("counted", it.counted_satoshis),
                line("refunded", it.refunded_satoshis),
                line("due", it.due_satoshis),
                line("surplus", it.surplus_satoshis),
                line("confirmed", optional(it.confirmations.map(confirmed))),
                line("notes", notes.join(", ")),
                line("next", it.next),
            ]
            .concat()
        })
    }
}

impl MarkArguments {
    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        let id = self.id;
        let effect =
            format!("Invoice {id} then counts as paid for good, regardless of what was received.");
        context.ask(&effect, "Mark it as paid?", "marked")?;
        let mut service = context.service(Stores::Wallet).await?;
        let path = format!("/api/v1/invoices/{id}/mark");
        let answer = service.post(path, json!({ "state": "paid" })).await?;
        context.print(&answer.body, || format!("Invoice {id} is marked as paid\n"))
    }
}

/// How deep the payments lie in the chain.
fn confirmed(confirmations: u32) -> String {
    match confirmations {
        0 => "by no block".to_owned(),
        count => format!("by {}", counted(count.into(), "block", "blocks")),
    }
}

fn add_payment(table: &mut Table, payment: &Receipt) {
    let Receipt { txid, vout, satoshis, state, block_height, .. } = payment;
    table.add([txid, vout, satoshis, state, &optional(*block_height)]);
}
