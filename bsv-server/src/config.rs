//! What the service is told: a TOML file, the environment, and the defaults.

mod settings;

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bsv_invoicing::MAX_SATOSHIS;
use bsv_invoicing::dpp::Merchant;
use bsv_minerid::PlainKeys;
use bsv_network::NodeSettings;
use bsv_store::{KeystoreError, StretchedPassphrase};
use bsv_tx::Network;
use ipnet::IpNet;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use thiserror::Error;

use self::settings::{AuthSettings, MerchantSettings, PaymentsSettings, Settings, WalletSettings};
use crate::access::{AccessConfig, JwtKey, WeakJwtKey};

/// The environment variable that holds settings as a JSON object, which count over the file's.
pub const CONFIG_VARIABLE: &str = "BSV_CONFIG";
/// The environment variable that holds the keystore's passphrase.
pub const PASSPHRASE_VARIABLE: &str = "BSV_KEYSTORE_PASSPHRASE";

/// Where configuration comes from, besides the defaults.
#[derive(Clone, Debug, Default)]
pub struct ConfigSources {
    /// The TOML file.
    pub file: Option<PathBuf>,
    /// The directory that holds all data, one directory per network below it.
    pub data_dir: Option<PathBuf>,
}

/// The effective configuration, checked.
#[derive(Clone, Debug)]
pub struct Config {
    /// The network.
    pub network: Network,
    /// The directory that holds the data of this network.
    pub network_dir: PathBuf,
    /// The keystore.
    pub keystore: KeystoreConfig,
    /// The node, if its credentials are configured.
    pub node: Option<NodeSettings>,
    /// The miner identity service, if it is enabled.
    pub minerid: Option<MinerIdConfig>,
    /// The wallet service, if it is enabled.
    pub wallet: Option<WalletConfig>,
    /// Names under which a browser may reach the local listeners, besides IP addresses and
    /// `localhost`.
    pub allowed_hosts: Vec<String>,
    /// How callers of the local listeners show who they are.
    pub access: AccessConfig,
    /// Whether every request is logged.
    pub log_requests: bool,
    /// From one check of the stores that are too long to be checked at a start to the next.
    pub check_period: Duration,
}

/// Where private keys lie and how they are protected.
#[derive(Clone, Debug)]
pub struct KeystoreConfig {
    /// The directory.
    pub dir: PathBuf,
    /// What it is sealed with.
    pub passphrase: Option<SecretString>,
    /// Whether it may do without.
    pub plain_keys: PlainKeys,
}

impl KeystoreConfig {
    /// The passphrase, stretched for the keystore. To be had before the data directory is opened, which
    /// others wait for.
    pub fn stretched_passphrase(&self) -> Result<Option<StretchedPassphrase>, KeystoreError> {
        let passphrase = self.passphrase.as_ref();
        passphrase.map(|it| StretchedPassphrase::for_keystore(&self.dir, it)).transpose()
    }

    /// The directory of the keystore of revocation keys, unless a command names another.
    pub fn revocation_dir(&self) -> PathBuf {
        self.dir.join("revocation")
    }
}

/// The miner identity service.
#[derive(Clone, Debug)]
pub struct MinerIdConfig {
    /// Where its listener listens.
    pub address: SocketAddr,
    /// The directory of its store.
    pub data_dir: PathBuf,
}

/// The wallet service.
#[derive(Clone, Debug)]
pub struct WalletConfig {
    /// Where its listener listens.
    pub address: SocketAddr,
    /// For how long an invoice can be paid that does not say so itself.
    pub expiry: Duration,
    /// The most memory that cached pages of the store may take, in bytes.
    pub cache_bytes: usize,
    /// Who is paid, as payers are told.
    pub merchant: Merchant,
    /// The most that is paid at once, in satoshis.
    pub pay_limit: u64,
    /// The highest fee rate that is paid, in satoshis per 1000 bytes.
    pub max_fee_rate: u64,
    /// How payers pay.
    pub payments: PaymentsConfig,
}

/// The payments listener, and what payers are told.
#[derive(Clone, Debug)]
pub struct PaymentsConfig {
    /// Where it listens.
    pub address: SocketAddr,
    /// The beginning of payment URLs, where payers reach it, without a slash at its end; if it is not
    /// set, the address.
    pub public_url: Option<String>,
    /// The fee rate that payers are asked for, in satoshis per 1000 bytes.
    pub fee_rate: u64,
    /// How many connections there are at once; further ones wait.
    pub connections: u32,
    /// What one peer may take.
    pub peers: PeerConfig,
}

/// What one peer of the payments listener may take. A peer is an address of IPv4, or a network of 64 bits of
/// IPv6; networks of 56 bits have four times as much together, and those of 48 bits sixteen times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerConfig {
    /// How many connections it has at once; further ones are closed.
    pub connections: u32,
    /// How many requests it sends in a second, on average.
    pub requests_per_second: u32,
    /// How many it may send at once that has sent none for a while.
    pub burst: u32,
    /// Front ends, which may have any number of connections and requests, and whose
    /// `X-Forwarded-For` names the peer.
    pub trusted_proxies: Vec<IpNet>,
    /// Whether all this counts for this machine too.
    pub limit_loopback: bool,
}

impl Default for PeerConfig {
    fn default() -> Self {
        Self {
            connections: 64,
            requests_per_second: 20,
            burst: 100,
            trusted_proxies: Vec::new(),
            limit_loopback: false,
        }
    }
}

impl PaymentsConfig {
    /// The beginning of payment URLs.
    pub fn public_url(&self) -> String {
        self.public_url.clone().unwrap_or_else(|| format!("http://{}", self.address))
    }
}

/// A configuration that cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A source of settings is malformed, or has a setting that does not exist.
    #[error("{origin}: {reason}")]
    Malformed {
        /// The file or environment variable.
        origin: String,
        /// What is wrong.
        reason: String,
    },
    /// No data directory is given, and none can be derived from the environment.
    #[error("no data directory: give --data-dir, or set XDG_DATA_HOME or HOME")]
    NoDataDir,
    /// Settings do not go together.
    #[error("{0}")]
    Inconsistent(&'static str),
    /// The key of JSON Web Tokens could be guessed.
    #[error(transparent)]
    WeakJwtKey(#[from] WeakJwtKey),
    /// A number is too small or too large.
    #[error("{setting} must be from {} to {}", allowed.start(), allowed.end())]
    OutOfRange {
        /// The setting.
        setting: &'static str,
        /// What it can be.
        allowed: RangeInclusive<u32>,
    },
    /// A front end is not named by its address.
    #[error(
        "payments.trustedProxies: \"{0}\" is not an IP address, or a network such as 10.0.0.0/8"
    )]
    BadProxy(String),
}

impl Config {
    /// Reads the file and the environment.
    pub fn load(sources: &ConfigSources) -> Result<Self, ConfigError> {
        let mut merged = json!({});
        if let Some(path) = &sources.file {
            merge(&mut merged, read_file(path)?);
        }
        if let Some(text) = environment(CONFIG_VARIABLE)? {
            merge(&mut merged, read_variable(&text)?);
        }
        let settings = Settings::read("the settings of file and environment", merged)?;
        let data_dir = sources.data_dir.clone().or_else(default_data_dir);
        let passphrase = environment(PASSPHRASE_VARIABLE)?.map(SecretString::from);
        Self::new(settings, &data_dir.ok_or(ConfigError::NoDataDir)?, passphrase)
    }

    fn new(
        settings: Settings,
        data_dir: &Path,
        passphrase: Option<SecretString>,
    ) -> Result<Self, ConfigError> {
        let network = settings.network.unwrap_or(Network::Regtest);
        let network_dir = absolute(&data_dir.join(network.name()))?;
        let in_network_dir = |setting: Option<PathBuf>, name| match setting {
            Some(path) => absolute(&path),
            None => Ok(network_dir.join(name)),
        };
        let access = access(&settings.auth, settings.allow_unauthenticated)?;
        let is_protected = access.require_token || settings.allow_unauthenticated;
        let minerid = if settings.minerid.enabled {
            Some(MinerIdConfig {
                address: local_address(&settings, is_protected)?,
                data_dir: in_network_dir(settings.miner_id_data_path, "minerid")?,
            })
        } else {
            None
        };
        let wallet = if settings.wallet.enabled {
            Some(wallet(&settings.wallet, &settings.payments, is_protected)?)
        } else {
            None
        };
        let is_plain_allowed = network != Network::Livenet || settings.allow_plain_keystore;
        let keystore = KeystoreConfig {
            dir: in_network_dir(settings.keystore, "keystore")?,
            passphrase: one_passphrase(settings.keystore_passphrase_file.as_deref(), passphrase)?,
            plain_keys: if is_plain_allowed { PlainKeys::Allowed } else { PlainKeys::Refused },
        };
        let node = match (settings.rpc_user, settings.rpc_password) {
            (Some(user), Some(password)) => Some(NodeSettings {
                host: settings.rpc_host.unwrap_or_else(|| "127.0.0.1".to_owned()),
                port: settings.rpc_port.unwrap_or_else(|| default_rpc_port(network)),
                user,
                password,
            }),
            (None, None) => None,
            _ => {
                return Err(ConfigError::Inconsistent(
                    "rpcUser and rpcPassword must be set together",
                ));
            }
        };
        let check_hours =
            in_range("stores.checkHours", settings.stores.check_hours, 24, 1..=MAX_CHECK_HOURS)?;
        Ok(Self {
            network,
            network_dir,
            keystore,
            node,
            minerid,
            wallet,
            allowed_hosts: settings.allowed_hosts,
            access,
            log_requests: settings.log.requests,
            check_period: Duration::from_secs(u64::from(check_hours) * 3600),
        })
    }

    /// The effective values under the names of the settings, without secrets.
    pub fn to_json(&self) -> Value {
        let node = self.node.as_ref();
        let minerid = self.minerid.as_ref();
        let wallet = self.wallet.as_ref();
        let payments = wallet.map(|wallet| &wallet.payments);
        json!({
            "network": self.network.name(),
            "dataDir": self.network_dir,
            "keystore": self.keystore.dir,
            "keystorePassphrase": if self.keystore.passphrase.is_some() { "set" } else { "none" },
            "rpcHost": node.map(|node| &node.host),
            "rpcPort": node.map(|node| node.port),
            "rpcUser": node.map(|node| &node.user),
            "rpcPassword": if node.is_some() { "set" } else { "none" },
            "host": minerid.map(|minerid| minerid.address.ip()),
            "port": minerid.map(|minerid| minerid.address.port()),
            "minerIdDataPath": minerid.map(|minerid| &minerid.data_dir),
            "allowedHosts": self.allowed_hosts,
            "auth": {
                "requireToken": self.access.require_token,
                "jwtKey": if self.access.jwt_key.is_some() { "set" } else { "none" },
            },
            "log": { "requests": self.log_requests },
            "stores": { "checkHours": self.check_period.as_secs() / 3600 },
            "minerid": { "enabled": minerid.is_some() },
            "wallet": {
                "enabled": wallet.is_some(),
                "host": wallet.map(|wallet| wallet.address.ip()),
                "port": wallet.map(|wallet| wallet.address.port()),
                "paymentExpiryHours": wallet.map(|wallet| wallet.expiry.as_secs() / 3600),
                "cacheMegabytes": wallet.map(|wallet| wallet.cache_bytes >> 20),
                "payLimitSatoshis": wallet.map(|wallet| wallet.pay_limit),
                "maxFeeRate": wallet.map(|wallet| wallet.max_fee_rate),
                "merchant": wallet.map(|wallet| json!({
                    "name": wallet.merchant.name,
                    "email": wallet.merchant.email,
                    "address": wallet.merchant.address,
                    "avatar": wallet.merchant.avatar,
                })),
            },
            "payments": {
                "host": payments.map(|payments| payments.address.ip()),
                "port": payments.map(|payments| payments.address.port()),
                "publicUrl": payments.map(PaymentsConfig::public_url),
                "feeRate": payments.map(|payments| payments.fee_rate),
                "connections": payments.map(|payments| payments.connections),
                "connectionsPerPeer": payments.map(|payments| payments.peers.connections),
                "requestsPerSecond": payments.map(|payments| payments.peers.requests_per_second),
                "requestBurst": payments.map(|payments| payments.peers.burst),
                "trustedProxies": payments.map(|payments| &payments.peers.trusted_proxies)
                    .map(|proxies| proxies.iter().map(ToString::to_string).collect::<Vec<_>>()),
                "limitLoopback": payments.map(|payments| payments.peers.limit_loopback),
            },
        })
    }
}

fn access(
    settings: &AuthSettings,
    allow_unauthenticated: bool,
) -> Result<AccessConfig, ConfigError> {
    let AuthSettings { require_token, jwt_key } = settings;
    let require_token = *require_token;
    if require_token && allow_unauthenticated {
        return Err(ConfigError::Inconsistent(
            "auth.requireToken and allowUnauthenticated contradict each other: set one of them",
        ));
    }
    if jwt_key.is_some() && !require_token {
        return Err(ConfigError::Inconsistent(
            "auth.jwtKey protects nothing while no token is demanded: set auth.requireToken = true",
        ));
    }
    let jwt_key = jwt_key.clone().map(JwtKey::new).transpose()?;
    Ok(AccessConfig { require_token, jwt_key })
}

/// The address of the miner identity listener.
fn local_address(settings: &Settings, is_protected: bool) -> Result<SocketAddr, ConfigError> {
    let host = settings.host.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    if !host.is_loopback() && !is_protected {
        return Err(ConfigError::Inconsistent(
            "host is reachable from other machines, and the miner identity service signs for \
             everybody who reaches it: use 127.0.0.1, demand tokens with auth.requireToken = true, \
             or say with allowUnauthenticated = true that a secure front end protects it",
        ));
    }
    Ok(SocketAddr::new(host, settings.port.unwrap_or(9002)))
}

fn wallet(
    settings: &WalletSettings,
    payments: &PaymentsSettings,
    is_protected: bool,
) -> Result<WalletConfig, ConfigError> {
    let host = settings.host.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    if !host.is_loopback() && !is_protected {
        return Err(ConfigError::Inconsistent(
            "wallet.host is reachable from other machines, and the wallet obeys everybody who \
             reaches it: use 127.0.0.1, demand tokens with auth.requireToken = true, or say with \
             allowUnauthenticated = true that a secure front end protects it",
        ));
    }
    let hours = settings.payment_expiry_hours.unwrap_or(24);
    if !(1..=MAX_EXPIRY_HOURS).contains(&hours) {
        return Err(ConfigError::Inconsistent(
            "wallet.paymentExpiryHours must be from 1 to 87600, which are ten years",
        ));
    }
    let megabytes = settings.cache_megabytes.unwrap_or(48);
    if !(1..=MAX_CACHE_MEGABYTES).contains(&megabytes) {
        return Err(ConfigError::Inconsistent("wallet.cacheMegabytes must be from 1 to 65536"));
    }
    let MerchantSettings { name, email, address, avatar } = &settings.merchant;
    let merchant = Merchant {
        name: name.clone(),
        email: email.clone(),
        address: address.clone(),
        avatar: avatar.clone(),
    };
    Ok(WalletConfig {
        address: SocketAddr::new(host, settings.port.unwrap_or(8443)),
        expiry: Duration::from_secs(u64::from(hours) * 3600),
        cache_bytes: (megabytes as usize) << 20,
        merchant,
        pay_limit: settings.pay_limit_satoshis.unwrap_or(MAX_SATOSHIS),
        max_fee_rate: settings.max_fee_rate.unwrap_or(DEFAULT_MAX_FEE_RATE),
        payments: payments_config(payments)?,
    })
}

fn payments_config(settings: &PaymentsSettings) -> Result<PaymentsConfig, ConfigError> {
    let public_url = settings.public_url.as_deref();
    if !public_url.is_none_or(is_public_url) {
        return Err(ConfigError::Inconsistent(
            "payments.publicUrl must be a URL such as https://pay.example.com, without a query",
        ));
    }
    let host = settings.host.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    if host.is_unspecified() && public_url.is_none() {
        return Err(ConfigError::Inconsistent(
            "payments.host does not say where payers reach it: set payments.publicUrl",
        ));
    }
    Ok(PaymentsConfig {
        address: SocketAddr::new(host, settings.port.unwrap_or(8445)),
        public_url: public_url.map(|url| url.trim_end_matches('/').to_owned()),
        fee_rate: settings.fee_rate.unwrap_or(DEFAULT_FEE_RATE),
        connections: in_range("payments.connections", settings.connections, 1024, 1..=100_000)?,
        peers: peers(settings)?,
    })
}

fn peers(settings: &PaymentsSettings) -> Result<PeerConfig, ConfigError> {
    let PeerConfig { connections, requests_per_second, burst, .. } = PeerConfig::default();
    let proxies = settings.trusted_proxies.iter().map(|text| {
        let network = text.parse().or_else(|_| text.parse().map(|address: IpAddr| address.into()));
        network.map_err(|_| ConfigError::BadProxy(text.clone()))
    });
    Ok(PeerConfig {
        connections: in_range(
            "payments.connectionsPerPeer",
            settings.connections_per_peer,
            connections,
            1..=100_000,
        )?,
        requests_per_second: in_range(
            "payments.requestsPerSecond",
            settings.requests_per_second,
            requests_per_second,
            1..=1_000_000,
        )?,
        burst: in_range("payments.requestBurst", settings.request_burst, burst, 1..=1_000_000)?,
        trusted_proxies: proxies.collect::<Result<_, _>>()?,
        limit_loopback: settings.limit_loopback,
    })
}

fn in_range(
    setting: &'static str,
    value: Option<u32>,
    default: u32,
    allowed: RangeInclusive<u32>,
) -> Result<u32, ConfigError> {
    let value = value.unwrap_or(default);
    if allowed.contains(&value) {
        Ok(value)
    } else {
        Err(ConfigError::OutOfRange { setting, allowed })
    }
}

/// What miners ask for, in satoshis per 1000 bytes.
const DEFAULT_FEE_RATE: u64 = 100;
/// Twice what payees asked for when fees were higher, in satoshis per 1000 bytes.
const DEFAULT_MAX_FEE_RATE: u64 = 1000;
const MAX_EXPIRY_HOURS: u32 = 87_600;
const MAX_CACHE_MEGABYTES: u32 = 1 << 16;
const MAX_CHECK_HOURS: u32 = 8760;

/// Whether payment URLs can begin with this, and stand in headers as they are.
fn is_public_url(url: &str) -> bool {
    let uri: Option<hyper::Uri> = url.parse().ok();
    uri.is_some_and(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https"))
            && uri.host().is_some_and(|host| !host.is_empty())
            && uri.query().is_none()
    }) && url.is_ascii()
        && !url.contains(['#', '<', '>', '"', '@'])
}

fn default_rpc_port(network: Network) -> u16 {
    match network {
        Network::Livenet => 8332,
        Network::Testnet => 18332,
        Network::Regtest => 18443,
    }
}

fn one_passphrase(
    file: Option<&Path>,
    variable: Option<SecretString>,
) -> Result<Option<SecretString>, ConfigError> {
    let passphrase = match (file, variable) {
        (Some(_), Some(_)) => {
            return Err(ConfigError::Inconsistent(
                "keystorePassphraseFile and BSV_KEYSTORE_PASSPHRASE are both set: use one",
            ));
        }
        (Some(path), None) => {
            let text = SecretString::from(read(path)?);
            Some(SecretString::from(text.expose_secret().trim_end_matches(['\r', '\n'])))
        }
        (None, variable) => variable,
    };
    if passphrase.as_ref().is_some_and(|passphrase| passphrase.expose_secret().is_empty()) {
        return Err(ConfigError::Inconsistent("the keystore's passphrase is empty"));
    }
    Ok(passphrase)
}

fn read_file(path: &Path) -> Result<Value, ConfigError> {
    let origin = path.display().to_string();
    let text = read(path)?;
    let settings: Value = toml::from_str(&text).map_err(|error| ConfigError::Malformed {
        origin: origin.clone(),
        reason: toml_error(&text, &error),
    })?;
    Settings::read(&origin, settings.clone())?;
    Ok(settings)
}

/// Says what is wrong, and where. The line itself may hold a password.
fn toml_error(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start));
    let Some(before) = before else { return error.message().to_owned() };
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    format!("line {line}, column {column}: {}", error.message())
}

fn read_variable(text: &str) -> Result<Value, ConfigError> {
    let settings: Value = serde_json::from_str(text).map_err(|error| ConfigError::Malformed {
        origin: CONFIG_VARIABLE.to_owned(),
        reason: error.to_string(),
    })?;
    Settings::read(CONFIG_VARIABLE, settings.clone())?;
    Ok(settings)
}

/// Puts the leaves of `over` over those of `base`.
fn merge(base: &mut Value, over: Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                merge(base.entry(key).or_insert(Value::Null), value);
            }
        }
        (base, over) => *base = over,
    }
}

fn read(path: &Path) -> Result<String, ConfigError> {
    fs::read_to_string(path).map_err(|source| ConfigError::Read { path: path.to_owned(), source })
}

fn environment(name: &str) -> Result<Option<String>, ConfigError> {
    match std::env::var(name) {
        Ok(text) => Ok(Some(text)),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(std::env::VarError::NotUnicode(_)) => Err(ConfigError::Malformed {
            origin: name.to_owned(),
            reason: "it is not UTF-8".to_owned(),
        }),
    }
}

fn default_data_dir() -> Option<PathBuf> {
    let absolute_variable =
        |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute_variable("XDG_DATA_HOME")
        .or_else(|| absolute_variable("HOME").map(|home| home.join(".local/share")))
        .map(|dir| dir.join("bsv-server"))
}

fn absolute(path: &Path) -> Result<PathBuf, ConfigError> {
    std::path::absolute(path).map_err(|source| ConfigError::Read { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests;
