//! How fast honest payers are answered while strangers attack the listener for payments, or make the wallet work.

mod attack;
mod flood;
mod payer;
mod processors;

use std::thread;
use std::time::Duration;

use bsv_benches::median;
use bsv_tests::Server;
use clap::Args;
use serde_json::json;

use self::attack::{Attack, Crowd, Tally};
use self::flood::Flood;
use self::payer::{PAYMENTS_PER_SECOND, Paid, pay};
use self::processors::Processors;
use crate::payments::{YesNode, fill};
use crate::report::{Bar, Report};

/// How strangers attack, and for how long.
#[derive(Clone, Debug, Args)]
pub(crate) struct Siege {
    /// How many times to measure each attack. Each flood comes once. Each time, payers are measured as long without it
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// For how many seconds to measure payers at a time
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=600))]
    seconds: u32,
    /// How many connections the attackers keep open, from 100 addresses
    #[arg(long, default_value_t = 5_000, value_parser = clap::value_parser!(u32).range(100..=15_000))]
    connections: u32,
    /// How many times per second the attackers connect at most, all together
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    connects: u32,
    /// Make only the attacks and floods whose names contain this text
    #[arg(long, default_value = "", value_name = "TEXT")]
    only: String,
}

/// How long attackers have to open their connections before payers are measured, in addition to the
/// time that their rate requires.
const OPENING: Duration = Duration::from_secs(2);
/// The pause between an attack and the next measurement.
const CALM: Duration = Duration::from_secs(3);

/// Makes the attacks and the floods, and prints what they cost.
pub(crate) fn measure(siege: &Siege) {
    processors::raise_descriptor_limit();
    let attacks: Vec<_> =
        Attack::ALL.into_iter().filter(|it| it.name().contains(&siege.only)).collect();
    let floods: Vec<_> =
        Flood::ALL.into_iter().filter(|it| it.name().contains(&siege.only)).collect();
    let mut report = Report::default();
    if !attacks.is_empty() {
        attack_listener(siege, &attacks, &mut report);
    }
    flood::measure(&floods, siege.seconds, &mut report);
    println!("\n{}", report.table());
}

/// Measures payers with and without each attack, and prints the medians over the rounds. A single
/// p99 depends much on what else the machine does. Therefore, each attack is compared with the
/// median of all measurements without an attack.
fn attack_listener(siege: &Siege, attacks: &[Attack], report: &mut Report) {
    let phases = 2 * attacks.len() as u32 * siege.rounds;
    let mut node = YesNode::start();
    node.settings["payments"] = json!({ "limitLoopback": true });
    let filled = fill(&node, 0, (phases * siege.seconds * PAYMENTS_PER_SECOND) as usize);
    let server = filled.site.server();
    let mut payments = filled.payments.into_iter();
    let mut undisturbed = Vec::new();
    let mut attacked = vec![Vec::new(); attacks.len()];
    for round in 1..=siege.rounds {
        for (attack, p99s) in attacks.iter().zip(&mut attacked) {
            eprintln!("round {round} of {}: {}", siege.rounds, attack.name());
            let mut paying = || {
                let count = (siege.seconds * PAYMENTS_PER_SECOND) as usize;
                pay(server.payments().address(), payments.by_ref().take(count).collect())
            };
            let quiet = paying();
            let crowd = Crowd::begin(
                *attack,
                server.payments().address(),
                siege.connections,
                siege.connects,
            );
            let opening = f64::from(siege.connections) / f64::from(siege.connects);
            thread::sleep(OPENING + Duration::from_secs_f64(opening));
            let (before, processors) = (crowd.tally(), Processors::begin(&server));
            let disturbed = paying();
            let (used, tally) = (processors.used(), crowd.tally().since(before));
            note(report, "undisturbed", &quiet);
            note(report, attack.name(), &disturbed);
            undisturbed.push(quiet.quantile(0.99));
            p99s.push(disturbed.quantile(0.99));
            eprintln!("{}", told(&tally, used));
            crowd.end();
            check_alive(&server);
            thread::sleep(CALM);
        }
    }
    let undisturbed = median(undisturbed);
    for (attack, p99s) in attacks.iter().zip(attacked) {
        let what = format!("{}: p99, times undisturbed", attack.name());
        report.compare(what, median(p99s) / undisturbed, Bar::AtMost(2.0));
    }
    println!(
        "\n{} connections from 100 addresses, which connect {} times per second at most",
        siege.connections, siege.connects
    );
}

fn note(report: &mut Report, name: &str, paid: &Paid) {
    report.figure(format!("{name}: p50 in ms"), paid.quantile(0.5));
    report.figure(format!("{name}: p99 in ms"), paid.quantile(0.99));
    let what = format!("{name}: failures of {}", paid.count());
    report.compare(what, f64::from(paid.failures), Bar::AtMost(0.0));
    let what = format!("{name}: kept connections that were closed");
    report.figure(what, f64::from(paid.reopened));
}

fn told(tally: &Tally, [server, load]: [f64; 2]) -> String {
    let Tally { open, connected, refused, closed, answered } = tally;
    format!(
        "  meanwhile attackers: {connected} connected, {refused} refused, {closed} closed by the server, \
         {answered} answered, {open} open at the end; processors: server {server:.2}, load {load:.2}"
    )
}

fn check_alive(server: &Server) {
    assert_eq!(server.wallet().get("/healthz").status, 200);
}
