//! Received payments, in the format for callers.

use bsv_invoicing::{IncomingPayment, Settlement, Timestamp};

use super::leaving::describe;

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
        let IncomingPayment { txid, vout, satoshis, state, received_at, block, .. } = payment;
        Self {
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
