//! Receipts that pay no invoice.

use bsv_invoicing::{ReceiptKey, UnassignedReceipt};
use hyper::header::LINK;
use hyper::{StatusCode, Uri};

use super::headers::header;
use super::received::PaymentJson;
use crate::http::{self, Answer, Problem, answer};
use crate::wallet_store::Wallet;

/// The most receipts of a page.
const MAX_PAGE: usize = 1000;

/// The parameters of a request.
#[derive(Clone, Copy, Debug)]
struct Page {
    limit: usize,
    before: ReceiptKey,
    is_of_no_invoice: bool,
}

impl Page {
    /// Parses the query. Reports all faults at once.
    fn parse(uri: &Uri) -> Result<Self, Problem> {
        let before = ReceiptKey { maker: u64::MAX, vout: u32::MAX };
        let mut page = Self { limit: MAX_PAGE, before, is_of_no_invoice: false };
        let mut problem =
            Problem::new(StatusCode::BAD_REQUEST, "invalid-query", "the query cannot be answered");
        for (name, value) in http::parameters(uri) {
            if let Err(message) = page.set(&name, &value) {
                problem = problem.with_field(&name, &[message]);
            }
        }
        if !page.is_of_no_invoice {
            let message = "must be true: the receipts of an invoice are at its /payments";
            problem = problem.with_field("unassigned", &[message.to_owned()]);
        }
        if problem.has_fields() { Err(problem) } else { Ok(page) }
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "unassigned" => self.is_of_no_invoice = value == "true",
            "limit" => match value.parse() {
                Ok(limit) if (1..=MAX_PAGE).contains(&limit) && !value.starts_with('+') => {
                    self.limit = limit;
                }
                _ => return Err(format!("must be from 1 to {MAX_PAGE}")),
            },
            "before" => {
                let read = || {
                    let (maker, vout) = value.split_once('-')?;
                    Some(ReceiptKey { maker: maker.parse().ok()?, vout: vout.parse().ok()? })
                };
                self.before = read().ok_or("must be the id of a receipt")?;
            }
            _ => return Err(http::UNKNOWN_PARAMETER.to_owned()),
        }
        Ok(())
    }
}

/// A receipt that pays no invoice, in the format for callers.
#[derive(serde::Serialize)]
struct ReceiptJson {
    id: String,
    #[serde(flatten)]
    payment: PaymentJson,
    user: Option<u64>,
}

impl ReceiptJson {
    fn new(receipt: &UnassignedReceipt) -> Self {
        let UnassignedReceipt { payment, user } = receipt;
        Self {
            id: format!("{}-{}", payment.number, payment.vout),
            payment: PaymentJson::new(payment),
            user: *user,
        }
    }
}

/// A page of receipts that pay no invoice, the newest first.
pub(super) async fn answer(wallet: &Wallet, uri: &Uri) -> Result<Answer, Problem> {
    let page = Page::parse(uri)?;
    let receipts = wallet.unassigned_receipts(page.before, page.limit).await?;
    let receipts: Vec<_> = receipts.iter().map(ReceiptJson::new).collect();
    let mut answer = answer::json(StatusCode::OK, &receipts);
    if let Some(last) = receipts.last().filter(|_| receipts.len() == page.limit) {
        let next = format!(
            "</api/v1/receipts?unassigned=true&limit={}&before={}>; rel=\"next\"",
            page.limit, last.id
        );
        answer.headers_mut().insert(LINK, header(next));
    }
    Ok(answer)
}
