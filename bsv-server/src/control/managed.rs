use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use bsv_invoicing::Wallet;
use bsv_network::NodeRpc;
use bsv_store::{KeyEvent, Keystore, KeystoreError};
use bsv_tx::Network;
use bytes::Bytes;
use hyper::StatusCode;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::Mutex;

use super::revocation_keys::RevocationKeys;
use crate::access::Tokens;
use crate::api::Api;
use crate::health::Health;
use crate::http::Problem;
use crate::minerid::MinerIds;
use crate::opening::{Failures, Stores, own_dirs};
use crate::request_id::RequestId;

/// The services that an operator manages: the identities, the wallet, and their keys and settings.
#[derive(Debug)]
pub(crate) struct Services {
    pub(super) network: Network,
    pub(super) network_dir: PathBuf,
    /// The directories that hold the data.
    pub(super) dirs: Vec<PathBuf>,
    pub(super) tokens: Arc<Tokens>,
    pub(super) revocation_keys: Arc<RevocationKeys>,
    pub(super) health: Arc<Health>,
    /// Held during a backup, so that only one backup takes room on the disk.
    pub(super) backing_up: Arc<Mutex<()>>,
    failures: Failures,
    ids: Option<Arc<MinerIds>>,
    wallet: Option<Arc<Wallet>>,
    keystore: Option<Arc<Keystore>>,
    node: Option<NodeRpc>,
    listening: OnceLock<Vec<Listening>>,
}

/// The URL of a listener.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Listening {
    pub(crate) name: &'static str,
    /// A URL, or the path of the control socket.
    pub(crate) url: String,
}

impl Services {
    /// `program` is the name that other processes are told while the keystore of revocation keys is
    /// in use.
    pub(crate) fn new(stores: &Stores, program: &str, health: Arc<Health>) -> Self {
        let config = &stores.config;
        Self {
            network: config.network,
            network_dir: config.network_dir.clone(),
            dirs: own_dirs(config),
            tokens: Arc::clone(&stores.tokens),
            revocation_keys: Arc::new(RevocationKeys::new(&config.keystore, program)),
            health,
            backing_up: Arc::default(),
            failures: stores.failures.clone(),
            ids: stores.ids.clone(),
            wallet: stores.wallet.clone(),
            keystore: stores.keystore.clone(),
            node: stores.node.clone(),
            listening: OnceLock::new(),
        }
    }

    pub(super) fn ids(&self) -> Result<&Arc<MinerIds>, Problem> {
        let disabled = "the miner identity service is disabled";
        self.ids.as_ref().ok_or_else(|| self.lacks(Api::MinerId, disabled))
    }

    pub(super) fn wallet(&self) -> Result<&Arc<Wallet>, Problem> {
        self.wallet.as_ref().ok_or_else(|| self.lacks(Api::Wallet, "the wallet is disabled"))
    }

    pub(super) fn keystore(&self) -> Result<&Arc<Keystore>, Problem> {
        self.keystore.as_ref().ok_or_else(|| missing("no service that has keys is enabled"))
    }

    fn lacks(&self, service: Api, disabled: &str) -> Problem {
        match self.failures.reason(service) {
            Some(reason) => unavailable(reason),
            None => missing(disabled),
        }
    }

    /// Fails if an enabled service could not be opened.
    pub(super) fn check_complete(&self) -> Result<(), Problem> {
        self.failures().next().map_or(Ok(()), |reason| Err(unavailable(reason)))
    }

    /// Why services could not be opened.
    pub(super) fn failures(&self) -> impl Iterator<Item = &str> {
        self.failures.all().map(|(_, reason)| reason)
    }

    pub(super) fn any_node(&self) -> Option<&NodeRpc> {
        self.node.as_ref()
    }

    pub(super) fn node(&self) -> Result<&NodeRpc, Problem> {
        self.node.as_ref().ok_or_else(|| {
            let detail = "no node is configured: set rpcUser and rpcPassword, or rpcCookieFile";
            Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "no-node", detail)
        })
    }

    /// Notes where the server listens.
    pub(crate) fn note_listening(&self, listening: Vec<Listening>) {
        // A process listens only once.
        let _ = self.listening.set(listening);
    }

    /// Where the server listens. Empty without a server.
    pub(super) fn listening(&self) -> &[Listening] {
        self.listening.get().map_or(&[], Vec::as_slice)
    }

    /// Makes the wallet, if there is one, use the keys of another account once it is opened again.
    pub(crate) async fn begin_account(&self) -> Result<(), bsv_invoicing::Error> {
        if let Ok(wallet) = self.wallet() {
            wallet.begin_account().await?;
        }
        Ok(())
    }

    /// Adds an entry to the audit log of every store, and to the log.
    pub(crate) async fn note(&self, event: KeyEvent, subject: &str) -> Result<(), Problem> {
        self.check_complete()?;
        if let Ok(wallet) = self.wallet() {
            wallet.note_key_event(event, subject).await?;
        }
        if self.ids.is_some() {
            let subject = subject.to_owned();
            self.on_identities(move |ids| ids.note_key_event(event, &subject)).await?;
        }
        let request = RequestId::current();
        tracing::info!(target: "bsv_audit", subject, request, "{}", event.name());
        Ok(())
    }

    /// Runs work on identities that waits for the disk, one at a time.
    pub(super) async fn on_identities<T: Send + 'static>(
        &self,
        run: impl FnOnce(&MinerIds) -> Result<T, bsv_minerid::Error> + Send + 'static,
    ) -> Result<T, Problem> {
        Ok(self.ids()?.on_disk(run).await?)
    }
}

fn missing(detail: &str) -> Problem {
    Problem::of_status(StatusCode::NOT_FOUND, detail)
}

fn unavailable(reason: &str) -> Problem {
    Problem::of_status(StatusCode::SERVICE_UNAVAILABLE, reason)
}

impl From<KeystoreError> for Problem {
    fn from(error: KeystoreError) -> Self {
        let status = match error {
            KeystoreError::EmptyPassphrase => StatusCode::BAD_REQUEST,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self::of_status(status, error.to_string())
    }
}

/// Parses the body of a request.
pub(super) fn parse<T: DeserializeOwned>(body: &Bytes) -> Result<T, Problem> {
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let read = serde_path_to_error::deserialize(&mut deserializer);
    let read = read.map_err(|error| Problem::bad_request(error.to_string()))?;
    deserializer.end().map_err(|error| Problem::bad_request(error.to_string()))?;
    Ok(read)
}
