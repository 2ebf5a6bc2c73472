//! Sequences that the rules have got wrong, as they were found and shrunk.

use crate::steps::{Input, Parents, Showing, Step};
use crate::world::World;

/// In the mempool, at a sufficient fee.
const SHOWN: Showing = Showing {
    is_fee_sufficient: true,
    is_mined: false,
    may_lose_blocks: false,
    are_blocks_told: true,
    parents: Parents::First,
};

/// A payment of the first two invoices.
const PAYS_TWO: Step = Step::Offer {
    invoice: 0,
    input: Input::Fresh,
    more: 0,
    also: Some(1),
    is_joint: true,
    is_known: false,
};

fn run(steps: &[Step]) {
    let mut world = World::default();
    steps.iter().for_each(|step| world.take(*step));
}

/// What was offered kept from being offered only what pays the invoice that it came for: of the other
/// invoices that it pays, a second payment could be offered at once.
#[test]
fn what_pays_two_invoices_is_offered_for_both() {
    run(&[
        Step::CreateInvoice { satoshis: 1000, is_short: false },
        Step::Fund { satoshis: 1000, showing: Showing { is_fee_sufficient: false, ..SHOWN } },
        PAYS_TWO,
    ]);
}

/// What was lost and came again for the second invoice that it pays was in flight for ever.
#[test]
fn what_pays_two_invoices_can_come_again_for_the_second() {
    run(&[
        Step::CreateInvoice { satoshis: 1000, is_short: false },
        Step::CreateInvoice { satoshis: 1000, is_short: false },
        PAYS_TWO,
        Step::Refuse(0),
        Step::OfferAgain { payment: 0, invoice: 1, is_known: false },
        Step::Refuse(0),
    ]);
}

/// Coins that were reserved twice for payments to one URL made two payments that could both be mined.
#[test]
fn of_two_reservations_for_a_url_one_is_recorded() {
    run(&[
        Step::Fund { satoshis: 1329, showing: SHOWN },
        Step::Fund { satoshis: 2577, showing: SHOWN },
        Step::Reserve { url: 0, satoshis: 1000, fee_rate: 0 },
        Step::Pay { url: 0, satoshis: 1000, fee_rate: 0 },
        Step::Record { reservation: 0, to_invoice: None },
    ]);
}

/// An attempt that descends from what is lost was taken for one that cannot be mined. But the network may
/// still show both, unless the chain contradicts them.
#[test]
fn an_attempt_that_spends_what_is_lost_may_still_be_mined() {
    run(&[
        Step::Recover { spends: None, to_invoice: None, satoshis: 2921, is_mined: false },
        Step::Drop(0),
        Step::Pay { url: 0, satoshis: 1000, fee_rate: 0 },
        Step::Invalidate(0),
        Step::Recover { spends: None, to_invoice: None, satoshis: 3908, is_mined: false },
        Step::Pay { url: 0, satoshis: 1000, fee_rate: 0 },
    ]);
}

/// What was seen once, and refused when it was offered again, was taken for displaced by the chain, so that a
/// payment that spends it was taken for one that cannot be mined.
#[test]
fn what_the_network_refuses_again_may_still_be_mined() {
    run(&[
        Step::Fund { satoshis: 1438, showing: SHOWN },
        Step::Fund { satoshis: 1173, showing: SHOWN },
        Step::CreateInvoice { satoshis: 1438, is_short: false },
        Step::Offer {
            invoice: 0,
            input: Input::Chained(0),
            more: 1134,
            also: Some(5858),
            is_joint: true,
            is_known: true,
        },
        Step::Pay { url: 3749, satoshis: 1000, fee_rate: 0 },
        Step::Show { transaction: 26254, showing: SHOWN },
        Step::Pay { url: 22192, satoshis: 1429, fee_rate: 50 },
        Step::ShowStrangers {
            transaction: 8300,
            showing: Showing { is_fee_sufficient: false, ..SHOWN },
        },
        Step::Invalidate(13632),
        Step::OfferAgain { payment: 4124, invoice: 4621, is_known: false },
        Step::Refuse(19718),
        Step::Pay { url: 10750, satoshis: 1000, fee_rate: 0 },
    ]);
}
