//! Recording a signed payment by the wallet before it leaves.

use bsv_tx::Transaction;

use crate::ledger::attempts::{last_attempt, url_hash};
use crate::ledger::idempotency::Route;
use crate::ledger::rows::{
    LastRefunds, Messages, Outgoing, OutgoingByUrl, PostingUrls, Reservations, WalletStoreError,
};
use crate::ledger::{Books, Command, Refusal, Reservation};
use crate::model::event::EventKind;
use crate::model::idempotency::IdempotencyKey;
use crate::model::outgoing::{OutgoingPayment, OutgoingPurpose, OutgoingRecord, Posting};
use crate::model::receipt::{NewReceipt, ReceiptKey};
use crate::model::time::Timestamp;
use crate::model::transaction::{EncodedTransaction, Purpose};

/// Records a payment by the wallet before it leaves. Its transaction spends the coins that were
/// reserved for it.
#[derive(Clone, Debug)]
pub struct Record {
    /// The payment.
    pub payment: NewPayment,
    /// What is posted to the payee, if a payment URL is paid.
    pub posting: Option<Posting>,
    /// The idempotency key of the request.
    pub idempotency: Option<IdempotencyKey>,
    /// The time.
    pub now: Timestamp,
}

/// A signed payment.
#[derive(Clone, Debug)]
pub struct NewPayment {
    /// The reserved coins.
    pub reservation: Reservation,
    /// The transaction. If there is change, it is the last output.
    pub transaction: Transaction,
    /// What it is for.
    pub purpose: OutgoingPurpose,
    /// The amount that the payee gets, in satoshis.
    pub satoshis: u64,
    /// Until when the payee accepts it, if the payee says so.
    pub expires_at: Option<Timestamp>,
}

impl Command for Record {
    type Answer = OutgoingPayment;

    fn run(&self, books: &mut Books<'_>) -> Result<OutgoingPayment, WalletStoreError> {
        let Self { payment, posting, idempotency, now } = self;
        let Reservation { number: transaction, previous, .. } = payment.reservation;
        let keys = books.reserved(transaction)?;
        let last = last_attempt(&books.rows, &payment.purpose)?;
        if let Some(other) = last.filter(|last| Some(*last) != previous) {
            // The other payment was recorded meanwhile, and these coins do not keep it from being
            // mined.
            return Err(Refusal::EarlierAttempt(other).into());
        }
        let at = books.next_event_at(*now);
        let number = books.add_payment(payment, keys, at)?;
        if let Some(Posting { url, body }) = posting {
            books.rows.put::<Messages>(number, body)?;
            if let Some(url) = url {
                books.rows.put::<PostingUrls>(number, url)?;
            }
        }
        match &payment.purpose {
            OutgoingPurpose::Url(url) => books.rows.put::<OutgoingByUrl>(url_hash(url), &number)?,
            OutgoingPurpose::Refund { invoice, .. } => {
                books.rows.put::<LastRefunds>(*invoice, &number)?;
                let refund = books.payment(number)?;
                let before = books.count_refund(*invoice, (number, &refund), true)?;
                books.settle_anew(*invoice, before, at)?;
            }
            OutgoingPurpose::Withdrawal(_) | OutgoingPurpose::Consolidation => {}
        }
        if let Some(route) = Route::of_purpose(&payment.purpose) {
            books.remember(route, idempotency.as_ref(), number, *now)?;
        }
        books.outgoing_payment(number)
    }

    fn weight(&self) -> usize {
        self.payment.transaction.to_bytes().len()
            + self.posting.as_ref().map_or(0, |it| it.body.len())
    }
}

impl Books<'_> {
    /// The receipts that are reserved under this number. Refused if there is no such reservation.
    pub(crate) fn reserved(&self, number: u64) -> Result<Vec<ReceiptKey>, WalletStoreError> {
        let reserved = self.rows.get::<Reservations>(&number)?;
        Ok(reserved.ok_or(Refusal::NotReserved(number))?)
    }

    /// Stores a payment that spends these reserved receipts. Returns its number.
    pub(crate) fn add_payment(
        &mut self,
        payment: &NewPayment,
        keys: Vec<ReceiptKey>,
        at: Timestamp,
    ) -> Result<u64, WalletStoreError> {
        let NewPayment { reservation, transaction, purpose, satoshis, expires_at } = payment;
        let Reservation { number: transaction_number, selection, previous } = reservation;
        self.figures.last_payment += 1;
        let number = self.figures.last_payment;
        let encoded = EncodedTransaction::from(transaction);
        let of = Purpose::Outgoing(number);
        self.put_transaction(*transaction_number, &encoded, of, *satoshis, at)?;
        if let Some(change) = selection.change {
            let vout = transaction.outputs.len() - 1;
            let vout = u32::try_from(vout).expect("a payment has few outputs");
            let receipt = NewReceipt { vout, satoshis: change.satoshis, key: change.key };
            self.add_receipts(*transaction_number, &[receipt.of(*transaction_number)])?;
            self.watch_change(&transaction.outputs[vout as usize].locking_script, change)?;
        }
        for key in keys {
            self.add_spend(*transaction_number, key)?;
        }
        self.end_reservation(*transaction_number)?;
        let record = OutgoingRecord {
            transaction: *transaction_number,
            cancellation: None,
            previous: *previous,
            purpose: purpose.clone(),
            satoshis: *satoshis,
            fee: selection.cost() - satoshis,
            created_at: at,
            expires_at: *expires_at,
            memo: String::new(),
            channel: None,
            surplus: self.surplus_sent(purpose, *satoshis)?,
            is_refused: false,
        };
        self.rows.add::<Outgoing>(number, &record)?;
        self.append_event(at, EventKind::OutgoingStarted, number)?;
        Ok(number)
    }
}
