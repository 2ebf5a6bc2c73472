use std::ops::RangeInclusive;
use std::path::PathBuf;

use bsv_invoicing::store::PostgresUrlError;
use bsv_minerid::AliasParseError;
use thiserror::Error;

use crate::access::WeakJwtKey;

/// Why a configuration cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// A source of settings is malformed, or has a setting that does not exist.
    #[error("{origin}: {reason}")]
    Malformed {
        /// The file or environment variable.
        origin: String,
        /// What is wrong with the source.
        reason: String,
    },
    /// No data directory is given, and none can be derived from the environment.
    #[error("no data directory: give --data-dir, or set BSV_DATA_DIR, XDG_DATA_HOME or HOME")]
    NoDataDir,
    /// Settings contradict each other or are incomplete.
    #[error("{0}")]
    Inconsistent(&'static str),
    /// The key of JSON Web Tokens is easy to guess.
    #[error(transparent)]
    WeakJwtKey(#[from] WeakJwtKey),
    /// The alias of the node's listener is not an alias.
    #[error("minerid.nodeListener.alias: {0}")]
    BadAlias(#[from] AliasParseError),
    /// A number is too small or too large.
    #[error("{setting} must be from {} to {}", allowed.start(), allowed.end())]
    OutOfRange {
        /// The setting.
        setting: &'static str,
        /// The allowed values.
        allowed: RangeInclusive<u32>,
    },
    /// A text is neither an address nor a network.
    #[error("{setting}: \"{text}\" is not an IP address, or a network such as 10.0.0.0/8")]
    BadNetwork {
        /// The setting.
        setting: &'static str,
        /// The text.
        text: String,
    },
    /// A text is not the URL of a database.
    #[error("wallet.store.url: {0}")]
    BadDatabase(#[from] PostgresUrlError),
    /// A text is not the origin of a web page.
    #[error("payments.page.embedders: \"{0}\" is not an origin such as https://shop.example")]
    BadOrigin(String),
    /// A text is not the URL of a service that gives headers.
    #[error(
        "{setting}: \"{url}\" is not a URL such as https://arcade.example; http is for this machine, or needs \
         {allow}"
    )]
    BadServiceUrl {
        /// The setting.
        setting: &'static str,
        /// The text.
        url: String,
        /// What allows plain HTTP.
        allow: &'static str,
    },
    /// A text is not the URL of callbacks.
    #[error(
        "services.callbackUrl: \"{0}\" is not a URL such as https://pay.example/network/callback; http is for this \
         machine, or needs allowHttp = true beside the url of each broadcaster"
    )]
    BadCallbackUrl(String),
    /// A text is not the address of a node.
    #[error("services.headers.peers: \"{0}\" is not an address such as node.example:8333")]
    BadPeer(String),
    /// The value is the placeholder that `config show` prints instead of a secret.
    #[error("{0}: config show does not print secrets: replace the placeholder by the secret")]
    Redacted(&'static str),
}
