//! The miner identity service under load.

mod comparison;
mod start;

use std::time::Duration;

use bsv_benches::{Table, verdict};
use bsv_tests::{Site, vectors};

use self::comparison::{Comparison, Measured};
use crate::Rounds;
use crate::bare::{BareServer, Work};

/// The length of a public key in hexadecimal digits.
const PUBLIC_KEY_LEN: usize = 66;

pub(crate) fn measure(arguments: &Rounds, only: &str) {
    let passphrase = "correct horse battery staple";
    let mut sealed = Site::new();
    sealed.set_env("BSV_KEYSTORE_PASSPHRASE", passphrase);
    let mut plain = Site::new();
    for site in [&mut plain, &mut sealed] {
        site.keep_on_disk();
        site.set_env("BSV_LOG", "error");
        let home = vectors::write_home(&vectors::minerid_0_2(), site.data_dir());
        site.cli_ok(&["importminerid", "--from", home.to_str().unwrap()]);
    }
    let mut starts = Table::new(["start", "median", "at most", ""]);
    let stretching = start::stretching(&sealed, passphrase);
    let name = "time, bare stretching of a passphrase";
    starts.row([name.to_owned(), format!("{stretching:.1} ms"), String::new(), String::new()]);
    start::measure("plain keystore", &plain, 0.0, &mut starts);
    start::measure("keystore with passphrase", &sealed, stretching, &mut starts);

    let server = plain.server();
    let constant = BareServer::start(Work::Constant, PUBLIC_KEY_LEN);
    let signature = BareServer::start(Work::Signature, 0);
    let mut comparisons = comparison::all(&server, &constant, &signature);
    comparisons.retain(|comparison| comparison.name.contains(only));
    for round in 1..=arguments.rounds {
        eprintln!("round {round} of {}", arguments.rounds);
        for comparison in &mut comparisons {
            comparison.measure(Duration::from_secs_f64(arguments.seconds));
        }
    }
    let mut rates = Table::new([
        "16 connections",
        "server/s",
        "bare/s",
        "ratio",
        "at least",
        "",
        "server cpu",
        "bare cpu",
    ]);
    for comparison in &comparisons {
        rates.row(row(comparison));
    }
    println!("\n{rates}\n{starts}");
}

fn row(comparison: &Comparison<'_>) -> [String; 8] {
    let Measured { server, bare, ratio } = comparison.measured();
    [
        comparison.name.to_owned(),
        format!("{:.0}", server.rate),
        format!("{:.0}", bare.rate),
        format!("{ratio:.3}"),
        comparison.bar.map(|bar| format!("{bar:.3}")).unwrap_or_default(),
        comparison.bar.map(|bar| verdict(ratio >= bar)).unwrap_or_default(),
        format!("{:.1} us", server.cpu),
        format!("{:.1} us", bare.cpu),
    ]
}
