//! The wallet itself.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::consent::Consent;
use crate::context::{Context, Stores, Unattended};
use crate::error::CliError;
use crate::output::{number, printable, text};

#[derive(Debug, Subcommand)]
pub(crate) enum WalletCommand {
    /// Show the balance, in satoshis
    Balance(BalanceArguments),
    /// Print the 24 words that the wallet's keys can be restored from
    ///
    /// Whoever sees them can take the money. Asks before it prints them.
    Words(WordsArguments),
    /// The former name of words
    #[command(name = "backup-words", hide = true)]
    BackupWords(WordsArguments),
    /// Have the running server believe the system's clock as it is
    ///
    /// A clock that jumped by two hours or more, or is that far behind the newest block, makes nothing
    /// expire until it is right again or accepted.
    AcceptClock(AcceptClockArguments),
    /// Bring small coins together, so that a payment can spend what they are worth
    ///
    /// Takes coins with 6 confirmations, 20 at least and 500 in each transaction. Nodes take these without
    /// a fee.
    Consolidate(ConsolidateArguments),
    /// Read blocks once more, and take in what the wallet has missed
    Rescan(RescanArguments),
    /// Pay to a payment URL from the wallet of a regtest node, at most 100,000 satoshis
    Faucet(FaucetArguments),
}

#[derive(Debug, Args)]
pub(crate) struct BalanceArguments {}

#[derive(Debug, Args)]
pub(crate) struct WordsArguments {
    #[command(flatten)]
    consent: Consent,
}

#[derive(Debug, Args)]
pub(crate) struct AcceptClockArguments {}

#[derive(Debug, Args)]
pub(crate) struct ConsolidateArguments {}

#[derive(Debug, Args)]
pub(crate) struct RescanArguments {
    /// The height of the first block that is read
    #[arg(long, value_name = "H")]
    from_height: u32,
}

#[derive(Debug, Args)]
pub(crate) struct FaucetArguments {
    /// The payment URL
    #[arg(value_name = "PAYMENT_URL")]
    url: String,
}

impl WalletCommand {
    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        match self {
            Self::Balance(arguments) => arguments.run(context).await,
            Self::Words(arguments) => arguments.run(context).await,
            Self::BackupWords(arguments) => {
                arguments.run(&context.with_unattended(Unattended::Read)).await
            }
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
        let answer = service.get("/api/v1/balance").await?;
        let balance = answer.value()?;
        context.print(&answer.body, || format!("{} satoshis\n", number(&balance, "satoshis")))
    }
}

impl WordsArguments {
    async fn run(self, context: &Context) -> Result<(), CliError> {
        let effect = "Whoever sees the words can take the money.";
        self.consent.ask(context, effect, "Print them?", "printed")?;
        let mut service = context.service(Stores::Wallet).await?;
        let answer = service.post("/control/wallet/backup-words", json!({})).await?;
        let words = answer.value()?;
        context.print(&answer.body, || format!("{}\n", text(&words, "words")))
    }
}

impl AcceptClockArguments {
    async fn run(self, context: &Context) -> Result<(), CliError> {
        let mut service = context.service(Stores::Wallet).await?;
        let answer = service.post("/control/wallet/accept-clock", json!({})).await?;
        let accepted = answer.value()?;
        context.print(&answer.body, || match accepted["doubt"].as_str() {
            Some(doubt) => format!("The clock is accepted as it is: {}\n", printable(doubt)),
            None => "The clock was not doubted\n".to_owned(),
        })
    }
}

impl ConsolidateArguments {
    async fn run(self, context: &Context) -> Result<(), CliError> {
        let mut service = context.service(Stores::Wallet).await?;
        let waiting = context.wait("bringing coins together");
        let mut payments = Vec::new();
        loop {
            let answer = service.post("/control/wallet/consolidate", json!({})).await?;
            match answer.value()?["payment"].take() {
                Value::Null => break,
                payment => payments.push(payment),
            }
            // What the node does not take keeps its coins.
            if payments.last().is_some_and(|payment| payment["state"] != "settled") {
                break;
            }
        }
        drop(waiting);
        context.print(Value::from(payments.clone()), || match payments.len() {
            0 => "There are no 20 coins with 6 confirmations\n".to_owned(),
            count => format!("Coins are brought together in {count} transactions\n"),
        })
    }
}

impl RescanArguments {
    async fn run(self, context: &Context) -> Result<(), CliError> {
        let from_height = self.from_height;
        let mut service = context.service(Stores::Wallet).await?;
        let waiting = context.wait("reading blocks");
        let asked = json!({ "fromHeight": from_height });
        let answer = service.post("/control/wallet/rescan", asked).await?;
        drop(waiting);
        let read = answer.value()?;
        context.print(&answer.body, || {
            format!(
                "The blocks from {from_height} to {} were read, and the balance is {} satoshis after {}\n",
                number(&read, "height"),
                number(&read, "balance"),
                number(&read, "balanceBefore"),
            )
        })
    }
}

impl FaucetArguments {
    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        let url = self.url;
        let mut service = context.service(Stores::Wallet).await?;
        let waiting = context.wait("paying");
        let answer = service.post("/control/faucet", json!({ "url": url })).await?;
        drop(waiting);
        let paid = answer.value()?;
        context.print(&answer.body, || {
            format!("The faucet has paid to {url}\ntransaction {}\n", text(&paid, "txid"))
        })
    }
}
