//! Where the database is, and how it is reached.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;
use thiserror::Error;
use tokio_postgres::config::{SslMode, TargetSessionAttrs};
use tokio_postgres_rustls::MakeRustlsConnect;

/// Where a PostgreSQL database is, how it is reached, and in which schema of it a wallet lies.
#[derive(Clone)]
pub struct PostgresOptions {
    pub(super) config: tokio_postgres::Config,
    pub(super) tls: MakeRustlsConnect,
    /// Small letters, digits and underscores.
    pub(super) schema: String,
    /// The file in which a server remembers who it is, and the last step that it has seen.
    pub(super) memory: Option<PathBuf>,
    /// The migrations of the schema from version 1 to 2, 3 and so on.
    pub(super) migrations: &'static [&'static str],
}

/// Why a URL names no database.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PostgresUrlError {
    /// It is not like `postgresql://user@host1,host2/database?sslmode=verify-full`.
    #[error("the URL of the database is not one: {0}")]
    Url(String),
    /// The name of the schema is not made of small letters, digits and underscores.
    #[error("the schema of the database must be 1 to 63 small letters, digits and underscores")]
    Schema,
    /// The certificates cannot be used.
    #[error("sslrootcert: {0}")]
    Certificates(String),
}

/// The migrations of the schema from version 1 to 2, 3 and so on.
const MIGRATIONS: &[&str] = &[];
/// The schema, if the URL names none.
const DEFAULT_SCHEMA: &str = "bsv_wallet";
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

impl PostgresOptions {
    /// Reads a URL like `postgresql://user@host1,host2/database?sslmode=verify-full`. Besides the parameters that
    /// [`tokio_postgres::Config`] lists it takes `schema`, `sslrootcert` (a file of PEM certificates that are trusted
    /// instead of the system's) and the `sslmode`s `verify-ca` and `verify-full`, which are `require`: a certificate is
    /// verified whenever there is one.
    pub fn from_url(url: &str) -> Result<Self, PostgresUrlError> {
        let (address, query) = url.split_once('?').unwrap_or((url, ""));
        let (mut schema, mut roots, mut kept) = (DEFAULT_SCHEMA.to_owned(), None, Vec::new());
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("schema", name)) => name.clone_into(&mut schema),
                Some(("sslrootcert", path)) => roots = Some(decoded(path)),
                Some(("sslmode", "verify-ca" | "verify-full")) => kept.push("sslmode=require"),
                _ => kept.push(pair),
            }
        }
        let is_named = |c: u8| matches!(c, b'a'..=b'z' | b'0'..=b'9' | b'_');
        if schema.is_empty() || schema.len() > 63 || !schema.bytes().all(is_named) {
            return Err(PostgresUrlError::Schema);
        }
        let url = format!("{address}?{}", kept.join("&"));
        let mut config: tokio_postgres::Config =
            url.parse().map_err(|error: tokio_postgres::Error| {
                PostgresUrlError::Url(
                    std::error::Error::source(&error)
                        .map_or_else(|| error.to_string(), ToString::to_string),
                )
            })?;
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        if config.get_application_name().is_none() {
            config.application_name("bsv-server");
        }
        let tls = tls(roots.as_deref(), config.get_ssl_mode())?;
        Ok(Self { config, tls, schema, memory: None, migrations: MIGRATIONS })
    }

    /// The same with a password.
    #[must_use]
    pub fn with_password(mut self, password: impl AsRef<[u8]>) -> Self {
        self.config.password(password);
        self
    }

    /// The same for a server, which remembers in a file of this path who it is and the last step of the wallet that it
    /// has seen. It notices if the database has lost that step, and shows other servers that it is alive.
    #[must_use]
    pub fn for_server(self, memory: impl Into<PathBuf>) -> Self {
        Self { memory: Some(memory.into()), ..self }
    }

    /// The same as a later version of this software would have them, for tests of migrations.
    #[doc(hidden)]
    #[must_use]
    pub fn with_migrations(self, migrations: &'static [&'static str]) -> Self {
        Self { migrations, ..self }
    }

    /// The version of the schema that this program makes and knows.
    pub(super) fn newest(&self) -> i32 {
        i32::try_from(1 + self.migrations.len()).expect("there are few migrations")
    }

    /// Whether the URL held a password.
    pub fn has_password(&self) -> bool {
        self.config.get_password().is_some()
    }

    /// The schema of the database in which the wallet lies.
    pub fn schema(&self) -> &str {
        &self.schema
    }
}

fn decoded(text: &str) -> PathBuf {
    let text: Vec<u8> = percent(text.as_bytes());
    PathBuf::from(String::from_utf8_lossy(&text).into_owned())
}

/// Takes percent-encoding away.
fn percent(text: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, tail @ ..] = rest {
        let byte = match (first, tail) {
            (b'%', [high, low, ..]) => hex::decode([*high, *low]).ok(),
            _ => None,
        };
        match byte {
            Some(byte) => {
                decoded.extend(byte);
                rest = &tail[2..];
            }
            None => {
                decoded.push(*first);
                rest = tail;
            }
        }
    }
    decoded
}

fn tls(roots: Option<&Path>, mode: SslMode) -> Result<MakeRustlsConnect, PostgresUrlError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let failed = |error: &dyn fmt::Display| PostgresUrlError::Certificates(error.to_string());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(&error))?;
    let config = match roots {
        // Nothing is verified where nothing is encrypted.
        None if mode == SslMode::Disable => {
            builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth()
        }
        None => {
            builder.with_platform_verifier().map_err(|error| failed(&error))?.with_no_client_auth()
        }
        Some(path) => {
            let mut store = RootCertStore::empty();
            let certificates =
                CertificateDer::pem_file_iter(path).map_err(|error| failed(&error))?;
            for certificate in certificates {
                let certificate = certificate.map_err(|error| failed(&error))?;
                store.add(certificate).map_err(|error| failed(&error))?;
            }
            builder.with_root_certificates(store).with_no_client_auth()
        }
    };
    Ok(MakeRustlsConnect::new(config))
}

impl fmt::Debug for PostgresOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresOptions")
            .field("config", &self.config)
            .field("schema", &self.schema)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_hosts_a_schema_and_how_to_verify() {
        let url = "postgresql://u@h1,h2/db?schema=shop_2&sslmode=verify-full&application_name=x";
        let options = PostgresOptions::from_url(url).unwrap();
        assert_eq!(options.schema(), "shop_2");
        assert_eq!(options.config.get_ssl_mode(), SslMode::Require);
        assert_eq!(options.config.get_hosts().len(), 2);
        let options = PostgresOptions::from_url("postgresql:///db?host=/run").unwrap();
        assert_eq!(options.schema(), "bsv_wallet");
    }

    #[test]
    fn what_is_no_such_url_is_refused() {
        for url in ["", "http://h/db", "postgresql://h/db?unknown=1"] {
            assert!(
                matches!(PostgresOptions::from_url(url), Err(PostgresUrlError::Url(_))),
                "{url}"
            );
        }
        for schema in ["", "A", "a-b", "a.b", "a;b", "ä", &"a".repeat(64)] {
            let url = format!("postgresql://h/db?schema={schema}");
            assert!(
                matches!(PostgresOptions::from_url(&url), Err(PostgresUrlError::Schema)),
                "{url}"
            );
        }
        let url = "postgresql://h/db?sslrootcert=/not%20there";
        assert!(matches!(PostgresOptions::from_url(url), Err(PostgresUrlError::Certificates(_))));
    }

    #[test]
    fn a_password_is_not_shown() {
        let options = PostgresOptions::from_url("postgresql://u:hidden@h/db").unwrap();
        let shown = format!("{:?}", options.with_password("secret"));
        assert!(!shown.contains("secret") && !shown.contains("hidden"), "{shown}");
    }
}
