use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A histogram of durations. Many threads add to it without waiting.
#[derive(Debug, Default)]
pub struct Durations {
    /// The number of durations up to each bound and above the bound before. The last counts those
    /// above all bounds.
    counts: [AtomicU64; Self::BOUNDS.len() + 1],
    nanos: AtomicU64,
}

/// The contents of [`Durations`] at one moment. Several of them can be added up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DurationCounts {
    counts: [u64; Durations::BOUNDS.len() + 1],
    nanos: u64,
}

impl Durations {
    /// The upper bounds of the histogram's ranges.
    pub const BOUNDS: [Duration; 14] = [
        Duration::from_micros(100),
        Duration::from_micros(250),
        Duration::from_micros(500),
        Duration::from_millis(1),
        Duration::from_micros(2_500),
        Duration::from_millis(5),
        Duration::from_millis(10),
        Duration::from_millis(25),
        Duration::from_millis(50),
        Duration::from_millis(100),
        Duration::from_millis(250),
        Duration::from_secs(1),
        Duration::from_millis(2_500),
        Duration::from_secs(10),
    ];

    /// Adds a duration.
    pub fn note(&self, duration: Duration) {
        let place = Self::BOUNDS.iter().take_while(|bound| **bound < duration).count();
        self.counts[place].fetch_add(1, Ordering::Relaxed);
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.nanos.fetch_add(nanos, Ordering::Relaxed);
    }

    /// The counts up to now.
    pub fn counts(&self) -> DurationCounts {
        DurationCounts {
            counts: self.counts.each_ref().map(|count| count.load(Ordering::Relaxed)),
            nanos: self.nanos.load(Ordering::Relaxed),
        }
    }
}

impl DurationCounts {
    /// Adds the counts of another histogram.
    pub fn add(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count += more;
        }
        self.nanos += other.nanos;
    }

    /// The number of durations up to each of [`Durations::BOUNDS`], in that order.
    pub fn up_to_bounds(&self) -> impl Iterator<Item = u64> {
        let counts = self.counts[..Durations::BOUNDS.len()].iter();
        counts.scan(0, |sum, count| {
            *sum += count;
            Some(*sum)
        })
    }

    /// The number of all durations.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The sum of all durations.
    pub fn sum(&self) -> Duration {
        Duration::from_nanos(self.nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_count_up_to_their_bounds() {
        let durations = Durations::default();
        let noted = [0, 100, 101, 1_000, 10_000_000, 10_000_001].map(Duration::from_micros);
        for duration in noted {
            durations.note(duration);
        }
        let mut counts = durations.counts();
        let up_to: Vec<_> = counts.up_to_bounds().collect();
        assert_eq!(up_to, [2, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 5]);
        assert_eq!((counts.count(), counts.sum()), (6, noted.iter().sum()));
        counts.add(&durations.counts());
        assert_eq!((counts.count(), counts.up_to_bounds().last()), (12, Some(10)));
    }

    #[test]
    fn bounds_rise() {
        assert!(Durations::BOUNDS.is_sorted());
    }
}
