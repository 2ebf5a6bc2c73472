//! Figures about the whole wallet.

use crate::model::holdings::Holdings;

/// Figures about the whole wallet. During a batch they are in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// The number of the last invoice.
    pub last_invoice: u64,
    /// The id of the last user.
    pub last_user: u64,
    /// The number of the last event.
    pub last_event: u64,
    /// When the last event happened, in microseconds since 1970.
    pub last_event_at: u64,
    /// The number of the last transaction.
    pub last_transaction: u64,
    /// The number of the last payment by the wallet.
    pub last_payment: u64,
    /// How many keys for change of the current account are used.
    pub last_change: u64,
    /// The current account: new keys come from it.
    pub account: u64,
    /// The last invoice whose key comes from an earlier account.
    pub last_invoice_before: u64,
    /// The last user whose key comes from an earlier account.
    pub last_user_before: u64,
    /// What the wallet holds.
    pub holdings: Holdings,
}
