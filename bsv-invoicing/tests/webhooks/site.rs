//! A wallet that sends its events, and that can be killed and started again.

use std::sync::Arc;
use std::time::Duration;

use bsv_invoicing::ledger::webhooks::GetDelivery;
use bsv_invoicing::store::WalletStore;
use bsv_invoicing::webhooks::WebhookSender;
use bsv_invoicing::webhooks::{Delivery, ReplayDraft, Webhook, WebhookDraft, WebhookId};
use bsv_invoicing::{InvoiceDraft, RedbWalletStore, UserDraft, Wallet, WalletSettings};
use bsv_store::{DatabaseOptions, DirLock, Keystore, PlainKeys};
use bsv_tx::Network;
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::clock::TestClock;
use crate::endpoints::{Endpoints, Reply};

pub(crate) const URL: &str = "https://shop.example/hook";
pub(crate) const OTHER: &str = "https://other.example/hook";

pub(crate) struct Site {
    dir: TempDir,
    pub(crate) clock: TestClock,
    pub(crate) endpoints: Endpoints,
    running: Option<Running>,
}

struct Running {
    wallet: Arc<Wallet>,
    sender: Arc<WebhookSender<Endpoints, TestClock>>,
    shutdown: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

/// How many attempts are under way at once, at most.
pub(crate) const WINDOW: usize = 8;
/// The longest wait of a test for something to happen.
const PATIENCE: Duration = Duration::from_secs(20);

impl Site {
    /// A started site.
    pub(crate) async fn new() -> Self {
        let clock = TestClock::new();
        let endpoints = Endpoints::new(&clock);
        let dir = tempfile::tempdir().unwrap();
        let mut site = Self { dir, clock, endpoints, running: None };
        site.start().await;
        site
    }

    /// A started site with this many events for a webhook whose endpoint hangs. The first attempts
    /// are under way.
    pub(crate) async fn hanging(events: usize) -> (Self, WebhookId) {
        let site = Self::new().await;
        site.endpoints.reply(URL, Reply::Hang);
        let id = site.webhook(URL, "*").await;
        site.users(events).await;
        site.endpoints.until_count(URL, WINDOW).await;
        (site, id)
    }

    async fn open(&self) -> Wallet {
        let dir = self.dir.path();
        let keystore =
            Keystore::open(&dir.join("keystore"), None, PlainKeys::Allowed, "test").unwrap();
        let lock = DirLock::acquire(dir, "test").unwrap();
        let store = RedbWalletStore::open(lock, DatabaseOptions::default()).unwrap();
        Wallet::open(Arc::new(store), keystore, WalletSettings::new(Network::Regtest))
            .await
            .unwrap()
    }

    pub(crate) async fn start(&mut self) {
        let wallet = Arc::new(self.open().await);
        let sender =
            WebhookSender::new(Arc::clone(&wallet), self.endpoints.clone(), self.clock.clone());
        let (shutdown, stopped) = oneshot::channel();
        let run = Arc::clone(&sender).run(async {
            let _ = stopped.await;
        });
        let task = tokio::spawn(run);
        self.running = Some(Running { wallet, sender, shutdown: Some(shutdown), task });
    }

    /// Ends the sender in the middle of its work.
    pub(crate) async fn kill(&mut self) {
        let Running { wallet, sender, shutdown, task } = self.running.take().unwrap();
        task.abort();
        let _ = task.await;
        drop((sender, shutdown));
        // An aborted task is dropped a moment later, and the store can be open only once.
        let alone = async {
            while Arc::strong_count(&wallet) > 1 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(PATIENCE, alone).await.unwrap();
    }

    /// Lets the sender end.
    pub(crate) async fn stop(&mut self) {
        let Running { wallet, sender, mut shutdown, task } = self.running.take().unwrap();
        shutdown.take().unwrap().send(()).unwrap();
        timeout(PATIENCE, task).await.unwrap().unwrap();
        drop(sender);
        assert_eq!(Arc::strong_count(&wallet), 1, "something goes on after the end");
    }

    pub(crate) fn wallet(&self) -> &Wallet {
        &self.running.as_ref().unwrap().wallet
    }

    pub(crate) fn sender(&self) -> &WebhookSender<Endpoints, TestClock> {
        &self.running.as_ref().unwrap().sender
    }

    /// Makes a webhook for events of these types from the first one on.
    pub(crate) async fn webhook(&self, url: &str, types: &str) -> WebhookId {
        self.wallet().create_webhook(draft(url, types)).await.unwrap().0
    }

    /// Makes this many events.
    pub(crate) async fn users(&self, count: usize) {
        let details = UserDraft { name: "Ada".to_owned(), ..UserDraft::default() };
        let all = (0..count).map(|_| self.wallet().create_user(details.clone(), None));
        futures_util::future::try_join_all(all).await.unwrap();
    }

    pub(crate) async fn invoice(&self) {
        let draft = InvoiceDraft { satoshis: 5, ..InvoiceDraft::default() };
        self.wallet().create_invoice(draft, None).await.unwrap();
    }

    pub(crate) async fn known(&self, id: WebhookId) -> Webhook {
        self.wallet().webhook(id).await.unwrap().webhook
    }

    pub(crate) async fn delivery(&self, id: WebhookId, number: u64) -> Option<Delivery> {
        self.wallet().store().get(GetDelivery { id, number }).await.unwrap()
    }

    /// Waits until `is_so` holds for a webhook.
    pub(crate) async fn until(&self, id: WebhookId, is_so: impl Fn(&Webhook) -> bool) -> Webhook {
        let wait = async {
            loop {
                let webhook = self.known(id).await;
                if is_so(&webhook) {
                    return webhook;
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        match timeout(PATIENCE, wait).await {
            Ok(webhook) => webhook,
            Err(_) => panic!("the webhook stays {:?}", self.known(id).await),
        }
    }

    /// Waits until the stored cursor of a webhook has reached this event, even if the last events
    /// are not for the webhook.
    pub(crate) async fn until_passed_over(&self, id: WebhookId, cursor: u64) {
        let wait = async {
            while self.known(id).await.cursor < cursor {
                self.clock.advance(Duration::from_secs(1));
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(PATIENCE, wait).await.expect("it does not come so far");
    }

    /// Waits until `is_so` holds for the delivery of an event.
    pub(crate) async fn until_delivery(
        &self,
        id: WebhookId,
        number: u64,
        is_so: impl Fn(&Delivery) -> bool,
    ) -> Delivery {
        let wait = async {
            loop {
                match self.delivery(id, number).await {
                    Some(delivery) if is_so(&delivery) => return delivery,
                    _ => tokio::time::sleep(Duration::from_millis(1)).await,
                }
            }
        };
        match timeout(PATIENCE, wait).await {
            Ok(delivery) => delivery,
            Err(_) => panic!("the delivery stays {:?}", self.delivery(id, number).await),
        }
    }

    /// Waits until this many attempts to send an event are recorded.
    pub(crate) async fn until_tried(&self, id: WebhookId, number: u64, tries: u32) -> Delivery {
        self.until_delivery(id, number, |delivery| delivery.tries >= tries).await
    }
}

pub(crate) fn draft(url: &str, types: &str) -> WebhookDraft {
    WebhookDraft {
        url: url.to_owned(),
        types: types.to_owned(),
        description: String::new(),
        in_order: false,
        after: Some(0),
    }
}

/// The events after one number and up to another.
pub(crate) fn range(after: u64, until: u64, only_failed: bool) -> ReplayDraft {
    ReplayDraft { after, until, only_failed }
}
