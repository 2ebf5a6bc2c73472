//! Attempts: payments by the wallet for the same purpose, one after the other.

use sha2::{Digest, Sha256};

use crate::ledger::cancel::outgoing_payment;
use crate::ledger::effects::outgoing_record;
use crate::ledger::rows::{Engine, LastRefunds, OutgoingByUrl, WalletStoreError};
use crate::model::outgoing::{OutgoingPayment, OutgoingPurpose, OutgoingRecord};

/// The most attempts for one purpose. A payee that refuses more often is not paid.
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

/// The payments for this purpose and their numbers, the last one first.
pub(crate) fn attempts(
    rows: &dyn Engine,
    purpose: &OutgoingPurpose,
) -> Result<Vec<(u64, OutgoingRecord)>, WalletStoreError> {
    let mut attempts = Vec::new();
    let mut next = last_attempt(rows, purpose)?;
    while let Some(number) = next.filter(|_| attempts.len() < MAX_ATTEMPTS) {
        let attempt = outgoing_record(rows, number)?;
        next = attempt.previous;
        attempts.push((number, attempt));
    }
    Ok(attempts)
}

/// The payment for this purpose that is not lost. It need not be the last one, because the network
/// may still show an earlier one.
pub(crate) fn lasting_attempt(
    rows: &dyn Engine,
    purpose: &OutgoingPurpose,
) -> Result<Option<OutgoingPayment>, WalletStoreError> {
    for (number, record) in attempts(rows, purpose)? {
        let payment = outgoing_payment(rows, number, record)?;
        if payment.lasts() {
            return Ok(Some(payment));
        }
    }
    Ok(None)
}

pub(crate) fn url_hash(url: &str) -> [u8; 32] {
    Sha256::digest(url).into()
}
