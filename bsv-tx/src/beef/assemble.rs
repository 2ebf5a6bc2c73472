use std::collections::{HashMap, HashSet};

use super::{Beef, BeefError, BeefVersion, Content, Entry};
use crate::bump::Bump;
use crate::hash::Txid;
use crate::transaction::Transaction;

/// What a BEEF is made of, besides the transaction that it is about, in any order. There may be more than the BEEF
/// needs: the rest is left out.
#[derive(Clone, Debug, Default)]
pub struct Ancestry {
    /// Ancestors, mined and unmined.
    pub transactions: Vec<Transaction>,
    /// The Merkle paths of those that are mined.
    pub bumps: Vec<Bump>,
    /// Ancestors that the receiver holds, so that the id suffices. Takes version 2.
    pub held: Vec<Txid>,
}

/// What an ancestry holds, to be looked up.
struct Sources {
    transactions: HashMap<Txid, Transaction>,
    held: HashSet<Txid>,
    bumps: Vec<Bump>,
    /// Where in `bumps` each mined transaction is.
    bump_of: HashMap<Txid, usize>,
}

impl Beef {
    /// Makes a BEEF about `subject`: with its ancestors back to those that have a Merkle path or that the receiver
    /// holds, and with one Merkle path for each block.
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

    /// All that a BEEF about `subject` needs, each behind what it spends.
    fn parents_first(&self, subject: Txid) -> Result<Vec<Txid>, BeefError> {
        let mut order = Vec::new();
        let mut seen = HashSet::from([subject]);
        // Each with the number of its inputs that have been looked at.
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

    /// What an input spends, if the BEEF needs it: not of a mined transaction, nor of one that is held.
    fn parent(&self, txid: &Txid, input: usize) -> Option<Txid> {
        if self.bump_of.contains_key(txid) || self.held.contains(txid) {
            return None;
        }
        Some(self.transactions.get(txid)?.inputs.get(input)?.previous_output.txid)
    }

    /// The transactions in this order, and the Merkle paths that they need.
    fn into_entries(mut self, order: &[Txid]) -> (Vec<Entry>, Vec<Bump>) {
        let mut bumps = Vec::new();
        let mut places = HashMap::new();
        let mut content = |txid: &Txid| {
            if self.held.contains(txid) {
                return Content::TxidOnly;
            }
            let transaction = self.transactions.remove(txid).expect("the order is of these");
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
