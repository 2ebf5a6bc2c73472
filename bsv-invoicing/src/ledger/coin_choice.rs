//! Which coins a payment spends.

use crate::ledger::Books;
use crate::ledger::rows::Order::{Ascending, Descending};
use crate::ledger::rows::{Spendable, WalletStoreError, try_all};
use crate::model::coin::{Chain, INPUT_LEN, Spending, Trust, fee};
use crate::model::receipt::{Receipt, ReceiptKey};
use crate::model::transaction::{Purpose, RawBytes, TransactionRecord, TransactionState};

/// The most coins that one transaction spends.
pub(crate) const MAX_INPUTS: usize = 500;

/// How often coins are chosen anew because some come from long transactions. Strangers may make any number
/// of them.
const MAX_CHOICES: usize = 20;

/// The place of a spendable receipt in the list: sure receipts come first, and within each trust
/// the smallest.
pub(crate) fn place(
    key: ReceiptKey,
    receipt: &Receipt,
    maker: &TransactionRecord,
) -> (Trust, u64, ReceiptKey) {
    // Strangers can pay to a key for change, too. A transaction that pays only the wallet itself
    // may have no fee, so payees refuse payments that build on it until it is mined.
    let is_change = receipt.key.chain == Chain::Change && !maker.purpose.is_from_outside();
    let pays_somebody = !matches!(maker.purpose, Purpose::Outgoing(_)) || maker.satoshis > 0;
    let trust = match maker.state {
        TransactionState::Mined(_) => Trust::Sure,
        _ if is_change && pays_somebody => Trust::Sure,
        _ => Trust::Unsure,
    };
    (trust, receipt.satoshis, key)
}

/// Chosen coins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) keys: Vec<ReceiptKey>,
    /// The sum of their amounts.
    pub(crate) total: u64,
}

impl Choice {
    pub(crate) fn add(&mut self, key: ReceiptKey, satoshis: u64) {
        self.keys.push(key);
        self.total = self.total.saturating_add(satoshis);
    }

    fn suffices(&self, spending: &Spending) -> bool {
        !self.keys.is_empty() && self.total >= spending.needed(self.keys.len())
    }

    /// Adds coins until they suffice. Returns whether they do.
    fn fill(&mut self, spending: &Spending, coins: &[(u64, ReceiptKey)]) -> bool {
        for (satoshis, key) in coins {
            if self.keys.len() >= MAX_INPUTS {
                break;
            }
            self.add(*key, *satoshis);
            if self.suffices(spending) {
                return true;
            }
        }
        false
    }
}

impl Books<'_> {
    /// Chooses coins: those of `first`, and the smallest coin that suffices with them, or else as
    /// few coins as possible. Mined coins and own change come before strangers' unconfirmed coins.
    /// If all coins are too little, the error is the sum that can be spent.
    pub(crate) fn choose(
        &self,
        spending: &Spending,
        first: &[ReceiptKey],
    ) -> Result<Result<Choice, u64>, WalletStoreError> {
        self.choose_among(&[Trust::Sure, Trust::Unsure], spending, first, &[])
    }

    /// Chooses coins like [`choose`](Self::choose), but coins of long transactions only if sure coins of
    /// short ones do not suffice, as far as that is looked for.
    pub(crate) fn choose_short(
        &self,
        spending: &Spending,
        first: &[ReceiptKey],
    ) -> Result<Result<Choice, u64>, WalletStoreError> {
        let any = self.choose(spending, first)?;
        let (mut chosen, mut avoided) = (any.clone(), Vec::new());
        for _ in 0..MAX_CHOICES {
            let Ok(choice) = chosen else { break };
            let long = try_all(&choice.keys, |key| {
                let is_long = self.transaction(key.maker)?.raw != RawBytes::Short;
                Ok::<_, WalletStoreError>((is_long && !first.contains(key)).then_some(*key))
            })?;
            let before = avoided.len();
            avoided.extend(long.into_iter().flatten());
            if avoided.len() == before {
                return Ok(Ok(choice));
            }
            chosen = self.choose_among(&[Trust::Sure], spending, first, &avoided)?;
        }
        Ok(any)
    }

    fn choose_among(
        &self,
        trusts: &[Trust],
        spending: &Spending,
        first: &[ReceiptKey],
        avoided: &[ReceiptKey],
    ) -> Result<Result<Choice, u64>, WalletStoreError> {
        let except = [first, avoided].concat();
        let mut begun = Choice::default();
        let receipts = try_all(first, |key| self.receipt(*key))?;
        for (key, receipt) in first.iter().zip(receipts) {
            begun.add(*key, receipt.satoshis);
        }
        if begun.suffices(spending) {
            return Ok(Ok(begun));
        }
        let missing = spending.needed(begun.keys.len() + 1).saturating_sub(begun.total);
        let mut largest = Vec::new();
        for trust in trusts.iter().copied() {
            if let Some((satoshis, key)) = self.smallest_of(trust, missing, &except)? {
                begun.add(key, satoshis);
                return Ok(Ok(begun));
            }
            largest.extend(self.largest(trust, spending.fee_rate, &except, MAX_INPUTS)?);
            let mut choice = begun.clone();
            if choice.fill(spending, &largest) {
                return Ok(Ok(choice));
            }
        }
        // The limit on inputs may be reached with many sure coins, although unsure coins worth more
        // are left.
        largest.sort_by(|one, other| other.cmp(one));
        let is_enough = begun.fill(spending, &largest);
        Ok(if is_enough { Ok(begun) } else { Err(begun.total) })
    }

    /// The smallest coin worth at least this amount.
    fn smallest_of(
        &self,
        trust: Trust,
        satoshis: u64,
        except: &[ReceiptKey],
    ) -> Result<Option<(u64, ReceiptKey)>, WalletStoreError> {
        let (from, to) = (lowest(trust, satoshis), highest(trust));
        let rows = self.rows.first::<Spendable>(from..=to, Ascending, except.len() + 1)?;
        let mut coins = rows.into_iter().map(|((_, satoshis, key), ())| (satoshis, key));
        Ok(coins.find(|(_, key)| !except.contains(key)))
    }

    /// The largest coins, up to `limit`. A coin that is not worth more than the fee for its own
    /// input does not count.
    pub(crate) fn largest(
        &self,
        trust: Trust,
        fee_rate: u64,
        except: &[ReceiptKey],
        limit: usize,
    ) -> Result<Vec<(u64, ReceiptKey)>, WalletStoreError> {
        let (from, to) = (lowest(trust, worthwhile(fee_rate)), highest(trust));
        let rows = self.rows.first::<Spendable>(from..=to, Descending, limit + except.len())?;
        let coins = rows.into_iter().map(|((_, satoshis, key), ())| (satoshis, key));
        Ok(coins.filter(|(_, key)| !except.contains(key)).collect())
    }
}

/// The least amount that exceeds the fee for the coin's own input.
fn worthwhile(fee_rate: u64) -> u64 {
    fee(fee_rate, INPUT_LEN).saturating_add(1)
}

fn lowest(trust: Trust, satoshis: u64) -> (Trust, u64, ReceiptKey) {
    (trust, satoshis, ReceiptKey { maker: 0, vout: 0 })
}

fn highest(trust: Trust) -> (Trust, u64, ReceiptKey) {
    (trust, u64::MAX, ReceiptKey { maker: u64::MAX, vout: u32::MAX })
}
