//! Paying to a payment URL with the wallet's coins.
//!
//! The wallet reserves coins, signs the transaction, records the payment, and only then posts it. A
//! payment is settled when the network shows it, and not when the payee says so.

pub(super) mod asked;
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

use reqwest::Url;

pub use self::draft::PayDraft;
pub use self::faucet::faucet;
pub(crate) use self::in_progress::PaymentsInProgress;
pub(super) use self::payable::{is_data, is_p2sh};
pub(crate) use self::payee::Payee;
pub use self::preview::PaymentPreview;

use self::asked::{Asked, check_limit};
use self::draft::payment_url;
use crate::error::Error;
use crate::ledger::{NewPayment, Record, Reservation, Reserve, Reserved};
use crate::model::idempotency::IdempotencyKey;
use crate::model::outgoing::{OutgoingPayment, OutgoingPurpose, Posting};
use crate::store::WalletStore;
use crate::wallet::Wallet;

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
        if let Some(payment) = self.payment_before(url, idempotency.clone()).await? {
            return self.go_on(payment).await;
        }
        let asked = self.ask(url, idempotency).await?;
        let claim = self.next_claim();
        let reserved = self.reserve(&asked, claim).await;
        match self.or_release(claim, reserved).await? {
            Reserved::Before(payment) => self.go_on(*payment).await,
            Reserved::Now(reservation) => {
                let payment = self.sign_and_record(asked, reservation, max_satoshis).await;
                self.go_on(self.or_release(claim, payment).await?).await
            }
        }
    }

    async fn reserve(&self, asked: &Asked, claim: u64) -> Result<Reserved, Error> {
        let Asked { url, spending, idempotency, .. } = asked;
        let purpose = OutgoingPurpose::Url(url.to_string());
        let (spending, idempotency) = (*spending, idempotency.clone());
        let reserve = Reserve { purpose, spending, idempotency, claim, now: self.now() };
        Ok(self.store.execute(reserve).await?)
    }

    /// Signs for the reserved coins and records the payment. Fails if the payment would cost more
    /// than the wallet's limit or `max_satoshis`.
    async fn sign_and_record(
        &self,
        asked: Asked,
        reservation: Reservation,
        max_satoshis: Option<u64>,
    ) -> Result<OutgoingPayment, Error> {
        self.check_cost(&reservation)?;
        check_limit(reservation.selection.cost(), max_satoshis)?;
        let transaction = self.sign(&asked.outputs, &reservation.selection)?;
        let Asked { url, posting_url, terms, spending, expires_at, idempotency, .. } = asked;
        let elsewhere = Some(posting_url).filter(|posting_url| *posting_url != url);
        let body = terms.payment(&transaction, "");
        let posting = Some(Posting { url: elsewhere.map(String::from), body });
        let payment = NewPayment {
            reservation,
            transaction,
            purpose: OutgoingPurpose::Url(url.into()),
            satoshis: spending.satoshis,
            expires_at: Some(expires_at),
        };
        let record = Record { payment, posting, idempotency, now: self.now() };
        Ok(self.store.execute(record).await?)
    }
}

impl Wallet {
    /// Fails if what is reserved would cost more than the wallet's limit, its fee included.
    pub(super) fn check_cost(&self, reservation: &Reservation) -> Result<(), Error> {
        check_limit(reservation.selection.cost(), Some(self.settings.pay_limit))
    }
}
