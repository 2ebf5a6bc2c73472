//! Receiving a payment: the wallet checks it, records it and offers it to the network. The payment
//! counts once the network shows it.

pub(crate) mod ancestors;
mod beef;
mod broadcast;
mod came_along;
mod check;
mod counts;
mod judged_here;
mod payers_proof;
mod recent_tip;
mod turn;
mod unsent;

use std::sync::Arc;
use std::time::Duration;

use bsv_network::broadcasters::Urgency;
use bsv_network::{Shown, Sight, Verdict};
use bsv_tx::{FormedTransaction, Transaction, Txid};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

pub(crate) use self::broadcast::Broadcast;
pub use self::counts::NotTaken;
pub(crate) use self::recent_tip::RecentTip;
pub(crate) use self::turn::WaitingPayments;

use self::broadcast::{Outcome, outcome_of};
use self::turn::{ELSEWHERE_PERIOD, Turns};
use crate::dpp::Acknowledgement;
use crate::error::Error;
use crate::ledger::queries::{
    GetAncestors, GetIncoming, GetPaymentBy, GetStanding, PaymentStanding, StandingPayment,
};
use crate::ledger::{
    Asked, Notice, Noticed, Offer, Offered, Refusal, Refuse, ShownPlace, Sighting,
};
use crate::model::invoice_id::InvoiceId;
use crate::model::payment::{IncomingPayment, IncomingState, PaymentPage, PaymentQuery};
use crate::model::process::Task;
use crate::model::settlement::LatePayments;
use crate::model::time::Timestamp;
use crate::model::transaction::{TransactionRecord, TransactionState};
use crate::store::{WalletStore, WalletStoreError};
use crate::wallet::Wallet;
use crate::wallet::invoices::of_invoice;
use crate::wallet::shown::{DISPUTED, disputed, not_shown};
use crate::wallet::sources::unknown;

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
        let posted = check::read_transaction(transaction);
        if posted.is_err() {
            // An unknown invoice is the first thing that a payer must know.
            self.invoice(id).await?;
        }
        let posted = Arc::new(posted?);
        let txid = posted.transaction().txid();
        let parsed: InvoiceId = id.parse().map_err(Error::from)?;
        let number = self.keys.ids.number(&parsed);
        let mut turns = Turns::new(&self.waiting, transaction.len());
        loop {
            // It is looked up first. If it is over by then, the store tells its outcome.
            let broadcast = self.broadcasts.get(&number);
            let standing = self.store.get(GetStanding(number, txid)).await;
            let standing = standing.map_err(|error| of_invoice(id, error))?;
            if standing.invoice.id != parsed || standing.invoice.deleted_at.is_some() {
                return Err(Error::UnknownInvoice(id.to_owned()).into());
            }
            let taken = match (standing.payment, broadcast) {
                (Some(payment), _) if payment.record.state.spends() => {
                    let proven = self.note_payers_proof(number, &payment.record, &posted).await?;
                    let newer = match proven {
                        Some(standing) => Some(standing),
                        None => self.look_at_waiting(number, &payment.record).await?,
                    };
                    self.check_paid(newer.as_ref().unwrap_or(&standing)).map_err(Arc::new)
                }
                (_, Some(same)) if same.txid == txid => outcome_of(same.outcome).await,
                (_, other) => {
                    let in_flight = standing.in_flight.map(|it| it.record.txid);
                    let in_flight = other.map(|other| other.txid).or(in_flight);
                    self.offer(&standing, &posted, refund_to, in_flight).await
                }
            };
            let is_offered = standing.in_flight.is_some_and(|it| it.is_offered);
            match taken {
                Err(error)
                    if matches!(*error, Error::InFlight(_))
                        && turns.next(&self.broadcasts, number, is_offered).await => {}
                taken => return taken.map(|()| self.acknowledgement(id, txid)),
            }
        }
    }

    /// Asks services once more about a payment that waits: it may have come as an ancestor of another
    /// one, or there may be room for it by now. Returns where it and its invoice stand then.
    async fn look_at_waiting(
        &self,
        invoice: u64,
        record: &TransactionRecord,
    ) -> Result<Option<PaymentStanding>, Error> {
        let may_count = record.word.is_some() && !record.has_rival();
        if record.state != TransactionState::Waiting || !may_count {
            return Ok(None);
        }
        let payment = self.store.get(GetPaymentBy(invoice, record.txid)).await?;
        let Some((number, _)) = payment else { return Ok(None) };
        match self.look(&self.sources()?.receiving, number, &record.txid).await {
            Err(error @ Error::Store(_)) => Err(error),
            _ => Ok(Some(self.store.get(GetStanding(invoice, record.txid)).await?)),
        }
    }

    /// Counts of the payments that were not accepted.
    pub fn not_taken(&self) -> &NotTaken {
        &self.not_taken
    }

    /// Fails unless the invoice is paid. The network shows this payment of it.
    fn check_paid(&self, standing: &PaymentStanding) -> Result<(), Error> {
        let PaymentStanding { invoice, received, payment, .. } = standing;
        if invoice.payment_received_at.is_some() {
            return Ok(());
        }
        let uncounted = payment.filter(|it| it.is_uncounted).map_or(0, |it| it.record.satoshis);
        let payment = payment.map(|it| it.record);
        match payment.filter(|it| it.state == TransactionState::Waiting) {
            Some(waiting) if waiting.has_rival() => return Err(disputed()),
            Some(_) => return Err(Error::Waiting),
            None => {}
        }
        let rules = self.settings.payment_rules;
        let is_missing = |sent| rules.in_any_place().due(invoice.satoshis, *received) > sent;
        // A payer who has paid everything is done. The payment counts once it is mined, or deep enough.
        if !is_missing(0) {
            return Ok(());
        }
        let is_held = rules.late == LatePayments::Hold
            && payment.is_some_and(|it| it.at >= invoice.expires_at);
        match is_held {
            true => Err(Error::Late),
            false if !is_missing(uncounted) => Ok(()),
            false => {
                let due = rules.due(invoice.satoshis, *received).saturating_sub(uncounted);
                Err(Error::Underpaid { due })
            }
        }
    }

    /// Checks a payment and offers it to the network, unless another payment of the same invoice is
    /// being offered.
    async fn offer(
        self: &Arc<Self>,
        standing: &PaymentStanding,
        posted: &Arc<FormedTransaction>,
        refund_to: Option<&str>,
        in_flight: Option<Txid>,
    ) -> Outcome {
        let offer = self.offer_of(standing, posted, refund_to, in_flight).await?;
        let (id, txid) = (standing.invoice.id.to_string(), offer.transaction.txid);
        let (sender, outcome) = watch::channel(None);
        let broadcast = Broadcast { txid, outcome: outcome.clone() };
        let place = match self.broadcasts.begin(offer.invoice, broadcast) {
            Ok(place) => Some(place),
            Err(other) if other.txid == txid => return outcome_of(other.outcome).await,
            Err(_) if offer.is_known => None,
            Err(_) => return Err(Error::InFlight(id).into()),
        };
        let (wallet, posted) = (Arc::clone(self), Arc::clone(posted));
        tokio::spawn(async move {
            let sent = wallet.note_and_send(&id, offer, posted.transaction()).await;
            let outcome = sent.and_then(|standing| wallet.check_paid(&standing));
            drop(place);
            sender.send_replace(Some(outcome.map_err(Arc::new)));
        });
        outcome_of(outcome).await
    }

    async fn note_and_send(
        self: &Arc<Self>,
        id: &str,
        offer: Offer,
        transaction: &Transaction,
    ) -> Result<PaymentStanding, Error> {
        let (invoice, txid) = (offer.invoice, offer.transaction.txid);
        let deadline = Instant::now() + ELSEWHERE_PATIENCE;
        loop {
            let noted = self.store.execute(offer.clone()).await;
            if let Err(WalletStoreError::Store(_)) = noted {
                // It may be noted although the answer was lost.
                self.let_go_all(offer.claim);
            }
            match noted.map_err(|error| of_invoice(id, error))? {
                Offered::Before(_) => {
                    return Ok(self.store.get(GetStanding(invoice, txid)).await?);
                }
                Offered::Now(payment, ancestors) => {
                    let IncomingPayment { number, received_at, .. } = payment;
                    let held = self.offering(number, offer.claim);
                    let payment = (invoice, number, received_at);
                    let sent =
                        self.send_incoming(payment, transaction, ancestors, Urgency::Now).await;
                    if sent.is_err() {
                        self.let_go(held);
                    }
                    return sent;
                }
                Offered::Elsewhere(_) => {
                    if let Some(standing) = self.outcome_elsewhere(invoice, txid, deadline).await? {
                        return Ok(standing);
                    }
                }
            }
        }
    }

    /// Waits for what another process finds out about a payment that it offers. Returns `None` once
    /// no process offers it and its outcome is open.
    async fn outcome_elsewhere(
        &self,
        invoice: u64,
        txid: Txid,
        deadline: Instant,
    ) -> Result<Option<PaymentStanding>, Error> {
        loop {
            let standing = self.store.get(GetStanding(invoice, txid)).await?;
            match open_payment(&standing)? {
                None => return Ok(Some(standing)),
                Some(payment) if !payment.is_offered => return Ok(None),
                Some(_) => {}
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
        let sent = self.send_if_free(number, invoice, txid).await;
        let outcome = sent.and_then(|standing| self.check_paid(&standing));
        if let Err(error) = &outcome {
            tracing::debug!("transaction {txid}: {error}");
        }
        drop(place);
        sender.send_replace(Some(outcome.map_err(Arc::new)));
    }

    /// Offers a payment again, unless another process does.
    async fn send_if_free(
        self: &Arc<Self>,
        number: u64,
        invoice: u64,
        txid: Txid,
    ) -> Result<PaymentStanding, Error> {
        let Some(held) = self.claim(Task::Offering(number)).await? else {
            let deadline = Instant::now() + ELSEWHERE_PATIENCE;
            let standing = self.outcome_elsewhere(invoice, txid, deadline).await?;
            return standing.ok_or_else(not_shown);
        };
        let sent = async {
            // The outcome may have become known since the payment was found to be open.
            let standing = self.store.get(GetStanding(invoice, txid)).await?;
            let Some(payment) = open_payment(&standing)? else { return Ok(standing) };
            let ancestors = self.store.get(GetAncestors(number)).await?;
            let transaction = self.transaction(number).await?;
            let payment = (invoice, number, payment.record.at);
            self.send_incoming(payment, &transaction, ancestors, Urgency::Later).await
        };
        let sent = sent.await;
        self.let_go(held);
        sent
    }

    /// Offers the transaction of a payment to the network, and records what the network shows. The
    /// payment is the number of its invoice, that of the transaction, and when it came.
    async fn send_incoming(
        &self,
        (invoice, number, came_at): (u64, u64, Timestamp),
        transaction: &Transaction,
        ancestors: Vec<Transaction>,
        urgency: Urgency,
    ) -> Result<PaymentStanding, Error> {
        let txid = transaction.txid();
        let all = ancestors.iter().chain([transaction]);
        let len = all.map(|it| it.to_bytes().len()).sum();
        let source = &self.sources()?.receiving_of(len, urgency);
        let refused_ancestor = match source.takes_extended() {
            true => None,
            false => self.show_ancestors(source, &ancestors).await?,
        };
        self.notice_all(source, ancestors).await?;
        let posted = match source.takes_extended() {
            true => self.posted_form(number).await?,
            false => None,
        };
        if let Some(posted) = &posted
            && self.note_proof(number, posted).await?
        {
            return Ok(self.store.get(GetStanding(invoice, txid)).await?);
        }
        let package = self.package_of(source, transaction, posted.as_ref()).await?;
        let note = |place| {
            let noticed =
                Noticed { transaction: transaction.into(), place, came_at, ancestry: Vec::new() };
            let notice = Notice { shown: vec![noticed], now: self.now() };
            self.store.execute(Asked(notice, GetStanding(invoice, txid)))
        };
        let shown = source.show(&package).await.map_err(unknown)?;
        if let (Shown::Unmined(_) | Shown::Mined, Some(FormedTransaction::Beef(beef))) =
            (&shown, &posted)
        {
            self.notice_came_along(source, beef, came_at).await?;
        }
        match shown {
            Shown::Unmined(Sight { entry, evidence }) => {
                let is_fee_sufficient = self.is_entry_sufficient(source, entry).await?;
                let sighting = Sighting { is_fee_sufficient, evidence };
                Ok(note(ShownPlace::Mempool(sighting)).await?)
            }
            Shown::Mined => loop {
                let checked = self.checked_proof(source, &txid).await?.ok_or_else(not_shown)?;
                match note(ShownPlace::Block(checked)).await {
                    Err(WalletStoreError::Refused(Refusal::Reorganised)) => {}
                    noted => return Ok(noted?),
                }
            },
            Shown::Refused(Verdict { reason, is_fee_too_low, .. }) => {
                self.store.execute(Refuse { transaction: number, now: self.now() }).await?;
                match is_fee_too_low {
                    true => Err(Error::FeeRefused(reason)),
                    false => Err(Error::RefusedByNetwork(refused_ancestor.unwrap_or(reason))),
                }
            }
            Shown::Disputed { is_refused } => {
                self.note_rival(number).await?;
                if !is_refused {
                    return Err(disputed());
                }
                self.store.execute(Refuse { transaction: number, now: self.now() }).await?;
                Err(Error::RefusedByNetwork(DISPUTED.to_owned()))
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

/// The payment, if its outcome is open. Fails if it was refused.
fn open_payment(standing: &PaymentStanding) -> Result<Option<StandingPayment>, Error> {
    match standing.payment {
        Some(payment) if payment.record.state == TransactionState::Offered => Ok(Some(payment)),
        Some(payment) if !payment.record.state.is_lost() => Ok(None),
        _ => Err(Error::RefusedByNetwork("it was refused before".to_owned())),
    }
}
