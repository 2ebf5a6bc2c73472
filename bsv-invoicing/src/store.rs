//! The wallet's store. A back end stores rows, and runs commands and queries over them. The rules
//! of money are in [`ledger`](crate::ledger).

mod copy;
mod event_counts;
#[cfg(feature = "postgres")]
mod postgres;
mod redb;
mod wallet_store;

pub use self::copy::{CopyError, copy_wallet, holds_no_wallet};
pub use self::event_counts::EventCounts;
#[cfg(feature = "postgres")]
pub use self::postgres::{PostgresOptions, PostgresUrlError, PostgresWalletStore};
pub use self::redb::RedbWalletStore;
pub use self::wallet_store::{
    Answering, BoxedAnswer, BoxedCommand, BoxedOnce, BoxedQuery, OpenWalletStoreError, Store,
    WalletStore,
};
pub use crate::ledger::rows::WalletStoreError;
pub use crate::model::process::{Claimed, ProcessId, Task};
