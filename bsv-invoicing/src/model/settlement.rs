//! Whether an invoice is paid: what it has received, and the owner's rules for that.

use std::fmt;
use std::time::Duration;

use minicbor::{Decode, Encode};

use crate::model::coin::is_worth_sending;
use crate::model::invoice::{Invoice, InvoiceState};
use crate::model::outgoing::OutgoingPayment;
use crate::model::time::Timestamp;
use crate::model::transaction::WaitReason;

/// An amount that counts, in satoshis, in three parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Counting {
    /// The part that has never been in a block of the main chain.
    #[n(0)]
    pub unconfirmed: u64,
    /// The part that was in a block, which has left the main chain, or whose block is not yet deep
    /// enough for the invoice: see [`mined_blocks`](PaymentRules::mined_blocks).
    #[n(1)]
    pub unmined: u64,
    /// The part that is in blocks of the main chain, deep enough.
    #[n(2)]
    pub mined: u64,
}

/// The payments of an invoice that count, and its refunds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Received {
    /// Those first seen before the invoice expired.
    #[n(0)]
    pub in_time: Counting,
    /// Those first seen after the invoice expired.
    #[n(1)]
    pub late: Counting,
    /// How many transactions make these payments.
    #[n(2)]
    pub payments: u64,
    /// How many of them the network no longer shows.
    #[n(3)]
    pub contested: u64,
    /// How many of them have payers who say where refunds go.
    #[n(4)]
    pub wishes: u64,
    /// How many of those want refunds elsewhere than the one before. It is 0 if they all agree.
    #[n(5)]
    pub changes: u64,
    /// What was refunded or is being refunded, in satoshis.
    #[n(6)]
    pub refunded: u64,
    /// The part of `refunded` that no longer counts towards the invoice: everything if the invoice is
    /// not paid, or else what was refunded before it was paid.
    #[n(7)]
    pub refunded_before: u64,
    /// The number of the last payment by the wallet when the invoice was last paid. Refunds up to it
    /// were made before. Their times do not tell, because any number of things happen at one time.
    #[cbor(n(8), default)]
    pub last_payment_before: u64,
    /// The part of `refunded` that was more than the amount of the invoice when it was sent back. Only
    /// refunds of the paid invoice have such a part.
    #[cbor(n(9), default)]
    pub surplus_refunded: u64,
    /// What was received and what was refunded when the owner last marked the invoice as paid. If it was
    /// not paid before that, what would be surplus is not counted as received.
    #[n(10)]
    pub accepted: Option<(u64, u64)>,
}

/// How a payment counts whose block is not deep enough for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum Shallowness {
    /// It is received, and does not pay the invoice, which is above
    /// [`zero_conf_limit`](PaymentRules::zero_conf_limit).
    #[n(0)]
    Counted,
    /// It does not count at all: only services tell of it, and it did not count before its block.
    #[n(1)]
    Uncounted,
}

/// What happens to payments that are first seen after their invoice has expired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum LatePayments {
    /// The invoice stays expired, until its owner marks it as paid.
    #[default]
    #[n(0)]
    Hold,
    /// They count like payments that come in time.
    #[n(1)]
    Accept,
}

/// The rules that decide whether an invoice is paid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct PaymentRules {
    /// How much may be missing, in satoshis. Never more than 1 % of the invoice may be missing.
    #[n(0)]
    pub underpaid_tolerance: u64,
    /// What happens to late payments.
    #[n(1)]
    pub late: LatePayments,
    /// For invoices above this amount, in satoshis, only payments in blocks count.
    #[n(2)]
    pub zero_conf_limit: Option<u64>,
    /// How many confirmations such a payment needs before it counts, and one that only services tell of
    /// and that has not counted before its block. The first one is its block, so this is at least 1.
    #[n(3)]
    pub mined_blocks: u32,
    /// The highest sum of receipts that count by the word of services alone, in satoshis. A payment that
    /// would lift the sum above it counts once it is in a block. `None` if there is no limit.
    #[n(4)]
    pub exposure_limit: Option<u64>,
}

impl Default for PaymentRules {
    fn default() -> Self {
        Self {
            underpaid_tolerance: 0,
            late: LatePayments::default(),
            zero_conf_limit: None,
            mined_blocks: 1,
            exposure_limit: None,
        }
    }
}

impl Counting {
    /// The sum of all parts.
    pub fn sum(self) -> u64 {
        self.outside_blocks().saturating_add(self.mined)
    }

    /// The sum of the parts that are in no block, or not deep enough.
    pub fn outside_blocks(self) -> u64 {
        self.unconfirmed.saturating_add(self.unmined)
    }

    /// The same amount, where what was in any block counts as if it were in a deep one.
    fn once_mined(self) -> Self {
        Self { unmined: 0, mined: self.mined.saturating_add(self.unmined), ..self }
    }
}

impl Received {
    /// The sum that counts in the balance.
    pub fn sum(self) -> u64 {
        self.in_time.sum().saturating_add(self.late.sum())
    }

    /// The sum that is not refunded.
    pub fn left(&self) -> u64 {
        self.sum().saturating_sub(self.refunded)
    }

    /// Whether the owner has said that the invoice may stay as it is.
    pub fn is_accepted(&self) -> bool {
        self.accepted == Some((self.sum(), self.refunded))
    }

    /// What is missing because a payment was lost after a refund, or after the owner marked the invoice as
    /// paid: refunds were more than was received, or what was surplus of a paid invoice of
    /// this amount is a part of the amount by now, or less was received than the owner has accepted.
    pub fn lost(&self, paid_amount: Option<u64>) -> u64 {
        let sent = match paid_amount {
            Some(satoshis) if self.surplus_refunded > 0 => {
                satoshis.saturating_add(self.surplus_refunded)
            }
            _ => 0,
        };
        let accepted = self.accepted.map_or(0, |(received, _)| received);
        self.refunded.max(sent).max(accepted).saturating_sub(self.sum())
    }

    /// The same payments, where what was in any block counts as if it were in a deep one.
    fn once_mined(self) -> Self {
        Self { in_time: self.in_time.once_mined(), late: self.late.once_mined(), ..self }
    }

    /// The sum that is in no block, or not deep enough.
    pub fn outside_blocks(self) -> u64 {
        self.in_time.outside_blocks().saturating_add(self.late.outside_blocks())
    }
}

impl PaymentRules {
    /// The same rules, except that unconfirmed payments count for all invoices.
    pub fn in_any_place(self) -> Self {
        Self { zero_conf_limit: None, ..self }
    }

    /// Whether only payments in blocks count for an invoice of this amount.
    pub fn needs_block(&self, satoshis: u64) -> bool {
        self.zero_conf_limit.is_some_and(|limit| satoshis > limit)
    }

    /// The part of `received` that counts towards an invoice of this amount, if it is already paid
    /// or not. What has paid an invoice in blocks counts until it is lost.
    pub fn counted(&self, satoshis: u64, received: Received, is_paid: bool) -> u64 {
        self.counting(satoshis, if is_paid { received.once_mined() } else { received })
    }

    /// The part of `received` that counts towards an invoice of this amount, less what was refunded
    /// before the invoice was paid. Nobody knows which part a refund has sent back, so it is taken off
    /// what counts: money that may not count yet never makes up for it.
    pub fn counting(&self, satoshis: u64, received: Received) -> u64 {
        let amount = |it: Counting| if self.needs_block(satoshis) { it.mined } else { it.sum() };
        let late = match self.late {
            LatePayments::Hold => 0,
            LatePayments::Accept => amount(received.late),
        };
        amount(received.in_time).saturating_add(late).saturating_sub(received.refunded_before)
    }

    /// Whether an invoice of this amount that is paid stays paid. Payments that were in blocks count
    /// until they are lost. Otherwise a reorganisation would have the invoice paid twice.
    pub fn stays_paid(&self, satoshis: u64, received: Received) -> bool {
        self.due(satoshis, received.once_mined()) == 0
    }

    /// Whether the payments first seen in time would pay an invoice of this amount if none had to be
    /// in a block. Its payer has then done everything, and only miners decide when it is paid.
    pub fn is_covered_in_time(&self, satoshis: u64, received: Received) -> bool {
        let rules = Self { late: LatePayments::Hold, ..self.in_any_place() };
        rules.due(satoshis, received) == 0
    }

    /// What is still due for an invoice of this amount. It is 0 as soon as only the tolerance is
    /// missing.
    pub fn due(&self, satoshis: u64, received: Received) -> u64 {
        let tolerated = self.underpaid_tolerance.min(satoshis / 100);
        let counting = self.counting(satoshis, received);
        match counting >= (satoshis - tolerated).max(1) {
            true => 0,
            false => satoshis.max(1) - counting,
        }
    }
}

/// What is stored about the payments and refunds of an invoice.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StoredSums {
    pub(crate) received: Received,
    /// The payments that the network has and that do not count before they are in a block.
    pub(crate) waiting: u64,
    /// Why they wait.
    pub(crate) waits_for: WaitReason,
    /// For how many blocks the network has not shown a payment that is worth sending, if there is one.
    pub(crate) contested_for: Option<u32>,
    /// Whether only one service shows the tip, so that nothing begins to count by its depth.
    pub(crate) is_tip_unconfirmed: bool,
}

/// The sums of an invoice at a time, in satoshis. All answers that tell sums are made of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvoiceSums {
    /// What was received: the payments that count in the balance.
    pub received: u64,
    /// What the network has and what counts once it is in a block. It is 0 if the invoice is paid.
    pub waiting: u64,
    /// Why that waits.
    pub waits_for: WaitReason,
    /// The part of `received` that counts towards the invoice: not what came late, and above
    /// [`zero_conf_limit`](PaymentRules::zero_conf_limit) only what is deep enough in blocks.
    pub counted: u64,
    /// What was refunded or is being refunded.
    pub refunded: u64,
    /// What is still due. It is 0 if the invoice is paid.
    pub due: u64,
    /// What the payer must still send. It is 0 if the invoice takes no new payment: it is not pending,
    /// its time is over, or everything was sent and only blocks are missing.
    pub to_send: u64,
    /// What a refund sends back if it names no amount: what was received beyond the amount, or
    /// everything if the invoice has expired, less what was refunded.
    pub surplus: u64,
    /// The part of `received` that is in no block, or not deep enough for the invoice.
    pub outside_blocks: u64,
    /// What its owner does next.
    pub next: NextStep,
}

/// What the owner of an invoice does next about it. Amounts are in satoshis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextStep {
    /// Nothing was sent yet.
    AwaitPayment,
    /// A part was sent, and this much is missing.
    AwaitRest(u64),
    /// Everything was sent, and counts once it has this many confirmations.
    AwaitBlock(u32),
    /// What was sent counts once its block is deep enough, for this reason.
    AwaitUncounted(WaitReason),
    /// Everything was sent, and is in blocks that only one service shows.
    AwaitSecondSource,
    /// The network does not show a payment: one that it has shown before, or the one that was offered
    /// before the time of the invoice was over. The wallet sends it again.
    AwaitNetwork,
    /// The network has not shown a payment for this many blocks.
    DecideContested(u32),
    /// The invoice has expired, and this much is here that came late or together with late money.
    DecideLate(u64),
    /// The invoice has expired, and this much, which is too little, is here.
    DecideUnderpaid(u64),
    /// Only a block decides whether the invoice is paid, none has come for [`UNMINED_PERIOD`], and this
    /// much is here.
    DecideUnmined(u64),
    /// The invoice is paid, and this much is here beyond its amount.
    RefundSurplus(u64),
    /// This much is missing, because a payment was lost after a refund, or after the owner marked the
    /// invoice as paid.
    DecideLost(u64),
    /// The invoice is paid.
    NothingPaid,
    /// The invoice has expired, and holds no money.
    NothingExpired,
}

/// For how many blocks the network must not have shown a payment before the owner has to decide.
pub const CONTESTED_BLOCKS: u32 = 6;

/// How long an invoice may wait for a block that decides about it before the owner has to decide.
pub const UNMINED_PERIOD: Duration = Duration::from_secs(24 * 60 * 60);

impl NextStep {
    fn of(
        invoice: &Invoice,
        sums: &InvoiceSums,
        (of, missing, mined_blocks): (StoredSums, u64, u32),
        now: Timestamp,
    ) -> Self {
        let StoredSums { received, waiting, waits_for, contested_for, is_tip_unconfirmed } = of;
        let is_in_block = received.in_time.unmined > 0 || received.late.unmined > 0;
        let left = received.left();
        let lost = received.lost(invoice.is_paid().then_some(invoice.satoshis));
        if is_worth_sending(lost) && !received.is_accepted() {
            return Self::DecideLost(lost);
        }
        if let Some(blocks) = contested_for {
            return match blocks {
                CONTESTED_BLOCKS.. => Self::DecideContested(blocks),
                _ => Self::AwaitNetwork,
            };
        }
        match invoice.state(now) {
            InvoiceState::Paid if is_worth_sending(sums.surplus) && !received.is_accepted() => {
                Self::RefundSurplus(sums.surplus)
            }
            InvoiceState::Paid => Self::NothingPaid,
            _ if missing == 0 && (sums.outside_blocks > 0 || waiting > 0) => {
                let since = invoice.awaits_block_since.unwrap_or(invoice.expires_at);
                match since.after(UNMINED_PERIOD) <= now {
                    true if is_worth_sending(left) => Self::DecideUnmined(left),
                    _ if waiting > 0 => Self::AwaitUncounted(waits_for),
                    _ if is_tip_unconfirmed && is_in_block => Self::AwaitSecondSource,
                    _ => Self::AwaitBlock(mined_blocks),
                }
            }
            InvoiceState::Expired if is_worth_sending(left) => match received.late.sum() {
                0 => Self::DecideUnderpaid(left),
                _ => Self::DecideLate(left),
            },
            InvoiceState::Expired if waiting > 0 => Self::AwaitUncounted(waits_for),
            InvoiceState::Expired => Self::NothingExpired,
            InvoiceState::Pending if sums.to_send == 0 => Self::AwaitNetwork,
            InvoiceState::Pending if received.sum() > 0 || waiting > 0 => {
                Self::AwaitRest(sums.to_send)
            }
            InvoiceState::Pending => Self::AwaitPayment,
        }
    }

    /// Whether the owner has to decide something, so that time alone settles nothing.
    pub fn needs_decision(self) -> bool {
        matches!(
            self,
            Self::DecideContested(_)
                | Self::DecideLate(_)
                | Self::DecideUnderpaid(_)
                | Self::DecideUnmined(_)
                | Self::RefundSurplus(_)
                | Self::DecideLost(_)
        )
    }
}

impl fmt::Display for NextStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AwaitPayment => f.write_str("wait for the payment"),
            Self::AwaitRest(due) => write!(f, "wait for the rest: {due} satoshis"),
            Self::AwaitBlock(1) => f.write_str(
                "wait for a block: everything was sent, and counts once it is in a block",
            ),
            Self::AwaitBlock(mined_blocks) => write!(
                f,
                "wait for blocks: everything was sent, and counts once it has {mined_blocks} confirmations"
            ),
            Self::AwaitUncounted(reason) => {
                let reason = match reason {
                    WaitReason::LowFee => "what was sent has a low fee, and",
                    WaitReason::Exposure => {
                        "the sum that counts without a block is reached, and what was sent"
                    }
                    WaitReason::UnknownCoins => {
                        "it is not known where the coins that were sent come from, and the payment"
                    }
                    WaitReason::Rival => {
                        "another transaction spends the same coins, and what was sent"
                    }
                };
                write!(f, "wait for a block: {reason} counts once its block is deep enough")
            }
            Self::AwaitSecondSource => f.write_str(
                "wait: everything was sent and is in a block, and counts once a second service shows the newest \
                 block",
            ),
            Self::AwaitNetwork => f.write_str(
                "wait: the network does not show a payment at the moment, and it is sent again",
            ),
            Self::DecideContested(blocks) => write!(
                f,
                "decide: the network has not shown a payment for {blocks} blocks; do not deliver, \
                 and ask the payer"
            ),
            Self::DecideLate(left) => write!(
                f,
                "decide: {left} satoshis are here, and some came late; mark the invoice as paid, \
                 or refund them"
            ),
            Self::DecideUnderpaid(left) => write!(
                f,
                "decide: only {left} satoshis are here; refund them, or mark the invoice as paid"
            ),
            Self::DecideUnmined(left) => write!(
                f,
                "decide: {left} satoshis are here, and no block has come for a day that would make \
                 them count; mark the invoice as paid, or refund them"
            ),
            Self::RefundSurplus(surplus) => {
                write!(
                    f,
                    "refund the surplus of {surplus} satoshis, or mark the invoice as paid to keep it"
                )
            }
            Self::DecideLost(lost) => write!(
                f,
                "decide: {lost} satoshis are missing, because a payment came undone after a refund, or \
                 after the invoice was marked; ask the payer for them, or close the case: mark the \
                 invoice if it is paid, and else delete it"
            ),
            Self::NothingPaid => f.write_str("nothing: the invoice is paid"),
            Self::NothingExpired => f.write_str("nothing: the invoice has expired"),
        }
    }
}

impl PaymentRules {
    /// The sums of an invoice at `now`.
    pub(crate) fn sums(&self, invoice: &Invoice, of: StoredSums, now: Timestamp) -> InvoiceSums {
        let StoredSums { received, waiting, waits_for, .. } = of;
        let (satoshis, state) = (invoice.satoshis, invoice.state(now));
        let is_paid = state == InvoiceState::Paid;
        let mut sent = received;
        sent.in_time.unconfirmed = sent.in_time.unconfirmed.saturating_add(waiting);
        let missing = self.in_any_place().due(satoshis, sent);
        let mut sums = InvoiceSums {
            received: received.sum(),
            waiting,
            waits_for,
            counted: self.counted(satoshis, received, is_paid),
            refunded: received.refunded,
            due: if is_paid { 0 } else { self.due(satoshis, received) },
            to_send: match invoice.state_for_new_payment(now) {
                InvoiceState::Pending => missing,
                InvoiceState::Paid | InvoiceState::Expired => 0,
            },
            surplus: invoice.surplus(received.sum(), received.refunded, now),
            outside_blocks: received.outside_blocks(),
            next: NextStep::NothingPaid,
        };
        let mined_blocks = if self.needs_block(satoshis) { self.mined_blocks } else { 1 };
        sums.next = NextStep::of(invoice, &sums, (of, missing, mined_blocks), now);
        sums
    }
}

/// The details of an invoice's state. One word could not say "late and overpaid".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settlement {
    /// The invoice.
    pub invoice: Invoice,
    /// Its sums.
    pub sums: InvoiceSums,
    /// Whether a payment was first seen after the invoice had expired.
    pub late: bool,
    /// The lowest number of confirmations among its receipts. `None` if it has no receipts.
    pub confirmations: Option<u32>,
    /// Whether the network has shown a payment before and does not show it now.
    pub contested: bool,
    /// Whether its owner has marked it as paid.
    pub marked: bool,
    /// The refunds that were made or are under way, in the order of their beginning.
    pub refunds: Vec<OutgoingPayment>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::coin::smallest_output;
    use crate::model::invoice::InvoiceDraft;

    fn received(in_time: u64, mined: u64, late: u64) -> Received {
        Received {
            in_time: Counting { unconfirmed: in_time, unmined: 0, mined },
            late: Counting { unconfirmed: late, unmined: 0, mined: 0 },
            ..Received::default()
        }
    }

    #[test]
    fn what_is_due_follows_the_rules() {
        let strict = PaymentRules::default();
        assert_eq!(strict.due(1000, received(600, 399, 0)), 1);
        assert_eq!(strict.due(1000, received(600, 400, 0)), 0);
        assert_eq!(strict.due(1000, received(0, 0, 1000)), 1000);
        let accepting = PaymentRules { late: LatePayments::Accept, ..strict };
        assert_eq!(accepting.due(1000, received(0, 500, 500)), 0);
        let tolerant = PaymentRules { underpaid_tolerance: 50, ..strict };
        assert_eq!(tolerant.due(1000, received(990, 0, 0)), 0);
        assert_eq!(tolerant.due(1000, received(989, 0, 0)), 11);
        assert_eq!(tolerant.due(10_000, received(9950, 0, 0)), 0);
        assert_eq!(tolerant.due(10_000, received(9949, 0, 0)), 51);
        assert_eq!(tolerant.due(1, received(0, 0, 0)), 1);
        let careful = PaymentRules { zero_conf_limit: Some(1000), ..strict };
        assert_eq!(careful.due(1000, received(1000, 0, 0)), 0);
        assert_eq!(careful.due(1001, received(1001, 0, 0)), 1001);
        assert_eq!(careful.due(1001, received(1, 1001, 0)), 0);
    }

    #[test]
    fn what_was_refunded_before_pays_nothing() {
        let accepting = PaymentRules { late: LatePayments::Accept, ..PaymentRules::default() };
        let refunded =
            |refunded_before, received: Received| Received { refunded_before, ..received };
        assert_eq!(accepting.due(5000, refunded(4000, received(4000, 0, 1000))), 4000);
        assert_eq!(accepting.due(5000, refunded(4000, received(4000, 0, 5000))), 0);
        // What does not count never makes up for a refund.
        let strict = PaymentRules::default();
        assert_eq!(strict.due(5000, refunded(1000, received(4000, 0, 1000))), 2000);
        let careful = PaymentRules { zero_conf_limit: Some(1000), ..strict };
        assert_eq!(careful.due(5000, refunded(5000, received(5000, 5000, 0))), 5000);
        assert_eq!(careful.due(5000, refunded(3000, received(0, 8000, 0))), 0);
        assert!(!careful.is_covered_in_time(5000, refunded(3000, received(4000, 3000, 0))));
    }

    #[test]
    fn only_what_came_in_time_holds_an_invoice_open() {
        let careful = PaymentRules { zero_conf_limit: Some(1000), ..PaymentRules::default() };
        assert!(careful.is_covered_in_time(2000, received(1500, 500, 0)));
        assert!(!careful.is_covered_in_time(2000, received(1500, 499, 0)));
        let accepting = PaymentRules { late: LatePayments::Accept, ..careful };
        assert!(!accepting.is_covered_in_time(2000, received(1500, 499, 5000)));
    }

    /// What is next for an invoice of 2000 satoshis, above the limit, some seconds after it has expired.
    fn next(received: Received, waiting: u64, seconds: u64) -> NextStep {
        let careful = PaymentRules { zero_conf_limit: Some(1000), ..PaymentRules::default() };
        let created_at = Timestamp::from_micros(0);
        let draft = InvoiceDraft { satoshis: 2000, ..InvoiceDraft::default() };
        let id = "CEl4aRNK3xMZ".parse().unwrap();
        let invoice = Invoice::new((1, id), draft, created_at, Duration::from_secs(1));
        let expires_at = invoice.expires_at;
        let invoice = Invoice { expired_at: Some(expires_at), ..invoice };
        let of = StoredSums {
            received,
            waiting,
            waits_for: WaitReason::LowFee,
            contested_for: (received.contested > 0).then_some(0),
            is_tip_unconfirmed: false,
        };
        careful.sums(&invoice, of, expires_at.after(Duration::from_secs(seconds))).next
    }

    #[test]
    fn an_owner_waits_where_the_network_decides_but_not_for_ever() {
        let day = UNMINED_PERIOD.as_secs();
        let contested = Received { contested: 1, ..received(500, 0, 0) };
        assert_eq!(next(contested, 0, 5), NextStep::AwaitNetwork);
        assert_eq!(next(received(500, 0, 0), 0, 5), NextStep::DecideUnderpaid(500));
        assert_eq!(next(received(500, 0, 2), 0, 5), NextStep::DecideLate(502));
        assert_eq!(next(received(2000, 0, 0), 0, day - 1), NextStep::AwaitBlock(1));
        assert_eq!(next(received(2000, 0, 0), 0, day), NextStep::DecideUnmined(2000));
        assert_eq!(
            next(received(500, 0, 0), 1500, day - 1),
            NextStep::AwaitUncounted(WaitReason::LowFee)
        );
        assert_eq!(next(received(500, 0, 0), 1500, day), NextStep::DecideUnmined(500));
        assert_eq!(
            next(received(0, 0, 0), 2000, day),
            NextStep::AwaitUncounted(WaitReason::LowFee),
            "nothing to refund"
        );
    }

    #[test]
    fn what_is_too_little_to_send_back_is_no_case() {
        let smallest = smallest_output(0);
        assert_eq!(next(received(0, 0, smallest), 0, 5), NextStep::DecideLate(smallest));
        assert_eq!(next(received(0, 0, smallest - 1), 0, 5), NextStep::NothingExpired);
    }

    #[test]
    fn what_is_lost_after_a_refund_is_known() {
        let refunded = |refunded, surplus_refunded, sum| Received {
            refunded,
            surplus_refunded,
            ..received(0, sum, 0)
        };
        // Surplus went back, and then a payment was lost, and with it a part of the amount.
        assert_eq!(refunded(1000, 1000, 2000).lost(Some(1000)), 0);
        assert_eq!(refunded(1000, 1000, 1600).lost(Some(1000)), 400);
        // An owner who gives back the amount, too, loses nothing by that.
        assert_eq!(refunded(2000, 1000, 2000).lost(Some(1000)), 0);
        assert_eq!(refunded(1000, 0, 1000).lost(Some(1000)), 0);
        assert_eq!(refunded(1000, 0, 0).lost(None), 1000);
        let accepted = Received { accepted: Some((900, 0)), ..received(0, 900, 0) };
        assert_eq!((accepted.lost(Some(1000)), accepted.is_accepted()), (0, true));
        let lost = Received { accepted: Some((900, 0)), ..received(0, 500, 0) };
        assert_eq!((lost.lost(Some(1000)), lost.is_accepted()), (400, false));
    }

    #[test]
    fn what_blocks_have_held_pays_no_invoice_and_keeps_one_paid() {
        let careful = PaymentRules { zero_conf_limit: Some(1000), ..PaymentRules::default() };
        let in_time = Counting { unconfirmed: 5000, unmined: 700, mined: 1300 };
        let received = Received { in_time, ..Received::default() };
        assert_eq!(careful.due(2000, received), 700);
        assert!(careful.stays_paid(2000, received) && !careful.stays_paid(2001, received));
    }
}
