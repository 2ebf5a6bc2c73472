use std::fmt;
use std::mem::discriminant;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::model::time::Timestamp;

/// How far the system's clock must be off to be doubted. Nodes accept blocks whose time is at most
/// this far ahead of their own clocks.
const TOLERANCE: Duration = Duration::from_secs(2 * 60 * 60);

/// Why the system's clock is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClockDoubt {
    /// It jumped: it differs by two hours or more from the time that has passed.
    Jumped {
        /// What it shows.
        shown: Timestamp,
        /// What it would show without the jump. The wallet uses this time.
        expected: Timestamp,
    },
    /// It is two hours or more behind the newest block.
    BehindTip {
        /// What it shows.
        shown: Timestamp,
        /// The time of the block.
        tip: Timestamp,
    },
}

impl ClockDoubt {
    /// A short name. It never changes.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Jumped { .. } => "jumped",
            Self::BehindTip { .. } => "behind-tip",
        }
    }
}

impl fmt::Display for ClockDoubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Jumped { shown, expected } => {
                write!(f, "the clock has jumped to {shown}, and should show {expected}")
            }
            Self::BehindTip { shown, tip } => {
                write!(f, "the clock shows {shown}, and the newest block is of {tip}")
            }
        }
    }
}

/// The wallet's clock: what the system's clock shows, unless that is doubted. It never goes back.
///
/// While the system's clock is doubted, nothing expires. The doubt ends when the clock is right
/// again or the operator accepts it. After a jump, time goes on from before the jump.
#[derive(Debug)]
pub(crate) struct Clock(Mutex<State>);

#[derive(Debug)]
struct State {
    /// What the system's clock showed when it was last believed, and how long the system had been
    /// up then.
    believed: Timestamp,
    uptime: Duration,
    /// The latest time that the clock answered.
    told: Timestamp,
    /// The latest time that the clock answered for expiry.
    expiry: Timestamp,
    tip: Option<Timestamp>,
    /// Whether the operator has accepted a clock that is behind the tip.
    is_tip_overruled: bool,
    doubt: Option<ClockDoubt>,
}

impl Clock {
    /// A clock that starts no earlier than `earliest`. `shown` is what the clock that counts shows: the
    /// system's or, if several processes share the store, the store's.
    pub(crate) fn new(earliest: Timestamp, shown: Timestamp) -> Self {
        Self(Mutex::new(State::new(earliest, shown, uptime())))
    }

    /// Takes note of what the clock that counts shows now.
    pub(crate) fn read(&self, shown: Timestamp) -> &Self {
        self.with_state(|state| state.read(shown, uptime()));
        self
    }

    /// The time.
    pub(crate) fn now(&self) -> Timestamp {
        self.with_state(|state| state.told)
    }

    /// The time that decides what has expired. It stands still while the clock is doubted.
    pub(crate) fn expiry_time(&self) -> Timestamp {
        self.with_state(|state| state.expiry)
    }

    /// Why the clock is doubted, if it is.
    pub(crate) fn doubt(&self) -> Option<ClockDoubt> {
        self.with_state(|state| state.doubt)
    }

    /// Notes the time of the newest block.
    pub(crate) fn note_tip_time(&self, time: Timestamp) {
        self.with_state(|state| state.tip = Some(time));
    }

    /// Believes what the system's clock shows. Returns the doubt that this ends.
    pub(crate) fn accept(&self, shown: Timestamp) -> Option<ClockDoubt> {
        let doubt = self.doubt();
        self.with_state(|state| state.accept(shown, uptime()));
        doubt
    }

    fn with_state<T>(&self, f: impl FnOnce(&mut State) -> T) -> T {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl State {
    fn new(earliest: Timestamp, shown: Timestamp, uptime: Duration) -> Self {
        Self {
            believed: shown,
            uptime,
            told: shown.max(earliest),
            expiry: shown.max(earliest),
            tip: None,
            is_tip_overruled: false,
            doubt: None,
        }
    }

    /// Updates the state from what the system's clock shows.
    fn read(&mut self, shown: Timestamp, uptime: Duration) {
        let expected = self.believed.after(uptime.saturating_sub(self.uptime));
        // A clock that was behind the tip may jump: that sets it right.
        let was_behind = matches!(self.doubt, Some(ClockDoubt::BehindTip { .. }));
        let has_jumped = !was_behind
            && (shown.after(TOLERANCE) <= expected || expected.after(TOLERANCE) <= shown);
        let tip = self.tip.filter(|tip| shown.after(TOLERANCE) <= *tip);
        self.is_tip_overruled &= tip.is_some();
        let doubt = match tip {
            _ if has_jumped => Some(ClockDoubt::Jumped { shown, expected }),
            Some(tip) if !self.is_tip_overruled => Some(ClockDoubt::BehindTip { shown, tip }),
            _ => None,
        };
        tell_change(self.doubt, doubt);
        self.doubt = doubt;
        if has_jumped {
            self.told = self.told.max(expected);
            return;
        }
        (self.believed, self.uptime) = (shown, uptime);
        self.told = self.told.max(shown);
        if doubt.is_none() {
            self.expiry = self.told;
        }
    }

    fn accept(&mut self, shown: Timestamp, uptime: Duration) {
        (self.believed, self.uptime) = (shown, uptime);
        self.is_tip_overruled = true;
        self.read(shown, uptime);
    }
}

fn tell_change(before: Option<ClockDoubt>, after: Option<ClockDoubt>) {
    if before.as_ref().map(discriminant) == after.as_ref().map(discriminant) {
        return;
    }
    match after {
        Some(doubt) => tracing::warn!(
            "{doubt}: nothing expires until the clock is right or the owner accepts it"
        ),
        None => tracing::info!("the clock is believed again"),
    }
}

/// How long the system has been up. Sleep counts, so that waking up is not a jump of the clock.
fn uptime() -> Duration {
    let uptime = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(uptime.tv_sec).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_nanos(u64::try_from(uptime.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3600;
    const NOON: u64 = 1_795_000_000;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    fn seconds(time: Timestamp) -> u64 {
        time.as_micros() / 1_000_000
    }

    /// A clock that is right at noon, when the system has been up for an hour.
    fn state() -> State {
        State::new(at(0), at(NOON), Duration::from_secs(HOUR))
    }

    /// Reads a clock `passed` seconds after noon. Returns the time, the time for expiry and the
    /// doubt.
    fn read(state: &mut State, shown: u64, passed: u64) -> (u64, u64, Option<&'static str>) {
        state.read(at(shown), Duration::from_secs(HOUR + passed));
        let since_noon = |time: Timestamp| seconds(time) - NOON;
        let doubt = state.doubt.as_ref().map(ClockDoubt::name);
        (since_noon(state.told), since_noon(state.expiry), doubt)
    }

    #[test]
    fn the_clock_never_goes_back() {
        let future = Timestamp::of_system().after(Duration::from_secs(HOUR));
        let clock = Clock::new(future, Timestamp::of_system());
        assert_eq!((clock.now(), clock.expiry_time(), clock.doubt()), (future, future, None));
        let clock = Clock::new(Timestamp::from_micros(0), Timestamp::of_system());
        let first = clock.now();
        assert!(first >= Timestamp::of_system().before(Duration::from_secs(60)));
        assert!(clock.now() >= first);
        let mut state = state();
        assert_eq!(read(&mut state, NOON - HOUR, 5), (0, 0, None));
        assert_eq!(read(&mut state, NOON + 7, 10), (7, 7, None));
    }

    #[test]
    fn a_jump_of_two_hours_is_doubted_and_a_shorter_one_is_not() {
        for jump in [0, 1, 2 * HOUR - 1] {
            let mut clock = state();
            let ahead = read(&mut clock, NOON + 10 + jump, 10);
            assert_eq!(ahead, (10 + jump, 10 + jump, None));
            assert_eq!(read(&mut state(), NOON + 10 - jump, 10).2, None);
        }
        for jump in [2 * HOUR, 48 * HOUR, 30 * 365 * 24 * HOUR] {
            for shown in [NOON + 10 + jump, NOON + 10 - jump] {
                let mut clock = state();
                assert_eq!(read(&mut clock, shown, 10), (10, 0, Some("jumped")), "{jump}");
                let later = read(&mut clock, shown + HOUR, HOUR + 10);
                assert_eq!(later, (HOUR + 10, 0, Some("jumped")), "{jump}");
                let after = NOON + 3 * HOUR;
                assert_eq!(read(&mut clock, after, 3 * HOUR), (3 * HOUR, 3 * HOUR, None));
            }
        }
        assert_eq!(read(&mut state(), NOON + 48 * HOUR, 48 * HOUR).2, None, "nobody asked");
    }

    #[test]
    fn the_operator_may_accept_a_jump() {
        let mut clock = state();
        read(&mut clock, NOON + 48 * HOUR, 10);
        clock.accept(at(NOON + 48 * HOUR), Duration::from_secs(HOUR + 10));
        assert_eq!(read(&mut clock, NOON + 48 * HOUR, 10), (48 * HOUR, 48 * HOUR, None));
        assert_eq!(read(&mut clock, NOON + 20, 20), (48 * HOUR + 10, 48 * HOUR, Some("jumped")));
        clock.accept(at(NOON + 20), Duration::from_secs(HOUR + 20));
        assert_eq!(read(&mut clock, NOON + 30, 30), (48 * HOUR + 10, 48 * HOUR + 10, None));
    }

    #[test]
    fn a_clock_behind_the_newest_block_is_doubted_and_an_old_block_delays_nothing() {
        for (ahead, doubt) in [(0, None), (2 * HOUR - 1, None), (2 * HOUR, Some("behind-tip"))] {
            let mut clock = state();
            clock.tip = Some(at(NOON + ahead));
            assert_eq!(read(&mut clock, NOON, 0).2, doubt, "{ahead}");
        }
        let mut clock = state();
        clock.tip = Some(at(NOON - 90 * 24 * HOUR));
        assert_eq!(read(&mut clock, NOON + 5, 5), (5, 5, None));
        clock.tip = Some(at(NOON + 3 * HOUR));
        assert_eq!(read(&mut clock, NOON + 9, 9), (9, 5, Some("behind-tip")));
        let set_right = NOON + 5 * HOUR;
        assert_eq!(read(&mut clock, set_right, 20), (5 * HOUR, 5 * HOUR, None));
        assert_eq!(read(&mut clock, NOON + 20, 20).2, Some("jumped"));

        let mut clock = state();
        clock.tip = Some(at(NOON + 3 * HOUR));
        assert_eq!(read(&mut clock, NOON + 9, 9), (9, 0, Some("behind-tip")));
        let agreed = HOUR + 1;
        assert_eq!(read(&mut clock, NOON + agreed, agreed), (agreed, agreed, None));
        clock.tip = Some(at(NOON + 9 * HOUR));
        assert_eq!(read(&mut clock, NOON + agreed, agreed).2, Some("behind-tip"));
        clock.accept(at(NOON + agreed), Duration::from_secs(HOUR + agreed));
        assert_eq!(read(&mut clock, NOON + agreed + 1, agreed + 1).2, None);
        clock.tip = Some(at(NOON));
        assert_eq!(read(&mut clock, NOON + agreed + 2, agreed + 2).2, None);
        clock.tip = Some(at(NOON + 9 * HOUR));
        assert_eq!(read(&mut clock, NOON + agreed + 3, agreed + 3).2, Some("behind-tip"));
    }
}
