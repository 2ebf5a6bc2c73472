//! Long transactions that nobody needs any more are kept without their bytes.
//!
//! The bytes of a transaction are needed as long as it may have to be sent again, or a transaction
//! that spends one of its outputs. So they stay while the transaction or such a spender is less than
//! [`DEPTH`] blocks deep, and while an output is not spent. Those of a lost transaction stay while
//! the wallet follows it. Bytes that are not long stay for ever.
//!
//! The ancestors that came with a transaction of which services tell are needed as long as it may have
//! to be sent again.

use std::collections::BTreeSet;
use std::ops::Bound;

use crate::ledger::effects::{spent_by, transaction};
use crate::ledger::rows::Order::Ascending;
use crate::ledger::rows::{
    Ancestors, Engine, MinedAt, RawTransactions, Receipts, RowsOf, Transactions, WalletStoreError,
    try_all,
};
use crate::ledger::{Books, Command, Query};
use crate::model::receipt::{Receipt, ReceiptKey};
use crate::model::transaction::{EncodedTransaction, RawBytes, TransactionRecord};

/// How many blocks must follow the block of a transaction. No reorganisation is expected to be that
/// long.
pub(crate) const DEPTH: u32 = 100;
/// How many outputs of a transaction are looked at together. Strangers choose how many there are.
const OUTPUTS_AT_ONCE: usize = 1000;

/// The transactions whose bytes or ancestors nobody may need any more since some blocks are deep enough:
/// those in these blocks of which services told, and the long ones in these blocks or whose outputs such a
/// transaction spends. [`DropBytes`] decides.
#[derive(Clone, Copy, Debug)]
pub struct GetLong {
    /// Only transactions after this place are looked at: the height of a block, and the number of a
    /// transaction in it.
    pub after: (u32, u64),
    /// The height of the tip.
    pub tip: u32,
    /// How many transactions in blocks are looked at, at most.
    pub limit: usize,
}

/// A part of the answer of [`GetLong`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LongTransactions {
    /// Their numbers.
    pub numbers: Vec<u64>,
    /// The place of the last transaction that was looked at, if there may be more.
    pub next: Option<(u32, u64)>,
}

impl GetLong {
    /// The place to begin after, if the chain was followed up to this height before.
    pub fn begin(followed: Option<u32>) -> (u32, u64) {
        (followed.unwrap_or_default().saturating_sub(DEPTH), u64::MAX)
    }
}

impl Query for GetLong {
    type Answer = LongTransactions;

    fn run(self, rows: &dyn Engine) -> Result<LongTransactions, WalletStoreError> {
        let deepest = self.tip.checked_sub(DEPTH).filter(|height| *height >= self.after.0);
        let Some(height) = deepest else { return Ok(LongTransactions::default()) };
        let rest = (Bound::Excluded(self.after), Bound::Included((height, u64::MAX)));
        let mined = rows.first::<MinedAt>(rest, Ascending, self.limit)?;
        let spent = try_all(&mined, |((_, number), ())| spent_by(rows, *number))?;
        let makers = spent.iter().flatten().map(|key| key.maker);
        let numbers: BTreeSet<_> =
            mined.iter().map(|((_, number), ())| *number).chain(makers).collect();
        let records = try_all(numbers, |number| {
            Ok::<_, WalletStoreError>((number, transaction(rows, number)?))
        })?;
        let long = records
            .into_iter()
            .filter(|(_, record)| record.raw == RawBytes::Long || record.word.is_some());
        let last = mined.last().filter(|_| mined.len() == self.limit);
        Ok(LongTransactions {
            numbers: long.map(|(number, _)| number).collect(),
            next: last.map(|(place, ())| *place),
        })
    }
}

/// Drops the bytes of a long transaction, and the ancestors that came with a transaction, unless somebody
/// may need them.
///
/// This comes before [`FollowTip`](super::FollowTip). A process that is interrupted begins again at
/// the tip that was followed before.
#[derive(Clone, Copy, Debug)]
pub struct DropBytes {
    /// The number of the transaction.
    pub transaction: u64,
    /// The height of the tip.
    pub tip: u32,
}

impl Command for DropBytes {
    type Answer = ();

    fn run(&self, books: &mut Books<'_>) -> Result<(), WalletStoreError> {
        let record = books.known_transaction(self.transaction)?;
        let Some(height) = self.tip.checked_sub(DEPTH) else { return Ok(()) };
        if is_deep(&record, height) {
            books.rows.remove::<Ancestors>(self.transaction)?;
        }
        match record.raw {
            RawBytes::Long if !books.is_needed(self.transaction, &record, height)? => {
                books.drop_bytes(self.transaction, record)
            }
            _ => Ok(()),
        }
    }
}

impl Books<'_> {
    /// Whether somebody may need the bytes of a transaction. Blocks up to this height are deep
    /// enough.
    fn is_needed(
        &self,
        number: u64,
        record: &TransactionRecord,
        height: u32,
    ) -> Result<bool, WalletStoreError> {
        if !is_deep(record, height) {
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
    ) -> Result<RowsOf<Receipts>, WalletStoreError> {
        let first = Bound::Included(ReceiptKey { maker: number, vout: 0 });
        let end = Bound::Included(ReceiptKey { maker: number, vout: u32::MAX });
        let rest = (last.map_or(first, Bound::Excluded), end);
        self.rows.first::<Receipts>(rest, Ascending, OUTPUTS_AT_ONCE)
    }

    fn is_spent_deep(&self, receipt: &Receipt, height: u32) -> Result<bool, WalletStoreError> {
        let Some(spender) = receipt.spender else { return Ok(false) };
        let spender = self.rows.get::<Transactions>(&spender)?;
        Ok(spender.is_some_and(|record| is_deep(&record, height)))
    }

    /// Drops the bytes of a transaction if they are long.
    pub(crate) fn drop_bytes(
        &mut self,
        number: u64,
        record: TransactionRecord,
    ) -> Result<(), WalletStoreError> {
        if record.raw != RawBytes::Long {
            return Ok(());
        }
        self.rows.remove::<RawTransactions>(number)?;
        let record = TransactionRecord { raw: RawBytes::Dropped, ..record };
        self.rows.put::<Transactions>(number, &record)
    }

    /// Stores the bytes of a transaction again if they were dropped. It comes back after it was
    /// lost, or after its block has left the chain. Returns its record.
    pub(crate) fn keep_bytes(
        &mut self,
        number: u64,
        record: TransactionRecord,
        transaction: &EncodedTransaction,
    ) -> Result<TransactionRecord, WalletStoreError> {
        if record.raw != RawBytes::Dropped || record.state.block().is_some() {
            return Ok(record);
        }
        self.rows.add::<RawTransactions>(number, &transaction.bytes)?;
        let record = TransactionRecord { raw: RawBytes::of(&transaction.bytes), ..record };
        self.rows.put::<Transactions>(number, &record)?;
        Ok(record)
    }
}

fn is_deep(record: &TransactionRecord, height: u32) -> bool {
    record.state.block().is_some_and(|block| block.height <= height)
}
