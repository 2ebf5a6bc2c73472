use crate::ledger::figures::Figures;
use crate::ledger::rows::{AllFigures, Engine, Rules, WalletStoreError};
use crate::model::event::EventKind;
use crate::model::process::ProcessId;
use crate::model::settlement::PaymentRules;

/// The books, as the rules read and change them.
pub type Books<'e> = BooksOn<dyn Engine + 'e>;

/// The rows that a batch of commands works on, and the figures that it keeps in memory.
#[derive(Debug)]
pub struct BooksOn<E: ?Sized> {
    pub(super) figures: Figures,
    pub(super) rules: PaymentRules,
    /// The process that runs the commands.
    pub(super) process: ProcessId,
    /// The events that the batch has written, in their order.
    pub(super) told: Vec<EventKind>,
    /// The figures in the store.
    stored_figures: Figures,
    pub(super) rows: E,
}

impl<E: Engine> BooksOn<E> {
    /// Opens the books for a batch of the only process that has the store.
    pub fn open(rows: E) -> Result<Self, WalletStoreError> {
        Self::open_for(ProcessId::ALONE, rows)
    }

    /// Opens the books for a batch of a process.
    pub fn open_for(process: ProcessId, rows: E) -> Result<Self, WalletStoreError> {
        let read: &dyn Engine = &rows;
        let figures = read.get::<AllFigures>(&())?.unwrap_or_default();
        let rules = read.get::<Rules>(&())?.unwrap_or_default();
        let stored_figures = figures.clone();
        Ok(Self { figures, rules, process, told: Vec::new(), stored_figures, rows })
    }

    /// The kinds of the events that the batch has written so far, in their order.
    pub fn told(&self) -> &[EventKind] {
        &self.told
    }

    /// The number of the last event, including those of this batch.
    pub fn last_event(&self) -> u64 {
        self.figures.last_event
    }

    /// Writes the changes that are only in memory.
    pub fn close(mut self) -> Result<E, WalletStoreError> {
        if self.figures != self.stored_figures {
            let rows: &mut dyn Engine = &mut self.rows;
            rows.put::<AllFigures>((), &self.figures)?;
        }
        Ok(self.rows)
    }
}
