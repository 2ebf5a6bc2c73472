use bsv_invoicing::BooksCheck;
use hyper::StatusCode;
use serde_json::{Value, json};

use super::managed::Services;
use crate::http::{Answer, Problem, Received, answer, number_parameter};

/// `GET /control/books?fromHeight=N`: the result of adding up the wallet's books. With
/// `fromHeight`, it also tells what the chain has from that height on and the books lack.
pub(super) async fn answer(managed: &Services, request: Received<'_>) -> Result<Answer, Problem> {
    let from_height = number_parameter(request.uri(), "fromHeight")?;
    let check = managed.wallet()?.verify_books(from_height).await?;
    Ok(answer::json(StatusCode::OK, &describe(&check)))
}

fn describe(check: &BooksCheck) -> Value {
    json!({
        "balance": check.balance,
        "recomputed": check.recomputed,
        "transactions": check.transactions,
        "bytesDropped": check.bytes_dropped,
        "coins": check.coins,
        "proofs": check.proofs,
        "blocks": check.blocks,
        "blocksInChain": check.blocks_in_chain,
        "searchedFrom": check.searched_from,
        "differences": check.differences,
        "furtherDifferences": check.further_differences,
    })
}
