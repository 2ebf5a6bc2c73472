use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use thiserror::Error;
use tokio::signal::unix::Signal;
use tokio::task::spawn_blocking;
use tokio::time::sleep;
use tokio_rustls::TlsAcceptor;
use zeroize::Zeroizing;

use crate::config::TlsFiles;

/// The TLS of a listener. A change of its files affects only later connections.
pub(crate) struct Tls {
    /// The name of the setting with the files.
    setting: &'static str,
    files: TlsFiles,
    config: RwLock<Arc<ServerConfig>>,
    stamps: Mutex<Stamps>,
}

/// Data that shows whether the files of the certificate and the key have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp([Option<[u64; 4]>; 2]);

#[derive(Debug)]
struct Stamps {
    /// The stamp of the files that are in use.
    read: Stamp,
    /// The stamp of the files at the last look.
    seen: Stamp,
}

/// Why a listener cannot use TLS with a file.
#[derive(Debug, Error)]
#[error("{setting}: {} {problem}", path.display())]
pub struct TlsError {
    /// The setting with the file.
    pub setting: String,
    /// The file.
    pub path: PathBuf,
    /// What is wrong with the file.
    #[source]
    pub problem: TlsProblem,
}

/// What is wrong with a file of a certificate or key.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TlsProblem {
    /// The file cannot be read.
    #[error("cannot be read: {0}")]
    Unreadable(#[source] io::Error),
    /// The file must hold a certificate.
    #[error("holds no certificate in PEM form")]
    NoCertificate,
    /// The file must hold a private key.
    #[error("holds no private key in PEM form (PKCS#8, SEC1 or RSA) that needs no passphrase")]
    NoKey,
    /// Certificate and key do not belong together.
    #[error("is not the key of the first certificate in {}", .0.display())]
    Mismatch(PathBuf),
    /// The contents of the file cannot be used.
    #[error("cannot be used: {0}")]
    Unusable(#[source] rustls::Error),
}

/// How often the files are examined.
const LOOK_INTERVAL: Duration = Duration::from_secs(3);

impl Tls {
    /// Reads the files of the setting `setting`.
    pub(crate) fn open(setting: &'static str, files: TlsFiles) -> Result<Self, TlsError> {
        let stamp = Stamp::of(&files);
        let config = RwLock::new(Arc::new(read(setting, &files)?));
        Ok(Self { setting, files, config, stamps: Mutex::new(Stamps { read: stamp, seen: stamp }) })
    }

    /// The acceptor for a new connection.
    pub(super) fn acceptor(&self) -> TlsAcceptor {
        let config = self.config.read().unwrap_or_else(PoisonError::into_inner);
        TlsAcceptor::from(Arc::clone(&config))
    }

    /// Reads the files again at each signal, and after each change, for as long as it is polled.
    pub(crate) async fn follow_files(self: Arc<Self>, mut hang_ups: Signal) {
        loop {
            let is_told = tokio::select! {
                _ = hang_ups.recv() => true,
                () = sleep(LOOK_INTERVAL) => false,
            };
            let this = Arc::clone(&self);
            if spawn_blocking(move || this.look(is_told)).await.is_err() {
                tracing::error!("{}: the files could not be examined", self.setting);
            }
        }
    }

    /// Reads the files again if `is_told`, or if they have changed and then stayed the same since
    /// the last look. While a pair is being replaced, one file may be new and the other old.
    fn look(&self, is_told: bool) {
        let mut stamps = self.stamps.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = Stamp::of(&self.files);
        let stands_still = stamp == stamps.seen;
        stamps.seen = stamp;
        if !is_told && (stamp == stamps.read || !stands_still) {
            return;
        }
        stamps.read = stamp;
        match read(self.setting, &self.files) {
            Ok(config) => {
                *self.config.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(config);
                let file = self.files.certificate.display();
                tracing::info!("{}: new connections get the certificate in {file}", self.setting);
            }
            Err(error) => {
                tracing::error!("{error}. The previous certificate stays in use.");
            }
        }
    }
}

impl Stamp {
    fn of(files: &TlsFiles) -> Self {
        // Every change of a file's contents, or of a link's target, shows in these values.
        let stamp = |it: Metadata| [it.dev(), it.ino(), it.ctime() as u64, it.ctime_nsec() as u64];
        Self([&files.certificate, &files.key].map(|path| fs::metadata(path).ok().map(stamp)))
    }
}

/// Reads a certificate and its key. An error does not quote the contents, which may be the key.
fn read(setting: &str, files: &TlsFiles) -> Result<ServerConfig, TlsError> {
    let of_certificate = |problem| error(setting, "certificate", &files.certificate, problem);
    let of_key = |problem| error(setting, "key", &files.key, problem);
    let pem = fs::read(&files.certificate);
    let pem = pem.map_err(|it| of_certificate(TlsProblem::Unreadable(it)))?;
    let chain = CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>().ok();
    let chain = chain.filter(|chain| !chain.is_empty());
    let chain = chain.ok_or_else(|| of_certificate(TlsProblem::NoCertificate))?;
    let pem = fs::read(&files.key).map(Zeroizing::new);
    let pem = pem.map_err(|it| of_key(TlsProblem::Unreadable(it)))?;
    let key = PrivateKeyDer::from_pem_slice(&pem).map_err(|_| of_key(TlsProblem::NoKey))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider has what TLS 1.2 and 1.3 need")
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|it| match it {
            rustls::Error::InconsistentKeys(_) => {
                of_key(TlsProblem::Mismatch(files.certificate.clone()))
            }
            rustls::Error::InvalidCertificate(_) => of_certificate(TlsProblem::Unusable(it)),
            _ => of_key(TlsProblem::Unusable(it)),
        })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

fn error(setting: &str, member: &str, path: &Path, problem: TlsProblem) -> TlsError {
    TlsError { setting: format!("{setting}.{member}"), path: path.to_owned(), problem }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixture(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/vectors/tls").join(name)
    }

    #[test]
    fn files_are_read_once_they_have_changed_and_stand_still() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name| dir.path().join(name);
        let put =
            |from: &str, name| fs::write(path(name), fs::read(fixture(from)).unwrap()).unwrap();
        put("payee.pem", "certificate");
        put("payee.key", "key");
        let files = TlsFiles { certificate: path("certificate"), key: path("key") };
        let tls = Tls::open("tls", files).unwrap();
        let in_use = || Arc::clone(tls.acceptor().config());
        let first = in_use();
        let is_read = || tls.stamps.lock().unwrap().read == Stamp::of(&tls.files);
        for _ in 0..3 {
            tls.look(false);
        }
        assert!(Arc::ptr_eq(&first, &in_use()), "nothing has changed");
        put("shop.pem", "certificate");
        tls.look(false);
        assert!(!is_read(), "the key may be on its way");
        put("shop.key", "key");
        tls.look(false);
        assert!(!is_read() && Arc::ptr_eq(&first, &in_use()));
        tls.look(false);
        let second = in_use();
        assert!(is_read() && !Arc::ptr_eq(&first, &second));
        put("payee.key", "key");
        tls.look(false);
        tls.look(false);
        assert!(is_read() && Arc::ptr_eq(&second, &in_use()), "this key belongs to another");
        tls.look(true);
        assert!(Arc::ptr_eq(&second, &in_use()));
        put("shop.key", "key");
        tls.look(true);
        assert!(!Arc::ptr_eq(&second, &in_use()), "told to, it does not wait");
    }
}
