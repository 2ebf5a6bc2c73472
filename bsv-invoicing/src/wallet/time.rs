//! The wallet's clock.

use crate::model::clock::{Clock, ClockDoubt};
use crate::model::time::Timestamp;
use crate::wallet::Wallet;

impl Wallet {
    /// The clock, as it is now. If several processes may use the store, the store's clock counts.
    fn clock(&self) -> &Clock {
        self.clock.read(self.shown_time())
    }

    fn shown_time(&self) -> Timestamp {
        self.store.clock().unwrap_or_else(Timestamp::of_system)
    }

    /// The time that the clock shows: the database's, or else the system's. It never goes back, and is never earlier than the
    /// last event. After a jump of the system's clock it goes on from before the jump
    /// ([`clock_doubt`](Self::clock_doubt)).
    pub fn now(&self) -> Timestamp {
        self.clock().now()
    }

    /// The time that decides what has expired: [`now`](Self::now), except that it stands still
    /// while the system's clock is doubted.
    pub fn expiry_time(&self) -> Timestamp {
        self.clock().expiry_time()
    }

    /// Since when the system's clock is doubted, if it is.
    pub(crate) fn doubted_since(&self) -> Option<Timestamp> {
        self.clock_doubt().map(|_| self.expiry_time())
    }

    /// Why the system's clock is doubted, if it is: it jumped by two hours or more, or is that far
    /// behind the newest block. Nothing expires until the clock is right again or [`accept_clock`]
    /// is called.
    ///
    /// [`accept_clock`]: Self::accept_clock
    pub fn clock_doubt(&self) -> Option<ClockDoubt> {
        self.clock().doubt()
    }

    /// Believes what the system's clock shows, until it jumps again, or until it has been right and
    /// then falls behind again. Returns the doubt that this ends.
    pub fn accept_clock(&self) -> Option<ClockDoubt> {
        self.clock().accept(self.shown_time())
    }

    /// Records the time in the header of the node's newest block.
    pub fn note_tip_time(&self, time: Timestamp) {
        self.clock().note_tip_time(time);
    }
}
