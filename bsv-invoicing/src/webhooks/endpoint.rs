//! The task of one webhook: what is sent to it, and when.

mod noting;
mod retries;

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, OptionFuture};
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use self::noting::Noted;
use self::retries::Retries;
use crate::error::Error;
use crate::ledger::queries::GetWebhookChanges;
use crate::ledger::webhooks::{AttemptMade, GetSent, GetWebhook};
use crate::model::event::{EventFilter, EventQuery};
use crate::model::time::Timestamp;
use crate::model::webhook::{Webhook, WebhookId, WebhookState};
use crate::store::WalletStore;
use crate::webhooks::WebhookSender;
use crate::webhooks::client::{WebhookClient, WebhookClock};
use crate::webhooks::message::{Message, Secrets};
use crate::webhooks::outbox::{Outbox, Unsent};
use crate::webhooks::schedule::FAILURES_BEFORE_PROBING;

/// How many attempts are under way or not recorded yet, at most. This many are repeated if the
/// process is killed.
const MAX_UNFINISHED: usize = 8;
/// How many of them are retries, at most, so that slow retries do not delay new events.
const MAX_RETRIES: usize = 4;
/// How long an attempt that has ended waits for others, so that they are recorded together.
const GATHERING: Duration = Duration::from_millis(2);
/// How many events are read at once.
const READ_AHEAD: usize = 100;

/// The state of the task of a webhook.
pub(super) struct Endpoint<C, K> {
    sender: Arc<WebhookSender<C, K>>,
    id: WebhookId,
    webhook: Webhook,
    filter: EventFilter,
    secrets: Secrets,
    outbox: Outbox,
    retries: Retries,
    under_way: FuturesUnordered<BoxFuture<'static, AttemptMade>>,
    /// Attempts that have ended and are not being recorded yet.
    ended: Vec<AttemptMade>,
    /// Until when these wait for others, so that one step of the store records them all.
    gathers_until: Instant,
    /// The recording that is running, whether one is, and how many attempts it records.
    noting: OptionFuture<BoxFuture<'static, Noted>>,
    is_noting: bool,
    noting_count: usize,
    /// When the store is tried again after a failure.
    note_after: Timestamp,
    /// Since when the stored cursor is behind the events that were looked at.
    cursor_behind_since: Option<Timestamp>,
    /// How many attempts have failed while attempts were made one at a time because of earlier
    /// failures.
    probes: u32,
    /// Whether the last attempt was begun while attempts were made one at a time for that reason.
    /// Attempts that were under way before are no probes.
    is_probe: bool,
    /// Until when no attempt is made because the endpoint fails.
    left_alone_until: Timestamp,
    last_event: watch::Receiver<u64>,
    changes: watch::Receiver<u64>,
    /// Whether its owner has changed the webhook.
    is_changed: bool,
    /// How often the owner had changed webhooks when this one was read.
    change_count: u64,
}

impl<C: WebhookClient, K: WebhookClock> Endpoint<C, K> {
    /// Reads a webhook, if it exists.
    pub(super) async fn load(
        sender: Arc<WebhookSender<C, K>>,
        id: WebhookId,
    ) -> Result<Option<Self>, Error> {
        let changes = sender.wallet.webhook_changes();
        let last_event = sender.wallet.last_event();
        let change_count = sender.wallet.store().get(GetWebhookChanges()).await?;
        let Some(loaded) = sender.wallet.store().get(GetWebhook(id)).await? else {
            return Ok(None);
        };
        let outbox = Outbox::new(&loaded);
        let webhook = loaded.webhook;
        let never = Timestamp::from_micros(0);
        Ok(Some(Self {
            filter: sender.wallet.filter_of(&webhook)?,
            secrets: sender.wallet.secrets_of(id, &webhook)?,
            outbox,
            retries: Retries::default(),
            under_way: FuturesUnordered::new(),
            ended: Vec::new(),
            gathers_until: Instant::now(),
            noting: None.into(),
            is_noting: false,
            noting_count: 0,
            note_after: never,
            cursor_behind_since: None,
            probes: 0,
            is_probe: false,
            left_alone_until: never,
            last_event,
            changes,
            is_changed: false,
            change_count,
            sender,
            id,
            webhook,
        }))
    }

    /// Sends events until the webhook is deleted.
    pub(super) async fn run(mut self) -> Result<(), Error> {
        loop {
            if self.notices_change() && !self.is_noting && !self.reload().await? {
                return Ok(());
            }
            let more_at = self.start_due().await?;
            let note_at = self.begin_noting();
            let awaits_events = self.may_start() && self.outbox.is_empty();
            if self.is_changed && !self.is_noting {
                continue;
            }
            let sender = Arc::clone(&self.sender);
            let wake_at = more_at.into_iter().chain(note_at).min();
            let awake = OptionFuture::from(wake_at.map(|at| sender.clock.sleep_until(at)));
            let is_gathering = self.is_gathering();
            tokio::select! {
                Some(made) = self.under_way.next() => self.end(made),
                () = sleep_until(self.gathers_until), if is_gathering => {}
                Some(noted) = &mut self.noting => {
                    if !self.take_noted(noted)? {
                        return Ok(());
                    }
                }
                Ok(()) = self.changes.changed() => self.is_changed = true,
                Ok(()) = self.last_event.changed(), if awaits_events => self.outbox.read_on(),
                Some(()) = awake => {}
            }
        }
    }

    fn end(&mut self, made: AttemptMade) {
        if self.ended.is_empty() {
            self.gathers_until = Instant::now() + GATHERING;
        }
        self.ended.push(made);
        while let Some(Some(made)) = self.under_way.next().now_or_never() {
            self.ended.push(made);
        }
        // Nothing more is sent to an endpoint that is gone, even before that is recorded.
        let is_gone = self.ended.iter().any(|made| made.attempt.outcome.is_gone());
        if is_gone && self.webhook.state == WebhookState::Enabled {
            self.webhook.state = WebhookState::Gone;
        }
    }

    /// Whether the attempts that have ended wait for those that are under way.
    fn is_gathering(&self) -> bool {
        let is_awaited = !self.ended.is_empty() && !self.under_way.is_empty();
        is_awaited && Instant::now() < self.gathers_until
    }

    fn unfinished(&self) -> usize {
        self.under_way.len() + self.ended.len() + self.noting_count
    }

    fn is_probing(&self) -> bool {
        self.webhook.failures >= FAILURES_BEFORE_PROBING
    }

    /// Whether the owner has changed the webhook since it was last read.
    fn notices_change(&mut self) -> bool {
        // This fails only if the wallet is gone, but the task holds the wallet.
        if self.changes.has_changed().unwrap_or(false) {
            self.changes.mark_unchanged();
            self.is_changed = true;
        }
        self.is_changed
    }

    /// Whether another attempt may begin now, apart from waits. No attempt begins with values that
    /// the owner has changed.
    fn may_start(&mut self) -> bool {
        let width = match self.webhook.in_order || self.is_probing() {
            true => 1,
            false => MAX_UNFINISHED,
        };
        let may_send = self.webhook.state == WebhookState::Enabled && !self.notices_change();
        may_send && self.unfinished() < width
    }

    /// Begins the attempts that may begin. Returns when the next one is due, if that depends on
    /// time.
    async fn start_due(&mut self) -> Result<Option<Timestamp>, Error> {
        while self.may_start() {
            let now = self.sender.clock.now();
            if self.is_probing() && now < self.left_alone_until {
                return Ok(Some(self.left_alone_until));
            }
            let retry = self.next_retry().await?;
            match retry {
                Some(due) if due.at <= now && self.retries.under_way() < MAX_RETRIES => {
                    self.start_retry(due.number).await?;
                    continue;
                }
                Some(due) if self.webhook.in_order => return Ok(Some(due.at)),
                _ => {}
            }
            if self.outbox.is_to_be_read() {
                self.read().await?;
                if self.is_changed {
                    break;
                }
            }
            let Some(first) = self.outbox.take() else {
                let more_at = retry.map(|due| due.at).filter(|at| *at > now);
                return Ok(if self.outbox.is_to_be_read() { Some(now) } else { more_at });
            };
            let Unsent { event, previous } = first;
            let message = Message::of(&event, previous, self.sender.log());
            self.start(event.number, previous, message);
        }
        Ok(None)
    }

    /// Reads the next events of the log.
    async fn read(&mut self) -> Result<(), Error> {
        // What is told from now on is not missed.
        self.last_event.mark_unchanged();
        let (after, last_delivery) = self.outbox.position();
        let query = EventQuery { after, filter: self.filter, limit: READ_AHEAD };
        let page = self.sender.wallet.follow_events(query).await?;
        let sent = match after < last_delivery.min(page.next) {
            true => {
                let query = GetSent { id: self.id, numbers: after + 1..=page.next };
                self.sender.wallet.store().get(query).await?
            }
            false => Vec::new(),
        };
        self.outbox.add(page, &sent);
        // The owner may have changed the webhook through another process, before these events.
        let change_count = self.sender.wallet.store().get(GetWebhookChanges()).await?;
        self.is_changed |= change_count != self.change_count;
        Ok(())
    }

    /// Begins an attempt.
    fn start(&mut self, number: u64, previous: u64, message: Message) {
        self.is_probe = self.is_probing();
        let sender = Arc::clone(&self.sender);
        let at = sender.clock.now();
        let url = self.webhook.url.clone();
        let request = message.request(url.clone(), &self.secrets, at);
        let attempt = async move {
            let (attempt, retry_after) = sender.attempt(request, at).await;
            let random = sender.clock.random();
            AttemptMade { number, previous, url, attempt, retry_after, random }
        };
        self.under_way.push(attempt.boxed());
    }

    /// Reads the webhook again. Returns whether it still exists.
    async fn reload(&mut self) -> Result<bool, Error> {
        self.is_changed = false;
        self.change_count = self.sender.wallet.store().get(GetWebhookChanges()).await?;
        let loaded = self.sender.wallet.store().get(GetWebhook(self.id)).await?;
        let Some(loaded) = loaded else { return Ok(false) };
        self.retries.forget_page();
        self.set(loaded.webhook)?;
        Ok(true)
    }

    /// Continues with the webhook as it is now.
    fn set(&mut self, new: Webhook) -> Result<(), Error> {
        let old = std::mem::replace(&mut self.webhook, new);
        let new = &self.webhook;
        if new.types != old.types {
            self.filter = self.sender.wallet.filter_of(new)?;
            self.outbox.read_again();
        }
        if (&new.secret, &new.former_secret) != (&old.secret, &old.former_secret) {
            self.secrets = self.sender.wallet.secrets_of(self.id, new)?;
        }
        if new.state != old.state || new.url != old.url {
            self.probes = 0;
            self.is_probe = false;
            self.left_alone_until = Timestamp::from_micros(0);
        }
        Ok(())
    }
}
