//! Webhooks: URLs that receive events.

mod deliveries;

use std::sync::Arc;

use bsv_invoicing::ledger::webhooks::LoadedWebhook;
use bsv_invoicing::webhooks::{
    Attempt, AttemptOutcome, ReplayDraft, SecretDraft, TestDraft, Webhook, WebhookChange,
    WebhookDraft, WebhookId, WebhookState,
};
use bsv_invoicing::{Error, Timestamp, Wallet};
use hyper::{Method, StatusCode};

use super::headers::{check_content_type, set_location};
use crate::http::{Answer, Declared, Problem, Received, answer};
use crate::wire;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Route {
    Webhooks,
    Webhook,
    Secret,
    Test,
    Deliveries,
    Delivery,
    Redeliver,
    Replay,
}

pub(super) const ROUTES: [Declared<Route>; 8] = [
    ("/api/v1/webhooks", "GET, HEAD, POST", Route::Webhooks),
    ("/api/v1/webhooks/{id}", "GET, HEAD, PATCH, DELETE", Route::Webhook),
    ("/api/v1/webhooks/{id}/secret", "POST", Route::Secret),
    ("/api/v1/webhooks/{id}/test", "POST", Route::Test),
    ("/api/v1/webhooks/{id}/deliveries", "GET, HEAD", Route::Deliveries),
    ("/api/v1/webhooks/{id}/deliveries/{number}", "GET, HEAD", Route::Delivery),
    ("/api/v1/webhooks/{id}/deliveries/{number}/redeliver", "POST", Route::Redeliver),
    ("/api/v1/webhooks/{id}/replay", "POST", Route::Replay),
];

/// The parameters in a path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'a> {
    pub(super) route: Route,
    pub(super) id: &'a str,
    /// The number of an event.
    pub(super) number: &'a str,
}

pub(super) async fn answer(
    wallet: &Arc<Wallet>,
    Asked { route, id, number }: Asked<'_>,
    request: Received<'_>,
) -> Result<Answer, Problem> {
    if !matches!(*request.method(), Method::GET | Method::HEAD | Method::DELETE) {
        check_content_type(request.headers())?;
    }
    let id = || id.parse().map_err(|_| Error::UnknownWebhook(id.to_owned()));
    match route {
        Route::Webhooks if request.method() == Method::POST => create(wallet, request).await,
        Route::Webhooks => list(wallet).await,
        Route::Webhook => answer_one(wallet, id()?, request).await,
        Route::Secret => {
            let SecretDraft { grace } = SecretDraft::from_json(request.body())?;
            let secret = wallet.rotate_webhook_secret(id()?, grace).await?;
            let secret = wire::WebhookSecret { secret: secret.text() };
            Ok(answer::json(StatusCode::CREATED, &secret))
        }
        Route::Test => {
            let TestDraft { sample } = TestDraft::from_json(request.body())?;
            let attempt = wallet.test_webhook(id()?, sample).await?;
            Ok(answer::json(StatusCode::OK, &wire::Attempt::from(&attempt)))
        }
        Route::Deliveries => deliveries::list(wallet, id()?, request.uri()).await,
        Route::Delivery => deliveries::show(wallet, id()?, number).await,
        Route::Redeliver => deliveries::redeliver(wallet, id()?, number).await,
        Route::Replay => {
            let draft = ReplayDraft::from_json(request.body())?;
            let count = wallet.replay(id()?, draft).await?;
            Ok(answer::json(StatusCode::ACCEPTED, &wire::Replayed { count }))
        }
    }
}

async fn create(wallet: &Wallet, request: Received<'_>) -> Result<Answer, Problem> {
    let draft = WebhookDraft::from_json(request.body())?;
    let (id, webhook, secret) = wallet.create_webhook(draft).await?;
    let mut created = wire::Webhook::new(id, &webhook, None, wallet.latest_event().await?);
    created.secret = Some(secret.text());
    let mut answer = answer::json(StatusCode::CREATED, &created);
    set_location(&mut answer, format!("/api/v1/webhooks/{id}"));
    Ok(answer)
}

async fn list(wallet: &Wallet) -> Result<Answer, Problem> {
    let (webhooks, last) = (wallet.webhooks().await?, wallet.latest_event().await?);
    let webhooks: Vec<_> = webhooks
        .iter()
        .map(|(id, loaded)| wire::Webhook::new(*id, &loaded.webhook, loaded.next_attempt_at, last))
        .collect();
    Ok(answer::json(StatusCode::OK, &webhooks))
}

/// Shows a webhook, changes it or deletes it.
async fn answer_one(
    wallet: &Wallet,
    id: WebhookId,
    request: Received<'_>,
) -> Result<Answer, Problem> {
    match *request.method() {
        Method::DELETE => {
            wallet.delete_webhook(id).await?;
            return Ok(answer::no_content());
        }
        Method::PATCH => {
            wallet.change_webhook(id, WebhookChange::from_json(request.body())?).await?;
        }
        _ => {}
    }
    let LoadedWebhook { webhook, next_attempt_at, .. } = wallet.webhook(id).await?;
    let last = wallet.latest_event().await?;
    let webhook = wire::Webhook::new(id, &webhook, next_attempt_at, last);
    Ok(answer::json(StatusCode::OK, &webhook))
}

impl wire::Webhook {
    /// `last` is the number of the last event.
    fn new(
        id: WebhookId,
        webhook: &Webhook,
        next_attempt_at: Option<Timestamp>,
        last: u64,
    ) -> Self {
        let is_enabled = webhook.state == WebhookState::Enabled;
        Self {
            id: id.to_string(),
            url: webhook.url.clone(),
            types: webhook.types.clone(),
            description: webhook.description.clone(),
            in_order: webhook.in_order,
            state: webhook.state.name().to_owned(),
            created_at: webhook.created_at.to_string(),
            cursor: webhook.cursor,
            behind: last.saturating_sub(webhook.cursor),
            last_success_at: webhook.last_success_at.map(|at| at.to_string()),
            failing_since: webhook.failing_since.map(|at| at.to_string()),
            next_attempt_at: next_attempt_at.filter(|_| is_enabled).map(|at| at.to_string()),
            secret: None,
        }
    }
}

impl From<&Attempt> for wire::Attempt {
    fn from(attempt: &Attempt) -> Self {
        let failure = match attempt.outcome {
            AttemptOutcome::Answered(_) => None,
            AttemptOutcome::Failed(failure) => Some(failure.name().to_owned()),
        };
        Self {
            at: attempt.at.to_string(),
            milliseconds: attempt.milliseconds,
            status: attempt.outcome.status(),
            failure,
            answer: attempt.answer.clone(),
        }
    }
}
