//! The use cases: what somebody can do with a wallet.

pub(crate) mod books;
mod catch_up;
mod channel;
pub(crate) mod follow;
mod invoices;
mod node;
pub(crate) mod outbound;
pub(crate) mod pay;
pub(crate) mod receive;
pub(crate) mod recover;
mod running;
pub(crate) mod search;
pub(crate) mod seed;
mod shown;
mod terms;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bsv_network::{NodeError, NodeRpc};
use bsv_store::{AuditCheck, AuditEntry, KeyEvent, Keystore};
use bsv_tx::Network;
use tokio::sync::Semaphore;

use crate::dpp::Merchant;
use crate::error::Error;
use crate::ledger::queries::{
    CountOpenPayments, GetAccounts, GetBalance, GetEvents, GetLastEventAt, GetOwner,
};
use crate::ledger::{Adopt, BeginAccount, NoteKeyEvent, ReleaseAll, SEED_NAME};
use crate::model::clock::{Clock, ClockDoubt};
use crate::model::event::Event;
use crate::model::invoice::{DEFAULT_EXPIRY, MAX_SATOSHIS};
use crate::model::time::Timestamp;
use crate::store::{RedbWalletStore, WalletStore};
use crate::wallet::node::{Node, RECEIVING_TURNS};
use crate::wallet::outbound::OwnListeners;
use crate::wallet::pay::{Payee, Paying};
use crate::wallet::receive::Broadcast;
use crate::wallet::running::Running;
use crate::wallet::seed::{WalletKeys, WalletSeed};

/// How a wallet works.
#[derive(Clone, Debug)]
pub struct WalletSettings {
    /// The network whose keys are used.
    pub network: Network,
    /// For how long an invoice can be paid that does not say so itself.
    pub expiry: Duration,
    /// The beginning of payment URLs, where payers reach the wallet: a URL without a slash at its end.
    pub public_url: String,
    /// Who is paid, as payers are told.
    pub merchant: Merchant,
    /// The fee rate that payers are asked for, in satoshis per 1000 bytes; if the node wants more, that.
    pub fee_rate: u64,
    /// The highest fee rate that the wallet pays, in satoshis per 1000 bytes.
    pub max_fee_rate: u64,
    /// The most that the wallet pays at once, in satoshis.
    pub pay_limit: u64,
    /// Where this process listens: no payee may have the wallet ask there.
    pub own_listeners: OwnListeners,
}

impl WalletSettings {
    /// The defaults on a network: invoices expire after 24 hours, payers are asked for 100 satoshis per
    /// 1000 bytes, and the wallet pays any amount, at no more than 1000 satoshis per 1000 bytes. No
    /// listeners are known.
    pub fn new(network: Network) -> Self {
        Self {
            network,
            expiry: DEFAULT_EXPIRY,
            public_url: "http://127.0.0.1:8445".to_owned(),
            merchant: Merchant {
                name: String::new(),
                avatar: String::new(),
                email: String::new(),
                address: String::new(),
            },
            fee_rate: 100,
            max_fee_rate: 1000,
            pay_limit: MAX_SATOSHIS,
            own_listeners: OwnListeners::default(),
        }
    }
}

/// A wallet: its invoices, its users and its balance.
///
/// A change is on the disk when it is acknowledged. Reading goes on while changes wait for the disk.
pub struct Wallet<S = RedbWalletStore> {
    pub(crate) store: S,
    keystore: Arc<Keystore>,
    pub(crate) keys: Arc<WalletKeys>,
    pub(crate) settings: WalletSettings,
    clock: Clock,
    node: Option<Node>,
    pub(crate) payee: Payee,
    /// What the node demands for mining, in satoshis per 1000 bytes, as last heard.
    pub(crate) fee_floor: AtomicU64,
    /// Whether it is known that the books have caught up with the chain.
    has_caught_up: AtomicBool,
    /// Places for sending payments again that were left in flight: transactions can be large.
    resuming: Semaphore,
    /// The payments that are being broadcast, by the numbers of their invoices.
    pub(crate) broadcasts: Running<u64, Broadcast>,
    /// The payments that are being made, by their URLs.
    pub(crate) paying: Running<String, Paying>,
}

impl<S: WalletStore> Wallet<S> {
    /// Opens the wallet in `store`, whose seed lies in `keystore`. A new wallet gets a new seed, which
    /// is on the disk before the store knows of it.
    pub async fn open(
        store: S,
        keystore: impl Into<Arc<Keystore>>,
        settings: WalletSettings,
    ) -> Result<Self, Error> {
        Self::open_of(store, keystore, settings, KeyEvent::Made).await
    }

    /// Opens the wallet, of whose seed the audit log of a new store tells that it was made or imported.
    pub async fn open_of(
        store: S,
        keystore: impl Into<Arc<Keystore>>,
        settings: WalletSettings,
        origin: KeyEvent,
    ) -> Result<Self, Error> {
        let keystore = keystore.into();
        let seed = match WalletSeed::load(&keystore)? {
            Some(seed) => seed,
            None if store.get(GetOwner).await?.is_some() => return Err(Error::SeedMissing),
            None => {
                WalletSeed::generate()?.save(&keystore)?;
                WalletSeed::load(&keystore)?.ok_or(Error::SeedMissing)?
            }
        };
        let keys = seed.keys(settings.network)?;
        match store.get(GetOwner).await? {
            Some(owner) if owner == keys.fingerprint => {}
            Some(_) => return Err(Error::OtherSeed),
            // An empty store would give the keys of earlier invoices to new ones.
            None if WalletSeed::is_adopted(&keystore)? => return Err(Error::StoreMissing),
            None => store.execute(Adopt { fingerprint: keys.fingerprint, origin }).await?,
        }
        if !WalletSeed::is_adopted(&keystore)? {
            WalletSeed::note_adopted(&keystore)?;
        }
        // Whoever reserved coins, and recorded nothing, is gone: one process has the store.
        store.execute(ReleaseAll).await?;
        let keys = keys.with_accounts(store.list(GetAccounts).await?)?;
        let last_event_at = store.get(GetLastEventAt).await?;
        if last_event_at > Timestamp::of_system().after(Duration::from_secs(60)) {
            tracing::warn!(
                "the clock shows an earlier time than the last event of the wallet, {last_event_at}, \
                 which is taken for the time until the clock has passed it"
            );
        }
        Ok(Self {
            store,
            keystore,
            keys: Arc::new(keys),
            payee: Payee::new(settings.own_listeners.clone()),
            settings,
            clock: Clock::new(last_event_at),
            node: None,
            fee_floor: AtomicU64::new(0),
            has_caught_up: AtomicBool::new(false),
            resuming: Semaphore::new(RECEIVING_TURNS),
            broadcasts: Running::default(),
            paying: Running::default(),
        })
    }

    /// The same wallet with a node of the network, without which it neither receives nor pays. Call
    /// [`follow`](Self::follow) every second or so.
    ///
    /// Payments that strangers offer, and following, have three turns each at the node besides those of
    /// `node`, with which the wallet does what its owner asks for.
    pub fn with_node(self, node: NodeRpc) -> Self {
        Self { node: Some(Node::new(node)), ..self }
    }

    /// How many payments by the wallet wait for their payee, or for the network to show them.
    pub async fn count_open_payments(&self) -> Result<u64, Error> {
        Ok(self.store.list(CountOpenPayments).await?)
    }

    /// Where this process listens, as the settings say.
    pub fn own_listeners(&self) -> &OwnListeners {
        &self.settings.own_listeners
    }

    /// Whether there is a node.
    pub fn has_node(&self) -> bool {
        self.node.is_some()
    }

    /// The time: what the system's clock shows, but never earlier than before, or than the last
    /// event. If that clock has jumped, it goes on from before ([`clock_doubt`](Self::clock_doubt)).
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The time by which it is decided what has expired: [`now`](Self::now), but it stands still while
    /// the system's clock is doubted.
    pub fn expiry_time(&self) -> Timestamp {
        self.clock.expiry_time()
    }

    /// Since when the system's clock is doubted, if it is.
    pub(crate) fn doubted_since(&self) -> Option<Timestamp> {
        self.clock_doubt().map(|_| self.expiry_time())
    }

    /// Why the system's clock is doubted: it jumped by two hours or more, or is that far behind the
    /// newest block. Nothing expires then, until it is right again or [`accept_clock`] is called.
    ///
    /// [`accept_clock`]: Self::accept_clock
    pub fn clock_doubt(&self) -> Option<ClockDoubt> {
        self.clock.doubt()
    }

    /// Believes the system's clock as it is, until it jumps again or has been right meanwhile and falls
    /// behind. Answers what was doubted.
    pub fn accept_clock(&self) -> Option<ClockDoubt> {
        self.clock.accept()
    }

    /// Notes the time in the header of the node's newest block.
    pub fn note_tip_time(&self, time: Timestamp) {
        self.clock.note_tip_time(time);
    }

    /// The balance, in satoshis.
    pub async fn balance(&self) -> Result<u64, Error> {
        Ok(self.store.get(GetBalance).await?)
    }

    /// Up to `limit` events after the one of this number, in order.
    pub async fn events(&self, after: u64, limit: usize) -> Result<Vec<Event>, Error> {
        Ok(self.store.list(GetEvents(after, limit)).await?)
    }

    /// The seed: whoever has its words has the money. The audit log tells of it first.
    pub async fn export_seed(&self) -> Result<WalletSeed, Error> {
        let seed = WalletSeed::load(&self.keystore)?.ok_or(Error::SeedMissing)?;
        self.note_key_event(KeyEvent::Exported, SEED_NAME).await?;
        Ok(seed)
    }

    /// Adds to the audit log what happens to keys that the wallet has a part in.
    pub async fn note_key_event(&self, event: KeyEvent, subject: &str) -> Result<(), Error> {
        let subject = subject.to_owned();
        Ok(self.store.execute(NoteKeyEvent { event, subject }).await?)
    }

    /// Up to `limit` entries of the audit log after the one of this number, in order.
    pub async fn audit_log(&self, after: u64, limit: usize) -> Result<Vec<AuditEntry>, Error> {
        Ok(self.store.audit_log(after, limit).await?)
    }

    /// Reads the audit log from its beginning, off the disk, and looks whether its entries fit.
    pub async fn verify_audit_log(&self) -> Result<AuditCheck, Error> {
        Ok(self.store.verify_audit_log().await?)
    }

    /// Gives out keys of a new account from now on. To be called where the store is a copy of some
    /// earlier day, before the wallet is opened again: somebody may know keys that were given out since.
    pub async fn begin_account(&self) -> Result<u32, Error> {
        let account = seed::account_of(Timestamp::of_system());
        Ok(self.store.execute(BeginAccount { account, is_behind: true }).await?)
    }

    /// The node, if there is one.
    pub(crate) fn node(&self) -> Result<&Node, Error> {
        let none = || Error::NetworkAway("no node is configured".to_owned());
        self.node.as_ref().ok_or_else(none)
    }

    /// The fee rate that payers are asked for, in satoshis per 1000 bytes.
    pub(crate) fn quoted_fee_rate(&self) -> u64 {
        self.settings.fee_rate.max(self.fee_floor.load(Ordering::Relaxed))
    }

    /// Where the wallet keeps what it knows.
    pub fn store(&self) -> &S {
        &self.store
    }
}

impl<S: fmt::Debug> fmt::Debug for Wallet<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wallet").field("store", &self.store).finish_non_exhaustive()
    }
}

/// That nothing was changed because the node cannot be used.
pub(crate) fn away(error: NodeError) -> Error {
    Error::NetworkAway(error.to_string())
}

/// That it is not known what became of a payment, because the node cannot be used.
pub(crate) fn unknown(error: NodeError) -> Error {
    Error::OutcomeUnknown(error.to_string())
}
