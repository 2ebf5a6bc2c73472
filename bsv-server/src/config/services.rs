//! The settings of the services that tell of the network.

use std::time::Duration;

use bsv_network::broadcasters::Dialect;
use bsv_network::headers::SourceNames;
use bsv_tx::Network;
use hyper::http::uri::Authority;
use secrecy::SecretString;

use super::checks::{in_range, is_loopback, is_public_url};
use super::error::ConfigError;
use super::settings::{
    BroadcasterKind, BroadcasterSettings, HeadersSettings, Limit, ServicesSettings, Settings,
    SourceSetting,
};
use super::sources::read;

/// The services that the wallet asks in place of a node.
#[derive(Clone, Debug)]
pub struct ServicesConfig {
    /// The broadcasters, in the order in which they are asked.
    pub broadcasters: Vec<BroadcasterConfig>,
    /// How many of them must have a transaction before it counts.
    pub seen_by: usize,
    /// How long a payer waits until they have it.
    pub accept_timeout: Duration,
    /// The URL to which they post what changes, if they should.
    pub callback_url: Option<String>,
}

/// A broadcaster.
#[derive(Clone, Debug)]
pub struct BroadcasterConfig {
    /// Its dialect.
    pub dialect: Dialect,
    /// The URL that its routes begin with.
    pub url: String,
    /// The API key that it is shown.
    pub api_key: Option<SecretString>,
    /// How often it is asked in a second at most, unless it is the default.
    pub requests_per_second: Option<u32>,
}

/// Exposure to the word of services, in multiples of the amount that counts without a block.
const EXPOSED_PAYMENTS: u64 = 50;
/// How deep a payment above the limit must be in the chain, by default: headers prove work, and not
/// that a block is valid.
const MINED_BLOCKS: u32 = 2;

/// The services, if the wallet asks them. A node and services together need a choice.
pub(super) fn services(settings: &Settings) -> Result<Option<ServicesConfig>, ConfigError> {
    let ServicesSettings { broadcasters, seen_by, accept_timeout_seconds, .. } = &settings.services;
    let has_node = settings.rpc_user.is_some() || settings.rpc_cookie_file.is_some();
    match (settings.wallet.source, has_node, !broadcasters.is_empty()) {
        (None, true, true) => {
            return Err(ConfigError::Inconsistent(
                "a node and services.broadcasters are both configured: say with wallet.source = \"node\" or \
                 \"services\" which of them the wallet asks",
            ));
        }
        (Some(SourceSetting::Services), _, false) => {
            return Err(ConfigError::Inconsistent(
                "wallet.source is \"services\", and services.broadcasters names none",
            ));
        }
        (Some(SourceSetting::Node), false, _) => {
            return Err(ConfigError::Inconsistent(
                "wallet.source is \"node\", and no node is configured: set rpcUser and rpcPassword, or \
                 rpcCookieFile",
            ));
        }
        (Some(SourceSetting::Node), ..) | (None, _, false) => return Ok(None),
        (Some(SourceSetting::Services), _, true) | (None, false, true) => {}
    }
    if settings.wallet.enabled && settings.wallet.zero_conf_limit_satoshis.is_none() {
        return Err(ConfigError::Inconsistent(
            "wallet.zeroConfLimitSatoshis must be set with services, because they give only their word: set \
             the amount up to which you deliver before a block holds the payment (0 for never), or \"none\"",
        ));
    }
    let callback_url = settings.services.callback_url.as_ref();
    let most = u32::try_from(broadcasters.len()).unwrap_or(u32::MAX);
    Ok(Some(ServicesConfig {
        broadcasters: broadcasters.iter().map(broadcaster).collect::<Result<_, _>>()?,
        seen_by: in_range("services.seenBy", *seen_by, 1..=most)? as usize,
        accept_timeout: Duration::from_secs(
            in_range("services.acceptTimeoutSeconds", *accept_timeout_seconds, 1..=60)?.into(),
        ),
        callback_url: callback_url
            .map(|url| checked_callback_url(url, broadcasters))
            .transpose()?,
    }))
}

/// The URL for callbacks. Their token goes with each transaction, so whoever listens to broadcasters
/// without TLS knows it anyway.
fn checked_callback_url(
    url: &str,
    broadcasters: &[BroadcasterSettings],
) -> Result<String, ConfigError> {
    let are_open = broadcasters.iter().all(|it| it.allow_http);
    let has_path = |url: &str| url.parse().is_ok_and(|uri: hyper::Uri| uri.path() != "/");
    match is_usable(url, are_open) && has_path(url) {
        true => Ok(url.to_owned()),
        false => Err(ConfigError::BadCallbackUrl(url.to_owned())),
    }
}

fn broadcaster(settings: &BroadcasterSettings) -> Result<BroadcasterConfig, ConfigError> {
    let BroadcasterSettings { kind, url, api_key_file, requests_per_second, allow_http } = settings;
    if !is_usable(url, *allow_http) {
        return Err(ConfigError::BadServiceUrl {
            setting: "services.broadcasters",
            url: url.clone(),
            allow: "allowHttp = true beside the url",
        });
    }
    let api_key = match api_key_file {
        Some(path) => Some(read(path)?.trim_end_matches(['\r', '\n']).to_owned().into()),
        None => None,
    };
    let setting = "services.broadcasters.requestsPerSecond";
    let rate = requests_per_second.map(|rate| in_range(setting, rate, 1..=1_000));
    Ok(BroadcasterConfig {
        dialect: match kind {
            BroadcasterKind::Arcade => Dialect::Arcade,
            BroadcasterKind::Arc => Dialect::Arc,
        },
        url: url.trim_end_matches('/').to_owned(),
        api_key,
        requests_per_second: rate.transpose()?,
    })
}

/// The amount up to which an invoice is paid before a block holds its payment, the sum of all such
/// payments, and how deep a payment above the amount must be.
pub(super) fn unproven_limits(
    settings: &Settings,
    services: Option<&ServicesConfig>,
) -> (Option<u64>, Option<u64>, u32) {
    let limit = settings.wallet.zero_conf_limit_satoshis.and_then(Limit::satoshis);
    let (exposure, blocks) = match services {
        None => (None, 1),
        Some(_) => {
            let default = limit.map(|limit| limit.saturating_mul(EXPOSED_PAYMENTS));
            (settings.services.exposure_satoshis.map_or(default, Limit::satoshis), MINED_BLOCKS)
        }
    };
    (limit, exposure, settings.wallet.mined_blocks.unwrap_or(blocks))
}

/// Where headers come from, if the server keeps them. With services it needs them.
pub(super) fn headers(
    settings: &Settings,
    services: Option<&ServicesConfig>,
) -> Result<Option<SourceNames>, ConfigError> {
    let default = services.map(|_| HeadersSettings::default());
    let Some(headers) = settings.services.headers.clone().or(default) else { return Ok(None) };
    let HeadersSettings { urls, peers, allow_http } = headers;
    if settings.network == Network::Regtest && urls.is_empty() && peers.is_empty() {
        return Err(ConfigError::Inconsistent(
            "services.headers names no source, and regtest has no seeds: set urls or peers",
        ));
    }
    if let Some(url) = urls.iter().find(|url| !is_usable(url, allow_http)) {
        return Err(ConfigError::BadServiceUrl {
            setting: "services.headers.urls",
            url: url.clone(),
            allow: "services.headers.allowHttp = true",
        });
    }
    let is_peer = |peer: &&String| {
        let authority = peer.parse().ok().filter(|it: &Authority| it.port_u16().is_some());
        authority.is_some_and(|it| !it.host().is_empty()) && !peer.contains('@')
    };
    if let Some(peer) = peers.iter().find(|peer| !is_peer(peer)) {
        return Err(ConfigError::BadPeer(peer.clone()));
    }
    let urls = urls.iter().map(|url| url.trim_end_matches('/').to_owned()).collect();
    Ok(Some(SourceNames { urls, peers }))
}

/// Whether a URL is one of a service. Plain HTTP is for this machine, or must be allowed.
fn is_usable(url: &str, allow_http: bool) -> bool {
    let uri: Option<hyper::Uri> = url.parse().ok();
    let is_local = uri.as_ref().and_then(hyper::Uri::host).is_some_and(is_loopback);
    is_public_url(url) && (url.starts_with("https://") || allow_http || is_local)
}
