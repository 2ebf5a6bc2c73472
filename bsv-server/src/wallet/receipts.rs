//! Received payments, in the format for callers: those of an invoice, and receipts that pay none.

use bsv_invoicing::invoices::Settlement;
use bsv_invoicing::receiving::{
    IncomingPayment, PaymentPage, PaymentQuery, ReceiptKey, UnassignedReceipt,
};
use bsv_invoicing::{Timestamp, Wallet};
use hyper::{StatusCode, Uri};

use super::headers::set_next;
use crate::http::{self, Answer, Problem, answer};
use crate::wire;

impl wire::Settlement {
    pub(super) fn new(settlement: &Settlement, now: Timestamp) -> Self {
        let Settlement { invoice, sums, .. } = settlement;
        Self {
            state: invoice.state(now).name().to_owned(),
            satoshis: invoice.satoshis,
            paid_satoshis: sums.received,
            due_satoshis: sums.due,
            overpaid_satoshis: sums.received.saturating_sub(invoice.satoshis),
            received_satoshis: sums.received,
            counted_satoshis: sums.counted,
            refunded_satoshis: sums.refunded,
            surplus_satoshis: sums.surplus,
            next: sums.next.to_string(),
            late: settlement.late,
            confirmations: settlement.confirmations,
            contested: settlement.contested,
            marked: settlement.marked,
            refunds: settlement.refunds.iter().map(wire::Outgoing::from).collect(),
        }
    }
}

impl From<&IncomingPayment> for wire::Receipt {
    fn from(payment: &IncomingPayment) -> Self {
        let IncomingPayment { number, txid, vout, satoshis, state, received_at, block } = payment;
        Self {
            id: receipt_id(ReceiptKey { maker: *number, vout: *vout }),
            txid: txid.to_string(),
            vout: *vout,
            satoshis: *satoshis,
            state: state.name().to_owned(),
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
    let payments: Vec<_> = payments.iter().map(wire::Receipt::from).collect();
    let mut answer = answer::json(StatusCode::OK, &payments);
    if let Some(last) = next {
        let (limit, after) = (query.limit, receipt_id(last));
        let next = format!("/api/v1/invoices/{id}/payments?limit={limit}&after={after}");
        set_next(&mut answer, &next);
    }
    Ok(answer)
}

/// The most receipts of a page.
const MAX_PAGE: usize = 1000;
/// No receipt has a higher key.
const AFTER_ALL: ReceiptKey = ReceiptKey { maker: u64::MAX, vout: u32::MAX };

/// The parameters of a request for receipts that pay no invoice.
#[derive(Clone, Copy, Debug)]
struct Unassigned {
    page: ReceiptPage,
    is_of_no_invoice: bool,
}

impl Unassigned {
    /// Parses the query. Reports all faults at once.
    fn parse(uri: &Uri) -> Result<Self, Problem> {
        let mut asked = Self { page: ReceiptPage::default(), is_of_no_invoice: false };
        let mut problem = http::read_parameters(uri, |name, value| match name {
            "unassigned" => {
                asked.is_of_no_invoice = value == "true";
                Ok(())
            }
            _ => asked.page.set(name, value, "before"),
        });
        if !asked.is_of_no_invoice {
            let message = "must be true: the receipts of an invoice are at its /payments";
            problem = problem.with_field("unassigned", &[message.to_owned()]);
        }
        problem.unless_faulty(asked)
    }
}

/// A page of receipts.
#[derive(Clone, Copy, Debug, Default)]
struct ReceiptPage {
    limit: Option<usize>,
    /// The receipt at which the page before has ended.
    end: Option<ReceiptKey>,
}

impl ReceiptPage {
    /// Parses a query that names the end of the page before as `end`. Reports all faults at once.
    fn parse(uri: &Uri, end: &str) -> Result<Self, Problem> {
        let mut page = Self::default();
        let problem = http::read_parameters(uri, |name, value| page.set(name, value, end));
        problem.unless_faulty(page)
    }

    fn set(&mut self, name: &str, value: &str, end: &str) -> Result<(), String> {
        match name {
            "limit" => match value.parse() {
                Ok(limit) if (1..=MAX_PAGE).contains(&limit) && !value.starts_with('+') => {
                    self.limit = Some(limit);
                }
                _ => return Err(format!("must be from 1 to {MAX_PAGE}")),
            },
            _ if name == end => {
                let read = || {
                    let (maker, vout) = value.split_once('-')?;
                    Some(ReceiptKey { maker: maker.parse().ok()?, vout: vout.parse().ok()? })
                };
                self.end = Some(read().ok_or("must be the id of a receipt")?);
            }
            _ => return Err(http::UNKNOWN_PARAMETER.to_owned()),
        }
        Ok(())
    }

    /// The most receipts of the page.
    fn limit(&self) -> usize {
        self.limit.unwrap_or(MAX_PAGE)
    }
}

/// The id of a receipt, as callers see it.
fn receipt_id(receipt: ReceiptKey) -> String {
    format!("{}-{}", receipt.maker, receipt.vout)
}

/// A page of receipts that pay no invoice, the newest first.
pub(super) async fn unassigned(wallet: &Wallet, uri: &Uri) -> Result<Answer, Problem> {
    let Unassigned { page, .. } = Unassigned::parse(uri)?;
    let (before, limit) = (page.end.unwrap_or(AFTER_ALL), page.limit());
    let receipts = wallet.unassigned_receipts(before, limit).await?;
    let told = |UnassignedReceipt { payment, user }: &_| wire::UnassignedReceipt {
        receipt: wire::Receipt::from(payment),
        user: *user,
    };
    let receipts: Vec<_> = receipts.iter().map(told).collect();
    let mut answer = answer::json(StatusCode::OK, &receipts);
    if let Some(last) = receipts.last().filter(|_| receipts.len() == limit) {
        let before = &last.receipt.id;
        let next = format!("/api/v1/receipts?unassigned=true&limit={limit}&before={before}");
        set_next(&mut answer, &next);
    }
    Ok(answer)
}
