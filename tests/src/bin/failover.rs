//! A demonstration: a wallet in PostgreSQL with a standby, which two servers serve. Customers trade
//! while servers and the primary are killed. In the end the books are compared with what was
//! acknowledged. The exit code is 1 if anything is missing.

#![allow(clippy::unwrap_used, reason = "what fails here fails the demonstration")]

use std::env;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};

use bsv_tests::trade::Told;
use bsv_tests::{Dice, Node, Postgres, Till, Trade, build, free_port};

const USAGE: &str = "usage: failover [--seconds N]";
/// How long the customers trade.
const SECONDS: u64 = 60;
/// How many payments customers can make in a second at most.
const PAYMENTS_PER_SECOND: u64 = 60;
/// How often the primary is killed while the customers trade.
const FAILOVERS: u64 = 2;

fn main() -> ExitCode {
    let Some(seconds) = seconds() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    println!(
        "Two servers on one wallet in PostgreSQL, while servers and the database are killed\n"
    );
    println!("building bsv-server and bsv-cli");
    build::server_program();
    let scene = Scene::set();
    println!("filling the customers' purse");
    let trade = Trade::begin(&scene.node, &scene.tills, seconds * PAYMENTS_PER_SECOND);
    println!("customers trade for {seconds} s\n");
    let mut chaos = Chaos::of(scene.databases, &scene.tills, &scene.node);
    trade.run(|| chaos.go_on_for(Duration::from_secs(seconds)));
    println!("\nmining what is not mined yet, and comparing the books");
    let mut missing = trade.settle();
    missing.extend(trade.differences());
    report(&trade.told(), &chaos, &missing)
}

/// The value of `--seconds`, unless the arguments are wrong.
fn seconds() -> Option<u64> {
    match &env::args().skip(1).collect::<Vec<_>>()[..] {
        [] => Some(SECONDS),
        [name, value] if name == "--seconds" => {
            value.parse().ok().filter(|seconds| (1..=3600).contains(seconds))
        }
        _ => None,
    }
}

/// All that runs.
struct Scene {
    node: Node,
    databases: [Postgres; 2],
    tills: [Till; 2],
}

impl Scene {
    fn set() -> Self {
        println!("fetching (once) and starting a Bitcoin SV node");
        let node = Node::start_with(&[&format!("zmqpubrawtx2=tcp://127.0.0.1:{}", free_port())]);
        node.mine(110);
        println!(
            "fetching (once) and starting PostgreSQL, and a standby that each commit waits for"
        );
        let primary = Postgres::start();
        let databases = [primary.standby(), primary];
        let [standby, primary] = &databases;
        let url = Postgres::url_of_either([primary, standby], "wallet");
        println!("starting two bsv-server with the wallet at\n  {url}");
        let tills = [(); 2].map(|()| Till::on(&node, &url));
        tills[0].start();
        tills[1].site.take_keystore_of(&tills[0].site);
        tills[1].start();
        Self { node, databases, tills }
    }
}

/// What happens to the servers and the databases.
struct Chaos<'a> {
    /// The standby, and the primary.
    databases: [Postgres; 2],
    tills: &'a [Till; 2],
    node: &'a Node,
    dice: Dice,
    begun: Instant,
    kills: u64,
    failovers: u64,
}

impl<'a> Chaos<'a> {
    fn of(databases: [Postgres; 2], tills: &'a [Till; 2], node: &'a Node) -> Self {
        let (dice, begun) = (Dice::new(seed()), Instant::now());
        Self { databases, tills, node, dice, begun, kills: 0, failovers: 0 }
    }

    fn go_on_for(&mut self, time: Duration) {
        self.begun = Instant::now();
        while self.begun.elapsed() < time {
            self.pause(500, 1_500);
            let due = (self.failovers + 1) * time.as_secs() / (FAILOVERS + 1);
            if self.failovers < FAILOVERS && self.begun.elapsed().as_secs() >= due {
                self.kill_primary();
            } else {
                self.kill_server();
            }
            self.node.mine(1);
        }
    }

    /// Kills one server or, less often, both.
    fn kill_server(&mut self) {
        let killed = match self.dice.roll(5) {
            0 => vec![0, 1],
            number => vec![number % 2],
        };
        for &which in &killed {
            self.tills[which].kill();
            self.kills += 1;
            self.say(&format!("server {} is killed", which + 1));
        }
        // The other server notices after about 5 s.
        self.pause(500, 8_000);
        for &which in &killed {
            self.tills[which].start();
            self.say(&format!("server {} is back", which + 1));
        }
    }

    /// Kills the primary and promotes the standby. The killed one becomes the new standby.
    fn kill_primary(&mut self) {
        self.databases.swap(0, 1);
        let [standby, primary] = &mut self.databases;
        standby.kill();
        self.failovers += 1;
        println!("{} the primary is killed", time_of(self.begun));
        primary.promote();
        println!("{} the standby is promoted", time_of(self.begun));
        sleep(Duration::from_secs(2));
        standby.follow(primary);
        println!("{} the killed one is back as the standby", time_of(self.begun));
    }

    fn pause(&mut self, least: u64, most: usize) {
        sleep(Duration::from_millis(least + self.dice.roll(most) as u64));
    }

    fn say(&self, what: &str) {
        println!("{} {what}", time_of(self.begun));
    }
}

fn time_of(begun: Instant) -> String {
    format!("{:5.1} s ", begun.elapsed().as_secs_f64())
}

fn seed() -> u64 {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).unwrap();
    u64::from_le_bytes(bytes)
}

fn report(told: &Told, chaos: &Chaos<'_>, missing: &[String]) -> ExitCode {
    let rows = [
        ("servers killed", chaos.kills),
        ("primaries killed, standbys promoted", chaos.failovers),
        ("invoices acknowledged", told.invoices.len() as u64),
        ("  payments of them acknowledged", told.sales.len() as u64),
        ("  payments of them without a message", told.silent_sales.len() as u64),
        ("payments by the wallet acknowledged", told.purchases.len() as u64),
        ("withdrawals acknowledged", told.withdrawals.len() as u64),
        ("lost, doubled or different", missing.len() as u64),
    ];
    println!();
    for (what, count) in rows {
        println!("{what:<40} {count:>8}");
    }
    if missing.is_empty() {
        println!("\nBoth servers tell all of it once; books verify and audit verify find nothing.");
        return ExitCode::SUCCESS;
    }
    println!();
    missing.iter().for_each(|it| println!("{it}"));
    ExitCode::FAILURE
}
