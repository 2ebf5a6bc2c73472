//! Restoring backups, and wallets from their 24 words.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use bsv_invoicing::WalletSeed;
use bsv_invoicing::recovery::{DEFAULT_LOOKAHEAD, Walk};
use bsv_server::{WordsRestored, move_restored, restore_backup, restore_words};
use clap::Args;
use serde_json::json;
use zeroize::Zeroizing;

use crate::context::Context;
use crate::error::CliError;
use crate::files::STANDARD;
use crate::output::counted;
use crate::secret::{self, BackupPassphrase};

#[derive(Debug, Args)]
pub(crate) struct RestoreArguments {
    /// The backup, or - for standard input
    #[arg(required_unless_present = "words", conflicts_with = "words")]
    file: Option<PathBuf>,
    #[command(flatten)]
    passphrase: BackupPassphrase,
    /// Restore the wallet from its 24 words
    #[arg(long, conflicts_with = "passphrase_file")]
    words: bool,
    /// The height of a block before the wallet's first receipt
    #[arg(long, value_name = "HEIGHT", default_value_t = 0, requires = "words",
          value_parser = clap::value_parser!(u32).range(0..=i64::from(i32::MAX)))]
    from_height: u32,
    /// How many consecutive invoices may have stayed unpaid
    #[arg(long, value_name = "N", default_value_t = DEFAULT_LOOKAHEAD, requires = "words",
          value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    lookahead: u32,
}

impl RestoreArguments {
    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        match &self.file {
            Some(file) => self.restore_backup(context, file).await,
            None => self.restore_words(context).await,
        }
    }

    async fn restore_backup(&self, context: &Context, file: &Path) -> Result<(), CliError> {
        let is_piped = file == Path::new(STANDARD);
        if is_piped && self.passphrase.is_from_standard_input() {
            let reason = "standard input is the backup: give the passphrase in another way";
            return Err(CliError::Unfitting(reason.to_owned()));
        }
        let effect = "Stop any server that runs on the backed-up data for good: the two would not know of \
                      each other's payments.";
        context.ask(effect, "Restore?", "restored")?;
        let config = context.config()?;
        let passphrase = self.passphrase.read(false)?;
        let waiting = context.wait("restoring");
        let source = if is_piped { Path::new("/dev/stdin") } else { file };
        let restored = restore_backup(&config, source, &passphrase).await?;
        move_restored(&config).await.map_err(CliError::RestoredInFile)?;
        drop(waiting);
        let (created_at, keys) = (&restored.created_at, restored.keys);
        context.print(json!({ "createdAt": created_at, "keys": keys }), || {
            let dir = config.network_dir.display();
            let keys = counted(keys as u64, "key", "keys");
            format!("The backup of {created_at} with {keys} is restored in {dir}\n")
        })?;
        context.advise(
            "The books do not know what was paid or refunded after the backup. Before you pay or refund \
             anything again, look for it in bsv-cli export, which says found for such transactions.\n\
             Webhooks, if there are any, are disabled: see bsv-cli webhook list.",
        )
    }

    async fn restore_words(&self, context: &Context) -> Result<(), CliError> {
        let effect = "Stop any server that runs on a wallet with these words for good: the two would not \
                      know of each other's payments.";
        context.ask(effect, "Restore?", "restored")?;
        let config = context.config()?;
        let words = read_words()?;
        let seed =
            WalletSeed::from_words(&words).map_err(|error| CliError::Secret(error.to_string()))?;
        let walk = Walk { from_height: self.from_height, lookahead: self.lookahead };
        let bar = context.progress_bar(0, "{bar:40} block {pos} of {len}, {eta} left");
        let recovery = restore_words(&config, &seed, walk, |height, last| {
            bar.set_length(u64::from(last));
            bar.set_position(u64::from(height));
        });
        let recovery = recovery.await;
        bar.finish_and_clear();
        show(context, recovery?)
    }
}

fn read_words() -> Result<Zeroizing<String>, CliError> {
    let failed = |error| CliError::Secret(format!("the words cannot be read: {error}"));
    if !io::stdin().is_terminal() {
        return secret::read_text(Path::new(STANDARD)).map_err(failed);
    }
    eprintln!("The 24 words, in one line:");
    let mut words = Zeroizing::new(String::with_capacity(secret::MAX_LEN as usize));
    io::stdin().read_line(&mut words).map_err(failed)?;
    Ok(words)
}

fn show(context: &Context, restored: WordsRestored) -> Result<(), CliError> {
    let described = match &restored {
        WordsRestored::Coins(found) => Some(json!({
            "height": found.height,
            "transactions": found.transactions,
            "coins": found.coins,
            "balance": found.balance,
        })),
        _ => None,
    };
    context.print(json!({ "found": described }), || match restored {
        WordsRestored::Coins(found) => format!(
            "The wallet is restored: {} coins of {} satoshis in {} transactions, up to block {}\n",
            found.coins, found.balance, found.transactions, found.height
        ),
        WordsRestored::KeysOfDatabase => {
            "The keys of the wallet in the database are restored.\n".to_owned()
        }
        _ => "The keys of the wallet are restored. The search for its coins was skipped, because \
             no node is configured. To find them, restore the words with a node in an empty \
             directory.\n"
            .to_owned(),
    })
}
