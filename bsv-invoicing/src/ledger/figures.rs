//! Figures about the whole wallet.

use minicbor::{Decode, Encode};

use crate::model::holdings::Holdings;

/// Figures about the whole wallet. During a batch they are in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Figures {
    /// The number of the last invoice.
    #[n(0)]
    pub last_invoice: u64,
    /// The id of the last user.
    #[n(1)]
    pub last_user: u64,
    /// The number of the last event.
    #[n(2)]
    pub last_event: u64,
    /// When the last event happened, in microseconds since 1970.
    #[n(3)]
    pub last_event_at: u64,
    /// The number of the last transaction.
    #[n(4)]
    pub last_transaction: u64,
    /// The number of the last payment by the wallet.
    #[n(5)]
    pub last_payment: u64,
    /// How many keys for change of the current account are used.
    #[n(6)]
    pub last_change: u64,
    /// The current account: new keys come from it.
    #[n(7)]
    pub account: u64,
    /// The last invoice whose key comes from an earlier account.
    #[n(8)]
    pub last_invoice_before: u64,
    /// The last user whose key comes from an earlier account.
    #[n(9)]
    pub last_user_before: u64,
    /// What the wallet holds.
    #[n(10)]
    pub holdings: Holdings,
    /// How many coins of transactions are listed of which only services tell.
    #[cbor(n(11), default)]
    pub unproven_coins: u64,
    /// The sum of the receipts that count by the word of services alone, in satoshis.
    #[cbor(n(12), default)]
    pub exposed: u64,
    /// What a payment would have added to that sum for which an event told that the limit was reached. It
    /// is 0 if the next such payment gets an event.
    #[cbor(n(13), default)]
    pub exposure_told_for: u64,
}
