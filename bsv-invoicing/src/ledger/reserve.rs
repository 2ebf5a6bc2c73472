//! Coins are reserved for a payment, which is then signed and recorded.

use crate::ledger::coin_choice::Choice;
use crate::ledger::idempotency::Route;
use crate::ledger::queries::{lasting_attempt, url_hash};
use crate::ledger::rows::{OutgoingByUrl, Reservations, Rows};
use crate::ledger::{Books, Command, Refusal};
use crate::model::coin::{Change, Selection, Spending};
use crate::model::idempotency::IdempotencyKey;
use crate::model::payment::OutgoingPayment;
use crate::model::time::Timestamp;

/// Finds the payment that a request stands for, if there is one that was not in vain: the one that was made
/// first with its key, or the one to its URL, which its key stands for from now on.
#[derive(Clone, Debug)]
pub struct FindPayment {
    /// The payment URL.
    pub url: String,
    /// What stands for the request.
    pub idempotency: Option<IdempotencyKey>,
    /// The time.
    pub now: Timestamp,
}

impl Command for FindPayment {
    type Answer = Option<OutgoingPayment>;

    fn run<R: Rows>(&self, books: &mut Books<R>) -> Result<Self::Answer, R::Error> {
        books.payment_before(&self.url, self.idempotency.as_ref(), self.now)
    }
}

/// Chooses coins for a payment to a URL, and reserves them.
#[derive(Clone, Debug)]
pub struct Reserve {
    /// The payment URL.
    pub url: String,
    /// What is to be paid.
    pub spending: Spending,
    /// If this is known already, the payment that was made first is answered.
    pub idempotency: Option<IdempotencyKey>,
    /// The time.
    pub now: Timestamp,
}

/// What a payment to a URL would cost. Changes nothing.
#[derive(Clone, Debug)]
pub struct EstimateFee {
    /// The payment URL.
    pub url: String,
    /// What would be paid.
    pub spending: Spending,
}

impl Command for EstimateFee {
    /// The fee, in satoshis.
    type Answer = u64;

    fn run<R: Rows>(&self, books: &mut Books<R>) -> Result<u64, R::Error> {
        let choice = books.choose_for(&url_hash(&self.url), &self.spending)?;
        let change = self.spending.change(choice.keys.len(), choice.total).unwrap_or_default();
        Ok(choice.total - self.spending.satoshis - change)
    }
}

/// What became of a payment for which coins were to be reserved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reserved {
    /// It was made before.
    Before(Box<OutgoingPayment>),
    /// Coins are reserved for it.
    Now(Reservation),
}

/// Coins that are reserved. They are to be [recorded](super::Record) with the transaction that spends
/// them, or [released](super::Release).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// The number that the transaction will have.
    pub number: u64,
    /// The coins, and what comes back of them.
    pub selection: Selection,
    /// The last payment to the URL. Its coins, and those of the ones before, decided which coins these are.
    pub previous: Option<u64>,
}

impl Command for Reserve {
    type Answer = Reserved;

    fn run<R: Rows>(&self, books: &mut Books<R>) -> Result<Reserved, R::Error> {
        let key = self.idempotency.as_ref();
        if let Some(payment) = books.payment_before(&self.url, key, self.now)? {
            return Ok(Reserved::Before(Box::new(payment)));
        }
        let url_hash = url_hash(&self.url);
        let previous = books.rows.get::<OutgoingByUrl>(&url_hash)?;
        let choice = books.choose_for(&url_hash, &self.spending)?;
        let change = match self.spending.change(choice.keys.len(), choice.total) {
            Some(satoshis) => Some(Change { satoshis, key: books.take_change_key()? }),
            None => None,
        };
        books.figures.last_transaction += 1;
        let number = books.figures.last_transaction;
        let mut coins = Vec::with_capacity(choice.keys.len());
        for key in &choice.keys {
            coins.push(books.coin(*key)?);
            books.set_holder(*key, Some(number))?;
        }
        books.rows.put::<Reservations>(number, &choice.keys)?;
        let selection = Selection { coins, change };
        Ok(Reserved::Now(Reservation { number, selection, previous }))
    }
}

impl<R: Rows> Books<R> {
    /// Chooses coins for a payment to the URL of this hash, those of earlier attempts first.
    fn choose_for(&self, url_hash: &[u8; 32], spending: &Spending) -> Result<Choice, R::Error> {
        let first = self.coins_of_earlier_attempts(url_hash)?;
        let choice = self.choose(spending, &first)?.map_err(|spendable| {
            Refusal::InsufficientFunds { needed: spending.needed(1), spendable }
        })?;
        Ok(choice)
    }

    /// The payment that a request stands for, if there is one that was not in vain: the one that was made
    /// first with its key, or the last one to its URL, which its key stands for from now on.
    pub(crate) fn payment_before(
        &mut self,
        url: &str,
        idempotency: Option<&IdempotencyKey>,
        now: Timestamp,
    ) -> Result<Option<OutgoingPayment>, R::Error> {
        if let Some((number, is_same_request)) = self.remembered(Route::Pay, idempotency, now)?
            && let Some(payment) = self.lasting_payment(number)?
        {
            return match is_same_request {
                true => Ok(Some(payment)),
                false => Err(Refusal::KeyReused.into()),
            };
        }
        let payment = self.lasting_attempt(url)?;
        if let Some(payment) = &payment {
            self.remember(Route::Pay, idempotency, payment.number, now)?;
        }
        Ok(payment)
    }

    /// The payment to this URL that was not in vain. It need not be the last one: the network may have shown
    /// an earlier one after all.
    fn lasting_attempt(&self, url: &str) -> Result<Option<OutgoingPayment>, R::Error> {
        lasting_attempt(&self.rows, url)
    }

    fn lasting_payment(&self, number: u64) -> Result<Option<OutgoingPayment>, R::Error> {
        Ok(Some(self.outgoing_payment(number)?).filter(|payment| payment.state.lasts()))
    }
}
