use std::sync::Arc;
use std::time::Duration;

use crate::model::delivery::AttemptOutcome;
use crate::model::time::Timestamp;

/// Sends requests to endpoints.
pub trait WebhookClient: Send + Sync + 'static {
    /// Prepares for requests, so that the first request does not wait for it.
    fn prepare(&self) -> impl Future<Output = ()> + Send;

    /// Posts a request, and returns the outcome within a time limit.
    fn send(&self, request: WebhookRequest) -> impl Future<Output = WebhookAnswer> + Send;
}

impl<C: WebhookClient> WebhookClient for Arc<C> {
    async fn prepare(&self) {
        C::prepare(self).await;
    }

    async fn send(&self, request: WebhookRequest) -> WebhookAnswer {
        C::send(self, request).await
    }
}

/// The clock and the random numbers for webhooks.
pub trait WebhookClock: Send + Sync + 'static {
    /// The time.
    fn now(&self) -> Timestamp;

    /// Waits until a time.
    fn sleep_until(&self, at: Timestamp) -> impl Future<Output = ()> + Send;

    /// A uniformly random number.
    fn random(&self) -> u32;
}

/// A request to an endpoint: a `POST` of JSON, with the headers of Standard Webhooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookRequest {
    /// The URL to post to.
    pub url: String,
    /// The header `webhook-id`: the event's id. It is the same in each attempt.
    pub id: String,
    /// The header `webhook-timestamp`: the time of this attempt, in seconds since 1970.
    pub timestamp: u64,
    /// The header `webhook-signature`.
    pub signature: String,
    /// The body. It is the same in each attempt.
    pub body: Vec<u8>,
}

/// The outcome of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookAnswer {
    /// Whether and how the endpoint has answered.
    pub outcome: AttemptOutcome,
    /// The beginning of its answer.
    pub answer: String,
    /// The wait that it asks for with `Retry-After`.
    pub retry_after: Option<Duration>,
}
