//! Whether an invoice is paid: what it has received, and the owner's rules for that.

use minicbor::{Decode, Encode};

use crate::model::invoice::Invoice;
use crate::model::outgoing::OutgoingPayment;

/// An amount that counts, in satoshis, in three parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Counting {
    /// The part that has never been in a block of the main chain.
    #[n(0)]
    pub unconfirmed: u64,
    /// The part that was in a block, which has left the main chain.
    #[n(1)]
    pub unmined: u64,
    /// The part that is in blocks of the main chain.
    #[n(2)]
    pub mined: u64,
}

/// The payments of an invoice that count.
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
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
}

impl Counting {
    /// The sum of all parts.
    pub fn sum(self) -> u64 {
        self.outside_blocks().saturating_add(self.mined)
    }

    /// The sum of the parts that are in no block.
    pub fn outside_blocks(self) -> u64 {
        self.unconfirmed.saturating_add(self.unmined)
    }

    /// The same amount, where what was in a block counts as if it still were.
    fn once_mined(self) -> Self {
        Self { unmined: 0, mined: self.mined.saturating_add(self.unmined), ..self }
    }
}

impl Received {
    /// The sum that counts in the balance.
    pub fn sum(self) -> u64 {
        self.in_time.sum().saturating_add(self.late.sum())
    }

    /// The sum that is in no block.
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

    /// The part of `received` that counts towards an invoice of this amount.
    pub fn counting(&self, satoshis: u64, received: Received) -> u64 {
        let amount = |it: Counting| if self.needs_block(satoshis) { it.mined } else { it.sum() };
        let late = match self.late {
            LatePayments::Hold => 0,
            LatePayments::Accept => amount(received.late),
        };
        amount(received.in_time).saturating_add(late)
    }

    /// Whether an invoice of this amount that is paid stays paid. Payments that were in blocks count
    /// until they are lost. Otherwise a reorganisation would have the invoice paid twice.
    pub fn stays_paid(&self, satoshis: u64, received: Received) -> bool {
        let Received { in_time, late, .. } = received;
        let (in_time, late) = (in_time.once_mined(), late.once_mined());
        let received = Received { in_time, late, ..received };
        self.due(satoshis, received) == 0
    }

    /// Whether the payments first seen in time would pay an invoice of this amount if none had to be
    /// in a block. Its payer has then done everything, and only miners decide when it is paid.
    pub fn is_covered_in_time(&self, satoshis: u64, received: Received) -> bool {
        let in_time = Received { late: Counting::default(), ..received };
        self.in_any_place().due(satoshis, in_time) == 0
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

/// The details of an invoice's state. One word could not say "late and overpaid".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settlement {
    /// The invoice.
    pub invoice: Invoice,
    /// The sum of its payments that count in the balance, in satoshis.
    pub paid: u64,
    /// What is still due, in satoshis. It is 0 if the invoice is paid.
    pub due: u64,
    /// What was paid beyond the amount, in satoshis.
    pub overpaid: u64,
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

    const fn received(in_time: u64, mined: u64, late: u64) -> Received {
        Received {
            in_time: Counting { unconfirmed: in_time, unmined: 0, mined },
            late: Counting { unconfirmed: late, unmined: 0, mined: 0 },
            payments: 0,
            contested: 0,
            wishes: 0,
            changes: 0,
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
    fn only_what_came_in_time_holds_an_invoice_open() {
        let careful = PaymentRules { zero_conf_limit: Some(1000), ..PaymentRules::default() };
        assert!(careful.is_covered_in_time(2000, received(1500, 500, 0)));
        assert!(!careful.is_covered_in_time(2000, received(1500, 499, 0)));
        let accepting = PaymentRules { late: LatePayments::Accept, ..careful };
        assert!(!accepting.is_covered_in_time(2000, received(1500, 499, 5000)));
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
