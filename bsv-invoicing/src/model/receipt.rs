//! Receipts: outputs that pay scripts of the wallet, change included.

use minicbor::{Decode, Encode};

use crate::model::coin::KeyPath;

/// Identifies a receipt: the number of its transaction, and the index of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
pub struct ReceiptKey {
    /// The number of the transaction.
    #[n(0)]
    pub maker: u64,
    /// The index of the output.
    #[n(1)]
    pub vout: u32,
}

impl ReceiptKey {
    /// No receipt has a lower key.
    pub(crate) const FIRST: Self = Self { maker: 0, vout: 0 };

    /// The lowest possible key after this one.
    pub(crate) fn next(self) -> Self {
        match self.vout.checked_add(1) {
            Some(vout) => Self { vout, ..self },
            None => Self { maker: self.maker.saturating_add(1), vout: 0 },
        }
    }

    /// The range of all possible receipts of a transaction.
    pub(crate) fn all_of(maker: u64) -> std::ops::RangeInclusive<Self> {
        Self { maker, vout: 0 }..=Self { maker, vout: u32::MAX }
    }
}

/// An output that pays a script of the wallet. While it can be spent, it is a coin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Receipt {
    /// The amount.
    #[n(0)]
    pub satoshis: u64,
    /// The key that unlocks it.
    #[n(1)]
    pub key: KeyPath,
    /// The number of the transaction that spends it, or for which it is reserved.
    #[n(2)]
    pub spender: Option<u64>,
}

/// An output that pays a script of the wallet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewReceipt {
    /// The index of the output.
    pub vout: u32,
    /// The amount.
    pub satoshis: u64,
    /// The key that unlocks it.
    pub key: KeyPath,
}

impl NewReceipt {
    /// The receipt of the transaction with this number. Nothing spends it yet.
    pub(crate) fn of(&self, maker: u64) -> (ReceiptKey, Receipt) {
        let Self { vout, satoshis, key } = *self;
        (ReceiptKey { maker, vout }, Receipt { satoshis, key, spender: None })
    }
}
