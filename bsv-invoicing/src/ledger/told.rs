//! Events for readers: the rows of the log, completed with the facts about their subjects that
//! never change.

use crate::ledger::effects::{outgoing_record, transaction};
use crate::ledger::events::{
    EventDetails, EventRow, ExposureDetails, PaymentDetails, ReceiptDetails,
};
use crate::ledger::rows::{Damaged, Engine, Invoices, WalletStoreError, Withdrawals};
use crate::ledger::withdraw::payments_of;
use crate::model::event::{
    Event, EventData, EventInvoice, EventKind, EventOutgoing, EventPayment, MinedIn,
};
use crate::model::invoice::Invoice;
use crate::model::outgoing::{OutgoingPurpose, OutgoingRecord};
use crate::model::transaction::BlockPlace;
use crate::model::webhook::{WebhookId, WebhookState};

/// The event of a stored row.
pub(crate) fn event(
    rows: &dyn Engine,
    number: u64,
    row: &EventRow,
) -> Result<Event, WalletStoreError> {
    let EventRow { at, kind, subject, .. } = *row;
    Ok(Event { number, at, kind, subject, data: data(rows, row)? })
}

fn data(rows: &dyn Engine, row: &EventRow) -> Result<EventData, WalletStoreError> {
    use EventKind as Kind;
    let EventRow { kind, subject, details, block, .. } = *row;
    let block = match (kind.is_mined(), block) {
        (true, None) => return Err(Damaged::missing("the block of an event").into()),
        (true, Some(BlockPlace { hash, height })) => {
            Some(MinedIn { block_hash: hash, block_height: height })
        }
        (false, _) => None,
    };
    Ok(match kind {
        Kind::InvoiceCreated => {
            let invoice = invoice(rows, subject)?;
            let Invoice { satoshis, expires_at, .. } = invoice;
            EventData::Created { invoice: named(invoice), satoshis, expires_at }
        }
        Kind::InvoiceDeleted => {
            let invoice = invoice(rows, subject)?;
            EventData::Deleted { satoshis: invoice.satoshis, invoice: named(invoice) }
        }
        Kind::InvoiceExpired | Kind::InvoiceMarked => {
            let invoice = invoice(rows, subject)?;
            let EventDetails::Sum(paid_satoshis) = details else {
                return Err(Damaged("an event of an invoice without its sum".to_owned()).into());
            };
            let satoshis = invoice.satoshis;
            let received_satoshis = paid_satoshis;
            let invoice = named(invoice);
            EventData::Standing { invoice, satoshis, paid_satoshis, received_satoshis }
        }
        Kind::InvoicePaid
        | Kind::InvoiceUnpaid
        | Kind::InvoiceSumsChanged
        | Kind::PaymentReceived
        | Kind::PaymentWaiting
        | Kind::PaymentMined
        | Kind::PaymentUnmined
        | Kind::PaymentContested
        | Kind::PaymentRestored
        | Kind::PaymentDisplaced
        | Kind::PaymentInvalid => {
            let invoice = named(invoice(rows, subject)?);
            EventData::Payment { invoice, payment: payment(rows, details)?, block }
        }
        Kind::InvoiceRefunded => refund(rows, subject)?,
        Kind::UserCreated => EventData::User { user_id: subject },
        Kind::WithdrawalSettled => withdrawal(rows, subject)?,
        Kind::OutgoingStarted
        | Kind::OutgoingAccepted
        | Kind::OutgoingWaiting
        | Kind::OutgoingSettled
        | Kind::OutgoingMined
        | Kind::OutgoingUnmined
        | Kind::OutgoingContested
        | Kind::OutgoingRestored
        | Kind::OutgoingRefused
        | Kind::OutgoingCancelled
        | Kind::OutgoingDisplaced
        | Kind::OutgoingInvalid
        | Kind::CancellationShown
        | Kind::CancellationLost => {
            EventData::Outgoing { outgoing: Box::new(outgoing(rows, subject)?), block }
        }
        Kind::ReceiptUnassigned
        | Kind::ReceiptWaiting
        | Kind::ReceiptMined
        | Kind::ReceiptUnmined
        | Kind::ReceiptContested
        | Kind::ReceiptRestored
        | Kind::ReceiptDisplaced
        | Kind::ReceiptInvalid => {
            let EventDetails::Receipt(details) = details else {
                return Err(Damaged("an event of a receipt that names none".to_owned()).into());
            };
            let ReceiptDetails { vout, outputs, satoshis, user: user_id } = details;
            let txid = transaction(rows, subject)?.txid;
            EventData::Receipt { txid, vout, outputs, satoshis, user_id, block }
        }
        Kind::TransactionFound
        | Kind::TransactionWaiting
        | Kind::TransactionMined
        | Kind::TransactionUnmined
        | Kind::TransactionContested
        | Kind::TransactionRestored
        | Kind::TransactionDisplaced
        | Kind::TransactionInvalid => {
            let record = transaction(rows, subject)?;
            EventData::Transaction { txid: record.txid, satoshis: record.satoshis, block }
        }
        Kind::ExposureReached => {
            let EventDetails::Exposure(details) = details else {
                return Err(
                    Damaged("an event of the exposure that tells nothing".to_owned()).into()
                );
            };
            let ExposureDetails { satoshis, exposed, limit } = details;
            let txid = transaction(rows, subject)?.txid;
            let (exposed_satoshis, limit_satoshis) = (exposed, limit);
            EventData::Exposure { txid, satoshis, exposed_satoshis, limit_satoshis }
        }
        Kind::WebhookDisabled => {
            let EventDetails::Webhook { is_gone, failing_since } = details else {
                return Err(Damaged("an event of a webhook that tells nothing".to_owned()).into());
            };
            let state = if is_gone { WebhookState::Gone } else { WebhookState::Disabled };
            let webhook_id = WebhookId::from_number(subject);
            EventData::Webhook { webhook_id, state: state.name(), failing_since }
        }
    })
}

fn invoice(rows: &dyn Engine, number: u64) -> Result<Invoice, WalletStoreError> {
    let invoice = rows.get::<Invoices>(&number)?;
    Ok(invoice.ok_or_else(|| Damaged::missing("an invoice that an event names"))?)
}

fn named(invoice: Invoice) -> EventInvoice {
    EventInvoice { invoice_id: invoice.id, reference: invoice.reference }
}

fn payment(rows: &dyn Engine, details: EventDetails) -> Result<EventPayment, WalletStoreError> {
    let EventDetails::Payment(details) = details else {
        return Err(Damaged("an event of a payment that names none".to_owned()).into());
    };
    let PaymentDetails { transaction: number, satoshis, late, sums } = details;
    Ok(EventPayment {
        satoshis,
        txid: match number {
            0 => None,
            number => Some(transaction(rows, number)?.txid),
        },
        paid_satoshis: sums.paid,
        due_satoshis: sums.due,
        received_satoshis: sums.paid,
        counted_satoshis: sums.counted,
        late,
    })
}

fn refund(rows: &dyn Engine, payment: u64) -> Result<EventData, WalletStoreError> {
    let OutgoingRecord { purpose, satoshis, fee, transaction: number, .. } =
        outgoing_record(rows, payment)?;
    let OutgoingPurpose::Refund { invoice: refunded, .. } = purpose else {
        return Err(Damaged("a refund that is none".to_owned()).into());
    };
    Ok(EventData::Refund {
        invoice: named(invoice(rows, refunded)?),
        outgoing_id: payment,
        satoshis,
        fee,
        txid: transaction(rows, number)?.txid,
    })
}

fn outgoing(rows: &dyn Engine, payment: u64) -> Result<EventOutgoing, WalletStoreError> {
    let OutgoingRecord { purpose, satoshis, fee, transaction: number, .. } =
        outgoing_record(rows, payment)?;
    let name = purpose.name();
    let (mut url, mut withdrawal_id, mut invoice_id) = (None, None, None);
    match purpose {
        OutgoingPurpose::Url(paid) => url = Some(paid),
        OutgoingPurpose::Withdrawal(number) => withdrawal_id = Some(number),
        OutgoingPurpose::Refund { invoice: refunded, .. } => {
            invoice_id = Some(invoice(rows, refunded)?.id);
        }
        OutgoingPurpose::Consolidation => {}
    }
    let txid = transaction(rows, number)?.txid;
    let (outgoing_id, purpose) = (payment, name);
    Ok(EventOutgoing { outgoing_id, purpose, url, withdrawal_id, invoice_id, satoshis, fee, txid })
}

fn withdrawal(rows: &dyn Engine, number: u64) -> Result<EventData, WalletStoreError> {
    let record = rows.get::<Withdrawals>(&number)?;
    let record = record.ok_or_else(|| Damaged::missing("a withdrawal that an event names"))?;
    let (mut satoshis, mut fee, mut txids) = (0_u64, 0_u64, Vec::new());
    for (_, payment) in payments_of(rows, &record)? {
        satoshis = satoshis.saturating_add(payment.satoshis);
        fee = fee.saturating_add(payment.fee);
        txids.push(transaction(rows, payment.transaction)?.txid);
    }
    let reference = record.reference;
    Ok(EventData::Withdrawal { withdrawal_id: number, reference, satoshis, fee, txids })
}
