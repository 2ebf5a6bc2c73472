use crate::ledger::figures::Figures;
use crate::ledger::rows::{AllFigures, Rows, Rules};
use crate::model::event::EventKind;
use crate::model::process::ProcessId;
use crate::model::settlement::PaymentRules;

/// The rows that a batch of commands works on, and the figures that it keeps in memory.
#[derive(Debug)]
pub struct Books<R> {
    pub(super) rows: R,
    pub(super) figures: Figures,
    pub(super) rules: PaymentRules,
    /// The process that runs the commands.
    pub(super) process: ProcessId,
    /// The events that the batch has written, in their order.
    pub(super) told: Vec<EventKind>,
    /// The figures in the store.
    stored_figures: Figures,
}

impl<R: Rows> Books<R> {
    /// Opens the books for a batch of the only process that has the store.
    pub fn open(rows: R) -> Result<Self, R::Error> {
        Self::open_for(ProcessId::ALONE, rows)
    }

    /// Opens the books for a batch of a process.
    pub fn open_for(process: ProcessId, rows: R) -> Result<Self, R::Error> {
        let figures = rows.get::<AllFigures>(&())?.unwrap_or_default();
        let rules = rows.get::<Rules>(&())?.unwrap_or_default();
        let stored_figures = figures.clone();
        Ok(Self { rows, figures, rules, process, told: Vec::new(), stored_figures })
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
    pub fn close(mut self) -> Result<R, R::Error> {
        if self.figures != self.stored_figures {
            self.rows.put::<AllFigures>((), &self.figures)?;
        }
        Ok(self.rows)
    }
}
