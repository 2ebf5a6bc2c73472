//! Whether the balance is what the transactions make it.

use clap::{Args, Subcommand};
use serde_json::Value;

use crate::context::{Context, Stores};
use crate::error::CliError;
use crate::output::{elements, printable};

#[derive(Debug, Subcommand)]
pub(crate) enum BooksCommand {
    /// Add up the coins anew from the stored transactions and their proofs
    ///
    /// With a node, the blocks of the proofs are looked up in its main chain, and it is asked whether each
    /// coin is still there. Changes nothing.
    Verify(VerifyArguments),
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArguments {
    /// Read the blocks from this height on, and the mempool, for what pays the wallet or spends its
    /// coins, and is missing from the books
    #[arg(long, value_name = "HEIGHT")]
    from_height: Option<u32>,
}

impl BooksCommand {
    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        let Self::Verify(VerifyArguments { from_height }) = self;
        let query = from_height.map(|height| format!("?fromHeight={height}")).unwrap_or_default();
        let mut service = context.service(Stores::Wallet).await?;
        let waiting = context.wait("adding up the coins");
        let answer = service.get(format!("/control/books{query}")).await?;
        drop(waiting);
        let check = answer.value()?;
        context.print(&check, || describe(&check))?;
        let further = check["furtherDifferences"].as_u64().unwrap_or_default();
        match elements(&check["differences"]).len() as u64 + further {
            0 => Ok(()),
            count => Err(CliError::CheckFailed(format!("{count} differences in the books"))),
        }
    }
}

fn describe(check: &Value) -> String {
    let number = |name: &str| check[name].as_u64().unwrap_or_default();
    let mut text = String::new();
    for difference in elements(&check["differences"]) {
        text.push_str(&format!("{}\n", printable(difference.as_str().unwrap_or_default())));
    }
    if number("furtherDifferences") > 0 {
        text.push_str(&format!("and {} more\n", number("furtherDifferences")));
    }
    text.push_str(&format!(
        "{} transactions make {} coins of {} satoshis, and the balance is kept as {}\n",
        number("transactions"),
        number("coins"),
        number("recomputed"),
        number("balance")
    ));
    let (proofs, blocks) = (number("proofs"), number("blocks"));
    text + &match check["blocksInChain"].as_u64() {
        Some(count) => format!(
            "{proofs} proofs of {blocks} blocks, of which the node has {count} in its main chain\n"
        ),
        None => format!("{proofs} proofs of {blocks} blocks, which no node was asked for\n"),
    }
}
