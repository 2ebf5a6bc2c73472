//! A new account of keys begins.

use crate::ledger::rows::{
    AccountStart, Accounts, CatchUp, CopyEnd, FollowedTip, WalletStoreError,
};
use crate::ledger::{Books, Command};
use crate::model::coin::{Chain, KeyPath};

/// Takes new keys from another account from now on. This is needed after a restore, because
/// somebody may know keys that were given out after the backup was made. The wallet watches these
/// keys of the account before.
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
        for (chain, next) in
            [(Chain::Receive, given_out + 1), (Chain::Change, books.figures.last_change)]
        {
            let index = u32::try_from(next).unwrap_or(u32::MAX);
            books.watch_ahead(KeyPath { account: used, chain, index })?;
        }
        let start = AccountStart { last_invoice_before, last_user_before };
        books.rows.put::<Accounts>(account, &start)?;
        if self.is_behind {
            let followed_to = books.rows.get::<FollowedTip>(&())?.map(|tip| tip.height);
            // A copy of books that had not caught up themselves ends where theirs ended.
            let earlier = books.rows.get::<CatchUp>(&())?;
            let last_event = earlier.map_or(books.figures.last_event, |copy| copy.last_event);
            books.rows.put::<CatchUp>((), &CopyEnd { followed_to, last_event })?;
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
