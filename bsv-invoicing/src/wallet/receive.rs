//! Receiving a payment: the wallet checks it, records it and offers it to the network. The payment
//! counts once the network shows it.

pub(crate) mod ancestors;
mod beef;
mod broadcast;
mod check;
mod counts;
mod recent_tip;
mod turn;
mod unsent;

use std::sync::Arc;
use std::time::Duration;

use bsv_tx::{FormedTransaction, Transaction, Txid};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

pub(crate) use self::broadcast::Broadcast;
pub use self::counts::NotTaken;
pub(crate) use self::recent_tip::RecentTip;
pub(crate) use self::turn::WaitingPayments;

use self::broadcast::{Outcome, outcome_of};
use self::check::OnItsWay;
use self::turn::{ELSEWHERE_PERIOD, Turns};
use crate::dpp::Acknowledgement;
use crate::error::Error;
use crate::ledger::queries::{
    Arrival, GetAncestors, GetArrival, GetHolder, GetIncoming, GetInvoice, GetPaymentBy,
    GetReceivedSum, GetRecord, IsOffered,
};
use crate::ledger::{Offer, Offered, Refusal, Refuse};
use crate::model::payment::{IncomingState, PaymentPage, PaymentQuery};
use crate::model::process::Task;
use crate::model::settlement::LatePayments;
use crate::model::transaction::TransactionState;
use crate::store::{WalletStore, WalletStoreError};
use crate::wallet::Wallet;
use crate::wallet::invoices::of_invoice;
use crate::wallet::shown::{Shown, not_shown, show};

/// How long a payer waits for another process that offers the same payment to the network.
const ELSEWHERE_PATIENCE: Duration = Duration::from_secs(30);

impl Wallet {
    /// Receives a payment of an invoice: checks it and offers it to the network. Returns once the
    /// network shows it and that is durable. The same payment gets the same answer every time.
    ///
    /// `transaction` is in any [form](bsv_tx::TransactionForm). Ancestors that come with it and
    /// that the network does not have are offered first. `refund_to` is where the payer wants
    /// refunds.
    ///
    /// The work goes on even if the caller stops waiting.
    pub async fn receive(
        self: &Arc<Self>,
        id: &str,
        transaction: &[u8],
        refund_to: Option<&str>,
    ) -> Result<Acknowledgement, Arc<Error>> {
        let received = self.take(id, transaction, refund_to).await;
        received.inspect_err(|error| self.not_taken.note(error))
    }

    async fn take(
        self: &Arc<Self>,
        id: &str,
        transaction: &[u8],
        refund_to: Option<&str>,
    ) -> Result<Acknowledgement, Arc<Error>> {
        self.check_caught_up().await?;
        let number = self.invoice(id).await?.number;
        let posted = Arc::new(check::read_transaction(transaction)?);
        let mut turns = Turns::new(&self.waiting, transaction.len());
        loop {
            let taken = self.take_now(id, number, &posted, refund_to).await;
            let is_other_offered =
                taken.as_ref().is_err_and(|error| matches!(**error, Error::InFlight(_)));
            if !is_other_offered {
                return taken;
            }
            let is_offered = self.store.get(IsOffered(number)).await.map_err(Error::from)?;
            if !turns.next(&self.broadcasts, number, is_offered).await {
                return taken;
            }
        }
    }

    /// Receives a payment, unless another payment of the same invoice is being offered.
    async fn take_now(
        self: &Arc<Self>,
        id: &str,
        number: u64,
        posted: &Arc<FormedTransaction>,
        refund_to: Option<&str>,
    ) -> Result<Acknowledgement, Arc<Error>> {
        let txid = posted.transaction().txid();
        let acknowledgement = self.acknowledgement(id, txid);
        let broadcast = self.broadcasts.get(&number);
        let arrival = self.store.get(GetArrival(number, txid)).await.map_err(Error::from)?;
        let arrival = arrival.filter(|it| it.invoice.deleted_at.is_none());
        let Arrival { invoice, state, offered } =
            arrival.ok_or_else(|| Error::UnknownInvoice(id.to_owned()))?;
        if state.is_some_and(TransactionState::spends) {
            self.check_paid(number, &txid).await?;
            return Ok(acknowledgement);
        }
        let outcome = match broadcast {
            Some(Broadcast { txid: same, outcome }) if same == txid => outcome,
            other => {
                let on_its_way = match offered {
                    _ if other.is_some() => OnItsWay::Other,
                    None => OnItsWay::None,
                    Some(offered) if offered == txid => OnItsWay::This,
                    Some(_) => OnItsWay::Other,
                };
                let refund_to = refund_to.map(str::to_owned);
                let offer = self.offer_of(&invoice, posted, refund_to, on_its_way).await?;
                self.offer(id, offer, posted)?
            }
        };
        outcome_of(outcome).await?;
        self.check_paid(number, &txid).await?;
        Ok(acknowledgement)
    }

    /// Counts of the payments that were not accepted.
    pub fn not_taken(&self) -> &NotTaken {
        &self.not_taken
    }

    /// Fails unless the invoice is paid. The network shows this payment of it.
    async fn check_paid(&self, number: u64, txid: &Txid) -> Result<(), Error> {
        let invoice = self.store.get(GetInvoice(number)).await?;
        let invoice = invoice.ok_or(Refusal::UnknownInvoice(number))?;
        if invoice.payment_received_at.is_some() {
            return Ok(());
        }
        let payment = self.store.get(GetPaymentBy(number, *txid)).await?;
        let payment = payment.map(|(_, record)| record);
        if payment.is_some_and(|it| it.state == TransactionState::Waiting) {
            return Err(Error::Waiting);
        }
        let rules = self.settings.payment_rules;
        let received = self.store.get(GetReceivedSum(number)).await?;
        if rules.in_any_place().due(invoice.satoshis, received) == 0 {
            // The payer has paid everything. The payment counts once it is mined.
            return Ok(());
        }
        let is_held = rules.late == LatePayments::Hold
            && payment.is_some_and(|it| it.at >= invoice.expires_at);
        match is_held {
            true => Err(Error::Late),
            false => Err(Error::Underpaid { due: rules.due(invoice.satoshis, received) }),
        }
    }

    /// Starts to offer a payment to the network, unless another payment of the same invoice is
    /// being offered.
    fn offer(
        self: &Arc<Self>,
        id: &str,
        offer: Offer,
        posted: &Arc<FormedTransaction>,
    ) -> Result<watch::Receiver<Option<Outcome>>, Error> {
        let txid = offer.transaction.txid;
        let (sender, outcome) = watch::channel(None);
        let broadcast = Broadcast { txid, outcome: outcome.clone() };
        let place = match self.broadcasts.begin(offer.invoice, broadcast) {
            Ok(place) => Some(place),
            Err(other) if other.txid == txid => return Ok(other.outcome),
            Err(_) if offer.is_known => None,
            Err(_) => return Err(Error::InFlight(id.to_owned())),
        };
        let (wallet, posted) = (Arc::clone(self), Arc::clone(posted));
        let id = id.to_owned();
        tokio::spawn(async move {
            let sent = wallet.note_and_send(&id, offer, posted.transaction()).await;
            let outcome = sent.map_err(Arc::new);
            drop(place);
            sender.send_replace(Some(outcome));
        });
        Ok(outcome)
    }

    async fn note_and_send(
        self: &Arc<Self>,
        id: &str,
        offer: Offer,
        transaction: &Transaction,
    ) -> Result<(), Error> {
        let deadline = Instant::now() + ELSEWHERE_PATIENCE;
        loop {
            let noted = self.store.execute(offer.clone()).await;
            if let Err(WalletStoreError::Store(_)) = noted {
                // It may be noted although the answer was lost.
                self.let_go_all(offer.claim);
            }
            match noted.map_err(|error| of_invoice(id, error))? {
                Offered::Before(_) => return Ok(()),
                Offered::Now(payment) => {
                    let held = self.offering(payment.number, offer.claim);
                    let sent = self.send_incoming(payment.number, transaction).await;
                    if sent.is_err() {
                        self.let_go(held);
                    }
                    return sent;
                }
                Offered::Elsewhere(payment) => {
                    if let Some(outcome) = self.outcome_elsewhere(payment.number, deadline).await? {
                        return outcome;
                    }
                }
            }
        }
    }

    /// Waits for what another process finds out about a payment that it offers. Returns `None` once
    /// no process offers it and its outcome is open.
    async fn outcome_elsewhere(
        &self,
        number: u64,
        deadline: Instant,
    ) -> Result<Option<Result<(), Error>>, Error> {
        loop {
            match self.store.get(GetRecord(number)).await?.map(|record| record.state) {
                Some(TransactionState::Offered) => {}
                Some(state) if !state.is_lost() => return Ok(Some(Ok(()))),
                _ => return Ok(Some(Err(refused_before()))),
            }
            if self.store.get(GetHolder(Task::Offering(number))).await?.is_none() {
                return Ok(None);
            }
            if Instant::now() >= deadline {
                let reason = "another server is still offering the payment to the network";
                return Err(Error::OutcomeUnknown(reason.to_owned()));
            }
            sleep(ELSEWHERE_PERIOD).await;
        }
    }

    /// Offers a payment that was left in flight to the network again, unless that is already being
    /// done.
    pub(crate) async fn resume_incoming(self: &Arc<Self>, number: u64, invoice: u64, txid: Txid) {
        let _resuming = self.resuming.acquire().await;
        let (sender, outcome) = watch::channel(None);
        let Ok(place) = self.broadcasts.begin(invoice, Broadcast { txid, outcome }) else { return };
        let outcome = self.send_if_free(number).await;
        if let Err(error) = &outcome {
            tracing::debug!("transaction {txid}: {error}");
        }
        drop(place);
        sender.send_replace(Some(outcome.map_err(Arc::new)));
    }

    /// Offers a payment again, unless another process does.
    async fn send_if_free(self: &Arc<Self>, number: u64) -> Result<(), Error> {
        let Some(held) = self.claim(Task::Offering(number)).await? else {
            let deadline = Instant::now() + ELSEWHERE_PATIENCE;
            let outcome = self.outcome_elsewhere(number, deadline).await?;
            return outcome.unwrap_or_else(|| Err(not_shown()));
        };
        let sent = self.send_if_offered(number).await;
        self.let_go(held);
        sent
    }

    async fn send_if_offered(&self, number: u64) -> Result<(), Error> {
        // The outcome may have become known since the payment was found to be open.
        match self.store.get(GetRecord(number)).await?.map(|record| record.state) {
            Some(TransactionState::Offered) => {}
            Some(state) if !state.is_lost() => return Ok(()),
            _ => return Err(refused_before()),
        }
        let transaction = self.transaction(number).await?;
        self.send_incoming(number, &transaction).await
    }

    /// Offers the transaction of a payment to the network, and records what the network shows.
    async fn send_incoming(&self, number: u64, transaction: &Transaction) -> Result<(), Error> {
        let ancestors = self.store.get(GetAncestors(number)).await?;
        let all = ancestors.iter().chain([transaction]);
        let node = self.node()?.receiving_of(all.map(|it| it.to_bytes().len()).sum());
        let refused_ancestor = self.show_ancestors(node, &ancestors).await?;
        self.notice_all(node, ancestors).await?;
        match show(node, transaction).await? {
            Shown::InMempool(entry) => self.note_in_mempool(node, number, entry).await,
            Shown::InBlock => {
                self.find_proof(node, number, &transaction.txid()).await?;
                // The block may have left the chain before its proof was found.
                let record = self.store.get(GetRecord(number)).await?;
                match record.is_some_and(|it| it.state == TransactionState::Offered) {
                    true => Err(not_shown()),
                    false => Ok(()),
                }
            }
            Shown::Refused(reason) => {
                self.store.execute(Refuse { transaction: number, now: self.now() }).await?;
                Err(Error::RefusedByNetwork(refused_ancestor.unwrap_or(reason)))
            }
            Shown::Nowhere => Err(not_shown()),
        }
    }

    /// Payments of an invoice, in the order of their arrival.
    pub async fn payments(&self, id: &str, query: PaymentQuery) -> Result<PaymentPage, Error> {
        let invoice = self.invoice(id).await?;
        Ok(self.store.list(GetIncoming(invoice.number, query)).await?)
    }

    /// The state of the payment of an invoice by this transaction.
    pub async fn payment_state(
        &self,
        id: &str,
        txid: Txid,
    ) -> Result<Option<IncomingState>, Error> {
        let invoice = self.invoice(id).await?;
        let payment = self.store.get(GetPaymentBy(invoice.number, txid)).await?;
        Ok(payment.map(|(_, record)| IncomingState::of(record.state)))
    }
}

fn refused_before() -> Error {
    Error::RefusedByNetwork("it was refused before".to_owned())
}
