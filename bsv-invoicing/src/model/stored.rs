//! Small values that only rows hold.

use bsv_tx::BlockHash;
use minicbor::{Decode, Encode};

use crate::model::byte_members::block_hash;
use crate::model::time::Timestamp;

/// The payment of a transaction to an invoice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Paid {
    /// The index of the first output that pays the invoice.
    #[n(0)]
    pub first: u32,
    /// The sum of these outputs.
    #[n(1)]
    pub satoshis: u64,
}

/// A block up to which the wallet has followed the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct FollowedBlock {
    /// Its height.
    #[n(0)]
    pub height: u32,
    /// Its hash.
    #[cbor(n(1), with = "block_hash")]
    pub hash: BlockHash,
}

/// The reorganisations that the wallet has followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Reorganised {
    /// How many there were.
    #[n(0)]
    pub count: u64,
    /// Whether the chain was not yet followed to a tip after the last one. The height of the last
    /// followed block then says nothing about the depth of other blocks.
    #[n(1)]
    pub is_under_way: bool,
    /// Whether a second service shows the tip: see [`ConfirmTip`](crate::ledger::ConfirmTip).
    #[n(2)]
    pub is_confirmed: Option<bool>,
}

/// The place from which on blocks are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub enum RescanFrom {
    /// The block of this height.
    #[n(0)]
    Height(#[n(0)] u32),
    /// The first block that is not older than this time.
    #[n(1)]
    Time(#[n(0)] Timestamp),
}

/// The end of books that are an earlier copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct CopyEnd {
    /// The height up to which they had followed the chain, if it is known.
    #[n(0)]
    pub followed_to: Option<u32>,
    /// The number of their last event.
    #[n(1)]
    pub last_event: u64,
}

/// The beginning of the numbers of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct AccountStart {
    /// The last invoice whose key comes from an earlier account.
    #[n(0)]
    pub last_invoice_before: u64,
    /// The last user whose key comes from an earlier account.
    #[n(1)]
    pub last_user_before: u64,
}
