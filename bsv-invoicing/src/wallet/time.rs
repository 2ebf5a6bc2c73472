//! The time, as a wallet takes it.

use crate::model::clock::ClockDoubt;
use crate::model::time::Timestamp;
use crate::store::WalletStore;
use crate::wallet::Wallet;

impl<S: WalletStore> Wallet<S> {
    /// The time: what the system's clock shows, but never earlier than before, or than the last
    /// event. If that clock has jumped, it goes on from before ([`clock_doubt`](Self::clock_doubt)).
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The time by which it is decided what has expired: [`now`](Self::now), but it stands still while
    /// the system's clock is doubted.
    pub fn expiry_time(&self) -> Timestamp {
        self.clock.expiry_time()
    }

    /// Since when the system's clock is doubted, if it is.
    pub(crate) fn doubted_since(&self) -> Option<Timestamp> {
        self.clock_doubt().map(|_| self.expiry_time())
    }

    /// Why the system's clock is doubted: it jumped by two hours or more, or is that far behind the
    /// newest block. Nothing expires then, until it is right again or [`accept_clock`] is called.
    ///
    /// [`accept_clock`]: Self::accept_clock
    pub fn clock_doubt(&self) -> Option<ClockDoubt> {
        self.clock.doubt()
    }

    /// Believes the system's clock as it is, until it jumps again or has been right meanwhile and falls
    /// behind. Answers what was doubted.
    pub fn accept_clock(&self) -> Option<ClockDoubt> {
        self.clock.accept()
    }

    /// Notes the time in the header of the node's newest block.
    pub fn note_tip_time(&self, time: Timestamp) {
        self.clock.note_tip_time(time);
    }
}
