use std::sync::Arc;
use std::time::Duration;

use crate::model::delivery::AttemptOutcome;
use crate::model::time::Timestamp;

/// Sends requests to endpoints.
pub trait WebhookClient: Send + Sync + 'static {
    /// Posts a request, and answers what came of it within its time.
    fn send(&self, request: WebhookRequest) -> impl Future<Output = WebhookAnswer> + Send;
}

impl<C: WebhookClient> WebhookClient for Arc<C> {
    async fn send(&self, request: WebhookRequest) -> WebhookAnswer {
        C::send(self, request).await
    }
}

/// The time, as webhooks take it, and chance.
pub trait WebhookClock: Send + Sync + 'static {
    /// The time.
    fn now(&self) -> Timestamp;

    /// Waits until a time.
    fn sleep_until(&self, at: Timestamp) -> impl Future<Output = ()> + Send;

    /// A number that is evenly spread over all numbers.
    fn random(&self) -> u32;
}

/// A request to an endpoint: a `POST` of JSON, with the headers of Standard Webhooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookRequest {
    /// Where it goes.
    pub url: String,
    /// The header `webhook-id`: the event's id, the same in each attempt.
    pub id: String,
    /// The header `webhook-timestamp`: the time of this attempt, in seconds since 1970.
    pub timestamp: u64,
    /// The header `webhook-signature`.
    pub signature: String,
    /// The body, the same in each attempt.
    pub body: Vec<u8>,
}

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookAnswer {
    /// Whether and how the endpoint has answered.
    pub outcome: AttemptOutcome,
    /// The beginning of its answer.
    pub answer: String,
    /// For how long it asks to be left alone, by `Retry-After`.
    pub retry_after: Option<Duration>,
}
