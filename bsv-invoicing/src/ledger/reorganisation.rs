//! Reorganisations that the wallet has followed. A block may have left the main chain since a proof
//! was checked against its header.

use crate::ledger::rows::{Engine, Reorganisations, Reorganised, WalletStoreError};
use crate::ledger::{Books, Command, Query, Refusal};
use crate::model::transaction::Proof;

/// The wallet follows a reorganisation. This comes before the wallet forgets the blocks that have
/// left the main chain: a proof of such a block is either recorded before, and forgotten with its
/// block, or refused from then on.
#[derive(Clone, Copy, Debug)]
pub struct FollowReorganisation;

impl Command for FollowReorganisation {
    type Answer = ();

    fn run(&self, books: &mut Books<'_>) -> Result<(), WalletStoreError> {
        let before = books.rows.get::<Reorganisations>(&())?.unwrap_or_default();
        let now = Reorganised { count: before.count + 1, is_under_way: true, ..before };
        books.rows.put::<Reorganisations>((), &now)
    }
}

/// How many reorganisations the wallet has followed.
#[derive(Clone, Copy, Debug)]
pub struct GetReorganisations;

impl Query for GetReorganisations {
    type Answer = u64;

    fn run(self, rows: &dyn Engine) -> Result<u64, WalletStoreError> {
        Ok(rows.get::<Reorganisations>(&())?.unwrap_or_default().count)
    }
}

/// A proof that was checked against a header of the main chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedProof {
    /// The proof.
    pub proof: Proof,
    /// How many reorganisations the wallet had followed before the check.
    pub reorganisations: u64,
}

impl Books<'_> {
    /// Refuses a proof if the wallet has followed a reorganisation since its check. A main chain
    /// that has only grown since then still holds the block.
    pub(crate) fn expect_still_proven(
        &self,
        checked: &CheckedProof,
    ) -> Result<(), WalletStoreError> {
        match GetReorganisations.run(&self.rows)? == checked.reorganisations {
            true => Ok(()),
            false => Err(Refusal::Reorganised.into()),
        }
    }
}
