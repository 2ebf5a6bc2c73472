//! Movements of money, for bookkeeping.

use bsv_tx::Txid;

use crate::model::invoice_id::InvoiceId;
use crate::model::payment::IncomingState;
use crate::model::time::Timestamp;
use crate::model::transaction::BlockPlace;

/// Money that came to the wallet or left it, as the network shows it. The sum of what came, less
/// what left and all fees, is the balance plus what waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Movement {
    /// When it was first seen, or when the wallet made it.
    pub at: Timestamp,
    /// Why it moved.
    pub kind: MovementKind,
    /// The amount that came, in satoshis.
    pub received: u64,
    /// The amount that left, in satoshis, without the fee.
    pub sent: u64,
    /// The fee that the wallet paid, in satoshis.
    pub fee: u64,
    /// The transaction.
    pub txid: Txid,
    /// The output that was received.
    pub vout: Option<u32>,
    /// The state of the transaction.
    pub state: IncomingState,
    /// The block that it is in.
    pub block: Option<BlockPlace>,
    /// The time in the header of that block. The store does not hold it:
    /// [`crate::Wallet::movements`] asks the node.
    pub block_time: Option<Timestamp>,
    /// Whether the wallet has dropped the bytes of the transaction.
    pub are_bytes_dropped: bool,
}

/// Which movements are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MovementQuery {
    /// The [`MovementPage::next`] of the previous part, or 0 for the first part.
    pub after: u64,
    /// Only movements that were first seen, or made, at this time or later.
    pub from: Timestamp,
    /// Only movements that were first seen, or made, before this time.
    pub to: Timestamp,
}

/// A part of all movements, in the order in which the wallet recorded them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovementPage {
    /// The movements.
    pub movements: Vec<Movement>,
    /// The value for [`MovementQuery::after`] that continues after this part, if there is more.
    pub next: Option<u64>,
}

/// Why money moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MovementKind {
    /// It was received, for an invoice or not.
    Receipt(Option<PaidInvoice>),
    /// A payment URL was paid.
    Payment(String),
    /// The withdrawal of this number, to an address or a script in hex.
    Withdrawal(u64, String),
    /// Money that was paid to an invoice went back to an address or a script in hex.
    Refund(PaidInvoice, String),
    /// Coins of the wallet were brought together.
    Consolidation,
    /// A coin was taken back from a payment that was cancelled.
    Cancellation,
    /// A transaction that the wallet's store does not know spent coins of the wallet, for example
    /// one from before a restore.
    Found,
}

/// The invoice that a movement belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaidInvoice {
    /// Its id.
    pub id: InvoiceId,
    /// The reference that its owner gave it.
    pub reference: Option<String>,
    /// What it is for.
    pub description: Option<String>,
}

impl MovementKind {
    /// The name that exports use.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Receipt(_) => "receipt",
            Self::Payment(_) => "payment",
            Self::Withdrawal(..) => "withdrawal",
            Self::Refund(..) => "refund",
            Self::Consolidation => "consolidation",
            Self::Cancellation => "cancellation",
            Self::Found => "found",
        }
    }

    /// The invoice that it belongs to.
    pub fn invoice(&self) -> Option<&PaidInvoice> {
        match self {
            Self::Receipt(invoice) => invoice.as_ref(),
            Self::Refund(invoice, _) => Some(invoice),
            _ => None,
        }
    }

    /// Where it went: a payment URL, an address, or a script in hex.
    pub fn recipient(&self) -> Option<&str> {
        match self {
            Self::Payment(to) | Self::Withdrawal(_, to) | Self::Refund(_, to) => Some(to),
            _ => None,
        }
    }
}
