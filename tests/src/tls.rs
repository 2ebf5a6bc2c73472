//! Listeners that speak TLS, and connections to them. `tests/vectors/tls/make` made the certificates.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::version::{TLS12, TLS13};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConfig, StreamOwned,
    SupportedProtocolVersion,
};
use serde_json::{Value, json};

use crate::build::workspace;

/// The two versions of TLS that are in use.
pub const VERSIONS: [&SupportedProtocolVersion; 2] = [&TLS12, &TLS13];

/// A connection whose handshake takes place when something is sent.
pub type TlsStream = StreamOwned<ClientConnection, TcpStream>;

/// The certificate of the authority that signed all others.
pub fn authority() -> PathBuf {
    file("authority.pem")
}

/// The file with that name. The certificates are `payee.pem`, `shop.pem` and `pool.pem`, each with
/// its `.key`.
pub fn file(name: &str) -> PathBuf {
    workspace().join("tests/vectors/tls").join(name)
}

/// The setting of a listener with this certificate.
pub fn setting(name: &str) -> Value {
    json!({ "certificate": file(&format!("{name}.pem")), "key": file(&format!("{name}.key")) })
}

/// The certificate with that name in the form in which listeners show it.
///
/// # Panics
/// If there is none.
pub fn certificate(name: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_file(file(&format!("{name}.pem"))).unwrap()
}

/// The configuration of a server that shows this certificate.
pub(crate) fn server_config(name: &str) -> Arc<ServerConfig> {
    let key = PrivateKeyDer::from_pem_file(file(&format!("{name}.key"))).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate(name)], key)
        .unwrap();
    Arc::new(config)
}

/// A client that trusts [`authority`] and nobody else.
///
/// # Panics
/// If the authority's certificate cannot be used.
pub fn client_config(versions: &[&'static SupportedProtocolVersion]) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(authority()).unwrap()).unwrap();
    ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth()
}

/// Speaks TLS over a connection to 127.0.0.1, as a client of any version.
///
/// # Panics
/// If the client cannot be made.
pub fn over(stream: TcpStream) -> TlsStream {
    static CONFIG: LazyLock<Arc<ClientConfig>> =
        LazyLock::new(|| Arc::new(client_config(&VERSIONS)));
    over_with(stream, &CONFIG)
}

/// Speaks TLS over a connection to 127.0.0.1, as this client.
///
/// # Panics
/// If the client cannot be made.
pub fn over_with(stream: TcpStream, config: &Arc<ClientConfig>) -> TlsStream {
    let name = ServerName::try_from("127.0.0.1").unwrap();
    StreamOwned::new(ClientConnection::new(Arc::clone(config), name).unwrap(), stream)
}

/// Connects and shakes hands.
pub fn connect(address: &str) -> io::Result<TlsStream> {
    let mut stream = over(TcpStream::connect(address)?);
    stream.conn.complete_io(&mut stream.sock)?;
    Ok(stream)
}

/// The certificate that a listener shows.
///
/// # Panics
/// If nobody can connect.
pub fn shown(address: &str) -> CertificateDer<'static> {
    let stream = connect(address).unwrap();
    stream.conn.peer_certificates().unwrap()[0].clone().into_owned()
}

/// A stream that can be read and written.
pub(crate) trait Stream: Read + Write + Send {}

impl<S: Read + Write + Send> Stream for S {}
