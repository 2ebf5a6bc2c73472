//! Copying a wallet from one store to another, whichever they are.

use bsv_store::AuditPage;
use thiserror::Error;
use tokio::sync::mpsc;

use crate::ledger::copy::{EachPage, IsEmpty, PutAudit, PutRows, RowPage};
use crate::store::{Store, WalletStore, WalletStoreError};

/// How many entries of the audit log are copied at once.
const AUDIT_PAGE: usize = 1_000;

/// Why a wallet was not copied.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CopyError {
    /// Something is there already.
    #[error("the store that is copied to is not empty")]
    NotEmpty,
    /// A store failed.
    #[error(transparent)]
    Store(#[from] WalletStoreError),
}

/// Whether a store holds no wallet.
pub async fn holds_no_wallet(store: &dyn Store) -> Result<bool, WalletStoreError> {
    store.get(IsEmpty).await
}

/// Copies all rows of a store, as they are at one moment, and the audit log, to an empty one. Answers how many rows.
/// What is read is compared with its checksums.
///
/// If it is cut short, what is there belongs to no wallet, and is refused as not empty.
pub async fn copy_wallet(from: &dyn Store, to: &dyn Store) -> Result<u64, CopyError> {
    if !holds_no_wallet(to).await? {
        return Err(CopyError::NotEmpty);
    }
    let (sender, pages) = mpsc::channel(1);
    let read = from.verify(EachPage(move |page| sender.blocking_send(page).is_ok()));
    let (read, written) = tokio::join!(read, write(from, to, pages));
    let count = written?;
    read?;
    Ok(count)
}

async fn write(
    from: &dyn Store,
    to: &dyn Store,
    mut pages: mpsc::Receiver<RowPage>,
) -> Result<u64, CopyError> {
    let mut next = pages.recv().await;
    // It is read after the moment that the rows are of, so that it lacks nothing that belongs to them.
    copy_audit_log(from, to).await?;
    let mut count = 0;
    while let Some(page) = next {
        count += page.rows.len() as u64;
        to.execute(PutRows(page)).await?;
        next = pages.recv().await;
    }
    Ok(count)
}

async fn copy_audit_log(from: &dyn Store, to: &dyn Store) -> Result<(), WalletStoreError> {
    let mut after = 0;
    loop {
        let entries = from.audit_log(AuditPage::After(after), AUDIT_PAGE).await?;
        let Some(last) = entries.last() else { return Ok(()) };
        after = last.number;
        to.execute(PutAudit(entries)).await?;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use bsv_store::{DatabaseOptions, DirLock};
    use bsv_tx::{Script, Transaction, TxOut};
    use tempfile::TempDir;

    use super::*;
    use crate::ledger::rows::Table;
    use crate::ledger::{Notice, Noticed, ShownPlace, Sighting, Watch};
    use crate::model::coin::{Chain, KeyPath};
    use crate::model::time::Timestamp;
    use crate::store::RedbWalletStore;

    const HASH: [u8; 20] = [9; 20];

    fn now() -> Timestamp {
        Timestamp::from_micros(1)
    }

    /// A transaction of about this length that pays the wallet.
    fn found(satoshis: u64, len: usize) -> Noticed {
        let output = |locking_script| TxOut { satoshis, locking_script };
        let scripts = [Script::p2pkh(&HASH), Script::from_bytes(vec![7; len])];
        let transaction = Transaction {
            version: 1,
            inputs: Vec::new(),
            outputs: scripts.map(output).to_vec(),
            lock_time: 0,
        };
        let place = ShownPlace::Mempool(Sighting::judged(true));
        Noticed { transaction: (&transaction).into(), place, came_at: now(), ancestry: Vec::new() }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_longer_transactions_are_the_fewer_are_copied_at_once() {
        let dir = TempDir::new().unwrap();
        let lock = DirLock::acquire(dir.path(), "test").unwrap();
        let store = RedbWalletStore::open(lock, DatabaseOptions::default()).unwrap();
        let lens = [600_000, 600_000, 2_000_000, 10, 10, 600_000, 10];
        let key = KeyPath { account: 0, chain: Chain::Change, index: 0 };
        store.execute(Watch { keys: vec![(HASH, key)] }).await.unwrap();
        let shown = (1..).zip(lens).map(|(satoshis, len)| found(satoshis, len)).collect();
        store.execute(Notice { shown, now: now() }).await.unwrap();
        let (sender, pages) = mpsc::channel();
        let number = |key: &Vec<u8>| u64::from_be_bytes(key.as_slice().try_into().unwrap());
        let note = move |page: RowPage| {
            if page.table == Table::RawTransactions {
                sender
                    .send(page.rows.iter().map(|(key, _)| number(key)).collect::<Vec<_>>())
                    .unwrap();
            }
            true
        };
        store.verify(EachPage(note)).await.unwrap();
        assert_eq!(pages.into_iter().collect::<Vec<_>>(), [vec![1, 2], vec![3], vec![4, 5, 6, 7]]);
    }
}
