//! The wallet itself.

use bsv_server::wire;
use clap::{Args, Subcommand};
use hyper::Method;

use crate::context::{Context, Stores};
use crate::error::CliError;
use crate::output::{self, Column, counted, field, line, number, optional, printable, text};
use crate::service::Request;

#[derive(Debug, Subcommand)]
pub(crate) enum WalletCommand {
    /// Show the balance, in satoshis
    Balance(BalanceArguments),
    /// List the last 100 receipts that pay no invoice, the newest first
    Receipts(ReceiptsArguments),
    /// Print the 24 words that restore the wallet's keys
    ///
    /// Whoever sees the words can take the money. This asks before it prints them.
    Words(WordsArguments),
    /// Make the running server accept the system's clock
    ///
    /// If the clock jumps by two hours or more, or is two hours or more behind the newest block,
    /// nothing expires until the clock is right again or accepted.
    AcceptClock(AcceptClockArguments),
    /// Combine small coins, so that a payment can spend their value
    ///
    /// This takes coins with 6 confirmations, at least 20 and at most 500 for each transaction.
    /// Nodes accept these transactions without a fee.
    Consolidate(ConsolidateArguments),
    /// Read blocks again, and add what the wallet has missed
    Rescan(RescanArguments),
    /// Pay to a payment URL from the wallet of a regtest node, at most 100,000 satoshis
    Faucet(FaucetArguments),
}

#[derive(Debug, Args)]
pub(crate) struct BalanceArguments {
    /// Show the parts of the balance
    #[arg(long)]
    details: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReceiptsArguments {
    /// List only receipts before the one with this id
    #[arg(long, value_name = "ID", value_parser = receipt_id)]
    before: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct WordsArguments {}

#[derive(Debug, Args)]
pub(crate) struct AcceptClockArguments {}

#[derive(Debug, Args)]
pub(crate) struct ConsolidateArguments {}

#[derive(Debug, Args)]
pub(crate) struct RescanArguments {
    /// The height of the first block to read
    #[arg(long, value_name = "H")]
    from_height: u32,
}

#[derive(Debug, Args)]
pub(crate) struct FaucetArguments {
    /// The payment URL
    #[arg(value_name = "PAYMENT_URL")]
    url: String,
}

pub(super) const RECEIPT_COLUMNS: &[Column] = &[
    Column::whole("id"),
    Column::key("transaction", 13),
    Column::number("output").unless_narrow(0),
    Column::number("satoshis"),
    Column::whole("state"),
    Column::number("block").unless_narrow(1),
    Column::number("user").unless_narrow(2),
];

impl WalletCommand {
    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        match self {
            Self::Balance(arguments) => arguments.run(context).await,
            Self::Receipts(arguments) => arguments.run(context).await,
            Self::Words(arguments) => arguments.run(context).await,
            Self::AcceptClock(arguments) => arguments.run(context).await,
            Self::Consolidate(arguments) => arguments.run(context).await,
            Self::Rescan(arguments) => arguments.run(context).await,
            Self::Faucet(arguments) => arguments.run(context).await,
        }
    }
}

impl BalanceArguments {
    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        let mut service = context.service(Stores::Wallet).await?;
        let path = if self.details { "/api/v1/balance/details" } else { "/api/v1/balance" };
        let answer = service.get(path).await?;
        let wire::Balance { satoshis, parts } = answer.read()?;
        context.print(&answer.body, || {
            let total = format!("{satoshis} satoshis\n");
            let Some(parts) = parts else { return total };
            total
                + &line("confirmed", parts.confirmed)
                + &line("unconfirmed", parts.unconfirmed)
                + &line("reserved", parts.reserved)
                + &line("contested", parts.contested)
                + &line("immature", parts.immature)
                + &line("waiting", parts.waiting)
                + &line("coins", parts.coins)
        })
    }
}

impl ReceiptsArguments {
    async fn run(self, context: &Context) -> Result<(), CliError> {
        let before = self.before.map(|id| format!("&before={id}")).unwrap_or_default();
        let mut service = context.service(Stores::Wallet).await?;
        let path = format!("/api/v1/receipts?unassigned=true&limit=100{before}");
        let answer = service.get(path).await?;
        let receipts: Vec<wire::UnassignedReceipt> = answer.read()?;
        context.print(&answer.body, || {
            if receipts.is_empty() {
                return "There is no receipt without an invoice\n".to_owned();
            }
            let mut table = context.table(RECEIPT_COLUMNS);
            for wire::UnassignedReceipt { receipt, user } in &receipts {
                let wire::Receipt { id, txid, vout, satoshis, state, block_height, .. } = receipt;
                let (block, user) = (optional(*block_height), optional(*user));
                table.add([id, txid, vout, satoshis, state, &block, &user]);
            }
            table.end()
        })
    }
}

/// Parses the id of a receipt: two numbers.
fn receipt_id(text: &str) -> Result<String, String> {
    let is_number = |text: &str| text.parse::<u64>().is_ok();
    match text.split_once('-') {
        Some((maker, vout)) if is_number(maker) && is_number(vout) => Ok(text.to_owned()),
        _ => Err("expected the id of a receipt, such as 17-0".to_owned()),
    }
}

impl WordsArguments {
    async fn run(self, context: &Context) -> Result<(), CliError> {
        let effect = "Whoever sees the words can take the money.";
        context.ask(effect, "Print them?", "printed")?;
        let mut service = context.service(Stores::Wallet).await?;
        let answer = service.post("/control/wallet/backup-words", "{}").await?;
        let words = answer.value()?;
        context.print(&answer.body, || shown_words(&text(&words, "words"), context.is_brief()))
    }
}

/// The words: to a person numbered, in four lines, otherwise in the line that restores them.
fn shown_words(words: &str, is_brief: bool) -> String {
    if !is_brief {
        return format!("{words}\n");
    }
    let words: Vec<_> = words.split_whitespace().collect();
    let lines = words.chunks(6).enumerate().map(|(row, line)| {
        let numbered = line.iter().zip(row * 6 + 1..);
        let line: String =
            numbered.map(|(word, number)| format!("{number:>2} {word:<10}")).collect();
        line.trim_end().to_owned() + "\n"
    });
    lines.collect()
}

impl AcceptClockArguments {
    async fn run(self, context: &Context) -> Result<(), CliError> {
        let mut service = context.service(Stores::Wallet).await?;
        let answer = service.post("/control/wallet/accept-clock", "{}").await?;
        let accepted = answer.value()?;
        context.print(&answer.body, || match accepted["doubt"].as_str() {
            Some(doubt) => format!("The clock is accepted: {}\n", printable(doubt)),
            None => "The clock was not doubted\n".to_owned(),
        })
    }
}

impl ConsolidateArguments {
    async fn run(self, context: &Context) -> Result<(), CliError> {
        let mut service = context.service(Stores::Wallet).await?;
        let waiting = context.wait("combining coins");
        let mut payments: Vec<wire::Outgoing> = Vec::new();
        loop {
            let answer = service.post("/control/wallet/consolidate", "{}").await?;
            let Some(payment) = answer.read::<wire::Consolidated>()?.payment else { break };
            // A transaction that the node refuses keeps its coins, so this stops.
            let is_settled = payment.state == "settled";
            payments.push(payment);
            if !is_settled {
                break;
            }
        }
        drop(waiting);
        context.print(output::json(&payments), || match payments.len() {
            0 => "There are no 20 coins with 6 confirmations\n".to_owned(),
            count => {
                let transactions = counted(count as u64, "transaction", "transactions");
                format!("Coins are combined in {transactions}\n")
            }
        })
    }
}

impl RescanArguments {
    async fn run(self, context: &Context) -> Result<(), CliError> {
        let from_height = self.from_height;
        let mut service = context.service(Stores::Wallet).await?;
        let waiting = context.wait("reading blocks");
        let path = "/control/wallet/rescan".to_owned();
        let body = Some(output::json(&wire::Rescan { from_height }));
        let asked = Request { method: Method::POST, path, body };
        let read = |height, last| waiting.show("reading blocks", height, last);
        let answer = service.work(&asked, read).await?;
        drop(waiting);
        let read = answer.value()?;
        context.print(&answer.body, || {
            format!(
                "The blocks from {from_height} to {} were read. The balance is {} satoshis, and was {} before\n",
                number(&read, "height"),
                number(&read, "balance"),
                number(&read, "balanceBefore"),
            )
        })
    }
}

impl FaucetArguments {
    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        let asked = wire::Faucet { url: self.url };
        let mut service = context.service(Stores::Wallet).await?;
        let waiting = context.wait("paying");
        let answer = service.post("/control/faucet", output::json(&asked)).await?;
        drop(waiting);
        let paid = answer.value()?;
        context.print(&answer.body, || {
            format!("The faucet has paid to {}\n", asked.url) + &field("transaction", &paid["txid"])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_numbered_in_four_lines_that_fit() {
        let words = ["abstract"; 24].join(" ");
        assert_eq!(shown_words(&words, false), format!("{words}\n"));
        let shown = shown_words(&words, true);
        assert_eq!(shown.lines().count(), 4);
        assert!(shown.lines().all(|line| line.len() <= 80), "{shown}");
        let last = shown.lines().last().unwrap();
        assert!(last.starts_with("19 abstract  20 ") && last.ends_with("24 abstract"), "{shown}");
    }
}
