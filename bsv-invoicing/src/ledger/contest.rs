//! The network does not show a transaction any more that it had shown.

use crate::ledger::rows::Rows;
use crate::ledger::{Books, Command};
use crate::model::time::Timestamp;
use crate::model::transaction::TransactionState;

/// A transaction that the network had shown is neither in the mempool nor in a block. It still counts,
/// and cannot be spent.
#[derive(Clone, Copy, Debug)]
pub struct Contest {
    /// The number of the transaction.
    pub transaction: u64,
    /// The time.
    pub now: Timestamp,
}

impl Command for Contest {
    type Answer = ();

    fn run<R: Rows>(&self, books: &mut Books<R>) -> Result<(), R::Error> {
        // What waits has never counted, and what is in a block is not contested before that is forgotten.
        if books.known_transaction(self.transaction)?.state != TransactionState::Seen {
            return Ok(());
        }
        let at = books.next_event_at(self.now);
        books.change_state(self.transaction, TransactionState::Contested { told: false }, at)
    }
}

/// A transaction has been contested for long enough to tell so.
#[derive(Clone, Copy, Debug)]
pub struct TellContested {
    /// The number of the transaction.
    pub transaction: u64,
    /// The time.
    pub now: Timestamp,
}

impl Command for TellContested {
    type Answer = ();

    fn run<R: Rows>(&self, books: &mut Books<R>) -> Result<(), R::Error> {
        let untold = TransactionState::Contested { told: false };
        if books.known_transaction(self.transaction)?.state != untold {
            return Ok(());
        }
        let at = books.next_event_at(self.now);
        books.change_state(self.transaction, TransactionState::Contested { told: true }, at)
    }
}
