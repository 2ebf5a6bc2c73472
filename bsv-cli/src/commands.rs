//! The commands. Each noun has a file.

pub(crate) mod audit;
pub(crate) mod backup;
pub(crate) mod books;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod event;
pub(crate) mod export;
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
            Self::Config(arguments) => arguments.run(context).await,
        }
    }
}
