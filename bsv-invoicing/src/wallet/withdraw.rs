//! Withdrawals: the wallet's owner sends money to an address or a script.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bsv_tx::Network;

use super::destination::Destination;
use super::sending::check_limit;
use super::sources::away;
use crate::error::Error;
use crate::ledger::queries::{GetWithdrawal, GetWithdrawalsBefore};
use crate::ledger::{
    EstimateWithdrawal, NewPayment, RecordWithdrawal, Reservation, ReserveWithdrawal,
};
use crate::model::coin::smallest_output;
use crate::model::fields::Members;
use crate::model::idempotency::IdempotencyKey;
use crate::model::invoice::{MAX_REFERENCE_LEN, MAX_SATOSHIS};
use crate::model::outgoing::OutgoingPurpose;
use crate::model::withdrawal::{Withdrawal, WithdrawalAmount, WithdrawalCost};
use crate::store::WalletStore;
use crate::wallet::Wallet;
use crate::wallet::claims::in_background;

/// A request to withdraw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WithdrawalDraft {
    to: Destination,
    amount: WithdrawalAmount,
    max_fee: Option<u64>,
    reference: Option<String>,
    /// Whether the caller only wants to know the cost.
    pub is_dry_run: bool,
}

impl WithdrawalDraft {
    /// Reads the body of `POST /api/v1/withdrawals` for a wallet on `network`.
    pub fn from_json(body: &[u8], network: Network) -> Result<Self, Error> {
        let mut members = Members::parse(body)?;
        let (address, script) = (members.text("address"), members.text("script"));
        let satoshis = members.integer("satoshis");
        let is_all = members.boolean("all").unwrap_or_default();
        let max_fee = members.integer("maxFee");
        let reference = members.text("reference");
        let is_dry_run = members.boolean("dryRun").unwrap_or_default();
        let mut errors = members.into_errors();
        if address.is_some() == script.is_some() && !errors.has("address") && !errors.has("script")
        {
            errors.add("address", "or script is required, and not both");
        }
        if satoshis.is_some() == is_all && !errors.has("satoshis") && !errors.has("all") {
            errors.add("satoshis", "or all is required, and not both");
        }
        if satoshis.is_some_and(|satoshis| !(1..=MAX_SATOSHIS).contains(&satoshis)) {
            errors.add("satoshis", format!("must be from 1 to {MAX_SATOSHIS}"));
        }
        let text = reference.as_deref().unwrap_or_default();
        errors.check_len("reference", text, MAX_REFERENCE_LEN);
        errors.into_result()?;
        let to = match (address, script) {
            (Some(address), _) => Destination::of_address(&address, network)
                .map_err(|error| error.of_field("address"))?,
            (None, script) => Destination::of_script(&script.unwrap_or_default())
                .map_err(|error| error.of_field("script"))?,
        };
        let amount = satoshis.map_or(WithdrawalAmount::All, WithdrawalAmount::Satoshis);
        Ok(Self { to, amount, max_fee, reference, is_dry_run })
    }
}

impl Wallet {
    /// Sends money to an address or a script. If the idempotency key is already known, this returns
    /// the withdrawal that was made first.
    ///
    /// The withdrawal goes on even if the caller stops waiting.
    pub async fn withdraw(
        self: &Arc<Self>,
        draft: WithdrawalDraft,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<Withdrawal, Error> {
        self.check_caught_up().await?;
        let Some(key) = &idempotency else {
            let wallet = Arc::clone(self);
            return in_background(async move { wallet.withdraw_alone(draft, None).await }).await;
        };
        let name = format!("withdrawal {}", key.key);
        self.alone(
            &name,
            move |wallet| async move { wallet.withdraw_alone(draft, idempotency).await },
        )
        .await
    }

    /// Calculates what [`withdraw`](Self::withdraw) would send and cost, for each transaction.
    pub async fn preview_withdrawal(
        &self,
        draft: WithdrawalDraft,
    ) -> Result<Vec<WithdrawalCost>, Error> {
        self.check_caught_up().await?;
        let reserve = self.withdrawal_to_reserve(&draft, None).await?;
        let costs = self.store.execute(EstimateWithdrawal(reserve)).await?;
        self.check_withdrawal(&draft, &costs)?;
        Ok(costs)
    }

    /// The withdrawal of this number.
    pub async fn withdrawal(&self, number: u64) -> Result<Withdrawal, Error> {
        self.store.get(GetWithdrawal(number)).await?.ok_or(Error::UnknownWithdrawal(number))
    }

    /// Up to `limit` withdrawals before the one of this number, the newest first.
    pub async fn withdrawals(&self, before: u64, limit: usize) -> Result<Vec<Withdrawal>, Error> {
        Ok(self.store.list(GetWithdrawalsBefore(before, limit)).await?)
    }

    async fn withdraw_alone(
        self: &Arc<Self>,
        draft: WithdrawalDraft,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<Withdrawal, Error> {
        let reserve = self.withdrawal_to_reserve(&draft, idempotency.clone()).await?;
        let claim = reserve.claim;
        let record =
            async |reserved| self.sign_and_record_withdrawal(draft, reserved, idempotency).await;
        let (withdrawal, is_new) = self.reserve_and_record(claim, reserve, record).await?;
        if !is_new {
            return Ok(withdrawal);
        }
        for payment in withdrawal.payments {
            self.send(payment).await?;
        }
        self.withdrawal(withdrawal.number).await
    }

    async fn withdrawal_to_reserve(
        &self,
        draft: &WithdrawalDraft,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<ReserveWithdrawal, Error> {
        let fee_rate = self.sending_fee_rate().await?;
        if let WithdrawalAmount::Satoshis(satoshis) = draft.amount {
            check_sent(satoshis, fee_rate)?;
        }
        let (amount, output_bytes) = (draft.amount, draft.to.output_bytes());
        let (claim, now) = (self.next_claim(), self.now());
        Ok(ReserveWithdrawal { amount, output_bytes, fee_rate, idempotency, claim, now })
    }

    fn check_withdrawal(
        &self,
        draft: &WithdrawalDraft,
        costs: &[WithdrawalCost],
    ) -> Result<(), Error> {
        let sum = |of: fn(&WithdrawalCost) -> u64| {
            costs.iter().map(of).fold(0, |sum: u64, part| sum.saturating_add(part))
        };
        let cost = sum(|cost| cost.satoshis.saturating_add(cost.fee));
        check_limit(cost, Some(self.settings.pay_limit))?;
        check_limit(sum(|cost| cost.fee), draft.max_fee)
    }

    async fn sign_and_record_withdrawal(
        &self,
        draft: WithdrawalDraft,
        reserved: Vec<(Reservation, WithdrawalCost)>,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<Withdrawal, Error> {
        let costs: Vec<_> = reserved.iter().map(|(_, cost)| *cost).collect();
        self.check_withdrawal(&draft, &costs)?;
        let mut payments = Vec::with_capacity(reserved.len());
        for (reservation, WithdrawalCost { satoshis, .. }) in reserved {
            let outputs = [draft.to.output(satoshis)];
            let transaction = self.sign(&outputs, &reservation.selection)?;
            // The command sets the number.
            let purpose = OutgoingPurpose::Withdrawal(0);
            let expires_at = None;
            payments.push(NewPayment { reservation, transaction, purpose, satoshis, expires_at });
        }
        let (to, reference) = (draft.to.text().to_owned(), draft.reference);
        let now = self.now();
        let record = RecordWithdrawal { payments, to, reference, idempotency, now };
        Ok(self.store.execute(record).await?)
    }

    /// The fee rate for payments that the owner sends, in satoshis per 1000 bytes: ours, or the
    /// node's if that is higher.
    pub(super) async fn sending_fee_rate(&self) -> Result<u64, Error> {
        let policy = self.sources()?.operating.policy().await.map_err(away)?;
        self.fee_floor.store(policy.mining_fee_rate, Ordering::Relaxed);
        let limit = self.settings.max_fee_rate;
        let asked = self.settings.fee_rate.min(limit).max(policy.mining_fee_rate);
        if asked > limit {
            return Err(Error::FeeTooHigh { asked, limit });
        }
        Ok(asked)
    }
}

/// Fails if spending this amount would cost more than it is worth.
pub(super) fn check_sent(satoshis: u64, fee_rate: u64) -> Result<(), Error> {
    let smallest = smallest_output(fee_rate);
    if satoshis < smallest { Err(Error::TooSmall { smallest }) } else { Ok(()) }
}
