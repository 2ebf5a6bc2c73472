//! Endpoints whose answers tests control, and that record what they get.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bsv_invoicing::Timestamp;
use bsv_invoicing::webhooks::{AttemptFailure, AttemptOutcome};
use bsv_invoicing::webhooks::{WebhookAnswer, WebhookClient, WebhookClock, WebhookRequest};
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::clock::TestClock;

/// How an endpoint answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Status(u16),
    /// It answers with this status, and with this `Retry-After`.
    Later(u16, Duration),
    TimeOut,
    /// It does not answer until a test changes its reply.
    Hang,
}

/// A request that an endpoint got.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) number: u64,
    pub(crate) previous: Option<u64>,
    pub(crate) at: Timestamp,
    pub(crate) request: WebhookRequest,
}

/// All endpoints, by URL.
#[derive(Clone)]
pub(crate) struct Endpoints {
    clock: TestClock,
    state: Arc<Mutex<State>>,
    /// Signals whenever a request begins or ends, or a reply changes.
    changed: Arc<Notify>,
}

type Replies = Arc<dyn Fn(&Received) -> Reply + Send + Sync>;

#[derive(Default)]
struct State {
    received: Vec<Received>,
    replies: HashMap<String, Replies>,
    under_way: HashMap<String, usize>,
    most_under_way: HashMap<String, usize>,
}

/// The longest wait of a test for something to happen.
const PATIENCE: Duration = Duration::from_secs(20);

impl Endpoints {
    pub(crate) fn new(clock: &TestClock) -> Self {
        let (clock, state, changed) = (clock.clone(), Arc::default(), Arc::default());
        Self { clock, state, changed }
    }

    /// Sets the reply to requests to a URL from now on.
    pub(crate) fn reply(&self, url: &str, reply: Reply) {
        self.reply_with(url, move |_| reply);
    }

    pub(crate) fn reply_with(
        &self,
        url: &str,
        replies: impl Fn(&Received) -> Reply + Send + Sync + 'static,
    ) {
        self.state.lock().unwrap().replies.insert(url.to_owned(), Arc::new(replies));
        self.changed.notify_waiters();
    }

    /// The requests to a URL, in their order.
    pub(crate) fn received(&self, url: &str) -> Vec<Received> {
        let state = self.state.lock().unwrap();
        state.received.iter().filter(|it| it.request.url == url).cloned().collect()
    }

    /// The numbers of the events that were sent to a URL, in their order.
    pub(crate) fn numbers(&self, url: &str) -> Vec<u64> {
        self.received(url).iter().map(|it| it.number).collect()
    }

    /// How often each event was sent to a URL.
    pub(crate) fn counts(&self, url: &str) -> BTreeMap<u64, usize> {
        self.numbers(url).into_iter().fold(BTreeMap::new(), |mut counts, number| {
            *counts.entry(number).or_default() += 1;
            counts
        })
    }

    /// How many requests to a URL were under way at once, at most.
    pub(crate) fn most_under_way(&self, url: &str) -> usize {
        self.state.lock().unwrap().most_under_way.get(url).copied().unwrap_or_default()
    }

    pub(crate) fn forget_most_under_way(&self, url: &str) {
        self.state.lock().unwrap().most_under_way.remove(url);
    }

    /// Waits until `is_so` holds for the requests to a URL.
    pub(crate) async fn until(&self, url: &str, is_so: impl Fn(&[Received]) -> bool) {
        let wait = async {
            loop {
                let changed = self.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                if is_so(&self.received(url)) {
                    return;
                }
                changed.await;
            }
        };
        if timeout(PATIENCE, wait).await.is_err() {
            panic!("{url} has received no more than {:?}", self.numbers(url));
        }
    }

    /// Waits until a URL got this many requests.
    pub(crate) async fn until_count(&self, url: &str, count: usize) {
        self.until(url, |received| received.len() >= count).await;
    }

    async fn answer(&self, received: &Received) -> Reply {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let replies = self.state.lock().unwrap().replies.get(&received.request.url).cloned();
            match replies.map_or(Reply::Status(200), |replies| replies(received)) {
                Reply::Hang => changed.await,
                reply => return reply,
            }
        }
    }
}

/// A request that is under way.
struct UnderWay<'e>(&'e Endpoints, String);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        *self.0.state.lock().unwrap().under_way.get_mut(&self.1).unwrap() -= 1;
    }
}

impl WebhookClient for Endpoints {
    async fn prepare(&self) {}

    async fn send(&self, request: WebhookRequest) -> WebhookAnswer {
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        let url = request.url.clone();
        let received = Received {
            number: body["number"].as_u64().unwrap(),
            previous: body["previous"].as_u64(),
            at: self.clock.now(),
            request,
        };
        {
            let mut state = self.state.lock().unwrap();
            let under_way = state.under_way.entry(url.clone()).or_default();
            *under_way += 1;
            let count = *under_way;
            let most = state.most_under_way.entry(url.clone()).or_default();
            *most = count.max(*most);
            state.received.push(received.clone());
        }
        let _under_way = UnderWay(self, url);
        self.changed.notify_waiters();
        let (outcome, retry_after) = match self.answer(&received).await {
            Reply::Status(status) => (AttemptOutcome::Answered(status), None),
            Reply::Later(status, wait) => (AttemptOutcome::Answered(status), Some(wait)),
            Reply::TimeOut => (AttemptOutcome::Failed(AttemptFailure::Timeout), None),
            Reply::Hang => unreachable!("it is waited for another reply"),
        };
        WebhookAnswer { outcome, answer: "é".repeat(1000), retry_after }
    }
}
