//! Checking the settings: what the server would refuse, and what is risky.

use std::fmt;
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use bsv_network::headers::SourceNames;
use bsv_store::{Keystore, KeystoreError, LockError, PlainKeys};
use bsv_tx::Network;
use rustix::process::{getegid, geteuid};
use serde::Serialize;

use crate::config::{Config, ConfigError, ConfigSources, TlsFiles, WalletConfig};
use crate::http::Tls;
use crate::opening::{OpenError, holder_of, open_to_others, open_to_others_text, own_dirs};

/// The results of checks, in their order.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Verdicts {
    checks: Vec<Verdict>,
}

/// A check and its result.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// The name of the check.
    pub check: String,
    /// The result.
    pub outcome: Outcome,
    /// The reason, and what to do.
    pub detail: String,
}

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// All is well.
    Holds,
    /// Something does not work.
    Fails,
    /// Something is risky, or a problem for some uses.
    Warns,
    /// Nobody can tell here.
    Unchecked,
}

impl Verdicts {
    /// Adds a result.
    pub fn add(&mut self, check: &str, outcome: Outcome, detail: impl Into<String>) {
        self.checks.push(Verdict { check: check.to_owned(), outcome, detail: detail.into() });
    }

    /// Adds a check that holds.
    pub fn holds(&mut self, check: &str, detail: impl Into<String>) {
        self.add(check, Outcome::Holds, detail);
    }

    /// Adds a check that fails.
    pub fn fails(&mut self, check: &str, detail: impl Into<String>) {
        self.add(check, Outcome::Fails, detail);
    }

    /// Adds a warning.
    pub fn warns(&mut self, check: &str, detail: impl Into<String>) {
        self.add(check, Outcome::Warns, detail);
    }

    /// Adds a check that could not be made.
    pub fn unchecked(&mut self, check: &str, detail: impl Into<String>) {
        self.add(check, Outcome::Unchecked, detail);
    }

    /// How many checks have this result.
    pub fn count(&self, outcome: Outcome) -> usize {
        self.all().iter().filter(|verdict| verdict.outcome == outcome).count()
    }

    /// All results.
    pub fn all(&self) -> &[Verdict] {
        &self.checks
    }
}

impl Outcome {
    /// The result in words.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Fails => "FAILS",
            Self::Warns => "warning",
            Self::Unchecked => "not checked",
        }
    }
}

/// Reads the settings, and checks the files and addresses that they name, and what is risky. Nothing is
/// created.
pub fn check_config(sources: &ConfigSources) -> Result<(Config, Verdicts), ConfigError> {
    let (config, secret_files) = Config::load_with_secret_files(sources)?;
    let mut verdicts = Verdicts::default();
    let network = match config.network {
        Network::Livenet => "of real money",
        Network::Testnet | Network::Regtest => "for tests",
    };
    verdicts.holds("settings", format!("they are for {}, a network {network}", config.network));
    check_files(&mut verdicts, &secret_files, &config);
    check_keys(&mut verdicts, &config);
    check_listeners(&mut verdicts, &config);
    if let Some(wallet) = &config.wallet {
        check_payers(&mut verdicts, config.network, wallet);
    }
    check_node(&mut verdicts, &config);
    check_services_named(&mut verdicts, &config);
    Ok((config, verdicts))
}

/// Checks who can read secrets, and who can replace files.
fn check_files(verdicts: &mut Verdicts, secret_files: &[PathBuf], config: &Config) {
    const CHECK: &str = "files";
    let readable = secret_files.iter().filter(|file| is_readable_by_others(file)).map(|file| {
        format!("other users can read the secrets in {}: run chmod go-rwx {0}", file.display())
    });
    let dirs = own_dirs(config);
    let writable = open_to_others(&dirs).map(open_to_others_text);
    let warnings: Vec<_> = readable.chain(writable).collect();
    if warnings.is_empty() {
        verdicts.holds(CHECK, "other users can neither read secrets nor replace data");
    }
    warnings.into_iter().for_each(|warning| verdicts.warns(CHECK, warning));
}

/// Whether users besides the owner and the service can read a file.
fn is_readable_by_others(file: &Path) -> bool {
    let Ok(found) = fs::metadata(file) else { return false };
    let reader = (geteuid().as_raw(), getegid().as_raw());
    let doubted = doubted_mode((found.uid(), found.gid()), reader);
    found.permissions().mode() & doubted != 0
}

/// The bits of a file's mode that let others read it. The owner and the reader are a user and a
/// group. Root may give a file to the group of the service, which then reads it as its member.
fn doubted_mode(owner: (u32, u32), reader: (u32, u32)) -> u32 {
    let is_for_service = owner.0 == 0 && reader.0 != 0 && owner.1 == reader.1;
    if is_for_service { 0o004 } else { 0o044 }
}

/// Checks the passphrase, and that it opens the keystore.
fn check_keys(verdicts: &mut Verdicts, config: &Config) {
    const CHECK: &str = "keys";
    if config.wallet.is_none() && config.minerid.is_none() {
        return;
    }
    let keystore = &config.keystore;
    let is_sealed = if Keystore::is_in(&keystore.dir) {
        let opened = keystore.stretched_passphrase().and_then(|passphrase| {
            let passphrase = passphrase.as_ref();
            Keystore::open(&keystore.dir, passphrase, keystore.plain_keys, "bsv-cli config check")
        });
        match opened {
            Ok(opened) => !opened.is_plain(),
            Err(KeystoreError::Lock(error @ LockError::Held { .. })) => {
                return verdicts.unchecked(CHECK, error.to_string());
            }
            Err(error) => return verdicts.fails(CHECK, OpenError::from(error).to_string()),
        }
    } else if keystore.passphrase.is_none() && keystore.plain_keys == PlainKeys::Refused {
        let error = OpenError::from(KeystoreError::PlainRefused(keystore.dir.clone()));
        return verdicts.fails(CHECK, error.to_string());
    } else {
        keystore.passphrase.is_some()
    };
    match is_sealed {
        true => verdicts.holds(CHECK, "a passphrase seals them"),
        false if config.network == Network::Regtest => {
            verdicts.holds(CHECK, "no passphrase seals them, and nothing on regtest has a value");
        }
        false => verdicts.warns(
            CHECK,
            "no passphrase seals them: set keystorePassphraseFile, and run bsv-cli keystore passphrase if there are \
             keys already",
        ),
    }
}

/// Checks that the server can listen.
fn check_listeners(verdicts: &mut Verdicts, config: &Config) {
    let mut listeners: Vec<(&str, &'static str, SocketAddr, Option<&TlsFiles>)> = Vec::new();
    if let Some(minerid) = &config.minerid {
        listeners.push(("minerid", "tls", minerid.address, minerid.tls.as_ref()));
        let of_node = minerid.node_listener.as_ref();
        listeners.extend(of_node.map(|it| ("node", "minerid.nodeListener", it.address, None)));
    }
    if let Some(wallet) = &config.wallet {
        let payments = &wallet.payments;
        listeners.push(("wallet", "wallet.tls", wallet.address, wallet.tls.as_ref()));
        listeners.push(("payments", "payments.tls", payments.address, payments.tls.as_ref()));
    }
    let holder = holder_of(&config.network_dir, "bsv-cli config check");
    for (name, setting, address, tls) in listeners {
        let check = format!("listener {name}");
        if let Some(Err(error)) = tls.map(|files| Tls::open(setting, files.clone())) {
            verdicts.fails(&check, error.to_string());
        } else if let Some(holder) = &holder {
            verdicts.unchecked(&check, format!("{address}: {holder}"));
        } else {
            match TcpListener::bind(address) {
                Ok(_) => verdicts.holds(&check, address.to_string()),
                Err(error) => {
                    verdicts.fails(&check, format!("cannot listen on {address}: {error}"));
                }
            }
        }
    }
    for warning in config.clear_text_warnings() {
        verdicts.warns("encryption", warning);
    }
}

/// Checks what payers are told.
fn check_payers(verdicts: &mut Verdicts, network: Network, wallet: &WalletConfig) {
    /// The fee rate below which no miner of the main network takes a transaction, in satoshis per
    /// 1000 bytes.
    const FLOOR: u64 = 100;
    let payments = &wallet.payments;
    let url = payments.public_url();
    match &payments.public_url {
        None if network != Network::Regtest => verdicts.warns(
            "publicUrl",
            format!(
                "invoices lead payers to {url}: set payments.publicUrl to the URL that they reach"
            ),
        ),
        _ => verdicts.holds("publicUrl", format!("invoices lead payers to {url}")),
    }
    if network == Network::Livenet && payments.fee_rate < FLOOR {
        verdicts.warns(
            "feeRate",
            format!(
                "payers are asked for {} satoshis per 1000 bytes, and miners refuse less than {FLOOR}: leave \
                 payments.feeRate out",
                payments.fee_rate
            ),
        );
    }
}

/// Checks what the services that are named can do together.
fn check_services_named(verdicts: &mut Verdicts, config: &Config) {
    const CHECK: &str = "services settings";
    let (Some(services), Some(SourceNames { urls, peers })) = (&config.services, &config.headers)
    else {
        return;
    };
    let count = services.broadcasters.len();
    let detail = format!("services.broadcasters names {count}; with --services they are asked");
    verdicts.holds(CHECK, detail);
    if urls.len() + peers.len() == 1 {
        verdicts.warns(
            CHECK,
            "only one source of headers is named, so nobody notices if it withholds blocks: name another one in \
             services.headers, or none, which asks several nodes",
        );
    }
}

fn check_node(verdicts: &mut Verdicts, config: &Config) {
    const CHECK: &str = "node settings";
    match &config.node {
        Some(node) => {
            let detail = format!("{}:{}; with --node it is asked", node.host, node.port);
            verdicts.holds(CHECK, detail);
        }
        None if config.services.is_some() => {
            verdicts.holds(CHECK, "there is none, and the wallet asks services");
        }
        None => verdicts.warns(
            CHECK,
            "there is none, so payments and what blocks show stay unknown: set rpcUser and rpcPassword, or \
             rpcCookieFile",
        ),
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<23}{}: {}", self.check, self.outcome.in_words(), self.detail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_may_read_secrets_only_if_root_has_given_them_to_the_service() {
        let (root, service, users) = (0, 990, 100);
        for (owner, reader, doubted) in [
            ((root, service), (service, service), 0o004),
            ((root, users), (service, service), 0o044),
            ((service, users), (service, service), 0o044),
            ((service, service), (service, service), 0o044),
            ((root, service), (root, root), 0o044),
            ((root, root), (root, root), 0o044),
        ] {
            assert_eq!(doubted_mode(owner, reader), doubted, "{owner:?} {reader:?}");
        }
    }
}
