//! Sequences of steps that once broke the rules, as proptest found and shrank them.

use bsv_invoicing::invoices::PaymentRules;
use bsv_invoicing::ledger::{Evidence, Sighting};

use crate::steps::{Input, Parents, Payee, Showing, Step};
use crate::world::World;

/// In the mempool, at a sufficient fee.
const SHOWN: Showing = Showing {
    is_fee_sufficient: true,
    is_mined: false,
    may_lose_blocks: false,
    are_blocks_told: true,
    parents: Parents::First,
    evidence: Evidence::Judged,
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
    run_with_limit(None, steps);
}

/// The same with the limit above which only payments in blocks count.
fn run_with_limit(limit: Option<u64>, steps: &[Step]) {
    let rules = PaymentRules { zero_conf_limit: limit, ..PaymentRules::default() };
    let mut world = World::new(rules, false);
    steps.iter().for_each(|step| world.take(step.clone()));
}

/// While a payment of two invoices is offered, no other payment of either invoice may be offered.
#[test]
fn a_payment_of_two_invoices_is_in_flight_for_both() {
    run(&[
        Step::CreateInvoice { satoshis: 1000, is_short: false },
        Step::Fund { satoshis: 1000, showing: Showing { is_fee_sufficient: false, ..SHOWN } },
        PAYS_TWO,
    ]);
}

/// A lost payment of two invoices may come again for the second one. It must not stay in flight for
/// ever.
#[test]
fn a_lost_payment_of_two_invoices_can_come_again_for_the_second() {
    run(&[
        Step::CreateInvoice { satoshis: 1000, is_short: false },
        Step::CreateInvoice { satoshis: 1000, is_short: false },
        PAYS_TWO,
        Step::Refuse(0),
        Step::OfferAgain { payment: 0, invoice: 1, is_known: false },
        Step::Refuse(0),
    ]);
}

/// Two reservations for payments to one URL must not lead to two payments that can both be mined.
#[test]
fn only_one_of_two_reservations_for_a_url_is_recorded() {
    run(&[
        Step::Fund { satoshis: 1329, showing: SHOWN },
        Step::Fund { satoshis: 2577, showing: SHOWN },
        Step::Reserve { url: 0, satoshis: 1000, fee_rate: 0 },
        Step::Pay { url: 0, satoshis: 1000, fee_rate: 0 },
        Step::Record { reservation: 0, to_invoice: None },
    ]);
}

/// An attempt that descends from a lost transaction may still be mined. The network may show both,
/// unless the chain contradicts them.
#[test]
fn an_attempt_that_spends_a_lost_transaction_may_still_be_mined() {
    run(&[
        Step::Recover { spends: None, to_invoice: None, satoshis: 2921, is_mined: false },
        Step::Drop(0),
        Step::Pay { url: 0, satoshis: 1000, fee_rate: 0 },
        Step::Invalidate(0),
        Step::Recover { spends: None, to_invoice: None, satoshis: 3908, is_mined: false },
        Step::Pay { url: 0, satoshis: 1000, fee_rate: 0 },
    ]);
}

/// A seen transaction that the network refuses when it is offered again is not displaced by the
/// chain. A payment that spends it may still be mined.
#[test]
fn a_seen_transaction_that_is_refused_later_may_still_be_mined() {
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

/// A refund spends the unconfirmed payments of its invoice, also one that is worth less than the
/// fee for spending it. Without this one, the coins would be enough.
#[test]
fn a_refund_needs_coins_for_the_fee_of_a_small_payment() {
    let showing = Showing { are_blocks_told: false, ..SHOWN };
    run(&[
        Step::Fund { satoshis: 109, showing },
        Step::Fund {
            satoshis: 163,
            showing: Showing { is_fee_sufficient: false, is_mined: true, ..showing },
        },
        Step::Offer {
            invoice: 25392,
            input: Input::Fresh,
            more: -35,
            also: None,
            is_joint: false,
            is_known: true,
        },
        Step::Show { transaction: 5936, showing },
        Step::Refund { invoice: 29838, satoshis: 99, fee_rate: 500 },
    ]);
}

/// An invoice whose time is over and that only waits for a block takes no second payment.
#[test]
fn an_invoice_that_only_waits_for_a_block_takes_no_payment_after_its_time() {
    let offer = Step::Offer {
        invoice: 0,
        input: Input::Fresh,
        more: 0,
        also: None,
        is_joint: false,
        is_known: false,
    };
    run_with_limit(
        Some(500),
        &[
            Step::CreateInvoice { satoshis: 1000, is_short: true },
            offer.clone(),
            Step::Show { transaction: 0, showing: SHOWN },
            Step::Sweep { hours: 2 },
            offer,
        ],
    );
}

/// A reward whose block has just returned excludes no failed attempt: nobody can spend it yet.
#[test]
fn a_new_attempt_spends_no_reward_before_it_is_mature() {
    let showing = Showing { is_fee_sufficient: false, are_blocks_told: false, ..SHOWN };
    let offer = Step::Offer {
        invoice: 0,
        input: Input::Fresh,
        more: 0,
        also: None,
        is_joint: false,
        is_known: true,
    };
    let recover = |spends, to_invoice, satoshis| Step::Recover {
        spends,
        to_invoice,
        satoshis,
        is_mined: false,
    };
    let pay = |url, fee_rate| Step::Pay { url, satoshis: 1000, fee_rate };
    run(&[
        Step::CreateInvoice { satoshis: 1000, is_short: false },
        recover(None, Some(0), 10_174),
        pay(3793, 0),
        offer,
        Step::Cancel(0),
        Step::ShowStrangers { transaction: 0, showing },
        Step::Grow { blocks: 0, with_payments: true },
        pay(1757, 0),
        Step::FindReward(vec![(Payee::Invoice(0), 1000); 3]),
        recover(Some(20_647), None, 2_493),
        recover(None, None, 1_000),
        pay(23_892, 50),
        Step::ShowRival {
            transaction: 37_828,
            rival: 0,
            showing: Showing { may_lose_blocks: true, ..SHOWN },
        },
        Step::ReturnBlock(0),
        Step::Reserve { url: 28_659, satoshis: 1000, fee_rate: 0 },
    ]);
}

/// A word of services, and a fee that suffices.
const WORD: Sighting = Sighting { is_fee_sufficient: true, evidence: Evidence::Word };

/// The same with services that tell of transactions.
fn run_with_services(rules: PaymentRules, steps: &[Step]) {
    let mut world = World::new(rules, true);
    steps.iter().for_each(|step| world.take(step.clone()));
}

/// A cancellation waits by the word of services. If a node then shows the payment, the cancellation is
/// lost, although the payment has held the coin all the time.
#[test]
fn a_payment_that_a_node_shows_ends_a_cancellation_that_services_have_taken() {
    run_with_services(
        PaymentRules::default(),
        &[
            Step::Recover { spends: None, to_invoice: None, satoshis: 4888, is_mined: false },
            Step::Pay { url: 0, satoshis: 1000, fee_rate: 0 },
            Step::Cancel(0),
            Step::Say { transaction: 2, sighting: WORD },
            Step::Show { transaction: 1, showing: SHOWN },
        ],
    );
}

/// The bytes of a long payment that another one has displaced are dropped. If services tell of it after
/// all, its coin is still known.
#[test]
fn a_transaction_without_its_bytes_has_a_rival_for_a_coin_of_the_wallet() {
    let showing = Showing { is_mined: true, ..SHOWN };
    let by_word = Showing { may_lose_blocks: true, evidence: Evidence::Word, ..SHOWN };
    run_with_services(
        PaymentRules::default(),
        &[
            Step::Fund { satoshis: 1000, showing },
            Step::Refund { invoice: 0, satoshis: 1, fee_rate: 0 },
            Step::Recover { spends: Some(0), to_invoice: None, satoshis: 1000, is_mined: true },
            Step::Pay { url: 0, satoshis: 1, fee_rate: 0 },
            Step::Unfollow(0),
            Step::ShowRival { transaction: 2630, rival: 0, showing: by_word },
            Step::Show { transaction: 16470, showing: SHOWN },
        ],
    );
}

/// No mempool holds the coinbase transaction of a lost block, whatever services say.
#[test]
fn services_cannot_show_a_coinbase_transaction() {
    run_with_services(
        PaymentRules::default(),
        &[
            Step::CreateInvoice { satoshis: 1000, is_short: false },
            Step::FindReward(vec![(Payee::Invoice(0), 5000)]),
            Step::LoseBlocks { count: 1, to_mempool: false, is_told: true },
            Step::Say { transaction: 0, sighting: WORD },
        ],
    );
}

/// While a reorganisation is followed, a rival of a payment in a block changes nothing that has counted.
#[test]
fn a_rival_of_a_mined_payment_does_not_change_its_depth() {
    let rules =
        PaymentRules { zero_conf_limit: Some(500), mined_blocks: 2, ..PaymentRules::default() };
    run_with_services(
        rules,
        &[
            Step::Fund { satoshis: 1000, showing: SHOWN },
            Step::Grow { blocks: 0, with_payments: false },
            Step::TellBlocks,
            Step::SayRival(0),
        ],
    );
}
