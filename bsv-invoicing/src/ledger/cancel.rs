//! Cancelling a payment by the wallet: another transaction, the cancellation, spends one of its
//! coins. The payment is cancelled when the network shows the cancellation.

use bsv_tx::Transaction;

use crate::ledger::rows::{
    Damaged, Engine, Invoices, Outgoing, Transactions, WalletStoreError, Withdrawals, try_all,
};
use crate::ledger::{Books, Command, Refusal};
use crate::model::coin::{Change, Coin, Selection, Spending};
use crate::model::outgoing::{OutgoingPayment, OutgoingPurpose, OutgoingRecord};
use crate::model::receipt::{NewReceipt, Receipt, ReceiptKey};
use crate::model::time::Timestamp;
use crate::model::transaction::{EncodedTransaction, Purpose, TransactionState};

/// Chooses the coin and takes the key for the cancellation of a payment that the network has not
/// shown.
#[derive(Clone, Copy, Debug)]
pub struct PrepareCancellation {
    /// The number of the payment.
    pub payment: u64,
    /// What the cancellation costs.
    pub spending: Spending,
}

/// How a payment is to be cancelled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PreparedCancellation {
    /// By the transaction with this number, which is already recorded.
    Before(u64),
    /// By a new transaction that spends this coin to this change. The caller must sign and record
    /// it.
    New(Selection),
}

impl Command for PrepareCancellation {
    type Answer = PreparedCancellation;

    fn run(&self, books: &mut Books<'_>) -> Result<PreparedCancellation, WalletStoreError> {
        let payment = books.cancellable(self.payment)?;
        if let Some(number) = books.pending_cancellation(&payment)? {
            return Ok(PreparedCancellation::Before(number));
        }
        let coins = try_all(books.spent_by(payment.transaction)?, |key| books.coin(key))?;
        let dearest = coins.into_iter().max_by_key(|coin| coin.satoshis);
        let coin = dearest.ok_or_else(|| Damaged("a payment without coins".to_owned()))?;
        let satoshis = self.spending.change(1, coin.satoshis).unwrap_or(1);
        let key = books.take_change_key()?;
        let change = Some(Change { satoshis, key });
        Ok(PreparedCancellation::New(Selection { coins: vec![coin], change }))
    }
}

/// Records the transaction that cancels a payment by the wallet, before the wallet offers it to the
/// network.
#[derive(Clone, Debug)]
pub struct RecordCancellation {
    /// The number of the payment.
    pub payment: u64,
    /// The transaction. It spends one coin of the payment to one output.
    pub transaction: Transaction,
    /// Its output.
    pub change: Change,
    /// The time.
    pub now: Timestamp,
}

impl Command for RecordCancellation {
    /// The number of the transaction, or of an earlier cancellation of the same payment.
    type Answer = u64;

    fn run(&self, books: &mut Books<'_>) -> Result<u64, WalletStoreError> {
        let mut payment = books.cancellable(self.payment)?;
        if let Some(number) = books.pending_cancellation(&payment)? {
            return Ok(number);
        }
        let coins = try_all(books.spent_by(payment.transaction)?, |key| {
            books.coin(key).map(|coin| (key, coin.outpoint))
        })?;
        let is_spent = |outpoint| {
            self.transaction.inputs.iter().any(|input| input.previous_output == outpoint)
        };
        let spent = coins.into_iter().find(|(_, outpoint)| is_spent(*outpoint));
        let (spent, _) = spent.ok_or(Refusal::NotReserved(payment.transaction))?;
        let at = books.next_event_at(self.now);
        let Change { satoshis, key } = self.change;
        let purpose = Purpose::Cancellation(self.payment);
        let encoded = EncodedTransaction::from(&self.transaction);
        let (number, _) = books.add_transaction(&encoded, purpose, satoshis, at)?;
        let receipt = NewReceipt { vout: 0, satoshis, key };
        books.add_receipts(number, &[receipt.of(number)])?;
        if let Some(output) = self.transaction.outputs.first() {
            books.watch_change(&output.locking_script, self.change)?;
        }
        // The coin stays reserved for the payment until the network shows one of the two
        // transactions.
        books.add_spend(number, spent)?;
        payment.cancellation = Some(number);
        books.rows.put::<Outgoing>(self.payment, &payment)?;
        Ok(number)
    }
}

impl Books<'_> {
    /// The payment with this number. Refused if the network shows it, or a node has shown it.
    fn cancellable(&self, number: u64) -> Result<OutgoingRecord, WalletStoreError> {
        let payment = self.known_payment(number)?;
        let record = self.transaction(payment.transaction)?;
        if record.state.is_open() || record.is_by_word() && record.state != TransactionState::Seen {
            return Ok(payment);
        }
        let state = self.outgoing_payment(number)?.state;
        Err(Refusal::NotOpen(number, state).into())
    }

    fn pending_cancellation(
        &self,
        payment: &OutgoingRecord,
    ) -> Result<Option<u64>, WalletStoreError> {
        pending_cancellation(&self.rows, payment)
    }

    pub(crate) fn is_being_cancelled(
        &self,
        payment: &OutgoingRecord,
    ) -> Result<bool, WalletStoreError> {
        Ok(self.pending_cancellation(payment)?.is_some())
    }

    /// The payment by the wallet with this number, as callers see it.
    pub(crate) fn outgoing_payment(
        &self,
        number: u64,
    ) -> Result<OutgoingPayment, WalletStoreError> {
        outgoing_payment(&self.rows, number, self.payment(number)?)
    }

    /// The coin of a receipt.
    pub(crate) fn coin(&self, key: ReceiptKey) -> Result<Coin, WalletStoreError> {
        let (receipt, maker) = (self.receipt(key), self.transaction(key.maker));
        let Receipt { satoshis, key: path, .. } = receipt?;
        let outpoint = bsv_tx::OutPoint { txid: maker?.txid, vout: key.vout };
        Ok(Coin { outpoint, satoshis, key: path })
    }
}

/// The cancellation of a payment, until it is known which of the two the network takes.
fn pending_cancellation(
    rows: &dyn Engine,
    payment: &OutgoingRecord,
) -> Result<Option<u64>, WalletStoreError> {
    let Some(number) = payment.cancellation else { return Ok(None) };
    let record = rows.get::<Transactions>(&number)?;
    let is_pending = |state| matches!(state, TransactionState::Offered | TransactionState::Waiting);
    Ok(record.filter(|record| is_pending(record.state)).map(|_| number))
}

/// A payment by the wallet, as callers see it.
pub(crate) fn outgoing_payment(
    rows: &dyn Engine,
    number: u64,
    record: OutgoingRecord,
) -> Result<OutgoingPayment, WalletStoreError> {
    let transaction = super::effects::transaction(rows, record.transaction)?;
    let is_being_cancelled = pending_cancellation(rows, &record)?.is_some();
    let recipient = match &record.purpose {
        OutgoingPurpose::Refund { invoice, to } => {
            let invoice = rows.get::<Invoices>(invoice)?;
            let invoice = invoice.ok_or_else(|| Damaged::missing("a refunded invoice"))?;
            (Some(invoice.id), Some(to.clone()))
        }
        OutgoingPurpose::Withdrawal(number) => {
            (None, rows.get::<Withdrawals>(number)?.map(|withdrawal| withdrawal.to))
        }
        OutgoingPurpose::Url(_) | OutgoingPurpose::Consolidation => (None, None),
    };
    Ok(record.into_payment(number, &transaction, is_being_cancelled, recipient))
}
