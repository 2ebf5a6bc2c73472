//! The network no longer shows a transaction.

use crate::ledger::rows::WalletStoreError;
use crate::ledger::{Books, Command};
use crate::model::time::Timestamp;
use crate::model::transaction::TransactionState;

/// A transaction that the network has shown is now neither in the mempool nor in a block. Its
/// receipts still count, but cannot be spent.
#[derive(Clone, Copy, Debug)]
pub struct Contest {
    /// The number of the transaction.
    pub transaction: u64,
    /// The time.
    pub now: Timestamp,
}

impl Command for Contest {
    type Answer = ();

    fn run(&self, books: &mut Books<'_>) -> Result<(), WalletStoreError> {
        // A waiting transaction has never counted. A mined transaction becomes contested by
        // `ForgetBlock`.
        if books.known_transaction(self.transaction)?.state != TransactionState::Seen {
            return Ok(());
        }
        let at = books.next_event_at(self.now);
        books.change_state(self.transaction, TransactionState::Contested { told: false }, at)
    }
}

/// A transaction has been contested for so long that an event tells of it.
#[derive(Clone, Copy, Debug)]
pub struct TellContested {
    /// The number of the transaction.
    pub transaction: u64,
    /// The time.
    pub now: Timestamp,
}

impl Command for TellContested {
    type Answer = ();

    fn run(&self, books: &mut Books<'_>) -> Result<(), WalletStoreError> {
        let untold = TransactionState::Contested { told: false };
        if books.known_transaction(self.transaction)?.state != untold {
            return Ok(());
        }
        let at = books.next_event_at(self.now);
        books.change_state(self.transaction, TransactionState::Contested { told: true }, at)
    }
}
