use std::sync::atomic::{AtomicU64, Ordering};

use crate::durations::Durations;

/// Counts of what a store has done since it was opened.
#[derive(Debug, Default)]
pub struct StoreCounts {
    commands: AtomicU64,
    /// How long commits took, successful or not, from their beginning until they were durable or
    /// failed.
    pub commits: Durations,
}

impl StoreCounts {
    /// The number of commands that have run, including those that changed nothing. Several commands
    /// share a commit.
    pub fn commands(&self) -> u64 {
        self.commands.load(Ordering::Relaxed)
    }

    /// Counts commands that run.
    pub fn note_commands(&self, count: usize) {
        self.commands.fetch_add(count as u64, Ordering::Relaxed);
    }
}
