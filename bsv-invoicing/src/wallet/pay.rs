//! Paying to a payment URL with the wallet's coins.
//!
//! A payment is settled when the network shows it, and not when the payee says so.

mod asked;
mod beef;
mod cancel;
pub(super) mod draft;
mod faucet;
mod in_progress;
mod link;
mod outgoing;
mod payable;
mod payee;
mod post;
mod preview;
mod sign;

use std::sync::Arc;

use bsv_tx::Transaction;
use reqwest::Url;

pub use self::draft::PayDraft;
pub use self::faucet::faucet;
pub(crate) use self::in_progress::PaymentsInProgress;
pub(super) use self::payable::{is_data, is_p2sh};
pub(crate) use self::payee::Payee;
pub use self::preview::PaymentPreview;

use self::asked::Asked;
use self::beef::Archive;
use self::draft::payment_url;
use crate::dpp::MAX_MESSAGE_LEN;
use crate::error::Error;
use crate::model::idempotency::IdempotencyKey;
use crate::model::outgoing::{OutgoingPayment, OutgoingPurpose, Posting};
use crate::wallet::Wallet;
use crate::wallet::sending::Plan;

impl Wallet {
    /// Pays to a payment URL. For a URL that is already paid, this returns the same payment again.
    /// While the outcome is open, it sends the same transaction again. After a refusal, it makes a
    /// new payment.
    ///
    /// The payment goes on even if the caller stops waiting.
    pub async fn pay(
        self: &Arc<Self>,
        draft: PayDraft,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<OutgoingPayment, Error> {
        let PayDraft { pay_to_url, max_satoshis } = draft;
        let url = payment_url(&pay_to_url)?;
        self.check_caught_up().await?;
        let name = url.to_string();
        self.alone(&name, move |wallet| async move {
            wallet.pay_alone(&url, idempotency, max_satoshis).await
        })
        .await
    }

    async fn pay_alone(
        self: &Arc<Self>,
        url: &Url,
        idempotency: Option<IdempotencyKey>,
        max_satoshis: Option<u64>,
    ) -> Result<OutgoingPayment, Error> {
        let purpose = OutgoingPurpose::Url(url.to_string());
        if let Some(payment) = self.payment_before(purpose, idempotency.clone()).await? {
            return self.go_on(payment).await;
        }
        let Asked { plan, terms, posting_url, .. } = self.ask(url, idempotency).await?;
        let elsewhere = (posting_url != *url).then(|| posting_url.into());
        let posting = async |transaction: &Transaction| {
            let archive = Archive { wallet: Some(self), source: &self.sources()?.operating };
            let ancestry = archive.for_payee(&terms.terms, transaction).await?;
            let body = terms.payment(transaction, ancestry.as_ref(), "");
            check_len(&body, ancestry.is_some())?;
            Ok(Some(Posting { url: elsewhere, body }))
        };
        self.make(Plan { max_cost: max_satoshis, ..plan }, Plan::reserve, posting).await
    }
}

/// Fails if no payee reads the message of a payment, since it is too long.
fn check_len(body: &[u8], has_ancestry: bool) -> Result<(), Error> {
    let len = body.len();
    let reason = |message: &str| {
        format!("{message} would have {len} bytes, and payees read {MAX_MESSAGE_LEN} at most")
    };
    match has_ancestry {
        _ if len <= MAX_MESSAGE_LEN => Ok(()),
        true => Err(Error::NoBeef(reason("with them, the message of the payment"))),
        false => Err(Error::UnpayableTerms(reason("the message of the payment"))),
    }
}
