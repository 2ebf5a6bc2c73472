use std::io;
use std::net::SocketAddr;

use thiserror::Error;

use crate::config::ConfigError;
use crate::http::TlsError;
use crate::opening::OpenError;

/// Why the server could not start, or go on.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The data directory cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A listener cannot use TLS.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// A listener cannot listen.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address or path.
        address: String,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A socket was handed over for an address that no listener has.
    #[error(
        "a socket that listens on {0} was handed over, but no listener in the settings has that address"
    )]
    UnwantedSocket(SocketAddr),
    /// Other servers of the wallet in the database took this one for dead.
    #[error("other servers have taken over the work of this one, as it was silent for too long")]
    Overtaken,
    /// The operating system refuses something that the server needs.
    #[error("cannot start: {0}")]
    System(#[from] io::Error),
}

impl StartError {
    /// The error of a listener at an address or path.
    pub(crate) fn listen(address: String) -> impl FnOnce(io::Error) -> Self {
        |source| Self::Listen { address, source }
    }
}
