use bsv_tx::{OutPoint, TxOut};
use minicbor::{Decode, Encode};

/// A chain of keys of an account: `m/44'/236'/<account>'/<chain>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
#[cbor(index_only)]
pub enum Chain {
    /// Keys that invoices are paid to; the index counts the invoices of the account.
    #[n(0)]
    Receive = 0,
    /// Keys that change goes to.
    #[n(1)]
    Change = 1,
    /// Keys of users; the index counts the users of the account.
    #[n(2)]
    User = 2,
}

/// Where the key of a coin is: `m/44'/236'/<account>'/<chain>/<index>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
pub struct KeyPath {
    /// The account: 0, or after a restore the days from the beginning of 2026 to that day.
    #[n(0)]
    pub account: u32,
    /// The chain.
    #[n(1)]
    pub chain: Chain,
    /// The number of the key in its chain.
    #[n(2)]
    pub index: u32,
}

/// An output that is the wallet's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coin {
    /// Where it is.
    pub outpoint: OutPoint,
    /// The amount.
    pub satoshis: u64,
    /// The key that unlocks it.
    pub key: KeyPath,
}

/// How sure it is that a coin stays the wallet's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trust {
    /// It is in a block, or change of a payment by the wallet.
    Sure = 0,
    /// It is in no block, and comes from a stranger's transaction that another one can replace, or
    /// that the network may not let others build on.
    Unsure = 1,
}

/// The fee for so many bytes of a transaction at a rate of satoshis per 1000 bytes, rounded up.
pub(crate) fn fee(rate: u64, bytes: u64) -> u64 {
    let fee = u128::from(bytes) * u128::from(rate);
    u64::try_from(fee.div_ceil(1000)).unwrap_or(u64::MAX)
}

/// The bytes of a transaction besides inputs and outputs: version, lock time, and two counts of at
/// most three bytes.
const FRAME_LEN: u64 = 4 + 4 + 3 + 3;
/// An input that spends a P2PKH output: outpoint, sequence number, and a script with a signature of
/// at most 72 bytes and a compressed key.
pub(crate) const INPUT_LEN: u64 = 36 + 4 + 1 + (1 + 72 + 1) + (1 + 33);
/// A P2PKH output.
const CHANGE_LEN: u64 = 8 + 1 + 25;
/// The fee rate that miners commonly ask for, in satoshis per 1000 bytes. A node that asks for less
/// today may not be the one that mines a transaction that spends the change.
const COMMON_RATE: u64 = 100;

/// What a transaction is to pay, before the coins for it are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spending {
    /// The sum of its outputs, change not included, in satoshis.
    pub satoshis: u64,
    /// The size of these outputs, in bytes.
    pub output_bytes: u64,
    /// The fee it must pay, in satoshis per 1000 bytes.
    pub fee_rate: u64,
}

impl Spending {
    /// The sum that this many coins must be worth.
    pub fn needed(&self, inputs: usize) -> u64 {
        let bytes = FRAME_LEN + self.output_bytes + INPUT_LEN * inputs as u64;
        self.satoshis.saturating_add(fee(self.fee_rate, bytes))
    }

    /// The change that coins worth `total` together leave. There is none if it would cost more to
    /// make and to spend than it is worth: the miner then gets the rest.
    pub fn change(&self, inputs: usize, total: u64) -> Option<u64> {
        let bytes = FRAME_LEN + self.output_bytes + INPUT_LEN * inputs as u64 + CHANGE_LEN;
        let change = total.checked_sub(self.satoshis)?.checked_sub(fee(self.fee_rate, bytes))?;
        (change > smallest_output(self.fee_rate)).then_some(change)
    }
}

/// The least that an output must hold to be worth the fee for spending it, in satoshis.
pub(crate) fn smallest_output(fee_rate: u64) -> u64 {
    fee(fee_rate.max(COMMON_RATE), INPUT_LEN)
}

/// Whether an amount is worth sending, so that it may be a case for its owner.
pub(crate) fn is_worth_sending(satoshis: u64) -> bool {
    satoshis >= smallest_output(0)
}

/// The size of outputs in a transaction, in bytes.
pub(crate) fn encoded_len(outputs: &[TxOut]) -> u64 {
    let mut bytes = Vec::new();
    for output in outputs {
        output.encode(&mut bytes);
    }
    bytes.len() as u64
}

/// The coins that a transaction spends, and its change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// The coins.
    pub coins: Vec<Coin>,
    /// The change, if there is any.
    pub change: Option<Change>,
}

impl Selection {
    /// What the transaction costs the wallet, in satoshis: what it pays, and the fee.
    pub fn cost(&self) -> u64 {
        let total: u64 = self.coins.iter().map(|coin| coin.satoshis).sum();
        total - self.change.map_or(0, |change| change.satoshis)
    }
}

/// The output of a transaction that goes back to the wallet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The amount.
    pub satoshis: u64,
    /// The key that it goes to.
    pub key: KeyPath,
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPENDING: Spending = Spending { satoshis: 1000, output_bytes: 34, fee_rate: 500 };

    #[test]
    fn fees_are_rounded_up() {
        assert_eq!([0, 1, 20, 21, 1000].map(|bytes| fee(50, bytes)), [0, 1, 1, 2, 50]);
        assert_eq!(fee(u64::MAX, u64::MAX), u64::MAX);
    }

    #[test]
    fn change_pays_for_itself_or_is_left_to_the_miner() {
        // 14 + 34 + 150 bytes, and 34 more with change, which then takes 150 bytes to spend.
        assert_eq!(SPENDING.needed(1), 1000 + 99);
        assert_eq!(SPENDING.change(1, 1099), None);
        assert_eq!(SPENDING.change(1, 1000 + 116 + 75), None);
        assert_eq!(SPENDING.change(1, 1000 + 116 + 76), Some(76));
        assert_eq!(SPENDING.change(1, 999), None);
        let cheap = Spending { fee_rate: 0, ..SPENDING };
        assert_eq!([1015, 1016].map(|total| cheap.change(1, total)), [None, Some(16)]);
    }
}
