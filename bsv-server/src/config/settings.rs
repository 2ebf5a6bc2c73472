use std::net::IpAddr;
use std::path::PathBuf;

use bsv_tx::Network;
use secrecy::SecretString;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::ConfigError;
use super::tls::TlsFiles;

/// The settings as they are written, each optional. The names at the top level are those of the
/// miner identity specification.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct Settings {
    pub(super) port: Option<u16>,
    pub(super) host: Option<IpAddr>,
    pub(super) tls: Option<TlsFiles>,
    pub(super) miner_id_data_path: Option<PathBuf>,
    pub(super) keystore: Option<PathBuf>,
    pub(super) keystore_passphrase_file: Option<PathBuf>,
    pub(super) allow_plain_keystore: bool,
    #[serde(deserialize_with = "network")]
    pub(super) network: Option<Network>,
    pub(super) rpc_host: Option<String>,
    pub(super) rpc_port: Option<u16>,
    pub(super) rpc_user: Option<String>,
    #[serde(deserialize_with = "secret")]
    pub(super) rpc_password: Option<SecretString>,
    pub(super) allow_unauthenticated: bool,
    pub(super) allowed_hosts: Vec<String>,
    pub(super) minerid: MinerIdSettings,
    pub(super) wallet: WalletSettings,
    pub(super) payments: PaymentsSettings,
    pub(super) auth: AuthSettings,
    pub(super) log: LogSettings,
    pub(super) stores: StoresSettings,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct AuthSettings {
    pub(super) require_token: bool,
    #[serde(deserialize_with = "secret")]
    pub(super) jwt_key: Option<SecretString>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct LogSettings {
    pub(super) requests: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct StoresSettings {
    pub(super) check_hours: Option<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct MinerIdSettings {
    pub(super) enabled: bool,
}

impl Default for MinerIdSettings {
    fn default() -> Self {
        Self { enabled: true }
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct WalletSettings {
    pub(super) enabled: bool,
    pub(super) host: Option<IpAddr>,
    pub(super) port: Option<u16>,
    pub(super) tls: Option<TlsFiles>,
    pub(super) payment_expiry_hours: Option<u32>,
    pub(super) cache_megabytes: Option<u32>,
    pub(super) pay_limit_satoshis: Option<u64>,
    pub(super) max_fee_rate: Option<u64>,
    pub(super) merchant: MerchantSettings,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct MerchantSettings {
    pub(super) name: String,
    pub(super) email: String,
    pub(super) address: String,
    pub(super) avatar: String,
}

impl Default for WalletSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            host: None,
            port: None,
            tls: None,
            payment_expiry_hours: None,
            cache_megabytes: None,
            pay_limit_satoshis: None,
            max_fee_rate: None,
            merchant: MerchantSettings::default(),
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct PaymentsSettings {
    pub(super) host: Option<IpAddr>,
    pub(super) port: Option<u16>,
    pub(super) tls: Option<TlsFiles>,
    pub(super) fee_rate: Option<u64>,
    pub(super) public_url: Option<String>,
    pub(super) connections: Option<u32>,
    pub(super) connections_per_peer: Option<u32>,
    pub(super) requests_per_second: Option<u32>,
    pub(super) request_burst: Option<u32>,
    pub(super) trusted_proxies: Vec<String>,
    pub(super) limit_loopback: bool,
}

impl Settings {
    /// Reads settings out of `values`, which come from `origin`.
    pub(super) fn read(origin: &str, values: Value) -> Result<Self, ConfigError> {
        // An array would pass for an object: serde reads both into a struct.
        if !values.is_object() {
            let reason = "settings are an object".to_owned();
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
}

fn network<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Network>, D::Error> {
    let name: Option<String> = Option::deserialize(deserializer)?;
    name.map(|name| name.parse()).transpose().map_err(serde::de::Error::custom)
}

fn secret<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SecretString>, D::Error> {
    // A wrong type must not be quoted in the error.
    match Value::deserialize(deserializer)? {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text.into())),
        _ => Err(serde::de::Error::custom("must be a string")),
    }
}
