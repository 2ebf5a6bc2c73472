//! A new account of keys begins.

use crate::ledger::rows::{
    AccountStart, Accounts, CatchUp, FollowedTip, WalletStoreError, WatchBacklog,
};
use crate::ledger::{Books, Command};
use crate::model::coin::{Chain, KeyPath};

/// How many keys of the previous account may have been given out after the backup was made. The
/// wallet watches them.
const UNKNOWN_KEYS: u32 = 100_000;

/// Takes new keys from another account from now on. This is needed after a restore, because
/// somebody may know keys that were given out after the backup was made.
#[derive(Clone, Copy, Debug)]
pub struct BeginAccount {
    /// The account to begin. If it or a later one was used, the account after the last used one
    /// begins.
    pub account: u32,
    /// Whether the books are an earlier copy, so that they must catch up with the chain.
    pub is_behind: bool,
}

impl Command for BeginAccount {
    /// The account that was begun.
    type Answer = u32;

    fn run(&self, books: &mut Books<'_>) -> Result<u32, WalletStoreError> {
        let used = u32::try_from(books.figures.account).unwrap_or(u32::MAX);
        let account = self.account.max(used.saturating_add(1));
        let last_invoice_before = books.figures.last_invoice;
        let last_user_before = books.figures.last_user;
        let given_out = last_invoice_before - books.figures.last_invoice_before;
        let from = u32::try_from(given_out + 1).unwrap_or(u32::MAX);
        let first = KeyPath { account: used, chain: Chain::Receive, index: from };
        let end = from.saturating_add(UNKNOWN_KEYS).min(1 << 31);
        books.rows.put::<WatchBacklog>(first, &end)?;
        let start = AccountStart { last_invoice_before, last_user_before };
        books.rows.put::<Accounts>(account, &start)?;
        if self.is_behind {
            let tip = books.rows.get::<FollowedTip>(&())?;
            books.rows.put::<CatchUp>((), &tip.map(|tip| tip.height))?;
        }
        let figures = &mut books.figures;
        figures.account = account.into();
        figures.last_change = 0;
        figures.last_invoice_before = last_invoice_before;
        figures.last_user_before = last_user_before;
        Ok(account)
    }
}

/// Records that the books have caught up with the chain.
#[derive(Clone, Copy, Debug)]
pub struct CaughtUp;

impl Command for CaughtUp {
    type Answer = ();

    fn run(&self, books: &mut Books<'_>) -> Result<(), WalletStoreError> {
        books.rows.remove::<CatchUp>(()).map(drop)
    }
}
