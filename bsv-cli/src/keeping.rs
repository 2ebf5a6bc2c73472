//! Keeping keys and money: passphrases, checks, the audit log, backups and what is made of them.

use std::fs;
use std::io::{self, BufWriter, IsTerminal, Read, Seek, Write};
use std::path::{Path, PathBuf};

use bsv_invoicing::{Walk, WalletSeed};
use bsv_server::{Config, Create, OpenError, restore_backup, restore_words};
use bsv_store::{ArchiveReader, Keystore, NewFile};
use hyper::Method;
use indicatif::{ProgressBar, ProgressStyle};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};
use zeroize::Zeroizing;

use crate::operation::absolute;
use crate::output::{self, printable};
use crate::reach::{ReachError, Request, Service};
use crate::{CliError, ask};

/// What is to be done to keep keys and money.
#[derive(Debug)]
pub(crate) enum KeepingTask {
    ChangePassphrase { file: Option<PathBuf>, revocation_keystore: Option<PathBuf> },
    VerifyKeystore,
    VerifyBooks { from_height: Option<u32> },
    ListAudit,
    VerifyAudit,
    Backup { to: PathBuf, passphrase_file: Option<PathBuf> },
    Restore { from: PathBuf, passphrase_file: Option<PathBuf> },
    RestoreWords(Walk),
}

impl KeepingTask {
    pub(crate) fn run(self, config: Config, is_json: bool) -> Result<(), CliError> {
        tokio::runtime::Runtime::new()?.block_on(async {
            match self {
                Self::ChangePassphrase { file, revocation_keystore: keys } => {
                    change_passphrase(config, file.as_deref(), keys.as_deref(), is_json).await
                }
                Self::VerifyKeystore => verify_keystore(config, is_json).await,
                Self::VerifyBooks { from_height } => {
                    verify_books(config, from_height, is_json).await
                }
                Self::ListAudit => list_audit(config, is_json).await,
                Self::VerifyAudit => verify_audit(config, is_json).await,
                Self::Backup { to, passphrase_file } => {
                    back_up(config, &to, passphrase_file.as_deref(), is_json).await
                }
                Self::Restore { from, passphrase_file } => {
                    restore(&config, &from, passphrase_file.as_deref(), is_json).await
                }
                Self::RestoreWords(walk) => recover(&config, walk, is_json).await,
            }
        })
    }
}

fn get(path: impl Into<String>) -> Request {
    Request { method: Method::GET, path: path.into(), body: None }
}

fn post(path: &str, body: &Value) -> Request {
    Request { method: Method::POST, path: path.to_owned(), body: Some(body.to_string()) }
}

async fn ask_json(service: &mut Service, request: &Request) -> Result<Value, CliError> {
    let answer = ask(service, request).await?;
    Ok(serde_json::from_str(&answer.body).map_err(io::Error::other)?)
}

/// Where a secret comes from that is never an argument.
struct SecretSource<'a> {
    name: &'static str,
    file: Option<&'a Path>,
    variable: &'static str,
    /// Whether it is new, so that typing errors would not show.
    is_new: bool,
}

/// The exit code of a program that Ctrl-C has ended, as shells tell it.
const INTERRUPTED: i32 = 130;

impl SecretSource<'_> {
    /// Reads the secret in a runtime.
    ///
    /// While it is typed in, Ctrl-C is an error like others: a signal that ended the program would
    /// leave a terminal behind which shows nothing that is typed.
    fn read(&self) -> Result<SecretString, CliError> {
        let Self { name, file, variable, is_new } = *self;
        let failed = |reason: String| CliError::Secret(format!("the {name} {reason}"));
        let secret = if let Some(path) = file {
            let text = fs::read_to_string(path);
            let text = text.map(Zeroizing::new);
            let text = text.map_err(|error| {
                failed(format!("cannot be read from {}: {error}", path.display()))
            })?;
            SecretString::from(text.trim_end_matches(['\r', '\n']))
        } else if let Ok(text) = std::env::var(variable) {
            SecretString::from(text)
        } else {
            let ask = |prompt: String| {
                rpassword::prompt_password(prompt).map(SecretString::from).map_err(|error| {
                    match error.kind() {
                        // Ctrl-C or Ctrl-D.
                        io::ErrorKind::Interrupted | io::ErrorKind::UnexpectedEof => {
                            failed("was not typed in".to_owned())
                        }
                        _ => failed(format!(
                            "cannot be typed in ({error}): give a file, or {variable}"
                        )),
                    }
                })
            };
            let mut interrupts = signal(SignalKind::interrupt())?;
            let typed = ask(format!("The {name}: "))?;
            if is_new {
                let again = ask("Once more: ".to_owned())?;
                if again.expose_secret() != typed.expose_secret() {
                    return Err(failed("was typed in two ways".to_owned()));
                }
            }
            tokio::spawn(async move {
                interrupts.recv().await;
                std::process::exit(INTERRUPTED);
            });
            typed
        };
        if secret.expose_secret().is_empty() {
            return Err(failed("is empty".to_owned()));
        }
        Ok(secret)
    }
}

async fn change_passphrase(
    config: Config,
    file: Option<&Path>,
    revocation_keystore: Option<&Path>,
    is_json: bool,
) -> Result<(), CliError> {
    let passphrase = SecretSource {
        name: "new passphrase of the keys",
        file,
        variable: "BSV_NEW_KEYSTORE_PASSPHRASE",
        is_new: true,
    };
    let passphrase = passphrase.read()?;
    let mut service = Service::reach(config, Create::Nothing).await?;
    let body = json!({
        "passphrase": passphrase.expose_secret(),
        "revocationKeystore": absolute(revocation_keystore),
    });
    ask(&mut service, &post("/control/keystore/passphrase", &body)).await?;
    print(is_json, &json!({ "changed": true }), || {
        "The keys have the new passphrase. Set it as keystorePassphraseFile or \
         BSV_KEYSTORE_PASSPHRASE before the next start.\n"
            .to_owned()
    })
}

/// Where a service does not open, at least its keys are looked at.
async fn verify_keystore(config: Config, is_json: bool) -> Result<(), CliError> {
    let (check, cause) = match Service::reach(config.clone(), Create::Nothing).await {
        Ok(mut service) => (ask_json(&mut service, &get("/control/keystore")).await?, None),
        Err(ReachError::Open(
            error @ (OpenError::Wallet(_) | OpenError::MinerId(_) | OpenError::Keystore(_)),
        )) => (check_alone(&config)?, Some(error.to_string())),
        Err(error) => return Err(error.into()),
    };
    let list = |name: &str| check[name].as_array().cloned().unwrap_or_default();
    let (readable, mut faults) = (list("readable"), list("faults"));
    if faults.is_empty() {
        faults.extend(cause.map(Value::from));
    }
    let text = || {
        let lines = faults.iter().map(|fault| printable(fault.as_str().unwrap_or_default()) + "\n");
        lines.collect::<String>() + &format!("{} keys can be read\n", readable.len())
    };
    print(is_json, &json!({ "readable": readable, "faults": faults }), text)?;
    match faults.len() {
        0 => Ok(()),
        count => Err(CliError::Found(format!("{count} faults in the keystore"))),
    }
}

fn check_alone(config: &Config) -> Result<Value, CliError> {
    let keys = &config.keystore;
    let check = keys
        .stretched_passphrase()
        .and_then(|passphrase| {
            Keystore::open(&keys.dir, passphrase.as_ref(), keys.plain_keys, "bsv-cli")
        })
        .and_then(|keystore| keystore.check())
        .map_err(|error| CliError::Found(error.to_string()))?;
    let faults: Vec<_> = check.faults.iter().map(ToString::to_string).collect();
    Ok(json!({ "readable": check.readable, "faults": faults }))
}

async fn verify_books(
    config: Config,
    from_height: Option<u32>,
    is_json: bool,
) -> Result<(), CliError> {
    let mut service = Service::reach(Config { minerid: None, ..config }, Create::Nothing).await?;
    let path = match from_height {
        Some(height) => format!("/control/books?fromHeight={height}"),
        None => "/control/books".to_owned(),
    };
    let check = ask_json(&mut service, &get(path)).await?;
    let differences = check["differences"].as_array().cloned().unwrap_or_default();
    let further = check["furtherDifferences"].as_u64().unwrap_or_default();
    print(is_json, &check, || {
        let mut text = String::new();
        for difference in &differences {
            text.push_str(&format!("{}\n", printable(difference.as_str().unwrap_or_default())));
        }
        if further > 0 {
            text.push_str(&format!("and {further} more\n"));
        }
        let number = |name: &str| check[name].as_u64().unwrap_or_default();
        text.push_str(&format!(
            "{} transactions make {} coins of {} satoshis, and the balance is kept as {}\n",
            number("transactions"),
            number("coins"),
            number("recomputed"),
            number("balance")
        ));
        text + &match check["blocksInChain"].as_u64() {
            Some(count) => format!(
                "{} proofs of {} blocks, of which the node has {count} in its main chain\n",
                number("proofs"),
                number("blocks")
            ),
            None => format!(
                "{} proofs of {} blocks, which no node was asked for\n",
                number("proofs"),
                number("blocks")
            ),
        }
    })?;
    match differences.len() as u64 + further {
        0 => Ok(()),
        count => Err(CliError::Found(format!("{count} differences in the books"))),
    }
}

/// The names of the audit logs that the settings leave open.
fn audit_logs(config: &Config) -> Vec<&'static str> {
    let wallet = config.wallet.as_ref().map(|_| "wallet");
    let minerid = config.minerid.as_ref().map(|_| "minerid");
    wallet.into_iter().chain(minerid).collect()
}

async fn list_audit(config: Config, is_json: bool) -> Result<(), CliError> {
    let logs = audit_logs(&config);
    let mut service = Service::reach(config, Create::Nothing).await?;
    let mut all = json!({});
    for log in logs {
        let (mut after, mut entries) = (0, Vec::new());
        loop {
            let path = format!("/control/audit/{log}?after={after}");
            let page = ask_json(&mut service, &get(path)).await?;
            let page = page.as_array().cloned().unwrap_or_default();
            let Some(last) = page.last() else { break };
            after = last["number"].as_u64().unwrap_or(u64::MAX);
            entries.extend(page);
        }
        all[log] = entries.into();
    }
    print(is_json, &all, || {
        let mut text = String::new();
        for (log, entries) in all.as_object().into_iter().flatten() {
            for entry in entries.as_array().into_iter().flatten() {
                let member = |name: &str| printable(entry[name].as_str().unwrap_or_default());
                text.push_str(&format!(
                    "{log:<7} {:>6}  {:<27}  {:<18}  {}\n",
                    entry["number"].as_u64().unwrap_or_default(),
                    member("at"),
                    member("event"),
                    member("subject")
                ));
            }
        }
        text
    })
}

async fn verify_audit(config: Config, is_json: bool) -> Result<(), CliError> {
    let logs = audit_logs(&config);
    let mut service = Service::reach(config, Create::Nothing).await?;
    let (mut all, mut faults) = (json!({}), Vec::new());
    for log in logs {
        let check = ask_json(&mut service, &get(format!("/control/audit/{log}/check"))).await?;
        faults.extend(check["fault"].as_str().map(|fault| format!("{log}: {fault}")));
        all[log] = check;
    }
    print(is_json, &all, || {
        let mut text = String::new();
        for (log, check) in all.as_object().into_iter().flatten() {
            let entries = check["entries"].as_u64().unwrap_or_default();
            let head = check["head"].as_str().unwrap_or_default();
            text.push_str(&format!("{log:<7} {entries} entries fit, the last one is {head}\n"));
        }
        text
    })?;
    match faults.is_empty() {
        true => Ok(()),
        false => Err(CliError::Found(faults.join("; "))),
    }
}

fn backup_passphrase(file: Option<&Path>, is_new: bool) -> Result<SecretString, CliError> {
    let variable = "BSV_BACKUP_PASSPHRASE";
    SecretSource { name: "passphrase of the backup", file, variable, is_new }.read()
}

/// Writes a backup, and reads it again before it gets its name.
async fn back_up(
    config: Config,
    to: &Path,
    passphrase_file: Option<&Path>,
    is_json: bool,
) -> Result<(), CliError> {
    let mut file = NewFile::create(to)?;
    let passphrase = backup_passphrase(passphrase_file, true)?;
    let mut service = Service::reach(config, Create::Nothing).await?;
    let request = post("/control/backup", &json!({ "passphrase": passphrase.expose_secret() }));
    let mut out = BufWriter::new(file.file());
    let write = |bytes: &[u8]| out.write_all(bytes);
    if let Some(refusal) = service.ask_for_bytes(&request, write).await? {
        return Err(CliError::Refused(output::reason(&refusal.body)));
    }
    out.flush()?;
    drop(out);
    file.file().rewind()?;
    let mut archive = ArchiveReader::open(file.file(), &passphrase)?;
    let len = io::copy(&mut archive, &mut io::sink())?;
    file.finish()?;
    let path = to.display();
    print(is_json, &json!({ "file": to, "bytes": len }), || {
        format!("{len} bytes of keys, identities and the wallet are sealed in {path}\n")
    })
}

async fn restore(
    config: &Config,
    from: &Path,
    passphrase_file: Option<&Path>,
    is_json: bool,
) -> Result<(), CliError> {
    let passphrase = backup_passphrase(passphrase_file, false)?;
    let restored = restore_backup(config, from, &passphrase).await?;
    let (created_at, keys) = (&restored.created_at, restored.keys);
    print(is_json, &json!({ "createdAt": created_at, "keys": keys }), || {
        let dir = config.network_dir.display();
        format!("The backup of {created_at} with {keys} keys is restored in {dir}\n")
    })
}

/// Longer than any 24 words.
const MAX_WORDS_LEN: u64 = 4096;

async fn recover(config: &Config, walk: Walk, is_json: bool) -> Result<(), CliError> {
    if io::stdin().is_terminal() {
        eprintln!("The 24 words, in a line:");
    }
    let mut words = Zeroizing::new(String::with_capacity(MAX_WORDS_LEN as usize));
    let read = match io::stdin().is_terminal() {
        true => io::stdin().read_line(&mut words),
        false => io::stdin().lock().take(MAX_WORDS_LEN).read_to_string(&mut words),
    };
    read.map_err(|error| CliError::Secret(format!("the words cannot be read: {error}")))?;
    let seed =
        WalletSeed::from_words(&words).map_err(|error| CliError::Secret(error.to_string()))?;
    let bar = ProgressBar::new(0).with_style(
        ProgressStyle::with_template("{bar:40} block {pos} of {len}, {eta} left")
            .expect("the template is right"),
    );
    let recovery = restore_words(config, &seed, walk, |height, last| {
        bar.set_length(u64::from(last));
        bar.set_position(u64::from(height));
    });
    let recovery = recovery.await;
    bar.finish_and_clear();
    let recovery = recovery?;
    let described = recovery.map(|found| {
        json!({
            "height": found.height,
            "transactions": found.transactions,
            "coins": found.coins,
            "balance": found.balance,
        })
    });
    print(is_json, &json!({ "found": described }), || match recovery {
        Some(found) => format!(
            "The wallet is restored: {} coins of {} satoshis in {} transactions, up to block {}\n",
            found.coins, found.balance, found.transactions, found.height
        ),
        None => {
            "The keys of the wallet are restored. Its coins were not looked for, since no node is \
                 configured: to find them, restore the words with one in an empty directory.\n"
                .to_owned()
        }
    })
}

fn print(is_json: bool, value: &Value, text: impl FnOnce() -> String) -> Result<(), CliError> {
    let text = if is_json { format!("{value}\n") } else { text() };
    Ok(output::print(&text)?)
}
