//! The former state machine, to compare with.
#![allow(warnings, clippy::all, clippy::pedantic)]

pub mod announcement;
pub mod chain_view;
pub mod change;
pub mod miner_info_record;
pub mod record;
pub mod sightings;
pub mod vctx;

pub use announcement::Announcement;
pub use change::Change;
pub use miner_info_record::{MinerInfoRecord, RevocationRecord};
pub use record::{Exposure, IdentityRecord, Protocol};
pub use vctx::Vctx;

/// Whether the former machine has the allowed differences.
pub fn allowed() -> bool {
    static ALLOWED: std::sync::LazyLock<bool> =
        std::sync::LazyLock::new(|| std::env::var("ALLOWED").is_ok());
    *ALLOWED
}
