//! The configuration: a TOML file, the environment, and the defaults.

mod checks;
mod clear_text;
mod error;
mod services;
mod settings;
mod shown;
mod sources;

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bsv_invoicing::PostgresOptions;
use bsv_invoicing::dpp::Merchant;
use bsv_invoicing::invoices::PaymentRules;
use bsv_minerid::{Alias, PlainKeys};
use bsv_network::headers::SourceNames;
use bsv_network::{NodeCredentials, NodeSettings};
use bsv_store::{KeystoreError, StretchedPassphrase};
use bsv_tx::Network;
use hyper::http::uri::Authority;
use ipnet::IpNet;
use secrecy::SecretString;

use self::checks::{in_range, is_public_url};
pub use self::error::ConfigError;
pub use self::services::{BroadcasterConfig, ServicesConfig};
use self::settings::{
    AuthSettings, NodeListenerSettings, PageSettings, PaymentsSettings, Settings, WalletSettings,
    WalletStoreSettings,
};
pub use self::settings::{StaleCopy, TlsFiles};
pub use self::shown::ShownSettings;
pub use self::sources::{CONFIG_VARIABLE, ConfigSources, PASSPHRASE_VARIABLE};
use self::sources::{absolute, read};
use crate::access::{AccessConfig, JwtKey};

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
    /// The services that the wallet asks in place of the node.
    pub services: Option<ServicesConfig>,
    /// Where block headers come from, if the server keeps them.
    pub headers: Option<SourceNames>,
    /// Names under which a browser may reach the local listeners, besides IP addresses and
    /// `localhost`.
    pub allowed_hosts: Vec<String>,
    /// How callers of the local listeners authenticate themselves.
    pub access: AccessConfig,
    /// Whether every request is logged.
    pub log_requests: bool,
    /// Whether the metrics include the wallet's balance.
    pub tells_balance: bool,
    /// How long requests in flight may continue once the server stops.
    pub drain_time: Duration,
    /// How long a client may take nothing of its answer.
    pub stalled_time: Duration,
    /// The time between two checks of the stores that are too long for a check at the start.
    pub check_period: Duration,
    /// Whether the command line takes every answer for yes where it cannot ask.
    pub assume_yes: bool,
}

/// Where private keys are stored and how they are protected.
#[derive(Clone, Debug)]
pub struct KeystoreConfig {
    /// The directory.
    pub dir: PathBuf,
    /// The passphrase that seals the keystore.
    pub passphrase: Option<SecretString>,
    /// Whether the keystore may have no passphrase.
    pub plain_keys: PlainKeys,
}

impl KeystoreConfig {
    /// The passphrase, stretched for the keystore. Stretch it before the data directory is opened,
    /// which other processes wait for.
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
    /// The address that its listener binds.
    pub address: SocketAddr,
    /// The files for TLS, if the listener uses TLS.
    pub tls: Option<TlsFiles>,
    /// The directory of its store.
    pub data_dir: PathBuf,
    /// How long a request may wait for the node if the request implies a new block.
    pub patience: Duration,
    /// What happens to documents of older copies of identities.
    pub stale_copy: StaleCopy,
    /// The listener for the node, if there is one.
    pub node_listener: Option<NodeListenerConfig>,
}

/// The listener that a node asks to authenticate its connections to other miners' nodes. This
/// listener uses neither TLS nor tokens, because nodes support neither.
#[derive(Clone, Debug)]
pub struct NodeListenerConfig {
    /// The address that it binds.
    pub address: SocketAddr,
    /// The only identity that it answers for.
    pub alias: Alias,
}

/// The wallet service.
#[derive(Clone, Debug)]
pub struct WalletConfig {
    /// The address that its listener binds.
    pub address: SocketAddr,
    /// The files for TLS, if the listener uses TLS.
    pub tls: Option<TlsFiles>,
    /// How long an invoice can be paid, unless the invoice says otherwise.
    pub expiry: Duration,
    /// The database that it lies in; none if it lies in a file of the data directory.
    pub store: Option<PostgresOptions>,
    /// The most memory that cached pages of the store may take, in bytes.
    pub cache_bytes: usize,
    /// The payee, as shown to payers.
    pub merchant: Merchant,
    /// The largest amount of one payment, in satoshis.
    pub pay_limit: u64,
    /// The highest fee rate that the wallet pays, in satoshis per 1000 bytes.
    pub max_fee_rate: u64,
    /// The rules that decide whether an invoice is paid.
    pub payment_rules: PaymentRules,
    /// The address at which the node publishes the transactions of its mempool, if the node's own
    /// answer is not used.
    pub transaction_feed: Option<String>,
    /// Whether the wallet consolidates small coins after each new block.
    pub consolidate: bool,
    /// The most concurrent streams of events. The same number limits the requests that wait for an
    /// event.
    pub streams: u32,
    /// Networks outside the public Internet that webhooks may lead to, also without TLS.
    pub webhook_networks: Vec<IpNet>,
    /// The payments listener.
    pub payments: PaymentsConfig,
}

/// The payments listener, and its answers to payers.
#[derive(Clone, Debug)]
pub struct PaymentsConfig {
    /// The address that it binds.
    pub address: SocketAddr,
    /// The files for TLS, if the listener uses TLS.
    pub tls: Option<TlsFiles>,
    /// The beginning of payment URLs, without a slash at the end. The URL must lead payers to this
    /// listener. Without a setting, the address is used.
    pub public_url: Option<String>,
    /// The fee rate that payers must pay, in satoshis per 1000 bytes.
    pub fee_rate: u64,
    /// The most connections, without those of streams. Further connections wait.
    pub connections: u32,
    /// The most concurrent streams of payment pages.
    pub streams: u32,
    /// The limits on one peer.
    pub peers: PeerConfig,
    /// The payment pages, if they are enabled.
    pub page: Option<PageConfig>,
}

/// The pages that show payers what they pay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageConfig {
    /// Whether a page may call a wallet on the payer's own machine.
    pub browser_wallets: bool,
    /// The origins of the web pages that may show a payment page in a frame, such as
    /// `https://shop.example`.
    pub embedders: Vec<String>,
    /// Whether the receipt on the page of a paid invoice shows the owner's reference.
    pub show_reference: bool,
}

/// The limits on one peer of the payments listener. A peer is an IPv4 address or an IPv6 network of
/// 64 bits. IPv6 networks of 56 bits have four times these limits, and those of 48 bits sixteen
/// times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerConfig {
    /// The most concurrent connections. Further ones are closed.
    pub connections: u32,
    /// The most concurrent streams of payment pages.
    pub streams: u32,
    /// The most requests per second, on average.
    pub requests_per_second: u32,
    /// The most requests at once after a pause.
    pub burst: u32,
    /// Front ends, which have no limits on connections and requests, and whose `X-Forwarded-For`
    /// names the peer.
    pub trusted_proxies: Vec<IpNet>,
    /// Whether the limits also apply to this machine.
    pub limit_loopback: bool,
}

impl Default for PeerConfig {
    fn default() -> Self {
        peers(&PaymentsSettings::default()).expect("the defaults can be used")
    }
}

impl PaymentsConfig {
    /// The beginning of payment URLs.
    pub fn public_url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        self.public_url.clone().unwrap_or_else(|| format!("{scheme}://{}", self.address))
    }
}

impl Config {
    /// Reads the file and the environment.
    pub fn load(sources: &ConfigSources) -> Result<Self, ConfigError> {
        Self::load_with_secret_files(sources).map(|(config, _)| config)
    }

    /// Reads the file and the environment. Answers the files with secrets, too.
    pub(crate) fn load_with_secret_files(
        sources: &ConfigSources,
    ) -> Result<(Self, Vec<PathBuf>), ConfigError> {
        let (settings, secret_files) = sources.read_settings()?;
        let passphrase = sources.read_passphrase(settings.keystore_passphrase_file.as_deref())?;
        Ok((Self::new(settings, &sources.data_dir()?, passphrase)?, secret_files))
    }

    fn new(
        settings: Settings,
        data_dir: &Path,
        passphrase: Option<SecretString>,
    ) -> Result<Self, ConfigError> {
        let network = settings.network;
        let network_dir = network_dir(data_dir, network)?;
        let settings = with_defaults(settings, &network_dir)?;
        let Settings { keystore, miner_id_data_path, .. } = &settings;
        let access = access(&settings.auth, settings.allow_unauthenticated)?;
        let is_protected = access.require_token || settings.allow_unauthenticated;
        let minerid = if settings.minerid.enabled {
            Some(MinerIdConfig {
                address: local_address(&settings, is_protected)?,
                tls: settings.tls.clone(),
                data_dir: miner_id_data_path.clone().unwrap_or_default(),
                patience: Duration::from_millis(u64::from(in_range(
                    "minerid.askNodeMs",
                    settings.minerid.ask_node_ms,
                    0..=MAX_ASK_NODE_MS,
                )?)),
                stale_copy: settings.minerid.stale_copy,
                node_listener: settings
                    .minerid
                    .node_listener
                    .as_ref()
                    .map(node_listener)
                    .transpose()?,
            })
        } else {
            None
        };
        let services = services::services(&settings)?;
        let wallet = match settings.wallet.enabled {
            true => Some(wallet(&settings, services.as_ref(), is_protected)?),
            false => None,
        };
        let is_plain_allowed = network != Network::Livenet || settings.allow_plain_keystore;
        let keystore = KeystoreConfig {
            dir: keystore.clone().unwrap_or_default(),
            passphrase,
            plain_keys: if is_plain_allowed { PlainKeys::Allowed } else { PlainKeys::Refused },
        };
        let seconds = |setting, value, most| {
            Ok::<_, ConfigError>(Duration::from_secs(in_range(setting, value, 1..=most)?.into()))
        };
        let http = &settings.http;
        let check_hours =
            in_range("stores.checkHours", settings.stores.check_hours, 1..=MAX_CHECK_HOURS)?;
        Ok(Self {
            network,
            network_dir,
            keystore,
            node: node(&settings)?,
            minerid,
            wallet,
            headers: services::headers(&settings, services.as_ref())?,
            services,
            allowed_hosts: settings.allowed_hosts.clone(),
            access,
            log_requests: settings.log.requests,
            tells_balance: settings.metrics.balance,
            drain_time: seconds("http.drainSeconds", http.drain_seconds, MAX_DRAIN_SECONDS)?,
            stalled_time: seconds(
                "http.stalledSeconds",
                http.stalled_seconds,
                MAX_STALLED_SECONDS,
            )?,
            check_period: Duration::from_secs(u64::from(check_hours) * 3600),
            assume_yes: settings.cli.assume_yes,
        })
    }
}

/// The directory that holds the data of a network.
fn network_dir(data_dir: &Path, network: Network) -> Result<PathBuf, ConfigError> {
    absolute(&data_dir.join(network.name()))
}

/// Completes the settings: with all paths, absolute, and the port of the node.
fn with_defaults(settings: Settings, network_dir: &Path) -> Result<Settings, ConfigError> {
    let in_network_dir = |setting: Option<PathBuf>, name| match setting {
        Some(path) => absolute(&path),
        None => Ok(network_dir.join(name)),
    };
    let files = |tls: Option<TlsFiles>| match tls {
        Some(TlsFiles { certificate, key }) => {
            Ok(Some(TlsFiles { certificate: absolute(&certificate)?, key: absolute(&key)? }))
        }
        None => Ok::<_, ConfigError>(None),
    };
    let Settings { wallet, payments, .. } = settings.clone();
    Ok(Settings {
        miner_id_data_path: Some(in_network_dir(settings.miner_id_data_path, "minerid")?),
        keystore: Some(in_network_dir(settings.keystore, "keystore")?),
        keystore_passphrase_file: settings
            .keystore_passphrase_file
            .map(|path| absolute(&path))
            .transpose()?,
        rpc_cookie_file: settings.rpc_cookie_file.map(|path| absolute(&path)).transpose()?,
        rpc_port: Some(settings.rpc_port.unwrap_or_else(|| default_rpc_port(settings.network))),
        tls: files(settings.tls)?,
        wallet: WalletSettings {
            tls: files(wallet.tls)?,
            store: wallet.store.map(with_absolute_file).transpose()?,
            ..wallet
        },
        payments: PaymentsSettings { tls: files(payments.tls)?, ..payments },
        ..settings
    })
}

fn with_absolute_file(store: WalletStoreSettings) -> Result<WalletStoreSettings, ConfigError> {
    let password_file = store.password_file.map(|path| absolute(&path)).transpose()?;
    Ok(WalletStoreSettings { password_file, ..store })
}

fn node(settings: &Settings) -> Result<Option<NodeSettings>, ConfigError> {
    let credentials = match (&settings.rpc_user, &settings.rpc_password, &settings.rpc_cookie_file)
    {
        (Some(user), Some(password), None) => {
            NodeCredentials::password(user, password.clone().get("rpcPassword")?)
        }
        (None, None, Some(file)) => NodeCredentials::CookieFile(file.clone()),
        (None, None, None) => return Ok(None),
        (_, _, Some(_)) => {
            return Err(ConfigError::Inconsistent(
                "rpcCookieFile takes the place of rpcUser and rpcPassword: set one or the other",
            ));
        }
        _ => return Err(ConfigError::Inconsistent("rpcUser and rpcPassword must be set together")),
    };
    let port = settings.rpc_port.unwrap_or_default();
    Ok(Some(NodeSettings { host: settings.rpc_host.clone(), port, credentials }))
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
            "auth.jwtKey has no effect without required tokens: set auth.requireToken = true",
        ));
    }
    let jwt_key = jwt_key.clone().map(|key| key.get("auth.jwtKey")).transpose()?;
    let jwt_key = jwt_key.map(JwtKey::new).transpose()?;
    Ok(AccessConfig { require_token, jwt_key })
}

/// The address of the miner identity listener.
fn local_address(settings: &Settings, is_protected: bool) -> Result<SocketAddr, ConfigError> {
    let host = settings.host;
    if !host.is_loopback() && !is_protected {
        return Err(ConfigError::Inconsistent(
            "host is reachable from other machines, and the miner identity service signs for \
             everybody who reaches it: use 127.0.0.1, require tokens with auth.requireToken = true, \
             or set allowUnauthenticated = true if a secure front end protects it",
        ));
    }
    Ok(SocketAddr::new(host, settings.port))
}

fn node_listener(settings: &NodeListenerSettings) -> Result<NodeListenerConfig, ConfigError> {
    let NodeListenerSettings { host, port, alias, allow_unauthenticated } = settings;
    if !host.is_loopback() && !allow_unauthenticated {
        return Err(ConfigError::Inconsistent(
            "minerid.nodeListener.host is reachable from other machines, and the listener signs for \
             everybody who reaches it: use 127.0.0.1, or set \
             minerid.nodeListener.allowUnauthenticated = true if only the node reaches it",
        ));
    }
    Ok(NodeListenerConfig { address: SocketAddr::new(*host, *port), alias: alias.parse()? })
}

fn wallet(
    settings: &Settings,
    services: Option<&ServicesConfig>,
    is_protected: bool,
) -> Result<WalletConfig, ConfigError> {
    let (zero_conf_limit, exposure_limit, mined_blocks) =
        services::unproven_limits(settings, services);
    let Settings { wallet: settings, payments, webhooks, .. } = settings;
    let host = settings.host;
    if !host.is_loopback() && !is_protected {
        return Err(ConfigError::Inconsistent(
            "wallet.host is reachable from other machines, and the wallet obeys everybody who \
             reaches it: use 127.0.0.1, require tokens with auth.requireToken = true, or set \
             allowUnauthenticated = true if a secure front end protects it",
        ));
    }
    let hours = settings.payment_expiry_hours;
    if !(1..=MAX_EXPIRY_HOURS).contains(&hours) {
        return Err(ConfigError::Inconsistent(
            "wallet.paymentExpiryHours must be from 1 to 87600, which are ten years",
        ));
    }
    let megabytes = settings.cache_megabytes;
    if !(1..=MAX_CACHE_MEGABYTES).contains(&megabytes) {
        return Err(ConfigError::Inconsistent("wallet.cacheMegabytes must be from 1 to 65536"));
    }
    if settings.zmq.as_ref().is_some_and(|zmq| !zmq.starts_with("tcp://")) {
        return Err(ConfigError::Inconsistent(
            "wallet.zmq must be an address such as tcp://127.0.0.1:28332",
        ));
    }
    Ok(WalletConfig {
        address: SocketAddr::new(host, settings.port),
        tls: settings.tls.clone(),
        expiry: Duration::from_secs(u64::from(hours) * 3600),
        store: settings.store.as_ref().map(wallet_store).transpose()?,
        cache_bytes: (megabytes as usize) << 20,
        merchant: settings.merchant.clone().into(),
        pay_limit: settings.pay_limit_satoshis,
        max_fee_rate: settings.max_fee_rate,
        payment_rules: PaymentRules {
            underpaid_tolerance: settings.underpaid_tolerance,
            late: settings.late_payments.into(),
            zero_conf_limit,
            mined_blocks: in_range("wallet.minedBlocks", mined_blocks, 1..=100)?,
            exposure_limit,
        },
        transaction_feed: settings.zmq.clone(),
        consolidate: settings.consolidate,
        streams: in_range("wallet.streams", settings.streams, 1..=10_000)?,
        webhook_networks: networks("webhooks.allowNetworks", &webhooks.allow_networks)?,
        payments: payments_config(payments)?,
    })
}

fn wallet_store(settings: &WalletStoreSettings) -> Result<PostgresOptions, ConfigError> {
    let options = PostgresOptions::from_url(&settings.url)?;
    if options.has_password() {
        return Err(ConfigError::Inconsistent(
            "wallet.store.url holds a password: put it in a file, and name that in wallet.store.passwordFile",
        ));
    }
    match &settings.password_file {
        Some(path) => Ok(options.with_password(read(path)?.trim_end_matches(['\r', '\n']))),
        None => Ok(options),
    }
}

fn payments_config(settings: &PaymentsSettings) -> Result<PaymentsConfig, ConfigError> {
    let public_url = settings.public_url.as_deref();
    if !public_url.is_none_or(is_public_url) {
        return Err(ConfigError::Inconsistent(
            "payments.publicUrl must be a URL such as https://pay.example.com, without a query",
        ));
    }
    let host = settings.host;
    if host.is_unspecified() && public_url.is_none() {
        return Err(ConfigError::Inconsistent(
            "payments.host does not say where payers reach it: set payments.publicUrl",
        ));
    }
    Ok(PaymentsConfig {
        address: SocketAddr::new(host, settings.port),
        tls: settings.tls.clone(),
        public_url: public_url.map(|url| url.trim_end_matches('/').to_owned()),
        fee_rate: settings.fee_rate,
        connections: in_range("payments.connections", settings.connections, 1..=100_000)?,
        streams: in_range("payments.streams", settings.streams, 1..=10_000)?,
        peers: peers(settings)?,
        page: settings.page.enabled.then(|| page(&settings.page)).transpose()?,
    })
}

fn page(settings: &PageSettings) -> Result<PageConfig, ConfigError> {
    let PageSettings { enabled: _, browser_wallets, embedders, show_reference } = settings;
    match embedders.iter().find(|text| !is_origin(text)) {
        Some(text) => Err(ConfigError::BadOrigin(text.clone())),
        None => Ok(PageConfig {
            browser_wallets: *browser_wallets,
            embedders: embedders.clone(),
            show_reference: *show_reference,
        }),
    }
}

fn peers(settings: &PaymentsSettings) -> Result<PeerConfig, ConfigError> {
    Ok(PeerConfig {
        connections: in_range(
            "payments.connectionsPerPeer",
            settings.connections_per_peer,
            1..=100_000,
        )?,
        streams: in_range("payments.streamsPerPeer", settings.streams_per_peer, 1..=10_000)?,
        requests_per_second: in_range(
            "payments.requestsPerSecond",
            settings.requests_per_second,
            1..=1_000_000,
        )?,
        burst: in_range("payments.requestBurst", settings.request_burst, 1..=1_000_000)?,
        trusted_proxies: networks("payments.trustedProxies", &settings.trusted_proxies)?,
        limit_loopback: settings.limit_loopback,
    })
}

/// Parses networks. A single address is a network too.
fn networks(setting: &'static str, texts: &[String]) -> Result<Vec<IpNet>, ConfigError> {
    let networks = texts.iter().map(|text| {
        let network = text.parse().or_else(|_| text.parse().map(|address: IpAddr| address.into()));
        network.map_err(|_| ConfigError::BadNetwork { setting, text: text.clone() })
    });
    networks.collect()
}

const MAX_EXPIRY_HOURS: u32 = 87_600;
const MAX_CACHE_MEGABYTES: u32 = 1 << 16;
const MAX_CHECK_HOURS: u32 = 8760;
/// The limit of a setting: a server that takes over the sockets waits a minute.
const MAX_DRAIN_SECONDS: u32 = 30;
const MAX_STALLED_SECONDS: u32 = 600;
/// The limit of a setting: a pool's job is late after a shorter wait.
const MAX_ASK_NODE_MS: u32 = 10_000;

/// Whether this is an origin of web pages in the spelling of browsers, which a header can hold
/// unchanged.
fn is_origin(text: &str) -> bool {
    let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    host.is_some_and(|host| {
        let is_host = |c: u8| c.is_ascii_alphanumeric() || b".-:[]".contains(&c);
        host.bytes().all(is_host) && host.parse().is_ok_and(|it: Authority| !it.host().is_empty())
    })
}

fn default_rpc_port(network: Network) -> u16 {
    match network {
        Network::Livenet => 8332,
        Network::Testnet | Network::Regtest => 18332,
    }
}

#[cfg(test)]
mod tests;
