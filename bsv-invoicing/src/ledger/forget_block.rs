//! A block has left the main chain.

use crate::ledger::rows::{MinedAt, Rows, try_all};
use crate::ledger::{Books, Command};
use crate::model::time::Timestamp;
use crate::model::transaction::{BlockPlace, TransactionState};

/// A block is no longer in the main chain. Its transactions are contested until the network shows
/// them again.
#[derive(Clone, Copy, Debug)]
pub struct ForgetBlock {
    /// The block.
    pub block: BlockPlace,
    /// The time.
    pub now: Timestamp,
}

impl Command for ForgetBlock {
    type Answer = ();

    fn run<R: Rows>(&self, books: &mut Books<R>) -> Result<(), R::Error> {
        let at = books.next_event_at(self.now);
        let height = self.block.height;
        let mined = books.rows.range::<MinedAt>((height, 0)..=(height, u64::MAX))?;
        let forgotten = try_all(mined, |((_, number), ())| {
            if books.transaction(number)?.state == TransactionState::Mined(self.block) {
                books.change_state(number, TransactionState::Contested { told: false }, at)?;
            }
            Ok(())
        });
        forgotten.map(drop)
    }
}
