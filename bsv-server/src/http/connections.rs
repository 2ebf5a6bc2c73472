use std::cmp::Reverse;
use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::body::{Body, Frame, SizeHint};
use ipnet::IpNet;
use tokio::sync::Notify;

/// The connections of a listener. When there are too many, a connection that waits for its peer is
/// closed to make room. So peers that connect and send nothing, send slowly, or do not read keep
/// nobody out.
#[derive(Debug)]
pub(crate) struct Connections {
    started: Instant,
    open: Mutex<HashMap<u64, Connection>>,
    refused: AtomicU64,
}

#[derive(Debug)]
struct Connection {
    /// The peer, where peers are counted.
    peer: Option<IpNet>,
    activity: Arc<Activity>,
}

/// Whether there is room for a new connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// A connection was closed for it.
    Made,
    /// The new connection has to wait.
    Awaited,
    /// The new connection is refused, because its peer already has connections.
    Refused,
}

/// Whether a connection is active.
#[derive(Debug)]
pub(super) struct Activity {
    started: Instant,
    /// [`BUSY`], [`GIVEN_UP`], or the start of being idle, in milliseconds after `started`.
    state: AtomicU64,
    /// Whether no request has begun yet.
    is_new: AtomicBool,
    /// [`NOT_AWAITED`], or the start of waiting for more of a body, in milliseconds after
    /// `started`.
    body_awaited: AtomicU64,
    /// [`NOT_AWAITED`], or the start of waiting for the peer to take more of an answer.
    reader_awaited: AtomicU64,
    given_up: Notify,
}

/// Keeps a connection busy until dropped.
#[derive(Debug)]
pub(super) struct Busy(Arc<Activity>);

/// The body of a request, which tells its connection when it waits for more.
#[derive(Debug)]
pub(crate) struct AwaitedBody<B> {
    body: B,
    activity: Arc<Activity>,
}

/// The body of an answer, whose connection stays busy until the whole body has been passed on.
#[derive(Debug)]
pub(super) struct BusyBody<B> {
    body: B,
    _busy: Busy,
}

/// Keeps a connection in the list of its listener until dropped.
#[derive(Debug)]
pub(super) struct Entry {
    connections: Arc<Connections>,
    number: u64,
    pub(super) activity: Arc<Activity>,
}

const BUSY: u64 = u64::MAX;
const GIVEN_UP: u64 = u64::MAX - 1;
const NOT_AWAITED: u64 = u64::MAX;
/// How long a connection may be idle before it can be given up, and how long a new one may be idle
/// after a stop has begun: its first request is on its way.
const GRACE: Duration = Duration::from_millis(250);
/// How long bodies may still arrive after a stop has begun.
const BODY_PATIENCE: Duration = Duration::from_secs(1);
/// How long a body or a reader may stall before the connection can be given up.
const STALL_GRACE: Duration = Duration::from_secs(2);

impl Connections {
    pub(crate) fn new() -> Arc<Self> {
        let refused = AtomicU64::new(0);
        Arc::new(Self { started: Instant::now(), open: Mutex::default(), refused })
    }

    /// The number of open connections.
    pub(crate) fn count(&self) -> u64 {
        self.open().len() as u64
    }

    /// The number of connections that were closed because their peers had too many.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Counts a closed connection.
    pub(super) fn note_refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Adds a connection with a number that no other has.
    pub(super) fn enter(self: &Arc<Self>, number: u64, peer: Option<IpNet>) -> Entry {
        let activity = Activity::since(self.started);
        let connection = Connection { peer, activity: Arc::clone(&activity) };
        self.open().insert(number, connection);
        Entry { connections: Arc::clone(self), number, activity }
    }

    /// Gives up a connection to make room for one of `newcomer`. Only a connection that waits for
    /// its peer can be given up: either it has waited too long and its peer has at least as many
    /// connections as the newcomer, or its peer has at least two more than the newcomer. Among
    /// these, the one is chosen whose peer has the most connections; of these, the one that has
    /// waited longest.
    pub(super) fn make_room(&self, newcomer: Option<IpNet>) -> Room {
        let open = self.open();
        let mut counts: HashMap<IpNet, usize> = HashMap::new();
        for peer in open.values().filter_map(|connection| connection.peer) {
            *counts.entry(peer).or_default() += 1;
        }
        let count = |peer: Option<IpNet>| peer.and_then(|it| counts.get(&it)).copied().unwrap_or(0);
        let (own, now) = (count(newcomer), self.started.elapsed());
        let makes_room = |wait: &Wait, of: usize| {
            (wait.is_over(now) && of >= own) || (newcomer.is_some() && of > own + 1)
        };
        let waits = open.values().filter_map(|it| Some((it.activity.wait()?, count(it.peer), it)));
        let longest = waits
            .filter(|(wait, of, _)| makes_room(wait, *of))
            .max_by_key(|(wait, of, _)| (*of, Reverse(wait.since)));
        match longest {
            Some((wait, _, connection)) if connection.activity.give_up(&wait) => Room::Made,
            None if own > 0 => Room::Refused,
            _ => Room::Awaited,
        }
    }

    /// Gives up the waiting connections that keep a listener from stopping, `stopping` after the stop
    /// has begun: those that have waited too long, soon also those that wait for more of a body, and
    /// those of strangers whose answer is not taken at once.
    pub(super) fn give_up_waiting(&self, stopping: Duration, of_strangers: bool) {
        let now = self.started.elapsed();
        let is_late = stopping >= BODY_PATIENCE;
        for connection in self.open().values() {
            let Some(wait) = connection.activity.wait() else { continue };
            let is_unwanted = match wait.of {
                Awaited::Request if connection.activity.is_new() => stopping >= GRACE,
                Awaited::Request => wait.is_over(now),
                Awaited::Body => is_late || wait.is_over(now),
                Awaited::Reader => (is_late && of_strangers) || wait.is_over(now),
            };
            if is_unwanted {
                connection.activity.give_up(&wait);
            }
        }
    }

    fn open(&self) -> MutexGuard<'_, HashMap<u64, Connection>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection's wait for its peer.
#[derive(Clone, Copy, Debug)]
struct Wait {
    /// The connection's state during the wait.
    state: u64,
    /// The start of the wait, in milliseconds after `started`.
    since: u64,
    of: Awaited,
}

/// What a connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaited {
    /// A request.
    Request,
    /// More of a body.
    Body,
    /// The peer, to take more of an answer.
    Reader,
}

impl Wait {
    /// Whether the wait has lasted too long.
    fn is_over(&self, now: Duration) -> bool {
        let grace = match self.of {
            Awaited::Request => GRACE,
            Awaited::Body | Awaited::Reader => STALL_GRACE,
        };
        now.as_millis() as u64 >= self.since + grace.as_millis() as u64
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.connections.open().remove(&self.number);
    }
}

impl Activity {
    /// The activity of a connection that begins now. `started` is the start of its clock.
    pub(super) fn since(started: Instant) -> Arc<Self> {
        Arc::new(Self {
            started,
            state: AtomicU64::new(started.elapsed().as_millis() as u64),
            is_new: AtomicBool::new(true),
            body_awaited: AtomicU64::new(NOT_AWAITED),
            reader_awaited: AtomicU64::new(NOT_AWAITED),
            given_up: Notify::new(),
        })
    }

    /// Begins a request, unless the connection has been given up.
    pub(super) fn begin(self: &Arc<Self>) -> Option<Busy> {
        let begin = |state| (state != GIVEN_UP).then_some(BUSY);
        self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, begin).ok()?;
        self.is_new.store(false, Ordering::Relaxed);
        Some(Busy(Arc::clone(self)))
    }

    /// Whether no request has begun yet.
    pub(super) fn is_new(&self) -> bool {
        self.is_new.load(Ordering::Relaxed)
    }

    /// Tells whether a part of an answer waits for its reader.
    pub(super) fn set_stalled(&self, is_stalled: bool) {
        let since = if is_stalled { self.now() } else { NOT_AWAITED };
        self.reader_awaited.store(since, Ordering::Relaxed);
    }

    /// Completes when the connection is given up.
    pub(super) async fn given_up(&self) {
        self.given_up.notified().await;
    }

    /// The current wait for the peer: for a request, for more of a body, or for a reader.
    fn wait(&self) -> Option<Wait> {
        let state = self.state.load(Ordering::Relaxed);
        let reader_awaited = self.reader_awaited.load(Ordering::Relaxed);
        let (since, of) = match state {
            GIVEN_UP => return None,
            _ if reader_awaited != NOT_AWAITED => (reader_awaited, Awaited::Reader),
            BUSY => (self.body_awaited.load(Ordering::Relaxed), Awaited::Body),
            since => (since, Awaited::Request),
        };
        (since != NOT_AWAITED).then_some(Wait { state, since, of })
    }

    /// Gives up the connection if it still waits in this way.
    fn give_up(&self, wait: &Wait) -> bool {
        let exchanged =
            self.state.compare_exchange(wait.state, GIVEN_UP, Ordering::AcqRel, Ordering::Relaxed);
        if exchanged.is_ok() {
            self.given_up.notify_one();
        }
        exchanged.is_ok()
    }

    fn now(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ =
            self.0.state.compare_exchange(BUSY, self.0.now(), Ordering::AcqRel, Ordering::Relaxed);
    }
}

impl<B> AwaitedBody<B> {
    pub(super) fn new(body: B, activity: Arc<Activity>) -> Self {
        Self { body, activity }
    }
}

impl<B: Body + Unpin> Body for AwaitedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        let awaited = &self.activity.body_awaited;
        if frame.is_ready() {
            awaited.store(NOT_AWAITED, Ordering::Relaxed);
        } else if awaited.load(Ordering::Relaxed) == NOT_AWAITED {
            awaited.store(self.activity.now(), Ordering::Relaxed);
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<B> Drop for AwaitedBody<B> {
    /// Nobody waits for the rest of the body.
    fn drop(&mut self) {
        self.activity.body_awaited.store(NOT_AWAITED, Ordering::Relaxed);
    }
}

impl<B> BusyBody<B> {
    pub(super) fn new(body: B, busy: Busy) -> Self {
        Self { body, _busy: busy }
    }
}

impl<B: Body + Unpin> Body for BusyBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::thread::sleep;

    use super::*;

    fn is_given_up(entry: &Entry) -> bool {
        entry.activity.state.load(Ordering::Acquire) == GIVEN_UP
    }

    #[test]
    fn the_idlest_makes_room_and_nobody_who_is_at_work() {
        let connections = Connections::new();
        let entries: Vec<_> = (0..4)
            .map(|number| {
                sleep(Duration::from_millis(2));
                connections.enter(number, None)
            })
            .collect();
        let busy = entries[0].activity.begin().unwrap();
        entries[1].activity.set_stalled(true);
        connections.make_room(None);
        assert!(!entries.iter().any(is_given_up), "all of them are new");
        sleep(GRACE);
        connections.make_room(None);
        assert_eq!(
            entries.iter().map(is_given_up).collect::<Vec<_>>(),
            [false, false, true, false]
        );
        assert!(entries[2].activity.begin().is_none());
        connections.make_room(None);
        assert!(is_given_up(&entries[3]));
        drop(busy);
        connections.make_room(None);
        assert!(!is_given_up(&entries[0]), "it has only just become idle");
        drop(entries);
        assert!(connections.open().is_empty());
    }

    #[test]
    fn whose_body_does_not_come_and_who_does_not_read_makes_room() {
        let connections = Connections::new();
        let entries = [0, 1].map(|number| connections.enter(number, None));
        let _busy = entries.each_ref().map(|entry| entry.activity.begin().unwrap());
        let [body, reader] = entries.each_ref().map(|entry| &entry.activity);
        sleep(STALL_GRACE);
        for (age, is_over) in [(STALL_GRACE / 2, false), (STALL_GRACE, true)] {
            let since = body.now().saturating_sub(age.as_millis() as u64);
            body.body_awaited.store(since, Ordering::Relaxed);
            reader.reader_awaited.store(since, Ordering::Relaxed);
            for _ in &entries {
                connections.make_room(None);
            }
            assert_eq!(entries.each_ref().map(is_given_up), [is_over; 2]);
        }
    }

    #[test]
    fn a_stop_waits_for_nobody_who_lets_it_wait() {
        let connections = Connections::new();
        let entries = [0, 1, 2, 3, 4].map(|number| connections.enter(number, None));
        let [new, idle, body, reader, at_work] = entries.each_ref().map(|entry| &entry.activity);
        let _busy = [body, reader, at_work].map(|it| it.begin().unwrap());
        drop(idle.begin().unwrap());
        body.body_awaited.store(body.now(), Ordering::Relaxed);
        reader.set_stalled(true);
        let given_up = || entries.each_ref().map(is_given_up);
        connections.give_up_waiting(Duration::ZERO, false);
        assert_eq!(given_up(), [false; 5], "a request may be on its way");
        assert!(new.is_new() && !idle.is_new());
        sleep(GRACE);
        connections.give_up_waiting(Duration::ZERO, false);
        assert_eq!(given_up(), [false, true, false, false, false], "a first request may be");
        connections.give_up_waiting(GRACE, false);
        assert_eq!(given_up(), [true, true, false, false, false]);
        connections.give_up_waiting(BODY_PATIENCE, false);
        assert_eq!(given_up(), [true, true, true, false, false]);
        connections.give_up_waiting(BODY_PATIENCE, true);
        assert_eq!(given_up(), [true, true, true, true, false]);
    }

    #[test]
    fn who_has_many_makes_room_for_who_has_few() {
        let connections = Connections::new();
        let [greedy, modest, new] =
            [1, 2, 3].map(|n| IpNet::from(std::net::IpAddr::from([203, 0, 113, n])));
        let entries: Vec<_> = [greedy, modest, greedy, greedy, modest]
            .into_iter()
            .zip(0..)
            .map(|(peer, number)| {
                sleep(Duration::from_millis(2));
                connections.enter(number, Some(peer))
            })
            .collect();
        let given_up = || entries.iter().map(is_given_up).collect::<Vec<_>>();
        let _at_work = entries[0].activity.begin().unwrap();
        assert_eq!(connections.make_room(Some(modest)), Room::Refused);
        assert_eq!(given_up(), [false; 5], "it has not much less");
        assert_eq!(connections.make_room(None), Room::Awaited);
        assert_eq!(given_up(), [false; 5], "nobody knows whose it is");
        assert_eq!(connections.make_room(Some(new)), Room::Made);
        assert_eq!(given_up(), [false, false, true, false, false]);
        sleep(GRACE);
        assert_eq!(connections.make_room(Some(modest)), Room::Made);
        assert_eq!(given_up(), [false, false, true, true, false]);
        assert_eq!(connections.make_room(Some(greedy)), Room::Refused, "others have fewer");
        assert_eq!(given_up(), [false, false, true, true, false]);
    }
}
