//! Shows that the tests keep the OpenAPI files true. It removes each status, header, content type
//! and member of a closed schema from the files in turn, and compares the rest with the exchanges
//! of a test run. If no exchange misses a removed part, it prints the part and exits with code 1,
//! unless `tests/src/openapi/unmissed.txt` gives the reason.
//!
//! ```text
//! BSV_TEST_EXCHANGES=/tmp/exchanges cargo test --workspace
//! cargo run -p bsv-tests --bin openapi-mutations /tmp/exchanges
//! ```

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::ExitCode;

use bsv_tests::openapi::{Description, Exchange, LISTENERS, survivors};

/// The parts that no exchange misses, with reasons.
const UNMISSED: &str = include_str!("../openapi/unmissed.txt");

fn main() -> ExitCode {
    let Some(path) = std::env::args_os().nth(1) else {
        eprintln!(
            "usage: openapi-mutations FILE, which a test run with BSV_TEST_EXCHANGES=FILE has written"
        );
        return ExitCode::from(2);
    };
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) => {
            eprintln!("{}: {error}", path.display());
            return ExitCode::from(2);
        }
    };
    let lines: BTreeSet<String> =
        BufReader::new(file).lines().map(|line| line.expect("a recording is text")).collect();
    let exchanges: Vec<_> = lines.iter().map(|line| Exchange::from_line(line)).collect();
    let mut is_all_missed = true;
    for listener in LISTENERS {
        let description = Description::of(listener);
        let of_listener = exchanges.iter().filter(|exchange| exchange.listener == listener);
        let of_listener: Vec<_> = of_listener.cloned().collect();
        let undescribed: Vec<_> = of_listener
            .iter()
            .filter_map(|exchange| Some((exchange, description.check(exchange).err()?)))
            .collect();
        for (exchange, error) in &undescribed {
            let Exchange { method, target, reply, .. } = exchange;
            println!("{listener}.json does not describe {method} {target}: {error}\n  {reply:?}");
        }
        if !undescribed.is_empty() {
            is_all_missed = false;
            continue;
        }
        let (mut survivors, tried) = survivors(description, &of_listener);
        survivors.retain(|survivor| {
            let line = format!("{listener}.json {survivor}");
            UNMISSED.lines().all(|known| known != line)
        });
        println!(
            "{listener}.json: of {tried} things taken out, {} are missed by none of {} exchanges",
            survivors.len(),
            of_listener.len()
        );
        for survivor in &survivors {
            println!("  {survivor}");
        }
        is_all_missed &= survivors.is_empty();
    }
    if is_all_missed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
