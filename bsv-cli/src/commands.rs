//! The commands. Each noun has a file.

pub(crate) mod audit;
pub(crate) mod backup;
pub(crate) mod books;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod event;
pub(crate) mod export;
pub(crate) mod headers;
pub(crate) mod init;
pub(crate) mod invoice;
pub(crate) mod keystore;
pub(crate) mod miner;
pub(crate) mod older_generator;
pub(crate) mod outgoing;
pub(crate) mod pay;
pub(crate) mod restore;
pub(crate) mod send;
pub(crate) mod status;
pub(crate) mod store;
pub(crate) mod token;
pub(crate) mod user;
pub(crate) mod wallet;
pub(crate) mod webhook;

use clap::Subcommand;

use crate::context::Context;
use crate::error::CliError;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Create a wallet and a store of identities in an empty data directory
    ///
    /// The passphrase of keystorePassphraseFile or BSV_KEYSTORE_PASSPHRASE seals the keys.
    Init(init::InitArguments),
    /// Show an overview of the service; problems come first
    ///
    /// The exit code is 0 if all is well, and 1 if something needs attention.
    Status(status::StatusArguments),
    /// Create, show, list, delete and refund invoices
    #[command(subcommand)]
    Invoice(invoice::InvoiceCommand),
    /// Create and show users of the wallet
    #[command(subcommand)]
    User(user::UserCommand),
    /// Pay to a payment URL from the wallet, and print the transaction
    ///
    /// This asks before it pays. For example: bsv-cli pay URL --max 5000
    Pay(pay::PayArguments),
    /// Send money to an address, and print the transactions
    ///
    /// This asks before it sends. For example: bsv-cli send ADDRESS 5000, or bsv-cli
    /// send ADDRESS all --dry-run
    Send(send::SendArguments),
    /// List, show and cancel payments by the wallet
    #[command(subcommand)]
    Outgoing(outgoing::OutgoingCommand),
    /// List past and future events of the wallet
    #[command(subcommand)]
    Event(event::EventCommand),
    /// Make and change webhooks, which receive events, and show their deliveries
    #[command(subcommand)]
    Webhook(webhook::WebhookCommand),
    /// Write the receipts, payments and fees of a period as CSV or JSON, for bookkeeping
    ///
    /// The sum of the amounts (satoshis), less the fees, is the change of the balance. The rows
    /// contain the times of blocks, for which this asks the node. For example: bsv-cli export
    /// --from 2026-11 --to 2026-11 --time-zone Europe/Vienna > november.csv
    Export(export::ExportArguments),
    /// Show the balance and the words of the wallet, and maintain the wallet
    #[command(subcommand)]
    Wallet(wallet::WalletCommand),
    /// Set up, change, revoke and verify miner identities
    #[command(subcommand)]
    Miner(miner::MinerCommand),
    /// Change the passphrase of the keys, or check that all keys can be read
    #[command(subcommand)]
    Keystore(keystore::KeystoreCommand),
    /// Make, list and revoke the tokens that callers need if auth.requireToken is set
    #[command(subcommand)]
    Token(token::TokenCommand),
    /// Write all keys, identities and the wallet to a sealed file
    ///
    /// The backup has its own passphrase. The keys in it keep their passphrase. The file is read
    /// again before it gets its name, and never replaces another file. For example:
    /// bsv-cli backup - --passphrase-file /etc/bsv/backup | ssh elsewhere 'cat > bsv-backup'
    Backup(backup::BackupArguments),
    /// Restore a backup, or a wallet from its 24 words, into an empty data directory
    ///
    /// The words are read from standard input. The words do not restore invoices and users. To
    /// restore coins, configure a node: this asks the node for all blocks from --from-height on.
    Restore(restore::RestoreArguments),
    /// List what happened to keys and to access, or check that the log was not changed
    #[command(subcommand)]
    Audit(audit::AuditCommand),
    /// Check that the balance agrees with the transactions
    #[command(subcommand)]
    Books(books::BooksCommand),
    /// Move the wallet between its file and a database, or accept what a database has lost
    #[command(subcommand)]
    Store(store::StoreCommand),
    /// Show, verify and fetch the block headers that are validated here
    #[command(subcommand)]
    Headers(headers::HeadersCommand),
    /// Show the effective settings, or the contact information of a miner (minerContact)
    ///
    /// With --name, this is short for miner contact.
    Config(config::ConfigArguments),
}

impl Command {
    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        match self {
            Self::Init(arguments) => arguments.run(context).await,
            Self::Status(arguments) => arguments.run(context).await,
            Self::Invoice(command) => command.run(context).await,
            Self::User(command) => command.run(context).await,
            Self::Pay(arguments) => arguments.run(context).await,
            Self::Send(arguments) => arguments.run(context).await,
            Self::Outgoing(command) => command.run(context).await,
            Self::Event(command) => command.run(context).await,
            Self::Webhook(command) => command.run(context).await,
            Self::Export(arguments) => arguments.run(context).await,
            Self::Wallet(command) => command.run(context).await,
            Self::Miner(command) => command.run(context).await,
            Self::Keystore(command) => command.run(context).await,
            Self::Token(command) => command.run(context).await,
            Self::Backup(arguments) => arguments.run(context).await,
            Self::Restore(arguments) => arguments.run(context).await,
            Self::Audit(command) => command.run(context).await,
            Self::Books(command) => command.run(context).await,
            Self::Store(command) => command.run(context).await,
            Self::Headers(command) => command.run(context).await,
            Self::Config(arguments) => arguments.run(context).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{Column, Table};

    const HASH: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
    const KEY: &str = "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";
    const MOST: &str = "2100000000000000";
    const ALIAS: &str = "an-alias-of-64-characters-an-alias-of-64-characters-an-alias-of-";

    /// The table with one row of the longest cells, and the cells that stay whole.
    fn check<const N: usize>(columns: &'static [Column], row: [&str; N], whole: &[&str]) {
        let words = "Words of any length, such as a description of what is sold. ".repeat(9);
        let row = row.map(|cell| if cell == "words" { words.as_str() } else { cell });
        for width in [80, 120] {
            let mut table = Table::new(columns, false, Some(width));
            table.add(row.each_ref().map(|cell| cell as &dyn std::fmt::Display));
            let shown = table.end();
            let lines: Vec<_> = shown.lines().collect();
            let left_out = columns.iter().filter(|column| !lines[0].contains(column.name()));
            let said = lines.get(2).map_or("", |line| line.trim_start_matches("Left out: "));
            let named = said.trim_end_matches(" (see --verbose)");
            let left_out: Vec<_> = left_out.map(Column::name).collect();
            assert_eq!(left_out.join(", "), named, "{shown}");
            assert!(lines.iter().all(|line| line.chars().count() <= width), "{shown}");
            assert!(whole.iter().all(|cell| lines[1].contains(cell)), "{shown}");
            assert_eq!(lines[0].matches('\u{2026}').count(), 0, "{shown}");
        }
        let mut table = Table::new(columns, false, None);
        table.add(row.each_ref().map(|cell| cell as &dyn std::fmt::Display));
        let shown = table.take();
        assert!(row.iter().all(|cell| shown.contains(cell.trim_end())), "{shown}");
    }

    #[test]
    fn tables_with_the_longest_ids_fit_80_columns() {
        let (id, time) = ("4294967295", "28 Nov 11:09");
        check(
            invoice::COLUMNS,
            ["CEl4aRNK3xMZ", "pending", MOST, time, "words"],
            &["CEl4aRNK3xMZ", MOST, time],
        );
        check(
            invoice::PAYMENT_COLUMNS,
            [HASH, id, MOST, "displaced", "100000000"],
            &[id, MOST, "displaced"],
        );
        let address = "mrCDrCybB6J1vRfbwM5hemdJz73FwDBC8r";
        let cells = [
            id,
            "cancelling",
            MOST,
            "100000000",
            "100000000",
            HASH,
            address,
            "refund of CEl4aRNK3xMZ",
        ];
        check(outgoing::COLUMNS, cells, &[id, MOST, address]);
        let expiry = "expired 28 Nov 11:09";
        check(token::COLUMNS, ["5d1f0c9a", "words", "words", time, expiry], &["5d1f0c9a", expiry]);
        let url = "https://shop.example/a/very/long/path/of/an/endpoint/that/takes/events/of/17";
        check(
            webhook::COLUMNS,
            [id, "disabled", id, "words", url, "words"],
            &[id, "disabled", "s/of/17"],
        );
        let cells = [id, "delivered", "payment.settlement_changed", "17", "words", time];
        check(webhook::DELIVERY_COLUMNS, cells, &[id, "payment.settlement_changed"]);
        let cells = ["4294967295-7", HASH, id, MOST, "displaced", "100000000", id];
        check(wallet::RECEIPT_COLUMNS, cells, &["4294967295-7", MOST]);
        check(
            audit::COLUMNS,
            ["minerid", id, time, "revocation-key-rotated", ALIAS],
            &[id, time, "revocation-key-rotated"],
        );
        let announced = "rotation, new revocation key, revocation";
        let cells = [ALIAS, "1.0", KEY, "100", KEY, announced];
        check(miner::COLUMNS, cells, &[ALIAS]);
        let cells = ["100", "at least 2016/2016", "words", KEY, "CURRENT", "100000000"];
        check(miner::scan::COLUMNS, cells, &["at least 2016/2016", "CURRENT"]);
    }
}
