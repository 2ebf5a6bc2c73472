//! What every back end of [`WalletStore`] must do: a back end runs this against itself.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

mod accounts;
mod aftercare;
mod at_once;
mod calls;
mod changes;
mod coins;
mod idempotency;
mod ids;
mod making;
mod money;
mod noticed;
mod pages;
mod payments;
mod refunds;
mod reservations;
mod sweep;
mod telling;
mod webhooks;
mod withdrawals;

use std::time::Duration;

use bsv_invoicing::ledger::rows::{AccountStart, FollowedBlock};
use bsv_invoicing::ledger::webhooks::{GetDeliveries, GetWebhooks, ListedDelivery};
use bsv_invoicing::ledger::{CreateInvoice, GetLogName, Refusal, UserRecord};
use bsv_invoicing::{
    Event, EventKind, Followed, IdempotencyKey, Invoice, InvoiceDraft, LogName, OutgoingPayment,
    Timestamp, UserDraft, WalletStore, WalletStoreError, Webhook, WebhookId,
};

pub(crate) use at_once::run_at_once;
pub(crate) use calls::Calls;
pub(crate) use ids::{id, new_id};
pub(crate) use money::run_random_steps;

/// That the rules refuse something, and why.
macro_rules! assert_refused {
    ($outcome:expr, $refusal:pat $(if $guard:expr)?) => {
        match $outcome {
            Err(WalletStoreError::Refused($refusal)) $(if $guard)? => {}
            outcome => panic!("not refused for that: {outcome:?}"),
        }
    };
}
pub(crate) use assert_refused;

/// Where a store lies that can be closed and opened again.
pub(crate) trait Place {
    /// The back end.
    type Store: WalletStore;

    /// A place with nothing in it.
    fn fresh() -> Self;

    /// Opens the store that lies here.
    fn open(&self) -> Self::Store;
}

/// Runs all scenarios of one caller, each in a fresh place.
pub(crate) async fn run<P: Place>() {
    check::<P>("nothing is known of a new store", changes::nothing).await;
    check::<P>("invoices are numbered from 1 without gaps", changes::numbers).await;
    check::<P>("drafts of every form are kept as they are", changes::every_form).await;
    check::<P>("nothing is created before the last event", changes::clock_set_back).await;
    check::<P>("an invoice that has expired is not created", changes::already_expired).await;
    check::<P>("an invoice is deleted once, and its number stays used", changes::delete).await;
    check::<P>("the expiry of a deleted invoice is told first", changes::delete_expired).await;
    check::<P>("users are numbered from 1, and kept as they are", changes::users).await;
    check::<P>("a store belongs to one wallet", changes::adopt).await;
    check::<P>("events are answered in parts, in order", changes::events_in_parts).await;
    check::<P>("an event is written in one form", telling::form).await;
    check::<P>("an event is less than 20 kB", telling::longest).await;
    check::<P>("payments are told by invoice, with sums", telling::payments).await;
    check::<P>("what is late, and what is marked, is told", telling::late).await;
    check::<P>("a refund is told when the network shows it", telling::refunded).await;
    check::<P>("a withdrawal is told when all of it is shown", telling::withdrawn).await;
    check::<P>("what is spent elsewhere is told", telling::spent_elsewhere).await;
    check::<P>("what was told never changes", telling::unchanged).await;
    check::<P>("a log has one name at a time", telling::named).await;
    check::<P>("webhooks are made, changed and deleted", webhooks::made_and_changed).await;
    check::<P>("attempts are noted, and made again when due", webhooks::attempts).await;
    check::<P>("what fails in order holds the next one back", webhooks::in_order).await;
    check::<P>("who takes nothing for 120 hours is disabled", webhooks::disabled).await;
    check::<P>("two secrets sign at most", webhooks::secrets).await;
    check::<P>("what was sent is sent again when asked for", webhooks::again).await;
    check::<P>("deliveries are forgotten after 30 days", webhooks::forgotten).await;
    check::<P>("what is not sent yet is found", webhooks::unsent).await;
    check::<P>("how far webhooks are behind is told", webhooks::lags).await;
    check::<P>("webhooks of a restored copy are disabled", webhooks::restored).await;
    check::<P>("an expiry is told when it is due, and once", sweep::once).await;
    check::<P>("expiries are told in their order, up to a limit", sweep::in_order).await;
    check::<P>("the expiry of a deleted invoice is not told", sweep::deleted).await;
    check::<P>("what is due is measured from the last event", sweep::clock_set_back).await;
    check::<P>("nothing expires while the clock is doubted", sweep::doubted_clock).await;
    check::<P>("old keys and expiries share the limit", sweep::keys).await;
    check::<P>("a request that comes again is answered as first", idempotency::again).await;
    check::<P>("a key that comes with another request is refused", idempotency::reused).await;
    check::<P>("a key is known for 24 hours", idempotency::forgotten).await;
    check::<P>("the age of keys counts to the last event", idempotency::clock_set_back).await;
    check::<P>("a key that is used again counts from then", idempotency::used_again).await;
    check::<P>("a refused request uses no key up", idempotency::refused).await;
    idempotency::reopened::<P>().await;
    check::<P>("a page begins and ends where it is asked to", pages::bounds).await;
    check::<P>("pages hold the states of their time", pages::states).await;
    check::<P>("all pages together hold each invoice once", pages::walk).await;
    check::<P>("an invoice is paid once, by what is in flight for it", payments::received).await;
    check::<P>("only who pays first says where refunds go", refunds::first_payer).await;
    check::<P>("refunds go to who sent the payment that counts", refunds::shown_payment).await;
    check::<P>("what the network shows is noticed, in parts too", noticed::in_parts).await;
    check::<P>("what was offered is noticed once", noticed::offered).await;
    check::<P>("rules decide whether an invoice is paid", noticed::by_rules).await;
    check::<P>("what a coinbase transaction makes matures", noticed::coinbase).await;
    check::<P>("keys of the backlog are watched", noticed::backlog).await;
    check::<P>("an invoice is refunded in parts, each once", refunds::in_parts).await;
    check::<P>("what was not asked for goes back", refunds::surplus).await;
    check::<P>("a refund with a key is made once while it lasts", refunds::with_a_key).await;
    check::<P>("a withdrawal of all is known as a whole or not", withdrawals::all).await;
    check::<P>("a withdrawal is made once per key", withdrawals::once_per_key).await;
    check::<P>("a withdrawal sends what can pay for itself", withdrawals::limits).await;
    check::<P>("old coins are brought together", withdrawals::consolidated).await;
    check::<P>("what the network refuses is shown to nobody", payments::refused).await;
    check::<P>("what was refused counts if the network shows it", payments::refused_and_shown)
        .await;
    check::<P>("what was refused is forgotten in time", payments::refused_and_forgotten).await;
    check::<P>("what a payment builds on is kept while it is needed", payments::with_ancestors)
        .await;
    check::<P>("a payment with too low a fee counts once it is mined", payments::waiting).await;
    check::<P>("an invoice whose payment is displaced is unpaid", payments::displaced).await;
    check::<P>("what expires after its payment is displaced is told", payments::displaced_late)
        .await;
    check::<P>("what the network shows no more counts, and cannot be spent", payments::contested)
        .await;
    check::<P>("coins are reserved, and spent once they are", payments::paid_out).await;
    check::<P>("a payment with a key is made once", payments::paid_once_with_a_key).await;
    check::<P>("an open payment is cancelled once", payments::cancelled).await;
    check::<P>("what is seen first counts: payment or cancellation", payments::not_cancelled).await;
    check::<P>(
        "what spends a lost coin is followed with its maker",
        aftercare::of_a_followed_maker,
    )
    .await;
    check::<P>("what lost its coin to a block is let go", aftercare::of_a_taken_coin).await;
    check::<P>("proofs are kept, and follow the chain", payments::proved).await;
    check::<P>("reserved coins are recorded, or released", reservations::reserved).await;
    check::<P>("what was released is not recorded", reservations::recorded_too_late).await;
    check::<P>("what is reserved is lost with its maker", reservations::displaced).await;
    check::<P>("attempts for one purpose exclude each other", reservations::attempts).await;
    check::<P>(
        "an attempt waits for a coin of an earlier one",
        reservations::attempt_without_a_coin,
    )
    .await;
    reservations::crashed::<P>().await;
    check::<P>("the smallest coin that suffices is spent", coins::smallest_single).await;
    check::<P>("strangers' unconfirmed coins are spent last", coins::sure_ones_first).await;
    check::<P>("as few coins as possible, the largest first", coins::largest_first).await;
    check::<P>("of many coins of similar worth the best is found", coins::compared).await;
    check::<P>("what its own fee eats up is no coin", coins::dust).await;
    check::<P>("a payment spends so many coins at most", coins::many).await;
    check::<P>("accounts are begun once, in their order", accounts::begun).await;
    check::<P>("keys begin anew in a new account", accounts::keys).await;
    check::<P>("a copy of an earlier day catches up", accounts::catch_up).await;
    check::<P>("the followed block is remembered", accounts::followed_tip).await;
}

/// Runs a scenario, and compares what the store holds after it with what it holds when it is opened
/// again.
async fn check<P: Place>(name: &str, scenario: impl AsyncFnOnce(&P::Store)) {
    eprintln!("{name}");
    let place = P::fresh();
    let store = place.open();
    scenario(&store).await;
    let held = Held::of(&store).await;
    drop(store);
    assert_eq!(Held::of(&place.open()).await, held);
}

/// All that can be read of a store.
#[derive(Debug, PartialEq)]
struct Held {
    invoices: Vec<Invoice>,
    users: Vec<UserRecord>,
    events: Vec<Event>,
    last_event_at: Timestamp,
    log: Option<LogName>,
    balance: u64,
    owner: Option<[u8; 20]>,
    accounts: Vec<(u32, AccountStart)>,
    followed: Vec<Followed>,
    followed_tip: Option<FollowedBlock>,
    outgoing: Vec<OutgoingPayment>,
    webhooks: Vec<(WebhookId, Webhook)>,
    deliveries: Vec<ListedDelivery>,
}

impl Held {
    async fn of(store: &impl WalletStore) -> Self {
        let webhooks = store.get(GetWebhooks).await.unwrap();
        let mut deliveries = Vec::new();
        for (id, _) in &webhooks {
            let all = GetDeliveries { id: *id, state: None, after: 0, limit: 10_000 };
            deliveries.extend(store.list(all).await.unwrap().0);
        }
        Self {
            invoices: invoices(store).await,
            users: users(store).await,
            events: events(store).await,
            last_event_at: store.last_event_at().await.unwrap(),
            log: store.get(GetLogName).await.unwrap(),
            balance: store.balance().await.unwrap(),
            owner: store.owner().await.unwrap(),
            accounts: store.accounts().await.unwrap(),
            followed: store.followed(0, 10_000).await.unwrap(),
            followed_tip: store.followed_tip().await.unwrap(),
            outgoing: store.outgoing_before(u64::MAX, 10_000).await.unwrap(),
            webhooks,
            deliveries,
        }
    }
}

/// All invoices, also deleted ones.
async fn invoices(store: &impl WalletStore) -> Vec<Invoice> {
    let mut invoices = Vec::new();
    while let Some(invoice) = store.invoice(invoices.len() as u64 + 1).await.unwrap() {
        assert_eq!(invoice.number, invoices.len() as u64 + 1);
        invoices.push(invoice);
    }
    invoices
}

async fn users(store: &impl WalletStore) -> Vec<UserRecord> {
    let mut users = Vec::new();
    while let Some(user) = store.user(users.len() as u64 + 1).await.unwrap() {
        assert_eq!(user.0, users.len() as u64 + 1);
        users.push(user);
    }
    users
}

/// All events, which are numbered without gaps, and whose times never go back.
async fn events(store: &impl WalletStore) -> Vec<Event> {
    let events = store.events(0, 10_000).await.unwrap();
    for (event, number) in events.iter().zip(1..) {
        assert_eq!(event.number, number);
    }
    assert!(events.is_sorted_by_key(|event| event.at), "{events:?}");
    let last = events.last().map_or(Timestamp::from_micros(0), |event| event.at);
    assert_eq!(store.last_event_at().await.unwrap(), last);
    events
}

/// When what happened to which, after the event of this number.
async fn happened(store: &impl WalletStore, after: usize) -> Vec<(Timestamp, (EventKind, u64))> {
    let events = events(store).await;
    events[after..].iter().map(|event| (event.at, (event.kind, event.subject))).collect()
}

/// A moment in 2027, which no scenario takes from the system's clock.
fn at(seconds: u64) -> Timestamp {
    Timestamp::from_micros(1_800_000_000_000_000).after(Duration::from_secs(seconds))
}

const HOUR: Duration = Duration::from_secs(3600);
const MICROSECOND: Duration = Duration::from_micros(1);
/// Later than all that scenarios wait for.
const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

fn new_invoice(now: Timestamp, expiry: Duration) -> CreateInvoice {
    let draft = InvoiceDraft { satoshis: 1000, ..InvoiceDraft::default() };
    CreateInvoice { draft, expiry, id: new_id(), idempotency: None, now }
}

fn with_key(invoice: CreateInvoice, key: IdempotencyKey) -> CreateInvoice {
    CreateInvoice { idempotency: Some(key), ..invoice }
}

fn key(name: &str, request: &str) -> IdempotencyKey {
    IdempotencyKey::new(name, request.as_bytes()).unwrap()
}

async fn create(store: &impl WalletStore, now: Timestamp, expiry: Duration) -> Invoice {
    store.create_invoice(new_invoice(now, expiry)).await.unwrap()
}

fn user_named(name: &str) -> UserDraft {
    UserDraft { name: name.to_owned(), ..UserDraft::default() }
}
