//! Whether the fee of a payment suffices for the payment and its unconfirmed ancestors to be mined.
//!
//! Miners take a transaction only together with all its unconfirmed ancestors. An ancestor that
//! reaches the fee rate together with those of its own ancestors that are not paid for yet is paid
//! for, and so are they. The payment must pay for the ancestors that remain.

use std::collections::{BTreeMap, BTreeSet};

use bsv_network::MempoolEntry;
use bsv_tx::Txid;

use crate::dpp::FeeRate;
use crate::error::Error;
use crate::wallet::mempool_entries::Entries;

/// The most unconfirmed ancestors that a payment may have.
pub(crate) const MAX_ANCESTORS: usize = 100;

/// The fee that transactions must pay.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demand {
    /// The rate that we ask for.
    pub(crate) rate: FeeRate,
    /// The rate that our node, like the miners, asks for, in satoshis per 1000 bytes.
    pub(crate) floor: u64,
}

impl Demand {
    /// The least fee for this many bytes. Payers round down twice, for data and for the rest, so
    /// one satoshi may be missing. The fee must still reach what miners ask for, and one satoshi
    /// unless our rate is 0.
    fn least(self, bytes: u64) -> u64 {
        let floor = FeeRate { satoshis: self.floor, bytes: 1000 };
        let asked = self.rate.fee(bytes).saturating_sub(1);
        asked.max(floor.fee(bytes)).max(self.rate.satoshis.min(1))
    }
}

/// The facts about a payment that its fee depends on.
pub(crate) struct Payment {
    /// The fee, in satoshis.
    pub(crate) fee: u64,
    /// The size, in bytes.
    pub(crate) size: u64,
    /// The unconfirmed transactions whose outputs it spends.
    pub(crate) parents: Vec<Txid>,
    /// Ancestors that the node does not have and that will be sent to it first.
    pub(crate) unsent: BTreeMap<Txid, MempoolEntry>,
}

impl Payment {
    /// Fails unless the payment reaches the rate together with the unconfirmed ancestors that are
    /// not paid for.
    pub(crate) async fn check(
        self,
        entries: &mut Entries<'_>,
        demand: Demand,
    ) -> Result<(), Error> {
        let ancestors = Ancestors::read(entries, self.parents, self.unsent).await?;
        let (unpaid_fee, unpaid_size) = ancestors.unpaid(demand);
        let paid = self.fee.saturating_add(unpaid_fee);
        let needed = demand.least(self.size.saturating_add(unpaid_size));
        match paid >= needed {
            true => Ok(()),
            false => Err(Error::FeeTooLow { paid, needed }),
        }
    }
}

/// The unconfirmed ancestors of a payment.
struct Ancestors(BTreeMap<Txid, MempoolEntry>);

impl Ancestors {
    /// Reads them one generation after the other. A node tells all ancestors of a transaction at
    /// once, too, but they may be thousands.
    async fn read(
        entries: &mut Entries<'_>,
        parents: Vec<Txid>,
        unsent: BTreeMap<Txid, MempoolEntry>,
    ) -> Result<Self, Error> {
        let mut found = BTreeMap::new();
        let mut asked = BTreeSet::new();
        let mut generation = parents;
        loop {
            generation.retain(|txid| asked.insert(*txid));
            if generation.is_empty() {
                return Ok(Self(found));
            }
            if asked.len() > MAX_ANCESTORS {
                return Err(Error::TooManyAncestors { limit: MAX_ANCESTORS });
            }
            let (own, sent): (Vec<_>, Vec<_>) =
                generation.into_iter().partition(|txid| unsent.contains_key(txid));
            // An ancestor that is not in the mempool has been mined meanwhile.
            let mut entries = entries.of_ancestors(&sent).await?;
            entries.extend(own.into_iter().map(|txid| (txid, unsent[&txid].clone())));
            generation = entries.iter().flat_map(|(_, entry)| &entry.parents).copied().collect();
            found.extend(entries);
        }
    }

    /// The fees and the bytes of the ancestors that are not paid for.
    fn unpaid(mut self, demand: Demand) -> (u64, u64) {
        // Ancestors come first. Otherwise the surplus of one would pay for its descendants.
        let mut order: Vec<_> = self.0.keys().copied().collect();
        order.sort_by_cached_key(|txid| self.with_ancestors(*txid).len());
        while let Some(group) = self.paid_group(&order, demand) {
            self.0.retain(|txid, _| !group.contains(txid));
            order.retain(|txid| !group.contains(txid));
        }
        self.sums(&self.0.keys().copied().collect())
    }

    /// The first transaction that reaches the rate together with its own ancestors that are not
    /// paid for yet, and these ancestors.
    fn paid_group(&self, order: &[Txid], demand: Demand) -> Option<BTreeSet<Txid>> {
        let mut groups = order.iter().map(|txid| self.with_ancestors(*txid));
        groups.find(|group| {
            let (fee, size) = self.sums(group);
            fee >= demand.least(size)
        })
    }

    fn with_ancestors(&self, txid: Txid) -> BTreeSet<Txid> {
        let mut group = BTreeSet::from([txid]);
        let mut queue = vec![txid];
        while let Some(entry) = queue.pop().and_then(|txid| self.0.get(&txid)) {
            let unpaid = entry.parents.iter().filter(|parent| self.0.contains_key(parent));
            queue.extend(unpaid.copied().filter(|parent| group.insert(*parent)));
        }
        group
    }

    fn sums(&self, group: &BTreeSet<Txid>) -> (u64, u64) {
        let entries = group.iter().filter_map(|txid| self.0.get(txid));
        entries.fold((0, 0), |(fee, size), entry| {
            (fee.saturating_add(entry.fee), size.saturating_add(entry.size))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: FeeRate = FeeRate { satoshis: 100, bytes: 1000 };
    const DEMAND: Demand = Demand { rate: RATE, floor: 1 };

    fn txid(number: u8) -> Txid {
        Txid::from_bytes([number; 32])
    }

    /// Transactions of 1000 bytes: number, fee, parents.
    fn unpaid(transactions: &[(u8, u64, &[u8])]) -> (u64, u64) {
        let entry = |fee, parents: &[u8]| MempoolEntry {
            fee,
            size: 1000,
            parents: parents.iter().copied().map(txid).collect(),
        };
        let entries = transactions.iter().map(|(number, fee, of)| (txid(*number), entry(*fee, of)));
        Ancestors(entries.collect()).unpaid(DEMAND)
    }

    #[test]
    fn rounding_does_not_lead_below_what_miners_ask_for() {
        let least = |rate, floor, bytes| {
            Demand { rate: FeeRate { satoshis: rate, bytes: 1000 }, floor }.least(bytes)
        };
        assert_eq!(least(100, 1, 226), 21);
        assert_eq!(least(100, 50, 226), 21);
        assert_eq!(least(100, 100, 226), 22);
        // A transaction without a fee is not mined.
        assert_eq!(least(5, 1, 226), 1);
        assert_eq!(least(1, 1, 226), 1);
        assert_eq!(least(0, 0, 226), 0);
    }

    #[test]
    fn the_ancestors_that_nobody_has_paid_for_are_found() {
        // Each pays for itself.
        assert_eq!(unpaid(&[(1, 100, &[]), (2, 100, &[1])]), (0, 0));
        // A child pays for its parent.
        assert_eq!(unpaid(&[(1, 0, &[]), (2, 200, &[1])]), (0, 0));
        // Nobody pays for both.
        assert_eq!(unpaid(&[(1, 0, &[]), (2, 150, &[1])]), (150, 2000));
        // A rich parent lends nothing to its children.
        assert_eq!(unpaid(&[(1, 100_000, &[]), (2, 0, &[1]), (3, 0, &[2])]), (0, 2000));
        // The order of the ids does not matter.
        assert_eq!(unpaid(&[(3, 100_000, &[]), (1, 0, &[3]), (2, 0, &[1])]), (0, 2000));
        // A rich uncle lends nothing either.
        assert_eq!(unpaid(&[(1, 0, &[]), (2, 100_000, &[])]), (0, 1000));
        // What one child pays for, another need not.
        assert_eq!(unpaid(&[(1, 0, &[]), (2, 200, &[1]), (3, 100, &[1])]), (0, 0));
        // A grandchild pays for all.
        assert_eq!(unpaid(&[(1, 0, &[]), (2, 0, &[1]), (3, 300, &[2, 1])]), (0, 0));
    }
}
