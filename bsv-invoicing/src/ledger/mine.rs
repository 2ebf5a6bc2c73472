//! A transaction is in a block of the main chain.

use crate::ledger::rows::Order::Descending;
use crate::ledger::rows::{Proofs, Rows};
use crate::ledger::{Books, Command};
use crate::model::time::Timestamp;
use crate::model::transaction::{FoundProof, Proof, TransactionState};

/// A transaction of the wallet is in a block of the main chain, as a proof shows that was checked
/// against the block's header.
#[derive(Clone, Debug)]
pub struct Mine {
    /// The number of the transaction.
    pub transaction: u64,
    /// The proof.
    pub proof: Proof,
    /// The time.
    pub now: Timestamp,
}

impl Command for Mine {
    type Answer = ();

    fn run<R: Rows>(&self, books: &mut Books<R>) -> Result<(), R::Error> {
        let number = self.transaction;
        let new = TransactionState::Mined(self.proof.block);
        let record = books.known_transaction(number)?;
        if record.state == new {
            return Ok(());
        }
        let at = books.next_event_at(self.now);
        let last = books.rows.first::<Proofs>((number, 0)..=(number, u32::MAX), Descending, 1)?;
        let sequence = last.first().map_or(0, |((_, sequence), _)| *sequence) + 1;
        let proof = self.proof.clone();
        let found = FoundProof { sequence, proof, found_at: at, is_read: false };
        books.rows.put::<Proofs>((number, sequence), &found)?;
        books.show(number, record, new, at)
    }
}
