//! The block headers of the network, from services and nodes that the settings name.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use bsv_network::headers::{
    Behind, Checkpoint, HeaderFile, HeaderFileError, HeaderFollower, SourceReport, SourceState,
};
use reqwest::{Client, redirect};
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;
use serde_json::{Value, json};

use crate::config::Config;

/// The name of the file in the directory of the network.
const FILE_NAME: &str = "headers";

/// Opens the file of headers, if the settings say where headers come from.
pub fn open_headers(config: &Config) -> Result<Option<HeaderFollower>, HeaderFileError> {
    let Some(names) = &config.headers else { return Ok(None) };
    let path = config.network_dir.join(FILE_NAME);
    let file = HeaderFile::open(&path, config.network, &Checkpoint::of(config.network))?;
    Ok(Some(HeaderFollower::new(Arc::new(file), config.network, names.clone(), client())))
}

fn client() -> Client {
    let builder = || {
        ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("the provider knows the versions of TLS")
    };
    let tls = match builder().with_platform_verifier() {
        Ok(builder) => builder.with_no_client_auth(),
        Err(error) => {
            tracing::warn!(
                "headers cannot be asked for by https: the system's certificates cannot be loaded: {error}"
            );
            builder().with_root_certificates(RootCertStore::empty()).with_no_client_auth()
        }
    };
    let client = Client::builder().no_proxy().referer(false).redirect(redirect::Policy::none());
    let client = client.tls_backend_preconfigured(tls).build();
    client.expect("a client that loads nothing is built from constants")
}

/// The newest block.
pub(crate) fn describe(headers: &HeaderFollower) -> Value {
    let tip = headers.file().chain().tip();
    json!({
        "height": tip.height,
        "hash": tip.hash.to_string(),
        "tipAgeSeconds": tip.time.map(|time| seconds_since(time.into())),
    })
}

/// The services that give headers.
pub(crate) fn describe_sources(headers: &HeaderFollower) -> Vec<Value> {
    let describe = |source: SourceReport| {
        json!({
            "kind": source.kind,
            "host": source.host,
            "lastAnswerAgeSeconds": source.last_answer.map(seconds_since),
            "state": source.state.name(),
        })
    };
    headers.sources().map(describe).collect()
}

/// What needs attention.
pub(crate) fn attention(headers: &HeaderFollower) -> Vec<String> {
    let mut attention = Vec::new();
    let behind = headers.behind().map(|behind| match behind {
        Behind::OldTip => "the newest header is older than 3 hours",
        Behind::LittleWork => "they have less work than the network's chain is known to have",
        Behind::MoreToCome => "a source has valid headers that are not followed yet",
    });
    attention.extend(behind.map(|why| format!("the headers are behind: {why}")));
    for SourceReport { kind, host, state, .. } in headers.sources() {
        if let SourceState::Withholds(claimed) = state {
            attention.push(format!(
                "the {kind} source {host} claims block {claimed}, and does not give its header"
            ));
        }
    }
    attention.extend(headers.alarming_depth().map(|depth| {
        format!(
            "{depth} blocks have left the best chain since the start: nodes of the two kinds may follow different \
             chains"
        )
    }));
    attention
}

/// The age of a moment that is given in seconds since 1970.
pub(crate) fn seconds_since(time: u64) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_secs().saturating_sub(time)
}
