//! A payer has read a proof.

use crate::ledger::rows::{Proofs, WalletStoreError};
use crate::ledger::{Books, Command};
use crate::model::transaction::FoundProof;

/// Records whether the payer has read a proof of a transaction.
#[derive(Clone, Copy, Debug)]
pub struct MarkRead {
    /// The number of the transaction.
    pub transaction: u64,
    /// The number of the proof.
    pub sequence: u32,
    /// Whether it was read.
    pub is_read: bool,
}

impl Command for MarkRead {
    /// Whether there is such a proof.
    type Answer = bool;

    fn run(&self, books: &mut Books<'_>) -> Result<bool, WalletStoreError> {
        let key = (self.transaction, self.sequence);
        let Some(found) = books.rows.get::<Proofs>(&key)? else { return Ok(false) };
        let is_read = self.is_read;
        books.rows.put::<Proofs>(key, &FoundProof { is_read, ..found })?;
        Ok(true)
    }
}
