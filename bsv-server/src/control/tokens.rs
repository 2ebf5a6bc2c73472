use std::sync::Arc;

use bsv_invoicing::Timestamp;
use bytes::Bytes;
use hyper::{Request, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::access::{ChangeError, Grant, IssuedToken, TokenDraft, Tokens};
use crate::http::{Answer, Problem, answer};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct TokenJson {
    #[serde(default)]
    label: String,
    scopes: Vec<String>,
    expires_at: Option<String>,
}

/// Makes, lists and revokes tokens.
pub(super) async fn answer(
    tokens: &Arc<Tokens>,
    request: &Request<Bytes>,
    path: &str,
) -> Result<Answer, Problem> {
    let segments: Vec<_> = path.split('/').collect();
    match (request.method().as_str(), segments.as_slice()) {
        ("GET", ["tokens"]) => {
            let tokens: Vec<_> = tokens.all().values().map(describe).collect();
            Ok(answer::json(StatusCode::OK, &tokens))
        }
        ("POST", ["tokens"]) => {
            let draft = parse(request.body()).map_err(bad_request)?;
            let (text, token) = on_disk(tokens, move |tokens| tokens.create(draft)).await?;
            let mut body = describe(&token);
            body["token"] = text.as_str().into();
            Ok(answer::json(StatusCode::CREATED, &body))
        }
        ("DELETE", ["tokens", id]) => {
            let id = (*id).to_owned();
            let token = on_disk(tokens, move |tokens| tokens.revoke(&id)).await?;
            Ok(answer::json(StatusCode::OK, &describe(&token)))
        }
        _ => Err(Problem::of_status(StatusCode::NOT_FOUND, "there is nothing here")),
    }
}

/// Runs a change that waits for the disk.
async fn on_disk<T: Send + 'static>(
    tokens: &Arc<Tokens>,
    change: impl FnOnce(&Tokens) -> Result<T, ChangeError> + Send + 'static,
) -> Result<T, Problem> {
    let tokens = Arc::clone(tokens);
    let changed = tokio::task::spawn_blocking(move || change(&tokens)).await;
    Ok(changed.expect("changes do not panic, and are not cancelled")?)
}

fn parse(body: &[u8]) -> Result<TokenDraft, String> {
    let TokenJson { label, scopes, expires_at } =
        serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let grants = Grant::parse_all(&scopes).map_err(|error| error.to_string())?;
    let expires_at = expires_at.map(|text| text.parse::<Timestamp>()).transpose();
    let expires_at = expires_at.map_err(|error| format!("expiresAt {error}"))?;
    Ok(TokenDraft { label, grants, expires_at })
}

fn bad_request(reason: String) -> Problem {
    Problem::of_status(StatusCode::BAD_REQUEST, reason)
}

fn describe(token: &IssuedToken) -> Value {
    json!({
        "id": token.id,
        "label": token.label,
        "scopes": token.grants.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "createdAt": token.created_at.to_string(),
        "expiresAt": token.expires_at.map(|at| at.to_string()),
        "isExpired": token.is_expired(),
    })
}

impl From<ChangeError> for Problem {
    fn from(error: ChangeError) -> Self {
        let status = match &error {
            ChangeError::NoScope | ChangeError::BadLabel | ChangeError::ExpiryPassed => {
                StatusCode::BAD_REQUEST
            }
            ChangeError::Unknown(_) => StatusCode::NOT_FOUND,
            ChangeError::TooMany => StatusCode::CONFLICT,
            ChangeError::NoRandomness(_) | ChangeError::File(_) => {
                tracing::error!("{error}");
                StatusCode::SERVICE_UNAVAILABLE
            }
        };
        Self::of_status(status, error.to_string())
    }
}
