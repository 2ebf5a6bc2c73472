use std::path::PathBuf;

use bsv_invoicing::{
    DEFAULT_LOOKAHEAD, InvoiceDraft, InvoiceId, InvoiceState, MAX_SATOSHIS, Timestamp, UserDraft,
    Walk,
};
use bsv_minerid::Alias;
use bsv_server::{ConfigSources, Grant};
use bsv_tx::{OutPoint, PublicKey};
use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};

use crate::invoices::InvoiceList;
use crate::keeping::KeepingTask;
use crate::operation::Operation;
use crate::scan::ScanArguments;
use crate::verification::{Source, VerifyArguments};

/// Sets up and operates the Bitcoin SV wallet and miner identity service.
///
/// Works whether or not bsv-server runs on the data directory.
#[derive(Debug, Parser)]
#[command(
    version,
    arg_required_else_help = true,
    after_help = "Exit codes: 0 done, 1 refused, failed or not valid, 2 wrong usage.\n\
                  Without a command, --height N --name ALIAS is short for opreturn."
)]
pub(crate) struct Arguments {
    /// A TOML file of settings; those in the environment variable BSV_CONFIG, a JSON object, count
    /// over it
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The directory for all data [default: $XDG_DATA_HOME/bsv-server or ~/.local/share/bsv-server]
    #[arg(long, global = true, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[arg(long, short = 't', hide = true, value_name = "N", value_parser = height(), requires = "name")]
    height: Option<u32>,
    #[arg(long, short, hide = true, value_name = "ALIAS", requires = "height")]
    name: Option<Alias>,
    #[command(subcommand)]
    command: Option<Command>,
}

pub(crate) fn height() -> impl TypedValueParser<Value = u32> {
    clap::value_parser!(u32).range(1..=i64::from(i32::MAX))
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Begin an identity: make its first key
    #[command(name = "generateminerid")]
    Generate {
        #[command(flatten)]
        name: Name,
        /// The generation of the protocol: 0.2, with a VCTx, or 1.0, with a revocation key
        #[arg(long, value_name = "VERSION", default_value = "0.2", value_parser = ["0.2", "1.0"])]
        protocol: String,
        #[command(flatten)]
        revocation_keystore: RevocationKeystoreArgument,
    },
    /// Set up the validity check transaction (VCTx) of an identity
    ///
    /// On regtest the node's wallet funds it, and blocks are mined to confirm it. On other networks
    /// this prints the address to fund and the least amount; run it again once it is funded.
    #[command(name = "generatevctx")]
    GenerateVctx {
        #[command(flatten)]
        name: Name,
        /// The output that funds it, where the node's wallet does not find it by itself
        #[arg(long, value_name = "TXID:N")]
        outpoint: Option<OutPoint>,
    },
    /// Give an identity a new key
    #[command(name = "rotateminerid")]
    Rotate {
        #[command(flatten)]
        name: Name,
        /// Rotate even if no block was seen to show the last new key, which is then passed over (1.0)
        #[arg(long)]
        force: bool,
    },
    /// Give an identity a new revocation key (1.0)
    #[command(name = "rotaterevocationkey")]
    RollRevocationKey {
        #[command(flatten)]
        name: Name,
        #[command(flatten)]
        revocation_keystore: RevocationKeystoreArgument,
    },
    /// Revoke the current key and those before it back to a compromised one, and go on with a new key
    /// (1.0)
    ///
    /// Documents announce it, and the node is told, which tells others. Where the node cannot be told
    /// this fails; the same command again tells it.
    #[command(name = "revokemineridpartially")]
    RevokePartially {
        #[command(flatten)]
        name: Name,
        /// The oldest key that is compromised
        #[arg(long = "minerid", short, value_name = "KEY")]
        miner_id: PublicKey,
        #[command(flatten)]
        revocation_keystore: RevocationKeystoreArgument,
    },
    /// Revoke all keys of an identity, which ends it (1.0)
    ///
    /// Documents announce it until a block was seen to show it; from then on there are none. The node
    /// is told, which tells others. Where it cannot be told this fails; the same command again tells
    /// it.
    #[command(name = "revokemineridcompletely")]
    RevokeCompletely {
        #[command(flatten)]
        name: Name,
        #[command(flatten)]
        revocation_keystore: RevocationKeystoreArgument,
    },
    /// Revoke an identity by spending its VCTx, which ends it (0.2)
    #[command(name = "revokeminerid")]
    Revoke(Name),
    /// Take all that an identity announces for seen in a block, where no node tells (1.0)
    #[command(name = "confirmminerid")]
    Confirm(Name),
    /// Turn an identity of protocol 0.2 into one of 1.0, with a revocation key
    #[command(name = "upgrademinerid")]
    Upgrade {
        #[command(flatten)]
        name: Name,
        /// The first key of the identity [default: the key numbered 1]
        #[arg(long = "firstminerid", short, value_name = "KEY")]
        first: Option<PublicKey>,
        #[command(flatten)]
        revocation_keystore: RevocationKeystoreArgument,
    },
    /// Set the extensions of documents (1.0)
    Extensions {
        #[command(flatten)]
        name: Name,
        /// A JSON object
        #[arg(value_parser = file_text)]
        file: String,
    },
    /// Set the data that documents refer to; an empty list of refs takes it away (1.0)
    #[command(name = "datarefs")]
    DataRefs {
        #[command(flatten)]
        name: Name,
        /// JSON: {"dataRefs":{"refs":[{"brfcIds":[…],"data":{…},"vout":N}]}}
        #[arg(value_parser = file_text)]
        file: String,
    },
    /// Print the current key of an identity
    #[command(name = "getcurrentminerid")]
    GetCurrent(Name),
    /// Print the output script that carries an identity in a block
    #[command(name = "opreturn")]
    OpReturn {
        #[command(flatten)]
        name: Name,
        /// The height of the block
        #[arg(long, short = 't', value_name = "N", value_parser = height())]
        height: u32,
    },
    /// Set or show what an identity tells about its miner (minerContact), or check the settings
    Config {
        #[command(subcommand)]
        check: Option<ConfigCommand>,
        #[command(flatten)]
        contact: ContactArguments,
    },
    /// Let an identity sign any hash that it is asked to sign (sign, pksign), or documents only
    #[command(name = "blindsigning")]
    BlindSigning {
        #[command(flatten)]
        name: Name,
        /// Whether it does
        #[arg(value_enum)]
        switch: Switch,
    },
    /// Take over all identities of an older generator's home directory
    #[command(name = "importminerid")]
    Import {
        /// The directory that holds .minerid-client, .keystore and perhaps .revocationkeystore
        #[arg(long, value_name = "HOME")]
        from: PathBuf,
        #[command(flatten)]
        revocation_keystore: RevocationKeystoreArgument,
    },
    /// List all identities
    #[command(name = "listminerids")]
    List,
    /// Verify the miner identity that a block carries, whoever mined it
    ///
    /// Says line by line what holds, what does not, and what could not be checked, and whether nodes
    /// take the identity. Exit code 0 if it is valid, 1 if it is not, cannot be told or is not there.
    #[command(name = "verifyminerid")]
    Verify(Box<VerifyArguments>),
    /// Walk the node's chain and print who mined what, following rotations and revocations
    ///
    /// Interrupted, it goes on where it was when it is run again.
    #[command(name = "scanminerids")]
    Scan(ScanArguments),
    /// Create, show, list and delete invoices
    #[command(subcommand)]
    Invoice(InvoiceCommand),
    /// Create and show users of the wallet
    #[command(subcommand)]
    User(UserCommand),
    /// Show the balance of the wallet, in satoshis
    Balance,
    /// Pay to a payment URL from the wallet, and print the transaction
    Pay {
        /// The payment URL
        url: String,
    },
    /// List and cancel payments by the wallet
    #[command(subcommand)]
    Payment(PaymentCommand),
    /// Pay to a payment URL from the wallet of a regtest node, at most 100,000 satoshis
    Faucet {
        /// The payment URL
        #[arg(value_name = "PAYMENT_URL")]
        url: String,
    },
    /// Look after the wallet itself
    #[command(subcommand)]
    Wallet(WalletCommand),
    /// Change the passphrase of the keys, or prove that all of them can be read
    #[command(subcommand)]
    Keystore(KeystoreCommand),
    /// Prove that the balance is what the transactions make it
    #[command(subcommand)]
    Books(BooksCommand),
    /// List what happened to keys and to who may use them, or prove that nothing of that was changed
    #[command(subcommand)]
    Audit(AuditCommand),
    /// Write all keys, identities and the wallet to a sealed file
    ///
    /// The file has a passphrase of its own: from --passphrase-file, the environment variable
    /// BSV_BACKUP_PASSPHRASE, or typed in. The keys in it keep the passphrase that they have.
    Backup {
        /// The file, which must not exist
        file: PathBuf,
        /// A file that holds the passphrase of the backup
        #[arg(long, value_name = "FILE")]
        passphrase_file: Option<PathBuf>,
    },
    /// Put back a backup, or a wallet from its 24 words, where there is nothing yet
    ///
    /// The words are read from standard input. Invoices and users are not found with them, coins are:
    /// with a node, which is asked for all blocks from --from-height on.
    Restore {
        /// The backup
        #[arg(required_unless_present = "words", conflicts_with = "words")]
        file: Option<PathBuf>,
        /// A file that holds the passphrase of the backup; else the environment variable
        /// BSV_BACKUP_PASSPHRASE counts, or it is typed in
        #[arg(long, value_name = "FILE", conflicts_with = "words")]
        passphrase_file: Option<PathBuf>,
        /// Restore the wallet from its 24 words
        #[arg(long)]
        words: bool,
        /// The height of a block from before the wallet received anything
        #[arg(long, value_name = "HEIGHT", default_value_t = 0, requires = "words",
              value_parser = clap::value_parser!(u32).range(0..=i64::from(i32::MAX)))]
        from_height: u32,
        /// How many invoices in a row may have stayed unpaid
        #[arg(long, value_name = "N", default_value_t = DEFAULT_LOOKAHEAD, requires = "words",
              value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
        lookahead: u32,
    },
    /// Make, list and revoke the tokens that callers show where auth.requireToken is set
    #[command(subcommand)]
    Token(TokenCommand),
}

#[derive(Debug, Subcommand)]
enum PaymentCommand {
    /// List the last 100 payments by the wallet, the newest first
    List {
        /// Those before the payment of this id
        #[arg(long, value_name = "ID")]
        before: Option<u64>,
    },
    /// Cancel a payment whose payee does not answer, by spending one of its coins otherwise
    Cancel {
        /// The id of the payment
        id: u64,
    },
}

#[derive(Debug, Subcommand)]
enum InvoiceCommand {
    /// Create an invoice, and print it with the URL to pay to
    Create {
        /// The amount
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MAX_SATOSHIS))]
        satoshis: u64,
        /// What is paid for
        #[arg(long, value_name = "TEXT")]
        description: Option<String>,
        /// A reference of your own
        #[arg(long, value_name = "TEXT")]
        reference: Option<String>,
        /// Until when it can be paid, such as 2026-11-21T08:48:56Z [default: after
        /// wallet.paymentExpiryHours]
        #[arg(long, value_name = "TIME")]
        expires_at: Option<Timestamp>,
    },
    /// Show an invoice and the URL to pay to
    Get(InvoiceIdArgument),
    /// List invoices in the order of their creation
    List {
        /// Only those in this state: pending, paid or expired
        #[arg(long, value_name = "STATE")]
        state: Option<InvoiceState>,
        /// How many at most [default: all]
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
        limit: Option<u64>,
        /// Begin with the newest
        #[arg(long)]
        newest_first: bool,
    },
    /// Delete an invoice that is not paid
    Delete(InvoiceIdArgument),
}

#[derive(Debug, Args)]
struct InvoiceIdArgument {
    /// The id of the invoice
    id: InvoiceId,
}

#[derive(Debug, Subcommand)]
enum UserCommand {
    /// Create a user, and print it with its public key
    Create {
        /// The name
        #[arg(long)]
        name: String,
        /// The address for electronic mail
        #[arg(long, default_value = "")]
        email: String,
        /// The URL of an image
        #[arg(long, value_name = "URL", default_value = "")]
        avatar: String,
        /// The postal address
        #[arg(long, default_value = "")]
        address: String,
        /// The telephone number
        #[arg(long, default_value = "")]
        phone_number: String,
    },
    /// Show a user
    Get {
        /// The id of the user
        id: u64,
    },
}

#[derive(Debug, Subcommand)]
enum WalletCommand {
    /// Print the 24 words that the wallet's keys can be restored from
    ///
    /// Whoever sees them can take the money. Asks before it prints them.
    BackupWords {
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Have the running server believe the system's clock as it is
    ///
    /// A clock that jumped by two hours or more, or is that far behind the newest block, makes nothing
    /// expire until it is right again or accepted.
    AcceptClock,
}

#[derive(Debug, Subcommand)]
enum KeystoreCommand {
    /// Seal the keys with another passphrase, or for the first time
    ///
    /// The new passphrase comes from --new-passphrase-file, the environment variable
    /// BSV_NEW_KEYSTORE_PASSPHRASE, or is typed in. Set it as keystorePassphraseFile or
    /// BSV_KEYSTORE_PASSPHRASE before the next start.
    Passphrase {
        /// A file that holds the new passphrase
        #[arg(long, value_name = "FILE")]
        new_passphrase_file: Option<PathBuf>,
        /// A keystore of revocation keys elsewhere that gets the passphrase too, as the one in the
        /// keystore's directory does anyway
        #[arg(long, value_name = "DIR")]
        revocation_keystore: Option<PathBuf>,
    },
    /// Prove that every key can be read
    Verify,
}

#[derive(Debug, Subcommand)]
enum BooksCommand {
    /// Add up the coins anew from the stored transactions and their proofs
    ///
    /// With a node, the blocks of the proofs are looked up in its main chain, and it is asked whether each
    /// coin is still there. Changes nothing.
    Verify {
        /// Read the blocks from this height on, and the mempool, for what pays the wallet or spends its
        /// coins, and is missing from the books
        #[arg(long, value_name = "HEIGHT")]
        from_height: Option<u32>,
    },
}

#[derive(Debug, Subcommand)]
enum AuditCommand {
    /// List what happened to keys and to who may use them
    List,
    /// Prove that each entry carries the hash of the one before
    Verify,
}

#[derive(Debug, Subcommand)]
enum TokenCommand {
    /// Make a token and print it, which is the only time that it is shown
    Create {
        /// What it allows: wallet:read, wallet:write, wallet:pay, minerid:read, minerid:sign or
        /// minerid:rotate; the last three also for one alias, such as minerid:sign:ALIAS. May be given
        /// several times
        #[arg(long = "scope", value_name = "SCOPE", required = true)]
        scopes: Vec<Grant>,
        /// What to call it
        #[arg(long, value_name = "TEXT", default_value = "")]
        label: String,
        /// Until when it is accepted, such as 2026-11-21T08:48:56Z [default: until it is revoked]
        #[arg(long, value_name = "TIME")]
        expires_at: Option<Timestamp>,
    },
    /// List the tokens, without what they are
    List,
    /// Accept a token no longer
    Revoke {
        /// The id of the token: the 8 digits after bsv_
        #[arg(value_parser = token_id)]
        id: String,
    },
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Check the settings and print the effective values, without secrets
    Check,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Switch {
    On,
    Off,
}

#[derive(Debug, Args)]
struct Name {
    /// The alias of the identity
    #[arg(long, short, value_name = "ALIAS")]
    name: Alias,
}

#[derive(Debug, Args)]
struct RevocationKeystoreArgument {
    /// The keystore of revocation keys, which may lie on a disk that is connected for this command
    /// alone [default: revocation in the keystore]
    #[arg(long = "revocation-keystore", value_name = "DIR")]
    dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct ContactArguments {
    /// The alias of the identity
    #[arg(long, short, value_name = "ALIAS")]
    name: Option<Alias>,
    /// What to set, such as email=me@example.com; nothing shows what is set
    #[arg(value_name = "KEY=VALUE", value_parser = key_value)]
    pairs: Vec<(String, String)>,
}

/// What the command line asks for.
pub(crate) enum Task {
    CheckConfig,
    ListInvoices(InvoiceList),
    Keep(KeepingTask),
    Operate(Operation),
    Verify(Source),
    Scan(ScanArguments),
}

impl Arguments {
    pub(crate) fn sources(&self) -> ConfigSources {
        ConfigSources { file: self.config.clone(), data_dir: self.data_dir.clone() }
    }

    /// Ends the process with exit code 2 where arguments do not go together.
    pub(crate) fn task(&self) -> Task {
        match (&self.command, self.height, &self.name) {
            (None, Some(height), Some(alias)) => {
                Task::Operate(Operation::OpReturn { alias: alias.clone(), height })
            }
            (Some(command), None, None) => command.task(),
            (None, None, None) => usage_error("a command is missing"),
            _ => usage_error("--height and --name stand after the command that they belong to"),
        }
    }
}

impl Command {
    fn task(&self) -> Task {
        Task::Operate(match self {
            Self::Generate { name: Name { name }, protocol, revocation_keystore } => {
                Operation::Generate {
                    alias: name.clone(),
                    protocol: protocol.clone(),
                    revocation_keystore: revocation_keystore.dir.clone(),
                }
            }
            Self::GenerateVctx { name: Name { name }, outpoint } => {
                Operation::SetUpVctx { alias: name.clone(), funding: *outpoint }
            }
            Self::Rotate { name: Name { name }, force } => {
                Operation::Rotate { alias: name.clone(), force: *force }
            }
            Self::RollRevocationKey { name: Name { name }, revocation_keystore } => {
                Operation::RollRevocationKey {
                    alias: name.clone(),
                    revocation_keystore: revocation_keystore.dir.clone(),
                }
            }
            Self::RevokePartially { name: Name { name }, miner_id, revocation_keystore } => {
                Operation::RevokePartially {
                    alias: name.clone(),
                    miner_id: *miner_id,
                    revocation_keystore: revocation_keystore.dir.clone(),
                }
            }
            Self::RevokeCompletely { name: Name { name }, revocation_keystore } => {
                Operation::RevokeCompletely {
                    alias: name.clone(),
                    revocation_keystore: revocation_keystore.dir.clone(),
                }
            }
            Self::Revoke(Name { name }) => Operation::Revoke { alias: name.clone() },
            Self::Confirm(Name { name }) => Operation::Confirm { alias: name.clone() },
            Self::Upgrade { name: Name { name }, first, revocation_keystore } => {
                Operation::Upgrade {
                    alias: name.clone(),
                    first: *first,
                    revocation_keystore: revocation_keystore.dir.clone(),
                }
            }
            Self::Extensions { name: Name { name }, file } => {
                Operation::SetExtensions { alias: name.clone(), json: file.clone() }
            }
            Self::DataRefs { name: Name { name }, file } => {
                Operation::SetData { alias: name.clone(), json: file.clone() }
            }
            Self::GetCurrent(Name { name }) => Operation::GetCurrent { alias: name.clone() },
            Self::OpReturn { name: Name { name }, height } => {
                Operation::OpReturn { alias: name.clone(), height: *height }
            }
            Self::Config { check: Some(ConfigCommand::Check), .. } => return Task::CheckConfig,
            Self::Config { check: None, contact: ContactArguments { name, pairs } } => {
                let Some(alias) = name.clone() else { usage_error("config needs --name ALIAS") };
                Operation::SetContact { alias, pairs: pairs.clone() }
            }
            Self::BlindSigning { name: Name { name }, switch } => {
                Operation::SetBlindSigning { alias: name.clone(), is_on: *switch == Switch::On }
            }
            Self::Import { from, revocation_keystore } => Operation::Import {
                from: from.clone(),
                revocation_keystore: revocation_keystore.dir.clone(),
            },
            Self::List => Operation::List,
            Self::Verify(arguments) => return Task::Verify(arguments.source()),
            Self::Scan(arguments) => return Task::Scan(arguments.clone()),
            Self::Invoice(command) => return command.task(),
            Self::User(command) => command.operation(),
            Self::Balance => Operation::Balance,
            Self::Pay { url } => Operation::Pay { url: url.clone() },
            Self::Payment(PaymentCommand::List { before }) => {
                Operation::ListPayments { before: *before }
            }
            Self::Payment(PaymentCommand::Cancel { id }) => Operation::CancelPayment { id: *id },
            Self::Faucet { url } => Operation::Faucet { url: url.clone() },
            Self::Wallet(WalletCommand::BackupWords { yes }) => {
                Operation::BackupWords { is_confirmed: *yes }
            }
            Self::Wallet(WalletCommand::AcceptClock) => Operation::AcceptClock,
            Self::Keystore(KeystoreCommand::Passphrase {
                new_passphrase_file,
                revocation_keystore,
            }) => {
                return Task::Keep(KeepingTask::ChangePassphrase {
                    file: new_passphrase_file.clone(),
                    revocation_keystore: revocation_keystore.clone(),
                });
            }
            Self::Keystore(KeystoreCommand::Verify) => {
                return Task::Keep(KeepingTask::VerifyKeystore);
            }
            Self::Books(BooksCommand::Verify { from_height }) => {
                return Task::Keep(KeepingTask::VerifyBooks { from_height: *from_height });
            }
            Self::Audit(AuditCommand::List) => return Task::Keep(KeepingTask::ListAudit),
            Self::Audit(AuditCommand::Verify) => return Task::Keep(KeepingTask::VerifyAudit),
            Self::Backup { file, passphrase_file } => {
                return Task::Keep(KeepingTask::Backup {
                    to: file.clone(),
                    passphrase_file: passphrase_file.clone(),
                });
            }
            Self::Restore { file: Some(file), passphrase_file, .. } => {
                return Task::Keep(KeepingTask::Restore {
                    from: file.clone(),
                    passphrase_file: passphrase_file.clone(),
                });
            }
            Self::Restore { file: None, from_height, lookahead, .. } => {
                return Task::Keep(KeepingTask::RestoreWords(Walk {
                    from_height: *from_height,
                    lookahead: *lookahead,
                }));
            }
            Self::Token(TokenCommand::Create { scopes, label, expires_at }) => {
                Operation::CreateToken {
                    label: label.clone(),
                    grants: scopes.clone(),
                    expires_at: *expires_at,
                }
            }
            Self::Token(TokenCommand::List) => Operation::ListTokens,
            Self::Token(TokenCommand::Revoke { id }) => Operation::RevokeToken { id: id.clone() },
        })
    }
}

impl InvoiceCommand {
    fn task(&self) -> Task {
        Task::Operate(match self {
            Self::Create { satoshis, description, reference, expires_at } => {
                Operation::CreateInvoice(InvoiceDraft {
                    satoshis: *satoshis,
                    description: description.clone(),
                    reference: reference.clone(),
                    expires_at: *expires_at,
                })
            }
            Self::Get(InvoiceIdArgument { id }) => Operation::GetInvoice { id: *id },
            Self::Delete(InvoiceIdArgument { id }) => Operation::DeleteInvoice { id: *id },
            Self::List { state, limit, newest_first } => {
                return Task::ListInvoices(InvoiceList {
                    state: *state,
                    limit: *limit,
                    newest_first: *newest_first,
                });
            }
        })
    }
}

impl UserCommand {
    fn operation(&self) -> Operation {
        match self {
            Self::Create { name, email, avatar, address, phone_number } => {
                Operation::CreateUser(UserDraft {
                    name: name.clone(),
                    email: email.clone(),
                    avatar: avatar.clone(),
                    address: address.clone(),
                    phone_number: phone_number.clone(),
                })
            }
            Self::Get { id } => Operation::GetUser { id: *id },
        }
    }
}

/// The id of a token, or a whole token, which holds it.
fn token_id(text: &str) -> Result<String, String> {
    let id = text.strip_prefix("bsv_").and_then(|rest| rest.split('_').next()).unwrap_or(text);
    if id.len() == 8 && id.bytes().all(|c| c.is_ascii_hexdigit()) {
        Ok(id.to_ascii_lowercase())
    } else {
        Err("expected 8 hexadecimal digits".to_owned())
    }
}

fn file_text(path: &str) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| error.to_string())
}

fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("expected KEY=VALUE".to_owned()),
    }
}

fn usage_error(message: &str) -> ! {
    Arguments::command().error(ErrorKind::ArgumentConflict, message).exit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_do_not_contradict_each_other() {
        Arguments::command().debug_assert();
    }
}
