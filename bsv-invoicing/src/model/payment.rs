//! Payments to the wallet.

use bsv_tx::Txid;

use crate::model::invoice::Invoice;
use crate::model::receipt::ReceiptKey;
use crate::model::time::Timestamp;
use crate::model::transaction::{BlockPlace, TransactionRecord, TransactionState};

/// A payment towards an invoice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IncomingPayment {
    /// The number of its transaction. The wallet numbers all its transactions from 1.
    pub number: u64,
    /// The transaction.
    pub txid: Txid,
    /// The index of the output that pays the invoice.
    pub vout: u32,
    /// What it pays to the invoice.
    pub satoshis: u64,
    /// Its state.
    pub state: IncomingState,
    /// When it arrived.
    pub received_at: Timestamp,
    /// The block that it is in, once the wallet has a proof.
    pub block: Option<BlockPlace>,
}

impl IncomingPayment {
    /// The payment that a receipt makes, as the API shows it.
    pub(crate) fn of(receipt: ReceiptKey, record: &TransactionRecord, satoshis: u64) -> Self {
        let ReceiptKey { maker: number, vout } = receipt;
        Self {
            number,
            txid: record.txid,
            vout,
            satoshis,
            state: IncomingState::of(record.state),
            received_at: record.at,
            block: record.state.block(),
        }
    }
}

/// How many receipts are looked at for a page of payments at most. One transaction may pay any
/// number of invoices. A page that ends for this reason has fewer payments than its limit, and
/// there is a next one.
pub const MAX_RECEIPTS_LOOKED_AT: usize = 10_000;

/// Which payments of an invoice to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PaymentQuery {
    /// Only payments after this receipt.
    pub after: Option<ReceiptKey>,
    /// The most payments to list.
    pub limit: usize,
}

/// Payments of an invoice, in the order of their arrival. A payment that the network has refused
/// and never shown is not among them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaymentPage {
    /// The payments.
    pub payments: Vec<IncomingPayment>,
    /// The receipt after which the next page begins. `None` if there is none.
    pub next: Option<ReceiptKey>,
}

/// Which of the invoices that a transaction pays to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PaidByQuery {
    /// The transaction.
    pub txid: Txid,
    /// Only invoices that outputs after this one are the first to pay.
    pub after: Option<u32>,
    /// The most invoices to list.
    pub limit: usize,
}

/// Invoices that a transaction pays and that are not deleted, in the order of the first outputs
/// that pay them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaidByPage {
    /// The invoices.
    pub invoices: Vec<Invoice>,
    /// The output after which the next page begins. `None` if there is none.
    pub next: Option<u32>,
}

/// A receipt that pays no invoice. It pays the key of a user, a key of an invoice that is deleted
/// or that the store does not have, or a key for change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnassignedReceipt {
    /// What was received.
    pub payment: IncomingPayment,
    /// The user whose key it pays.
    pub user: Option<u64>,
}

/// The state of a payment to the wallet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IncomingState {
    /// The wallet does not know yet whether the network takes it.
    InFlight,
    /// It is in the mempool, but its fee may be too low for it to be mined.
    Waiting,
    /// The network has taken it.
    Accepted,
    /// It is in a block.
    Mined,
    /// The network has shown it before and does not show it now.
    Contested,
    /// Another transaction has taken its place.
    Displaced,
    /// The network has refused it at several tips in a row, or it had shown the payment and refused
    /// it when the wallet offered it again. Or it is the coinbase transaction of a block that has
    /// left the main chain.
    Invalid,
    /// The network did not take it.
    Refused,
}

impl IncomingState {
    /// Whether it counts towards the invoice and the balance.
    pub fn counts(self) -> bool {
        matches!(self, Self::Accepted | Self::Mined | Self::Contested)
    }

    pub(crate) fn of(state: TransactionState) -> Self {
        match state {
            TransactionState::Offered | TransactionState::Unseen => Self::InFlight,
            TransactionState::Waiting => Self::Waiting,
            TransactionState::Seen => Self::Accepted,
            TransactionState::Mined(_) => Self::Mined,
            TransactionState::Contested { .. } => Self::Contested,
            TransactionState::Displaced | TransactionState::Cancelled => Self::Displaced,
            TransactionState::Invalid => Self::Invalid,
            TransactionState::Refused => Self::Refused,
        }
    }

    /// The name that the API uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::InFlight => "in-flight",
            Self::Waiting => "waiting",
            Self::Accepted => "accepted",
            Self::Mined => "mined",
            Self::Contested => "contested",
            Self::Displaced => "displaced",
            Self::Invalid => "invalid",
            Self::Refused => "refused",
        }
    }
}
