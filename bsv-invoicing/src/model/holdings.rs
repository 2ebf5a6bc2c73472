//! What the wallet holds: the sums of its receipts by how they are held.

use std::fmt;

use minicbor::{Decode, Encode};

use crate::model::receipt::Receipt;
use crate::model::transaction::{TransactionRecord, TransactionState};

/// How a receipt that nothing has spent is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Holding {
    /// It is in a block, and can be spent.
    Confirmed,
    /// It is in the mempool, and can be spent.
    Unconfirmed,
    /// It is in the mempool, but the fee may be too low for it to be mined. It does not count in the balance.
    Waiting,
    /// A transaction that the network has not shown yet spends it.
    Reserved,
    /// The network has shown it before and does not show it now.
    Contested,
    /// It is an output of a coinbase transaction that is too new to be spent.
    Immature,
}

impl Holding {
    /// How a receipt is held. `None` if it does not count or is spent.
    pub(crate) fn of(
        receipt: &Receipt,
        maker: &TransactionRecord,
        (is_spent, is_immature): (bool, bool),
    ) -> Option<Self> {
        match maker.state {
            _ if is_spent => None,
            TransactionState::Waiting => Some(Self::Waiting),
            state if !state.counts() => None,
            _ if receipt.spender.is_some() => Some(Self::Reserved),
            TransactionState::Contested { .. } => Some(Self::Contested),
            TransactionState::Mined(_) if is_immature => Some(Self::Immature),
            TransactionState::Mined(_) => Some(Self::Confirmed),
            _ => Some(Self::Unconfirmed),
        }
    }
}

/// The sums of receipts that nothing has spent, in satoshis, by how they are held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Holdings {
    /// Those in blocks that can be spent.
    #[n(0)]
    pub confirmed: u64,
    /// Those in the mempool that can be spent.
    #[n(1)]
    pub unconfirmed: u64,
    /// Those in the mempool whose fee may be too low for them to be mined. They do not count in the balance.
    #[n(2)]
    pub waiting: u64,
    /// Those that transactions spend that the network has not shown yet.
    #[n(3)]
    pub reserved: u64,
    /// Those that the network has shown before and does not show now.
    #[n(4)]
    pub contested: u64,
    /// Those that are outputs of coinbase transactions too new to be spent.
    #[n(5)]
    pub immature: u64,
    /// How many receipts count in the balance.
    #[n(6)]
    pub coins: u64,
}

impl Holdings {
    /// The balance: the sum of all that does not wait.
    pub fn balance(&self) -> u64 {
        let Self { confirmed, unconfirmed, waiting: _, reserved, contested, immature, coins: _ } =
            *self;
        [confirmed, unconfirmed, reserved, contested, immature]
            .into_iter()
            .fold(0, u64::saturating_add)
    }

    /// The sums after a receipt changes from `old` to `new`. `None` if a sum would be below 0 or
    /// overflow.
    pub(crate) fn moved(
        mut self,
        satoshis: u64,
        old: Option<Holding>,
        new: Option<Holding>,
    ) -> Option<Self> {
        if let Some(old) = old {
            let sum = self.sum_of(old);
            *sum = sum.checked_sub(satoshis)?;
            self.coins = self.coins.checked_sub(u64::from(old != Holding::Waiting))?;
        }
        if let Some(new) = new {
            let sum = self.sum_of(new);
            *sum = sum.checked_add(satoshis)?;
            self.coins += u64::from(new != Holding::Waiting);
        }
        Some(self)
    }

    fn sum_of(&mut self, holding: Holding) -> &mut u64 {
        match holding {
            Holding::Confirmed => &mut self.confirmed,
            Holding::Unconfirmed => &mut self.unconfirmed,
            Holding::Waiting => &mut self.waiting,
            Holding::Reserved => &mut self.reserved,
            Holding::Contested => &mut self.contested,
            Holding::Immature => &mut self.immature,
        }
    }
}

impl fmt::Display for Holdings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { confirmed, unconfirmed, waiting, reserved, contested, immature, coins } = self;
        write!(
            f,
            "{confirmed} confirmed, {unconfirmed} unconfirmed, {waiting} waiting, {reserved} reserved, \
             {contested} contested, {immature} immature, in {coins} coins"
        )
    }
}
