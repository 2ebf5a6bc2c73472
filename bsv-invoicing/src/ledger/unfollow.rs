//! The time to follow a lost transaction is over.

use std::time::Duration;

use crate::ledger::rows::{
    Ancestors, FollowedTransactions, Transactions, WalletStoreError, try_all,
};
use crate::ledger::{Books, Command};
use crate::model::transaction::{FollowedUntil, Purpose, TransactionState};

/// How long a lost transaction is followed: a day. In that time nodes mine it, bury its rival, or
/// forget it.
pub(super) const AFTERCARE: Duration = Duration::from_secs(24 * 60 * 60);

/// Stops following a lost transaction and drops its bytes if they are long, or follows it for
/// another while if it could still be mined.
#[derive(Clone, Copy, Debug)]
pub struct Unfollow {
    /// The number of the transaction.
    pub transaction: u64,
}

impl Command for Unfollow {
    type Answer = ();

    fn run(&self, books: &mut Books<'_>) -> Result<(), WalletStoreError> {
        let number = self.transaction;
        let until = books.rows.get::<FollowedTransactions>(&number)?;
        let Some(FollowedUntil::Time(until)) = until else { return Ok(()) };
        let record = books.transaction(number)?;
        match record.purpose {
            Purpose::Incoming(_) if record.state == TransactionState::Refused => {
                books.forget_refused(number)
            }
            _ if books.is_void(number)? => {
                books.drop_bytes(number, record)?;
                books.unfollow(number)
            }
            _ => {
                let until = FollowedUntil::Time(until.after(AFTERCARE));
                books.rows.put::<FollowedTransactions>(number, &until)
            }
        }
    }
}

impl Books<'_> {
    /// Stops following a transaction, and deletes what following it needs.
    pub(crate) fn unfollow(&mut self, number: u64) -> Result<(), WalletStoreError> {
        self.rows.remove::<Ancestors>(number)?;
        self.rows.remove::<FollowedTransactions>(number).map(drop)
    }

    fn is_followed(&self, number: u64) -> Result<bool, WalletStoreError> {
        Ok(self.rows.get::<FollowedTransactions>(&number)?.is_some())
    }

    /// Whether a transaction can no longer be mined: a mined transaction spends one of its coins,
    /// or the maker of one of its coins is lost and no longer followed. A transaction that spends
    /// no coins of the wallet counts as one that cannot be mined, because its fate cannot be
    /// judged.
    fn is_void(&self, number: u64) -> Result<bool, WalletStoreError> {
        let keys = self.spent_by(number)?;
        let cannot_be_spent = try_all(&keys, |key| {
            let spender = match self.receipt(*key)?.spender {
                Some(spender) => self.rows.get::<Transactions>(&spender)?,
                None => None,
            };
            let is_taken = spender.is_some_and(|it| it.state.block().is_some());
            let maker_is_lost = self.transaction(key.maker)?.state.is_lost();
            Ok::<_, WalletStoreError>(is_taken || (maker_is_lost && !self.is_followed(key.maker)?))
        })?;
        Ok(keys.is_empty() || cannot_be_spent.contains(&true))
    }
}
