use std::sync::Arc;
use std::time::Duration;

use bsv_invoicing::Wallet;
use bsv_invoicing::events::{Event, EventData};
use tokio::sync::watch;
use tokio::time::sleep;

/// How many events are read at once. Each period logs at most as many.
const PAGE: usize = 100;
/// The time between two pages, so that a busy shop does not wait for its log.
const PERIOD: Duration = Duration::from_millis(100);
/// How many events may wait to be logged one by one. If there are more, only their numbers are
/// logged.
const MAX_BEHIND: u64 = 10_000;

/// Logs a line for each event, up to 1000 lines a second. If there are more, as in a shop that is
/// flooded with orders, it logs where they can be read: the log of events has all of them.
#[derive(Debug)]
pub(crate) struct EventLogger {
    wallet: Arc<Wallet>,
    last: watch::Receiver<u64>,
    /// The last event that was logged.
    told: u64,
    /// How many events may wait to be logged one by one.
    max_behind: u64,
}

impl EventLogger {
    /// Begins with the next event.
    pub(crate) fn new(wallet: Arc<Wallet>) -> Self {
        let last = wallet.last_event();
        let told = *last.borrow();
        Self { wallet, last, told, max_behind: MAX_BEHIND }
    }

    /// Logs events, for as long as it is polled.
    pub(crate) async fn log_events(&mut self) {
        // The wallet keeps the sender, so this does not fail early.
        while self.last.changed().await.is_ok() {
            loop {
                let has_more = self.log_page().await;
                sleep(PERIOD).await;
                if !has_more {
                    break;
                }
            }
        }
    }

    /// Logs the events that were not logged yet.
    pub(crate) async fn finish(&mut self) {
        while self.log_page().await {}
    }

    /// Logs a page of events. Answers whether there are more.
    async fn log_page(&mut self) -> bool {
        let last = *self.last.borrow();
        let behind = last.saturating_sub(self.told);
        if behind > self.max_behind {
            let skipped = last - PAGE as u64;
            tracing::info!(
                target: "bsv_server::events",
                "too many events to log each: bsv-cli event list --after {} shows those up to {skipped}",
                self.told
            );
            self.told = skipped;
        }
        if behind == 0 || !tracing::enabled!(target: "bsv_server::events", tracing::Level::INFO) {
            self.told = last;
            return false;
        }
        match self.wallet.events(self.told, PAGE).await {
            Ok(events) => {
                events.iter().for_each(log);
                self.told = events.last().map_or(last, |event| event.number);
            }
            Err(error) => {
                tracing::warn!("cannot read events for the log: {error}");
                self.told = last;
            }
        }
        self.told < *self.last.borrow()
    }
}

/// The ids of an event: no amounts, no texts, no URLs.
#[derive(Debug, Default)]
struct Ids {
    invoice: Option<String>,
    txid: Option<String>,
    outgoing: Option<u64>,
    withdrawal: Option<u64>,
    user: Option<u64>,
    webhook: Option<String>,
}

impl Ids {
    fn of(data: &EventData) -> Self {
        let mut ids = Self::default();
        match data {
            EventData::Created { invoice, .. }
            | EventData::Deleted { invoice, .. }
            | EventData::Standing { invoice, .. } => {
                ids.invoice = Some(invoice.invoice_id.to_string());
            }
            EventData::Payment { invoice, payment, .. } => {
                ids.invoice = Some(invoice.invoice_id.to_string());
                ids.txid = payment.txid.map(|txid| txid.to_string());
            }
            EventData::Refund { invoice, outgoing_id, txid, .. } => {
                ids.invoice = Some(invoice.invoice_id.to_string());
                ids.outgoing = Some(*outgoing_id);
                ids.txid = Some(txid.to_string());
            }
            EventData::User { user_id } => ids.user = Some(*user_id),
            EventData::Outgoing { outgoing, .. } => {
                ids.outgoing = Some(outgoing.outgoing_id);
                ids.withdrawal = outgoing.withdrawal_id;
                ids.invoice = outgoing.invoice_id.as_ref().map(ToString::to_string);
                ids.txid = Some(outgoing.txid.to_string());
            }
            EventData::Withdrawal { withdrawal_id, .. } => ids.withdrawal = Some(*withdrawal_id),
            EventData::Receipt { txid, user_id, .. } => {
                ids.user = *user_id;
                ids.txid = Some(txid.to_string());
            }
            EventData::Transaction { txid, .. } | EventData::Exposure { txid, .. } => {
                ids.txid = Some(txid.to_string());
            }
            EventData::Webhook { webhook_id, .. } => ids.webhook = Some(webhook_id.to_string()),
        }
        ids
    }
}

fn log(event: &Event) {
    let Ids { invoice, txid, outgoing, withdrawal, user, webhook } = Ids::of(&event.data);
    tracing::info!(
        target: "bsv_server::events",
        event = event.number,
        invoice,
        outgoing,
        withdrawal,
        user,
        webhook,
        txid,
        "{}",
        event.kind.name()
    );
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};
    use std::sync::{Mutex, PoisonError};

    use bsv_invoicing::{RedbWalletStore, UserDraft, WalletSettings};
    use bsv_store::{DatabaseOptions, DirLock, Keystore, PlainKeys};
    use bsv_tx::Network;

    use super::*;

    /// The logged text.
    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn of_events_that_are_too_many_the_numbers_are_logged_and_then_the_newest() {
        let dir = tempfile::tempdir().unwrap();
        let keystore = dir.path().join("keystore");
        let keystore = Keystore::open(&keystore, None, PlainKeys::Allowed, "test").unwrap();
        let lock = DirLock::acquire(&dir.path().join("wallet"), "test").unwrap();
        let store = RedbWalletStore::open(lock, DatabaseOptions::default()).unwrap();
        let store = Arc::new(store);
        let settings = WalletSettings::new(Network::Regtest);
        let wallet = Arc::new(Wallet::open(store, keystore, settings).await.unwrap());
        let mut logger = EventLogger { max_behind: 150, ..EventLogger::new(Arc::clone(&wallet)) };
        let lines = Lines::default();
        let written = lines.clone();
        let log = tracing_subscriber::fmt().with_ansi(false).with_writer(move || written.clone());
        let _log = tracing::subscriber::set_default(log.finish());
        let create = async |count: u64| {
            for _ in 0..count {
                let user = UserDraft { name: "Ada".to_owned(), ..UserDraft::default() };
                wallet.create_user(user, None).await.unwrap();
            }
        };
        create(150).await;
        logger.finish().await;
        create(151).await;
        logger.finish().await;
        let text = lines.0.lock().unwrap().clone();
        let text = String::from_utf8(text).unwrap();
        let told = text.lines().filter(|line| line.contains("user.created"));
        let numbers = told.map(|line| {
            let number = line.split("event=").nth(1).and_then(|rest| rest.split(' ').next());
            number.unwrap().parse::<u64>().unwrap()
        });
        assert_eq!(numbers.collect::<Vec<_>>(), (1..=150).chain(202..=301).collect::<Vec<_>>());
        assert!(text.contains("event list --after 150 shows those up to 201"), "{text}");
    }
}
