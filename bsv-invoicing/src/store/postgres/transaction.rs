//! The transaction of a batch: what is sent at its beginning, and at its end.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use bsv_store::EngineError;
use tokio::join;
use tokio::task::yield_now;
use tokio::time::timeout;

use super::connection::{Connection, PATIENCE, Statement, in_order};
use super::error::{Failure, has_undone, is_refused_commit};
use super::fetch::{Fetch, fetch};
use super::known::{Known, MOST_AT_ONCE, Wants};
use super::rows::Changes;
use super::statements::{Parameter, StatementKey};
use super::step::{self, Step};
use crate::ledger::rows::{Change, Table};

/// A process writes only while it holds this lock. The row itself never changes.
const LOCK: &str = "BEGIN; SELECT 1 FROM @door FOR UPDATE";
const SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
/// How many rows are written in one round trip with COMMIT at most. The outcome of a COMMIT that is not answered in time is
/// unknown, and a batch has more rows only if a transaction with very many outputs changes.
const MOST_WITH_COMMIT: usize = 5 * MOST_AT_ONCE;
/// A process that computes with very many rows does not stand still, however slow its machine is.
const LOCK_FOR_MANY_ROWS: &str = "BEGIN; SET LOCAL idle_in_transaction_session_timeout = '60s'; \
    SELECT 1 FROM @door FOR UPDATE";
const ALLOW_FOR_MANY_ROWS: &str = "SET LOCAL idle_in_transaction_session_timeout = '60s'";
/// A transaction of so many bytes may have thousands of outputs.
const HEAVY: usize = 1 << 18;
const ADD_AUDIT: StatementKey = StatementKey::Other(
    "INSERT INTO @audit (number, at, event, subject, previous) \
     SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bytea[], $4::bytea[], $5::bytea[])",
);

/// Why a batch is not known to be committed.
pub(super) enum NotDone {
    /// It is not committed.
    Failed(Failure),
    /// Nobody knows yet whether it is committed.
    Undecided(EngineError),
}

impl From<Failure> for NotDone {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Begins a transaction under the lock of the door, and reads the last step and the wanted rows, in one round trip. The
/// statements after the lock see all earlier commits. `else_wanted` runs while the database begins, and names more rows
/// to read. A batch that adds at least [`HEAVY`] bytes may have many rows.
pub(super) async fn begin(
    connection: &Connection,
    weight: usize,
    wants: &Wants,
    else_wanted: impl FnOnce() -> Wants,
) -> Result<(Step, Known), Failure> {
    let else_wanted = async || {
        // The driver sends the first statements.
        yield_now().await;
        else_wanted()
    };
    let lock = if weight < HEAVY { LOCK } else { LOCK_FOR_MANY_ROWS };
    let (step, known) = in_time(read(connection, lock, wants, else_wanted, None)).await?;
    allow_for(connection, known.len()).await?;
    Ok((step, known))
}

/// Lets the process take its time with so many rows.
async fn allow_for(connection: &Connection, rows: usize) -> Result<(), Failure> {
    if rows <= MOST_AT_ONCE {
        return Ok(());
    }
    in_time(async { Ok(connection.control(ALLOW_FOR_MANY_ROWS).await?) }).await.map(drop)
}

/// Begins a transaction that sees the database as of one moment, and reads the last step and the wanted rows.
pub(super) async fn begin_snapshot(
    connection: &Connection,
    wants: Wants,
) -> Result<(Step, Known), Failure> {
    let mut parts = wants.into_parts().into_iter();
    let first = parts.next().unwrap_or_default();
    let begin = read(connection, SNAPSHOT, &first, async || Wants::default(), None);
    let (step, mut known) = in_time(begin).await?;
    for part in parts {
        in_time(fetch(connection, &part, &mut known)).await?;
    }
    Ok((step, known))
}

/// Reads the last step and the wanted rows as of one moment, in one round trip.
pub(super) async fn look(connection: &Connection, wants: &Wants) -> Result<(Step, Known), Failure> {
    in_time(read(connection, SNAPSHOT, wants, async || Wants::default(), Some("COMMIT"))).await
}

/// Reads more rows in the open transaction of the connection.
pub(super) async fn read_more(
    connection: &Connection,
    wants: Wants,
    known: &mut Known,
) -> Result<(), Failure> {
    for part in wants.into_parts() {
        in_time(fetch(connection, &part, known)).await?;
    }
    allow_for(connection, known.len()).await
}

/// Fails if something takes too long.
pub(super) async fn in_time<T>(
    reading: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    timeout(PATIENCE, reading).await.map_err(|_| Failure::slow())?
}

async fn read(
    connection: &Connection,
    begin: &'static str,
    wants: &Wants,
    else_wanted: impl AsyncFnOnce() -> Wants,
    end: Option<&'static str>,
) -> Result<(Step, Known), Failure> {
    let first = Fetch::new(wants);
    connection.prepare(&[&[step::READ_LAST][..], &first.statements()].concat()).await?;
    let mut sent: Vec<Statement<'_>> = vec![
        Box::pin(connection.control(begin)),
        Box::pin(connection.run(step::READ_LAST, Vec::new())),
    ];
    sent.extend(first.sent(connection));
    let mut begun = pin!(in_order(sent));
    let early = poll_fn(|context| Poll::Ready(begun.as_mut().poll(context))).await;
    let wants = else_wanted().await;
    let rest = Fetch::new(&wants);
    connection.prepare(&rest.statements()).await?;
    let mut sent = rest.sent(connection);
    if let Some(end) = end {
        sent.push(Box::pin(connection.control(end)));
    }
    let begun = async {
        match early {
            Poll::Ready(answers) => answers,
            Poll::Pending => begun.await,
        }
    };
    let (begun, more) = join!(begun, in_order(sent));
    let begun = begun.into_iter().collect::<Result<Vec<_>, _>>()?;
    let more = more.into_iter().collect::<Result<Vec<_>, _>>()?;
    let mut begun = begun.into_iter().skip(1);
    let step = Step::read(connection, &begun.next().unwrap_or_default())?;
    let mut known = Known::default();
    step.note(&mut known);
    first.take(begun, &mut known)?;
    rest.take(more, &mut known)?;
    Ok((step, known))
}

/// Adds a step, writes what has changed, and commits, in one round trip unless very much has changed. `meanwhile` runs
/// while the database works.
pub(super) async fn commit(
    connection: &Connection,
    changes: &Changes,
    next: &Step,
    writer_step: i64,
    meanwhile: impl FnOnce(),
) -> Result<(), NotDone> {
    // Where the lock does not hold, two writers meet at the step before they meet at a row.
    let mut statements = vec![next.add(writer_step)];
    for (table, rows) in &changes.rows {
        if *table != Table::AllFigures {
            add_changes(*table, rows, &mut statements);
        }
    }
    if !changes.audit.is_empty() {
        statements.push((ADD_AUDIT, audit_parameters(changes)));
    }
    let keys: Vec<_> = statements.iter().map(|(key, _)| *key).collect();
    in_time(connection.prepare(&keys)).await?;
    let rows: usize = changes.rows.values().map(BTreeMap::len).sum();
    let early = if rows > MOST_WITH_COMMIT { statements.len() - 1 } else { 0 };
    let last = statements.split_off(early);
    for (key, given) in statements {
        in_time(async { Ok(connection.run(key, given).await?) }).await?;
    }
    let committed = timeout(PATIENCE, write_last(connection, last, meanwhile)).await;
    committed.unwrap_or_else(|_| Err(NotDone::Undecided(Failure::slow().into_error())))
}

/// Runs the last statements of a transaction, and commits it, in one round trip.
async fn write_last(
    connection: &Connection,
    statements: Vec<(StatementKey, Vec<Parameter<'_>>)>,
    meanwhile: impl FnOnce(),
) -> Result<(), NotDone> {
    connection.take_warning();
    let has_failed = Cell::new(false);
    let run = async |key, given| {
        let answer = connection.run(key, given).await;
        has_failed.set(has_failed.get() || answer.is_err());
        answer
    };
    let mut sent: Vec<Statement<'_>> = Vec::new();
    for (key, given) in statements {
        sent.push(Box::pin(run(key, given)));
    }
    sent.push(Box::pin(async {
        // A statement that cannot be sent has failed by now. The database does not know of it.
        let end = if has_failed.get() { "ROLLBACK" } else { "COMMIT" };
        connection.control(end).await
    }));
    let meanwhile = async {
        // The driver sends the statements.
        yield_now().await;
        meanwhile();
    };
    let (mut answers, ()) = join!(biased; in_order(sent), meanwhile);
    let committed = answers.pop().expect("the last one was sent");
    for answer in answers {
        if let Err(error) = answer {
            // PostgreSQL answers COMMIT with ROLLBACK then, and with no error.
            let is_undone = has_undone(&error);
            let failure = Failure::from(error);
            return Err(match is_undone {
                true => NotDone::Failed(failure),
                false => NotDone::Undecided(failure.into_error()),
            });
        }
    }
    match committed {
        // If somebody cancels the wait for a standby, PostgreSQL has committed, and only warns of it.
        Ok(_) if connection.take_warning() => {
            Err(NotDone::Undecided(Failure::warned().into_error()))
        }
        Ok(_) => Ok(()),
        Err(error) if is_refused_commit(&error) => Err(NotDone::Failed(error.into())),
        Err(error) => Err(NotDone::Undecided(Failure::from(error).into_error())),
    }
}

/// Rolls the transaction back.
pub(super) async fn give_up(connection: &Connection) -> Result<(), Failure> {
    in_time(async { Ok(connection.control("ROLLBACK").await?) }).await.map(drop)
}

fn add_changes<'c>(
    table: Table,
    rows: &'c BTreeMap<Vec<u8>, Change>,
    statements: &mut Vec<(StatementKey, Vec<Parameter<'c>>)>,
) {
    let (mut erased, mut added, mut set) = (Vec::new(), Vec::new(), Vec::new());
    for (key, change) in rows {
        match change {
            Change::New(row) => added.push((&key[..], &row[..])),
            Change::Set(row) => set.push((&key[..], &row[..])),
            Change::Gone => erased.push(&key[..]),
        }
    }
    for erased in erased.chunks(MOST_AT_ONCE) {
        statements.push((StatementKey::Erase(table), vec![Box::new(erased.to_vec())]));
    }
    for (statement, rows) in [(StatementKey::Add(table), added), (StatementKey::Put(table), set)] {
        for rows in rows.chunks(MOST_AT_ONCE) {
            let (keys, rows): (Vec<_>, Vec<_>) = rows.iter().copied().unzip();
            statements.push((statement, vec![Box::new(keys), Box::new(rows)]));
        }
    }
}

fn audit_parameters(changes: &Changes) -> Vec<Parameter<'_>> {
    let entries = &changes.audit;
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    vec![
        Box::new(entries.iter().map(|it| number(it.number)).collect::<Vec<_>>()),
        Box::new(entries.iter().map(|it| number(it.at_micros)).collect::<Vec<_>>()),
        Box::new(entries.iter().map(|it| it.event.as_bytes()).collect::<Vec<_>>()),
        Box::new(entries.iter().map(|it| it.subject.as_bytes()).collect::<Vec<_>>()),
        Box::new(entries.iter().map(|it| it.previous.to_vec()).collect::<Vec<_>>()),
    ]
}
