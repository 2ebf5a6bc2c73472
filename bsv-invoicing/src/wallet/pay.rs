//! Paying: somebody's payment URL, from the wallet's coins.
//!
//! Coins are reserved, the transaction is signed and recorded, and only then posted. The payee's word makes
//! nothing of it: what counts is what the network shows.

mod asked;
mod cancel;
mod draft;
mod faucet;
mod in_progress;
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
pub(crate) use self::payee::Payee;
pub use self::preview::PaymentPreview;

use self::asked::Asked;
use self::draft::payment_url;
use self::sign::sign;
use crate::error::Error;
use crate::ledger::{Record, Release, Reservation, Reserve, Reserved};
use crate::model::idempotency::IdempotencyKey;
use crate::model::payment::OutgoingPayment;
use crate::store::WalletStore;
use crate::wallet::Wallet;

impl<S: WalletStore> Wallet<S> {
    /// Pays to a payment URL. A URL that was paid is answered the same again; while the outcome is
    /// open, the same transaction is sent again; after a refusal, a new one is made.
    ///
    /// What is begun goes on if the caller stops waiting.
    pub async fn pay(
        self: &Arc<Self>,
        draft: PayDraft,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<OutgoingPayment, Error> {
        let PayDraft { pay_to_url, max_satoshis } = draft;
        let url = payment_url(&pay_to_url)?;
        self.check_caught_up().await?;
        let place = self.paying.place(url.as_str()).await?;
        let wallet = Arc::clone(self);
        let paid = tokio::spawn(async move {
            let _place = place;
            wallet.pay_alone(&url, idempotency, max_satoshis).await
        });
        paid.await.unwrap_or_else(|_| Err(Error::OutcomeUnknown("it broke off".to_owned())))
    }

    async fn pay_alone(
        &self,
        url: &Url,
        idempotency: Option<IdempotencyKey>,
        max_satoshis: Option<u64>,
    ) -> Result<OutgoingPayment, Error> {
        if let Some(payment) = self.payment_before(url, idempotency.clone()).await? {
            return self.go_on(payment).await;
        }
        let asked = self.ask(url, idempotency).await?;
        match self.reserve(&asked).await? {
            Reserved::Before(payment) => self.go_on(*payment).await,
            Reserved::Now(reservation) => {
                self.check_cost(&reservation, max_satoshis).await?;
                let payment = self.sign_and_record(asked, reservation).await?;
                self.go_on(payment).await
            }
        }
    }

    async fn reserve(&self, asked: &Asked) -> Result<Reserved, Error> {
        let Asked { url, spending, idempotency, .. } = asked;
        let (url, idempotency) = (url.to_string(), idempotency.clone());
        let reserve = Reserve { url, spending: *spending, idempotency, now: self.now() };
        Ok(self.store.execute(reserve).await?)
    }

    /// Releases coins whose payment would cost more than it may.
    async fn check_cost(
        &self,
        reservation: &Reservation,
        max_satoshis: Option<u64>,
    ) -> Result<(), Error> {
        let (asked, limit) = (reservation.selection.cost(), max_satoshis.unwrap_or(u64::MAX));
        if asked <= limit {
            return Ok(());
        }
        self.store.execute(Release { reservation: reservation.number }).await?;
        Err(Error::OverLimit { asked, limit })
    }

    /// Signs for coins that are reserved, and records the payment. If that fails, they are released.
    async fn sign_and_record(
        &self,
        asked: Asked,
        reservation: Reservation,
    ) -> Result<OutgoingPayment, Error> {
        let number = reservation.number;
        let recorded = match sign(&self.keys, &asked.outputs, &reservation.selection) {
            Ok(transaction) => self.record(asked, reservation, transaction).await,
            Err(error) => Err(error.into()),
        };
        if recorded.is_err() {
            self.store.execute(Release { reservation: number }).await?;
        }
        recorded
    }

    async fn record(
        &self,
        asked: Asked,
        reservation: Reservation,
        transaction: Transaction,
    ) -> Result<OutgoingPayment, Error> {
        let Asked { url, terms, spending, expires_at, idempotency, .. } = asked;
        let message = terms.payment(&transaction, "");
        let record = Record {
            reservation,
            transaction,
            message,
            url: url.to_string(),
            satoshis: spending.satoshis,
            expires_at,
            idempotency,
            now: self.now(),
        };
        Ok(self.store.execute(record).await?)
    }
}
