//! Checking the balance against the transactions.

use bsv_invoicing::ledger::rows::{KeyRange, Table};
use bsv_invoicing::recovery::BooksCheck;
use bsv_server::stored_rows;
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, Subcommand};
use hyper::Method;
use serde::Serialize;
use serde_json::json;

use crate::context::{Context, Stores};
use crate::error::CliError;
use crate::output::{counted, printable};
use crate::service::{ReachError, Request};

#[derive(Debug, Subcommand)]
pub(crate) enum BooksCommand {
    /// Add up the coins again from the stored transactions and their proofs
    ///
    /// With a node, this looks up the blocks of the proofs in the node's main chain, and asks the
    /// node whether each coin still exists. This changes nothing.
    Verify(VerifyArguments),
    /// Show stored rows as they are
    ///
    /// This also works if the server refuses to start because of them, and changes nothing. The server of a wallet in a
    /// file must be stopped. The rows hold private data of customers, and some hold tokens: do not publish them. A row
    /// that cannot be read is shown in hexadecimal digits, with the reason. For example:
    /// bsv-cli books rows invoices --limit 5
    Rows(RowsArguments),
}

#[derive(Debug, Args)]
pub(crate) struct RowsArguments {
    /// The kind of rows
    #[arg(value_name = "KIND", value_parser = PossibleValuesParser::new(Table::ALL.iter().map(|it| {
        PossibleValue::new(it.name()).help(it.meaning())
    })))]
    kind: String,
    /// Begin with this key, in the hexadecimal digits that a row shows
    #[arg(long, value_name = "KEY", value_parser = hex_key, default_value = "")]
    from: Bytes,
    /// How many rows to show at most, from 1 to 10000
    #[arg(long, value_name = "COUNT", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    limit: u16,
}

/// The bytes of a key.
type Bytes = Vec<u8>;

fn hex_key(digits: &str) -> Result<Bytes, hex::FromHexError> {
    hex::decode(digits)
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
        let from_height = match self {
            Self::Verify(VerifyArguments { from_height }) => from_height,
            Self::Rows(arguments) => return arguments.run(context),
        };
        let query = from_height.map(|height| format!("?fromHeight={height}")).unwrap_or_default();
        let mut service = context.service(Stores::Wallet).await?;
        let waiting = context.wait("adding up the coins");
        let path = format!("/control/books{query}");
        let asked = Request { method: Method::GET, path, body: None };
        let searched = |height, last| waiting.show("searching the chain", height, last);
        let answer = service.work(&asked, searched).await?;
        drop(waiting);
        let check: BooksCheck = answer.read()?;
        context.print(&answer.body, || describe(&check))?;
        match check.differences.len() as u64 + check.further_differences {
            0 => Ok(()),
            count => Err(CliError::CheckFailed(counted(
                count,
                "difference in the books",
                "differences in the books",
            ))),
        }
    }
}

impl RowsArguments {
    fn run(self, context: &Context) -> Result<(), CliError> {
        let table = Table::ALL.iter().find(|table| table.name() == self.kind);
        let table = *table.ok_or(CliError::WrongUsage("there is no such kind of rows"))?;
        let range = KeyRange { from: self.from, ..KeyRange::all(table) };
        let config = context.config()?;
        let wallet = config.wallet.as_ref().ok_or(CliError::Disabled("wallet"))?;
        let rows =
            stored_rows(&config, wallet, range, self.limit.into()).map_err(ReachError::from)?;
        let rows: Vec<_> = rows.iter().map(|(key, row)| ShownRow::new(table, key, row)).collect();
        context.print_exactly(json!(rows), || match rows.as_slice() {
            [] => "There is no such row\n".to_owned(),
            rows => rows.iter().map(ShownRow::line).collect(),
        })
    }
}

/// A row as it is shown.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ShownRow {
    /// In hexadecimal digits.
    key: String,
    /// The key as a text, if it can be read.
    key_text: Option<String>,
    /// A text, or hexadecimal digits if the row cannot be read.
    row: String,
    /// Why it cannot be read.
    error: Option<String>,
}

impl ShownRow {
    fn new(table: Table, key: &[u8], row: &[u8]) -> Self {
        let digits = hex::encode(key);
        match table.show(key, row) {
            Ok((key_text, row)) => Self { key: digits, key_text: Some(key_text), row, error: None },
            Err(error) => Self {
                key: digits,
                key_text: None,
                row: hex::encode(row),
                error: Some(error.to_string()),
            },
        }
    }

    fn line(&self) -> String {
        let Self { key, key_text, row, error } = self;
        let key_text = key_text.as_ref().map(|text| format!(" {text}")).unwrap_or_default();
        let error = error.as_ref().map(|error| format!(" ({error})")).unwrap_or_default();
        printable(&format!("{key}{key_text}: {row}{error}")) + "\n"
    }
}

fn describe(check: &BooksCheck) -> String {
    let BooksCheck { transactions, bytes_dropped, coins, proofs, blocks, balance, .. } = check;
    let mut text = String::new();
    for difference in &check.differences {
        text.push_str(&format!("{}\n", printable(difference)));
    }
    if check.further_differences > 0 {
        text.push_str(&format!("and {} more\n", check.further_differences));
    }
    text.push_str(&format!(
        "{} and {} of {} satoshis; the recorded balance is {balance}\n",
        counted(*transactions, "transaction", "transactions"),
        counted(*coins, "coin", "coins"),
        check.recomputed
    ));
    if *bytes_dropped > 0 {
        text.push_str(&format!(
            "bytes dropped: {bytes_dropped} of the transactions are kept without their bytes\n"
        ));
    }
    let (proofs, of) = (counted(*proofs, "proof", "proofs"), counted(*blocks, "block", "blocks"));
    text += &match check.blocks_in_chain {
        Some(count) => format!("{proofs} of {of}, {count} of them in the main chain\n"),
        None => format!("{proofs} of {of}, for which no node was asked\n"),
    };
    if check.blocks_in_chain.is_some() && !check.are_coins_compared {
        text.push_str("the coins were not compared with the network: that needs a node\n");
    }
    text + &match check.searched_from {
        Some(height) => format!(
            "the chain from height {height} on and the mempool were searched for what the books lack\n"
        ),
        None => {
            "the chain was not searched for what the books lack (--from-height HEIGHT does that)\n"
                .to_owned()
        }
    }
}
