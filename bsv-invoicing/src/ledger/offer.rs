//! A payment of an invoice has arrived. The wallet records it and then offers it to the network.

use std::collections::BTreeSet;

use bsv_tx::Transaction;

use crate::ledger::notice::{payments_by, view};
use crate::ledger::queries::GetAncestors;
use crate::ledger::rows::{
    Ancestors, FollowedTransactions, InFlight, Invoices, RawTransactions, Refunds,
    TransactionNumbers, Transactions, WalletStoreError,
};
use crate::ledger::{Books, Command, Query, Refusal};
use crate::model::invoice::InvoiceState;
use crate::model::payment::IncomingPayment;
use crate::model::process::Task;
use crate::model::receipt::{NewReceipt, ReceiptKey};
use crate::model::time::Timestamp;
use crate::model::transaction::{
    EncodedTransaction, FollowedUntil, Purpose, RawBytes, ShownAs, TransactionRecord,
    TransactionState,
};

/// Records a payment of an invoice before the wallet offers it to the network. At most one payment
/// of an invoice is offered at a time. A payment that the network already has is recorded in any
/// case.
#[derive(Clone, Debug)]
pub struct Offer {
    /// The number of the invoice.
    pub invoice: u64,
    /// The transaction.
    pub transaction: EncodedTransaction,
    /// The encoded unconfirmed ancestors that the payer has sent, parents before their children. If
    /// nodes forget them, nobody else may have them.
    pub ancestors: Vec<u8>,
    /// Its outputs that pay scripts of the wallet.
    pub receipts: Vec<NewReceipt>,
    /// Where the payer wants refunds.
    pub refund_to: Option<String>,
    /// Whether the network already has it. Such a payment is recorded whatever it pays and whenever
    /// it comes.
    pub is_known: bool,
    /// Whether services, and no node, will tell of it, so that its rivals must be found.
    pub may_have_rivals: bool,
    /// Whether it is proven that all coins that it spends exist, and its signatures are theirs. Otherwise
    /// it is nobody's rival before the network shows it.
    pub are_coins_known: bool,
    /// The number of the claim to offer it: see [`Claim`](super::Claim).
    pub claim: u64,
    /// The time.
    pub now: Timestamp,
    /// Since when the clock is doubted, if it is. Nothing expires after that time, and the payment
    /// counts as having come at that time.
    pub doubted_since: Option<Timestamp>,
}

/// The outcome of [`Offer`]. The payment has the index of its first output, and the sum of its
/// outputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Offered {
    /// The payment is recorded, and this process must offer it to the network, after the ancestors
    /// that are stored with it.
    Now(IncomingPayment, Vec<Transaction>),
    /// Another process is offering it.
    Elsewhere(IncomingPayment),
    /// The network showed it before.
    Before(IncomingPayment),
}

impl Command for Offer {
    type Answer = Offered;

    fn run(&self, books: &mut Books<'_>) -> Result<Offered, WalletStoreError> {
        let before = payments_by(&books.rows, self.invoice, &self.transaction.txid)?;
        let before = before.into_iter().next();
        let payment = |(number, record): &(u64, TransactionRecord)| {
            let vout = self.receipts.first().map_or(0, |receipt| receipt.vout);
            let receipt = ReceiptKey { maker: *number, vout };
            IncomingPayment::of(receipt, record, record.satoshis)
        };
        match before.as_ref() {
            Some(known) if known.1.state.spends() => return Ok(Offered::Before(payment(known))),
            Some(known) if known.1.state.is_open() => {
                return Ok(match books.claim(Task::Offering(known.0), self.claim)? {
                    true => Offered::Now(payment(known), GetAncestors(known.0).run(&books.rows)?),
                    false => Offered::Elsewhere(payment(known)),
                });
            }
            _ => {}
        }
        let invoices = self.invoices(books)?;
        self.check(books, &invoices)?;
        let at = books.next_event_at(self.now);
        let (number, record, invoices) = match before {
            Some((number, lost)) => {
                let lost = books.keep_bytes(number, lost, &self.transaction)?;
                let offered = self.told_by_services(lost).in_state(TransactionState::Offered);
                let spent = books.spent_by(number)?;
                books.change_record(number, lost, &spent, offered, at)?;
                let record = books.transaction(number)?;
                let made = books.made_by(number)?;
                books.claim(Task::Offering(number), self.claim)?;
                (number, record, books.invoices_of(made.iter().map(|(_, receipt)| receipt.key))?)
            }
            None => {
                let (number, record) = self.store(books, self.not_doubted(at))?;
                books.claim_new(Task::Offering(number), self.claim)?;
                // Once the network has shown a transaction, or another message has brought it,
                // anybody can send it to us.
                if let Some(refund_to) = self.refund_to.as_ref().filter(|_| !self.is_known) {
                    books.rows.put::<Refunds>(number, refund_to)?;
                }
                (number, record, invoices)
            }
        };
        if !self.ancestors.is_empty() {
            books.rows.put::<Ancestors>(number, &self.ancestors)?;
        }
        if !self.is_known {
            for invoice in invoices {
                books.rows.put::<InFlight>(invoice, &number)?;
            }
        }
        Ok(Offered::Now(payment(&(number, record)), GetAncestors(number).run(&books.rows)?))
    }

    fn weight(&self) -> usize {
        self.transaction.bytes.len() + self.ancestors.len()
    }
}

impl Offer {
    /// The invoices that the transaction pays.
    fn invoices(&self, books: &Books<'_>) -> Result<BTreeSet<u64>, WalletStoreError> {
        books.invoices_of(self.receipts.iter().map(|receipt| receipt.key))
    }

    fn check(&self, books: &Books<'_>, invoices: &BTreeSet<u64>) -> Result<(), WalletStoreError> {
        let number = self.invoice;
        let mut in_flight = None;
        for paid in invoices.iter().filter(|_| !self.is_known) {
            in_flight = in_flight.or(books.rows.get::<InFlight>(paid)?.map(|_| *paid));
        }
        let invoice = books.rows.get::<Invoices>(&number)?;
        let invoice = invoice.filter(|invoice| invoice.deleted_at.is_none());
        let invoice = invoice.ok_or(Refusal::UnknownInvoice(number))?;
        if let Some(paid) = in_flight {
            return Err(Refusal::InFlight(paid).into());
        }
        let now = books.next_event_at(self.now);
        match invoice.state_for_new_payment(self.not_doubted(now)) {
            InvoiceState::Pending => Ok(()),
            _ if self.is_known => Ok(()),
            InvoiceState::Paid => Err(Refusal::Paid(number).into()),
            InvoiceState::Expired => Err(Refusal::Expired(number).into()),
        }
    }

    /// The time that decides what is late: it stands still while the clock is doubted.
    fn not_doubted(&self, now: Timestamp) -> Timestamp {
        self.doubted_since.map_or(now, |since| since.min(now))
    }

    fn store(
        &self,
        books: &mut Books<'_>,
        at: Timestamp,
    ) -> Result<(u64, TransactionRecord), WalletStoreError> {
        let purpose = match view(&self.transaction)?.is_coinbase() {
            true => Purpose::Coinbase,
            false => Purpose::Incoming(self.invoice),
        };
        let satoshis = self.receipts.iter().map(|receipt| receipt.satoshis).sum();
        let (number, record) = books.add_transaction(&self.transaction, purpose, satoshis, at)?;
        let receipts: Vec<_> = self.receipts.iter().map(|it| it.of(number)).collect();
        books.add_receipts(number, &receipts)?;
        if self.may_have_rivals {
            books.change_record(number, record, &[], self.told_by_services(record), at)?;
        }
        Ok((number, record))
    }

    fn told_by_services(&self, record: TransactionRecord) -> TransactionRecord {
        match self.may_have_rivals {
            true => record.offered_to_services(self.are_coins_known),
            false => record,
        }
    }
}

impl Books<'_> {
    /// Stores a new transaction, which the network has not shown.
    pub(crate) fn add_transaction(
        &mut self,
        transaction: &EncodedTransaction,
        purpose: Purpose,
        satoshis: u64,
        at: Timestamp,
    ) -> Result<(u64, TransactionRecord), WalletStoreError> {
        self.figures.last_transaction += 1;
        let number = self.figures.last_transaction;
        let record = self.put_transaction(number, transaction, purpose, satoshis, at)?;
        Ok((number, record))
    }

    /// Stores a transaction under a number that is reserved for it.
    pub(crate) fn put_transaction(
        &mut self,
        number: u64,
        transaction: &EncodedTransaction,
        purpose: Purpose,
        satoshis: u64,
        at: Timestamp,
    ) -> Result<TransactionRecord, WalletStoreError> {
        let (txid, state) = (transaction.txid, TransactionState::Offered);
        let record = TransactionRecord {
            txid,
            purpose,
            state,
            shown: ShownAs::Nothing,
            satoshis,
            at,
            raw: RawBytes::of(&transaction.bytes),
            word: None,
        };
        self.rows.add::<Transactions>(number, &record)?;
        self.rows.add::<TransactionNumbers>((txid, number), &())?;
        self.rows.add::<RawTransactions>(number, &transaction.bytes)?;
        self.rows.add::<FollowedTransactions>(number, &FollowedUntil::Mined)?;
        Ok(record)
    }
}
