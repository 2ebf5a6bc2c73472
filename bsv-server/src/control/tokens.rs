use std::sync::Arc;

use bsv_invoicing::Timestamp;
use bsv_store::KeyEvent;
use hyper::{Method, StatusCode};

use super::managed::Services;
use crate::access::{ChangeError, Grant, IssuedToken, TokenDraft, Tokens};
use crate::http::{Answer, Declared, Problem, Received, answer};
use crate::request_id::RequestId;
use crate::wallet::STORE_AWAY;
use crate::wire;

/// | method and path | body | answer |
/// | --- | --- | --- |
/// | `GET /control/tokens` | | the tokens, without their texts |
/// | `POST /control/tokens` | `{"label"?, "scopes", "expiresAt"?}` | the token, with its text |
/// | `DELETE /control/tokens/{id}` | | the revoked token |
pub(super) const ROUTES: &[Declared<Route>] =
    &[("/control/tokens", "GET, POST", Route::All), ("/control/tokens/{id}", "DELETE", Route::One)];

#[derive(Clone, Copy, Debug)]
pub(crate) enum Route {
    All,
    One,
}

/// Makes, lists and revokes tokens.
///
/// The audit log records a change before it happens. If it cannot, no token is made, but a token is
/// revoked nevertheless.
pub(super) async fn answer(
    managed: &Services,
    route: Route,
    id: &str,
    request: Received<'_>,
) -> Result<Answer, Problem> {
    match route {
        Route::All if request.method() == Method::POST => make(managed, request).await,
        Route::All => {
            let tokens: Vec<_> = managed.tokens.all().values().map(describe).collect();
            Ok(answer::json(StatusCode::OK, &tokens))
        }
        Route::One => revoke(managed, id).await,
    }
}

async fn make(managed: &Services, request: Received<'_>) -> Result<Answer, Problem> {
    let draft = read_draft(request.body()).map_err(Problem::bad_request)?;
    let (text, token) = draft.make()?;
    let body = wire::Token { token: Some(text), ..describe(&token) };
    let subject = format!("{} with {}", token.id, body.scopes.join(", "));
    managed.note(KeyEvent::TokenMade, &subject).await?;
    let issued = on_disk(&managed.tokens, move |tokens| tokens.issue(token)).await;
    // After a failure of the disk or the database, the token may be stored.
    let is_unknown = matches!(issued, Err(ChangeError::File(_) | ChangeError::Database(_)));
    if issued.is_err() && !is_unknown {
        managed.note(KeyEvent::Failed, KeyEvent::TokenMade.name()).await?;
    }
    issued?;
    Ok(answer::json(StatusCode::CREATED, &body))
}

async fn revoke(managed: &Services, id: &str) -> Result<Answer, Problem> {
    let id = managed.tokens.get(id)?.id;
    if let Err(problem) = managed.note(KeyEvent::TokenRevoked, &id).await {
        let reason = problem.detail();
        tracing::error!("no audit log tells that token {id} is revoked: {reason}");
    }
    let token = on_disk(&managed.tokens, move |tokens| tokens.revoke(&id)).await?;
    Ok(answer::json(StatusCode::OK, &describe(&token)))
}

/// Runs a change that waits for the disk.
async fn on_disk<T: Send + 'static>(
    tokens: &Arc<Tokens>,
    change: impl FnOnce(&Tokens) -> Result<T, ChangeError> + Send + 'static,
) -> Result<T, ChangeError> {
    let tokens = Arc::clone(tokens);
    let changed = tokio::task::spawn_blocking(move || change(&tokens)).await;
    changed.expect("changes do not panic, and are not cancelled")
}

fn read_draft(body: &[u8]) -> Result<TokenDraft, String> {
    let wire::WantedToken { label, scopes, expires_at } =
        serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let grants = Grant::parse_all(&scopes).map_err(|error| error.to_string())?;
    let expires_at = expires_at.map(|text| Timestamp::parse_storable(&text)).transpose();
    let expires_at = expires_at.map_err(|error| format!("expiresAt {error}"))?;
    Ok(TokenDraft { label, grants, expires_at })
}

fn describe(token: &IssuedToken) -> wire::Token {
    wire::Token {
        created_at: token.created_at.to_string(),
        expires_at: token.expires_at.map(|at| at.to_string()),
        id: token.id.clone(),
        is_expired: token.is_expired(),
        label: token.label.clone(),
        scopes: token.grants.iter().map(ToString::to_string).collect(),
        token: None,
    }
}

impl From<ChangeError> for Problem {
    fn from(error: ChangeError) -> Self {
        let status = match &error {
            ChangeError::NoScope | ChangeError::BadLabel | ChangeError::ExpiryPassed => {
                StatusCode::BAD_REQUEST
            }
            ChangeError::Unknown(_) => StatusCode::NOT_FOUND,
            ChangeError::TooMany | ChangeError::IdTaken => StatusCode::CONFLICT,
            ChangeError::NoRandomness(_) | ChangeError::File(_) | ChangeError::Database(_) => {
                tracing::error!(request = RequestId::current(), "{error}");
                StatusCode::SERVICE_UNAVAILABLE
            }
        };
        match &error {
            ChangeError::Database(cause) if cause.of_server().is_some() => {
                Self::new(status, STORE_AWAY, error.to_string())
            }
            ChangeError::Unknown(_) => Self::new(status, "unknown-token", error.to_string()),
            error => Self::of_status(status, error.to_string()),
        }
    }
}
