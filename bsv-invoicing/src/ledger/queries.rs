//! Questions about the books.

use std::fmt;

use bsv_tx::{FormedTransaction, Reader, Transaction, TransactionForm};

use crate::ledger::attempts::lasting_attempt;
use crate::ledger::attention::{invoice_sums, waiting_sum};
use crate::ledger::cancel::outgoing_payment;
use crate::ledger::effects::transaction;
use crate::ledger::figures::Figures;
use crate::ledger::notice::{payments_by, records_of};
use crate::ledger::payment_pages::{invoices_paid_by, payment_page};
use crate::ledger::recount::{last_height, listed_as_shallow};
use crate::ledger::refunds::{Refundable, lasting_refunds, refundable};
use crate::ledger::rows::Order::{Ascending, Descending};
use crate::ledger::rows::{
    AccountStart, Accounts, AllFigures, Ancestors, Attention, CatchUp, Claims, CopyEnd, Counted,
    Damaged, Engine, Events, FollowedBlock, FollowedTip, FollowedTransactions, InFlight, Invoices,
    InvoicesByReference, Kind, Marked, Messages, MinedAt, Outgoing, Owner, PostingUrls, Proofs,
    RawTransactions, Receipts, ReceivedFor, RowsOf, Transactions, Users, WalletStoreError,
    WebhookChanges, Withdrawals, try_all,
};
use crate::ledger::shown_invoices::{completed, shown_invoices, with_payments};
use crate::ledger::told::event;
use crate::ledger::withdraw::withdrawal;
use crate::ledger::{Query, Refusal, UserRecord};
use crate::model::coin::KeyPath;
use crate::model::event::Event;
use crate::model::holdings::Holdings;
use crate::model::invoice::{Invoice, InvoicePage, InvoiceQuery, MAX_LOOKED_AT, MAX_PAGE_TEXT};
use crate::model::outgoing::{OutgoingPayment, OutgoingPurpose, Posting};
use crate::model::payment::{PaidByPage, PaidByQuery, PaymentPage, PaymentQuery};
use crate::model::process::{ProcessId, Task};
use crate::model::receipt::{Receipt, ReceiptKey};
use crate::model::settlement::{InvoiceSums, Received, Settlement, Shallowness};
use crate::model::time::Timestamp;
use crate::model::transaction::{
    BlockPlace, EncodedTransaction, Followed, FoundProof, Purpose, RawBytes, TransactionRecord,
    TransactionState,
};
use crate::model::withdrawal::Withdrawal;

macro_rules! queries {
    ($($(#[$doc:meta])* $name:ident $(($($field:ident: $type:ty),*))? => $answer:ty: |$rows:ident| $run:expr;)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Debug)]
            pub struct $name $(($(pub $type),*))?;

            impl Query for $name {
                type Answer = $answer;

                fn run(self, $rows: &dyn Engine) -> Result<$answer, WalletStoreError> {
                    let Self $(($($field),*))? = self;
                    $run
                }
            }
        )*
    };
}

queries! {
    /// The fingerprint of the wallet that the store belongs to, once it belongs to one.
    GetOwner => Option<[u8; 20]>: |rows| rows.get::<Owner>(&());
    /// The accounts after account 0 whose keys were given out, in their order.
    GetAccounts => Vec<(u32, AccountStart)>: |rows| rows.range::<Accounts>(..);
    /// The invoice with this number, even a deleted one.
    GetInvoice(number: u64) => Option<Invoice>: |rows| {
        // Read before it is known whether there is an invoice: a store elsewhere is asked once for all.
        let in_flight = rows.get::<InFlight>(&number)?.is_some();
        let refunds = lasting_refunds(rows, number)?;
        let invoice = rows.get::<Invoices>(&number)?;
        invoice.map(|invoice| completed(rows, invoice, in_flight, refunds)).transpose()
    };
    /// A page of invoices, with their states at a time.
    GetInvoices(query: InvoiceQuery, now: Timestamp) => InvoicePage: |rows| {
        invoice_page(rows, query, now)
    };
    /// Up to `limit` invoices that have this reference and are not deleted, the newest first.
    GetInvoicesOf(reference: String, limit: usize) => Vec<Invoice>: |rows| {
        let all = (reference.clone(), 0)..=(reference, u64::MAX);
        let found = rows.first::<InvoicesByReference>(all, Descending, limit)?;
        shown_invoices(rows, found.into_iter().map(|((_, number), ())| number))
    };
    /// A page of the invoices that a transaction pays and that are not deleted.
    GetInvoicesPaidBy(query: PaidByQuery) => PaidByPage: |rows| invoices_paid_by(rows, query);
    /// The user of this id.
    GetUser(id: u64) => Option<UserRecord>: |rows| {
        Ok(rows.get::<Users>(&id)?.map(|details| (id, details)))
    };
    /// A page of the payments towards the invoice with this number.
    GetIncoming(invoice: u64, query: PaymentQuery) => PaymentPage: |rows| {
        payment_page(rows, invoice, query)
    };
    /// The payment of the invoice with this number by the transaction of this id: its number and
    /// its record. If the books have it twice, the later one. A payment that the network has
    /// refused and never shown is not answered.
    GetPaymentBy(invoice: u64, txid: bsv_tx::Txid) => Option<(u64, TransactionRecord)>: |rows| {
        let mut payments = payments_by(rows, invoice, &txid)?;
        payments.retain(|(_, record)| record.state != TransactionState::Refused);
        Ok(payments.pop())
    };
    /// How often the owner has changed webhooks or asked for events again.
    GetWebhookChanges() => u64: |rows| {
        Ok(rows.get::<WebhookChanges>(&())?.unwrap_or_default())
    };
    /// The process that has a task.
    GetHolder(task: Task) => Option<ProcessId>: |rows| {
        Ok(rows.get::<Claims>(&task)?.map(|claimed| claimed.holder))
    };
    /// Where the invoice with this number and its payment by the transaction of this id stand.
    /// Refused if there is no such invoice.
    GetStanding(invoice: u64, txid: bsv_tx::Txid) => PaymentStanding: |rows| {
        payment_standing(rows, invoice, txid)
    };
    /// Up to `limit` transactions that count as payments of the invoice with this number, those in
    /// the oldest blocks first, and how many there are besides these.
    GetPayingTxids(invoice: u64, limit: usize) => (Vec<bsv_tx::Txid>, u64): |rows| {
        let all = (invoice, 0, 0)..=(invoice, u32::MAX, u64::MAX);
        let count = rows.get::<ReceivedFor>(&invoice)?.unwrap_or_default().payments;
        let counted = rows.first::<Counted>(all, Ascending, limit)?;
        let further = count.saturating_sub(counted.len() as u64);
        let txids = try_all(counted, |((.., number), ())| {
            Ok::<_, WalletStoreError>(transaction(rows, number)?.txid)
        })?;
        Ok((txids, further))
    };
    /// The sums of the payments of the invoice with this number that count.
    GetReceivedSum(invoice: u64) => Received: |rows| {
        Ok(rows.get::<ReceivedFor>(&invoice)?.unwrap_or_default())
    };
    /// The sum of the newest payments of the invoice with this number that wait for a block.
    GetWaitingSum(invoice: u64) => u64: |rows| Ok(waiting_sum(rows, invoice)?.0);
    /// The sums of an invoice at a time.
    GetSums(invoice: Invoice, now: Timestamp) => InvoiceSums: |rows| {
        invoice_sums(rows, &invoice, now)
    };
    /// The invoice with this number, even a deleted one, and the details of its state at a time.
    GetSettlement(invoice: u64, now: Timestamp) => Option<Settlement>: |rows| {
        settlement(rows, invoice, now)
    };
    /// The payment by the wallet of this number, and what is posted to its payee while it is open.
    GetOutgoing(number: u64) => Option<(OutgoingPayment, Posting)>: |rows| {
        let Some(record) = rows.get::<Outgoing>(&number)? else { return Ok(None) };
        let payment = outgoing_payment(rows, number, record)?;
        let body = rows.get::<Messages>(&number)?.unwrap_or_default();
        Ok(Some((payment, Posting { url: rows.get::<PostingUrls>(&number)?, body })))
    };
    /// The number of the transaction of the payment by the wallet of this number, and the
    /// transaction. Refused if its bytes are dropped.
    GetOutgoingTransaction(payment: u64) => (u64, Transaction): |rows| {
        let record = rows.get::<Outgoing>(&payment)?;
        let number = record.ok_or(Refusal::UnknownPayment(payment))?.transaction;
        let transaction = raw_transaction(rows, number)?;
        Ok((number, transaction.ok_or_else(|| Damaged::missing("a transaction"))?))
    };
    /// The payment by the wallet for this purpose that is not lost.
    GetOutgoingFor(purpose: OutgoingPurpose) => Option<OutgoingPayment>: |rows| lasting_attempt(rows, &purpose);
    /// Up to `limit` payments by the wallet before the one of this number, the newest first.
    GetOutgoingBefore(payment: u64, limit: usize) => Vec<OutgoingPayment>: |rows| {
        let payments = rows.first::<Outgoing>(..payment, Descending, limit)?;
        try_all(payments, |(number, it)| outgoing_payment(rows, number, it))
    };
    /// The withdrawal of this number.
    GetWithdrawal(number: u64) => Option<Withdrawal>: |rows| {
        rows.get::<Withdrawals>(&number)?.map(|it| withdrawal(rows, number, it)).transpose()
    };
    /// Up to `limit` withdrawals before the one of this number, the newest first.
    GetWithdrawalsBefore(number: u64, limit: usize) => Vec<Withdrawal>: |rows| {
        let withdrawals = rows.first::<Withdrawals>(..number, Descending, limit)?;
        try_all(withdrawals, |(number, it)| withdrawal(rows, number, it))
    };
    /// What can be refunded of the payments of the invoice with this number, at a time.
    GetRefundable(invoice: u64, now: Timestamp) => Refundable: |rows| {
        refundable(rows, invoice, now)
    };
    /// Up to `limit` followed transactions after the one with this number, in the order of their
    /// numbers.
    GetFollowed(after: u64, limit: usize) => Vec<Followed>: |rows| {
        let from = after.saturating_add(1);
        let followed = rows.first::<FollowedTransactions>(from.., Ascending, limit)?;
        try_all(followed, |(number, until)| {
            let record = transaction(rows, number)?;
            let waits_for = match record.state {
                TransactionState::Waiting => first_paid(rows, number)?,
                _ => None,
            };
            Ok(Followed { number, record, until, waits_for })
        })
    };
    /// The numbers of the followed ones of these transactions.
    GetFollowedOf(txids: Vec<bsv_tx::Txid>) => Vec<u64>: |rows| {
        let mut numbers = Vec::new();
        for (number, _) in try_all(txids, |txid| records_of(rows, &txid))?.into_iter().flatten() {
            if rows.get::<FollowedTransactions>(&number)?.is_some() {
                numbers.push(number);
            }
        }
        Ok(numbers)
    };
    /// How many payments by the wallet wait for their payee, or for the network to show them.
    CountOpenPayments => u64: |rows| count_open_payments(rows);
    /// The record of the transaction with this number.
    GetRecord(number: u64) => Option<TransactionRecord>: |rows| rows.get::<Transactions>(&number);
    /// Up to `limit` txids of transactions after the one of this number, in the order of the numbers.
    GetTxids(after: u64, limit: usize) => Vec<(u64, bsv_tx::Txid)>: |rows| {
        let from = after.saturating_add(1);
        let transactions = rows.first::<Transactions>(from.., Ascending, limit)?;
        Ok(transactions.into_iter().map(|(number, record)| (number, record.txid)).collect())
    };
    /// The record of the transaction with this number, and the transaction, unless its bytes are
    /// dropped.
    GetStored(number: u64) => Option<(TransactionRecord, Option<EncodedTransaction>)>: |rows| {
        let bytes = rows.get::<RawTransactions>(&number)?;
        let record = rows.get::<Transactions>(&number)?;
        Ok(record.map(|record| {
            (record, bytes.map(|bytes| EncodedTransaction { txid: record.txid, bytes }))
        }))
    };
    /// The transaction of this number. Refused if its bytes are dropped.
    GetTransaction(number: u64) => Option<Transaction>: |rows| raw_transaction(rows, number);
    /// The unconfirmed ancestors that came with the transaction with this number, parents before
    /// their children. They are stored while the transaction is followed.
    GetAncestors(number: u64) => Vec<Transaction>: |rows| ancestors(rows, number);
    /// What came with the transaction with this number, in any [form](bsv_tx::TransactionForm). It is
    /// stored while the transaction is followed. Empty if nothing came with it.
    GetAncestry(number: u64) => Vec<u8>: |rows| {
        Ok(rows.get::<Ancestors>(&number)?.unwrap_or_default())
    };
    /// The transaction of this id that is not lost: its number, its record, and the transaction unless
    /// its bytes are dropped.
    GetMaker(txid: bsv_tx::Txid) => Option<(u64, TransactionRecord, Option<Transaction>)>: |rows| {
        let mut makers = records_of(rows, &txid)?;
        makers.retain(|(_, record)| !record.state.is_lost());
        makers.sort_by_key(|(_, record)| record.state.block().is_none());
        let Some((number, record)) = makers.into_iter().next() else { return Ok(None) };
        let transaction = match record.raw {
            RawBytes::Dropped => None,
            RawBytes::Short | RawBytes::Long => raw_transaction(rows, number)?,
        };
        Ok(Some((number, record, transaction)))
    };
    /// Whether a transaction is known to have a rival.
    HasRival(txid: bsv_tx::Txid) => bool: |rows| {
        Ok(records_of(rows, &txid)?.into_iter().any(|(_, record)| record.has_rival()))
    };
    /// The receipt with this key.
    GetReceipt(key: ReceiptKey) => Option<Receipt>: |rows| rows.get::<Receipts>(&key);
    /// The transaction of this id, if the network has shown it. Refused if its bytes are dropped.
    GetShown(txid: bsv_tx::Txid) => Option<Transaction>: |rows| {
        let records = records_of(rows, &txid)?;
        let shown = records.into_iter().find(|(_, record)| record.state.spends());
        shown.map_or(Ok(None), |(number, _)| raw_transaction(rows, number))
    };
    /// The blocks from this height on that hold transactions of the wallet.
    GetBlocks(from: u32) => Vec<BlockPlace>: |rows| blocks(rows, from);
    /// The proofs found so far that the transaction with this number is in a block, in the order of
    /// finding.
    GetProofs(number: u64) => Vec<FoundProof>: |rows| {
        let proofs = rows.range::<Proofs>((number, 0)..=(number, u32::MAX))?;
        Ok(proofs.into_iter().map(|(_, found)| found).collect())
    };
    /// The block up to which the chain was followed.
    GetFollowedTip => Option<FollowedBlock>: |rows| rows.get::<FollowedTip>(&());
    /// Whether the books are an earlier copy that must catch up with the chain. If so, where that copy
    /// ends.
    GetCatchUp => Option<CopyEnd>: |rows| rows.get::<CatchUp>(&());
    /// The figures.
    GetFigures => Figures: |rows| Ok(rows.get::<AllFigures>(&())?.unwrap_or_default());
    /// The balance, in satoshis.
    GetBalance => u64: |rows| {
        Ok(rows.get::<AllFigures>(&())?.unwrap_or_default().holdings.balance())
    };
    /// What the wallet holds.
    GetHoldings => Holdings: |rows| {
        Ok(rows.get::<AllFigures>(&())?.unwrap_or_default().holdings)
    };
    /// The time of the last event, or the beginning of 1970.
    GetLastEventAt => Timestamp: |rows| {
        let figures = rows.get::<AllFigures>(&())?.unwrap_or_default();
        Ok(Timestamp::from_micros(figures.last_event_at))
    };
    /// Up to `limit` events after the one of this number, in order.
    GetEvents(after: u64, limit: usize) => Vec<Event>: |rows| {
        let events = rows.first::<Events>(after.saturating_add(1).., Ascending, limit)?;
        try_all(events, |(number, row)| event(rows, number, &row))
    };
}

fn settlement(
    rows: &dyn Engine,
    number: u64,
    now: Timestamp,
) -> Result<Option<Settlement>, WalletStoreError> {
    let received = rows.get::<ReceivedFor>(&number)?.unwrap_or_default();
    let marked = rows.get::<Marked>(&number)?.is_some();
    let tip = rows.get::<FollowedTip>(&())?.map_or(0, |tip| tip.height);
    let last_height = last_height(rows, number)?;
    let Some(invoice) = GetInvoice(number).run(rows)? else { return Ok(None) };
    let refunds = lasting_refunds(rows, number)?.into_iter().rev();
    Ok(Some(Settlement {
        sums: invoice_sums(rows, &invoice, now)?,
        late: received.late.sum() > 0,
        confirmations: last_height.map(|height| (tip + 1).saturating_sub(height)),
        contested: received.contested > 0,
        marked,
        refunds: try_all(refunds, |(number, it)| outgoing_payment(rows, number, it))?,
        invoice,
    }))
}

/// Where an invoice and one of its payments stand, all as of one moment.
#[derive(Clone, Debug)]
pub struct PaymentStanding {
    /// The invoice.
    pub invoice: Invoice,
    /// The sums of its payments that count.
    pub received: Received,
    /// The payment of it that is being offered to the network.
    pub in_flight: Option<StandingPayment>,
    /// The payment asked about, as [`GetPaymentBy`] answers it.
    pub payment: Option<StandingPayment>,
}

/// A payment of an invoice.
#[derive(Clone, Copy, Debug)]
pub struct StandingPayment {
    /// The record of its transaction.
    pub record: TransactionRecord,
    /// Whether a process is offering it to the network.
    pub is_offered: bool,
    /// Whether it does not count because its block is not deep enough.
    pub is_uncounted: bool,
}

fn payment_standing(
    rows: &dyn Engine,
    number: u64,
    txid: bsv_tx::Txid,
) -> Result<PaymentStanding, WalletStoreError> {
    let standing = |(maker, record)| -> Result<_, WalletStoreError> {
        let is_offered = GetHolder(Task::Offering(maker)).run(rows)?.is_some();
        let shallow = listed_as_shallow(rows, (number, maker), &record)?;
        let is_uncounted = shallow.is_some_and(|(_, it)| it == Shallowness::Uncounted);
        Ok(StandingPayment { record, is_offered, is_uncounted })
    };
    let in_flight = rows.get::<InFlight>(&number)?;
    let in_flight = in_flight.map(|number| standing((number, transaction(rows, number)?)));
    let payment = GetPaymentBy(number, txid).run(rows)?.map(standing).transpose()?;
    let received = GetReceivedSum(number).run(rows)?;
    let invoice = GetInvoice(number).run(rows)?.ok_or(Refusal::UnknownInvoice(number))?;
    Ok(PaymentStanding { invoice, received, in_flight: in_flight.transpose()?, payment })
}

/// How many invoices are read at once.
const INVOICES_AT_ONCE: usize = 100;

fn invoice_page(
    rows: &dyn Engine,
    query: InvoiceQuery,
    now: Timestamp,
) -> Result<InvoicePage, WalletStoreError> {
    let mut invoices = Vec::with_capacity(query.limit.min(1000));
    let (mut last, mut looked_at, mut text_len) = (None, 0, 0);
    let mut after = query.after;
    loop {
        let read = match query.needs_decision {
            true => invoices_listed(rows, after, query.newest_first)?,
            false => next_rows::<Invoices>(rows, after, query.newest_first)?,
        };
        let is_end = read.len() < INVOICES_AT_ONCE;
        let read = try_all(read, |(number, invoice)| {
            let invoice = with_payments(rows, invoice)?;
            let is_asked_for = match query.needs_decision {
                true => invoice_sums(rows, &invoice, now)?.next.needs_decision(),
                false => true,
            };
            Ok::<_, WalletStoreError>((number, invoice, is_asked_for))
        })?;
        for (number, invoice, mut is_asked_for) in read {
            let is_full = invoices.len() == query.limit || text_len >= MAX_PAGE_TEXT;
            if is_full || looked_at == MAX_LOOKED_AT {
                return Ok(InvoicePage { invoices, next: last, now });
            }
            looked_at += 1;
            (last, after) = (Some((number, invoice.id)), Some(number));
            is_asked_for &= query.state.is_none_or(|state| invoice.state(now) == state);
            if invoice.deleted_at.is_none() && is_asked_for {
                let texts = [&invoice.reference, &invoice.description];
                text_len += texts.into_iter().flatten().map(String::len).sum::<usize>();
                invoices.push(invoice);
            }
        }
        if is_end {
            return Ok(InvoicePage { invoices, next: None, now });
        }
    }
}

/// The next rows of a kind whose keys are numbers of invoices.
fn next_rows<K: Kind<Key = u64>>(
    rows: &dyn Engine,
    after: Option<u64>,
    newest_first: bool,
) -> Result<RowsOf<K>, WalletStoreError> {
    match newest_first {
        true => rows.first::<K>(..after.unwrap_or(u64::MAX), Descending, INVOICES_AT_ONCE),
        false => {
            let from = after.map_or(0, |after| after.saturating_add(1));
            rows.first::<K>(from.., Ascending, INVOICES_AT_ONCE)
        }
    }
}

/// The next invoices that may need a decision.
fn invoices_listed(
    rows: &dyn Engine,
    after: Option<u64>,
    newest_first: bool,
) -> Result<RowsOf<Invoices>, WalletStoreError> {
    let listed = next_rows::<Attention>(rows, after, newest_first)?;
    try_all(listed, |(number, _)| {
        let invoice = rows.get::<Invoices>(&number)?;
        Ok((number, invoice.ok_or_else(|| Damaged::missing("an invoice that is listed"))?))
    })
}

/// The first of the wallet's keys that a transaction pays.
fn first_paid(rows: &dyn Engine, number: u64) -> Result<Option<KeyPath>, WalletStoreError> {
    let receipts = rows.first::<Receipts>(ReceiptKey::all_of(number), Ascending, 1)?;
    Ok(receipts.first().map(|(_, receipt)| receipt.key))
}

fn count_open_payments(rows: &dyn Engine) -> Result<u64, WalletStoreError> {
    let followed = rows.range::<FollowedTransactions>(..)?;
    let are_open = try_all(followed, |(number, _)| {
        transaction(rows, number).map(|TransactionRecord { purpose, state, .. }| {
            let waits = matches!(state, TransactionState::Offered | TransactionState::Unseen);
            waits && matches!(purpose, Purpose::Outgoing(_))
        })
    })?;
    Ok(are_open.into_iter().map(u64::from).sum())
}

fn state_of(rows: &dyn Engine, number: u64) -> Result<TransactionState, WalletStoreError> {
    Ok(transaction(rows, number)?.state)
}

/// Refused if the bytes of the transaction are dropped.
fn raw_transaction(
    rows: &dyn Engine,
    number: u64,
) -> Result<Option<Transaction>, WalletStoreError> {
    let (bytes, record) =
        (rows.get::<RawTransactions>(&number)?, rows.get::<Transactions>(&number)?);
    if let Some(dropped) = record.filter(|record| record.raw == RawBytes::Dropped) {
        return Err(Refusal::BytesDropped(dropped.txid).into());
    }
    let Some(bytes) = bytes else { return Ok(None) };
    let transaction = Transaction::from_bytes(&bytes)
        .map_err(|error| Damaged(format!("a transaction: {error}")))?;
    Ok(Some(transaction))
}

fn ancestors(rows: &dyn Engine, number: u64) -> Result<Vec<Transaction>, WalletStoreError> {
    let bytes = rows.get::<Ancestors>(&number)?.unwrap_or_default();
    let damaged = |error: &dyn fmt::Display| {
        WalletStoreError::from(Damaged(format!("an ancestor of a transaction: {error}")))
    };
    match FormedTransaction::from_bytes(&bytes) {
        _ if TransactionForm::of(&bytes) == TransactionForm::Raw => {}
        Ok(FormedTransaction::Beef(beef)) => {
            return Ok(beef.unmined_ancestors().map(|(_, ancestor)| ancestor.clone()).collect());
        }
        Ok(_) => return Ok(Vec::new()),
        Err(error) => return Err(damaged(&error)),
    }
    let mut reader = Reader::new(&bytes);
    let mut ancestors = Vec::new();
    while reader.remaining() > 0 {
        ancestors.push(Transaction::read(&mut reader).map_err(|error| damaged(&error))?);
    }
    Ok(ancestors)
}

fn blocks(rows: &dyn Engine, from: u32) -> Result<Vec<BlockPlace>, WalletStoreError> {
    let mined = rows.range::<MinedAt>((from, 0)..)?;
    let mut blocks = Vec::new();
    for state in try_all(mined, |((_, number), ())| state_of(rows, number))? {
        let place = state.block();
        let no_block = || Damaged("what is listed as mined is in no block".to_owned());
        let place = place.ok_or_else(no_block)?;
        if blocks.last() != Some(&place) {
            blocks.push(place);
        }
    }
    Ok(blocks)
}
