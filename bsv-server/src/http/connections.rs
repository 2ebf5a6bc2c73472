use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::Notify;

/// The connections of a listener. When there are too many, the one that has had no request for the
/// longest time makes room, so that those who connect and say nothing keep nobody out.
#[derive(Debug)]
pub(super) struct Connections {
    started: Instant,
    open: Mutex<HashMap<u64, Arc<Activity>>>,
}

/// Whether a connection is at work.
#[derive(Debug)]
pub(super) struct Activity {
    started: Instant,
    /// [`BUSY`], [`GIVEN_UP`], or since when it is idle, in milliseconds after `started`.
    state: AtomicU64,
    /// Whether some of an answer waits for its reader.
    is_stalled: AtomicBool,
    given_up: Notify,
}

/// A connection is at work until this is dropped.
#[derive(Debug)]
pub(super) struct Busy(Arc<Activity>);

/// The body of an answer, whose connection is at work until all of it has been taken over.
#[derive(Debug)]
pub(super) struct BusyBody<B> {
    body: B,
    _busy: Busy,
}

/// A connection that stays among those of its listener until this is dropped.
#[derive(Debug)]
pub(super) struct Entry {
    connections: Arc<Connections>,
    number: u64,
    pub(super) activity: Arc<Activity>,
}

const BUSY: u64 = u64::MAX;
const GIVEN_UP: u64 = u64::MAX - 1;
/// For how long a connection may be idle without being given up: the request of one that is new is on
/// its way.
const GRACE: Duration = Duration::from_millis(250);

impl Connections {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { started: Instant::now(), open: Mutex::default() })
    }

    /// Adds a connection, which nobody else has numbered so.
    pub(super) fn enter(self: &Arc<Self>, number: u64) -> Entry {
        let activity = Activity::since(self.started);
        self.open().insert(number, Arc::clone(&activity));
        Entry { connections: Arc::clone(self), number, activity }
    }

    /// Gives up the connection that has been idle for the longest time, if that is long enough.
    pub(super) fn give_up_idlest(&self) {
        let latest = self.started.elapsed().saturating_sub(GRACE).as_millis() as u64;
        let open = self.open();
        let idle = open.values().filter_map(|activity| {
            let since = activity.state.load(Ordering::Relaxed);
            let is_idle = since <= latest && !activity.is_stalled.load(Ordering::Relaxed);
            is_idle.then_some((since, activity))
        });
        if let Some((since, activity)) = idle.min_by_key(|(since, _)| *since) {
            activity.give_up(since);
        }
    }

    fn open(&self) -> MutexGuard<'_, HashMap<u64, Arc<Activity>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.connections.open().remove(&self.number);
    }
}

impl Activity {
    /// That of a connection that begins now, on the clock that began with `started`.
    pub(super) fn since(started: Instant) -> Arc<Self> {
        Arc::new(Self {
            started,
            state: AtomicU64::new(started.elapsed().as_millis() as u64),
            is_stalled: AtomicBool::new(false),
            given_up: Notify::new(),
        })
    }

    /// Begins with a request, unless the connection has been given up.
    pub(super) fn begin(self: &Arc<Self>) -> Option<Busy> {
        let begin = |state| (state != GIVEN_UP).then_some(BUSY);
        self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, begin).ok()?;
        Some(Busy(Arc::clone(self)))
    }

    /// Tells whether some of an answer waits for its reader.
    pub(super) fn set_stalled(&self, is_stalled: bool) {
        self.is_stalled.store(is_stalled, Ordering::Relaxed);
    }

    /// Completes when the connection has been given up.
    pub(super) async fn given_up(&self) {
        self.given_up.notified().await;
    }

    /// Gives up a connection that is still idle since then.
    fn give_up(&self, since: u64) {
        let exchanged =
            self.state.compare_exchange(since, GIVEN_UP, Ordering::AcqRel, Ordering::Relaxed);
        if exchanged.is_ok() {
            self.given_up.notify_one();
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let now = self.0.started.elapsed().as_millis() as u64;
        self.0.state.store(now, Ordering::Release);
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
                connections.enter(number)
            })
            .collect();
        let busy = entries[0].activity.begin().unwrap();
        entries[1].activity.set_stalled(true);
        connections.give_up_idlest();
        assert!(!entries.iter().any(is_given_up), "all of them are new");
        sleep(GRACE);
        connections.give_up_idlest();
        assert_eq!(
            entries.iter().map(is_given_up).collect::<Vec<_>>(),
            [false, false, true, false]
        );
        assert!(entries[2].activity.begin().is_none());
        connections.give_up_idlest();
        assert!(is_given_up(&entries[3]));
        drop(busy);
        connections.give_up_idlest();
        assert!(!is_given_up(&entries[0]), "it has only just become idle");
        drop(entries);
        assert!(connections.open().is_empty());
    }
}
