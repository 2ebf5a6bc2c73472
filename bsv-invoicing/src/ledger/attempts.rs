//! Attempts: payments by the wallet for the same purpose, one after the other.

use sha2::{Digest, Sha256};

use crate::ledger::cancel::outgoing_payment;
use crate::ledger::rows::{
    Damaged, Engine, LastRefunds, Outgoing, OutgoingByUrl, WalletStoreError,
};
use crate::model::outgoing::{OutgoingPayment, OutgoingPurpose};

/// How many earlier attempts are looked at. A payee that refuses more often is not paid.
pub(crate) const MAX_ATTEMPTS: usize = 1000;

/// The number of the last payment for this purpose. A withdrawal or a consolidation has no earlier
/// attempts.
pub(crate) fn last_attempt(
    rows: &dyn Engine,
    purpose: &OutgoingPurpose,
) -> Result<Option<u64>, WalletStoreError> {
    match purpose {
        OutgoingPurpose::Url(url) => rows.get::<OutgoingByUrl>(&url_hash(url)),
        OutgoingPurpose::Withdrawal(_) | OutgoingPurpose::Consolidation => Ok(None),
        OutgoingPurpose::Refund { invoice, .. } => rows.get::<LastRefunds>(invoice),
    }
}

/// The payment to this URL that is not lost. It need not be the last one, because the network may
/// still show an earlier one.
pub(crate) fn lasting_attempt(
    rows: &dyn Engine,
    url: &str,
) -> Result<Option<OutgoingPayment>, WalletStoreError> {
    let mut attempt = rows.get::<OutgoingByUrl>(&url_hash(url))?;
    for _ in 0..MAX_ATTEMPTS {
        let Some(number) = attempt else { break };
        let record = rows.get::<Outgoing>(&number)?;
        let record = record.ok_or_else(|| Damaged::missing("a payment"))?;
        attempt = record.previous;
        let payment = outgoing_payment(rows, number, record)?;
        if payment.state.lasts() {
            return Ok(Some(payment));
        }
    }
    Ok(None)
}

pub(crate) fn url_hash(url: &str) -> [u8; 32] {
    Sha256::digest(url).into()
}
