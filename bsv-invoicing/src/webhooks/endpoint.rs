//! The task of one webhook: what is sent to it, and when.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, OptionFuture};
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::error::Error;
use crate::ledger::Refusal;
use crate::ledger::queries::{GetEvents, GetWebhookChanges};
use crate::ledger::webhooks::{
    AttemptMade, DueDelivery, GetDelivery, GetDueDeliveries, GetSent, GetWebhook, NoteAttempts,
};
use crate::model::event::{EventFilter, EventQuery, WrittenEvent};
use crate::model::time::Timestamp;
use crate::model::webhook::{Webhook, WebhookId, WebhookState};
use crate::store::{WalletStore, WalletStoreError};
use crate::webhooks::client::{WebhookClient, WebhookClock};
use crate::webhooks::message::{Message, Secrets};
use crate::webhooks::outbox::{Outbox, Unsent};
use crate::webhooks::schedule::{FAILURES_BEFORE_PROBING, probe_wait};
use crate::webhooks::sender::WebhookSender;

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

/// The pause after the store could not record something.
const NOTING_PAUSE: Duration = Duration::from_secs(1);
/// A cursor that has moved past events which are not for the endpoint is stored after this many
/// events, or after this time.
const CURSOR_NOTED_AFTER: u64 = 1000;
const CURSOR_NOTED_LATE: Duration = Duration::from_secs(10);

/// The attempts to record, and the webhook after that or the error.
type Noted = (Vec<AttemptMade>, Result<Webhook, WalletStoreError>);

impl<C: WebhookClient, K: WebhookClock> Endpoint<C, K> {
    /// Starts to record all attempts that have ended, in one step, unless others are being
    /// recorded or may end at any moment. Returns when something must be recorded, if that depends on time.
    fn begin_noting(&mut self) -> Option<Timestamp> {
        if self.is_noting || self.is_gathering() {
            return None;
        }
        let now = self.sender.clock.now();
        let note_at = match self.ended.is_empty() {
            false => self.note_after,
            true => self.cursor_due(now)?.max(self.note_after),
        };
        if now < note_at {
            return Some(note_at);
        }
        self.cursor_behind_since = None;
        let attempts = std::mem::take(&mut self.ended);
        for made in &attempts {
            self.outbox.close(made.number);
        }
        let (cursor, last_sent) = self.outbox.cursor();
        let note = NoteAttempts { id: self.id, attempts: attempts.clone(), cursor, last_sent };
        let wallet = Arc::clone(&self.sender.wallet);
        self.noting_count = attempts.len();
        self.is_noting = true;
        let noting = async move { (attempts, wallet.store().execute(note).await) };
        self.noting = Some(noting.boxed()).into();
        None
    }

    /// When to store a cursor that has moved without an attempt.
    fn cursor_due(&mut self, now: Timestamp) -> Option<Timestamp> {
        let behind = self.outbox.cursor().0.saturating_sub(self.webhook.cursor);
        match behind {
            0 => {
                self.cursor_behind_since = None;
                None
            }
            CURSOR_NOTED_AFTER.. => Some(now),
            _ => Some(self.cursor_behind_since.get_or_insert(now).after(CURSOR_NOTED_LATE)),
        }
    }

    /// Continues after attempts were recorded, or could not be. Returns whether the webhook still
    /// exists.
    fn take_noted(&mut self, (attempts, outcome): Noted) -> Result<bool, Error> {
        self.noting = None.into();
        self.is_noting = false;
        self.noting_count = 0;
        match outcome {
            Ok(webhook) => self.go_on(&attempts, webhook).map(|()| true),
            Err(WalletStoreError::Refused(Refusal::UnknownWebhook(_))) => Ok(false),
            Err(error) => {
                tracing::warn!("deliveries to webhook {} cannot be recorded: {error}", self.id);
                self.ended.splice(0..0, attempts);
                self.note_after = self.sender.clock.now().after(NOTING_PAUSE);
                Ok(true)
            }
        }
    }

    fn go_on(&mut self, attempts: &[AttemptMade], webhook: Webhook) -> Result<(), Error> {
        for made in attempts {
            self.retries.close(made.number);
        }
        self.set(webhook)?;
        if self.webhook.failures == 0 {
            self.probes = 0;
        } else if let Some(last) = attempts.last() {
            self.probes += u32::from(self.is_probe);
            if self.webhook.failures >= FAILURES_BEFORE_PROBING {
                self.left_alone_until = last.attempt.ended_at().after(probe_wait(self.probes));
            }
        }
        if attempts.iter().any(|made| !made.attempt.outcome.is_success()) {
            self.retries.forget_page();
        }
        Ok(())
    }
}

/// How many retries are read at once. Those that are under way are among them.
const RETRIES_READ: usize = 2 * MAX_UNFINISHED;

/// The retries of a webhook.
#[derive(Debug, Default)]
struct Retries {
    /// The next retries in the order of time, as they were last read. `None` if they have changed
    /// since.
    page: Option<VecDeque<DueDelivery>>,
    /// The numbers of the events whose retry is under way or not recorded yet.
    under_way: BTreeSet<u64>,
}

impl Retries {
    fn under_way(&self) -> usize {
        self.under_way.len()
    }

    /// Makes the next look read the retries again.
    fn forget_page(&mut self) {
        self.page = None;
    }

    /// The attempt for this event is recorded.
    fn close(&mut self, number: u64) {
        self.under_way.remove(&number);
    }
}

impl<C: WebhookClient, K: WebhookClock> Endpoint<C, K> {
    /// The next retry.
    async fn next_retry(&mut self) -> Result<Option<DueDelivery>, Error> {
        if self.retries.page.is_none() {
            let page = match self.webhook.holding {
                Some(number) => self.holding(number).await?,
                None => {
                    let query = GetDueDeliveries { id: self.id, limit: RETRIES_READ };
                    self.sender.wallet.store().get(query).await?
                }
            };
            let is_free = |due: &DueDelivery| {
                !self.retries.under_way.contains(&due.number) && !self.outbox.is_open(due.number)
            };
            self.retries.page = Some(page.into_iter().filter(is_free).collect());
        }
        Ok(self.retries.page.as_ref().and_then(|page| page.front()).copied())
    }

    /// The retry of the event that later ones wait for.
    async fn holding(&mut self, number: u64) -> Result<Vec<DueDelivery>, Error> {
        let delivery = self.sender.wallet.store().get(GetDelivery { id: self.id, number }).await?;
        let at = delivery.and_then(|delivery| delivery.state.next_attempt_at());
        Ok(at.map(|at| DueDelivery { at, number }).into_iter().collect())
    }

    /// Begins the retry of the event with this number. It is the first of the page.
    async fn start_retry(&mut self, number: u64) -> Result<(), Error> {
        let store = self.sender.wallet.store();
        let delivery = store.get(GetDelivery { id: self.id, number }).await?;
        let event = store.get(GetEvents(number - 1, 1)).await?.into_iter().next();
        if let Some(page) = &mut self.retries.page {
            page.pop_front();
            if page.is_empty() {
                self.retries.page = None;
            }
        }
        if let Some((delivery, event)) = delivery.zip(event) {
            self.retries.under_way.insert(number);
            let log = self.sender.log();
            let event = WrittenEvent::new(&event, log);
            let message = Message::of(&event, delivery.previous, log);
            self.start(number, delivery.previous, message);
        }
        Ok(())
    }
}
