use std::sync::Arc;

use reqwest::Client;
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};

/// A client without roots of TLS.
pub(crate) fn client() -> Client {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    Client::builder().no_proxy().tls_backend_preconfigured(config).build().unwrap()
}
