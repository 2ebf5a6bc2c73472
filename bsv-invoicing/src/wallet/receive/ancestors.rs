//! Whether the fee of a payment suffices for the payment and its unconfirmed ancestors to be mined.
//!
//! Miners take a transaction only together with all its unconfirmed ancestors. An ancestor that
//! reaches the fee rate together with those of its own ancestors that are not paid for yet is paid
//! for, and so are they. The payment must pay for the ancestors that remain.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bsv_network::MempoolEntry;
use bsv_tx::Txid;

use crate::dpp::FeeRate;
use crate::error::Error;
use crate::wallet::mempool_entries::{Entries, MAX_ANCESTORS};

/// The most of them whose own fees may be too low.
const MAX_CHEAP: usize = 100;

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
    pub(crate) fn least(self, bytes: u64) -> u64 {
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
        let ancestors = read_ancestors(entries, self.parents, self.unsent).await?;
        let (unpaid_fee, unpaid_size) = Families::of(&ancestors).unpaid(demand)?;
        let paid = self.fee.saturating_add(unpaid_fee);
        let needed = demand.least(self.size.saturating_add(unpaid_size));
        match paid >= needed {
            true => Ok(()),
            false => Err(Error::FeeTooLow { paid, needed }),
        }
    }
}

/// The unconfirmed ancestors of a payment, read one generation after the other.
async fn read_ancestors(
    entries: &mut Entries<'_>,
    parents: Vec<Txid>,
    unsent: BTreeMap<Txid, MempoolEntry>,
) -> Result<BTreeMap<Txid, MempoolEntry>, Error> {
    let mut found = BTreeMap::new();
    let mut asked = BTreeSet::new();
    let mut generation = parents;
    loop {
        generation.retain(|txid| asked.insert(*txid));
        if generation.is_empty() {
            return Ok(found);
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

/// The ancestors, each after its own ancestors: the fee and the size of each, and its family, which
/// is the transaction itself with its own ancestors.
struct Families {
    amounts: Vec<(u64, u64)>,
    families: Vec<Places>,
}

impl Families {
    fn of(entries: &BTreeMap<Txid, MempoolEntry>) -> Self {
        let mut sorted = Self { amounts: Vec::new(), families: Vec::new() };
        let mut places = HashMap::new();
        let (mut ready, mut waiting) = (Vec::new(), HashMap::new());
        let mut children = HashMap::<_, Vec<_>>::new();
        for (txid, entry) in entries {
            let parents = entry.parents.iter().filter(|it| entries.contains_key(it));
            let parents = parents.map(|it| children.entry(*it).or_default().push(*txid)).count();
            waiting.insert(*txid, parents);
            ready.extend((parents == 0).then_some(*txid));
        }
        while let Some(txid) = ready.pop() {
            let MempoolEntry { fee, size, parents } = &entries[&txid];
            let mut family = Places::none(entries.len());
            let of_parents = parents.iter().filter_map(|parent| places.get(parent));
            of_parents.for_each(|place: &usize| family.add(&sorted.families[*place]));
            family.insert(sorted.families.len());
            places.insert(txid, sorted.families.len());
            sorted.amounts.push((*fee, *size));
            sorted.families.push(family);
            for child in children.remove(&txid).unwrap_or_default() {
                let parents = waiting.get_mut(&child).expect("each of them waits");
                *parents -= 1;
                ready.extend((*parents == 0).then_some(child));
            }
        }
        sorted
    }

    /// The fees and the bytes of the ancestors that are not paid for. Fails if too many of them do
    /// not pay for themselves.
    fn unpaid(&self, demand: Demand) -> Result<(u64, u64), Error> {
        let suffices = |(fee, size): (u64, u64)| fee >= demand.least(size);
        if self.amounts.iter().filter(|it| !suffices(**it)).count() > MAX_CHEAP {
            return Err(Error::TooManyCheapAncestors { limit: MAX_CHEAP });
        }
        let len = self.families.len();
        let mut unpaid = Places::none(len);
        (0..len).for_each(|place| unpaid.insert(place));
        let mut place = 0;
        while place < len {
            let group = self.families[place].and(&unpaid);
            // Ancestors come first. Otherwise the surplus of one would pay for its descendants.
            place += 1;
            if unpaid.has(place - 1) && suffices(self.sums(&group)) {
                unpaid.remove(&group);
                // Those before it may have had to pay for some of its ancestors.
                let freed = |it: &usize| unpaid.has(*it) && self.families[*it].meets(&group);
                place = (0..place).find(freed).unwrap_or(place);
            }
        }
        Ok(self.sums(&unpaid))
    }

    fn sums(&self, group: &Places) -> (u64, u64) {
        group.iter().fold((0, 0), |(fees, sizes): (u64, u64), place| {
            let (fee, size) = self.amounts[place];
            (fees.saturating_add(fee), sizes.saturating_add(size))
        })
    }
}

/// A set of ancestors, by their places.
struct Places(Vec<u64>);

impl Places {
    fn none(len: usize) -> Self {
        Self(vec![0; len.div_ceil(64)])
    }

    fn insert(&mut self, place: usize) {
        self.0[place / 64] |= 1 << (place % 64);
    }

    fn has(&self, place: usize) -> bool {
        self.0[place / 64] >> (place % 64) & 1 == 1
    }

    fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(own, other)| *own |= other);
    }

    fn remove(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(own, other)| *own &= !other);
    }

    fn and(&self, other: &Self) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(own, other)| own & other).collect())
    }

    fn meets(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).any(|(own, other)| own & other != 0)
    }

    fn iter(&self) -> impl Iterator<Item = usize> {
        let words = self.0.iter().enumerate().filter(|(_, word)| **word != 0);
        words.flat_map(|(at, word)| {
            (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| at * 64 + bit)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: FeeRate = FeeRate { satoshis: 100, bytes: 1000 };
    const DEMAND: Demand = Demand { rate: RATE, floor: 1 };

    fn txid(number: u16) -> Txid {
        let mut bytes = [0; 32];
        bytes[..2].copy_from_slice(&number.to_le_bytes());
        Txid::from_bytes(bytes)
    }

    /// Transactions of 1000 bytes: number, fee, parents.
    fn unpaid(transactions: &[(u16, u64, &[u16])]) -> (u64, u64) {
        try_unpaid(transactions).unwrap()
    }

    fn try_unpaid(transactions: &[(u16, u64, &[u16])]) -> Result<(u64, u64), Error> {
        let entry = |fee, parents: &[u16]| MempoolEntry {
            fee,
            size: 1000,
            parents: parents.iter().copied().map(txid).collect(),
        };
        let entries = transactions.iter().map(|(number, fee, of)| (txid(*number), entry(*fee, of)));
        Families::of(&entries.collect()).unpaid(DEMAND)
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

    #[test]
    fn only_ancestors_that_do_not_pay_for_themselves_count_towards_the_hundred() {
        // A line of 1000, of which the first ones pay nothing.
        let parents: Vec<_> = (0..1000_u16).map(|number| [number]).collect();
        let line = |free: usize, last: u64| {
            let fee = |number: usize| match number {
                999 => last,
                _ if number < free => 0,
                _ => 100,
            };
            let of = |number: usize| &parents[number.saturating_sub(1)][..usize::from(number > 0)];
            let all: Vec<_> = (0..1000).map(|it| (it as u16, fee(it), of(it))).collect();
            try_unpaid(&all)
        };
        assert_eq!(line(0, 100).unwrap(), (0, 0));
        assert_eq!(line(100, 100).unwrap(), (90_000, 1_000_000));
        assert_eq!(line(100, 10_100).unwrap(), (0, 0), "the last one pays for all");
        assert!(matches!(line(101, 10_200), Err(Error::TooManyCheapAncestors { limit: 100 })));
    }

    #[test]
    fn many_groups_are_found_one_after_the_other() {
        // Each free ancestor has a child that pays for both and spends the child before.
        let parents: Vec<[u16; 2]> =
            (0..100).map(|it: u16| [2 * it, (2 * it).saturating_sub(1)]).collect();
        let pairs = parents.iter().enumerate().flat_map(|(at, parents)| {
            let free = 2 * u16::try_from(at).unwrap();
            [(free, 0, &[][..]), (free + 1, 200, &parents[..if at == 0 { 1 } else { 2 }])]
        });
        assert_eq!(unpaid(&pairs.collect::<Vec<_>>()), (0, 0));
    }
}
