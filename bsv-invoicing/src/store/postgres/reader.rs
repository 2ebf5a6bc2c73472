//! The thread that reads. Look-ups that wait at the same time share statements. A long read sees the database as of one
//! moment. The thread also notices what other processes have committed, and does what a server does every second.

use std::io;
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bsv_store::{GroupWriter, StoreError};
use tokio::join;
use tokio::runtime::Builder;
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::task::LocalSet;
use tokio::time::{MissedTickBehavior, interval};

use super::connection::Connection;
use super::error::Failure;
use super::known::{Known, Wants};
use super::shared::Shared;
use super::step::Step;
use super::transaction::{begin_snapshot, give_up, in_time, look, read_more};
use super::upkeep::keep_up;
use super::writer::SqlBatches;

/// The thread that reads. It ends when this is dropped.
pub(super) struct Reader {
    /// `None` only during the drop.
    queue: Option<mpsc::UnboundedSender<Job>>,
    thread: Option<JoinHandle<()>>,
}

/// What is known of one moment.
pub(super) type Found = Result<Arc<Known>, StoreError>;

enum Job {
    /// Reads what is wanted.
    Look(Wants, oneshot::Sender<Found>),
    /// Reads several times, as of one moment.
    Snapshot(mpsc::Receiver<(Wants, oneshot::Sender<Result<Known, StoreError>>)>),
}

/// Reads several times, as of one moment.
pub(super) struct Snapshot(mpsc::Sender<(Wants, oneshot::Sender<Result<Known, StoreError>>)>);

/// How many look-ups share statements at most.
const TOGETHER: usize = 256;
/// A long read blocks no writer, and its caller may take a while between two reads.
const PATIENT: &str =
    "SET idle_in_transaction_session_timeout = '60s'; SET statement_timeout = '60s'";
/// How often the thread looks for commits of other processes.
const POLL: Duration = Duration::from_millis(50);

impl Reader {
    /// Starts the thread.
    pub(super) fn start(
        shared: Arc<Shared>,
        writer: Weak<GroupWriter<SqlBatches>>,
    ) -> Result<Self, io::Error> {
        let (queue, jobs) = mpsc::unbounded_channel();
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let polls = queue.downgrade();
        let thread = thread::Builder::new().name("store reader".to_owned()).spawn(move || {
            let serve = async {
                tokio::select! {
                    () = serve(&shared, jobs) => {}
                    () = poll(polls) => {}
                    () = keep_up(&shared, &writer) => {}
                }
            };
            LocalSet::new().block_on(&runtime, serve);
        })?;
        Ok(Self { queue: Some(queue), thread: Some(thread) })
    }

    /// Reads what is wanted, all as of one moment.
    pub(super) async fn look(&self, wants: Wants) -> Found {
        let (caller, answer) = oneshot::channel();
        self.send(Job::Look(wants, caller));
        answer.await.unwrap_or(Err(StoreError::Panicked))
    }

    /// Begins to read several times as of one moment.
    pub(super) fn snapshot(&self) -> Snapshot {
        let (sender, wants) = mpsc::channel(1);
        self.send(Job::Snapshot(wants));
        Snapshot(sender)
    }

    fn send(&self, job: Job) {
        if let Some(queue) = &self.queue {
            // If the thread has ended, the caller hears of it.
            let _ = queue.send(job);
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Snapshot {
    pub(super) async fn read(&self, wants: Wants) -> Result<Known, StoreError> {
        let (caller, answer) = oneshot::channel();
        self.0.send((wants, caller)).await.map_err(|_| StoreError::Panicked)?;
        answer.await.unwrap_or(Err(StoreError::Panicked))
    }
}

/// Serves over two connections: while the database works for one, the thread works for the other.
async fn serve(shared: &Arc<Shared>, jobs: mpsc::UnboundedReceiver<Job>) {
    let (jobs, long) = (Mutex::new(jobs), Arc::default());
    join!(serve_one(shared, &jobs, &long), serve_one(shared, &jobs, &long));
}

/// Serves over a connection.
async fn serve_one(
    shared: &Arc<Shared>,
    jobs: &Mutex<mpsc::UnboundedReceiver<Job>>,
    long: &Arc<Mutex<Option<Connection>>>,
) {
    let mut connection = None;
    let mut waiting = Vec::new();
    while jobs.lock().await.recv_many(&mut waiting, TOGETHER).await > 0 {
        let (mut wants, mut callers) = (Wants::default(), Vec::new());
        for job in waiting.drain(..) {
            match job {
                Job::Look(_, caller) if caller.is_closed() => {}
                Job::Look(wanted, caller) => {
                    wants.extend(wanted);
                    callers.push(caller);
                }
                Job::Snapshot(asked) => {
                    let (shared, long) = (Arc::clone(shared), Arc::clone(long));
                    tokio::task::spawn_local(async move { read_long(&shared, &long, asked).await });
                }
            }
        }
        if callers.is_empty() {
            continue;
        }
        let found = look_up(shared, &mut connection, &wants).await.map(Arc::new);
        for caller in callers {
            // It may have gone.
            let _ = caller.send(found.clone());
        }
    }
}

async fn look_up(
    shared: &Shared,
    connection: &mut Option<Connection>,
    wants: &Wants,
) -> Result<Known, StoreError> {
    let before = shared.seen();
    let open = connection.take();
    let found = match open.filter(|it| !it.is_closed()) {
        Some(open) => match look(&open, wants).await {
            // The connection may have been lost long ago, or lead to a server that is no longer the primary.
            Err(Failure::Passing(_)) => look_anew(shared, wants).await,
            Ok((step, _)) if step.has_gone_back(&before) => look_anew(shared, wants).await,
            found => found.map(|found| (open, found)),
        },
        None => look_anew(shared, wants).await,
    };
    let (open, (step, known)) = found.map_err(Failure::into_store_error)?;
    shared.note(&step, &before).map_err(Failure::into_store_error)?;
    *connection = Some(open);
    Ok(known)
}

async fn look_anew(shared: &Shared, wants: &Wants) -> Result<(Connection, (Step, Known)), Failure> {
    let connection = shared.connect().await?;
    let found = look(&connection, wants).await?;
    Ok((connection, found))
}

/// Reads what is asked for, one time after the other, as of the moment of the first.
async fn read_long(
    shared: &Shared,
    connection: &Mutex<Option<Connection>>,
    mut asked: mpsc::Receiver<(Wants, oneshot::Sender<Result<Known, StoreError>>)>,
) {
    let mut connection = connection.lock().await;
    let mut has_begun = false;
    while let Some((wants, caller)) = asked.recv().await {
        let read = match (&*connection, has_begun) {
            (Some(open), true) => read_on(open, wants).await,
            _ => begin_long(shared, &mut connection, wants).await,
        };
        has_begun = true;
        let is_over = read.is_err();
        let _ = caller.send(read.map_err(Failure::into_store_error));
        if is_over {
            *connection = None;
            return;
        }
    }
    if let Some(open) = &*connection
        && has_begun
        && give_up(open).await.is_err()
    {
        *connection = None;
    }
}

async fn begin_long(
    shared: &Shared,
    connection: &mut Option<Connection>,
    wants: Wants,
) -> Result<Known, Failure> {
    if let Some(open) = connection.as_ref().filter(|it| !it.is_closed())
        && let Ok((_, known)) = begin_snapshot(open, wants.clone()).await
    {
        return Ok(known);
    }
    let open = connection.insert(shared.connect().await?);
    in_time(open.execute_all(PATIENT)).await?;
    Ok(begin_snapshot(open, wants).await?.1)
}

async fn read_on(connection: &Connection, wants: Wants) -> Result<Known, Failure> {
    let mut known = Known::default();
    read_more(connection, wants, &mut known).await?;
    Ok(known)
}

/// Notices what others have committed.
async fn poll(queue: mpsc::WeakUnboundedSender<Job>) {
    let mut ticks = interval(POLL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let (caller, answer) = oneshot::channel();
        let Some(queue) = queue.upgrade() else { return };
        let _ = queue.send(Job::Look(Wants::default(), caller));
        drop(queue);
        // The thread that reads takes note of the last step.
        let _ = answer.await;
    }
}
