//! The exposure: the sum of the receipts that count by the word of services alone.
//!
//! A receipt is in it from the moment at which it counts until its block is deep enough. Those of
//! invoices that need a block are not in it: they count only then. The amount is stored, so that new
//! rules change nothing that has happened.

use crate::ledger::events::{EventDetails, EventRow, ExposureDetails};
use crate::ledger::rows::Order::Ascending;
use crate::ledger::rows::{
    AllFigures, Damaged, Engine, Exposed, Invoices, OUTSIDE_BLOCKS, Rules, WalletStoreError,
    try_all,
};
use crate::ledger::{Books, Query};
use crate::model::event::EventKind;
use crate::model::receipt::{Receipt, ReceiptKey};
use crate::model::time::Timestamp;
use crate::model::transaction::{Purpose, TransactionRecord};

/// The receipts that count by the word of services alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exposure {
    /// Their sum, in satoshis.
    pub satoshis: u64,
    /// The most that it may be: a payment that would lift it above that waits for its block. `None` if
    /// there is no limit.
    pub limit: Option<u64>,
}

/// The sum of the receipts that count by the word of services alone, and its limit.
#[derive(Clone, Copy, Debug)]
pub struct GetExposure;

impl Query for GetExposure {
    type Answer = Exposure;

    fn run(self, rows: &dyn Engine) -> Result<Exposure, WalletStoreError> {
        let satoshis = rows.get::<AllFigures>(&())?.unwrap_or_default().exposed;
        let limit = rows.get::<Rules>(&())?.unwrap_or_default().exposure_limit;
        Ok(Exposure { satoshis, limit })
    }
}

impl Books<'_> {
    /// Whether a transaction must wait because its receipts would lift the exposure above the limit. An
    /// event tells of the first one.
    pub(crate) fn exceeds_exposure(
        &mut self,
        number: u64,
        record: &TransactionRecord,
        at: Timestamp,
    ) -> Result<bool, WalletStoreError> {
        let Some(limit) = self.rules.exposure_limit else { return Ok(false) };
        if !matches!(record.purpose, Purpose::Incoming(_) | Purpose::Found) {
            return Ok(false);
        }
        let satoshis = self.exposed_by(&self.made_by(number)?)?;
        let exposed = self.figures.exposed;
        if satoshis == 0 || exposed.saturating_add(satoshis) <= limit {
            return Ok(false);
        }
        if self.figures.exposure_told_for == 0 {
            self.figures.exposure_told_for = satoshis;
            let details = EventDetails::Exposure(ExposureDetails { satoshis, exposed, limit });
            let kind = EventKind::ExposureReached;
            self.append_row(&EventRow { at, kind, subject: number, details, block: None })?;
        }
        Ok(true)
    }

    /// Counts the exposure anew after a transaction has changed.
    pub(crate) fn recount_exposure(
        &mut self,
        number: u64,
        (before, after): (&TransactionRecord, &TransactionRecord),
        made: &[(ReceiptKey, Receipt)],
    ) -> Result<(), WalletStoreError> {
        let (was_at, is_at) = (height(before), height(after));
        let held = match was_at {
            Some(height) => self.rows.get::<Exposed>(&(height, number))?,
            None => None,
        };
        let holds = match (is_at, after.state.block(), held) {
            (None, ..) => None,
            (Some(_), Some(block), _) => match self.is_deep(block.height)? {
                true => None,
                false => held,
            },
            (Some(_), None, Some(satoshis)) => Some(satoshis),
            (Some(_), None, None) => Some(self.exposed_by(made)?).filter(|it| *it > 0),
        };
        if (was_at, held) == (is_at, holds) {
            return Ok(());
        }
        if let Some(height) = was_at.filter(|_| held.is_some()) {
            self.rows.remove::<Exposed>((height, number))?;
        }
        if let Some((height, satoshis)) = is_at.zip(holds) {
            self.rows.put::<Exposed>((height, number), &satoshis)?;
        }
        self.move_exposure(held.unwrap_or_default(), holds.unwrap_or_default())
    }

    /// Takes what is in deep blocks out of the exposure. Returns whether this was all.
    pub(crate) fn release_exposure(
        &mut self,
        deep: u32,
        at_once: usize,
    ) -> Result<bool, WalletStoreError> {
        if self.figures.exposed == 0 {
            return Ok(true);
        }
        let deep = self.rows.first::<Exposed>(..=(deep, u64::MAX), Ascending, at_once)?;
        let are_all = deep.len() < at_once;
        try_all(deep, |(key, satoshis)| {
            self.rows.remove::<Exposed>(key)?;
            self.move_exposure(satoshis, 0)
        })?;
        Ok(are_all)
    }

    fn move_exposure(&mut self, held: u64, holds: u64) -> Result<(), WalletStoreError> {
        let wrong = || Damaged("the exposure is not the sum of what is exposed".to_owned());
        let figures = &mut self.figures;
        let left = figures.exposed.checked_sub(held).ok_or_else(wrong)?;
        figures.exposed = left.checked_add(holds).ok_or_else(wrong)?;
        let would_be = figures.exposed.saturating_add(figures.exposure_told_for);
        if holds < held && self.rules.exposure_limit.is_none_or(|limit| would_be <= limit) {
            figures.exposure_told_for = 0;
        }
        Ok(())
    }

    /// What receipts pay to keys of no invoice and to invoices that need no block.
    fn exposed_by(&self, made: &[(ReceiptKey, Receipt)]) -> Result<u64, WalletStoreError> {
        let exposed = try_all(made, |(_, receipt)| {
            let invoice = match self.invoice_of(receipt.key)? {
                Some(number) => self.rows.get::<Invoices>(&number)?,
                None => None,
            };
            let needs_block = invoice.is_some_and(|it| self.rules.needs_block(it.satoshis));
            Ok::<_, WalletStoreError>(if needs_block { 0 } else { receipt.satoshis })
        })?;
        Ok(exposed.into_iter().fold(0, u64::saturating_add))
    }
}

/// The height of the block of a transaction whose receipts may be exposed, or [`OUTSIDE_BLOCKS`]. `None`
/// if they are not.
pub(crate) fn height(record: &TransactionRecord) -> Option<u32> {
    let is_strangers = matches!(record.purpose, Purpose::Incoming(_) | Purpose::Found);
    let height = record.state.block().map_or(OUTSIDE_BLOCKS, |block| block.height);
    (is_strangers && record.word.is_some() && record.state.counts()).then_some(height)
}
