//! Receipts that pay no invoice, and pages of receipts.

use bsv_invoicing::{ReceiptKey, UnassignedReceipt, Wallet};
use hyper::{StatusCode, Uri};

use super::headers::set_next;
use super::received::PaymentJson;
use crate::http::{self, Answer, Problem, answer};

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
        let mut problem = ReceiptPage::problem();
        for (name, value) in http::parameters(uri) {
            if name == "unassigned" {
                asked.is_of_no_invoice = value == "true";
            } else if let Err(message) = asked.page.set(&name, &value, "before") {
                problem = problem.with_field(&name, &[message]);
            }
        }
        if !asked.is_of_no_invoice {
            let message = "must be true: the receipts of an invoice are at its /payments";
            problem = problem.with_field("unassigned", &[message.to_owned()]);
        }
        if problem.has_fields() { Err(problem) } else { Ok(asked) }
    }
}

/// A page of receipts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReceiptPage {
    limit: Option<usize>,
    /// The receipt at which the page before has ended.
    pub(super) end: Option<ReceiptKey>,
}

impl ReceiptPage {
    /// Parses a query that names the end of the page before as `end`. Reports all faults at once.
    pub(super) fn parse(uri: &Uri, end: &str) -> Result<Self, Problem> {
        let (mut page, mut problem) = (Self::default(), Self::problem());
        for (name, value) in http::parameters(uri) {
            if let Err(message) = page.set(&name, &value, end) {
                problem = problem.with_field(&name, &[message]);
            }
        }
        if problem.has_fields() { Err(problem) } else { Ok(page) }
    }

    fn problem() -> Problem {
        Problem::new(StatusCode::BAD_REQUEST, "invalid-query", "the query cannot be answered")
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
    pub(super) fn limit(&self) -> usize {
        self.limit.unwrap_or(MAX_PAGE)
    }
}

/// The id of a receipt, as callers see it.
pub(super) fn receipt_id(receipt: ReceiptKey) -> String {
    format!("{}-{}", receipt.maker, receipt.vout)
}

/// A receipt that pays no invoice, in the format for callers.
#[derive(serde::Serialize)]
struct ReceiptJson {
    #[serde(flatten)]
    payment: PaymentJson,
    user: Option<u64>,
}

impl ReceiptJson {
    fn new(receipt: &UnassignedReceipt) -> Self {
        let UnassignedReceipt { payment, user } = receipt;
        Self { payment: PaymentJson::new(payment), user: *user }
    }
}

/// A page of receipts that pay no invoice, the newest first.
pub(super) async fn answer(wallet: &Wallet, uri: &Uri) -> Result<Answer, Problem> {
    let Unassigned { page, .. } = Unassigned::parse(uri)?;
    let (before, limit) = (page.end.unwrap_or(AFTER_ALL), page.limit());
    let receipts = wallet.unassigned_receipts(before, limit).await?;
    let receipts: Vec<_> = receipts.iter().map(ReceiptJson::new).collect();
    let mut answer = answer::json(StatusCode::OK, &receipts);
    if let Some(last) = receipts.last().filter(|_| receipts.len() == limit) {
        let before = &last.payment.id;
        let next = format!("/api/v1/receipts?unassigned=true&limit={limit}&before={before}");
        set_next(&mut answer, &next);
    }
    Ok(answer)
}
