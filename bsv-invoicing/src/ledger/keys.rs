//! The keys that are given out, and what they are for.

use crate::ledger::figures::Figures;
use crate::ledger::rows::{
    AccountStart, Accounts, Damaged, Engine, Order, Users, WalletStoreError,
};
use crate::ledger::{Books, Refusal};
use crate::model::coin::{Chain, KeyPath};

/// The highest number that a key can be derived for.
pub(crate) const MAX_NUMBER: u64 = (1 << 31) - 1;

impl Books<'_> {
    /// Takes the next key for change.
    pub(crate) fn take_change_key(&mut self) -> Result<KeyPath, WalletStoreError> {
        let figures = &mut self.figures;
        let index = u32::try_from(figures.last_change).ok();
        let index = index.filter(|index| u64::from(*index) < MAX_NUMBER);
        let index = index.ok_or(Refusal::Full(MAX_NUMBER))?;
        let account = u32::try_from(figures.account).map_err(|_| no_account())?;
        figures.last_change += 1;
        Ok(KeyPath { account, chain: Chain::Change, index })
    }

    /// The number of the invoice that a key belongs to.
    pub(crate) fn invoice_of(&self, key: KeyPath) -> Result<Option<u64>, WalletStoreError> {
        invoice_of(&self.rows, &self.figures, key)
    }
}

/// The number of the invoice that a key belongs to.
pub(crate) fn invoice_of(
    rows: &dyn Engine,
    figures: &Figures,
    key: KeyPath,
) -> Result<Option<u64>, WalletStoreError> {
    if key.chain != Chain::Receive {
        return Ok(None);
    }
    let Some(start) = start_of(rows, figures, key.account)? else { return Ok(None) };
    let number = start.last_invoice_before + u64::from(key.index);
    // Later keys of an earlier account belong to no invoice of these books: they were given out
    // after the backup.
    let is_given_out = number <= last_invoice_of(rows, figures, key.account)?;
    Ok(is_given_out.then_some(number))
}

/// The user whom a key was given to.
pub(crate) fn user_of(
    rows: &dyn Engine,
    figures: &Figures,
    key: KeyPath,
) -> Result<Option<u64>, WalletStoreError> {
    if key.chain != Chain::User {
        return Ok(None);
    }
    let Some(start) = start_of(rows, figures, key.account)? else { return Ok(None) };
    let id = start.last_user_before + u64::from(key.index);
    Ok(rows.get::<Users>(&id)?.map(|_| id))
}

/// The start of an account's numbers, if keys of the account were given out.
fn start_of(
    rows: &dyn Engine,
    figures: &Figures,
    account: u32,
) -> Result<Option<AccountStart>, WalletStoreError> {
    let &Figures { last_invoice_before, last_user_before, .. } = figures;
    if u64::from(account) == figures.account {
        return Ok(Some(AccountStart { last_invoice_before, last_user_before }));
    }
    if account == 0 {
        return Ok(Some(AccountStart { last_invoice_before: 0, last_user_before: 0 }));
    }
    rows.get::<Accounts>(&account)
}

/// The last invoice whose key comes from this account or an earlier one.
fn last_invoice_of(
    rows: &dyn Engine,
    figures: &Figures,
    account: u32,
) -> Result<u64, WalletStoreError> {
    if u64::from(account) == figures.account {
        return Ok(figures.last_invoice);
    }
    let next = rows.first::<Accounts>(account + 1.., Order::Ascending, 1)?;
    let start = next.first().map(|(_, start)| start.last_invoice_before);
    Ok(start.unwrap_or(figures.last_invoice_before))
}

fn no_account() -> Damaged {
    Damaged("an account that keys cannot be derived for".to_owned())
}
