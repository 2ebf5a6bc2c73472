//! A block has left the main chain.

use crate::ledger::rows::Order::Ascending;
use crate::ledger::rows::{MinedAt, WalletStoreError, try_all};
use crate::ledger::{Books, Command};
use crate::model::time::Timestamp;
use crate::model::transaction::{BlockPlace, Purpose, TransactionState};

/// A block is no longer in the main chain. Its transactions are contested until the network shows
/// them again, or wait if they did not count yet. Its coinbase transaction is invalid until the block returns: no other block can hold
/// it. Strangers choose how many there are, so each step changes a part of them. Whoever begins anew
/// finds what is left.
#[derive(Clone, Copy, Debug)]
pub struct ForgetBlock {
    /// The block.
    pub block: BlockPlace,
    /// Whether the main chain has another block instead. Otherwise the node may just not know the
    /// block, and its coinbase transaction is contested, too.
    pub is_replaced: bool,
    /// Whether services, and no node, tell of transactions, so that rivals of those of the block must be
    /// found.
    pub may_have_rivals: bool,
    /// Only transactions with higher numbers are looked at.
    pub after: u64,
    /// How many are looked at, at most.
    pub limit: usize,
    /// The time.
    pub now: Timestamp,
}

impl Command for ForgetBlock {
    /// The number of the last transaction that was looked at, if there may be more.
    type Answer = Option<u64>;

    fn run(&self, books: &mut Books<'_>) -> Result<Option<u64>, WalletStoreError> {
        let Self { block, is_replaced, may_have_rivals, after, limit, now } = *self;
        let at = books.next_event_at(now);
        let rest = (block.height, after.saturating_add(1))..=(block.height, u64::MAX);
        let mined = books.rows.first::<MinedAt>(rest, Ascending, limit)?;
        try_all(&mined, |((_, number), ())| {
            let record = books.transaction(*number)?;
            if record.state != TransactionState::Mined(block) {
                return Ok(());
            }
            match record.purpose {
                Purpose::Coinbase if is_replaced => {
                    books.lose(*number, TransactionState::Invalid, at)
                }
                _ => {
                    let after = if may_have_rivals { record.with_word() } else { record };
                    let after = after.in_state(match books.is_uncounted(*number, &record)? {
                        true => TransactionState::Waiting,
                        false => TransactionState::Contested { told: false },
                    });
                    let spent = books.spent_by(*number)?;
                    books.change_record(*number, record, &spent, after, at)
                }
            }
        })?;
        let last = mined.last().map(|((_, number), ())| *number);
        Ok(last.filter(|_| mined.len() == limit))
    }
}
