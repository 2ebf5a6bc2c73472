//! The wallet's store. A back end stores rows, and runs commands and queries over them. The rules
//! of money are in [`ledger`](crate::ledger).

mod event_counts;
mod redb;
mod wallet_store;

pub use self::event_counts::EventCounts;
pub use self::redb::{OpenWalletStoreError, RedbWalletStore};
pub use self::wallet_store::{WalletStore, WalletStoreError};
