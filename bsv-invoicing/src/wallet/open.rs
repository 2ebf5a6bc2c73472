//! Opening a wallet.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bsv_network::broadcasters::{BroadcasterReport, BroadcasterSet};
use bsv_network::{NetworkSource, NodeRpc};
use bsv_store::{KeyEvent, Keystore};
use bsv_tx::{KeyError, Network};
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, sleep};

use crate::error::Error;
use crate::ledger::queries::{GetAccounts, GetLastEventAt, GetOwner};
use crate::ledger::{
    Adopt, Exposure, GetExposure, GetLogName, GetRules, IsTipUnconfirmed, Join, NameLog, Refusal,
    SEED_NAME, SetRules,
};
use crate::model::clock::Clock;
use crate::model::event::LogName;
use crate::model::time::Timestamp;
use crate::store::{Store, WalletStore, WalletStoreError};
use crate::wallet::event_tail::EventTail;
use crate::wallet::mempool_entries::RecentEntries;
use crate::wallet::news::News;
use crate::wallet::outbound::{HttpWebhooks, OwnListeners};
use crate::wallet::pay::{Payee, PaymentsInProgress};
use crate::wallet::receive::{Broadcast, NotTaken, RecentTip, WaitingPayments};
use crate::wallet::running::Running;
use crate::wallet::seed::{WalletKeys, WalletSeed};
use crate::wallet::settings::WalletSettings;
use crate::wallet::sources::{RECEIVING_TURNS, Sources};
use crate::wallet::watch::Watching;
use crate::webhooks::AttemptCounts;

/// A wallet: its invoices, its users and its balance.
///
/// Every acknowledged change is durable. Reading goes on while changes wait for the disk.
pub struct Wallet {
    pub(crate) store: Arc<dyn Store>,
    /// The name of the log of events.
    pub(super) log: LogName,
    pub(super) keystore: Arc<Keystore>,
    pub(crate) keys: Arc<WalletKeys>,
    pub(crate) settings: WalletSettings,
    pub(super) clock: Clock,
    pub(super) sources: Option<Sources>,
    pub(crate) payee: Payee,
    /// The last known minimum fee rate for mining, in satoshis per 1000 bytes.
    pub(crate) fee_floor: AtomicU64,
    /// Whether the books are known to have caught up with the chain.
    pub(super) has_caught_up: AtomicBool,
    /// Limits how many payments that were left in flight are sent again at once, because
    /// transactions can be large.
    pub(super) resuming: Semaphore,
    /// The payments that are being broadcast, by the numbers of their invoices.
    pub(super) broadcasts: Running<u64, Broadcast>,
    /// The payments that wait until another one of their invoice is decided.
    pub(super) waiting: WaitingPayments,
    pub(super) not_taken: NotTaken,
    /// What others say may have changed.
    pub(super) news: News,
    /// The tip of the main chain, for checking payments that come with their ancestors.
    pub(super) recent_tip: RecentTip,
    /// Entries of unmined transactions.
    pub(super) mempool_entries: RecentEntries,
    /// The number of the next claim.
    pub(super) claims: AtomicU64,
    /// The payments that are being made.
    pub(super) paying: PaymentsInProgress,
    /// The watched scripts.
    pub(crate) watching: Watching,
    /// The newest events, for all who follow the log.
    pub(super) event_tail: EventTail,
    /// Changes whenever the webhooks change.
    pub(super) webhook_changes: watch::Sender<u64>,
    /// Posts events to webhooks.
    pub(super) webhook_client: Arc<HttpWebhooks>,
    pub(crate) webhook_attempts: AttemptCounts,
}

impl Wallet {
    /// Opens the wallet in `store` with the seed in `keystore`. A new wallet gets a new seed. The
    /// seed is durable before the store refers to it.
    pub async fn open(
        store: Arc<dyn Store>,
        keystore: impl Into<Arc<Keystore>>,
        settings: WalletSettings,
    ) -> Result<Self, Error> {
        Self::open_of(store, keystore, settings, KeyEvent::Made).await
    }

    /// Opens the wallet. If the store is new, its audit log records `origin` as the origin of the
    /// seed: made or imported.
    pub async fn open_of(
        store: Arc<dyn Store>,
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
        join(&*store).await?;
        match store.get(GetOwner).await? {
            Some(owner) if owner == keys.fingerprint => {}
            Some(_) => return Err(Error::OtherSeed),
            // An empty store would use the keys of earlier invoices again.
            None if WalletSeed::is_adopted(&keystore)? => return Err(Error::StoreMissing),
            None => {
                store.execute(Adopt { fingerprint: keys.fingerprint, origin }).await?;
                tracing::info!(target: "bsv_audit", subject = SEED_NAME, "{}", origin.name());
            }
        }
        if !WalletSeed::is_adopted(&keystore)? {
            WalletSeed::note_adopted(&keystore)?;
        }
        if store.get(GetRules).await? != settings.payment_rules {
            store.execute(SetRules { rules: settings.payment_rules }).await?;
        }
        let keys = keys.with_accounts(store.list(GetAccounts).await?)?;
        let log = match store.get(GetLogName).await? {
            Some(log) => log,
            None => {
                let log = LogName::random().map_err(KeyError::NoRandomness)?;
                store.execute(NameLog(log)).await?;
                log
            }
        };
        let last_event_at = store.get(GetLastEventAt).await?;
        let shown = store.clock().unwrap_or_else(Timestamp::of_system);
        if last_event_at > shown.after(Duration::from_secs(60)) {
            tracing::warn!(
                "the clock shows an earlier time than the last event of the wallet: the wallet \
                 uses the time of that event, {last_event_at}, until the clock has passed it"
            );
        }
        let clock = Clock::new(last_event_at, shown);
        let webhook_client = HttpWebhooks::new(
            settings.own_listeners.clone(),
            &settings.webhook_networks,
            &settings.user_agent,
        );
        Ok(Self {
            store,
            log,
            keystore,
            keys: Arc::new(keys),
            payee: Payee::new(settings.own_listeners.clone()),
            settings,
            clock,
            sources: None,
            fee_floor: AtomicU64::new(0),
            has_caught_up: AtomicBool::new(false),
            resuming: Semaphore::new(RECEIVING_TURNS),
            broadcasts: Running::default(),
            waiting: WaitingPayments::default(),
            not_taken: NotTaken::default(),
            news: News::default(),
            recent_tip: RecentTip::default(),
            mempool_entries: RecentEntries::default(),
            claims: AtomicU64::new(1),
            paying: PaymentsInProgress::default(),
            watching: Watching::default(),
            event_tail: EventTail::default(),
            webhook_changes: watch::Sender::new(0),
            webhook_client: Arc::new(webhook_client),
            webhook_attempts: AttemptCounts::default(),
        })
    }

    /// Adds a node of the network. Without a node, the wallet neither receives nor pays.
    ///
    /// Payments that strangers offer, and following, have three turns each at the node. Large
    /// payments have one of their own. The turns of `node` itself are for what the owner asks
    /// for.
    pub fn with_node(self, node: NodeRpc) -> Self {
        self.with_source(NetworkSource::node(node))
    }

    /// Adds what tells of the network: a node, or services.
    pub fn with_source(self, source: NetworkSource) -> Self {
        Self { sources: Some(Sources::new(source)), ..self }
    }

    /// The addresses on which this process listens, from the settings.
    pub fn own_listeners(&self) -> &OwnListeners {
        &self.settings.own_listeners
    }

    /// The network whose keys are used.
    pub fn network(&self) -> Network {
        self.settings.network
    }

    /// Whether anything tells of the network: a node, or services.
    pub fn has_source(&self) -> bool {
        self.sources.is_some()
    }

    /// The sum of what counts by the word of services alone, and its limit.
    pub async fn exposure(&self) -> Result<Exposure, Error> {
        Ok(self.store.get(GetExposure).await?)
    }

    /// Whether payments that need a block wait, however deep it is, because only one service shows the
    /// newest block.
    pub async fn awaits_second_source(&self) -> Result<bool, Error> {
        Ok(self.store.get(IsTipUnconfirmed).await?)
    }

    /// What is known of the broadcasters that take its transactions, if it asks services.
    pub fn broadcasters(&self) -> Vec<BroadcasterReport> {
        let source = self.sources.as_ref().map(|sources| &sources.operating);
        source
            .and_then(NetworkSource::broadcasters)
            .into_iter()
            .flat_map(BroadcasterSet::reports)
            .collect()
    }

    /// The source of the network, if there is one.
    pub(crate) fn sources(&self) -> Result<&Sources, Error> {
        let none = || Error::NetworkAway("neither a node nor services are configured".to_owned());
        self.sources.as_ref().ok_or_else(none)
    }

    /// The fee rate that payers are asked for, in satoshis per 1000 bytes.
    pub(crate) fn quoted_fee_rate(&self) -> u64 {
        self.settings.fee_rate.max(self.fee_floor.load(Ordering::Relaxed))
    }

    /// The wallet's store.
    pub fn store(&self) -> &dyn Store {
        &*self.store
    }
}

/// How long a wallet that is to be opened may be in the course of being moved elsewhere: whoever moves it may have
/// ended without saying so.
const MOVING_PATIENCE: Duration = Duration::from_secs(7);

/// Begins to use a wallet.
async fn join(store: &dyn Store) -> Result<(), WalletStoreError> {
    let deadline = Instant::now() + MOVING_PATIENCE;
    let mut after = None;
    loop {
        match store.execute(Join { after }).await {
            Ok(None) => return Ok(()),
            Ok(next) => after = next,
            Err(WalletStoreError::Refused(Refusal::Moving)) if Instant::now() < deadline => {
                sleep(Duration::from_millis(200)).await;
            }
            Err(error) => return Err(error),
        }
    }
}

impl fmt::Debug for Wallet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wallet").field("log", &self.log).finish_non_exhaustive()
    }
}
