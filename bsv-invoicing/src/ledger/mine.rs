//! A transaction is in a block of the main chain.

use crate::ledger::rows::Order::Descending;
use crate::ledger::rows::{Proofs, WalletStoreError};
use crate::ledger::{Books, CheckedProof, Command};
use crate::model::time::Timestamp;
use crate::model::transaction::{FoundProof, Proof, TransactionRecord, TransactionState};

/// A transaction of the wallet is in a block of the main chain. Refused if a reorganisation was
/// followed since the proof was checked.
#[derive(Clone, Debug)]
pub struct Mine {
    /// The number of the transaction.
    pub transaction: u64,
    /// The proof.
    pub checked: CheckedProof,
    /// The time.
    pub now: Timestamp,
}

impl Command for Mine {
    type Answer = ();

    fn run(&self, books: &mut Books<'_>) -> Result<(), WalletStoreError> {
        books.expect_still_proven(&self.checked)?;
        let record = books.known_transaction(self.transaction)?;
        books.mine(self.transaction, record, &self.checked.proof, self.now)
    }
}

impl Books<'_> {
    /// Records that a transaction is in a block.
    pub(crate) fn mine(
        &mut self,
        number: u64,
        record: TransactionRecord,
        proof: &Proof,
        now: Timestamp,
    ) -> Result<(), WalletStoreError> {
        let new = TransactionState::Mined(proof.block);
        if record.state == new {
            return Ok(());
        }
        let at = self.next_event_at(now);
        let last = self.rows.first::<Proofs>((number, 0)..=(number, u32::MAX), Descending, 1)?;
        let sequence = last.first().map_or(0, |((_, sequence), _)| *sequence) + 1;
        let proof = proof.clone();
        let found = FoundProof { sequence, proof, found_at: at, is_read: false };
        self.rows.put::<Proofs>((number, sequence), &found)?;
        self.displace_rivals(number, &record, at)?;
        self.show(number, record, record.in_state(new), at)
    }
}
