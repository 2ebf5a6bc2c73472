//! Movements of money, transaction by transaction.

use bsv_tx::Transaction;

use crate::ledger::Query;
use crate::ledger::effects::{outgoing_record, receipt, spent_by};
use crate::ledger::figures::Figures;
use crate::ledger::keys::invoice_of;
use crate::ledger::rows::Order::Ascending;
use crate::ledger::rows::{
    AllFigures, Damaged, Engine, Invoices, RawTransactions, Receipts, Transactions,
    WalletStoreError, Withdrawals, try_all,
};
use crate::model::coin::Chain;
use crate::model::movement::{Movement, MovementKind, MovementPage, MovementQuery, PaidInvoice};
use crate::model::outgoing::OutgoingPurpose;
use crate::model::payment::IncomingState;
use crate::model::receipt::{Receipt, ReceiptKey};
use crate::model::transaction::{Purpose, RawBytes, TransactionRecord};

/// How many transactions are looked at for one part. A part also ends when it has this many
/// movements, but never within a transaction.
const PART: usize = 1000;

/// A part of the movements of all transactions that the network shows, in the order in which the
/// books recorded them.
#[derive(Clone, Copy, Debug)]
pub struct GetMovements(pub MovementQuery);

impl Query for GetMovements {
    type Answer = MovementPage;

    fn run(self, rows: &dyn Engine) -> Result<MovementPage, WalletStoreError> {
        let Self(MovementQuery { after, from, to }) = self;
        let looked_at = rows.first::<Transactions>(after.saturating_add(1).., Ascending, PART)?;
        let last = looked_at.last().filter(|_| looked_at.len() == PART);
        let mut next = last.map(|(number, _)| *number);
        let figures = rows.get::<AllFigures>(&())?.unwrap_or_default();
        let mut reader = Reader { rows, figures, movements: Vec::new() };
        // As in `try_all`, an error does not end the loop.
        let mut outcome = Ok(());
        for (number, record) in looked_at {
            if reader.movements.len() >= PART {
                next = Some(number - 1);
                break;
            }
            if (from..to).contains(&record.at) && record.state.spends() {
                outcome = outcome.and(reader.read(number, &record));
            }
        }
        outcome?;
        Ok(MovementPage { movements: reader.movements, next })
    }
}

struct Reader<'r> {
    rows: &'r dyn Engine,
    figures: Figures,
    movements: Vec<Movement>,
}

impl Reader<'_> {
    fn read(&mut self, number: u64, record: &TransactionRecord) -> Result<(), WalletStoreError> {
        match record.purpose {
            Purpose::Outgoing(payment) => self.add_payment(payment, record),
            Purpose::Cancellation(_) => {
                let fee = self.spent(number)?.saturating_sub(record.satoshis);
                self.add(Movement { fee, ..movement(record, MovementKind::Cancellation) });
                Ok(())
            }
            Purpose::Incoming(_) | Purpose::Found | Purpose::Coinbase => {
                self.add_found(number, record)
            }
        }
    }

    fn add(&mut self, movement: Movement) {
        self.movements.push(movement);
    }

    /// The sum of the coins that a transaction spends.
    fn spent(&self, number: u64) -> Result<u64, WalletStoreError> {
        let satoshis = |key| receipt(self.rows, key).map(|receipt| receipt.satoshis);
        let spent = try_all(spent_by(self.rows, number)?, satoshis)?;
        Ok(spent.into_iter().fold(0, u64::saturating_add))
    }

    fn add_payment(
        &mut self,
        number: u64,
        record: &TransactionRecord,
    ) -> Result<(), WalletStoreError> {
        let payment = outgoing_record(self.rows, number)?;
        let kind = match payment.purpose {
            OutgoingPurpose::Url(url) => MovementKind::Payment(url),
            OutgoingPurpose::Withdrawal(number) => {
                let withdrawal = self.rows.get::<Withdrawals>(&number)?;
                let withdrawal = withdrawal.ok_or_else(|| Damaged::missing("a withdrawal"))?;
                MovementKind::Withdrawal(number, withdrawal.to)
            }
            OutgoingPurpose::Refund { invoice, to } => {
                let invoice = self.invoice(invoice)?;
                let invoice = invoice.ok_or_else(|| Damaged::missing("a refunded invoice"))?;
                MovementKind::Refund(invoice, to)
            }
            OutgoingPurpose::Consolidation => MovementKind::Consolidation,
        };
        let (sent, fee) = (payment.satoshis, payment.fee);
        self.add(Movement { sent, fee, ..movement(record, kind) });
        Ok(())
    }

    /// Adds the movements of a transaction from outside, including one that spends coins of the
    /// wallet.
    fn add_found(
        &mut self,
        number: u64,
        record: &TransactionRecord,
    ) -> Result<(), WalletStoreError> {
        let spends = spent_by(self.rows, number)?.len();
        let mut change = 0_u64;
        for (key, receipt) in self.rows.range::<Receipts>(ReceiptKey::all_of(number))? {
            if spends > 0 && receipt.key.chain == Chain::Change {
                change = change.saturating_add(receipt.satoshis);
            } else {
                self.add_receipt(key, &receipt, record)?;
            }
        }
        if spends == 0 {
            return Ok(());
        }
        let spent = self.spent(number)?;
        let raw = self.rows.get::<RawTransactions>(&number)?;
        let transaction = raw.and_then(|bytes| Transaction::from_bytes(&bytes).ok());
        // If somebody else pays for a part of the transaction, that payer may also pay the fee.
        let fee = match transaction.filter(|it| it.inputs.len() == spends) {
            Some(it) => {
                let paid = it
                    .outputs
                    .iter()
                    .fold(0, |sum: u64, output| sum.saturating_add(output.satoshis));
                spent.saturating_sub(paid)
            }
            None => 0,
        };
        let sent = spent.saturating_sub(fee).saturating_sub(change);
        let received = change.saturating_sub(spent.saturating_sub(fee));
        self.add(Movement { sent, fee, received, ..movement(record, MovementKind::Found) });
        Ok(())
    }

    fn add_receipt(
        &mut self,
        key: ReceiptKey,
        receipt: &Receipt,
        record: &TransactionRecord,
    ) -> Result<(), WalletStoreError> {
        let invoice = match invoice_of(self.rows, &self.figures, receipt.key)? {
            Some(number) => self.invoice(number)?,
            None => None,
        };
        let kind = MovementKind::Receipt(invoice);
        let (received, vout) = (receipt.satoshis, Some(key.vout));
        self.add(Movement { received, vout, ..movement(record, kind) });
        Ok(())
    }

    /// The invoice with this number. It does not exist if its payment was recovered with the words
    /// alone.
    fn invoice(&self, number: u64) -> Result<Option<PaidInvoice>, WalletStoreError> {
        let invoice = self.rows.get::<Invoices>(&number)?;
        Ok(invoice.map(|it| PaidInvoice {
            id: it.id,
            reference: it.reference,
            description: it.description,
        }))
    }
}

/// A movement of a transaction with no amounts yet.
fn movement(record: &TransactionRecord, kind: MovementKind) -> Movement {
    Movement {
        at: record.at,
        kind,
        received: 0,
        sent: 0,
        fee: 0,
        txid: record.txid,
        vout: None,
        state: IncomingState::of(record.state),
        block: record.state.block(),
        block_time: None,
        are_bytes_dropped: record.raw == RawBytes::Dropped,
    }
}
