//! The conformance suite for back ends of [`WalletStore`]. Each back end runs it.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

mod accounts;
mod aftercare;
mod answers;
mod at_once;
mod calls;
mod changes;
mod coins;
mod counted;
mod dropped;
mod exposure;
pub(crate) mod forward;
mod idempotency;
mod ids;
mod making;
mod many_payments;
mod money;
mod noticed;
mod pages;
mod payments;
mod refunds;
mod reorganised;
mod reservations;
mod rivals;
mod sweep;
mod telling;
mod totals;
mod unassigned;
mod unchanged;
mod unconfirmed;
mod webhooks;
mod withdrawals;

use std::time::Duration;

use bsv_invoicing::events::{Event, EventKind, LogName};
use bsv_invoicing::invoices::IdempotencyKey;
use bsv_invoicing::ledger::rows::{AccountStart, FollowedBlock};
use bsv_invoicing::ledger::webhooks::{GetDeliveries, GetWebhooks, ListedDelivery};
use bsv_invoicing::ledger::{CreateInvoice, GetLogName, Refusal, UserRecord};
use bsv_invoicing::sending::OutgoingPayment;
use bsv_invoicing::store::{WalletStore, WalletStoreError};
use bsv_invoicing::transactions::Followed;
use bsv_invoicing::webhooks::{Webhook, WebhookId};
use bsv_invoicing::{Invoice, InvoiceDraft, Timestamp, UserDraft};

pub(crate) use at_once::run_at_once;
pub(crate) use calls::Calls;
pub(crate) use ids::{id, new_id};
#[allow(unused_imports, reason = "only the tests of the file use it")]
pub(crate) use making::reserve_with_change;
pub(crate) use money::run_random_steps;
pub(crate) use unchanged::run_unchanged;

/// Checks that the rules refuse something, and why.
macro_rules! assert_refused {
    ($outcome:expr, $refusal:pat $(if $guard:expr)?) => {
        match $outcome {
            Err(WalletStoreError::Refused($refusal)) $(if $guard)? => {}
            outcome => panic!("not refused for that: {outcome:?}"),
        }
    };
}
pub(crate) use assert_refused;

/// A place for a store that can be closed and opened again.
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
    check::<P>(
        "an expired invoice that is deleted gets the event of its expiry first",
        changes::delete_expired,
    )
    .await;
    check::<P>("users are numbered from 1, and kept as they are", changes::users).await;
    check::<P>("a store belongs to one wallet", changes::adopt).await;
    check::<P>("events are read in parts, in order", changes::events_in_parts).await;
    check::<P>("a page of all types of events reads few rows", changes::page_of_all_types).await;
    check::<P>("an event is written in one form", telling::form).await;
    check::<P>("an event is less than 20 kB", telling::longest).await;
    check::<P>("events of payments name their invoices and sums", telling::payments).await;
    check::<P>("a transaction with many outputs gets few events", telling::many_outputs).await;
    check::<P>("late payments and marked invoices get events", telling::late).await;
    check::<P>("a refund gets an event when the network shows it", telling::refunded).await;
    check::<P>("events tell what a refund changes", telling::refunded_unpaid).await;
    check::<P>("a withdrawal gets an event when all of it is shown", telling::withdrawn).await;
    check::<P>("coins that another wallet spends get an event", telling::spent_elsewhere).await;
    check::<P>("events never change", telling::unchanged).await;
    check::<P>("a log has one name at a time", telling::named).await;
    check::<P>("webhooks are made, changed and deleted", webhooks::made_and_changed).await;
    check::<P>("attempts are recorded, and repeated when they are due", webhooks::attempts).await;
    check::<P>("a failing event holds the next one back if the order counts", webhooks::in_order)
        .await;
    check::<P>("an endpoint that accepts nothing for 120 hours is disabled", webhooks::disabled)
        .await;
    check::<P>("another URL is another endpoint", webhooks::moved).await;
    check::<P>("at most two secrets sign", webhooks::secrets).await;
    check::<P>("sent events are sent again on request", webhooks::again).await;
    check::<P>("deliveries are deleted after 30 days", webhooks::forgotten).await;
    check::<P>("sent events are found", webhooks::sent).await;
    check::<P>("the lag of webhooks is known", webhooks::lags).await;
    check::<P>("webhooks of a restored copy are disabled", webhooks::restored).await;
    check::<P>("an invoice gets one event when it expires", sweep::once).await;
    check::<P>("expiries are handled in their order, up to a limit", sweep::in_order).await;
    check::<P>("a deleted invoice gets no event when it expires", sweep::deleted).await;
    check::<P>("what an owner has to decide is listed", noticed::to_be_decided).await;
    check::<P>("the sums of an invoice agree", noticed::sums).await;
    check::<P>("an invoice waits for a block beyond its time", sweep::only_a_block_is_missing)
        .await;
    check::<P>("an expired invoice stays so beside another", sweep::paid_beside_another).await;
    check::<P>("a sweep never uses a time before the last event", sweep::clock_set_back).await;
    check::<P>("nothing expires while the clock is doubted", sweep::doubted_clock).await;
    check::<P>("old keys and expiries share the limit", sweep::keys).await;
    check::<P>("a repeated request gets the first answer", idempotency::again).await;
    check::<P>("a key that comes with another request is refused", idempotency::reused).await;
    check::<P>("a key is known for 24 hours", idempotency::forgotten).await;
    check::<P>(
        "the age of a key is measured up to the last event at least",
        idempotency::clock_set_back,
    )
    .await;
    check::<P>("a key that is used again starts a new period", idempotency::used_again).await;
    check::<P>("a refused request uses no key up", idempotency::refused).await;
    idempotency::reopened::<P>().await;
    check::<P>("a page begins and ends where it is asked to", pages::bounds).await;
    check::<P>("pages hold the states of their time", pages::states).await;
    check::<P>("all pages together hold each invoice once", pages::walk).await;
    check::<P>("an invoice is paid once, by its payment in flight", payments::received).await;
    check::<P>("only the first payer decides where refunds go", refunds::first_payer).await;
    check::<P>("refunds go where the payer of the counting payment says", refunds::shown_payment)
        .await;
    check::<P>("payments that the network shows are noticed, even in parts", noticed::in_parts)
        .await;
    check::<P>("an offered payment is noticed once", noticed::offered).await;
    check::<P>("the wallet pays its own invoice", noticed::own).await;
    check::<P>("rules decide whether an invoice is paid", noticed::by_rules).await;
    check::<P>("outputs of coinbase transactions mature", noticed::coinbase).await;
    check::<P>(
        "a large coinbase transaction matures in parts",
        noticed::coinbase_with_many_outputs,
    )
    .await;
    check::<P>("keys of the backlog are watched", noticed::backlog).await;
    check::<P>("as many keys as before are watched beyond a found one", noticed::found_ahead).await;
    check::<P>("refunds go where all payers agree", refunds::agreed).await;
    check::<P>("an invoice is refunded in parts, each once", refunds::in_parts).await;
    check::<P>("the surplus is refunded", refunds::surplus).await;
    check::<P>("what was refunded before pays no invoice", refunds::of_unpaid).await;
    check::<P>("refunds are made before an invoice is paid, or after", refunds::before_and_after)
        .await;
    check::<P>("what is lost after its refund is a case", refunds::lost_afterwards).await;
    check::<P>("a small payment that vanishes hides no surplus", refunds::beside_a_vanished_one)
        .await;
    check::<P>("a refund with a key is made once while it lasts", refunds::with_a_key).await;
    check::<P>("a withdrawal of all is recorded as a whole or not at all", withdrawals::all).await;
    check::<P>("a withdrawal is made once per key", withdrawals::once_per_key).await;
    check::<P>("a withdrawal sends only coins that pay for themselves", withdrawals::limits).await;
    check::<P>("old coins are consolidated", withdrawals::consolidated).await;
    check::<P>("a refused payment is not shown", payments::refused).await;
    check::<P>("a refused payment counts if the network shows it", payments::refused_and_shown)
        .await;
    check::<P>("refused payments are deleted in time", payments::refused_and_forgotten).await;
    check::<P>("nothing names a refused payment that is deleted", unassigned::refused).await;
    check::<P>(
        "the ancestors of a payment are kept while they are needed",
        payments::with_ancestors,
    )
    .await;
    check::<P>("a payment with too low a fee counts once it is mined", payments::waiting).await;
    check::<P>("an invoice whose payment is displaced is unpaid", payments::displaced).await;
    check::<P>(
        "an invoice gets an event if it expires after its payment is displaced",
        payments::displaced_late,
    )
    .await;
    check::<P>("a contested payment counts and cannot be spent", payments::contested).await;
    check::<P>("coins are reserved, and spent once they are", payments::paid_out).await;
    check::<P>("a payment with a key is made once", payments::paid_once_with_a_key).await;
    check::<P>("an open payment is cancelled once", payments::cancelled).await;
    check::<P>(
        "a cancellation that is shown after it was displaced takes the place of the next one",
        payments::cancelled_by_a_lost_cancellation,
    )
    .await;
    check::<P>(
        "payment or cancellation: the one that is seen first counts",
        payments::not_cancelled,
    )
    .await;
    check::<P>(
        "the spender of a lost coin is followed as long as its maker",
        aftercare::of_a_followed_maker,
    )
    .await;
    check::<P>(
        "a transaction whose coin a block spends is not followed any more",
        aftercare::of_a_taken_coin,
    )
    .await;
    check::<P>("proofs are kept, and follow the chain", payments::proved).await;
    check::<P>("a proof from before a reorganisation is refused", reorganised::late_proofs).await;
    check::<P>("a lost block is forgotten in parts", reorganised::forgotten_in_parts).await;
    check::<P>("what a block has paid stays paid", reorganised::paid_by_a_block).await;
    check::<P>("a payment that needs two confirmations", reorganised::paid_by_two_blocks).await;
    check::<P>("a tip that only one service shows", unconfirmed::tip).await;
    check::<P>("a reward is lost with its block, and comes back with it", reorganised::rewards)
        .await;
    check::<P>("a reward stays if the node may not know its block", reorganised::unknown_block)
        .await;
    check::<P>("a fee that was sufficient stays so", reorganised::paid_for_once).await;
    check::<P>("two transactions for one coin are rivals", rivals::two_for_one_coin).await;
    check::<P>(
        "a rival that services know keeps a payment from counting",
        rivals::known_to_services,
    )
    .await;
    check::<P>("a claim to a coin makes no rival", rivals::of_claimed_coins).await;
    check::<P>("a rival frees the invoice", rivals::of_two_invoices).await;
    check::<P>("rivals come back with their block", rivals::reorganised).await;
    check::<P>("no word takes a coin of the wallet from its holder", rivals::of_a_payment).await;
    check::<P>("a payment is cancelled by a block", rivals::cancelled_by_a_block).await;
    check::<P>("a payment is mined beside its cancellation", rivals::mined_in_spite).await;
    check::<P>("a payment anew after a refusal", rivals::paid_anew_after_a_refusal).await;
    check::<P>("a refused payment is mined", rivals::mined_after_a_refusal).await;
    check::<P>("a coin goes on to the next of its rivals", rivals::of_a_refused_payment).await;
    check::<P>("strangers' coins are spent once they are mined", rivals::spendable).await;
    check::<P>("an unknown outcome frees its invoice", rivals::of_unknown_outcome).await;
    check::<P>("a word counts up to a limit", exposure::limit).await;
    check::<P>("what did not count by a word needs a deep block", exposure::uncounted).await;
    check::<P>("what a payer proves needs a deep block, too", exposure::found_in_a_block).await;
    check::<P>("only what a word alone makes count is exposed", exposure::parts).await;
    check::<P>("the reason why a payment waits is known", exposure::reasons).await;
    check::<P>("services tell instead of a node", rivals::of_another_source).await;
    check::<P>("a node excludes rivals", rivals::judged).await;
    check::<P>(
        "a transaction with very many coins counts once it is mined",
        rivals::very_many_coins,
    )
    .await;
    check::<P>("strangers do not redirect refunds", reorganised::wishes_of_strangers).await;
    check::<P>("bytes stay until the last spender is deep", dropped::after_the_last_spender).await;
    check::<P>("bytes are dropped with those of the spender", dropped::with_the_spender).await;
    check::<P>("bytes that are found late are dropped at once", dropped::found_late).await;
    check::<P>("bytes of many outputs are dropped once", dropped::of_many_outputs).await;
    check::<P>("bytes are dropped in parts", dropped::in_parts).await;
    check::<P>("bytes come back after a reorganisation", dropped::after_a_reorganisation).await;
    check::<P>("bytes of a lost transaction are dropped", dropped::of_a_lost_transaction).await;
    check::<P>("bytes that tell a fee stay", dropped::with_the_fee).await;
    check::<P>("ancestors of services stay until they are deep", dropped::ancestors_until_deep)
        .await;
    check::<P>("reserved coins are recorded, or released", reservations::reserved).await;
    check::<P>("an unanswered reservation is let go of", reservations::unanswered).await;
    check::<P>("a released reservation cannot be recorded", reservations::recorded_too_late).await;
    check::<P>("a reserved coin is lost with its maker", reservations::displaced).await;
    check::<P>("attempts for one purpose exclude each other", reservations::attempts).await;
    check::<P>(
        "an attempt waits for a coin of an earlier one",
        reservations::attempt_without_a_coin,
    )
    .await;
    reservations::crashed::<P>().await;
    reservations::many_claims::<P>().await;
    check::<P>("the smallest coin that suffices is spent", coins::smallest_single).await;
    check::<P>("strangers' unconfirmed coins are spent last", coins::sure_ones_first).await;
    check::<P>("coins of long transactions are spent last where asked", coins::long_ones_last)
        .await;
    check::<P>("as few coins as possible, the largest first", coins::largest_first).await;
    check::<P>("the best of many coins of similar amounts is found", coins::compared).await;
    check::<P>("a coin that is not worth its own fee is not used", coins::dust).await;
    check::<P>("the number of coins that a payment spends is limited", coins::many).await;
    check::<P>("accounts are begun once, in their order", accounts::begun).await;
    check::<P>("keys begin anew in a new account", accounts::keys).await;
    check::<P>("an earlier copy catches up", accounts::catch_up).await;
    check::<P>("the last followed block is stored", accounts::followed_tip).await;
    check::<P>("deliveries in a state are found", webhooks::found).await;
    check::<P>("enabling an enabled webhook changes nothing", webhooks::enabled_again).await;
    check::<P>("coins are not consolidated for nothing", withdrawals::not_consolidated).await;
    check::<P>("receipts that pay no invoice are listed", unassigned::found).await;
    check::<P>("receipts of a deleted invoice are listed", unassigned::of_a_deleted_invoice).await;
    unassigned::many_of_a_deleted_invoice::<P>().await;
    check::<P>("skipped numbers of keys are watched", unassigned::of_a_skipped_number).await;
    check::<P>("keys beyond skipped ones are watched, too", unassigned::beyond_skipped_numbers)
        .await;
    check::<P>("movements are read in parts", unassigned::movements_in_parts).await;
    check::<P>("an audit lists the fee of a payment", totals::of_a_payment).await;
    check::<P>("an audit adds up any number of items", totals::many).await;
    check::<P>("the confirmations of an invoice are known", answers::settlements).await;
    check::<P>("a marked invoice stays paid", answers::marked).await;
    check::<P>("what is lost after marking is a case", answers::lost_after_marking).await;
    check::<P>("an expired invoice does not expire again", answers::late_part).await;
    check::<P>("rules and the place of a rescan are stored", answers::rules).await;
    check::<P>("invoices are found by reference and transaction", answers::invoices_found).await;
    check::<P>("an answer about many payments reads few rows", many_payments::few_rows).await;
    check::<P>("all pages together hold each payment once", many_payments::walk).await;
    check::<P>("a page looks at a limited number of outputs", many_payments::wide).await;
    check::<P>("all pages together hold each paid invoice once", many_payments::paid_by).await;
    check::<P>("unconfirmed payments are refunded while they are few", many_payments::refunds)
        .await;
    check::<P>("an invoice with many payments keeps few refused ones", many_payments::refused)
        .await;
    check::<P>("what waits for a block is added up", answers::waiting).await;
    check::<P>("open payments are counted", answers::open_payments).await;
    check::<P>("an estimate is the fee of the payment", answers::estimates).await;
    check::<P>("the scripts of change are watched", answers::change_is_watched).await;
    check::<P>("what is lacking of a transaction is known", answers::known).await;
}

/// Runs a scenario. Then compares the contents of the store with those after it was opened again.
async fn check<P: Place>(name: &str, scenario: impl AsyncFnOnce(&P::Store)) {
    eprintln!("{name}");
    let place = P::fresh();
    let store = place.open();
    scenario(&store).await;
    let held = Held::of(&store).await;
    drop(store);
    assert_eq!(Held::of(&place.open()).await, held);
}

/// Everything that can be read from a store.
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

/// All invoices, including deleted ones.
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

/// The time, kind and subject of the events after the one with this number.
async fn happened(store: &impl WalletStore, after: usize) -> Vec<(Timestamp, (EventKind, u64))> {
    let events = events(store).await;
    events[after..].iter().map(|event| (event.at, (event.kind, event.subject))).collect()
}

/// A moment in 2027. Scenarios never use the system's clock.
fn at(seconds: u64) -> Timestamp {
    Timestamp::from_micros(1_800_000_000_000_000).after(Duration::from_secs(seconds))
}

const HOUR: Duration = Duration::from_secs(3600);
const MICROSECOND: Duration = Duration::from_micros(1);
/// Later than everything that scenarios wait for.
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
