use std::sync::Arc;

use bsv_minerid::{Keystore, MinerIds, OpenStoreError, RedbIdentityStore};
use bsv_network::NodeRpc;
use bsv_store::{DirLock, KeystoreError, LockError};
use bytes::Bytes;
use hyper::body::Body;
use hyper::{Request, StatusCode};
use thiserror::Error;

use crate::config::{Config, MinerIdConfig};
use crate::control::SetUp;
use crate::http::{self, Answer, answer};
use crate::minerid::MinerIdApi;

/// An opened data directory, which this process holds until the instance is dropped.
#[derive(Debug)]
pub struct Instance {
    pub(crate) config: Config,
    pub(crate) node: Option<NodeRpc>,
    pub(crate) minerid: Option<MinerIdApi>,
    set_up: SetUp,
    _lock: DirLock,
}

/// What a request came over, which decides what it may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Surface {
    /// The miner identity listener: the routes of the specification.
    MinerId,
    /// The control socket, or this very process: those routes, and setting up.
    Control,
}

/// Why a data directory could not be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process holds the data directory.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The keystore cannot be opened.
    #[error(transparent)]
    Keystore(#[from] KeystoreError),
    /// The identity store cannot be opened.
    #[error(transparent)]
    Store(#[from] OpenStoreError),
    /// The identities cannot be loaded.
    #[error(transparent)]
    MinerId(#[from] bsv_minerid::Error),
}

/// The largest request body, in bytes.
const MAX_BODY_LEN: usize = 1 << 20;

impl Instance {
    /// Opens the data directory that `config` names. `program` is what others are told who find it
    /// in use.
    pub fn open(config: Config, program: &str) -> Result<Self, OpenError> {
        let lock = DirLock::acquire(&config.network_dir, program)?;
        let node = config.node.clone().map(NodeRpc::new);
        let ids = config
            .minerid
            .as_ref()
            .map(|minerid| open_miner_ids(&config, minerid, program))
            .transpose()?
            .map(Arc::new);
        let set_up = SetUp::new(ids.clone(), node.clone());
        let minerid = ids.map(MinerIdApi::new);
        Ok(Self { config, node, minerid, set_up, _lock: lock })
    }

    /// Answers a request.
    pub async fn answer<B>(&self, surface: Surface, request: Request<B>) -> Answer
    where
        B: Body<Data = Bytes> + Unpin,
    {
        if surface == Surface::MinerId
            && let Err(reason) = http::check_origin(request.headers(), &self.config.allowed_hosts)
        {
            return answer::text(StatusCode::FORBIDDEN, reason);
        }
        let (head, body) = request.into_parts();
        let body = match http::collect(body, MAX_BODY_LEN).await {
            Ok(body) => body,
            Err(error) => return answer::text(error.status(), error.to_string()),
        };
        let request = Request::from_parts(head, body);
        if surface == Surface::Control
            && let Some(answer) = self.set_up.answer(&request).await
        {
            return answer;
        }
        match &self.minerid {
            Some(minerid) => minerid.answer(request).await,
            None => answer::text(StatusCode::NOT_FOUND, "the miner identity service is disabled"),
        }
    }

    /// Notes on the disk which identities have handed out documents; the last thing to do before an
    /// instance is dropped.
    pub fn record_hand_outs(&self) {
        if let Some(minerid) = &self.minerid
            && let Err(error) = minerid.ids().record_hand_outs()
        {
            tracing::warn!("cannot note that documents were handed out: {error}");
        }
    }
}

fn open_miner_ids(
    config: &Config,
    minerid: &MinerIdConfig,
    program: &str,
) -> Result<MinerIds, OpenError> {
    let keys = &config.keystore;
    let keystore = Keystore::open(&keys.dir, keys.passphrase.as_ref(), keys.plain_keys, program)?;
    if keystore.is_plain() {
        tracing::warn!(
            "the keys in {} are not sealed: set a passphrase before they sign for real money",
            keys.dir.display()
        );
    }
    let store = RedbIdentityStore::open(&minerid.data_dir, program)?;
    Ok(MinerIds::open(store, keystore, config.network)?)
}
