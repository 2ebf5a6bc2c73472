//! The progress of webhooks, and their deliveries.

use bsv_invoicing::events::EventData;
use bsv_invoicing::ledger::NameLog;
use bsv_invoicing::ledger::webhooks::{
    AttemptMade, ChangeWebhook, CreateWebhook, DeleteWebhook, ForgetDeliveries, GetDeliveries,
    GetDelivery, GetDueDeliveries, GetLags, GetSent, GetWebhook, GetWebhooks, Lag, NoteAttempts,
    Redeliver, Replay, Replayed, RotateSecret,
};
use bsv_invoicing::webhooks::{
    Attempt, AttemptFailure, AttemptOutcome, Delivery, DeliveryState, Webhook, WebhookChange,
    WebhookDraft, WebhookId, WebhookState,
};

use super::*;

const ONE: WebhookId = WebhookId::from_number(1);
const OTHER: WebhookId = WebhookId::from_number(2);
const OK: AttemptOutcome = AttemptOutcome::Answered(200);
const ERROR: AttemptOutcome = AttemptOutcome::Answered(500);
/// The random number that makes the waits exactly those of the schedule.
const MIDDLE: u32 = u32::MAX / 2;

fn draft() -> WebhookDraft {
    WebhookDraft {
        url: "https://shop.example/hook".to_owned(),
        types: "*".to_owned(),
        description: "the shop".to_owned(),
        in_order: false,
        after: Some(0),
    }
}

fn new(id: WebhookId) -> CreateWebhook {
    CreateWebhook { id, draft: draft(), secret: vec![7; 72], now: at(0) }
}

/// A webhook that begins after the event with this number.
fn new_after(id: WebhookId, after: Option<u64>) -> CreateWebhook {
    CreateWebhook { draft: WebhookDraft { after, ..draft() }, ..new(id) }
}

fn made(number: u64, seconds: u64, outcome: AttemptOutcome) -> AttemptMade {
    let answer = "é\0\"".to_owned();
    let attempt = Attempt { at: at(seconds), milliseconds: 0, outcome, answer };
    let (url, previous) = (draft().url, number - 1);
    AttemptMade { number, previous, url, attempt, retry_after: None, random: MIDDLE }
}

/// Records attempts, and that everything up to `cursor` is done.
async fn note(store: &impl WalletStore, attempts: Vec<AttemptMade>, cursor: u64) -> Webhook {
    let note = NoteAttempts { id: ONE, attempts, cursor, last_sent: cursor };
    store.execute(note).await.unwrap()
}

async fn delivery(store: &impl WalletStore, number: u64) -> Option<Delivery> {
    store.get(GetDelivery { id: ONE, number }).await.unwrap()
}

/// The numbers of the events that are sent again, and the times in seconds.
async fn due(store: &impl WalletStore) -> Vec<(u64, u64)> {
    let due = store.get(GetDueDeliveries { id: ONE, limit: 99 }).await.unwrap();
    let seconds = |time: Timestamp| (time.as_micros() - at(0).as_micros() + 500_000) / 1_000_000;
    due.into_iter().map(|due| (due.number, seconds(due.at))).collect()
}

async fn change(store: &impl WalletStore, change: WebhookChange) -> Webhook {
    store.execute(ChangeWebhook { id: ONE, change }).await.unwrap()
}

/// Makes `count` events by creating users.
async fn some_events(store: &impl WalletStore, count: usize) {
    for _ in 0..count {
        store.create_user(user_named("Ada"), at(0), None).await.unwrap();
    }
}

pub(super) async fn made_and_changed(store: &impl WalletStore) {
    some_events(store, 3).await;
    let first = store.execute(new(OTHER)).await.unwrap();
    assert_eq!((first.state, first.cursor, first.last_sent), (WebhookState::Enabled, 0, 0));
    let second = CreateWebhook { now: at(1), ..new_after(ONE, None) };
    let second = store.execute(second).await.unwrap();
    assert_eq!(second.cursor, 3);
    let all = store.get(GetWebhooks).await.unwrap();
    assert_eq!(all, [(OTHER, first), (ONE, second.clone())]);

    assert_refused!(store.execute(new(ONE)).await, Refusal::WebhookIdTaken(_));
    let ahead = new_after(WebhookId::from_number(3), Some(4));
    assert_refused!(store.execute(ahead).await, Refusal::CursorAhead { after: 4, last: 3 });
    for number in 3..=16 {
        store.execute(new(WebhookId::from_number(number))).await.unwrap();
    }
    let one_more = new(WebhookId::from_number(17));
    assert_refused!(store.execute(one_more).await, Refusal::TooManyWebhooks(16));

    let changed = change(
        store,
        WebhookChange {
            url: Some("https://other.example/".to_owned()),
            types: Some("user.*".to_owned()),
            in_order: Some(true),
            ..WebhookChange::default()
        },
    )
    .await;
    let (url, types) = ("https://other.example/".to_owned(), "user.*".to_owned());
    assert_eq!(changed, Webhook { url, types, in_order: true, ..second });
    let loaded = store.get(GetWebhook(ONE)).await.unwrap().unwrap();
    assert_eq!((loaded.webhook, loaded.last_delivery), (changed, 0));

    store.execute(DeleteWebhook { id: ONE }).await.unwrap();
    assert_eq!(store.get(GetWebhook(ONE)).await.unwrap(), None);
    assert_refused!(store.execute(DeleteWebhook { id: ONE }).await, Refusal::UnknownWebhook(ONE));
    let nothing = WebhookChange::default();
    let change = ChangeWebhook { id: ONE, change: nothing };
    assert_refused!(store.execute(change).await, Refusal::UnknownWebhook(ONE));
    let note = NoteAttempts { id: ONE, attempts: vec![made(1, 1, OK)], cursor: 1, last_sent: 1 };
    assert_refused!(store.execute(note).await, Refusal::UnknownWebhook(ONE));
}

pub(super) async fn attempts(store: &impl WalletStore) {
    some_events(store, 4).await;
    store.execute(new(ONE)).await.unwrap();
    let timeout = AttemptOutcome::Failed(AttemptFailure::Timeout);
    let attempts = vec![made(2, 10, OK), made(1, 11, ERROR), made(3, 12, timeout)];
    let webhook = note(store, attempts, 3).await;
    assert_eq!((webhook.cursor, webhook.last_sent), (3, 3));
    let since = (webhook.last_success_at, webhook.failing_since, webhook.failures);
    assert_eq!(since, (Some(at(10)), Some(at(11)), 2));
    assert_eq!(due(store).await, [(1, 16), (3, 17)]);
    let second = delivery(store, 2).await.unwrap();
    assert_eq!((second.state, second.previous, second.tries), (DeliveryState::Delivered, 1, 1));
    assert_eq!(second.attempts, [made(2, 10, OK).attempt]);
    let loaded = store.get(GetWebhook(ONE)).await.unwrap().unwrap();
    assert_eq!((loaded.last_delivery, loaded.webhook), (3, webhook));

    // The cursor never goes back. The endpoint's `Retry-After` lengthens the wait.
    let asks = AttemptMade { retry_after: Some(HOUR), ..made(3, 20, ERROR) };
    let webhook = note(store, vec![asks, made(1, 21, OK)], 2).await;
    assert_eq!((webhook.cursor, webhook.failures, webhook.failing_since), (3, 0, None));
    assert_eq!(due(store).await, [(3, 3620)]);
    let waits = [1, 2, 3, 4].map(|after| GetDeliveries { id: ONE, state: None, after, limit: 2 });
    let mut pages = Vec::new();
    for query in waits {
        let (page, next) = store.list(query).await.unwrap();
        pages.push((page.iter().map(|listed| listed.number).collect::<Vec<_>>(), next));
    }
    let expected = [(vec![2, 3], None), (vec![3], None), (vec![], None), (vec![], None)];
    assert_eq!(pages, expected);
    let delivered = GetDeliveries { id: ONE, state: Some("delivered"), after: 0, limit: 1 };
    let (page, next) = store.list(delivered).await.unwrap();
    assert_eq!((page[0].number, page.len(), next), (1, 1, Some(1)));
    assert_eq!(page[0].kind, EventKind::UserCreated);
}

pub(super) async fn in_order(store: &impl WalletStore) {
    some_events(store, 3).await;
    let draft = WebhookDraft { in_order: true, ..draft() };
    store.execute(CreateWebhook { draft, ..new(ONE) }).await.unwrap();
    assert_eq!(note(store, vec![made(1, 1, ERROR)], 1).await.holding, Some(1));
    assert_eq!(note(store, vec![made(1, 6, ERROR)], 1).await.holding, Some(1));
    assert_eq!(note(store, vec![made(1, 36, OK)], 1).await.holding, None);
    for attempt in 1..=11 {
        assert_eq!(note(store, vec![made(2, 100 + attempt, ERROR)], 2).await.holding, Some(2));
    }
    // An event that has finally failed holds nothing back.
    assert_eq!(note(store, vec![made(2, 200, ERROR)], 2).await.holding, None);
    assert_eq!(delivery(store, 2).await.unwrap().state, DeliveryState::Failed);
    assert_eq!(note(store, vec![made(3, 201, ERROR)], 3).await.holding, Some(3));
    let change = change(store, WebhookChange { in_order: Some(false), ..Default::default() }).await;
    assert_eq!(change.holding, None);
}

pub(super) async fn disabled(store: &impl WalletStore) {
    some_events(store, 3).await;
    store.execute(new(ONE)).await.unwrap();
    let seconds = 120 * 3600;
    assert_eq!(note(store, vec![made(1, 0, ERROR)], 1).await.state, WebhookState::Enabled);
    let almost = note(store, vec![made(1, seconds - 1, ERROR)], 1).await;
    assert_eq!(almost.state, WebhookState::Enabled);
    let disabled = note(store, vec![made(1, seconds, ERROR)], 1).await;
    assert_eq!((disabled.state, disabled.failures), (WebhookState::Disabled, 3));
    let told = |state, failing_since| EventData::Webhook { webhook_id: ONE, state, failing_since };
    assert_eq!(events(store).await[3].data, told("disabled", at(0)));
    // Attempts that had begun are recorded, and change nothing else.
    assert_eq!(note(store, vec![made(2, seconds, ERROR)], 2).await.state, WebhookState::Disabled);
    assert_eq!(events(store).await.len(), 4);

    let enable = WebhookChange { is_enabled: Some(true), ..Default::default() };
    let enabled = change(store, enable.clone()).await;
    assert_eq!((enabled.state, enabled.cursor), (WebhookState::Enabled, 2));
    assert_eq!((enabled.failures, enabled.failing_since), (0, None));
    let gone = AttemptOutcome::Answered(410);
    let gone = note(store, vec![made(3, seconds + 9, gone)], 3).await;
    assert_eq!(gone.state, WebhookState::Gone);
    assert_eq!(events(store).await[4].data, told("gone", at(seconds + 9)));
    assert_eq!(change(store, enable).await.state, WebhookState::Enabled);
    let disable = WebhookChange { is_enabled: Some(false), ..Default::default() };
    assert_eq!(change(store, disable).await.state, WebhookState::Disabled);
    assert_eq!(events(store).await.len(), 5);
}

/// A webhook that gets another URL has another endpoint.
pub(super) async fn moved(store: &impl WalletStore) {
    some_events(store, 3).await;
    store.execute(new(ONE)).await.unwrap();
    assert_eq!(note(store, vec![made(1, 1, ERROR)], 1).await.failures, 1);
    let same = WebhookChange { url: Some(draft().url), ..Default::default() };
    assert_eq!(change(store, same).await.failures, 1);
    let url = "https://other.example/".to_owned();
    let moved = WebhookChange { url: Some(url.clone()), ..Default::default() };
    let moved = change(store, moved).await;
    assert_eq!((moved.failures, moved.failing_since), (0, None));
    // These attempts began before.
    let gone = AttemptOutcome::Answered(410);
    let noted = note(store, vec![made(1, 6, OK), made(2, 6, ERROR), made(3, 7, gone)], 3).await;
    assert_eq!(noted, Webhook { cursor: 3, last_sent: 3, ..moved });
    assert_eq!(delivery(store, 1).await.unwrap().state, DeliveryState::Delivered);
    assert_eq!(due(store).await, [(2, 11), (3, 12)]);
    let failed = note(store, vec![AttemptMade { url, ..made(2, 11, ERROR) }], 3).await;
    assert_eq!((failed.failures, failed.failing_since), (1, Some(at(11))));
}

pub(super) async fn secrets(store: &impl WalletStore) {
    store.execute(new(ONE)).await.unwrap();
    let rotate = |secret: u8, grace, now| {
        store.execute(RotateSecret { id: ONE, secret: vec![secret; 72], grace, now })
    };
    let webhook = rotate(8, HOUR, at(1)).await.unwrap();
    let former = webhook.former_secret.unwrap();
    assert_eq!((webhook.secret[0], former.sealed[0], former.until), (8, 7, at(3601)));
    assert_refused!(rotate(9, HOUR, at(3600)).await, Refusal::TwoSecrets(until) if until == at(3601));
    let webhook = rotate(9, Duration::ZERO, at(3601)).await.unwrap();
    assert_eq!((webhook.secret[0], webhook.former_secret), (9, None));
    // The grace is a week at most.
    let webhook = rotate(10, YEAR, at(3602)).await.unwrap();
    assert_eq!(webhook.former_secret.unwrap().until, at(3602 + 604_800));
}

pub(super) async fn again(store: &impl WalletStore) {
    some_events(store, 6).await;
    store.execute(new(ONE)).await.unwrap();
    let redeliver = |number| store.execute(Redeliver { id: ONE, number, now: at(99) });
    let unknown = redeliver(1).await;
    assert_refused!(unknown, Refusal::UnknownDelivery { id: ONE, number: 1 });
    for attempt in 0..12 {
        note(store, vec![made(1, attempt, ERROR), made(3, attempt, ERROR)], 3).await;
    }
    note(store, vec![made(2, 20, OK), made(4, 20, OK)], 4).await;
    assert_eq!(due(store).await, []);
    redeliver(1).await.unwrap();
    redeliver(2).await.unwrap();
    assert_eq!(due(store).await, [(1, 99), (2, 99)]);
    assert_eq!(delivery(store, 2).await.unwrap().tries, 0);
    note(store, vec![made(1, 100, ERROR), made(2, 100, OK)], 4).await;
    // It gets all attempts again.
    assert_eq!(due(store).await, [(1, 105)]);

    let replay = |after, until, only_failed, limit| {
        store.execute(Replay { id: ONE, after, until, only_failed, limit, now: at(200) })
    };
    let failed = replay(0, u64::MAX, true, 99).await.unwrap();
    assert_eq!(failed, Replayed { count: 1, next: None });
    assert_eq!(due(store).await, [(1, 105), (3, 200)]);
    // A page of one, and what comes after it.
    note(store, vec![made(2, 300, ERROR)], 4).await;
    for attempt in 0..12 {
        note(store, vec![made(2, 300, ERROR), made(3, 300 + attempt, ERROR)], 4).await;
    }
    let first = replay(1, u64::MAX, true, 1).await.unwrap();
    assert_eq!(first, Replayed { count: 1, next: Some(2) });
    let rest = replay(2, u64::MAX, true, 9).await.unwrap();
    assert_eq!(rest, Replayed { count: 1, next: None });
    assert_eq!(due(store).await, [(1, 105), (2, 200), (3, 200)]);
    note(store, vec![made(2, 300, OK)], 4).await;
    assert_eq!(due(store).await, [(1, 105), (3, 200)]);
    // Events after the cursor are sent anyway.
    assert_eq!(replay(4, 6, false, 99).await.unwrap(), Replayed { count: 0, next: None });
    assert_eq!(replay(1, 3, false, 1).await.unwrap(), Replayed { count: 1, next: Some(2) });
    assert_eq!(replay(2, 3, false, 1).await.unwrap(), Replayed { count: 1, next: Some(3) });
    assert_eq!(replay(3, 3, false, 1).await.unwrap(), Replayed { count: 0, next: None });
    assert_eq!(due(store).await, [(1, 105), (2, 200), (3, 200)]);

    // Among events without a delivery, only those of the current types are sent.
    store.execute(new_after(OTHER, None)).await.unwrap();
    create(store, at(1), HOUR).await;
    let note = NoteAttempts { id: OTHER, attempts: vec![], cursor: 7, last_sent: 0 };
    store.execute(note).await.unwrap();
    let types = WebhookChange { types: Some("user.*".to_owned()), ..Default::default() };
    store.execute(ChangeWebhook { id: OTHER, change: types }).await.unwrap();
    let all = Replay { id: OTHER, after: 4, until: 7, only_failed: false, limit: 99, now: at(9) };
    assert_eq!(store.execute(all).await.unwrap(), Replayed { count: 2, next: None });
    let query = GetDeliveries { id: OTHER, state: Some("pending"), after: 0, limit: 9 };
    let (pending, _) = store.list(query).await.unwrap();
    let pending: Vec<_> = pending.iter().map(|it| (it.number, it.delivery.previous)).collect();
    assert_eq!(pending, [(5, 0), (6, 5)]);
}

pub(super) async fn forgotten(store: &impl WalletStore) {
    some_events(store, 4).await;
    for id in [ONE, OTHER] {
        store.execute(new(id)).await.unwrap();
        let attempts = vec![made(1, 0, OK), made(2, 9, OK), made(3, 0, ERROR)];
        let note = NoteAttempts { id, attempts, cursor: 3, last_sent: 3 };
        store.execute(note).await.unwrap();
    }
    let days = 30 * 24 * 3600;
    let forget = |now, limit| store.execute(ForgetDeliveries { now, limit });
    assert_refused!(forget(at(days), 9).await, Refusal::NothingDue);
    assert_eq!(forget(at(days + 1), 1).await.unwrap(), 1);
    assert_eq!(forget(at(days + 1), 9).await.unwrap(), 1);
    assert_refused!(forget(at(days + 1), 9).await, Refusal::NothingDue);
    assert_eq!(delivery(store, 1).await, None);
    assert!(delivery(store, 2).await.is_some());
    // A delivery that is not over stays.
    assert_eq!(forget(at(days * 2), 9).await.unwrap(), 2);
    assert!(delivery(store, 3).await.is_some());

    for number in 1..=4 {
        note(store, vec![made(number, days * 2, OK)], number).await;
    }
    store.execute(DeleteWebhook { id: ONE }).await.unwrap();
    assert_eq!(forget(at(days * 2), 3).await.unwrap(), 3);
    assert_eq!(forget(at(days * 2), 3).await.unwrap(), 1);
    assert_refused!(forget(at(days * 2), 3).await, Refusal::NothingDue);
    assert_eq!(due(store).await, []);
    assert!(store.get(GetDelivery { id: OTHER, number: 3 }).await.unwrap().is_some());

    // Old deliveries and those of two deleted webhooks share the limit.
    let more = [3, 4].map(WebhookId::from_number);
    for (id, count) in [(OTHER, 2), (more[0], 1), (more[1], 3)] {
        if id != OTHER {
            store.execute(new(id)).await.unwrap();
        }
        let attempts = (1..=count).map(|number| made(number, 0, OK)).collect();
        store.execute(NoteAttempts { id, attempts, cursor: 3, last_sent: 3 }).await.unwrap();
    }
    for id in more {
        store.execute(DeleteWebhook { id }).await.unwrap();
    }
    for (limit, count) in [(2, 2), (3, 3), (3, 1)] {
        assert_eq!(forget(at(days * 2), limit).await.unwrap(), count);
    }
    assert_refused!(forget(at(days * 2), 3).await, Refusal::NothingDue);
}

/// Deliveries in a state are found among many in other states.
pub(super) async fn found(store: &impl WalletStore) {
    const MANY: u64 = 300;
    let user = |_| store.create_user(user_named("Ada"), at(0), None);
    futures_util::future::try_join_all((0..MANY).map(user)).await.unwrap();
    store.execute(new(ONE)).await.unwrap();
    let attempts = (1..=MANY).map(|number| made(number, 1, if number < MANY { OK } else { ERROR }));
    note(store, attempts.collect(), MANY).await;
    let query = GetDeliveries { id: ONE, state: Some("pending"), after: 0, limit: 9 };
    let (pending, next) = store.list(query).await.unwrap();
    assert_eq!(pending.iter().map(|it| it.number).collect::<Vec<_>>(), [MANY]);
    assert_eq!(next, None);
}

/// An enabled webhook that is enabled again keeps its failures. They count until it is disabled.
pub(super) async fn enabled_again(store: &impl WalletStore) {
    some_events(store, 3).await;
    store.execute(new(ONE)).await.unwrap();
    note(store, vec![made(1, 10, ERROR)], 1).await;
    let enable = WebhookChange { is_enabled: Some(true), ..WebhookChange::default() };
    let failing = change(store, enable.clone()).await;
    assert_eq!((failing.failing_since, failing.failures), (Some(at(10)), 1));
    let disable = WebhookChange { is_enabled: Some(false), ..WebhookChange::default() };
    assert_eq!(change(store, disable).await.failing_since, Some(at(10)));
    let enabled = change(store, enable).await;
    assert_eq!((enabled.failing_since, enabled.failures), (None, 0));
    // The last sent event belongs to the cursor.
    let same = NoteAttempts { id: ONE, attempts: vec![], cursor: 1, last_sent: 0 };
    assert_eq!(store.execute(same).await.unwrap().last_sent, 1);
}

pub(super) async fn sent(store: &impl WalletStore) {
    some_events(store, 7).await;
    store.execute(new(ONE)).await.unwrap();
    store.execute(new(OTHER)).await.unwrap();
    let sent = async |id, numbers| store.get(GetSent { id, numbers }).await.unwrap();
    assert_eq!(sent(ONE, 1..=7).await, [0; 0]);
    note(store, vec![made(6, 1, ERROR), made(2, 1, OK)], 0).await;
    for (numbers, expected) in
        [(1..=7, &[2, 6][..]), (2..=6, &[2, 6]), (3..=5, &[]), (7..=u64::MAX, &[])]
    {
        assert_eq!(sent(ONE, numbers.clone()).await, expected, "{numbers:?}");
    }
    assert_eq!(sent(OTHER, 1..=7).await, [0; 0]);
}

pub(super) async fn lags(store: &impl WalletStore) {
    assert_eq!(store.get(GetLags).await.unwrap(), []);
    let users = [(); 4].map(|()| user_named("Ada"));
    for (second, user) in users.into_iter().enumerate() {
        store.create_user(user, at(second as u64), None).await.unwrap();
    }
    store.execute(new(ONE)).await.unwrap();
    store.execute(new_after(OTHER, None)).await.unwrap();
    let lags = async || store.get(GetLags).await.unwrap();
    let of_one = |events, oldest: Option<u64>| Lag { id: ONE, events, oldest: oldest.map(at) };
    let none = Lag { id: OTHER, events: 0, oldest: None };
    assert_eq!(lags().await, [of_one(4, Some(0)), none]);
    note(store, vec![made(1, 10, OK), made(3, 11, OK)], 1).await;
    assert_eq!(lags().await, [of_one(3, Some(1)), none]);
    note(store, vec![made(2, 12, ERROR), made(4, 12, OK)], 4).await;
    assert_eq!(lags().await, [of_one(0, Some(1)), none]);
    note(store, vec![made(2, 20, OK)], 4).await;
    assert_eq!(lags().await, [of_one(0, None), none]);
}

pub(super) async fn restored(store: &impl WalletStore) {
    let names = [[1; 4], [2; 4]].map(LogName::from_bytes);
    for id in [ONE, OTHER] {
        store.execute(new(id)).await.unwrap();
    }
    store.execute(NameLog(names[0])).await.unwrap();
    let states = async || {
        let webhooks = store.get(GetWebhooks).await.unwrap();
        webhooks.into_iter().map(|(_, webhook)| webhook.state).collect::<Vec<_>>()
    };
    assert_eq!(states().await, [WebhookState::Enabled; 2]);
    store.execute(NameLog(names[1])).await.unwrap();
    assert_eq!(states().await, [WebhookState::Disabled; 2]);
}
