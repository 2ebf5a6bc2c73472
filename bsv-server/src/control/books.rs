use std::sync::Arc;

use serde_json::json;

use super::managed::Services;
use super::progress;
use crate::http::{Answer, Problem, Received, number_parameter};

/// `GET /control/books?fromHeight=N`: the result of adding up the wallet's books. With
/// `fromHeight`, it also tells what the chain has from that height on and the books lack, and how far
/// the search has come.
pub(super) async fn answer(managed: &Services, request: Received<'_>) -> Result<Answer, Problem> {
    let from_height = number_parameter(request.uri(), "fromHeight")?;
    let wallet = Arc::clone(managed.wallet()?);
    let work = progress::answer(|tell| async move {
        let check = wallet.verify_books(from_height, |height, last| {
            tell.send_replace((height, last));
        });
        // The members stand in alphabetical order.
        Ok(json!(check.await?))
    });
    work.await
}
