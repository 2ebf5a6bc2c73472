//! Outgoing money: payments by the wallet, withdrawals and refunds.

use std::sync::Arc;

use bsv_invoicing::sending::{
    OutgoingPayment, OutgoingPurpose, RefundPreview, Withdrawal, WithdrawalCost,
};
use bsv_invoicing::{RefundDraft, Wallet, WithdrawalDraft};
use hyper::{StatusCode, Uri};
use serde::Serialize;
use serde_json::{Value, json};

use super::headers::{check_content_type, idempotency_key, number, set_location, set_next};
use crate::http::{self, Answer, Problem, Received, answer};
use crate::wire;

impl From<&OutgoingPayment> for wire::Outgoing {
    fn from(payment: &OutgoingPayment) -> Self {
        let withdrawal = match payment.purpose {
            OutgoingPurpose::Withdrawal(number) => Some(number),
            _ => None,
        };
        Self {
            block_hash: payment.block.map(|block| block.hash.to_string()),
            block_height: payment.block.map(|block| block.height),
            created_at: payment.created_at.to_string(),
            expires_at: payment.expires_at.map(|at| at.to_string()),
            fee: payment.fee,
            id: payment.number,
            invoice: payment.invoice.map(|id| id.to_string()),
            memo: payment.memo.clone(),
            purpose: payment.purpose.name().to_owned(),
            satoshis: payment.satoshis,
            state: payment.state.name().to_owned(),
            to: payment.to.clone(),
            txid: payment.txid.to_string(),
            url: payment.purpose.url().map(ToString::to_string),
            withdrawal,
        }
    }
}

/// A page of payments by the wallet, the newest first.
pub(super) async fn payments(wallet: &Wallet, request: Received<'_>) -> Result<Answer, Problem> {
    let page = Page::parse(request.uri())?;
    let payments = wallet.outgoing_payments(page.before(), page.limit()).await?;
    let last = payments.last().map(|payment| payment.number);
    listed("/api/v1/outgoing", page, last, payments.iter().map(wire::Outgoing::from).collect())
}

/// A payment by the wallet.
pub(super) async fn payment(wallet: &Wallet, id: &str) -> Result<Answer, Problem> {
    let payment = wallet.outgoing_payment(payment_number(id)?).await?;
    Ok(answer::json(StatusCode::OK, &wire::Outgoing::from(&payment)))
}

/// The transaction of a payment by the wallet, with its ancestors.
pub(super) async fn beef(wallet: &Wallet, id: &str) -> Result<Answer, Problem> {
    let beef = wallet.outgoing_beef(payment_number(id)?).await?;
    let txid = beef.subject_txid().to_string();
    let beef = wire::Beef { beef: hex::encode(beef.to_bytes()), txid };
    Ok(answer::json(StatusCode::OK, &beef))
}

/// Cancels a payment that the network has not shown.
pub(super) async fn cancel(
    wallet: &Arc<Wallet>,
    id: &str,
    request: Received<'_>,
) -> Result<Answer, Problem> {
    // Browsers do not send JSON to other sites without a preflight request.
    check_content_type(request.headers())?;
    let payment = wallet.cancel_payment(payment_number(id)?).await?;
    Ok(answer::json(StatusCode::OK, &wire::Outgoing::from(&payment)))
}

fn payment_number(id: &str) -> Result<u64, Problem> {
    number(id).ok_or_else(|| {
        let detail = format!("there is no payment {id}");
        Problem::new(StatusCode::NOT_FOUND, "unknown-payment", detail)
    })
}

/// Refunds what was paid to an invoice.
pub(super) async fn refund(
    wallet: &Arc<Wallet>,
    id: &str,
    request: Received<'_>,
) -> Result<Answer, Problem> {
    check_content_type(request.headers())?;
    let key = idempotency_key(request, id)?;
    let draft = RefundDraft::from_json(request.body())?;
    if draft.is_dry_run {
        let RefundPreview { to, satoshis, fee } = wallet.preview_refund(id, &draft).await?;
        let preview = wire::RefundPreview { fee, invoice: id.to_owned(), satoshis, to };
        return Ok(answer::json(StatusCode::OK, &preview));
    }
    let payment = wallet.refund(id, draft, key).await?;
    let mut answer = answer::json(StatusCode::CREATED, &wire::Outgoing::from(&payment));
    set_location(&mut answer, format!("/api/v1/outgoing/{}", payment.number));
    Ok(answer)
}

/// Sends money to an address or a script.
pub(super) async fn withdraw(
    wallet: &Arc<Wallet>,
    request: Received<'_>,
) -> Result<Answer, Problem> {
    check_content_type(request.headers())?;
    let key = idempotency_key(request, "")?;
    let draft = WithdrawalDraft::from_json(request.body(), wallet.network())?;
    if draft.is_dry_run {
        let costs = wallet.preview_withdrawal(draft).await?;
        return Ok(answer::json(StatusCode::OK, &describe_costs(&costs)));
    }
    let withdrawal = wallet.withdraw(draft, key).await?;
    let mut answer = answer::json(StatusCode::CREATED, &describe_withdrawal(&withdrawal));
    set_location(&mut answer, format!("/api/v1/withdrawals/{}", withdrawal.number));
    Ok(answer)
}

/// A page of withdrawals, the newest first.
pub(super) async fn withdrawals(wallet: &Wallet, request: Received<'_>) -> Result<Answer, Problem> {
    let page = Page::parse(request.uri())?;
    let withdrawals = wallet.withdrawals(page.before(), page.limit()).await?;
    let last = withdrawals.last().map(|withdrawal| withdrawal.number);
    let withdrawals = withdrawals.iter().map(describe_withdrawal).collect();
    listed("/api/v1/withdrawals", page, last, withdrawals)
}

/// A withdrawal.
pub(super) async fn withdrawal(wallet: &Wallet, id: &str) -> Result<Answer, Problem> {
    let unknown = || {
        let detail = format!("there is no withdrawal {id}");
        Problem::new(StatusCode::NOT_FOUND, "unknown-withdrawal", detail)
    };
    let withdrawal = wallet.withdrawal(number(id).ok_or_else(unknown)?).await?;
    Ok(answer::json(StatusCode::OK, &describe_withdrawal(&withdrawal)))
}

fn describe_withdrawal(withdrawal: &Withdrawal) -> Value {
    let transaction = |payment: &OutgoingPayment| {
        json!({
            "id": payment.number,
            "txid": payment.txid.to_string(),
            "satoshis": payment.satoshis,
            "fee": payment.fee,
            "state": payment.state.name(),
        })
    };
    json!({
        "id": withdrawal.number,
        "to": withdrawal.to,
        "reference": withdrawal.reference,
        "transactions": withdrawal.payments.iter().map(transaction).collect::<Vec<_>>(),
        "satoshis": withdrawal.satoshis(),
        "fee": withdrawal.fee(),
        "createdAt": withdrawal.created_at.to_string(),
    })
}

/// The amounts and fees of a withdrawal.
fn describe_costs(costs: &[WithdrawalCost]) -> Value {
    let transaction = |cost: &WithdrawalCost| {
        let WithdrawalCost { satoshis, fee } = cost;
        json!({ "satoshis": satoshis, "fee": fee })
    };
    json!({
        "transactions": costs.iter().map(transaction).collect::<Vec<_>>(),
        "satoshis": costs.iter().map(|cost| cost.satoshis).sum::<u64>(),
        "fee": costs.iter().map(|cost| cost.fee).sum::<u64>(),
    })
}

/// A page of a list, with a link to the next page if this one is full.
fn listed(
    path: &str,
    page: Page,
    last: Option<u64>,
    elements: Vec<impl Serialize>,
) -> Result<Answer, Problem> {
    let is_full = elements.len() == page.limit();
    let mut answer = answer::json(StatusCode::OK, &elements);
    if let Some(last) = last.filter(|last| is_full && *last > 1) {
        set_next(&mut answer, &format!("{path}?limit={}&before={last}", page.limit()));
    }
    Ok(answer)
}

/// The most elements of a page.
const MAX_PAGE: u64 = 100;

/// The parameters of a request for a page that begins with the newest element.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Page {
    limit: Option<u64>,
    before: Option<u64>,
}

impl Page {
    /// Parses the query. Reports all faults at once.
    fn parse(uri: &Uri) -> Result<Self, Problem> {
        let mut page = Self::default();
        let problem = http::read_parameters(uri, |name, value| page.set(name, value));
        problem.unless_faulty(page)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let number =
            value.bytes().all(|c| c.is_ascii_digit()).then(|| value.parse().ok()).flatten();
        match (name, number) {
            ("limit", Some(limit)) if (1..=MAX_PAGE).contains(&limit) && self.limit.is_none() => {
                self.limit = Some(limit);
            }
            ("limit", _) => return Err(format!("must be from 1 to {MAX_PAGE}, and there once")),
            ("before", Some(before)) if self.before.is_none() => self.before = Some(before),
            ("before", _) => return Err("must be a number, and there once".to_owned()),
            _ => return Err(http::UNKNOWN_PARAMETER.to_owned()),
        }
        Ok(())
    }

    /// The most elements of the page.
    fn limit(&self) -> usize {
        self.limit.unwrap_or(MAX_PAGE) as usize
    }

    /// Elements with this number or a higher one are on earlier pages.
    fn before(&self) -> u64 {
        self.before.unwrap_or(u64::MAX)
    }
}
