//! Received payments, in the format for callers.

use bsv_invoicing::{
    IncomingPayment, PaymentPage, PaymentQuery, ReceiptKey, Settlement, Timestamp, Wallet,
};
use hyper::{StatusCode, Uri};

use super::headers::set_next;
use super::leaving::describe;
use super::receipts::{ReceiptPage, receipt_id};
use crate::http::{Answer, Problem, answer};

/// The state of an invoice, in numbers.
#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SettlementJson {
    state: &'static str,
    satoshis: u64,
    paid_satoshis: u64,
    due_satoshis: u64,
    overpaid_satoshis: u64,
    late: bool,
    confirmations: Option<u32>,
    contested: bool,
    marked: bool,
    refunds: Vec<serde_json::Value>,
}

impl SettlementJson {
    pub(super) fn new(settlement: &Settlement, now: Timestamp) -> Self {
        let invoice = &settlement.invoice;
        Self {
            state: invoice.state(now).name(),
            satoshis: invoice.satoshis,
            paid_satoshis: settlement.paid,
            due_satoshis: settlement.due,
            overpaid_satoshis: settlement.overpaid,
            late: settlement.late,
            confirmations: settlement.confirmations,
            contested: settlement.contested,
            marked: settlement.marked,
            refunds: settlement.refunds.iter().map(describe).collect(),
        }
    }
}

/// What was paid for an invoice.
#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PaymentJson {
    pub(super) id: String,
    txid: String,
    vout: u32,
    satoshis: u64,
    state: &'static str,
    received_at: String,
    block_hash: Option<String>,
    block_height: Option<u32>,
}

impl PaymentJson {
    pub(super) fn new(payment: &IncomingPayment) -> Self {
        let IncomingPayment { number, txid, vout, satoshis, state, received_at, block } = payment;
        Self {
            id: receipt_id(ReceiptKey { maker: *number, vout: *vout }),
            txid: txid.to_string(),
            vout: *vout,
            satoshis: *satoshis,
            state: state.name(),
            received_at: received_at.to_string(),
            block_hash: block.map(|block| block.hash.to_string()),
            block_height: block.map(|block| block.height),
        }
    }
}

/// A page of the payments of an invoice, in the order of their arrival.
pub(super) async fn payments(wallet: &Wallet, id: &str, uri: &Uri) -> Result<Answer, Problem> {
    let page = ReceiptPage::parse(uri, "after")?;
    let query = PaymentQuery { after: page.end, limit: page.limit() };
    let PaymentPage { payments, next } = wallet.payments(id, query).await?;
    let payments: Vec<_> = payments.iter().map(PaymentJson::new).collect();
    let mut answer = answer::json(StatusCode::OK, &payments);
    if let Some(last) = next {
        let (limit, after) = (query.limit, receipt_id(last));
        let next = format!("/api/v1/invoices/{id}/payments?limit={limit}&after={after}");
        set_next(&mut answer, &next);
    }
    Ok(answer)
}
