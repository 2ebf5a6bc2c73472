//! Copying a wallet from one store to another, whichever they are.

use thiserror::Error;

use crate::ledger::copy::{GetRows, IsEmpty, PutAudit, PutRows, beginnings};
use crate::store::{WalletStore, WalletStoreError};

/// How many entries of the audit log are copied at once.
const AUDIT_PAGE: usize = 1_000;

/// Why a wallet was not copied.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CopyError {
    /// Something is there already.
    #[error("the store that is copied to is not empty")]
    NotEmpty,
    /// The audit log of the source does not fit together.
    #[error("the audit log is damaged: {0}")]
    Audit(String),
    /// A store failed.
    #[error(transparent)]
    Store(#[from] WalletStoreError),
}

/// Copies all rows and the audit log of a store that nobody changes meanwhile to an empty one. Answers how many rows.
///
/// If it is cut short, what is there belongs to no wallet, and is refused as not empty.
pub async fn copy_wallet(from: &impl WalletStore, to: &impl WalletStore) -> Result<u64, CopyError> {
    if !to.get(IsEmpty).await? {
        return Err(CopyError::NotEmpty);
    }
    let check = from.verify_audit_log().await?;
    if let Some(fault) = check.fault {
        return Err(CopyError::Audit(fault));
    }
    let mut after = 0;
    loop {
        let entries = from.audit_log(after, AUDIT_PAGE).await?;
        let Some(last) = entries.last() else { break };
        after = last.number;
        to.execute(PutAudit(entries)).await?;
    }
    let mut count = 0;
    for beginning in beginnings() {
        let mut cursor = Some(beginning);
        while let Some(place) = cursor {
            let page = from.list(GetRows(place)).await?;
            cursor = page.next();
            if page.len() > 0 {
                count += page.len() as u64;
                to.execute(PutRows(page)).await?;
            }
        }
    }
    Ok(count)
}
