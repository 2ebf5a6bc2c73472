use std::sync::atomic::{AtomicU64, Ordering};

use crate::durations::Durations;

/// What a store has done since it was opened.
#[derive(Debug, Default)]
pub struct StoreCounts {
    commands: AtomicU64,
    /// How long its commits took, from their beginning until what they wrote was on the disk, or could not be put there.
    pub commits: Durations,
}

impl StoreCounts {
    /// How many commands have run, also those that changed nothing. Several share a commit.
    pub fn commands(&self) -> u64 {
        self.commands.load(Ordering::Relaxed)
    }

    /// Counts commands that run.
    pub fn note_commands(&self, count: usize) {
        self.commands.fetch_add(count as u64, Ordering::Relaxed);
    }
}
