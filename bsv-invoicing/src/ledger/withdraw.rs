//! Withdrawals: the wallet's owner sends money to an address or a script.

use crate::ledger::cancel::outgoing_payment;
use crate::ledger::coin_choice::{Choice, MAX_INPUTS};
use crate::ledger::idempotency::Route;
use crate::ledger::rows::Order::Descending;
use crate::ledger::rows::{
    Damaged, Engine, Outgoing, RowsOf, WalletStoreError, Withdrawals, try_all,
};
use crate::ledger::{Books, Command, NewPayment, Refusal, Reservation, Reserved};
use crate::model::coin::{Spending, Trust, smallest_output};
use crate::model::idempotency::IdempotencyKey;
use crate::model::outgoing::OutgoingPurpose;
use crate::model::time::Timestamp;
use crate::model::withdrawal::{Withdrawal, WithdrawalAmount, WithdrawalCost, WithdrawalRecord};

/// How many transactions a withdrawal has at most.
const MAX_PAYMENTS: usize = 20;

/// Chooses coins for a withdrawal and reserves them.
#[derive(Clone, Debug)]
pub struct ReserveWithdrawal {
    /// How much to send.
    pub amount: WithdrawalAmount,
    /// The size of the output that gets it, in bytes.
    pub output_bytes: u64,
    /// The fee, in satoshis per 1000 bytes.
    pub fee_rate: u64,
    /// If the key is already known, the answer is the withdrawal that was made first.
    pub idempotency: Option<IdempotencyKey>,
    /// The number under which the coins are reserved: see [`LetGoAll`](super::LetGoAll).
    pub claim: u64,
    /// The time.
    pub now: Timestamp,
}

/// The outcome of [`ReserveWithdrawal`]. There is one reservation for each transaction, with what the
/// transaction sends and costs.
pub type ReservedWithdrawal = Reserved<Withdrawal, Vec<(Reservation, WithdrawalCost)>>;

impl Command for ReserveWithdrawal {
    type Answer = ReservedWithdrawal;

    fn run(&self, books: &mut Books<'_>) -> Result<ReservedWithdrawal, WalletStoreError> {
        let key = self.idempotency.as_ref();
        if let Some(number) = books.first_answer(Route::Withdrawals, key, self.now)? {
            return Ok(ReservedWithdrawal::Before(known_withdrawal(&books.rows, number)?));
        }
        let mut reserved = Vec::new();
        for (choice, change, cost) in books.plan_withdrawal(self)? {
            reserved.push((books.reserve(&choice, change, self.claim)?, cost));
        }
        Ok(ReservedWithdrawal::Now(reserved))
    }
}

/// Calculates what a withdrawal would cost. Changes nothing.
#[derive(Clone, Debug)]
pub struct EstimateWithdrawal(pub ReserveWithdrawal);

impl Command for EstimateWithdrawal {
    /// What each of its transactions sends and costs.
    type Answer = Vec<WithdrawalCost>;

    fn run(&self, books: &mut Books<'_>) -> Result<Self::Answer, WalletStoreError> {
        Ok(books.plan_withdrawal(&self.0)?.into_iter().map(|(_, _, cost)| cost).collect())
    }
}

/// Records a withdrawal with its transactions before they leave.
#[derive(Clone, Debug)]
pub struct RecordWithdrawal {
    /// The signed payments. The command sets their purpose.
    pub payments: Vec<NewPayment>,
    /// The address, or the script in hex, that the money goes to.
    pub to: String,
    /// The owner's own reference.
    pub reference: Option<String>,
    /// The idempotency key of the request.
    pub idempotency: Option<IdempotencyKey>,
    /// The time.
    pub now: Timestamp,
}

impl Command for RecordWithdrawal {
    type Answer = Withdrawal;

    fn run(&self, books: &mut Books<'_>) -> Result<Withdrawal, WalletStoreError> {
        let mut reserved = Vec::new();
        for payment in &self.payments {
            reserved.push(books.reserved(payment.reservation.number)?);
        }
        let at = books.next_event_at(self.now);
        let last = books.rows.first::<Withdrawals>(.., Descending, 1)?;
        let number = last.first().map_or(0, |(number, _)| *number) + 1;
        let record = WithdrawalRecord {
            to: self.to.clone(),
            reference: self.reference.clone(),
            first_payment: books.figures.last_payment + 1,
            payments: self.payments.len() as u64,
            created_at: at,
        };
        for (payment, keys) in self.payments.iter().zip(reserved) {
            let purpose = OutgoingPurpose::Withdrawal(number);
            books.add_payment(&NewPayment { purpose, ..payment.clone() }, keys, at)?;
        }
        books.rows.add::<Withdrawals>(number, &record)?;
        books.remember(Route::Withdrawals, self.idempotency.as_ref(), number, self.now)?;
        withdrawal(&books.rows, number, record)
    }
}

/// The coins of a transaction, its change, and what it sends and costs.
type Part = (Choice, Option<u64>, WithdrawalCost);

impl Books<'_> {
    fn plan_withdrawal(&self, asked: &ReserveWithdrawal) -> Result<Vec<Part>, WalletStoreError> {
        let ReserveWithdrawal { amount, output_bytes, fee_rate, .. } = *asked;
        let spending = |satoshis| Spending { satoshis, output_bytes, fee_rate };
        match amount {
            WithdrawalAmount::Satoshis(satoshis) => {
                let spending = spending(satoshis);
                let choice = self.choose_enough(&spending, &[])?;
                let change = spending.change(choice.keys.len(), choice.total);
                let fee = choice.total - satoshis - change.unwrap_or_default();
                Ok(vec![(choice, change, WithdrawalCost { satoshis, fee })])
            }
            WithdrawalAmount::All => self.plan_all(&spending(0)),
        }
    }

    /// Plans to send all sure coins, in as many transactions as that takes. Coins that cannot pay
    /// for their transaction stay.
    fn plan_all(&self, spending: &Spending) -> Result<Vec<Part>, WalletStoreError> {
        let most = MAX_PAYMENTS * MAX_INPUTS;
        let coins = self.largest(Trust::Sure, spending.fee_rate, &[], most + 1)?;
        if coins.len() > most {
            return Err(Refusal::TooManyCoins(most).into());
        }
        let smallest = smallest_output(spending.fee_rate);
        let mut parts = Vec::new();
        for coins in coins.chunks(MAX_INPUTS) {
            let mut choice = Choice::default();
            coins.iter().for_each(|(satoshis, key)| choice.add(*key, *satoshis));
            let fee = spending.needed(choice.keys.len());
            let satoshis = choice.total.saturating_sub(fee);
            if satoshis >= smallest {
                parts.push((choice, None, WithdrawalCost { satoshis, fee }));
            }
        }
        if parts.is_empty() {
            let needed = spending.needed(1).saturating_add(smallest);
            let spendable = coins.iter().map(|(satoshis, _)| satoshis).sum();
            return Err(Refusal::InsufficientFunds { needed, spendable }.into());
        }
        Ok(parts)
    }
}

impl Books<'_> {
    /// Whether the network has taken all payments of a withdrawal.
    pub(crate) fn is_settled(&self, number: u64) -> Result<bool, WalletStoreError> {
        let Some(record) = self.rows.get::<Withdrawals>(&number)? else { return Ok(false) };
        for (_, payment) in payments_of(&self.rows, &record)? {
            if !self.transaction(payment.transaction)?.state.counts() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The withdrawal with this number. The store is damaged if there is none.
fn known_withdrawal(rows: &dyn Engine, number: u64) -> Result<Withdrawal, WalletStoreError> {
    let record = rows.get::<Withdrawals>(&number)?;
    withdrawal(rows, number, record.ok_or_else(|| Damaged::missing("a withdrawal"))?)
}

/// The payments of a withdrawal.
pub(crate) fn payments_of(
    rows: &dyn Engine,
    record: &WithdrawalRecord,
) -> Result<RowsOf<Outgoing>, WalletStoreError> {
    let WithdrawalRecord { first_payment, payments, .. } = *record;
    rows.range::<Outgoing>(first_payment..first_payment.saturating_add(payments))
}

/// A withdrawal, as callers see it.
pub(crate) fn withdrawal(
    rows: &dyn Engine,
    number: u64,
    record: WithdrawalRecord,
) -> Result<Withdrawal, WalletStoreError> {
    let payments = payments_of(rows, &record)?;
    let WithdrawalRecord { to, reference, created_at, .. } = record;
    let payments = try_all(payments, |(number, it)| outgoing_payment(rows, number, it))?;
    Ok(Withdrawal { number, to, reference, created_at, payments })
}
