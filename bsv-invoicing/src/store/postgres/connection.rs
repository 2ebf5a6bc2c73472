//! A connection to the database.

use std::cell::RefCell;
use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::error::Severity;
use tokio_postgres::types::ToSql;
use tokio_postgres::{AsyncMessage, Client, Row, SimpleQueryMessage};

use super::error::{Failure, Unfit};
use super::options::PostgresOptions;
use super::statements::{Parameter, StatementKey};

/// A connection to the database, which can write.
pub(super) struct Connection {
    client: Client,
    /// What stands before the names of tables.
    schema: String,
    /// The newest version of the schema that this program knows.
    pub(super) newest: i32,
    statements: RefCell<HashMap<StatementKey, tokio_postgres::Statement>>,
    /// Whether the server has sent a warning, as when a commit did not wait for a standby.
    has_warned: Arc<AtomicBool>,
    driver: JoinHandle<()>,
}

/// How long a connection may take to be there, or to answer.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// How long a connection may take to tell the database that it ends.
const FAREWELL: Duration = Duration::from_millis(200);

/// A session always finds rows through indexes, because the planner may guess wrongly how many rows there are. The
/// database ends the transaction of a process that stands still, so that others can write.
const SESSION: &str = "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; \
    SET enable_hashjoin = off; SET enable_mergejoin = off; SET jit = off; \
    SET idle_in_transaction_session_timeout = '5s'; SET statement_timeout = '10s'; \
    SET client_min_messages = warning; SET default_transaction_isolation = 'read committed'";

/// A statement, which is sent when this is polled first.
pub(super) type Statement<'s> =
    Pin<Box<dyn Future<Output = Result<Vec<Row>, tokio_postgres::Error>> + 's>>;

impl Connection {
    /// Connects to the host that takes changes.
    pub(super) async fn open(options: &PostgresOptions) -> Result<Self, Failure> {
        timeout(PATIENCE, Self::connect(options)).await.map_err(|_| Failure::slow())?
    }

    async fn connect(options: &PostgresOptions) -> Result<Self, Failure> {
        let connection = Self::dial(options).await?;
        connection.execute_all(SESSION).await?;
        Ok(connection)
    }

    async fn dial(options: &PostgresOptions) -> Result<Self, Failure> {
        let (client, connection) = options.config.connect(options.tls.clone()).await?;
        let has_warned = Arc::<AtomicBool>::default();
        let driver = tokio::spawn(drive(connection, Arc::clone(&has_warned)));
        let schema = format!("\"{}\".", options.schema);
        let newest = options.newest();
        Ok(Self { client, schema, newest, statements: RefCell::default(), has_warned, driver })
    }

    /// The number of the session in which the database runs a statement.
    async fn session(&self) -> Result<Option<String>, Failure> {
        let answers = self.client.simple_query("SELECT pg_backend_pid()").await?;
        let number = answers.iter().find_map(|answer| match answer {
            SimpleQueryMessage::Row(row) => row.get(0),
            _ => None,
        });
        Ok(number.map(str::to_owned))
    }

    /// A text with the schema in the place of `@`.
    fn with_schema(&self, text: &str) -> String {
        text.replace('@', &self.schema)
    }

    /// Statements without parameters, sent at once. `@` before a table stands for the schema.
    pub(super) async fn execute_all(&self, statements: &str) -> Result<(), Failure> {
        Ok(self.client.batch_execute(&self.with_schema(statements)).await?)
    }

    /// Gets statements ready, which are asked for together.
    pub(super) async fn prepare(&self, keys: &[StatementKey]) -> Result<(), Failure> {
        let missing: Vec<_> = {
            let known = self.statements.borrow();
            keys.iter().filter(|key| !known.contains_key(key)).copied().collect()
        };
        let texts: Vec<_> = missing.iter().map(|key| self.with_schema(&key.text())).collect();
        let prepared = in_order(texts.iter().map(|text| self.client.prepare(text))).await;
        for (key, statement) in missing.into_iter().zip(prepared) {
            self.statements.borrow_mut().insert(key, statement?);
        }
        Ok(())
    }

    /// Runs a statement that is [ready](Self::prepare). It is sent when this is polled first.
    pub(super) async fn run(
        &self,
        key: StatementKey,
        parameters: Vec<Parameter<'_>>,
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        let statement = self.statements.borrow()[&key].clone();
        let parameters: Vec<&(dyn ToSql + Sync)> =
            parameters.iter().map(|it| &**it as &(dyn ToSql + Sync)).collect();
        self.client.query(&statement, &parameters).await
    }

    /// Begins, commits or gives up a transaction. It is sent when this is polled first.
    pub(super) async fn control(&self, statement: &str) -> Result<Vec<Row>, tokio_postgres::Error> {
        self.client.batch_execute(&self.with_schema(statement)).await?;
        Ok(Vec::new())
    }

    /// Ends the connection, so that the database gives up the transaction and its locks. A connection that is only
    /// dropped stays open until its runtime works again.
    pub(super) async fn close(self) {
        drop(self.client);
        let mut driver = self.driver;
        if timeout(FAREWELL, &mut driver).await.is_err() {
            driver.abort();
            let _ = driver.await;
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Whether the server has sent a warning since this was asked last.
    pub(super) fn take_warning(&self) -> bool {
        self.has_warned.swap(false, Ordering::Relaxed)
    }
}

/// Fails if a pooler gives each transaction another session of the database. Settings and prepared statements would be
/// lost then, and would reach other clients of the pooler.
pub(super) async fn expect_sessions(options: &PostgresOptions) -> Result<(), Failure> {
    let looking = async {
        let one = Connection::dial(options).await?;
        let other = Connection::dial(options).await?;
        let (first, second) = (one.session().await?, other.session().await?);
        // A pooler may give sessions out in turn.
        let (fourth, third) = (other.session().await?, one.session().await?);
        let are_own = first != second && first == third && second == fourth;
        for connection in [one, other] {
            connection.close().await;
        }
        if are_own { Ok(()) } else { Err(Unfit::Pooled.into()) }
    };
    timeout(PATIENCE, looking).await.map_err(|_| Failure::slow())?
}

/// Drives a connection until it ends.
async fn drive<S, T>(mut connection: tokio_postgres::Connection<S, T>, has_warned: Arc<AtomicBool>)
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
        if let AsyncMessage::Notice(notice) = message {
            if notice.parsed_severity() == Some(Severity::Warning) {
                has_warned.store(true, Ordering::Relaxed);
            }
            tracing::warn!("the database says: {}", notice.message());
        }
    }
}

/// Polls futures together, each for the first time in its turn: what they send leaves in this order, and they wait for
/// one round trip.
pub(super) async fn in_order<F: Future>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let mut futures: Vec<Pin<Box<F>>> = futures.into_iter().map(Box::pin).collect();
    let mut outputs: Vec<Option<F::Output>> = futures.iter().map(|_| None).collect();
    poll_fn(|context| poll_all(&mut futures, &mut outputs, context)).await;
    outputs.into_iter().flatten().collect()
}

fn poll_all<F: Future>(
    futures: &mut [Pin<Box<F>>],
    outputs: &mut [Option<F::Output>],
    context: &mut Context<'_>,
) -> Poll<()> {
    let mut is_ready = true;
    for (future, output) in futures.iter_mut().zip(outputs) {
        if output.is_none() {
            match future.as_mut().poll(context) {
                Poll::Ready(value) => *output = Some(value),
                Poll::Pending => is_ready = false,
            }
        }
    }
    if is_ready { Poll::Ready(()) } else { Poll::Pending }
}
