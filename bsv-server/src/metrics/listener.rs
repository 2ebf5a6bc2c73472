use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bsv_store::{DurationCounts, Durations};
use hyper::{Method, StatusCode};

use super::Refused;
use super::exposition::{Family, Histogram};
use crate::api::Api;
use crate::http::Connections;
use crate::paths::patterns;

/// The answers and connections of a listener. Concurrent threads count without waiting and without
/// contention.
#[derive(Debug)]
pub(crate) struct ListenerCounts {
    api: Api,
    /// The patterns of its paths, and one more for all unknown paths.
    routes: Vec<&'static str>,
    shards: [OnceLock<Shard>; SHARDS],
    refused: [AtomicU64; Refused::ALL.len()],
    connections: Arc<Connections>,
}

/// The counts of the threads that use this shard.
#[derive(Debug)]
struct Shard {
    /// Indexed by route, then by method, then by status.
    answered: Box<[AtomicU64]>,
    /// Indexed by route.
    durations: Box<[Durations]>,
}

/// About the number of threads that answer requests.
const SHARDS: usize = 8;
/// The name of unknown paths.
pub(crate) const NO_ROUTE: &str = "none";

/// The methods with their own label, and one name for all others: strangers can send any word.
pub(crate) const METHODS: [&str; 8] =
    ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "other"];
/// The statuses with their own label, and one name for all others.
const STATUSES: [&str; 23] = [
    "200", "201", "202", "204", "304", "400", "401", "403", "404", "405", "406", "408", "409",
    "410", "413", "415", "422", "429", "500", "502", "503", "504", "other",
];

impl ListenerCounts {
    pub(super) fn new(api: Api) -> Self {
        let routes = patterns(api).into_iter().chain([NO_ROUTE]).collect();
        let refused = std::array::from_fn(|_| AtomicU64::new(0));
        let connections = Connections::new();
        Self { api, routes, shards: Default::default(), refused, connections }
    }

    pub(super) fn api(&self) -> Api {
        self.api
    }

    /// The connections of the listener.
    pub(crate) fn connections(&self) -> &Arc<Connections> {
        &self.connections
    }

    /// Counts an answer to a request for a path with this pattern. An unknown pattern is ignored.
    pub(crate) fn note_answer(
        &self,
        pattern: Option<&'static str>,
        method: &Method,
        status: StatusCode,
        duration: Duration,
    ) {
        let route = self.routes.iter().position(|route| Some(*route) == pattern);
        let route = route.unwrap_or(self.routes.len() - 1);
        let cell = cell(route, place_of_method(method), place_of_status(status));
        let shard = self.shards[shard_of_thread()].get_or_init(|| Shard::new(self.routes.len()));
        shard.answered[cell].fetch_add(1, Ordering::Relaxed);
        shard.durations[route].note(duration);
    }

    /// Counts a refused request.
    pub(crate) fn note_refused(&self, refused: Refused) {
        self.refused[refused as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn refused(&self, refused: Refused) -> u64 {
        let counted = self.refused[refused as usize].load(Ordering::Relaxed);
        match refused {
            Refused::TooManyConnections => counted + self.connections.refused(),
            _ => counted,
        }
    }

    pub(super) fn write_answered(&self, family: &mut Family<'_>) {
        for (route, pattern) in self.routes.iter().enumerate() {
            for (method, method_name) in METHODS.iter().enumerate() {
                for (status, status_name) in STATUSES.iter().enumerate() {
                    let cell = cell(route, method, status);
                    let answered = |shard: &Shard| shard.answered[cell].load(Ordering::Relaxed);
                    let count: u64 = self.shards().map(answered).sum();
                    if count > 0 {
                        let labels = [
                            ("listener", self.api.name()),
                            ("route", pattern),
                            ("method", method_name),
                            ("status", status_name),
                        ];
                        family.add(&labels, count);
                    }
                }
            }
        }
    }

    pub(super) fn write_durations(&self, histogram: &mut Histogram<'_>) {
        for (route, pattern) in self.routes.iter().enumerate() {
            let mut counts = DurationCounts::default();
            for shard in self.shards() {
                counts.add(&shard.durations[route].counts());
            }
            if counts.count() > 0 {
                let labels = [("listener", self.api.name()), ("route", pattern)];
                histogram.add(&labels, &counts);
            }
        }
    }

    fn shards(&self) -> impl Iterator<Item = &Shard> {
        self.shards.iter().filter_map(OnceLock::get)
    }
}

impl Shard {
    fn new(routes: usize) -> Self {
        let cells = routes * METHODS.len() * STATUSES.len();
        Self {
            answered: (0..cells).map(|_| AtomicU64::new(0)).collect(),
            durations: (0..routes).map(|_| Durations::default()).collect(),
        }
    }
}

fn cell(route: usize, method: usize, status: usize) -> usize {
    (route * METHODS.len() + method) * STATUSES.len() + status
}

/// The index of a method in [`METHODS`].
pub(crate) fn place_of_method(method: &Method) -> usize {
    let place = METHODS.iter().position(|known| *known == method.as_str());
    place.unwrap_or(METHODS.len() - 1)
}

fn place_of_status(status: StatusCode) -> usize {
    let place = STATUSES.iter().position(|known| *known == status.as_str());
    place.unwrap_or(STATUSES.len() - 1)
}

/// The shard of the current thread.
fn shard_of_thread() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: usize = THREADS.fetch_add(1, Ordering::Relaxed);
    }
    NUMBER.with(|number| number % SHARDS)
}
