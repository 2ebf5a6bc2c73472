use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bsv_invoicing::dpp::MAX_MESSAGE_LEN;
use bsv_invoicing::{OpenWalletStoreError, OwnListeners, RedbWalletStore, Wallet, WalletSettings};
use bsv_minerid::{MinerIds, OpenStoreError, RedbIdentityStore};
use bsv_network::NodeRpc;
use bsv_store::{
    DatabaseOptions, DirLock, KeyEvent, Keystore, KeystoreError, LockError, StretchedPassphrase,
};
use bytes::Bytes;
use hyper::body::Body;
use hyper::header::{CONNECTION, HeaderValue, RETRY_AFTER};
use hyper::http::request::Parts;
use hyper::{Method, Request, StatusCode};
use thiserror::Error;

use crate::access::{Access, Caller, Denied, TokenFileError, Tokens};
use crate::config::{Config, WalletConfig};
use crate::control::{Keeping, RevocationKeys, SetUp};
use crate::health::Health;
use crate::http::{self, Answer, LargeBodies, Peers, Problem, Refused, answer};
use crate::minerid::{self, MinerIdApi};
use crate::payments::PaymentsApi;
use crate::wallet::{self, WalletApi};

/// An opened data directory, which this process holds until the instance is dropped.
#[derive(Debug)]
pub struct Instance {
    pub(crate) config: Config,
    pub(crate) node: Option<NodeRpc>,
    pub(crate) minerid: Option<MinerIdApi>,
    pub(crate) wallet: Option<WalletApi>,
    payments: Option<PaymentsApi>,
    access: Access,
    health: Health,
    large_bodies: LargeBodies,
    /// What strangers take.
    pub(crate) payers: Arc<Peers>,
    /// Strangers who fill these places keep nobody else out.
    large_payments: LargeBodies,
    set_up: SetUp,
    _lock: Arc<DirLock>,
}

/// What a request came over, which decides what it may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Surface {
    /// The miner identity listener: the routes of the specification.
    MinerId,
    /// The wallet listener: the routes of its specification.
    Wallet,
    /// The payments listener: what payers need.
    Payments,
    /// The control socket, or this very process: those routes, and setting up.
    Control,
}

impl Surface {
    /// The patterns of all paths that have an answer, such as `/minerid/{alias}`.
    pub fn patterns(self) -> Vec<&'static str> {
        let mut patterns = Health::PATTERNS.to_vec();
        match self {
            Self::MinerId => patterns.extend(MinerIdApi::patterns()),
            Self::Wallet => patterns.extend(WalletApi::patterns()),
            Self::Payments => patterns.extend(PaymentsApi::patterns()),
            Self::Control => {
                patterns.extend(MinerIdApi::patterns().chain(WalletApi::patterns()));
                patterns.push(CONTROL_PATTERN);
            }
        }
        patterns
    }

    /// Its name, as the line says that tells where it is.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::MinerId => "minerid",
            Self::Wallet => "wallet",
            Self::Payments => "payments",
            Self::Control => "control",
        }
    }
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
    /// The wallet's store cannot be opened.
    #[error(transparent)]
    WalletStore(#[from] OpenWalletStoreError),
    /// The wallet cannot be opened.
    #[error("the wallet cannot be opened: {0}")]
    Wallet(#[from] bsv_invoicing::Error),
    /// The tokens cannot be read.
    #[error(transparent)]
    Tokens(#[from] TokenFileError),
    /// The identities cannot be loaded.
    #[error(transparent)]
    MinerId(#[from] bsv_minerid::Error),
}

/// All that only the control socket carries.
const CONTROL_PATTERN: &str = "/control/{*operation}";

/// The largest request body, in bytes.
const MAX_BODY_LEN: usize = 1 << 20;

impl Instance {
    /// Opens the data directory that `config` names, and its keystore with the passphrase. `program` is
    /// what others are told who find it in use.
    pub async fn open(
        config: Config,
        passphrase: Option<&StretchedPassphrase>,
        program: &str,
    ) -> Result<Self, OpenError> {
        let lock = Arc::new(DirLock::acquire(&config.network_dir, program)?);
        let tokens = Arc::new(Tokens::open(&config.network_dir)?);
        let node = config.node.clone().map(NodeRpc::new);
        let keystore = match (&config.minerid, &config.wallet) {
            (None, None) => None,
            _ => Some(Arc::new(open_keystore(&config, passphrase, program)?)),
        };
        let ids = match config.minerid.as_ref().zip(keystore.clone()) {
            Some((minerid, keystore)) => {
                let store = RedbIdentityStore::open(&minerid.data_dir, program)?;
                Some(Arc::new(MinerIds::open(store, keystore, config.network)?))
            }
            None => None,
        };
        let wallet = match config.wallet.as_ref().zip(keystore.clone()) {
            Some((wallet, keystore)) => {
                let node = node.clone();
                Some(Arc::new(
                    open_wallet(&config, wallet, node, Arc::clone(&lock), keystore, KeyEvent::Made)
                        .await?,
                ))
            }
            None => None,
        };
        let revocation_keys = Arc::new(RevocationKeys::new(&config.keystore, program));
        let keeping = Keeping::new(
            config.network,
            config.network_dir.clone(),
            ids.clone(),
            wallet.clone(),
            keystore,
            Arc::clone(&revocation_keys),
        );
        let set_up = SetUp::new(
            ids.clone(),
            wallet.clone(),
            Arc::clone(&tokens),
            keeping,
            node.clone(),
            config.network,
            revocation_keys,
        );
        let access = Access::new(config.access.clone(), tokens);
        let health = Health::new(&config, ids.clone(), wallet.clone(), node.clone());
        let minerid = ids.map(MinerIdApi::new);
        let payments = wallet.clone().map(PaymentsApi::new);
        let wallet = wallet.map(WalletApi::new);
        let peers = config.wallet.as_ref().map(|wallet| wallet.payments.peers.clone());
        let payers = Peers::new(peers.unwrap_or_default());
        let [large_bodies, large_payments] = [(); 2].map(|()| LargeBodies::new());
        Ok(Self {
            config,
            node,
            minerid,
            wallet,
            payments,
            access,
            health,
            large_bodies,
            payers,
            large_payments,
            set_up,
            _lock: lock,
        })
    }

    /// Answers a request that came from an address, unless too many come from there.
    pub(crate) async fn answer_peer<B>(
        &self,
        surface: Surface,
        address: Option<IpAddr>,
        request: Request<B>,
    ) -> Answer
    where
        B: Body<Data = Bytes> + Unpin + Send + 'static,
    {
        let peer = match (surface, address) {
            (Surface::Payments, Some(address)) => self.payers.requester(address, request.headers()),
            _ => None,
        };
        if let Some(peer) = peer
            && let Err(wait) = self.payers.admit(peer, Instant::now())
        {
            http::discard(request.into_body());
            let mut refusal = too_many_requests(wait);
            // Of thousands that were sent ahead, each would be refused. A front end has others' requests too.
            if address.map(|it| it.to_canonical()) == Some(peer) {
                refusal.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            return refusal;
        }
        self.answer_for(surface, peer, request).await
    }

    /// Answers a request.
    pub async fn answer<B>(&self, surface: Surface, request: Request<B>) -> Answer
    where
        B: Body<Data = Bytes> + Unpin + Send + 'static,
    {
        self.answer_for(surface, None, request).await
    }

    async fn answer_for<B>(
        &self,
        surface: Surface,
        peer: Option<IpAddr>,
        request: Request<B>,
    ) -> Answer
    where
        B: Body<Data = Bytes> + Unpin + Send + 'static,
    {
        let (head, body) = request.into_parts();
        let admitted = match self.check_browser(surface, &head) {
            // The rarer and longer ones are put on the heap: a future is moved about as a whole.
            Ok(()) if Health::pattern(head.uri.path()).is_some() => {
                let health = self.health.answer(surface, &head.method, head.uri.path());
                match Box::pin(health).await {
                    Some(answer) => Err(answer.into()),
                    None => self.admit(surface, &head),
                }
            }
            Ok(()) => self.admit(surface, &head),
            Err(refused) => Err(refused),
        };
        let caller = match admitted {
            Ok(caller) => caller,
            Err(answer) => {
                http::discard(body);
                return *answer;
            }
        };
        let service = Service::of(surface, head.uri.path());
        let (max_len, large) = match surface {
            Surface::Payments => (MAX_MESSAGE_LEN, &self.large_payments),
            _ => (MAX_BODY_LEN, &self.large_bodies),
        };
        let body = match http::collect(body, max_len, large, peer).await {
            Ok(body) => body,
            Err(error) => return service.refuse(error.status(), &error.to_string()),
        };
        let request = Request::from_parts(head, body.bytes.clone());
        if surface == Surface::Control
            && let Some(answer) = Box::pin(self.set_up.answer(&request)).await
        {
            return answer;
        }
        match (service, &self.minerid, &self.wallet, &self.payments) {
            (Service::MinerId, Some(minerid), ..) => minerid.answer(request, &caller).await,
            (Service::Wallet, _, Some(wallet), _) => wallet.answer(&request).await,
            (Service::Payments, .., Some(payments)) => Box::pin(payments.answer(&request)).await,
            _ => service.disabled(),
        }
    }

    /// Refuses what a browser sends for a page of another origin, or for somebody who goes to an address.
    fn check_browser(&self, surface: Surface, head: &Parts) -> Result<(), Refused> {
        let checked = match surface {
            Surface::Control => Ok(()),
            _ if !matches!(head.method, Method::GET | Method::HEAD | Method::OPTIONS) => {
                http::check_navigation(&head.headers)
            }
            _ => Ok(()),
        };
        let checked = checked.and_then(|()| match surface {
            Surface::MinerId | Surface::Wallet => {
                http::check_origin(&head.headers, &self.config.allowed_hosts)
            }
            // Strangers use the payments listener, from wherever they are.
            Surface::Payments | Surface::Control => Ok(()),
        });
        let service = Service::of(surface, head.uri.path());
        checked.map_err(|reason| service.refuse(StatusCode::FORBIDDEN, reason).into())
    }

    /// Who asks for something that there is, and may. Refuses what needs no body to be refused.
    fn admit(&self, surface: Surface, head: &Parts) -> Result<Caller, Refused> {
        let service = Service::of(surface, head.uri.path());
        let caller = match surface {
            Surface::MinerId | Surface::Wallet => {
                self.access.identify(&head.headers).map_err(|denied| service.deny(&denied))?
            }
            Surface::Payments | Surface::Control => Caller::Trusted,
        };
        if surface == Surface::Control && head.uri.path().starts_with("/control/") {
            return Ok(caller);
        }
        match (service, &self.minerid, &self.wallet, &self.payments) {
            (Service::MinerId, Some(minerid), ..) => minerid.admit(head, &caller)?,
            (Service::Wallet, _, Some(wallet), _) => wallet.admit(head, &caller)?,
            (Service::Payments, .., Some(payments)) => payments.admit(head)?,
            _ => return Err(service.disabled().into()),
        }
        Ok(caller)
    }

    /// The pattern that a path fits, such as `/minerid/{alias}`: what can be told of a request without
    /// telling what stands in it.
    pub(crate) fn pattern(&self, surface: Surface, path: &str) -> Option<&'static str> {
        if let Some(pattern) = Health::pattern(path) {
            return Some(pattern);
        }
        if surface == Surface::Control && path.starts_with("/control/") {
            return Some(CONTROL_PATTERN);
        }
        match Service::of(surface, path) {
            Service::MinerId => self.minerid.as_ref()?.pattern(path),
            Service::Wallet => self.wallet.as_ref()?.pattern(path),
            Service::Payments => self.payments.as_ref()?.pattern(path),
        }
    }

    /// What keeps keys and money.
    pub(crate) fn keeping(&self) -> &Keeping {
        self.set_up.keeping()
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

/// Whose routes a request is for, which decides how errors are told.
#[derive(Clone, Copy)]
enum Service {
    MinerId,
    Wallet,
    Payments,
}

impl Service {
    fn of(surface: Surface, path: &str) -> Self {
        match surface {
            Surface::MinerId => Self::MinerId,
            Surface::Wallet => Self::Wallet,
            Surface::Payments => Self::Payments,
            Surface::Control if path.starts_with("/api/") => Self::Wallet,
            Surface::Control => Self::MinerId,
        }
    }

    fn refuse(self, status: StatusCode, reason: &str) -> Answer {
        match self {
            Self::MinerId => answer::text(status, reason.to_owned()),
            Self::Wallet => Problem::of_status(status, reason).into_answer(),
            Self::Payments => Problem::of_status(status, reason).into_answer_for_payer(),
        }
    }

    fn disabled(self) -> Answer {
        let name = match self {
            Self::MinerId => "miner identity service",
            Self::Wallet | Self::Payments => "wallet",
        };
        self.refuse(StatusCode::NOT_FOUND, &format!("the {name} is disabled"))
    }

    fn deny(self, denied: &Denied) -> Answer {
        match self {
            Self::MinerId => minerid::deny(denied),
            Self::Wallet | Self::Payments => wallet::deny(denied),
        }
    }
}

fn too_many_requests(wait: Duration) -> Answer {
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    let detail = format!("too many requests come from your address: wait for {seconds} s");
    let mut answer =
        Problem::of_status(StatusCode::TOO_MANY_REQUESTS, detail).into_answer_for_payer();
    answer.headers_mut().insert(RETRY_AFTER, seconds.into());
    answer
}

fn open_keystore(
    config: &Config,
    passphrase: Option<&StretchedPassphrase>,
    program: &str,
) -> Result<Keystore, KeystoreError> {
    let keys = &config.keystore;
    let keystore = Keystore::open(&keys.dir, passphrase, keys.plain_keys, program)?;
    if keystore.is_plain() {
        tracing::warn!(
            "the keys in {} are not sealed: set a passphrase before they guard real money",
            keys.dir.display()
        );
    }
    Ok(keystore)
}

/// Opens the wallet. If its store is new, `origin` says where the seed comes from.
pub(crate) async fn open_wallet(
    config: &Config,
    wallet: &WalletConfig,
    node: Option<NodeRpc>,
    lock: Arc<DirLock>,
    keystore: Arc<Keystore>,
    origin: KeyEvent,
) -> Result<Wallet, OpenError> {
    let options = DatabaseOptions { cache_bytes: wallet.cache_bytes, ..DatabaseOptions::default() };
    let store = RedbWalletStore::open(lock, options)?;
    let settings = WalletSettings {
        network: config.network,
        expiry: wallet.expiry,
        public_url: wallet.payments.public_url(),
        merchant: wallet.merchant.clone(),
        fee_rate: wallet.payments.fee_rate,
        max_fee_rate: wallet.max_fee_rate,
        pay_limit: wallet.pay_limit,
        own_listeners: OwnListeners {
            payments: Some(wallet.payments.address),
            others: config
                .minerid
                .iter()
                .map(|minerid| minerid.address)
                .chain([wallet.address])
                .collect(),
        },
    };
    let opened = Wallet::open_of(store, keystore, settings, origin).await?;
    Ok(match node {
        Some(node) => opened.with_node(node),
        None => opened,
    })
}
