//! Refunds: money that was paid to an invoice goes back.

use std::sync::Arc;

use super::destination::Destination;
use super::sending::{Plan, check_limit};
use super::withdraw::check_sent;
use crate::error::Error;
use crate::ledger::queries::GetRefundable;
use crate::ledger::{Refundable, Refusal};
use crate::model::fields::Members;
use crate::model::idempotency::IdempotencyKey;
use crate::model::outgoing::{OutgoingPayment, OutgoingPurpose};
use crate::store::WalletStore;
use crate::wallet::Wallet;

/// A request to refund.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RefundDraft {
    /// How much to refund. `None` stands for the surplus.
    satoshis: Option<u64>,
    /// The address, or the script in hex, that the refund goes to. `None` stands for the
    /// destination that the payer named.
    to: Option<String>,
    /// Whether everything that is not refunded yet goes back.
    is_full: bool,
    /// Whether the caller only wants to know the cost.
    pub is_dry_run: bool,
}

impl RefundDraft {
    /// Reads the body of `POST /api/v1/invoices/{id}/refund`.
    pub fn from_json(body: &[u8]) -> Result<Self, Error> {
        let mut members = Members::parse(body)?;
        let (satoshis, to) = (members.integer("satoshis"), members.text("to"));
        let [is_full, is_dry_run] =
            ["full", "dryRun"].map(|field| members.boolean(field).unwrap_or_default());
        let mut errors = members.into_errors();
        if satoshis.is_some() && is_full {
            errors.add("satoshis", "must not be set together with full");
        }
        errors.into_result()?;
        Ok(Self { satoshis, to, is_full, is_dry_run })
    }
}

/// What a refund would send, and what it would cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefundPreview {
    /// The address, or the script in hex, that the refund goes to.
    pub to: String,
    /// The amount that goes back, in satoshis.
    pub satoshis: u64,
    /// The fee, in satoshis.
    pub fee: u64,
}

impl Wallet {
    /// Refunds an invoice: the surplus, or what the draft says. If the idempotency key is already
    /// known, this returns the refund that was made first, unless that one is lost.
    ///
    /// The refund goes on even if the caller stops waiting.
    pub async fn refund(
        self: &Arc<Self>,
        invoice: &str,
        draft: RefundDraft,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<OutgoingPayment, Error> {
        let number = self.invoice_number(invoice).await?;
        self.check_caught_up().await?;
        let id = invoice.to_owned();
        self.alone(&format!("refund {number}"), move |wallet| async move {
            wallet.refund_alone(number, &id, draft, idempotency).await
        })
        .await
    }

    /// What [`refund`](Self::refund) would send and cost.
    pub async fn preview_refund(
        &self,
        invoice: &str,
        draft: &RefundDraft,
    ) -> Result<RefundPreview, Error> {
        let number = self.invoice_number(invoice).await?;
        self.check_caught_up().await?;
        let (to, plan) = self.plan_refund(number, invoice, draft).await?;
        let fee = self.estimate(&plan).await?;
        Ok(RefundPreview { to, satoshis: plan.spending.satoshis, fee })
    }

    async fn refund_alone(
        self: &Arc<Self>,
        number: u64,
        id: &str,
        draft: RefundDraft,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<OutgoingPayment, Error> {
        let purpose = OutgoingPurpose::Refund { invoice: number, to: String::new() };
        if let Some(payment) = self.payment_before(purpose, idempotency.clone()).await? {
            return self.go_on(payment).await;
        }
        let (_, plan) = self.plan_refund(number, id, &draft).await?;
        self.make(Plan { idempotency, ..plan }, Plan::reserve, async |_| Ok(None)).await
    }

    /// Decides the amount and the destination of a refund. Returns the destination, and the
    /// payment to it.
    async fn plan_refund(
        &self,
        number: u64,
        id: &str,
        draft: &RefundDraft,
    ) -> Result<(String, Plan), Error> {
        let refundable = self.store.get(GetRefundable(number, self.expiry_time())).await?;
        let fee_rate = self.sending_fee_rate().await?;
        let satoshis = amount(draft, &refundable).ok_or_else(|| nothing_left(id))?;
        check_sent(satoshis, fee_rate)?;
        if satoshis > refundable.left() {
            return Err(Refusal::RefundTooLarge { satoshis, left: refundable.left() }.into());
        }
        let to = self.refund_destination(draft, refundable)?;
        let (outputs, to) = (vec![to.output(satoshis)], to.text().to_owned());
        let purpose = OutgoingPurpose::Refund { invoice: number, to: to.clone() };
        let plan = Plan::new(purpose, outputs, fee_rate);
        check_limit(plan.spending.needed(1), Some(self.settings.pay_limit))?;
        Ok((to, plan))
    }

    fn refund_destination(
        &self,
        draft: &RefundDraft,
        refundable: Refundable,
    ) -> Result<Destination, Error> {
        let network = self.settings.network;
        if let Some(to) = &draft.to {
            return Destination::of_either(to, network).map_err(|error| error.of_field("to"));
        }
        // A payer may name a destination that this wallet cannot pay to, such as a handle.
        let agreed = refundable.to.and_then(|to| Destination::of_either(&to, network).ok());
        let is_any_named = refundable.is_any_named;
        agreed.ok_or(Error::RefundToNeeded { is_any_named })
    }
}

/// The amount that goes back. `None` if nothing is left.
fn amount(draft: &RefundDraft, refundable: &Refundable) -> Option<u64> {
    let asked = match draft.satoshis {
        Some(satoshis) => satoshis,
        None if draft.is_full => refundable.left(),
        None => refundable.surplus,
    };
    (asked > 0).then_some(asked)
}

fn nothing_left(id: &str) -> Error {
    Error::NothingToRefund(id.to_owned())
}
