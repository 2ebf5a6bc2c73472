use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::Error;

/// Counts of the payments that were not accepted since the wallet was opened.
#[derive(Debug, Default)]
pub struct NotTaken {
    refused: AtomicU64,
    unknown: AtomicU64,
    unavailable: AtomicU64,
}

impl NotTaken {
    /// The counts by the name of the answer.
    pub fn all(&self) -> [(&'static str, u64); 3] {
        [("refused", &self.refused), ("unknown", &self.unknown), ("unavailable", &self.unavailable)]
            .map(|(name, count)| (name, count.load(Ordering::Relaxed)))
    }

    pub(super) fn note(&self, error: &Error) {
        let count = match error {
            // The network has shown these payments, so events tell of them.
            Error::Waiting | Error::Late | Error::Underpaid { .. } => return,
            Error::OutcomeUnknown(_) => &self.unknown,
            Error::NetworkAway(_) | Error::UnknownBlock { .. } | Error::Store(_) => {
                &self.unavailable
            }
            _ => &self.refused,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }
}
