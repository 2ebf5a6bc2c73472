//! The block headers of the network, from services and nodes that the settings name.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use bsv_network::headers::{
    Behind, Checkpoint, HeaderFile, HeaderFileError, HeaderFollower, SourceReport, Withheld,
};
use bsv_tx::Network;
use reqwest::{Client, redirect};
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;
use serde_json::{Value, json};

use crate::config::Config;

/// The name of the file in the directory of the network.
const FILE_NAME: &str = "headers";

/// Opens the file of headers, if the settings say where headers come from. The caller holds the lock
/// of the directory.
pub fn open_headers(config: &Config) -> Result<Option<HeaderFollower>, HeaderFileError> {
    let Some(names) = &config.headers else { return Ok(None) };
    let file = open_file(&config.network_dir.join(FILE_NAME), config.network)?;
    Ok(Some(HeaderFollower::new(Arc::new(file), config.network, names.clone(), client())))
}

/// Opens a file. One with other contents is put aside: sources give headers again.
fn open_file(path: &Path, network: Network) -> Result<HeaderFile, HeaderFileError> {
    let open = || HeaderFile::open(path, network, &Checkpoint::of(network));
    let error = match open() {
        Err(error @ HeaderFileError::OtherContents { .. }) => error,
        opened => return opened,
    };
    match put_aside(path) {
        Ok(aside) => tracing::error!(
            "{error}. The file is put aside as {}, and all headers are fetched again",
            aside.display()
        ),
        Err(_) => return Err(error),
    }
    open()
}

/// Gives a file another name, which nothing has.
fn put_aside(path: &Path) -> io::Result<PathBuf> {
    let mut aside = path.with_extension("damaged");
    let mut number = 1;
    while fs::symlink_metadata(&aside).is_ok() {
        number += 1;
        aside = path.with_extension(format!("damaged-{number}"));
    }
    fs::rename(path, &aside)?;
    Ok(aside)
}

pub(crate) fn client() -> Client {
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

/// What needs attention.
pub(crate) fn attention(headers: &HeaderFollower) -> Vec<String> {
    let mut attention = Vec::new();
    let behind = headers.behind().map(|behind| match behind {
        Behind::OldTip => "the newest header is older than 3 hours",
        Behind::MoreToCome => "a source has valid headers that are not followed yet",
        Behind::SlowClock => {
            "a source has headers more than two hours ahead of this machine's clock: check the clock"
        }
    });
    attention.extend(behind.map(|why| format!("the headers are behind: {why}")));
    for SourceReport { kind, withheld, .. } in headers.sources() {
        attention.extend(withheld.map(|Withheld { name, claimed, .. }| {
            format!("the {kind} source {name} claims block {claimed}, and does not give its header")
        }));
    }
    attention.extend(headers.file().alarming_reorganisation().map(|depth| {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_other_contents_is_put_aside() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(FILE_NAME);
        let open = || open_file(&path, Network::Livenet);
        for (contents, aside) in [("a key", "headers.damaged"), ("another", "headers.damaged-2")] {
            fs::write(&path, contents).unwrap();
            assert_eq!(open().unwrap().chain().tip().height, 916_817);
            assert_eq!(fs::read_to_string(directory.path().join(aside)).unwrap(), contents);
            fs::remove_file(&path).unwrap();
        }
        // One that another process has is no damaged one.
        let file = open().unwrap();
        assert!(matches!(open(), Err(HeaderFileError::InUse(_))));
        drop(file);
        assert!(open().is_ok());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 3);
    }

    #[test]
    fn a_file_that_cannot_be_read_stays() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(FILE_NAME);
        // Not even root can read a directory like a file.
        fs::create_dir(&path).unwrap();
        let opened = open_file(&path, Network::Livenet);
        assert!(matches!(opened, Err(HeaderFileError::Io { .. })), "{opened:?}");
        assert!(path.is_dir());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
