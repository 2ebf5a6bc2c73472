//! Reserving coins for a payment, which is then signed and recorded.

use crate::ledger::attempts::{last_attempt, lasting_attempt};
use crate::ledger::coin_choice::Choice;
use crate::ledger::idempotency::Route;
use crate::ledger::rows::{Reservations, WalletStoreError, try_all};
use crate::ledger::{Books, Command, Refusal};
use crate::model::coin::{Change, Selection, Spending};
use crate::model::idempotency::IdempotencyKey;
use crate::model::outgoing::{OutgoingPayment, OutgoingPurpose};
use crate::model::process::Task;
use crate::model::receipt::ReceiptKey;
use crate::model::time::Timestamp;

/// Finds the payment that already answers a request and is not lost: the one that was made first
/// with its idempotency key, or the one to its URL. The key then stands for that payment.
#[derive(Clone, Debug)]
pub struct FindPayment {
    /// What the payment is for.
    pub purpose: OutgoingPurpose,
    /// The idempotency key of the request.
    pub idempotency: Option<IdempotencyKey>,
    /// The time.
    pub now: Timestamp,
}

impl Command for FindPayment {
    type Answer = Option<OutgoingPayment>;

    fn run(&self, books: &mut Books<'_>) -> Result<Self::Answer, WalletStoreError> {
        books.payment_before(&self.purpose, self.idempotency.as_ref(), self.now)
    }
}

/// Chooses coins for a payment and reserves them.
#[derive(Clone, Debug)]
pub struct Reserve {
    /// What the payment is for.
    pub purpose: OutgoingPurpose,
    /// What the coins must pay.
    pub spending: Spending,
    /// Whether coins of long transactions come last, because those transactions are sent along.
    pub prefers_short: bool,
    /// If the key is already known, the answer is the payment that was made first.
    pub idempotency: Option<IdempotencyKey>,
    /// The number under which the coins are reserved. Whoever does not get the answer lets go of
    /// them by it: see [`LetGoAll`](super::LetGoAll).
    pub claim: u64,
    /// The time.
    pub now: Timestamp,
}

/// Calculates what a payment would cost. Changes nothing.
#[derive(Clone, Debug)]
pub struct EstimateFee(pub Reserve);

impl Command for EstimateFee {
    /// The fee, in satoshis.
    type Answer = u64;

    fn run(&self, books: &mut Books<'_>) -> Result<u64, WalletStoreError> {
        let spending = &self.0.spending;
        let choice = books.choose_for(&self.0)?;
        let change = spending.change(choice.keys.len(), choice.total).unwrap_or_default();
        Ok(choice.total - spending.satoshis - change)
    }
}

/// The outcome of a command that reserves coins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reserved<P = OutgoingPayment, R = Reservation> {
    /// The payment was already made.
    Before(P),
    /// Coins are reserved for the payment.
    Now(R),
}

/// Reserved coins. The caller must [record](super::Record) them with the transaction that spends
/// them, or [let go](super::LetGoAll) of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// The number that the transaction will have.
    pub number: u64,
    /// The coins and the change.
    pub selection: Selection,
    /// The last payment for the same purpose. The choice of coins took this payment and earlier
    /// ones into account.
    pub previous: Option<u64>,
}

impl Command for Reserve {
    type Answer = Reserved;

    fn run(&self, books: &mut Books<'_>) -> Result<Reserved, WalletStoreError> {
        let key = self.idempotency.as_ref();
        if let Some(payment) = books.payment_before(&self.purpose, key, self.now)? {
            return Ok(Reserved::Before(payment));
        }
        let previous = last_attempt(&books.rows, &self.purpose)?;
        let choice = books.choose_for(self)?;
        let change = self.spending.change(choice.keys.len(), choice.total);
        let reservation = books.reserve(&choice, change, self.claim)?;
        Ok(Reserved::Now(Reservation { previous, ..reservation }))
    }
}

impl Books<'_> {
    /// Reserves coins under the number of a claim. `change` is the amount that comes back.
    pub(crate) fn reserve(
        &mut self,
        choice: &Choice,
        change: Option<u64>,
        claim: u64,
    ) -> Result<Reservation, WalletStoreError> {
        let change = match change {
            Some(satoshis) => Some(Change { satoshis, key: self.take_change_key()? }),
            None => None,
        };
        self.figures.last_transaction += 1;
        let number = self.figures.last_transaction;
        let coins = try_all(&choice.keys, |key| {
            let coin = self.coin(*key)?;
            self.set_holder(*key, Some(number)).map(|()| coin)
        })?;
        self.rows.put::<Reservations>(number, &choice.keys)?;
        self.claim(Task::Spending(number), claim)?;
        let selection = Selection { coins, change };
        Ok(Reservation { number, selection, previous: None })
    }

    /// Chooses coins for a payment, beginning with those that its purpose must spend.
    fn choose_for(&self, asked: &Reserve) -> Result<Choice, WalletStoreError> {
        let Reserve { purpose, spending, prefers_short, now, .. } = asked;
        let mut first = self.coins_of_earlier_attempts(purpose)?;
        if let OutgoingPurpose::Refund { invoice, .. } = purpose {
            first.extend(self.coins_of_refund(*invoice, spending.satoshis, *now)?);
        }
        let first: Vec<_> = first.into_iter().collect();
        match prefers_short {
            true => enough(spending, self.choose_short(spending, &first)?),
            false => self.choose_enough(spending, &first),
        }
    }

    /// Chooses coins, including those of `first`. Refuses if all coins are too little.
    pub(crate) fn choose_enough(
        &self,
        spending: &Spending,
        first: &[ReceiptKey],
    ) -> Result<Choice, WalletStoreError> {
        enough(spending, self.choose(spending, first)?)
    }

    /// The payment that already answers a request and is not lost: the one that was made first with
    /// its idempotency key, or the last one to its URL. The key then stands for that payment.
    pub(crate) fn payment_before(
        &mut self,
        purpose: &OutgoingPurpose,
        idempotency: Option<&IdempotencyKey>,
        now: Timestamp,
    ) -> Result<Option<OutgoingPayment>, WalletStoreError> {
        let Some(route) = Route::of_purpose(purpose) else { return Ok(None) };
        if let Some((number, is_same_request)) = self.remembered(route, idempotency, now)?
            && let Some(payment) = self.lasting_payment(number)?
        {
            return match is_same_request {
                true => Ok(Some(payment)),
                false => Err(Refusal::KeyReused.into()),
            };
        }
        if purpose.url().is_none() {
            return Ok(None);
        }
        let payment = lasting_attempt(&self.rows, purpose)?;
        if let Some(payment) = &payment {
            self.remember(route, idempotency, payment.number, now)?;
        }
        Ok(payment)
    }

    fn lasting_payment(&self, number: u64) -> Result<Option<OutgoingPayment>, WalletStoreError> {
        Ok(Some(self.outgoing_payment(number)?).filter(OutgoingPayment::lasts))
    }
}

/// Refuses if all coins are too little.
fn enough(spending: &Spending, choice: Result<Choice, u64>) -> Result<Choice, WalletStoreError> {
    let needed = spending.needed(1);
    Ok(choice.map_err(|spendable| Refusal::InsufficientFunds { needed, spendable })?)
}
