use std::collections::{HashMap, HashSet};

use super::{Beef, BeefError, BeefVersion, Content, Entry};
use crate::bump::Bump;
use crate::hash::Txid;
use crate::transaction::Transaction;

/// What a BEEF is made of besides its subject, in any order. The BEEF takes from it only what it
/// needs.
#[derive(Clone, Debug, Default)]
pub struct Ancestry {
    /// Ancestors, mined and unmined.
    pub transactions: Vec<Transaction>,
    /// The Merkle paths of the mined ancestors.
    pub bumps: Vec<Bump>,
    /// The ids of ancestors that the receiver holds, which need version 2.
    pub held: Vec<Txid>,
}

/// An ancestry, indexed by transaction id.
struct Sources {
    transactions: HashMap<Txid, Transaction>,
    held: HashSet<Txid>,
    bumps: Vec<Bump>,
    /// The index in `bumps` of the Merkle path of each mined transaction.
    bump_of: HashMap<Txid, usize>,
}

impl Beef {
    /// Makes a BEEF about `subject`. The BEEF carries the ancestors back to those that have a
    /// Merkle path or that the receiver holds, and one Merkle path for each block.
    ///
    /// Fails with [`BeefError::ParentNotBefore`] if the ancestry lacks a transaction.
    pub fn new(
        version: BeefVersion,
        subject: Transaction,
        ancestry: Ancestry,
    ) -> Result<Self, BeefError> {
        let txid = subject.txid();
        let mut sources = Sources::of(ancestry)?;
        sources.transactions.insert(txid, subject);
        let order = sources.parents_first(txid)?;
        let (entries, bumps) = sources.into_entries(&order);
        if let (BeefVersion::V1, Some(named)) =
            (version, entries.iter().find(|entry| entry.content == Content::TxidOnly))
        {
            return Err(BeefError::TxidOnlyInV1(named.txid));
        }
        if entries.len() > Self::MAX_TRANSACTIONS {
            return Err(BeefError::TooMany(entries.len() as u64, "transactions"));
        }
        Self::checked(version, None, bumps, entries)
    }

    /// The BEEF with one more transaction, its new subject, which spends transactions of the BEEF.
    ///
    /// Fails with [`BeefError::ParentNotBefore`] if the BEEF lacks one of them.
    pub fn followed_by(mut self, subject: Transaction) -> Result<Self, BeefError> {
        let txid = subject.txid();
        self.entries.push(Entry { txid, content: Content::Unmined(subject) });
        if self.entries.len() > Self::MAX_TRANSACTIONS {
            return Err(BeefError::TooMany(self.entries.len() as u64, "transactions"));
        }
        Self::checked(self.version, None, self.bumps, self.entries)
    }
}

impl Sources {
    fn of(ancestry: Ancestry) -> Result<Self, BeefError> {
        let mut bumps: Vec<Bump> = Vec::new();
        let mut blocks = HashMap::new();
        for (index, bump) in ancestry.bumps.into_iter().enumerate() {
            let place = *blocks.entry((bump.height(), bump.root())).or_insert(bumps.len());
            match bumps.get_mut(place) {
                Some(known) => {
                    *known =
                        known.combine(&bump).map_err(|error| BeefError::Bump { index, error })?;
                }
                None => bumps.push(bump),
            }
        }
        let txids = |(place, bump): (usize, &Bump)| {
            bump.leaves().map(|txid| (txid, place)).collect::<Vec<_>>()
        };
        let bump_of = bumps.iter().enumerate().flat_map(txids).collect();
        let transactions = ancestry.transactions.into_iter();
        let transactions = transactions.map(|transaction| (transaction.txid(), transaction));
        let held = ancestry.held.into_iter().collect();
        Ok(Self { transactions: transactions.collect(), held, bumps, bump_of })
    }

    /// The ids of all that a BEEF about `subject` needs, parents before their children.
    fn parents_first(&self, subject: Txid) -> Result<Vec<Txid>, BeefError> {
        let mut order = Vec::new();
        let mut seen = HashSet::from([subject]);
        // Each transaction with the number of its inputs that have been visited.
        let mut path = vec![(subject, 0)];
        while let Some((txid, looked_at)) = path.last_mut() {
            let Some(parent) = self.parent(txid, *looked_at) else {
                order.push(*txid);
                path.pop();
                continue;
            };
            *looked_at += 1;
            if !self.transactions.contains_key(&parent) && !self.held.contains(&parent) {
                return Err(BeefError::ParentNotBefore { txid: *txid, parent });
            }
            if seen.insert(parent) {
                path.push((parent, 0));
            }
        }
        Ok(order)
    }

    /// The transaction that an input spends; `None` if the BEEF needs no parents of `txid`, because
    /// it is mined or held.
    fn parent(&self, txid: &Txid, input: usize) -> Option<Txid> {
        if self.bump_of.contains_key(txid) || self.held.contains(txid) {
            return None;
        }
        Some(self.transactions.get(txid)?.inputs.get(input)?.previous_output.txid)
    }

    /// Turns the ids of `order` into entries, and collects the Merkle paths that these refer to.
    fn into_entries(mut self, order: &[Txid]) -> (Vec<Entry>, Vec<Bump>) {
        let mut bumps = Vec::new();
        let mut places = HashMap::new();
        let mut content = |txid: &Txid| {
            if self.held.contains(txid) {
                return Content::TxidOnly;
            }
            let transaction =
                self.transactions.remove(txid).expect("the order names only these transactions");
            let Some(source) = self.bump_of.get(txid) else { return Content::Unmined(transaction) };
            let bump = *places.entry(*source).or_insert_with(|| {
                bumps.push(self.bumps[*source].clone());
                bumps.len() - 1
            });
            Content::Mined { transaction, bump }
        };
        let entries =
            order.iter().map(|txid| Entry { txid: *txid, content: content(txid) }).collect();
        (entries, bumps)
    }
}
