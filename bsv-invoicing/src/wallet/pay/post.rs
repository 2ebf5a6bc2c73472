//! Sending a recorded payment to its payee and to the network.

use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;

use super::draft::payment_url;
use super::payee::outcome_unclear;
use crate::dpp::{Acknowledgement, AnswerError, Payment};
use crate::error::Error;
use crate::ledger::queries::GetOutgoingTransaction;
use crate::ledger::{Accept, Refusal, RefuseByPayee};
use crate::model::outgoing::{OutgoingPayment, OutgoingState, Posting};
use crate::store::WalletStore;
use crate::wallet::Wallet;
use crate::wallet::sources::unknown;

/// How long after the expiry of its terms a payment may still be accepted.
const GRACE: Duration = Duration::from_secs(60 * 60);

impl Wallet {
    /// Answers a request for which there is a payment already. A payment to a URL is sent again
    /// while its outcome is open. Others are only followed.
    pub(in crate::wallet) async fn go_on(
        &self,
        payment: OutgoingPayment,
    ) -> Result<OutgoingPayment, Error> {
        match payment.state {
            _ if payment.purpose.url().is_none() => Ok(payment),
            OutgoingState::Open => self.send(payment).await,
            OutgoingState::Unseen => self.pass_on(payment.number).await,
            OutgoingState::Settled | OutgoingState::Waiting | OutgoingState::Contested => {
                Ok(payment)
            }
            state => Err(Refusal::NotOpen(payment.number, state).into()),
        }
    }

    /// Sends an open payment: to its payee if a payment URL is paid, or else to the network.
    pub(in crate::wallet) async fn send(
        &self,
        payment: OutgoingPayment,
    ) -> Result<OutgoingPayment, Error> {
        match payment.purpose.url() {
            Some(url) => self.post(payment.number, &payment_url(url)?).await,
            None => self.pass_on(payment.number).await,
        }
    }

    /// Posts an open payment to its payee, and records the outcome.
    async fn post(&self, number: u64, url: &Url) -> Result<OutgoingPayment, Error> {
        let (payment, Posting { url: posting_url, body }) =
            self.outgoing_with_posting(number).await?;
        let to = posting_url.as_deref().map_or_else(|| Ok(url.clone()), Url::parse);
        let to = to.map_err(|error| Error::PayeeNonsense(error.to_string()))?;
        let dialect = Payment::from_json(&body)
            .map_err(|error| Error::PayeeNonsense(error.to_string()))?
            .dialect;
        let (status, answer) = self.payee.post(url, &to, dialect, body).await?;
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

    /// Records that the payee has refused a payment, unless the network has the transaction. Where
    /// nothing tells whether the network has it, the payment is cancelled.
    async fn refused(
        &self,
        payment: &OutgoingPayment,
        reason: &str,
    ) -> Result<OutgoingPayment, Error> {
        let number = payment.number;
        let source = &self.sources()?.operating;
        let (transaction, _) = self.store.get(GetOutgoingTransaction(number)).await?;
        let is_there = self.look(source, transaction, &payment.txid).await;
        if is_there.map_err(|error| Error::OutcomeUnknown(error.to_string()))? {
            return self.outgoing_payment(number).await;
        }
        let is_absent = source.blind_spot().await.map_err(unknown)?.is_none();
        let (text, now) = (reason.to_owned(), self.now());
        let refuse = RefuseByPayee { payment: number, reason: text, is_absent, now };
        let mut payment = self.store.execute(refuse).await?;
        if payment.state == OutgoingState::Cancelling && !is_absent {
            match self.cancel_alone(number).await {
                Ok(cancelled) => payment = cancelled,
                // Following the payment tries again.
                Err(error) => {
                    tracing::warn!("payment {number} is refused and not cancelled yet: {error}");
                }
            }
        }
        match payment.state {
            OutgoingState::Refused | OutgoingState::Cancelling | OutgoingState::Cancelled => {
                let reason = format!("the payee refuses the payment: {reason}");
                Err(Error::PayeeRefuses(reason))
            }
            // The network has it after all, or the payee has agreed at another time.
            _ => Ok(payment),
        }
    }

    /// Gives the node a transaction that has no payee to ask, or to which the payee has agreed. The
    /// payee may not have broadcast it. If the node does not show it, the payment keeps its state,
    /// and following the transaction tries again.
    async fn pass_on(&self, payment: u64) -> Result<OutgoingPayment, Error> {
        let passed_on = async {
            let (number, transaction) = self.store.get(GetOutgoingTransaction(payment)).await?;
            self.show_and_note(&self.sources()?.operating, number, &transaction).await
        };
        match passed_on.await {
            Ok(None) => {}
            Ok(Some(reason)) => tracing::warn!(
                "the network refuses payment {payment}, which stays open and can be cancelled: \
                 {reason}"
            ),
            Err(error @ Error::Store(_)) => return Err(error),
            Err(error) => {
                tracing::warn!("payment {payment} could not be sent to the network: {error}");
            }
        }
        self.outgoing_payment(payment).await
    }

    /// Resumes a payment that the network has not shown.
    pub(crate) async fn resume(self: &Arc<Self>, number: u64) -> Result<(), Error> {
        let payment = self.outgoing_payment(number).await?;
        self.alone_if_free(&payment.place(), self.resume_alone(number)).await.map(drop)
    }

    async fn resume_alone(&self, number: u64) -> Result<(), Error> {
        let payment = self.outgoing_payment(number).await?;
        match payment.state {
            OutgoingState::Open if self.is_over(&payment) => {
                self.cancel_alone(number).await.map(drop)
            }
            OutgoingState::Open => self.send(payment).await.map(drop),
            OutgoingState::Unseen => self.pass_on(number).await.map(drop),
            OutgoingState::Cancelling => self.cancel_alone(number).await.map(drop),
            _ => Ok(()),
        }
    }

    /// Whether the time for the payee to accept a payment is over.
    fn is_over(&self, payment: &OutgoingPayment) -> bool {
        payment.expires_at.is_some_and(|at| at.after(GRACE) <= self.expiry_time())
    }
}

impl OutgoingPayment {
    /// Its name among the payments in progress. Of the payments to one URL, only one is made at a
    /// time.
    pub(super) fn place(&self) -> String {
        match self.purpose.url() {
            Some(url) => url.to_owned(),
            None => format!("payment {}", self.number),
        }
    }
}
