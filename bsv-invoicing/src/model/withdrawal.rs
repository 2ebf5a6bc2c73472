//! Withdrawals: money that the wallet's owner sends to an address or a script.

use minicbor::{Decode, Encode};

use crate::model::outgoing::OutgoingPayment;
use crate::model::time::Timestamp;

/// A withdrawal as it is stored. Its state follows from its payments.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct WithdrawalRecord {
    /// The address, or the script in hex, that the money goes to.
    #[n(0)]
    pub to: String,
    /// The owner's own reference.
    #[n(1)]
    pub reference: Option<String>,
    /// The number of its first payment. The numbers of the others follow without a gap.
    #[n(2)]
    pub first_payment: u64,
    /// How many payments it consists of.
    #[n(3)]
    pub payments: u64,
    /// When it was made.
    #[n(4)]
    pub created_at: Timestamp,
}

/// A withdrawal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Withdrawal {
    /// Its number, from 1 on.
    pub number: u64,
    /// The address, or the script in hex, that the money goes to.
    pub to: String,
    /// The owner's own reference.
    pub reference: Option<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// Its payments. There are several if one transaction cannot spend all coins.
    pub payments: Vec<OutgoingPayment>,
}

impl Withdrawal {
    /// What arrives, in satoshis.
    pub fn satoshis(&self) -> u64 {
        self.payments.iter().map(|payment| payment.satoshis).sum()
    }

    /// What the miners get, in satoshis.
    pub fn fee(&self) -> u64 {
        self.payments.iter().map(|payment| payment.fee).sum()
    }
}

/// How much is withdrawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WithdrawalAmount {
    /// This many satoshis, plus the fee.
    Satoshis(u64),
    /// All coins that are mined or the wallet's own change, less the fee.
    All,
}

/// What a transaction of a withdrawal sends and costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WithdrawalCost {
    /// What arrives, in satoshis.
    pub satoshis: u64,
    /// What the miner gets, in satoshis.
    pub fee: u64,
}
