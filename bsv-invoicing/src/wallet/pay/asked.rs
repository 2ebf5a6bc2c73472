//! What a payee asks for, and whether the wallet may pay it.

use std::sync::atomic::Ordering;
use std::time::Duration;

use bsv_tx::TxOut;
use reqwest::Url;

use super::payable::check_payable_outputs;
use crate::dpp::{FeeRate, ReceivedTerms, TermsError};
use crate::error::Error;
use crate::model::idempotency::IdempotencyKey;
use crate::model::outgoing::OutgoingPurpose;
use crate::model::time::Timestamp;
use crate::wallet::Wallet;
use crate::wallet::sending::{Plan, check_limit};
use crate::wallet::sources::away;

/// How long terms are valid if they do not say.
const DEFAULT_TERM: Duration = Duration::from_secs(60 * 60);

/// A payment that terms ask for.
pub(super) struct Asked {
    pub(super) plan: Plan,
    pub(super) terms: ReceivedTerms,
    /// The URL that the payment is posted to.
    pub(super) posting_url: Url,
    pub(super) expires_at: Timestamp,
}

impl Wallet {
    /// Asks a payee for its terms, and returns the payment that they ask for.
    pub(super) async fn ask(
        &self,
        url: &Url,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<Asked, Error> {
        // Without a node, the outcome of a payment would stay unknown.
        let policy = self.sources()?.operating.policy().await.map_err(away)?;
        self.fee_floor.store(policy.mining_fee_rate, Ordering::Relaxed);
        let (terms, posting_url) = self.payee.terms(url, self.settings.network).await?;
        let asked = self.asked(url, posting_url, terms, idempotency)?;
        check_payable_outputs(&asked.plan.outputs, &policy)?;
        Ok(asked)
    }

    /// The payment that terms ask for, if the wallet may make it.
    fn asked(
        &self,
        url: &Url,
        posting_url: Url,
        received: ReceivedTerms,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<Asked, Error> {
        let terms = &received.terms;
        let now = self.now();
        let expires_at = terms.expires_at.unwrap_or_else(|| now.after(DEFAULT_TERM));
        if expires_at <= now {
            return Err(Error::PayeeRefuses(format!("the payment terms expired at {expires_at}")));
        }
        let floor = self.fee_floor.load(Ordering::Relaxed);
        let quoted = match terms.fees {
            Some(fees) => per_kilobyte(fees.standard).max(per_kilobyte(fees.data)),
            // If the payee states no fee, we pay the rate that we ask from our payers.
            None => self.settings.fee_rate.min(self.settings.max_fee_rate),
        };
        let fee_rate = quoted.max(floor);
        let limit = self.settings.max_fee_rate;
        if fee_rate > limit {
            return Err(Error::FeeTooHigh { asked: fee_rate, limit });
        }
        let purpose = OutgoingPurpose::Url(url.to_string());
        let plan = Plan::new(purpose, terms_outputs(&received), fee_rate);
        check_limit(plan.spending.needed(1), Some(self.settings.pay_limit))?;
        let prefers_short = terms.wants_ancestry;
        let plan = Plan { prefers_short, expires_at: Some(expires_at), idempotency, ..plan };
        Ok(Asked { plan, terms: received, posting_url, expires_at })
    }
}

/// The outputs that terms ask for.
pub(super) fn terms_outputs(received: &ReceivedTerms) -> Vec<TxOut> {
    let destinations = received.terms.destinations.iter();
    destinations
        .map(|destination| TxOut {
            satoshis: destination.satoshis,
            locking_script: destination.script.clone(),
        })
        .collect()
}

/// A fee rate in satoshis per 1000 bytes, rounded up.
fn per_kilobyte(rate: FeeRate) -> u64 {
    let satoshis = u128::from(rate.satoshis) * 1000;
    u64::try_from(satoshis.div_ceil(u128::from(rate.bytes.max(1)))).unwrap_or(u64::MAX)
}

impl From<TermsError> for Error {
    fn from(error: TermsError) -> Self {
        match error {
            TermsError::Malformed(_) => Self::PayeeNonsense(error.to_string()),
            error => Self::PayeeRefuses(error.to_string()),
        }
    }
}
