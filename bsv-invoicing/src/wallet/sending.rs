//! Sending: the steps that every payment by the wallet takes, whatever its purpose.
//!
//! | step | effect | if the process ends after it |
//! | --- | --- | --- |
//! | reserve | a command chooses coins and holds them under the number of a claim | the coins are released with the claims of the process |
//! | sign | the wallet checks the limits and signs, and stores nothing | the same |
//! | record | a command stores the transaction as an open payment that spends the coins, durably | following the payment sends it, or cancels it if its terms are over |
//! | send | the payment is posted to its payee, or given to the node | following the payment sends it again while the network does not show it |
//!
//! If one of the first three steps fails, or its answer is lost, the wallet lets go of the claim. A
//! payment that was recorded all the same keeps its coins.
//!
//! | purpose | one at a time | asked for again | limits of its cost | sent to |
//! | --- | --- | --- | --- | --- |
//! | a payment URL | for each URL | sends the payment again while its outcome is open | the wallet's, `maxSatoshis` | the payee, and the node after the payee has agreed |
//! | a refund | for each invoice | answers the refund, which is followed | the wallet's | the node |
//! | a withdrawal | for each idempotency key | answers the withdrawal, which is followed | the wallet's, `maxFee`: both for all its transactions | the node |
//! | a consolidation | in the whole wallet | | the wallet's | the node |
//!
//! If the payee refuses a payment that the node does not have, its coins are free again. Services
//! cannot tell that they do not have it, so the wallet cancels it. If the network refuses one, it
//! stays open and can be cancelled. A cancellation reserves nothing, because it spends a coin that
//! its payment holds.

use std::sync::Arc;

use bsv_tx::{Transaction, TxOut};

use crate::error::Error;
use crate::ledger::queries::GetOutgoingFor;
use crate::ledger::{
    Command, EstimateFee, FindPayment, LetGoAll, NewPayment, Record, Reservation, Reserve, Reserved,
};
use crate::model::coin::{Spending, encoded_len};
use crate::model::idempotency::IdempotencyKey;
use crate::model::outgoing::{OutgoingPayment, OutgoingPurpose, Posting};
use crate::model::time::Timestamp;
use crate::store::WalletStore;
use crate::wallet::Wallet;

/// A payment of one transaction that may be made.
pub(super) struct Plan {
    pub(super) purpose: OutgoingPurpose,
    /// The outputs without the change.
    pub(super) outputs: Vec<TxOut>,
    pub(super) spending: Spending,
    /// Whether coins of long transactions come last, because those transactions are sent along.
    pub(super) prefers_short: bool,
    /// The most that it may cost, in satoshis, its fee included. The wallet has a limit, too.
    pub(super) max_cost: Option<u64>,
    /// Until when the payee accepts it, if the payee says so.
    pub(super) expires_at: Option<Timestamp>,
    pub(super) idempotency: Option<IdempotencyKey>,
}

impl Plan {
    /// A payment of these outputs at a fee rate in satoshis per 1000 bytes.
    pub(super) fn new(purpose: OutgoingPurpose, outputs: Vec<TxOut>, fee_rate: u64) -> Self {
        let satoshis = outputs.iter().map(|output| output.satoshis).fold(0, u64::saturating_add);
        let spending = Spending { satoshis, output_bytes: encoded_len(&outputs), fee_rate };
        Self {
            purpose,
            outputs,
            spending,
            prefers_short: false,
            max_cost: None,
            expires_at: None,
            idempotency: None,
        }
    }

    /// The command that reserves coins for a payment to somebody.
    pub(super) fn reserve(&self, claim: u64, now: Timestamp) -> Reserve {
        let (purpose, idempotency) = (self.purpose.clone(), self.idempotency.clone());
        let Self { spending, prefers_short, .. } = *self;
        Reserve { purpose, spending, prefers_short, idempotency, claim, now }
    }
}

impl Wallet {
    /// Makes a payment from the coins that the command of its purpose reserves, and sends it. If
    /// there is a payment for the same request already, this goes on with that one. `posting` makes
    /// what is posted to the payee.
    pub(super) async fn make<C: Command<Answer = Reserved>>(
        self: &Arc<Self>,
        plan: Plan,
        reserve: impl FnOnce(&Plan, u64, Timestamp) -> C,
        posting: impl AsyncFnOnce(&Transaction) -> Result<Option<Posting>, Error>,
    ) -> Result<OutgoingPayment, Error> {
        let claim = self.next_claim();
        let reserve = reserve(&plan, claim, self.now());
        let record = async |reservation: Reservation| {
            let cost = reservation.selection.cost();
            check_limit(cost, Some(self.settings.pay_limit))?;
            check_limit(cost, plan.max_cost)?;
            let Plan { purpose, outputs, spending, expires_at, idempotency, .. } = plan;
            let transaction = self.sign(&outputs, &reservation.selection)?;
            let (posting, satoshis) = (posting(&transaction).await?, spending.satoshis);
            let payment = NewPayment { reservation, transaction, purpose, satoshis, expires_at };
            let record = Record { payment, posting, idempotency, now: self.now() };
            Ok(self.store.execute(record).await?)
        };
        match self.reserve_and_record(claim, reserve, record).await? {
            (payment, true) => self.send(payment).await,
            (payment, false) => self.go_on(payment).await,
        }
    }

    /// Reserves coins with a command under the number `claim`, and then signs for them and records
    /// what they pay with `record`. Returns what was recorded, and whether that is new. Releases the
    /// coins after an error. They may be reserved although the answer was lost.
    pub(super) async fn reserve_and_record<P, R>(
        self: &Arc<Self>,
        claim: u64,
        reserve: impl Command<Answer = Reserved<P, R>>,
        record: impl AsyncFnOnce(R) -> Result<P, Error>,
    ) -> Result<(P, bool), Error> {
        let recorded = match self.store.execute(reserve).await {
            Ok(Reserved::Before(payment)) => Ok((payment, false)),
            Ok(Reserved::Now(reserved)) => record(reserved).await.map(|payment| (payment, true)),
            Err(error) => Err(error.into()),
        };
        if recorded.is_err() && self.store.execute(LetGoAll { number: claim }).await.is_err() {
            self.let_go_all(claim);
        }
        recorded
    }

    /// The fee of a payment that could be made, in satoshis. Fails if the payment would cost more
    /// than the wallet's limit.
    pub(super) async fn estimate(&self, plan: &Plan) -> Result<u64, Error> {
        let fee = self.store.execute(EstimateFee(plan.reserve(0, self.now()))).await?;
        let cost = plan.spending.satoshis.saturating_add(fee);
        check_limit(cost, Some(self.settings.pay_limit)).map(|()| fee)
    }

    /// The payment that already answers a request and is not lost: the one that was made first with
    /// its idempotency key, or the one to its URL.
    pub(super) async fn payment_before(
        &self,
        purpose: OutgoingPurpose,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<Option<OutgoingPayment>, Error> {
        if idempotency.is_some() {
            let find = FindPayment { purpose, idempotency, now: self.now() };
            return Ok(self.store.execute(find).await?);
        }
        match purpose.url() {
            Some(_) => Ok(self.store.get(GetOutgoingFor(purpose)).await?),
            None => Ok(None),
        }
    }
}

/// Fails if a cost is higher than its limit, in satoshis.
pub(super) fn check_limit(asked: u64, limit: Option<u64>) -> Result<(), Error> {
    match limit {
        Some(limit) if asked > limit => Err(Error::OverLimit { asked, limit }),
        _ => Ok(()),
    }
}
