//! A payment by the wallet is signed, and is going to be posted to its payee.

use bsv_tx::Transaction;

use crate::ledger::events::EventCode;
use crate::ledger::idempotency::Route;
use crate::ledger::queries::url_hash;
use crate::ledger::rows::{Messages, Outgoing, OutgoingByUrl, Reservations, Rows};
use crate::ledger::{Books, Command, Refusal, Reservation};
use crate::model::idempotency::IdempotencyKey;
use crate::model::payment::{OutgoingPayment, OutgoingRecord};
use crate::model::receipt::{Receipt, ReceiptKey};
use crate::model::time::Timestamp;
use crate::model::transaction::{EncodedTransaction, Purpose};

/// Notes a payment by the wallet, with the transaction that spends coins that were reserved for it, before
/// it is posted.
#[derive(Clone, Debug)]
pub struct Record {
    /// What was reserved.
    pub reservation: Reservation,
    /// The transaction. Its change, if there is any, is the last output.
    pub transaction: Transaction,
    /// What the payee is sent.
    pub message: Vec<u8>,
    /// The payment URL.
    pub url: String,
    /// What the payee gets, in satoshis.
    pub satoshis: u64,
    /// Until when the payee takes it.
    pub expires_at: Timestamp,
    /// What stands for the request.
    pub idempotency: Option<IdempotencyKey>,
    /// The time.
    pub now: Timestamp,
}

impl Command for Record {
    type Answer = OutgoingPayment;

    fn run<R: Rows>(&self, books: &mut Books<R>) -> Result<OutgoingPayment, R::Error> {
        let Reservation { number: transaction, selection, previous } = &self.reservation;
        let reserved = books.rows.get::<Reservations>(transaction)?;
        let keys = reserved.ok_or(Refusal::NotReserved(*transaction))?;
        let url_hash = url_hash(&self.url);
        let last = books.rows.get::<OutgoingByUrl>(&url_hash)?;
        if let Some(other) = last.filter(|last| Some(*last) != *previous) {
            // It was recorded meanwhile, and these coins do not keep it from being mined.
            return Err(Refusal::EarlierAttempt(other).into());
        }
        let at = books.next_event_at(self.now);
        books.figures.last_payment += 1;
        let number = books.figures.last_payment;
        let purpose = Purpose::Outgoing(number);
        let encoded = EncodedTransaction::from(&self.transaction);
        books.put_transaction(*transaction, &encoded, purpose, self.satoshis, at)?;
        if let Some(change) = selection.change {
            let vout = self.transaction.outputs.len() - 1;
            let vout = u32::try_from(vout).expect("a payment has few outputs");
            let receipt = Receipt { satoshis: change.satoshis, key: change.key, spender: None };
            books.add_receipt(ReceiptKey { maker: *transaction, vout }, &receipt)?;
        }
        for key in keys {
            books.add_spend(*transaction, key)?;
        }
        books.rows.remove::<Reservations>(*transaction)?;
        let total: u64 = selection.coins.iter().map(|coin| coin.satoshis).sum();
        let change = selection.change.map_or(0, |change| change.satoshis);
        let record = OutgoingRecord {
            transaction: *transaction,
            cancellation: None,
            previous: last,
            url: self.url.clone(),
            satoshis: self.satoshis,
            fee: total - self.satoshis - change,
            created_at: at,
            expires_at: self.expires_at,
            memo: String::new(),
            channel: None,
        };
        books.rows.put::<Outgoing>(number, &record)?;
        books.rows.put::<Messages>(number, &self.message)?;
        books.rows.put::<OutgoingByUrl>(url_hash, &number)?;
        books.append_event(at, EventCode::OutgoingStarted, number)?;
        books.remember(Route::Pay, self.idempotency.as_ref(), number, self.now)?;
        books.outgoing_payment(number)
    }
}
