//! When an invoice is paid: what was received towards it, and what its owner's rules make of that.

use crate::model::invoice::Invoice;
use crate::model::outgoing::OutgoingPayment;

/// An amount that counts, in satoshis: what is in the mempool, and what is in blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counting {
    /// What is in no block.
    pub unconfirmed: u64,
    /// What is in blocks of the main chain.
    pub mined: u64,
}

/// What counts of what was paid to an invoice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// What was first seen before the invoice expired.
    pub in_time: Counting,
    /// What was first seen afterwards.
    pub late: Counting,
}

/// What becomes of what was first seen after an invoice had expired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LatePayments {
    /// The invoice stays expired, until its owner marks it as paid.
    #[default]
    Hold,
    /// It counts as if it had come in time.
    Accept,
}

/// What decides whether an invoice is paid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PaymentRules {
    /// How much may be missing, in satoshis; of an invoice never more than 1 % of it.
    pub underpaid_tolerance: u64,
    /// What becomes of late payments.
    pub late: LatePayments,
    /// Of invoices above this amount, in satoshis, only what is in blocks counts.
    pub zero_conf_limit: Option<u64>,
}

impl Counting {
    /// All of it.
    pub fn sum(self) -> u64 {
        self.unconfirmed.saturating_add(self.mined)
    }
}

impl Received {
    /// All that counts in the balance.
    pub fn sum(self) -> u64 {
        self.in_time.sum().saturating_add(self.late.sum())
    }
}

impl PaymentRules {
    /// The same rules, by which what is in the mempool counts to all invoices.
    pub fn in_any_place(self) -> Self {
        Self { zero_conf_limit: None, ..self }
    }

    /// Whether only what is in blocks counts to an invoice of this amount.
    pub fn needs_block(&self, satoshis: u64) -> bool {
        self.zero_conf_limit.is_some_and(|limit| satoshis > limit)
    }

    /// What counts to an invoice of this amount, of what was received.
    pub fn counting(&self, satoshis: u64, received: Received) -> u64 {
        let amount = |it: Counting| if self.needs_block(satoshis) { it.mined } else { it.sum() };
        let late = match self.late {
            LatePayments::Hold => 0,
            LatePayments::Accept => amount(received.late),
        };
        amount(received.in_time).saturating_add(late)
    }

    /// What an invoice of this amount still asks for. It is 0 from the tolerated amount on.
    pub fn due(&self, satoshis: u64, received: Received) -> u64 {
        let tolerated = self.underpaid_tolerance.min(satoshis / 100);
        let counting = self.counting(satoshis, received);
        match counting >= (satoshis - tolerated).max(1) {
            true => 0,
            false => satoshis.max(1) - counting,
        }
    }
}

/// Where an invoice stands, in numbers: no word alone could say "late, and too much".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settlement {
    /// The invoice.
    pub invoice: Invoice,
    /// All that was received and counts in the balance, in satoshis.
    pub paid: u64,
    /// What is still asked for, in satoshis; nothing of an invoice that is paid.
    pub due: u64,
    /// What was received beyond the amount, in satoshis.
    pub overpaid: u64,
    /// Whether some of it was first seen after the invoice had expired.
    pub late: bool,
    /// How many blocks confirm the receipt that has fewest; none without receipts.
    pub confirmations: Option<u32>,
    /// Whether the network has shown some of it, and does not show it any more.
    pub contested: bool,
    /// Whether its owner has marked it as paid.
    pub marked: bool,
    /// What has gone back, or is on its way, the first one first.
    pub refunds: Vec<OutgoingPayment>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn received(in_time: u64, mined: u64, late: u64) -> Received {
        Received {
            in_time: Counting { unconfirmed: in_time, mined },
            late: Counting { unconfirmed: late, mined: 0 },
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
}
