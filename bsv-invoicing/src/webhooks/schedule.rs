//! The schedule of retries: when events that could not be delivered are sent again.

use std::time::Duration;

/// How many attempts are made before a delivery has failed.
pub const MAX_ATTEMPTS: u32 = 12;
/// After this many failures in a row, an endpoint gets one attempt at a time.
pub const FAILURES_BEFORE_PROBING: u32 = 5;
/// The next failure disables an endpoint that has accepted nothing for this long.
pub const DISABLED_AFTER: Duration = hours(120);

/// The waits after the first, the second … attempt.
const WAITS: [Duration; MAX_ATTEMPTS as usize - 1] = [
    Duration::from_secs(5),
    Duration::from_secs(30),
    minutes(2),
    minutes(10),
    minutes(30),
    hours(2),
    hours(5),
    hours(10),
    hours(14),
    hours(20),
    hours(24),
];
/// How much a wait is shortened or lengthened at most, in percent, so that endpoints that failed
/// together are not all retried at the same time.
const JITTER: u32 = 20;
/// The longest wait that an endpoint can ask for.
const LONGEST_RETRY_AFTER: Duration = hours(1);
/// The longest pause between attempts to a failing endpoint that has events to get.
const LONGEST_PROBE_WAIT: Duration = minutes(10);

const fn minutes(count: u64) -> Duration {
    Duration::from_secs(count * 60)
}

const fn hours(count: u64) -> Duration {
    minutes(count * 60)
}

/// The wait after a failed attempt. `None` after the last one. `attempts` is the number of attempts
/// that were made. `random` is uniformly random, and decides how much the wait differs from the
/// schedule. The endpoint's `Retry-After` can lengthen the wait.
pub fn wait_after(attempts: u32, retry_after: Option<Duration>, random: u32) -> Option<Duration> {
    let place = usize::try_from(attempts.checked_sub(1)?).ok()?;
    let wait = jittered(*WAITS.get(place)?, random);
    Some(wait.max(retry_after.unwrap_or_default().min(LONGEST_RETRY_AFTER)))
}

/// The pause of an endpoint that gets one attempt at a time, after this many of these attempts have
/// failed.
pub fn probe_wait(probes: u32) -> Duration {
    let place = usize::try_from(probes).unwrap_or(usize::MAX).min(WAITS.len() - 1);
    WAITS[place].min(LONGEST_PROBE_WAIT)
}

/// From 80 to 120 percent of a wait.
fn jittered(wait: Duration, random: u32) -> Duration {
    let share = u64::from(random) * u64::from(2 * JITTER) * 10_000 / u64::from(u32::MAX);
    let parts = u32::try_from(share).expect("it is at most 400,000") + (100 - JITTER) * 10_000;
    wait * parts / 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIDDLE: u32 = u32::MAX / 2;

    fn wait(attempts: u32, retry_after: Option<u64>, random: u32) -> Option<f64> {
        let wait = wait_after(attempts, retry_after.map(Duration::from_secs), random);
        wait.map(|wait| wait.as_secs_f64())
    }

    #[test]
    fn waits_are_those_of_the_contract_give_or_take_a_fifth() {
        let expected =
            [5, 30, 120, 600, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400].map(f64::from);
        for (attempts, expected) in (1..).zip(expected) {
            for (random, share) in [(0, 0.8), (MIDDLE, 1.0), (u32::MAX, 1.2)] {
                let wait = wait(attempts, None, random).unwrap();
                let ratio = wait / expected;
                assert!((ratio - share).abs() < 1e-5, "{attempts} {random}: {wait}");
            }
        }
        assert_eq!(wait(12, None, 0), None);
        assert_eq!(wait(13, Some(9), 0), None);
        assert_eq!(wait(u32::MAX, None, 0), None);
        let all: f64 = expected.iter().sum();
        assert!((75.0..77.0).contains(&(all / 3600.0)), "{all}");
    }

    #[test]
    fn an_endpoint_can_ask_for_a_longer_wait_but_not_for_a_shorter_one() {
        for (attempts, retry_after, expected) in [
            (1, 0, 5.0),
            (1, 4, 5.0),
            (1, 60, 60.0),
            (1, 3600, 3600.0),
            (1, 3601, 3600.0),
            (1, u64::MAX, 3600.0),
            (6, 60, 7200.0),
        ] {
            let wait = wait(attempts, Some(retry_after), MIDDLE).unwrap();
            assert!((wait - expected).abs() < 0.1, "{attempts} {retry_after}: {wait}");
        }
    }

    #[test]
    fn a_failing_endpoint_is_probed_less_and_less_often_but_at_least_every_ten_minutes() {
        for (probes, seconds) in
            [(0, 5), (1, 30), (2, 120), (3, 600), (4, 600), (500, 600), (u32::MAX, 600)]
        {
            assert_eq!(probe_wait(probes), Duration::from_secs(seconds), "{probes}");
        }
    }
}
