//! Long transactions that nobody needs any more are kept without their bytes.
//!
//! The bytes of a transaction are needed as long as it may have to be sent again, or a transaction
//! that spends one of its outputs. So they stay while the transaction or such a spender is less than
//! [`DEPTH`] blocks deep, and while an output is not spent. Those of a lost transaction stay while
//! the wallet follows it. Bytes that are not long stay for ever.

use std::collections::BTreeSet;
use std::ops::Bound;

use crate::ledger::rows::Order::Ascending;
use crate::ledger::rows::{
    FollowedTip, MinedAt, RawTransactions, Receipts, Rows, RowsOf, Transactions, try_all,
};
use crate::ledger::{Books, Command};
use crate::model::receipt::{Receipt, ReceiptKey};
use crate::model::transaction::{BlockPlace, EncodedTransaction, TransactionRecord};

/// How many blocks must follow the block of a transaction. No reorganisation is expected to be that
/// long.
const DEPTH: u32 = 100;
/// The longest transaction whose bytes stay for ever, in bytes.
const MAX_KEPT_LEN: usize = 100_000;
/// How many outputs of a transaction are looked at together. Strangers choose how many there are.
const OUTPUTS_AT_ONCE: usize = 1000;

/// Drops the bytes of long transactions that nobody needs any more once the chain has this tip. They
/// are those that the tip makes deep enough, and those whose outputs such a transaction spends.
///
/// This comes before [`FollowTip`](super::FollowTip). Whoever is interrupted begins again at the
/// tip that was followed before.
#[derive(Clone, Copy, Debug)]
pub struct DropBytes {
    /// The height of the tip.
    pub tip: u32,
    /// Only transactions after this place are looked at: the height of a block, and the number of a
    /// transaction in it.
    pub after: (u32, u64),
    /// How many are looked at, at most.
    pub limit: usize,
}

impl DropBytes {
    /// The place to begin after, if the chain was followed up to this height before.
    pub fn begin(followed: Option<u32>) -> (u32, u64) {
        (followed.unwrap_or_default().saturating_sub(DEPTH), u64::MAX)
    }
}

impl Command for DropBytes {
    /// The place of the last transaction that was looked at, if there may be more.
    type Answer = Option<(u32, u64)>;

    fn run<R: Rows>(&self, books: &mut Books<R>) -> Result<Self::Answer, R::Error> {
        let deepest = self.tip.checked_sub(DEPTH).filter(|height| *height >= self.after.0);
        let Some(height) = deepest else { return Ok(None) };
        let rest = (Bound::Excluded(self.after), Bound::Included((height, u64::MAX)));
        let mined = books.rows.first::<MinedAt>(rest, Ascending, self.limit)?;
        books.drop_bytes_up_to(height, mined.iter().map(|((_, number), ())| *number))?;
        let last = mined.last().map(|(place, ())| *place);
        Ok(last.filter(|_| mined.len() == self.limit))
    }
}

impl<R: Rows> Books<R> {
    /// A transaction has turned out to be in a block. If that is deep already, no later tip drops
    /// what nobody needs any more.
    pub(crate) fn drop_bytes_after(
        &mut self,
        number: u64,
        block: BlockPlace,
    ) -> Result<(), R::Error> {
        let tip = self.rows.get::<FollowedTip>(&())?;
        let height = tip.and_then(|tip| tip.height.checked_sub(DEPTH));
        match height.filter(|height| block.height <= *height) {
            Some(height) => self.drop_bytes_up_to(height, [number]),
            None => Ok(()),
        }
    }

    /// Drops the bytes of these transactions and of those whose outputs they spend, if nobody needs
    /// them. Blocks up to this height are deep enough.
    fn drop_bytes_up_to(
        &mut self,
        height: u32,
        numbers: impl IntoIterator<Item = u64>,
    ) -> Result<(), R::Error> {
        let numbers: Vec<_> = numbers.into_iter().collect();
        let spent = try_all(&numbers, |number| self.spent_by(*number))?;
        let makers = spent.iter().flatten().map(|key| key.maker);
        let numbers: BTreeSet<_> = numbers.iter().copied().chain(makers).collect();
        try_all(numbers, |number| {
            let record = self.transaction(number)?;
            match self.is_needed(number, &record, height)? {
                true => Ok(()),
                false => self.drop_bytes(number, record),
            }
        })
        .map(drop)
    }

    /// Whether somebody may need the bytes of a transaction.
    fn is_needed(
        &self,
        number: u64,
        record: &TransactionRecord,
        height: u32,
    ) -> Result<bool, R::Error> {
        if record.are_bytes_dropped || !is_deep(record, height) {
            return Ok(true);
        }
        // Its fee is not on record. Only whoever has keys of the wallet makes such a transaction.
        if record.purpose.is_from_outside() && !self.spent_by(number)?.is_empty() {
            return Ok(true);
        }
        let mut last = None;
        loop {
            let page = self.outputs_after(number, last)?;
            let are_done = try_all(&page, |(_, it)| self.is_spent_deep(it, height))?;
            match page.last() {
                _ if are_done.contains(&false) => return Ok(true),
                Some((key, _)) => last = Some(*key),
                // Where no output is known yet, it is too early to ask for the bytes.
                None => return Ok(last.is_none() && record.purpose.is_from_outside()),
            }
        }
    }

    /// Some outputs of a transaction that pay the wallet.
    fn outputs_after(
        &self,
        number: u64,
        last: Option<ReceiptKey>,
    ) -> Result<RowsOf<Receipts>, R::Error> {
        let first = Bound::Included(ReceiptKey { maker: number, vout: 0 });
        let end = Bound::Included(ReceiptKey { maker: number, vout: u32::MAX });
        let rest = (last.map_or(first, Bound::Excluded), end);
        self.rows.first::<Receipts>(rest, Ascending, OUTPUTS_AT_ONCE)
    }

    fn is_spent_deep(&self, receipt: &Receipt, height: u32) -> Result<bool, R::Error> {
        let Some(spender) = receipt.spender else { return Ok(false) };
        let spender = self.rows.get::<Transactions>(&spender)?;
        Ok(spender.is_some_and(|record| is_deep(&record, height)))
    }

    /// Drops the bytes of a transaction if they are long.
    pub(crate) fn drop_bytes(
        &mut self,
        number: u64,
        record: TransactionRecord,
    ) -> Result<(), R::Error> {
        let raw = self.rows.get::<RawTransactions>(&number)?;
        if raw.is_none_or(|raw| raw.len() <= MAX_KEPT_LEN) {
            return Ok(());
        }
        self.rows.remove::<RawTransactions>(number)?;
        let record = TransactionRecord { are_bytes_dropped: true, ..record };
        self.rows.put::<Transactions>(number, &record)
    }

    /// Stores the bytes of a transaction again if they were dropped. It comes back after it was
    /// lost, or after its block has left the chain. Returns its record.
    pub(crate) fn keep_bytes(
        &mut self,
        number: u64,
        record: TransactionRecord,
        transaction: &EncodedTransaction,
    ) -> Result<TransactionRecord, R::Error> {
        if !record.are_bytes_dropped || record.state.block().is_some() {
            return Ok(record);
        }
        self.rows.add::<RawTransactions>(number, &transaction.bytes)?;
        let record = TransactionRecord { are_bytes_dropped: false, ..record };
        self.rows.put::<Transactions>(number, &record)?;
        Ok(record)
    }
}

fn is_deep(record: &TransactionRecord, height: u32) -> bool {
    record.state.block().is_some_and(|block| block.height <= height)
}
