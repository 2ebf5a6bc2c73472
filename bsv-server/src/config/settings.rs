use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use bsv_invoicing::dpp::Merchant;
use bsv_invoicing::invoices::{LatePayments, MAX_SATOSHIS};
use bsv_tx::Network;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::error::ConfigError;

/// The settings with their names and defaults. Settings at the top level have the names of the
/// miner identity specification.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct Settings {
    #[serde(serialize_with = "write_network", deserialize_with = "read_network")]
    pub(super) network: Network,
    pub(super) host: IpAddr,
    pub(super) port: u16,
    /// Default: `minerid` in the directory of the network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) miner_id_data_path: Option<PathBuf>,
    /// Default: `keystore` in the directory of the network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) keystore: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) keystore_passphrase_file: Option<PathBuf>,
    pub(super) allow_plain_keystore: bool,
    pub(super) rpc_host: String,
    /// Default: the port of the network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rpc_port: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rpc_user: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rpc_password: Option<Secret>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rpc_cookie_file: Option<PathBuf>,
    pub(super) allow_unauthenticated: bool,
    pub(super) allowed_hosts: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tls: Option<TlsFiles>,
    pub(super) minerid: MinerIdSettings,
    pub(super) wallet: WalletSettings,
    pub(super) payments: PaymentsSettings,
    pub(super) webhooks: WebhooksSettings,
    pub(super) services: ServicesSettings,
    pub(super) auth: AuthSettings,
    pub(super) log: LogSettings,
    pub(super) metrics: MetricsSettings,
    pub(super) http: HttpSettings,
    pub(super) stores: StoresSettings,
    pub(super) cli: CliSettings,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            network: Network::Regtest,
            host: LOCALHOST,
            port: 9002,
            miner_id_data_path: None,
            keystore: None,
            keystore_passphrase_file: None,
            allow_plain_keystore: false,
            rpc_host: "127.0.0.1".to_owned(),
            rpc_port: None,
            rpc_user: None,
            rpc_password: None,
            rpc_cookie_file: None,
            allow_unauthenticated: false,
            allowed_hosts: Vec::new(),
            tls: None,
            minerid: MinerIdSettings::default(),
            wallet: WalletSettings::default(),
            payments: PaymentsSettings::default(),
            webhooks: WebhooksSettings::default(),
            services: ServicesSettings::default(),
            auth: AuthSettings::default(),
            log: LogSettings::default(),
            metrics: MetricsSettings::default(),
            http: HttpSettings::default(),
            stores: StoresSettings::default(),
            cli: CliSettings::default(),
        }
    }
}

const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// The files for TLS of a listener.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct TlsFiles {
    /// The listener's certificate, followed by those up to an authority, in PEM form.
    pub certificate: PathBuf,
    /// The private key of that certificate, in PEM form.
    pub key: PathBuf,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct MinerIdSettings {
    pub(super) enabled: bool,
    pub(super) ask_node_ms: u32,
    pub(super) stale_copy: StaleCopy,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) node_listener: Option<NodeListenerSettings>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct NodeListenerSettings {
    #[serde(default = "localhost")]
    pub(super) host: IpAddr,
    #[serde(default = "node_listener_port")]
    pub(super) port: u16,
    pub(super) alias: String,
    #[serde(default)]
    pub(super) allow_unauthenticated: bool,
}

fn localhost() -> IpAddr {
    LOCALHOST
}

fn node_listener_port() -> u16 {
    9003
}

/// What happens to documents of an identity while the node knows a newer state than this copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StaleCopy {
    /// The documents are answered, and nodes ignore them.
    Answer,
    /// The documents are refused.
    Refuse,
}

impl Default for MinerIdSettings {
    fn default() -> Self {
        Self { enabled: true, ask_node_ms: 300, stale_copy: StaleCopy::Answer, node_listener: None }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct WalletSettings {
    pub(super) enabled: bool,
    pub(super) host: IpAddr,
    pub(super) port: u16,
    pub(super) payment_expiry_hours: u32,
    pub(super) cache_megabytes: u32,
    pub(super) pay_limit_satoshis: u64,
    /// In satoshis per 1000 bytes.
    pub(super) max_fee_rate: u64,
    /// In satoshis.
    pub(super) underpaid_tolerance: u64,
    pub(super) late_payments: LatePaymentsSetting,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) zero_conf_limit_satoshis: Option<Limit>,
    /// Default: 1 with a node, 2 with services.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) mined_blocks: Option<u32>,
    /// Needed only if both a node and services are configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) source: Option<SourceSetting>,
    /// Default: the address that the node answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) zmq: Option<String>,
    pub(super) consolidate: bool,
    pub(super) streams: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tls: Option<TlsFiles>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) store: Option<WalletStoreSettings>,
    pub(super) merchant: MerchantSettings,
}

/// A database that the wallet lies in.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct WalletStoreSettings {
    pub(super) url: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) password_file: Option<PathBuf>,
}

impl Default for WalletSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            host: LOCALHOST,
            port: 8443,
            payment_expiry_hours: 24,
            cache_megabytes: 48,
            pay_limit_satoshis: MAX_SATOSHIS,
            // Twice the rate that payees required when fees were higher.
            max_fee_rate: 1000,
            underpaid_tolerance: 0,
            late_payments: LatePaymentsSetting::Hold,
            zero_conf_limit_satoshis: None,
            mined_blocks: None,
            source: None,
            zmq: None,
            consolidate: false,
            streams: 64,
            tls: None,
            store: None,
            merchant: MerchantSettings::default(),
        }
    }
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum LatePaymentsSetting {
    Hold,
    Accept,
}

impl From<LatePaymentsSetting> for LatePayments {
    fn from(setting: LatePaymentsSetting) -> Self {
        match setting {
            LatePaymentsSetting::Hold => Self::Hold,
            LatePaymentsSetting::Accept => Self::Accept,
        }
    }
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct MerchantSettings {
    pub(super) name: String,
    pub(super) email: String,
    pub(super) address: String,
    pub(super) avatar: String,
}

impl From<MerchantSettings> for Merchant {
    fn from(settings: MerchantSettings) -> Self {
        let MerchantSettings { name, email, address, avatar } = settings;
        Self { name, email, address, avatar }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct PaymentsSettings {
    pub(super) host: IpAddr,
    pub(super) port: u16,
    /// Default: the listener's own address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) public_url: Option<String>,
    /// In satoshis per 1000 bytes.
    pub(super) fee_rate: u64,
    pub(super) connections: u32,
    pub(super) connections_per_peer: u32,
    pub(super) streams: u32,
    pub(super) streams_per_peer: u32,
    pub(super) requests_per_second: u32,
    pub(super) request_burst: u32,
    pub(super) trusted_proxies: Vec<String>,
    pub(super) limit_loopback: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tls: Option<TlsFiles>,
    pub(super) page: PageSettings,
}

impl Default for PaymentsSettings {
    fn default() -> Self {
        Self {
            host: LOCALHOST,
            port: 8445,
            public_url: None,
            // The usual fee rate of miners.
            fee_rate: 100,
            connections: 1024,
            connections_per_peer: 64,
            streams: 512,
            streams_per_peer: 4,
            requests_per_second: 20,
            request_burst: 100,
            trusted_proxies: Vec::new(),
            limit_loopback: false,
            tls: None,
            page: PageSettings::default(),
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct PageSettings {
    pub(super) enabled: bool,
    pub(super) browser_wallets: bool,
    pub(super) embedders: Vec<String>,
    pub(super) show_reference: bool,
}

impl Default for PageSettings {
    fn default() -> Self {
        Self { enabled: true, browser_wallets: true, embedders: Vec::new(), show_reference: false }
    }
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct WebhooksSettings {
    pub(super) allow_networks: Vec<String>,
}

/// What tells the wallet of the network.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum SourceSetting {
    Node,
    Services,
}

/// An amount in satoshis, or `"none"`.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a number of satoshis, or \"none\"")]
pub(super) enum Limit {
    Satoshis(u64),
    None(NoLimit),
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum NoLimit {
    None,
}

impl Limit {
    pub(super) fn satoshis(self) -> Option<u64> {
        match self {
            Self::Satoshis(satoshis) => Some(satoshis),
            Self::None(NoLimit::None) => None,
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct ServicesSettings {
    pub(super) seen_by: u32,
    pub(super) accept_timeout_seconds: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) callback_url: Option<String>,
    /// Default: 50 times `wallet.zeroConfLimitSatoshis`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) exposure_satoshis: Option<Limit>,
    pub(super) broadcasters: Vec<BroadcasterSettings>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) headers: Option<HeadersSettings>,
}

impl Default for ServicesSettings {
    fn default() -> Self {
        Self {
            seen_by: 1,
            accept_timeout_seconds: 10,
            callback_url: None,
            exposure_satoshis: None,
            broadcasters: Vec::new(),
            headers: None,
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct BroadcasterSettings {
    pub(super) kind: BroadcasterKind,
    pub(super) url: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) api_key_file: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) requests_per_second: Option<u32>,
    #[serde(default)]
    pub(super) allow_http: bool,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum BroadcasterKind {
    Arcade,
    Arc,
}

/// Where block headers come from. Without any name: from nodes that the seeds of the network name.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct HeadersSettings {
    pub(super) urls: Vec<String>,
    pub(super) peers: Vec<String>,
    pub(super) allow_http: bool,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct AuthSettings {
    pub(super) require_token: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) jwt_key: Option<Secret>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct LogSettings {
    pub(super) requests: bool,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct MetricsSettings {
    pub(super) balance: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct HttpSettings {
    pub(super) drain_seconds: u32,
    pub(super) stalled_seconds: u32,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self { drain_seconds: 30, stalled_seconds: 30 }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct StoresSettings {
    pub(super) check_hours: u32,
}

impl Default for StoresSettings {
    fn default() -> Self {
        Self { check_hours: 24 }
    }
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct CliSettings {
    pub(super) assume_yes: bool,
}

impl Settings {
    /// Reads settings from `values`, which come from `origin`. A null is refused: it would hide which
    /// value counts, that of another origin or the default.
    pub(super) fn read(origin: &str, values: Value) -> Result<Self, ConfigError> {
        // Serde reads an array into a struct too, so arrays are refused here.
        if !values.is_object() {
            let reason = "settings are an object".to_owned();
            return Err(ConfigError::Malformed { origin: origin.to_owned(), reason });
        }
        if let Some(setting) = first_null(&values) {
            let reason = format!("{setting}: null is no value: leave the setting out");
            return Err(ConfigError::Malformed { origin: origin.to_owned(), reason });
        }
        serde_path_to_error::deserialize(values).map_err(|error| {
            let path = error.path().to_string();
            let reason = error.into_inner().to_string();
            ConfigError::Malformed {
                origin: origin.to_owned(),
                reason: if path == "." { reason } else { format!("{path}: {reason}") },
            }
        })
    }

    /// The files with secrets that these settings name.
    pub(super) fn secret_files(&self) -> impl Iterator<Item = &PathBuf> {
        let tls = [&self.tls, &self.wallet.tls, &self.payments.tls];
        let keys = tls.into_iter().flatten().map(|files| &files.key);
        let store = self.wallet.store.as_ref().and_then(|store| store.password_file.as_ref());
        let services = self.services.broadcasters.iter().filter_map(|it| it.api_key_file.as_ref());
        self.keystore_passphrase_file.iter().chain(store).chain(keys).chain(services)
    }
}

/// The name of the first setting that is null, such as `auth.jwtKey`.
fn first_null(values: &Value) -> Option<String> {
    values.as_object()?.iter().find_map(|(name, value)| match value {
        Value::Null => Some(name.clone()),
        value => Some(format!("{name}.{}", first_null(value)?)),
    })
}

/// A setting that is never shown.
#[derive(Clone, Debug)]
pub(super) struct Secret(SecretString);

/// The placeholder that is shown instead of a secret.
const REDACTED: &str = "<redacted>";

impl Secret {
    /// The secret. Fails if it is the placeholder. `setting` is the setting's name.
    pub(super) fn get(self, setting: &'static str) -> Result<SecretString, ConfigError> {
        match self.0.expose_secret() {
            REDACTED => Err(ConfigError::Redacted(setting)),
            _ => Ok(self.0),
        }
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(REDACTED)
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The error must not quote a value of a wrong type.
        match Value::deserialize(deserializer)? {
            Value::String(text) => Ok(Self(text.into())),
            _ => Err(serde::de::Error::custom("must be a string")),
        }
    }
}

fn read_network<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Network, D::Error> {
    let name = String::deserialize(deserializer)?;
    name.parse().map_err(serde::de::Error::custom)
}

fn write_network<S: Serializer>(network: &Network, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(network.name())
}
