//! Where the wallet keeps what it knows: what a back end does. It stores rows, and runs commands and
//! queries over them; what may happen to money is the ledger's.

mod event_counts;
mod redb;
mod wallet_store;

pub use self::event_counts::EventCounts;
pub use self::redb::{OpenWalletStoreError, RedbWalletStore};
pub use self::wallet_store::{WalletStore, WalletStoreError};
