//! The rules of money, compared with a simple model of what the network holds and what the wallet
//! was told. Random steps happen in random order.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

mod checks;
mod finding;
mod losing;
mod network;
mod offering;
mod paying;
mod regressions;
mod rows;
mod showing;
mod steps;
mod told;
mod words;
mod world;

use std::time::Instant;

use bsv_invoicing::invoices::PaymentRules;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::world::World;

#[test]
fn after_any_steps_the_books_agree_with_the_model() {
    let full = std::env::var_os("BSV_TEST_FULL").is_some_and(|value| value == "1");
    let full_cases = 100_000;
    let cases = if full { full_cases } else { 3_000 };
    eprintln!("sequences of events: {cases} of {full_cases} (BSV_TEST_FULL=1 runs all)");
    let begun = Instant::now();
    let config =
        Config { cases, failure_persistence: None, max_shrink_iters: 100_000, ..Config::default() };
    let limit = || prop::option::of(500_u64..6_000);
    let rules = (limit(), 1_u32..=3, prop::option::of(2_000_u64..20_000));
    let steps = prop::collection::vec(steps::step(), 1..=80);
    TestRunner::new(config)
        .run(&(rules, any::<bool>(), steps), |(rules, has_services, steps)| {
            let (zero_conf_limit, mined_blocks, exposure_limit) = rules;
            let rules = PaymentRules {
                zero_conf_limit,
                mined_blocks,
                exposure_limit,
                ..PaymentRules::default()
            };
            let mut world = World::new(rules, has_services);
            for step in steps {
                world.take(step);
            }
            Ok(())
        })
        .unwrap();
    eprintln!("in {:?}", begun.elapsed());
}
