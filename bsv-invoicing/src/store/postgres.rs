mod audit;
mod connection;
mod error;
mod fetch;
mod known;
mod memory;
mod options;
mod presence;
mod reader;
mod risks;
mod rows;
mod schema;
mod shared;
mod statements;
mod step;
mod step_file;
mod tokens;
mod transaction;
mod upkeep;
mod writer;

use std::cell::RefCell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use bsv_store::{AuditCheck, AuditEntry, AuditPage, GroupWriter, StoreCounts, StoreError};
use futures_util::future::BoxFuture;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

pub use self::options::{PostgresOptions, PostgresUrlError};

use self::connection::{Connection, PATIENCE, expect_sessions};
use self::error::{Failure, Unfit};
use self::known::{Known, MOST_AT_ONCE, Wants};
use self::reader::Reader;
use self::risks::warn_of_risks;
use self::rows::{Guess, Reading, SqlRows};
use self::schema::{expect_same, migrate};
use self::shared::Shared;
use self::step::{Seen, read_figures};
use self::step_file::{Recalled, StepKeeper, recall, remember};
use self::transaction::{begin_snapshot, in_time, look, read_more};
use self::upkeep::leave;
use self::writer::{SqlBatches, Told, run_boxed};
use crate::ledger::rows::{Engine, KeyRange, RawRow, Table};
use crate::ledger::{Books, Command, JoinAlone};
use crate::model::time::Timestamp;
use crate::store::wallet_store::{
    Answering, BoxedAnswer, BoxedCommand, BoxedOnce, BoxedQuery, Store,
};
use crate::store::{EventCounts, OpenWalletStoreError, WalletStore, WalletStoreError};

/// The wallet's store in a PostgreSQL database.
///
/// Changes that wait at the same time share a commit. Readers wait for nobody. The store has threads of its own, and needs
/// no runtime. Several processes may have the same database open. Open a [`Wallet`](crate::Wallet)'s store
/// [for a server](PostgresOptions::for_server): then the others notice when this process dies.
pub struct PostgresWalletStore {
    writer: Arc<GroupWriter<SqlBatches>>,
    reader: Reader,
    /// `None` unless it is the store of a server.
    _step_keeper: Option<StepKeeper>,
    shared: Arc<Shared>,
    events: Arc<EventCounts>,
}

impl PostgresWalletStore {
    /// Connects to the database, and makes the schema of the wallet where it does not exist.
    pub fn open(options: PostgresOptions) -> Result<Self, OpenWalletStoreError> {
        // A caller may be in a runtime, which must not be blocked by another one.
        let opened = thread::spawn(move || begin(options)).join();
        let Begun { shared, runtime, connection, kept } =
            opened.unwrap_or(Err(StoreError::Panicked))?;
        let shared = Arc::new(shared);
        let events = Arc::<EventCounts>::default();
        let (counted, telling) = (Arc::clone(&events), Arc::clone(&shared));
        let committed = move |Told { last_event, kinds }: Told| {
            counted.note(&kinds);
            telling.tell_event(last_event);
        };
        let batches = SqlBatches::new(Arc::clone(&shared), runtime, connection);
        let writer = Arc::new(GroupWriter::start(batches, committed)?);
        let reader = Reader::start(Arc::clone(&shared), Arc::downgrade(&writer))?;
        let start = |path| StepKeeper::start(path, Arc::clone(&shared), kept);
        let step_keeper = shared.options.memory.clone().map(start).transpose()?;
        Ok(Self { writer, reader, _step_keeper: step_keeper, shared, events })
    }

    /// Up to `limit` rows of a range in a schema. This works with a schema that cannot be opened as a store, and changes
    /// nothing. It blocks.
    pub fn peek(
        options: PostgresOptions,
        range: KeyRange,
        limit: usize,
    ) -> Result<Vec<RawRow>, StoreError> {
        let peeked = thread::spawn(move || peek(&options, &range, limit)).join();
        peeked.unwrap_or(Err(StoreError::Panicked))
    }

    /// Keeps all other processes from opening the wallet until this is dropped. Waits for those that have it open, and
    /// fails if they do not stop.
    pub async fn be_alone(&self) -> Result<(), WalletStoreError> {
        let begun = Instant::now();
        while !self.execute(JoinAlone).await? {
            if begun.elapsed() > WAITING {
                return Err(StoreError::from(Unfit::InUse).into());
            }
            sleep(PERIOD).await;
        }
        Ok(())
    }

    /// Marks the wallet as moved elsewhere. Nothing opens it any more. Fails if other processes take this one for dead:
    /// they may have changed the wallet since.
    pub async fn retire(&self) -> Result<(), WalletStoreError> {
        let shared = Arc::clone(&self.shared);
        let retired = tokio::task::spawn_blocking(move || retire(&shared)).await;
        Ok(retired.map_err(|_| StoreError::Panicked)??)
    }

    /// Whether other processes take this one for dead.
    pub fn is_overtaken(&self) -> bool {
        *self.shared.is_overtaken.borrow()
    }

    /// The access tokens of the servers, by their ids. This blocks.
    pub fn tokens(&self) -> Result<Vec<(String, Vec<u8>)>, StoreError> {
        tokens::read(&self.shared)
    }

    /// Changes when a server has changed the access tokens, at most a second later.
    pub fn token_changes(&self) -> watch::Receiver<String> {
        self.shared.token_digest.subscribe()
    }

    /// Adds access tokens. If the id of one is taken, it adds none. Answers whether it has added them. This blocks.
    pub fn add_tokens(&self, tokens: &[(String, Vec<u8>)]) -> Result<bool, StoreError> {
        tokens::add(&self.shared, tokens)
    }

    /// Removes an access token. Answers whether there was one. This blocks.
    pub fn remove_token(&self, id: &str) -> Result<bool, StoreError> {
        tokens::remove(&self.shared, id)
    }
}

fn retire(shared: &Shared) -> Result<(), StoreError> {
    shared.with_connection(async |connection| {
        let mut wants = Wants::default();
        shared.want_presence(&mut wants);
        let (_, known) = transaction::begin(connection, 0, &wants, Wants::default).await?;
        shared.read_presence(&known)?;
        in_time(connection.execute_all("UPDATE @meta SET name = 'moved wallet'; COMMIT")).await
    })
}

/// Changes nothing.
struct Probe;

impl Command for Probe {
    type Answer = ();

    fn run(&self, _: &mut Books<'_>) -> Result<(), WalletStoreError> {
        Ok(())
    }
}

/// What an open store begins with.
struct Begun {
    shared: Shared,
    runtime: Runtime,
    connection: Connection,
    /// The step that the file of a server has, if it has one.
    kept: Option<Seen>,
}

fn peek(
    options: &PostgresOptions,
    range: &KeyRange,
    limit: usize,
) -> Result<Vec<RawRow>, StoreError> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::of(&error).into_store_error())?;
    let read = async {
        let connection = Connection::open(options).await?;
        match range.table {
            Table::AllFigures => {
                let figures = read_figures(&connection).await?;
                let is_asked = limit > 0 && range.contains(&[]);
                let figures = figures.into_iter().filter(|_| is_asked);
                Ok(figures.map(|row| (Vec::new(), row)).collect())
            }
            _ => {
                let (mut wants, mut known) = (Wants::default(), Known::default());
                wants.want_range(range.clone(), limit);
                read_more(&connection, wants, &mut known).await?;
                Ok(known.range(range, limit).unwrap_or_default())
            }
        }
    };
    runtime.block_on(read).map_err(Failure::into_store_error)
}

/// Connects, and reads what an open store begins with.
fn begin(options: PostgresOptions) -> Result<Begun, StoreError> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::of(&error).into_store_error())?;
    let begun = runtime.block_on(async {
        let mut connection = reach(&options).await?;
        let incarnation = match migrate(&connection, &options).await {
            // Another process may have made the schema meanwhile. This connection's transaction has failed.
            Err(_) => {
                connection = Connection::open(&options).await?;
                migrate(&connection, &options).await?
            }
            Ok(incarnation) => incarnation,
        };
        let memory = options.memory.clone();
        let recall = |path| recall(path, &incarnation);
        let recalled = memory.as_deref().map(recall).transpose()?.flatten();
        let (machine, mut kept) = match recalled {
            Some(Recalled { machine, seen }) => (machine, seen),
            None => (random_id()?, None),
        };
        if let Some(seen) = &kept {
            expect_same(&connection, &options, &incarnation, seen).await?;
        }
        let id = random_id()?;
        if memory.is_some() {
            warn_of_risks(&connection).await?;
        }
        let (step, _) = look(&connection, &Wants::default()).await?;
        let (last_event, read_at) = (step.last_event(), step.read_at);
        let shared = Shared::new(options, [id, machine], incarnation, Seen::of(&step));
        if let Some(path) = &memory {
            remember(path, &shared, &connection, &mut kept).await?;
        }
        shared.note_time(read_at);
        shared.tell_event(last_event);
        Ok::<_, Failure>((shared, connection, kept))
    });
    let (shared, connection, kept) = begun.map_err(Failure::into_store_error)?;
    Ok(Begun { shared, runtime, connection, kept })
}

/// How long a command waits for the servers of a wallet to stop.
const WAITING: Duration = Duration::from_secs(7);
const PERIOD: Duration = Duration::from_millis(200);
/// How long a server waits for a database that does not answer.
const STARTING: Duration = Duration::from_secs(30);

/// Connects. A server waits for a database that has begun to start, as after a power failure.
async fn reach(options: &PostgresOptions) -> Result<Connection, Failure> {
    let begun = Instant::now();
    loop {
        let reached = async {
            expect_sessions(options).await?;
            Connection::open(options).await
        };
        match reached.await {
            Err(Failure::Passing(_)) if options.memory.is_some() && begun.elapsed() < STARTING => {
                sleep(PERIOD).await;
            }
            reached => return reached,
        }
    }
}

fn random_id() -> Result<[u8; 16], Failure> {
    let mut id = [0; 16];
    getrandom::fill(&mut id).map_err(|error| Failure::of(&error))?;
    Ok(id)
}

impl Store for PostgresWalletStore {
    fn run_command(&self, weight: usize, command: BoxedCommand) -> Answering<'_, BoxedAnswer> {
        Box::pin(run_boxed(&self.writer, weight, move |books| command(books)))
    }

    fn run_short(&self, query: BoxedQuery) -> Answering<'_, BoxedAnswer> {
        Box::pin(self.answer_short(query))
    }

    fn run_long(&self, query: BoxedQuery) -> Answering<'_, BoxedAnswer> {
        Box::pin(self.answer_long(query))
    }

    fn run_on_disk(&self, query: BoxedOnce) -> Answering<'_, BoxedAnswer> {
        let shared = Arc::clone(&self.shared);
        Box::pin(on_blocking_thread(move || verify(&shared, query)))
    }

    fn last_event(&self) -> watch::Receiver<u64> {
        self.shared.last_event.subscribe()
    }

    fn audit_log(&self, page: AuditPage, limit: usize) -> Answering<'_, Vec<AuditEntry>> {
        let shared = Arc::clone(&self.shared);
        Box::pin(on_blocking_thread(move || Ok(audit::read(&shared, page, limit)?)))
    }

    fn verify_audit_log(&self) -> Answering<'_, AuditCheck> {
        let shared = Arc::clone(&self.shared);
        Box::pin(on_blocking_thread(move || Ok(audit::verify(&shared)?)))
    }

    fn counts(&self) -> &StoreCounts {
        &self.shared.counts
    }

    fn event_counts(&self) -> &EventCounts {
        &self.events
    }

    fn changes_by_others(&self) -> Option<watch::Receiver<i64>> {
        Some(self.shared.step_by_others.subscribe())
    }

    fn clock(&self) -> Option<Timestamp> {
        Some(self.shared.clock())
    }

    /// Begins a change, and rolls it back.
    fn probe(&self) -> Answering<'_, ()> {
        Box::pin(self.execute(Probe))
    }

    fn overtaken(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let mut is_overtaken = self.shared.is_overtaken.subscribe();
            // The sender lives as long as this.
            let _ = is_overtaken.wait_for(|is_overtaken| *is_overtaken).await;
        })
    }
}

async fn on_blocking_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, WalletStoreError> + Send + 'static,
) -> Result<T, WalletStoreError> {
    tokio::task::spawn_blocking(work).await.map_err(|_| StoreError::Panicked)?
}

impl PostgresWalletStore {
    /// Runs the query until nothing is missing. Before each run, it reads all that the query has asked for, as of one
    /// moment. A query that asks for very much is answered like a long one.
    async fn answer_short(&self, query: BoxedQuery) -> Result<BoxedAnswer, WalletStoreError> {
        let (mut known, mut wants) = (Arc::<Known>::default(), Wants::default());
        loop {
            let (answer, missing) = guess(&query, &known);
            if missing.is_empty() {
                return answer;
            }
            wants.extend(missing);
            if wants.len() > MOST_AT_ONCE {
                return self.answer_long(query).await;
            }
            known = self.reader.look(wants.clone()).await?;
        }
    }

    async fn answer_long(&self, mut query: BoxedQuery) -> Result<BoxedAnswer, WalletStoreError> {
        let snapshot = self.reader.snapshot();
        let (mut known, mut factor) = (Known::default(), 1_usize);
        loop {
            let run = move || {
                let (answer, missing) = guess(&query, &known);
                Ok((answer, missing, known, query))
            };
            let (answer, mut missing, known_before, same) = on_blocking_thread(run).await?;
            if missing.is_empty() {
                return answer;
            }
            (known, query) = (known_before, same);
            missing.widen(factor);
            factor = factor.saturating_mul(16);
            known.extend(snapshot.read(missing).await?);
        }
    }
}

/// What a query answers if it takes unknown rows for absent, and which rows these are.
fn guess<A>(
    query: impl Fn(&dyn Engine) -> Result<A, WalletStoreError>,
    known: &Known,
) -> (Result<A, WalletStoreError>, Wants) {
    let guess = Guess::new(known, None);
    let run = || query(&SqlRows::to_read(&guess));
    // A query may panic if rows are taken for absent that others refer to.
    let answer = catch_unwind(AssertUnwindSafe(run));
    let wants = guess.into_wants();
    (answer.unwrap_or(Err(StoreError::Panicked.into())), wants)
}

/// How many bytes of rows a long read keeps in memory.
const MOST_KNOWN: usize = 16 << 20;

/// Answers a query on a connection of its own, row by row.
fn verify(shared: &Shared, query: BoxedOnce) -> Result<BoxedAnswer, WalletStoreError> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::of(&error).into_store_error())?;
    let begun = runtime.block_on(async {
        let connection = shared.connect().await?;
        // The query may take long between two reads.
        let patient = "SET idle_in_transaction_session_timeout = 0; SET statement_timeout = 0";
        in_time(connection.execute_all(patient)).await?;
        let (_, known) = begin_snapshot(&connection, Wants::default()).await?;
        Ok::<_, Failure>((connection, known))
    });
    let (connection, figures) = begun.map_err(Failure::into_store_error)?;
    let read = |wants: &Wants, known: &mut Known| {
        if known.size() > MOST_KNOWN {
            *known = figures.clone();
        }
        let read = runtime.block_on(read_more(&connection, wants.clone(), known));
        read.map_err(Failure::into_store_error)
    };
    let reading = Reading { known: RefCell::new(figures.clone()), read: &read };
    query(&SqlRows::to_read(&reading))
}

impl Drop for PostgresWalletStore {
    /// Gives up all claims and reservations of this process, so that others need not wait for them.
    fn drop(&mut self) {
        if !self.shared.has_joined() {
            return;
        }
        let leave_in_time = || {
            let runtime = Builder::new_current_thread().enable_time().build().ok()?;
            runtime.block_on(async { timeout(PATIENCE, leave(&self.writer, None)).await }).ok()
        };
        // This may be dropped in a runtime, which must not be blocked by another one.
        thread::scope(|scope| drop(scope.spawn(leave_in_time).join()));
    }
}

impl fmt::Debug for PostgresWalletStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresWalletStore")
            .field("options", &self.shared.options)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Bound;

    use bsv_tx::{BlockHash, OutPoint, Script, Transaction, TxIn, Txid};

    use super::*;
    use crate::ledger::events::{EventDetails, EventRow};
    use crate::ledger::figures::Figures;
    use crate::ledger::queries::{GetEvents, GetFollowed, GetInvoices};
    use crate::ledger::rows::{
        AllFigures, Attention, Events, FollowedTransactions, Incoming, Invoices, Kind, MinedAt,
        Order, Receipts, Reservations, Row, Spendable, Spends, TransactionNumbers, Transactions,
    };
    use crate::ledger::{
        BooksOn, Displace, ForgetBlock, GetKnown, Notice, Noticed, Query, Release, Reserve, See,
        ShownPlace, Sighting, Unfollow,
    };
    use crate::model::coin::{Chain, KeyPath, Spending, Trust};
    use crate::model::event::EventKind;
    use crate::model::holdings::Holdings;
    use crate::model::invoice::{Invoice, InvoiceDraft, InvoiceQuery};
    use crate::model::outgoing::OutgoingPurpose;
    use crate::model::process::ProcessId;
    use crate::model::receipt::{Receipt, ReceiptKey};
    use crate::model::stored::Paid;
    use crate::model::transaction::{
        BlockPlace, FollowedUntil, Purpose, RawBytes, ShownAs, TransactionRecord, TransactionState,
    };

    /// Takes note of the rows of a kind in a range, of which at most `limit` were asked for.
    fn note<K: Kind>(
        known: &mut Known,
        (from, to): (K::Key, Bound<K::Key>),
        rows: impl IntoIterator<Item = (K::Key, K::Row)>,
        limit: usize,
    ) {
        let rows = rows.into_iter().map(|(key, row)| (K::key(&key), row.encode()));
        let range = KeyRange::of::<K>(&(Bound::Included(from), to), Order::Ascending);
        known.add_range(&range, rows.collect(), limit);
    }

    /// Takes note of the row of a key.
    fn note_row<K: Kind>(known: &mut Known, key: &K::Key, row: &K::Row) {
        known.add_row(K::TABLE, K::key(key), Some(row.encode()));
    }

    /// Takes note of the transaction 1, which spends so many receipts.
    fn note_spending(known: &mut Known, state: TransactionState, count: u64) {
        let record = TransactionRecord {
            txid: Txid::from_bytes([1; 32]),
            purpose: Purpose::Found,
            state,
            shown: ShownAs::Nothing,
            satoshis: 1,
            at: Timestamp::from_micros(1),
            raw: RawBytes::Short,
            word: None,
        };
        note_row::<Transactions>(known, &1, &record);
        let key = |maker, vout| (1, ReceiptKey { maker, vout });
        let all = (key(0, 0), Bound::Included(key(u64::MAX, u32::MAX)));
        let spends = (2..2 + count).map(|maker| (key(maker, 0), ()));
        note::<Spends>(known, all, spends, usize::MAX);
    }

    /// The first rows of a kind, from the key 1 on, as they are known.
    fn known<K: Kind<Key = u64>>(rows: impl Iterator<Item = (u64, K::Row)>) -> Known {
        let (mut known, rows) = (Known::default(), rows.collect::<Vec<_>>());
        let limit = rows.len();
        note::<K>(&mut known, (1, Bound::Unbounded), rows, limit);
        known
    }

    /// An invoice that is not paid.
    fn unpaid(number: u64) -> Invoice {
        let expires_at = Some(Timestamp::MAX);
        let draft = InvoiceDraft { satoshis: 1, expires_at, ..InvoiceDraft::default() };
        let numbered = (number, "AAAAAAAAAAAA".parse().unwrap());
        Invoice::new(numbered, draft, Timestamp::from_micros(1), Duration::ZERO)
    }

    /// How many rows of a table a query finds missing in one run. A page takes a few round trips to the database, and not
    /// one for each of its items.
    fn missing<Q: Query + Clone>(query: Q, known: &Known, table: Table) -> usize {
        let (answer, missing) = guess(|rows| query.clone().run(rows).map(drop), known);
        assert!(answer.is_err());
        missing.keys[&table].len()
    }

    /// How many rows of a table a command finds missing in one run.
    fn missing_in(command: &impl Command, known: &Known, table: Table) -> usize {
        let guess = Guess::new(known, None);
        let mut books = BooksOn::open_for(ProcessId::ALONE, SqlRows::to_read(&guess)).unwrap();
        assert!(command.run(&mut books).is_err());
        drop(books);
        guess.into_wants().keys[&table].len()
    }

    #[test]
    fn one_run_finds_all_rows_that_a_page_of_events_lacks() {
        let known = known::<Events>((1..=1_000).map(|number| {
            let (at, kind) = (Timestamp::from_micros(number), EventKind::InvoiceCreated);
            let (subject, details) = (1 + number % 250, EventDetails::None);
            (number, EventRow { at, kind, subject, details, block: None })
        }));
        assert_eq!(missing(GetEvents(0, 1_000), &known, Table::Invoices), 250);
    }

    #[test]
    fn one_run_finds_all_rows_that_followed_transactions_lack() {
        let followed = (1..=100).map(|number| (number, FollowedUntil::Mined));
        let known = known::<FollowedTransactions>(followed);
        assert_eq!(missing(GetFollowed(0, 100), &known, Table::Transactions), 100);
    }

    #[test]
    fn one_run_finds_all_transactions_that_an_unknown_one_spends() {
        let inputs = (1..=100_u8).map(|number| TxIn {
            previous_output: OutPoint { txid: Txid::from_bytes([number; 32]), vout: 0 },
            unlocking_script: Script::default(),
            sequence: u32::MAX,
        });
        let transaction =
            Transaction { version: 1, inputs: inputs.collect(), outputs: vec![], lock_time: 0 };
        let mut known = Known::default();
        for (input, number) in transaction.inputs.iter().zip(1..) {
            let txid = input.previous_output.txid;
            let all = ((txid, 0), Bound::Included((txid, u64::MAX)));
            note::<TransactionNumbers>(&mut known, all, [((txid, number), ())], usize::MAX);
        }
        let query = GetKnown(Arc::new((&transaction).into()));
        assert_eq!(missing(query, &known, Table::Transactions), 100);
    }

    #[test]
    fn one_run_finds_all_receipts_that_a_shown_transaction_spends() {
        let mut known = Known::default();
        note_spending(&mut known, TransactionState::Offered, 100);
        let now = Timestamp::from_micros(2);
        let shown = See { transaction: 1, sighting: Sighting::judged(true), now };
        assert_eq!(missing_in(&shown, &known, Table::Receipts), 100);
    }

    #[test]
    fn one_run_finds_the_sums_of_all_invoices_that_a_lost_transaction_has_paid() {
        let mut known = Known::default();
        let holdings = Holdings { unconfirmed: 100, coins: 100, ..Holdings::default() };
        let figures = Figures { last_invoice: 100, holdings, ..Figures::default() };
        note_row::<AllFigures>(&mut known, &(), &figures);
        note_spending(&mut known, TransactionState::Seen, 0);
        for number in 1..=100 {
            note_row::<Invoices>(&mut known, &number, &unpaid(number));
        }
        let all = (
            ReceiptKey { maker: 1, vout: 0 },
            Bound::Included(ReceiptKey { maker: 1, vout: u32::MAX }),
        );
        let paying = (1..=100).map(|index| {
            let key = KeyPath { account: 0, chain: Chain::Receive, index };
            (ReceiptKey { maker: 1, vout: index }, Receipt { satoshis: 1, key, spender: None })
        });
        note::<Receipts>(&mut known, all, paying, usize::MAX);
        let displace = Displace { transaction: 1, now: Timestamp::from_micros(2) };
        assert_eq!(missing_in(&displace, &known, Table::ReceivedFor), 100);
    }

    #[test]
    fn one_run_finds_the_waiting_payments_of_all_invoices_that_need_a_decision() {
        let mut known = Known::default();
        let listed = (1..=100).map(|number| (number, ()));
        note::<Attention>(&mut known, (0, Bound::Unbounded), listed, 100);
        for number in 1..=100 {
            note_row::<Invoices>(&mut known, &number, &unpaid(number));
            let all = (number, 0)..=(number, u64::MAX);
            let newest = KeyRange::of::<Incoming>(&all, Order::Descending);
            let paid = (Incoming::key(&(number, number)), Paid { first: 0, satoshis: 1 }.encode());
            known.add_range(&newest, vec![paid], 32);
        }
        let (needs_decision, limit) = (true, 100);
        let query = InvoiceQuery { needs_decision, limit, ..InvoiceQuery::default() };
        let query = GetInvoices(query, Timestamp::from_micros(2));
        assert_eq!(missing(query, &known, Table::Transactions), 100);
    }

    #[test]
    fn one_run_finds_all_receipts_that_a_payment_reserves() {
        let coin = |maker| (Trust::Sure, 1_000, ReceiptKey { maker, vout: 0 });
        let least = (Trust::Sure, 1, ReceiptKey { maker: 0, vout: 0 });
        let most = (Trust::Sure, u64::MAX, ReceiptKey { maker: u64::MAX, vout: u32::MAX });
        let range = KeyRange::of::<Spendable>(&(least..=most), Order::Descending);
        let coins = (1..=100).rev().map(|maker| (Spendable::key(&coin(maker)), vec![]));
        let mut known = Known::default();
        known.add_range(&range, coins.collect(), 500);
        let reserve = Reserve {
            purpose: OutgoingPurpose::Url("https://payee.example/1".to_owned()),
            spending: Spending { satoshis: 99_500, output_bytes: 34, fee_rate: 0 },
            prefers_short: false,
            idempotency: None,
            claim: 1,
            now: Timestamp::from_micros(2),
        };
        assert_eq!(missing_in(&reserve, &known, Table::Receipts), 100);
    }

    #[test]
    fn one_run_finds_all_receipts_that_are_released() {
        let keys: Vec<_> = (1..=100).map(|maker| ReceiptKey { maker, vout: 0 }).collect();
        let mut known = Known::default();
        note_row::<Reservations>(&mut known, &1, &keys);
        assert_eq!(missing_in(&Release { reservation: 1 }, &known, Table::Receipts), 100);
    }

    #[test]
    fn one_run_finds_all_transactions_of_a_block_that_is_forgotten() {
        let block = BlockPlace { hash: BlockHash::from_bytes([1; 32]), height: 7 };
        let mut known = Known::default();
        let all = ((7, 0), Bound::Included((7, u64::MAX)));
        let mined = (1..=100).map(|number| ((7, number), ()));
        note::<MinedAt>(&mut known, all, mined, usize::MAX);
        let now = Timestamp::from_micros(2);
        let forget = ForgetBlock {
            block,
            is_replaced: true,
            may_have_rivals: false,
            after: 0,
            limit: usize::MAX,
            now,
        };
        assert_eq!(missing_in(&forget, &known, Table::Transactions), 100);
    }

    #[test]
    fn one_run_finds_all_transactions_that_the_network_shows() {
        let mut known = Known::default();
        let shown = (1..=100_u32).map(|number| {
            let transaction =
                Transaction { version: 1, inputs: vec![], outputs: vec![], lock_time: number };
            let txid = transaction.txid();
            let all = ((txid, 0), Bound::Included((txid, u64::MAX)));
            let numbers = [((txid, u64::from(number)), ())];
            note::<TransactionNumbers>(&mut known, all, numbers, usize::MAX);
            let place = ShownPlace::Mempool(Sighting::judged(true));
            let came_at = Timestamp::from_micros(1);
            Noticed { transaction: (&transaction).into(), place, came_at, ancestry: Vec::new() }
        });
        let notice = Notice { shown: shown.collect(), now: Timestamp::from_micros(2) };
        assert_eq!(missing_in(&notice, &known, Table::Transactions), 100);
    }

    #[test]
    fn one_run_finds_all_receipts_that_a_transaction_spends_which_is_followed_no_longer() {
        let mut known = Known::default();
        note_spending(&mut known, TransactionState::Refused, 100);
        let until = FollowedUntil::Time(Timestamp::from_micros(1));
        note_row::<FollowedTransactions>(&mut known, &1, &until);
        assert_eq!(missing_in(&Unfollow { transaction: 1 }, &known, Table::Receipts), 100);
    }
}
