//! Paying: somebody's payment URL, from the wallet's coins.
//!
//! Coins are reserved, the transaction is signed and recorded, and only then posted. The payee's word makes
//! nothing of it: what counts is what the network shows.

mod cancel;
mod draft;
mod faucet;
mod payable;
mod payee;
mod preview;
mod sign;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bsv_tx::{Transaction, TxOut};
use reqwest::Url;
use tokio::sync::watch;

use self::draft::payment_url;
use self::payable::check_payable_outputs;
use self::payee::outcome_unclear;
use self::sign::sign;
use crate::dpp::{Acknowledgement, AnswerError, FeeRate, Payment, ReceivedTerms, TermsError};
use crate::error::Error;
use crate::ledger::queries::{
    GetOutgoing, GetOutgoingBefore, GetOutgoingTo, GetOutgoingTransaction,
};
use crate::ledger::{
    Accept, FindPayment, Record, RefuseByPayee, Release, Reservation, Reserve, Reserved,
};
use crate::model::coin::{Spending, encoded_len, fee};
use crate::model::idempotency::IdempotencyKey;
use crate::model::payment::{OutgoingPayment, OutgoingState};
use crate::model::time::Timestamp;
use crate::store::WalletStore;
use crate::wallet::follow::NO_INDEX;
use crate::wallet::running::Place;
use crate::wallet::{Wallet, away, unknown};

pub use self::draft::PayDraft;
pub use self::faucet::faucet;
pub(crate) use self::payee::Payee;
pub use self::preview::PaymentPreview;

/// A payment that is being made.
#[derive(Clone, Debug)]
pub(crate) struct Paying {
    /// Whether somebody waits for it, or it is looked after in the background.
    is_asked_for: bool,
    end: watch::Receiver<()>,
}

/// Keeps others from making the same payment, and tells them when it is done.
struct PlaceToPay {
    _place: Place<String, Paying>,
    // Dropped last.
    _end: watch::Sender<()>,
}

/// For how long after its terms have expired a payment may still be accepted.
const GRACE: Duration = Duration::from_secs(60 * 60);
/// For how long terms hold that do not say so.
const DEFAULT_TERM: Duration = Duration::from_secs(60 * 60);

/// A payment that terms ask for.
struct Asked {
    url: Url,
    terms: ReceivedTerms,
    outputs: Vec<TxOut>,
    spending: Spending,
    expires_at: Timestamp,
    idempotency: Option<IdempotencyKey>,
}

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
        let place = self.place_to_pay(url.as_str()).await?;
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

    /// Asks a payee for its terms, and answers the payment that they ask for.
    async fn ask(&self, url: &Url, idempotency: Option<IdempotencyKey>) -> Result<Asked, Error> {
        // Without a node nobody could tell what becomes of a payment.
        let policy = self.node()?.operating.policy().await.map_err(away)?;
        self.fee_floor.store(policy.mining_fee_rate, Ordering::Relaxed);
        let terms = self.payee.terms(url, self.settings.network).await?;
        let asked = self.asked(url, terms, idempotency)?;
        check_payable_outputs(&asked.outputs, &policy)?;
        Ok(asked)
    }

    async fn payment_before(
        &self,
        url: &Url,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<Option<OutgoingPayment>, Error> {
        let (url, now) = (url.to_string(), self.now());
        if idempotency.is_none() {
            return Ok(self.store.get(GetOutgoingTo(url)).await?);
        }
        Ok(self.store.execute(FindPayment { url, idempotency, now }).await?)
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

    /// Goes on with a payment that has begun.
    async fn go_on(&self, payment: OutgoingPayment) -> Result<OutgoingPayment, Error> {
        match payment.state {
            OutgoingState::Open => self.post(payment.number).await,
            OutgoingState::Unseen => self.pass_on(payment.number).await,
            OutgoingState::Settled | OutgoingState::Waiting | OutgoingState::Contested => {
                Ok(payment)
            }
            state => Err(Error::NotOpen(payment.number, state)),
        }
    }

    /// Keeps others from making a payment to this URL. What goes on there in the background is waited
    /// for.
    async fn place_to_pay(&self, url: &str) -> Result<PlaceToPay, Error> {
        loop {
            match self.begin_paying(url, true) {
                Ok(place) => return Ok(place),
                Err(Paying { is_asked_for: true, .. }) => return Err(Error::PaymentRunning),
                Err(Paying { mut end, .. }) => drop(end.changed().await),
            }
        }
    }

    fn begin_paying(&self, url: &str, is_asked_for: bool) -> Result<PlaceToPay, Paying> {
        let (sender, end) = watch::channel(());
        let place = self.paying.begin(url.to_owned(), Paying { is_asked_for, end })?;
        Ok(PlaceToPay { _place: place, _end: sender })
    }

    /// The payment that terms ask for, if the wallet may make it.
    fn asked(
        &self,
        url: &Url,
        received: ReceivedTerms,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<Asked, Error> {
        let terms = &received.terms;
        let now = self.now();
        let expires_at = terms.expires_at.unwrap_or_else(|| now.after(DEFAULT_TERM));
        if expires_at <= now {
            return Err(Error::PayeeRefuses(format!("the payment terms expired at {expires_at}")));
        }
        let floor = self.fee_floor.load(Ordering::Relaxed);
        let quoted = match terms.fees {
            Some(fees) => per_kilobyte(fees.standard).max(per_kilobyte(fees.data)),
            // A payee that states no fee may ask for what we ask for.
            None => self.settings.fee_rate.min(self.settings.max_fee_rate),
        };
        let fee_rate = quoted.max(floor);
        let limit = self.settings.max_fee_rate;
        if fee_rate > limit {
            return Err(Error::FeeTooHigh { asked: fee_rate, limit });
        }
        let outputs = terms_outputs(&received);
        let output_bytes = encoded_len(&outputs);
        // By large outputs, a payee can make a payment of little dear.
        let asked = terms.satoshis().max(fee(fee_rate, output_bytes));
        let limit = self.settings.pay_limit;
        if asked > limit {
            return Err(Error::OverLimit { asked, limit });
        }
        let spending = Spending { satoshis: terms.satoshis(), output_bytes, fee_rate };
        let (url, terms) = (url.clone(), received);
        Ok(Asked { url, terms, outputs, spending, expires_at, idempotency })
    }

    /// Posts an open payment to its payee, and notes what comes of it.
    async fn post(&self, number: u64) -> Result<OutgoingPayment, Error> {
        let (payment, message) = self.outgoing_with_message(number).await?;
        let url = payment_url(&payment.url)?;
        let dialect = Payment::from_json(&message)
            .map_err(|error| Error::PayeeNonsense(error.to_string()))?
            .dialect;
        let (status, answer) = self.payee.post(&url, dialect, message).await?;
        match Acknowledgement::from_answer(dialect, status, &answer, &payment.txid) {
            Ok(Acknowledgement { memo, peer_channel, .. }) => {
                let now = self.now();
                let accept = Accept { payment: number, memo, channel: peer_channel, now };
                self.store.execute(accept).await?;
                self.pass_on(number).await
            }
            Err(AnswerError::Refused(reason)) => self.refused(&payment, &reason).await,
            Err(error @ AnswerError::Unavailable(_)) => {
                Err(Error::OutcomeUnknown(error.to_string()))
            }
            Err(AnswerError::Nonsense(reason)) => Err(outcome_unclear(&reason)),
        }
    }

    /// The payee has refused a payment. That is believed unless the network has the transaction.
    async fn refused(
        &self,
        payment: &OutgoingPayment,
        reason: &str,
    ) -> Result<OutgoingPayment, Error> {
        let number = payment.number;
        let node = &self.node()?.operating;
        let (transaction, _) = self.store.get(GetOutgoingTransaction(number)).await?;
        let is_there = self.look(node, transaction, &payment.txid).await;
        if is_there.map_err(|error| Error::OutcomeUnknown(error.to_string()))? {
            return self.outgoing_payment(number).await;
        }
        if !node.has_transaction_index().await.map_err(unknown)? {
            return Err(Error::OutcomeUnknown(NO_INDEX.to_owned()));
        }
        let now = self.now();
        let refuse = RefuseByPayee { payment: number, reason: reason.to_owned(), now };
        self.store.execute(refuse).await?;
        Err(Error::PayeeRefuses(format!("the payee refuses the payment: {reason}")))
    }

    /// Gives the node a transaction that the payee has agreed to, and may have kept for itself. If the node
    /// does not show it, the payment stays unseen, and that is tried again when transactions are followed.
    async fn pass_on(&self, payment: u64) -> Result<OutgoingPayment, Error> {
        let passed_on = async {
            let (number, transaction) = self.store.get(GetOutgoingTransaction(payment)).await?;
            self.show_and_note(&self.node()?.operating, number, &transaction).await
        };
        match passed_on.await {
            Ok(None) => {}
            Ok(Some(reason)) => tracing::warn!(
                "payment {payment}: the payee has agreed to it, and the network refuses it: {reason}"
            ),
            Err(error @ Error::Store(_)) => return Err(error),
            Err(error) => {
                tracing::warn!("payment {payment} could not be passed on to the network: {error}");
            }
        }
        self.outgoing_payment(payment).await
    }

    /// Sees what becomes of a payment that the network has not shown.
    pub(crate) async fn resume(&self, number: u64) -> Result<(), Error> {
        let url = self.outgoing_payment(number).await?.url;
        let Ok(_place) = self.begin_paying(&url, false) else { return Ok(()) };
        let payment = self.outgoing_payment(number).await?;
        match payment.state {
            OutgoingState::Open if payment.expires_at.after(GRACE) <= self.expiry_time() => {
                self.cancel_alone(number).await.map(drop)
            }
            OutgoingState::Open => self.post(number).await.map(drop),
            OutgoingState::Unseen => self.pass_on(number).await.map(drop),
            OutgoingState::Cancelling => self.cancel_alone(number).await.map(drop),
            _ => Ok(()),
        }
    }

    /// A payment by the wallet.
    pub async fn outgoing_payment(&self, number: u64) -> Result<OutgoingPayment, Error> {
        Ok(self.outgoing_with_message(number).await?.0)
    }

    /// Up to `limit` payments by the wallet before the one of this number, the newest first.
    pub async fn outgoing_payments(
        &self,
        before: u64,
        limit: usize,
    ) -> Result<Vec<OutgoingPayment>, Error> {
        Ok(self.store.get(GetOutgoingBefore(before, limit)).await?)
    }

    async fn outgoing_with_message(
        &self,
        number: u64,
    ) -> Result<(OutgoingPayment, Vec<u8>), Error> {
        self.store.get(GetOutgoing(number)).await?.ok_or(Error::UnknownPayment(number))
    }
}

fn terms_outputs(received: &ReceivedTerms) -> Vec<TxOut> {
    let destinations = received.terms.destinations.iter();
    destinations
        .map(|destination| TxOut {
            satoshis: destination.satoshis,
            locking_script: destination.script.clone(),
        })
        .collect()
}

/// A fee rate in satoshis per 1000 bytes, rounded up.
fn per_kilobyte(rate: FeeRate) -> u64 {
    let satoshis = u128::from(rate.satoshis) * 1000;
    u64::try_from(satoshis.div_ceil(u128::from(rate.bytes.max(1)))).unwrap_or(u64::MAX)
}

impl From<TermsError> for Error {
    fn from(error: TermsError) -> Self {
        match error {
            TermsError::Malformed(_) => Self::PayeeNonsense(error.to_string()),
            error => Self::PayeeRefuses(error.to_string()),
        }
    }
}
