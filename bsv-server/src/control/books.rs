use hyper::StatusCode;
use serde_json::json;

use super::managed::Services;
use crate::http::{Answer, Problem, Received, answer, number_parameter};

/// `GET /control/books?fromHeight=N`: the result of adding up the wallet's books. With
/// `fromHeight`, it also tells what the chain has from that height on and the books lack.
pub(super) async fn answer(managed: &Services, request: Received<'_>) -> Result<Answer, Problem> {
    let from_height = number_parameter(request.uri(), "fromHeight")?;
    let check = managed.wallet()?.verify_books(from_height).await?;
    // The members stand in alphabetical order.
    Ok(answer::json(StatusCode::OK, &json!(check)))
}
