//! The network or the payee refuses a payment.

use crate::ledger::rows::Order::Descending;
use crate::ledger::rows::{
    Ancestors, Incoming, Outgoing, RawTransactions, Receipts, Refunds, TransactionNumbers,
    Transactions, WalletStoreError, try_all,
};
use crate::ledger::{Books, Command, Refusal};
use crate::model::outgoing::OutgoingPayment;
use crate::model::time::Timestamp;
use crate::model::transaction::{Purpose, TransactionState};

/// The network refuses a payment to the wallet that is being offered. After that the invoice can be
/// paid again.
#[derive(Clone, Copy, Debug)]
pub struct Refuse {
    /// The number of the transaction.
    pub transaction: u64,
    /// The time.
    pub now: Timestamp,
}

/// How many refused payments among the newest of an invoice are kept, in case the network shows one
/// later.
const MAX_REFUSED: usize = 4;
/// How many of the newest payments of an invoice are searched for refused ones. Strangers may send
/// any number.
const MAX_SEARCHED: usize = 100;
/// The longest refused payment that is kept, in bytes, together with the ancestors that came with
/// it. A limit keeps attackers from filling the disk.
const MAX_REFUSED_LEN: usize = 64 << 10;

impl Command for Refuse {
    type Answer = ();

    fn run(&self, books: &mut Books<'_>) -> Result<(), WalletStoreError> {
        let number = self.transaction;
        let record = books.known_transaction(number)?;
        if record.state != TransactionState::Offered || !record.purpose.is_from_outside() {
            return Err(Refusal::NotInFlight(number).into());
        }
        let at = books.next_event_at(self.now);
        // The payment does not become displaced here: only the chain can show that.
        let state = match record.was_seen() {
            true => TransactionState::Invalid,
            false => TransactionState::Refused,
        };
        books.change_state(number, state, at)?;
        match record.purpose {
            Purpose::Incoming(invoice)
                if state == TransactionState::Refused
                    && !books.is_worth_keeping(invoice, number)? =>
            {
                books.forget_refused(number)
            }
            _ => Ok(()),
        }
    }
}

/// The payee refuses a payment by the wallet that the network has not shown. Its coins can be spent
/// again if the network does not have it. Otherwise they stay reserved until a cancellation spends
/// one of them.
#[derive(Clone, Debug)]
pub struct RefuseByPayee {
    /// The number of the payment.
    pub payment: u64,
    /// What the payee says.
    pub reason: String,
    /// Whether it is certain that the network does not have the payment.
    pub is_absent: bool,
    /// The time.
    pub now: Timestamp,
}

impl Command for RefuseByPayee {
    type Answer = OutgoingPayment;

    fn run(&self, books: &mut Books<'_>) -> Result<OutgoingPayment, WalletStoreError> {
        let mut payment = books.known_payment(self.payment)?;
        let number = payment.transaction;
        // A payee that agreed earlier may still have the transaction mined.
        if books.transaction(number)?.state == TransactionState::Offered
            && !books.is_being_cancelled(&payment)?
        {
            payment.memo.clone_from(&self.reason);
            payment.is_refused = !self.is_absent;
            books.rows.put::<Outgoing>(self.payment, &payment)?;
            if self.is_absent {
                let at = books.next_event_at(self.now);
                books.lose(number, TransactionState::Refused, at)?;
            }
        }
        books.outgoing_payment(self.payment)
    }
}

impl Books<'_> {
    fn is_worth_keeping(&self, invoice: u64, number: u64) -> Result<bool, WalletStoreError> {
        let raw = self.rows.get::<RawTransactions>(&number)?;
        let ancestors = self.rows.get::<Ancestors>(&number)?.unwrap_or_default();
        if raw.is_none_or(|raw| raw.len() + ancestors.len() > MAX_REFUSED_LEN) {
            return Ok(false);
        }
        let all = (invoice, 0)..=(invoice, u64::MAX);
        let payments = self.rows.first::<Incoming>(all, Descending, MAX_SEARCHED)?;
        let are_refused = try_all(payments, |((_, other), _)| {
            Ok::<_, WalletStoreError>(self.transaction(other)?.state == TransactionState::Refused)
        })?;
        Ok(are_refused.into_iter().filter(|is_refused| *is_refused).count() <= MAX_REFUSED)
    }

    /// Deletes a payment to the wallet that the network has never shown.
    pub(crate) fn forget_refused(&mut self, number: u64) -> Result<(), WalletStoreError> {
        for (key, receipt) in self.made_by(number)? {
            self.rows.remove::<Receipts>(key)?;
            if let Some(invoice) = self.invoice_of(receipt.key)? {
                self.rows.remove::<Incoming>((invoice, number))?;
            }
        }
        if let Purpose::Incoming(invoice) = self.transaction(number)?.purpose {
            self.rows.remove::<Incoming>((invoice, number))?;
        }
        let txid = self.transaction(number)?.txid;
        self.rows.remove::<TransactionNumbers>((txid, number))?;
        self.rows.remove::<Transactions>(number)?;
        self.rows.remove::<RawTransactions>(number)?;
        self.rows.remove::<Refunds>(number)?;
        self.unfollow(number)
    }
}
