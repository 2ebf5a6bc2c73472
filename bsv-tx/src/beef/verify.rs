use std::collections::{BTreeSet, HashSet};

use thiserror::Error;

use super::{Beef, Entry};
use crate::hash::{MerkleRoot, Txid};
use crate::transaction::{OutPoint, Transaction, TxOut};

/// The last block of the main chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tip {
    /// The height of this block.
    pub height: u32,
    /// The median time of this block and the ten before it (BIP113), in seconds since 1970.
    pub median_time: u32,
}

/// Why a BEEF is not to be relied on.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BeefVerificationError {
    /// The caller knows no block of the main chain at the height of a Merkle path, and nothing else is
    /// wrong. If the height is above the tip, the BEEF can become valid when the main chain reaches it.
    #[error("a merkle path is of a block at height {height}, which is not known here")]
    AboveTip {
        /// The height.
        height: u32,
    },
    /// A Merkle path leads to another root than the one of the main chain's block.
    #[error(
        "a merkle path leads to {root}, which is not the root of the main chain's block at height {height}"
    )]
    WrongRoot {
        /// The height.
        height: u32,
        /// The root that the path leads to.
        root: MerkleRoot,
    },
    /// The BEEF has only the id of a transaction, and the caller does not hold the transaction.
    #[error("the beef has only the id of transaction {0}, which is unknown here")]
    NotHeld(Txid),
    /// A transaction spends an output that its parent does not have.
    #[error("the transaction {txid} spends {previous_output}, which does not exist")]
    NoSuchOutput {
        /// The transaction that spends.
        txid: Txid,
        /// The output that it spends.
        previous_output: OutPoint,
    },
    /// An output is spent twice.
    #[error("{0} is spent twice")]
    SpentTwice(OutPoint),
    /// The outputs of a transaction are worth more than its inputs.
    #[error(
        "the outputs of the transaction {txid} are worth {outputs} satoshis, its inputs {inputs}"
    )]
    CreatesCoins {
        /// The transaction.
        txid: Txid,
        /// What the inputs of the transaction are worth, in satoshis.
        inputs: u128,
        /// What the outputs of the transaction are worth, in satoshis.
        outputs: u128,
    },
    /// A transaction is not final in the next block.
    #[error("the transaction {0} is not final: the next block may not hold it")]
    NotFinal(Txid),
}

impl Beef {
    /// The heights and Merkle roots of blocks that the Merkle paths claim. A caller looks up the
    /// main chain's roots at these heights before the call of [`Beef::verify`].
    pub fn claimed_roots(&self) -> BTreeSet<(u32, MerkleRoot)> {
        self.bumps.iter().map(|bump| (bump.height(), bump.root())).collect()
    }

    /// Checks the claims of the BEEF against what the caller knows.
    ///
    /// `has_root` answers whether the header at a height of the main chain has a Merkle root, or
    /// `None` if the caller does not know it, as above the `tip`. This function asks only for the pairs of [`Beef::claimed_roots`].
    /// `held` answers those transactions of [`Beef::txid_only`] that the caller holds and vouches for.
    ///
    /// The rules: all Merkle paths, used or not, lead to the roots of the main chain. No output is
    /// spent twice. Each transaction without a path spends outputs that exist, has outputs worth no
    /// more than its inputs, and is final in the block after `tip`.
    pub fn verify<'a>(
        &'a self,
        tip: Tip,
        has_root: impl Fn(u32, MerkleRoot) -> Option<bool>,
        held: impl Fn(&Txid) -> Option<&'a Transaction>,
    ) -> Result<(), BeefVerificationError> {
        let above_tip = self.check_roots(has_root)?;
        let outputs = self.outputs(held)?;
        self.check_spent_once()?;
        for (txid, transaction) in self.unmined() {
            let previous_output = |of: &OutPoint| {
                let place = self.places.get(&of.txid)?;
                outputs[*place].get(usize::try_from(of.vout).ok()?)
            };
            check_amounts(txid, transaction, previous_output)?;
            if !transaction.is_final_at(tip.height.saturating_add(1), tip.median_time) {
                return Err(BeefVerificationError::NotFinal(txid));
            }
        }
        match above_tip {
            Some(height) => Err(BeefVerificationError::AboveTip { height }),
            None => Ok(()),
        }
    }

    /// Compares the roots, and answers the height of a Merkle path above the tip, if there is one.
    fn check_roots(
        &self,
        has_root: impl Fn(u32, MerkleRoot) -> Option<bool>,
    ) -> Result<Option<u32>, BeefVerificationError> {
        let mut above_tip = None;
        for bump in &self.bumps {
            let (height, root) = (bump.height(), bump.root());
            match has_root(height, root) {
                None => above_tip = Some(height),
                Some(false) => return Err(BeefVerificationError::WrongRoot { height, root }),
                Some(true) => {}
            }
        }
        Ok(above_tip)
    }

    /// The outputs of all transactions, in their order.
    fn outputs<'a>(
        &'a self,
        held: impl Fn(&Txid) -> Option<&'a Transaction>,
    ) -> Result<Vec<&'a [TxOut]>, BeefVerificationError> {
        let outputs_of = |entry: &'a Entry| {
            let transaction = entry.transaction().or_else(|| held(&entry.txid));
            let transaction = transaction.ok_or(BeefVerificationError::NotHeld(entry.txid))?;
            Ok(transaction.outputs.as_slice())
        };
        self.entries.iter().map(outputs_of).collect()
    }

    fn check_spent_once(&self) -> Result<(), BeefVerificationError> {
        let mut spent = HashSet::new();
        for transaction in self.entries.iter().filter_map(Entry::transaction) {
            for input in &transaction.inputs {
                if !transaction.is_coinbase() && !spent.insert(input.previous_output) {
                    return Err(BeefVerificationError::SpentTwice(input.previous_output));
                }
            }
        }
        Ok(())
    }
}

fn check_amounts<'a>(
    txid: Txid,
    transaction: &Transaction,
    previous_output: impl Fn(&OutPoint) -> Option<&'a TxOut>,
) -> Result<(), BeefVerificationError> {
    let mut inputs: u128 = 0;
    for spent in transaction.inputs.iter().map(|input| input.previous_output) {
        let output = previous_output(&spent)
            .ok_or(BeefVerificationError::NoSuchOutput { txid, previous_output: spent })?;
        inputs += u128::from(output.satoshis);
    }
    let outputs = transaction.outputs.iter().map(|output| u128::from(output.satoshis)).sum();
    if inputs < outputs {
        return Err(BeefVerificationError::CreatesCoins { txid, inputs, outputs });
    }
    Ok(())
}
