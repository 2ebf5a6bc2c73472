//! The use cases of a wallet.

mod audit;
pub(crate) mod books;
mod catch_up;
mod channel;
pub(crate) mod checkout;
mod claims;
mod consolidate;
mod destination;
mod event_tail;
mod events;
pub(crate) mod follow;
mod invoices;
mod look_ahead;
pub(crate) mod mempool_entries;
mod movements;
mod open;
pub(crate) mod outbound;
pub(crate) mod pay;
pub(crate) mod receive;
pub(crate) mod recover;
pub(crate) mod refund;
mod run;
mod running;
pub(crate) mod seed;
mod sending;
mod settings;
mod settlement;
mod shown;
mod sources;
mod terms;
mod time;
pub(crate) mod watch;
mod webhooks;
pub(crate) mod withdraw;

pub use self::open::Wallet;
pub use self::settings::WalletSettings;
