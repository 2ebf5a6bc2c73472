//! Keeping keys and money: passphrases, checks, the audit log, backups.

use std::io::{self, Write};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use bsv_invoicing::{BooksCheck, Wallet};
use bsv_minerid::MinerIds;
use bsv_store::{AuditCheck, AuditEntry, KeyEvent, Keystore, KeystoreError};
use bsv_tx::Network;
use bytes::Bytes;
use hyper::{Request, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::{Mutex, mpsc};

use super::revocation_keys::RevocationKeys;
use crate::backup::{BackupError, Contents};
use crate::http::{Answer, Problem, answer};
use crate::minerid::Refusal;

/// | method and path | body | answer |
/// | --- | --- | --- |
/// | `GET /control/keystore` | | `{"readable", "faults"}` |
/// | `POST /control/keystore/passphrase` | `{"passphrase", "revocationKeystore"?}` | `{}` |
/// | `GET /control/books?fromHeight=N` | | what was found when the wallet's books were added up; with `fromHeight` also what the chain has from there on, and the books lack |
/// | `GET /control/audit/{log}?after=N` | | up to 1000 entries of the log `wallet` or `minerid` |
/// | `GET /control/audit/{log}/check` | | `{"entries", "head", "fault"}` |
/// | `POST /control/backup` | `{"passphrase"}` | the sealed backup |
#[derive(Debug)]
pub(crate) struct Keeping {
    network: Network,
    network_dir: PathBuf,
    ids: Option<Arc<MinerIds>>,
    wallet: Option<Arc<Wallet>>,
    keystore: Option<Arc<Keystore>>,
    revocation_keys: Arc<RevocationKeys>,
    /// Held while a backup is made: each takes room on the disk.
    backing_up: Arc<Mutex<()>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PassphraseJson {
    passphrase: SecretString,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct NewPassphraseJson {
    passphrase: SecretString,
    /// An absolute path.
    revocation_keystore: Option<PathBuf>,
}

/// How many entries of a log are answered at once.
const PAGE: usize = 1000;
/// What the audit log calls all keys together.
const ALL_KEYS: &str = "keystore";

impl Keeping {
    pub(crate) fn new(
        network: Network,
        network_dir: PathBuf,
        ids: Option<Arc<MinerIds>>,
        wallet: Option<Arc<Wallet>>,
        keystore: Option<Arc<Keystore>>,
        revocation_keys: Arc<RevocationKeys>,
    ) -> Self {
        let backing_up = Arc::default();
        Self { network, network_dir, ids, wallet, keystore, revocation_keys, backing_up }
    }

    /// Whether a path below `/control/` is one of these.
    pub(crate) fn has(path: &str) -> bool {
        let first = path.split('/').next().unwrap_or_default();
        ["keystore", "books", "audit", "backup"].contains(&first)
    }

    pub(crate) async fn answer(
        &self,
        request: &Request<Bytes>,
        path: &str,
    ) -> Result<Answer, Problem> {
        let segments: Vec<_> = path.split('/').collect();
        let ok = |body: Value| Ok(answer::json(StatusCode::OK, &body));
        match (request.method().as_str(), segments.as_slice()) {
            ("GET", ["keystore"]) => ok(self.check_keystore().await?),
            ("POST", ["keystore", "passphrase"]) => {
                self.change_passphrase(parse(request.body())?).await?;
                ok(json!({}))
            }
            ("GET", ["books"]) => {
                let from_height = number(request.uri().query(), "fromHeight")?;
                ok(describe_books(&self.wallet()?.verify_books(from_height).await?))
            }
            ("GET", ["audit", log]) => {
                let after = number(request.uri().query(), "after")?.unwrap_or(0);
                let entries = self.audit_log(log, after).await?;
                ok(entries.iter().map(describe_entry).collect())
            }
            ("GET", ["audit", log, "check"]) => ok(describe_check(&self.check_audit(log).await?)),
            ("POST", ["backup"]) => {
                let PassphraseJson { passphrase } = parse(request.body())?;
                self.back_up(passphrase).await
            }
            _ => Err(Problem::of_status(StatusCode::NOT_FOUND, "there is nothing here")),
        }
    }

    /// Has the wallet, if there is one, give out keys of a new account once it is opened again.
    pub(crate) async fn begin_account(&self) -> Result<(), bsv_invoicing::Error> {
        if let Some(wallet) = &self.wallet {
            wallet.begin_account().await?;
        }
        Ok(())
    }

    fn wallet(&self) -> Result<&Arc<Wallet>, Problem> {
        let disabled = || Problem::of_status(StatusCode::NOT_FOUND, "the wallet is disabled");
        self.wallet.as_ref().ok_or_else(disabled)
    }

    fn keystore(&self) -> Result<&Arc<Keystore>, Problem> {
        let none =
            || Problem::of_status(StatusCode::NOT_FOUND, "no service that has keys is enabled");
        self.keystore.as_ref().ok_or_else(none)
    }

    /// Adds an entry to the audit log of every store.
    pub(crate) async fn note(&self, event: KeyEvent, subject: &str) -> Result<(), Problem> {
        if let Some(wallet) = &self.wallet {
            wallet.note_key_event(event, subject).await?;
        }
        let subject = subject.to_owned();
        self.on_identities(move |ids| ids.note_key_event(event, &subject)).await?;
        Ok(())
    }

    /// The log tells of it before it happens, so that it never happens unseen.
    ///
    /// Revocation keys come first: cut short after them, the command is repeated with the passphrase
    /// that the keystore still has.
    async fn change_passphrase(&self, new: NewPassphraseJson) -> Result<(), Problem> {
        let NewPassphraseJson { passphrase, revocation_keystore } = new;
        if passphrase.expose_secret().is_empty() {
            return Err(keystore_problem(&KeystoreError::EmptyPassphrase));
        }
        let keystore = Arc::clone(self.keystore()?);
        let revocation_keys = Arc::clone(&self.revocation_keys);
        self.note(KeyEvent::PassphraseChanged, ALL_KEYS).await?;
        let changed = tokio::task::spawn_blocking(move || {
            revocation_keys.change_passphrase(revocation_keystore.as_deref(), &passphrase)?;
            let changed = keystore.change_passphrase(&passphrase);
            if matches!(changed, Ok(()) | Err(KeystoreError::NotDurable(_))) {
                revocation_keys.set_passphrase(passphrase);
            }
            Ok(changed)
        });
        let problem = match changed.await.expect("it does not panic, and is not cancelled") {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error @ KeystoreError::NotDurable(_))) => return Err(keystore_problem(&error)),
            Ok(Err(error)) => keystore_problem(&error),
            Err(Refusal { status, text }) => Problem::of_status(status, text),
        };
        self.note(KeyEvent::Failed, "passphrase-changed").await?;
        Err(problem)
    }

    async fn check_keystore(&self) -> Result<Value, Problem> {
        let keystore = Arc::clone(self.keystore()?);
        let revocation_keys = Arc::clone(&self.revocation_keys);
        let check = tokio::task::spawn_blocking(move || {
            let mut check = keystore.check()?;
            match revocation_keys.open_default().map(|opened| opened?.check()) {
                None => {}
                Some(Ok(others)) => {
                    let names = others.readable.iter().map(|name| format!("revocation/{name}"));
                    check.readable.extend(names);
                    check.readable.sort();
                    check.faults.extend(others.faults);
                }
                Some(Err(fault)) => check.faults.push(fault),
            }
            Ok(check)
        });
        let check = check.await.expect("it does not panic, and is not cancelled");
        let check = check.map_err(|error| keystore_problem(&error))?;
        let mut faults: Vec<_> = check.faults.iter().map(ToString::to_string).collect();
        let needed = self.ids.iter().flat_map(|ids| ids.key_names());
        let needed = needed.chain(self.wallet.iter().map(|_| "wallet.seed".to_owned()));
        let dir = self.keystore()?.dir().display();
        for name in needed {
            let file_name = format!("{name}.key");
            let is_told = faults.iter().any(|fault| fault.contains(&file_name));
            if !is_told && check.readable.binary_search(&name).is_err() {
                faults.push(format!("{dir}/{file_name} is missing"));
            }
        }
        Ok(json!({ "readable": check.readable, "faults": faults }))
    }

    async fn audit_log(&self, log: &str, after: u64) -> Result<Vec<AuditEntry>, Problem> {
        match log {
            "wallet" => Ok(self.wallet()?.audit_log(after, PAGE).await?),
            "minerid" => {
                let read = self.on_identities(move |ids| ids.audit_log(after, PAGE)).await?;
                read.ok_or_else(no_identities)
            }
            _ => Err(unknown_log(log)),
        }
    }

    async fn check_audit(&self, log: &str) -> Result<AuditCheck, Problem> {
        match log {
            "wallet" => Ok(self.wallet()?.verify_audit_log().await?),
            "minerid" => {
                self.on_identities(MinerIds::verify_audit_log).await?.ok_or_else(no_identities)
            }
            _ => Err(unknown_log(log)),
        }
    }

    /// Runs what waits for the disk, if there are identities.
    async fn on_identities<T: Send + 'static>(
        &self,
        run: impl FnOnce(&MinerIds) -> Result<T, bsv_minerid::Error> + Send + 'static,
    ) -> Result<Option<T>, Problem> {
        let Some(ids) = self.ids.clone() else { return Ok(None) };
        let done = tokio::task::spawn_blocking(move || run(&ids)).await;
        let done = done.expect("it does not panic, and is not cancelled");
        done.map(Some).map_err(|error| {
            let Refusal { status, text } = error.into();
            Problem::of_status(status, text)
        })
    }

    /// Begins to send a backup, once its contents are there.
    async fn back_up(&self, passphrase: SecretString) -> Result<Answer, Problem> {
        let keystore = self.keystore()?;
        let place = Arc::clone(&self.backing_up).try_lock_owned().map_err(|_| {
            Problem::of_status(StatusCode::CONFLICT, "a backup is being made already")
        })?;
        self.note(KeyEvent::BackedUp, ALL_KEYS).await?;
        let (wallet, ids) = (self.wallet.as_deref(), self.ids.as_deref());
        let revocation_dir = self.revocation_keys.dir();
        let contents = Contents::collect(
            self.network,
            &self.network_dir,
            wallet,
            ids,
            keystore,
            revocation_dir,
        )
        .await;
        let contents = match contents {
            Ok(contents) => contents,
            Err(error) => {
                self.note(KeyEvent::Failed, "backed-up").await?;
                return Err(backup_problem(&error));
            }
        };
        let (parts, body) = mpsc::channel(4);
        tokio::task::spawn_blocking(move || {
            let _place = place;
            match contents.write(io::BufWriter::with_capacity(PART_LEN, Parts(&parts)), &passphrase)
            {
                // Fails if the reader is gone.
                Ok(()) => drop(parts.blocking_send(None)),
                Err(error) => tracing::error!("a backup breaks off: {error}"),
            }
        });
        Ok(answer::bytes_stream(body))
    }
}

/// How much of a backup is sent at once, in bytes.
const PART_LEN: usize = 256 << 10;

/// Sends what is written to it.
struct Parts<'a>(&'a mpsc::Sender<Option<Bytes>>);

impl Write for Parts<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let sent = self.0.blocking_send(Some(Bytes::copy_from_slice(bytes)));
        sent.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    // What is wrong is not quoted: it may be the passphrase.
    serde_json::from_slice(body).map_err(|_| {
        Problem::of_status(StatusCode::BAD_REQUEST, "the body must be {\"passphrase\": \"…\"}")
    })
}

/// The number that the query is to give under a name, if there is a query.
fn number<T: FromStr>(query: Option<&str>, name: &str) -> Result<Option<T>, Problem> {
    let Some(query) = query else { return Ok(None) };
    let value = query.strip_prefix(name).and_then(|rest| rest.strip_prefix('='));
    let number = value.and_then(|number| number.parse().ok());
    let problem = || {
        let detail = format!("the query must be {name}=<number>");
        Problem::of_status(StatusCode::BAD_REQUEST, detail)
    };
    number.map(Some).ok_or_else(problem)
}

fn no_identities() -> Problem {
    Problem::of_status(StatusCode::NOT_FOUND, "the miner identity service is disabled")
}

fn unknown_log(log: &str) -> Problem {
    Problem::of_status(StatusCode::NOT_FOUND, format!("there is no audit log {log:?}"))
}

fn keystore_problem(error: &KeystoreError) -> Problem {
    let status = match error {
        KeystoreError::EmptyPassphrase => StatusCode::BAD_REQUEST,
        _ => StatusCode::SERVICE_UNAVAILABLE,
    };
    Problem::of_status(status, error.to_string())
}

fn backup_problem(error: &BackupError) -> Problem {
    tracing::error!("a backup cannot be made: {error}");
    Problem::of_status(StatusCode::SERVICE_UNAVAILABLE, error.to_string())
}

fn describe_books(check: &BooksCheck) -> Value {
    json!({
        "balance": check.balance,
        "recomputed": check.recomputed,
        "transactions": check.transactions,
        "coins": check.coins,
        "proofs": check.proofs,
        "blocks": check.blocks,
        "blocksInChain": check.blocks_in_chain,
        "differences": check.differences,
        "furtherDifferences": check.further_differences,
    })
}

fn describe_entry(entry: &AuditEntry) -> Value {
    json!({
        "number": entry.number,
        "at": bsv_invoicing::Timestamp::from_micros(entry.at_micros).to_string(),
        "event": entry.event,
        "subject": entry.subject,
        "previous": hex::encode(entry.previous),
    })
}

fn describe_check(check: &AuditCheck) -> Value {
    json!({ "entries": check.entries, "head": hex::encode(check.head), "fault": check.fault })
}
