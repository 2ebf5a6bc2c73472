//! What the wallet knows, as values: no rules of money, no I/O, no storage.

pub(crate) mod byte_members;
pub(crate) mod clock;
pub(crate) mod coin;
pub(crate) mod delivery;
pub(crate) mod event;
pub(crate) mod fields;
pub(crate) mod holdings;
pub(crate) mod idempotency;
pub(crate) mod invoice;
pub(crate) mod invoice_id;
pub(crate) mod movement;
pub(crate) mod outgoing;
pub(crate) mod payment;
pub(crate) mod process;
pub(crate) mod receipt;
pub(crate) mod settlement;
pub(crate) mod sighting;
pub(crate) mod stored;
pub(crate) mod time;
pub(crate) mod transaction;
pub(crate) mod user;
pub(crate) mod webhook;
pub(crate) mod withdrawal;
