//! The ancestors that a payer sends beside the transaction.

use bsv_tx::{Beef, BeefError, FormedTransaction, TransactionForm};
use serde_json::value::RawValue;

use crate::dpp::json::{self, HexBytes};

/// A transaction together with its ancestors, in one form. Ancestors are read if they are BEEF in
/// hexadecimal digits. Payers of other times send other forms, which are ignored, as are ancestors that
/// are not complete.
pub(super) fn with_ancestry(
    transaction: Vec<u8>,
    ancestry: Option<&RawValue>,
) -> Result<Vec<u8>, BeefError> {
    let ancestry = ancestry.and_then(|raw| json::read_text::<HexBytes>(raw.get()).ok());
    let ancestry = ancestry.map(|HexBytes(bytes)| bytes).filter(|bytes| is_beef(bytes));
    let Some(ancestry) = ancestry.filter(|_| !is_beef(&transaction)) else {
        return Ok(transaction);
    };
    // The receiver says what is wrong with a transaction that cannot be read.
    let Ok(formed) = FormedTransaction::from_bytes(&transaction) else { return Ok(transaction) };
    let whole = Beef::from_bytes(&ancestry).and_then(|beef| {
        match beef.subject_txid() == formed.transaction().txid() {
            true => Ok(ancestry),
            false => Ok(beef.followed_by(formed.into_transaction())?.to_bytes()),
        }
    });
    match whole {
        // The receiver may have what is missing, or not need it.
        Err(BeefError::ParentNotBefore { .. }) => Ok(transaction),
        whole => whole,
    }
}

fn is_beef(bytes: &[u8]) -> bool {
    matches!(TransactionForm::of(bytes), TransactionForm::Beef(_) | TransactionForm::AtomicBeef)
}
