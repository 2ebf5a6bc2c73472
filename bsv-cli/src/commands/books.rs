//! Checking the balance against the transactions.

use clap::{Args, Subcommand};
use serde_json::Value;

use crate::context::{Context, Stores};
use crate::error::CliError;
use crate::output::{elements, printable};

#[derive(Debug, Subcommand)]
pub(crate) enum BooksCommand {
    /// Add up the coins again from the stored transactions and their proofs
    ///
    /// With a node, this looks up the blocks of the proofs in the node's main chain, and asks the
    /// node whether each coin still exists. This changes nothing.
    Verify(VerifyArguments),
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArguments {
    /// Search the blocks from this height on, and the mempool, for payments to the wallet and
    /// spends of its coins that the books lack
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
        "{} transactions make {} coins of {} satoshis; the recorded balance is {}\n",
        number("transactions"),
        number("coins"),
        number("recomputed"),
        number("balance")
    ));
    if number("bytesDropped") > 0 {
        text.push_str(&format!(
            "bytes dropped: {} of the transactions are kept without their bytes\n",
            number("bytesDropped")
        ));
    }
    let (proofs, blocks) = (number("proofs"), number("blocks"));
    text += &match check["blocksInChain"].as_u64() {
        Some(count) => format!(
            "{proofs} proofs of {blocks} blocks; {count} of these blocks are in the node's main chain\n"
        ),
        None => format!("{proofs} proofs of {blocks} blocks; no node was asked for these blocks\n"),
    };
    text + &match check["searchedFrom"].as_u64() {
        Some(height) => format!(
            "the chain from height {height} on and the mempool were searched for what the books lack\n"
        ),
        None => {
            "the chain was not searched for what the books lack (--from-height HEIGHT does that)\n"
                .to_owned()
        }
    }
}
