//! Which coins a payment spends.

use std::cmp::Reverse;

use crate::ledger::Books;
use crate::ledger::rows::Order::{Ascending, Descending};
use crate::ledger::rows::{Rows, RowsOf, Spendable};
use crate::model::coin::{Chain, INPUT_LEN, Spending, fee};
use crate::model::receipt::{Receipt, ReceiptKey};
use crate::model::transaction::{TransactionRecord, TransactionState};

/// The most coins that one transaction spends.
pub(crate) const MAX_INPUTS: usize = 500;
/// How many coins of a bucket are looked at to find one that fits best.
const MAX_COMPARED: usize = 64;
/// What a bucket's number is raised by where its coins are the unconfirmed ones of strangers.
const OF_STRANGERS: u8 = 64;

/// Coins of similar worth share a bucket: those of `2^bucket` satoshis and more, but less than twice
/// as much. Strangers' unconfirmed coins have buckets of their own, 64 higher: a stranger can still have
/// another transaction take the place of the one that makes them.
pub(crate) fn bucket(receipt: &Receipt, maker: &TransactionRecord) -> u8 {
    let worth = u8::try_from(receipt.satoshis.max(1).ilog2()).expect("a u64 has 64 bits");
    let is_sure =
        receipt.key.chain == Chain::Change || matches!(maker.state, TransactionState::Mined(_));
    if is_sure { worth } else { worth + OF_STRANGERS }
}

/// Chosen coins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) keys: Vec<ReceiptKey>,
    /// What they are worth together.
    pub(crate) total: u64,
}

impl Choice {
    fn add(&mut self, key: ReceiptKey, satoshis: u64) {
        self.keys.push(key);
        self.total = self.total.saturating_add(satoshis);
    }

    fn suffices(&self, spending: &Spending) -> bool {
        !self.keys.is_empty() && self.total >= spending.needed(self.keys.len())
    }
}

impl<R: Rows> Books<R> {
    /// Chooses coins: those of `first`; besides, one if one is enough, the smallest that fits as far as few
    /// are compared; else the largest first. Of a bucket with more coins than a transaction may spend, the
    /// newest are taken. Mined coins and own change come before strangers' unconfirmed coins. Answers what
    /// can be spent if that is too little.
    pub(crate) fn choose(
        &self,
        spending: &Spending,
        first: &[ReceiptKey],
    ) -> Result<Result<Choice, u64>, R::Error> {
        let mut begun = Choice::default();
        for key in first {
            begun.add(*key, self.receipt(*key)?.satoshis);
        }
        if begun.suffices(spending) {
            return Ok(Ok(begun));
        }
        let missing = spending.needed(begun.keys.len() + 1).saturating_sub(begun.total);
        if let Some((key, satoshis)) = self.one_coin(missing, first, 0)? {
            begun.add(key, satoshis);
            return Ok(Ok(begun));
        }
        let mut sure = begun.clone();
        if self.add_largest(&mut sure, spending, first, 0)? {
            return Ok(Ok(sure));
        }
        if let Some((key, satoshis)) = self.one_coin(missing, first, OF_STRANGERS)? {
            begun.add(key, satoshis);
            return Ok(Ok(begun));
        }
        let is_enough = self.add_largest(&mut sure, spending, first, OF_STRANGERS)?;
        Ok(if is_enough { Ok(sure) } else { Err(sure.total) })
    }

    /// A coin of at least this amount, in the buckets from `base` on.
    fn one_coin(
        &self,
        needed: u64,
        except: &[ReceiptKey],
        base: u8,
    ) -> Result<Option<(ReceiptKey, u64)>, R::Error> {
        let own = base + u8::try_from(needed.max(1).ilog2()).expect("a u64 has 64 bits");
        let free = |rows: RowsOf<Spendable>| {
            let coins = rows.into_iter().map(|((_, key), satoshis)| (key, satoshis));
            coins.filter(move |(key, _)| !except.contains(key))
        };
        let compared =
            self.rows.first::<Spendable>(coins_of(own..=own), Ascending, MAX_COMPARED)?;
        let fitting = free(compared).filter(|(_, satoshis)| *satoshis >= needed);
        if let Some(best) = fitting.min_by_key(|(_, satoshis)| *satoshis) {
            return Ok(Some(best));
        }
        let larger = coins_of(own + 1..=base + OF_STRANGERS - 1);
        let compared =
            self.rows.first::<Spendable>(larger, Ascending, MAX_COMPARED + except.len())?;
        Ok(free(compared).min_by_key(|(_, satoshis)| *satoshis))
    }

    /// Adds coins out of the buckets from `base` on, the largest first, until they suffice. One that is
    /// worth less than the fee for its own input is none.
    fn add_largest(
        &self,
        choice: &mut Choice,
        spending: &Spending,
        except: &[ReceiptKey],
        base: u8,
    ) -> Result<bool, R::Error> {
        let own_fee = fee(spending.fee_rate, INPUT_LEN);
        let all = coins_of(base..=base + OF_STRANGERS - 1);
        let mut largest =
            self.rows.first::<Spendable>(all, Descending, MAX_INPUTS + except.len())?;
        largest.sort_by_key(|(_, satoshis)| Reverse(*satoshis));
        for ((_, key), satoshis) in largest {
            if choice.keys.len() == MAX_INPUTS {
                break;
            }
            if satoshis > own_fee && !except.contains(&key) {
                choice.add(key, satoshis);
                if choice.suffices(spending) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

type SpendableRange = std::ops::RangeInclusive<(u8, ReceiptKey)>;

fn coins_of(buckets: std::ops::RangeInclusive<u8>) -> SpendableRange {
    let first = ReceiptKey { maker: 0, vout: 0 };
    let last = ReceiptKey { maker: u64::MAX, vout: u32::MAX };
    (*buckets.start(), first)..=(*buckets.end(), last)
}

#[cfg(test)]
mod tests {
    use bsv_tx::Txid;

    use super::*;
    use crate::model::coin::KeyPath;
    use crate::model::time::Timestamp;
    use crate::model::transaction::Purpose;

    #[test]
    fn a_bucket_holds_coins_of_similar_worth_and_equal_trust() {
        let record = |state| TransactionRecord {
            txid: Txid::from_bytes([0; 32]),
            purpose: Purpose::Found,
            state,
            was_seen: true,
            satoshis: 0,
            at: Timestamp::from_micros(0),
        };
        let of = |chain, satoshis| {
            let key = KeyPath { account: 0, chain, index: 0 };
            bucket(&Receipt { satoshis, key, spender: None }, &record(TransactionState::Seen))
        };
        let change = |satoshis| of(Chain::Change, satoshis);
        assert_eq!([0, 1, 2, 3, 4, 1023, 1024, u64::MAX].map(change), [0, 0, 1, 1, 2, 9, 10, 63]);
        assert_eq!(of(Chain::Receive, 1024), 74);
    }
}
