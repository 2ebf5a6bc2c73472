use std::sync::atomic::{AtomicU64, Ordering};

use crate::model::delivery::{AttemptFailure, AttemptOutcome};

/// Counts of the attempts since the wallet was opened, by outcome.
#[derive(Debug, Default)]
pub struct AttemptCounts([AtomicU64; OUTCOMES.len()]);

/// One example of each outcome that has a count of its own.
const OUTCOMES: [AttemptOutcome; 8] = [
    AttemptOutcome::Answered(200),
    AttemptOutcome::Answered(500),
    AttemptOutcome::Failed(AttemptFailure::BlockedAddress),
    AttemptOutcome::Failed(AttemptFailure::Dns),
    AttemptOutcome::Failed(AttemptFailure::Connect),
    AttemptOutcome::Failed(AttemptFailure::Tls),
    AttemptOutcome::Failed(AttemptFailure::Timeout),
    AttemptOutcome::Failed(AttemptFailure::Answer),
];

impl AttemptCounts {
    /// The names of the outcomes ([`AttemptOutcome::name`]) and their counts.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let counts = self.0.iter().map(|count| count.load(Ordering::Relaxed));
        OUTCOMES.into_iter().map(AttemptOutcome::name).zip(counts)
    }

    pub(super) fn note(&self, outcome: AttemptOutcome) {
        let place = OUTCOMES.iter().position(|known| known.name() == outcome.name());
        if let Some(place) = place {
            self.0[place].fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_outcome_is_counted_under_its_name() {
        let counts = AttemptCounts::default();
        for outcome in OUTCOMES {
            counts.note(outcome);
        }
        counts.note(AttemptOutcome::Answered(204));
        counts.note(AttemptOutcome::Answered(302));
        let expected = [
            ("success", 2),
            ("status", 2),
            ("blocked-address", 1),
            ("dns", 1),
            ("connect", 1),
            ("tls", 1),
            ("timeout", 1),
            ("answer", 1),
        ];
        assert_eq!(counts.all().collect::<Vec<_>>(), expected);
    }
}
