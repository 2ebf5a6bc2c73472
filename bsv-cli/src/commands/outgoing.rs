//! Payments by the wallet.

use bsv_server::wire::{Beef, Outgoing};
use clap::{Args, Subcommand};

use crate::context::{Context, Stores};
use crate::error::CliError;
use crate::output::{Column, line, optional};

#[derive(Debug, Subcommand)]
pub(crate) enum OutgoingCommand {
    /// List the last 100 payments by the wallet, the newest first
    List(ListArguments),
    /// Show a payment by the wallet
    Show(ShowArguments),
    /// Cancel a payment whose payee does not answer, by spending one of its coins
    Cancel(CancelArguments),
}

#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// List only payments before the one with this id
    #[arg(long, value_name = "ID")]
    before: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArguments {
    /// The id of the payment
    id: u64,
    /// Print the payment's transaction with its ancestors (Atomic BEEF), in hexadecimal, for a
    /// payee whose wallet needs them
    #[arg(long)]
    beef: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CancelArguments {
    /// The id of the payment
    id: u64,
}

pub(super) const COLUMNS: &[Column] = &[
    Column::number("id"),
    Column::whole("state"),
    Column::number("satoshis"),
    Column::number("fee").unless_narrow(3),
    Column::number("block").unless_narrow(0),
    Column::key("transaction", 13).unless_narrow(1),
    // An address stays whole.
    Column::key("paid to", 34),
    Column::whole("for").unless_narrow(2),
];

impl OutgoingCommand {
    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        match self {
            Self::List(arguments) => arguments.run(context).await,
            Self::Show(arguments) => arguments.run(context).await,
            Self::Cancel(arguments) => arguments.run(context).await,
        }
    }
}

impl ListArguments {
    async fn run(self, context: &Context) -> Result<(), CliError> {
        let query = self.before.map(|id| format!("?before={id}")).unwrap_or_default();
        let mut service = context.service(Stores::Wallet).await?;
        let answer = service.get(format!("/api/v1/outgoing{query}")).await?;
        let payments: Vec<Outgoing> = answer.read()?;
        context.print(&answer.body, || {
            if payments.is_empty() {
                return "There is no payment\n".to_owned();
            }
            let mut table = context.table(COLUMNS);
            for payment in &payments {
                let Outgoing { id, state, satoshis, fee, block_height, txid, .. } = payment;
                let block = optional(*block_height);
                let (to, purpose) = recipient(payment);
                table.add([id, state, satoshis, fee, &block, txid, &to, &purpose]);
            }
            table.end()
        })
    }
}

impl ShowArguments {
    async fn run(self, context: &Context) -> Result<(), CliError> {
        let mut service = context.service(Stores::Wallet).await?;
        if self.beef {
            let answer = service.get(format!("/api/v1/outgoing/{}/beef", self.id)).await?;
            let told: Beef = answer.read()?;
            return context.print(&answer.body, || format!("{}\n", told.beef));
        }
        let answer = service.get(format!("/api/v1/outgoing/{}", self.id)).await?;
        let payment: Outgoing = answer.read()?;
        context.print(&answer.body, || {
            let (to, purpose) = recipient(&payment);
            [
                format!("Payment {} is {}\n", payment.id, payment.state),
                line("paid to", to),
                line("for", purpose),
                line("satoshis", payment.satoshis),
                line("fee", payment.fee),
                line("transaction", payment.txid),
                line("block", optional(payment.block_height)),
                line("created", context.time(&payment.created_at)),
                line("expires", optional(payment.expires_at.map(|at| context.time(&at)))),
                line("memo", payment.memo),
                caution(&payment.state),
            ]
            .concat()
        })
    }
}

/// What to mind while a payment is in a state, as a paragraph.
fn caution(state: &str) -> String {
    match state {
        "cancelling" => "The payee can still be paid until a block holds the cancellation. Until then, do not pay \
             the payee by other means.\n"
            .to_owned(),
        _ => String::new(),
    }
}

/// The recipient, and what the payment is for.
fn recipient(payment: &Outgoing) -> (String, String) {
    let to = optional(payment.to.as_ref());
    match payment.purpose.as_str() {
        "withdrawal" => (to, format!("withdrawal {}", optional(payment.withdrawal))),
        "refund" => (to, format!("refund of {}", optional(payment.invoice.as_ref()))),
        "consolidation" => ("the wallet itself".to_owned(), String::new()),
        _ => (optional(payment.url.as_ref()), String::new()),
    }
}

impl CancelArguments {
    async fn run(self, context: &Context) -> Result<(), CliError> {
        let id = self.id;
        let effect = format!(
            "One of the coins of payment {id} is spent by another transaction, and its payee is not paid."
        );
        context.ask(&effect, "Cancel it?", "cancelled")?;
        let mut service = context.service(Stores::Wallet).await?;
        let waiting = context.wait("cancelling");
        let answer = service.post(format!("/api/v1/outgoing/{id}/cancel"), "{}").await?;
        drop(waiting);
        let Outgoing { state, .. } = answer.read()?;
        let caution = caution(&state);
        context.print(&answer.body, || format!("Payment {id} is {state}\n{caution}"))
    }
}
