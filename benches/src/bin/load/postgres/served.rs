use std::thread;
use std::time::Duration;

use bsv_tests::{Server, Site, openapi, site::copy_dir};
use serde_json::json;

use super::bare::BareInserts;
use super::warm_server;
use crate::Rounds;
use crate::report::Report;
use crate::wallet::{CREATORS, create};

/// Measures creating through HTTP, at one server and at two servers of one wallet.
pub(super) fn measure(rounds: Rounds, report: &mut Report) {
    let database = warm_server();
    let url = database.fresh_url();
    let first_site = site(&url);
    let first = start(&first_site);
    let second_site = site(&url);
    // An operator copies the seed to the other machine.
    let [from, to] = [&first_site, &second_site].map(|site| site.network_dir().join("keystore"));
    copy_dir(&from, &to);
    let second = start(&second_site);
    let mut bare = BareInserts::new(&database);
    let duration = Duration::from_secs_f64(rounds.seconds);
    for round in 1..=rounds.rounds {
        eprintln!("round {round} of {}, through HTTP", rounds.rounds);
        let bare = bare.rate(duration);
        let one = create_at([&first], duration);
        let two = create_at([&first, &second], duration);
        for (what, rate) in [("one server", one), ("two servers", two)] {
            report.figure(format!("64 creating at {what}: per second"), rate);
            report.figure(format!("64 creating at {what}: times bare INSERTs"), rate / bare);
        }
    }
}

fn site(url: &str) -> Site {
    let mut site = Site::with(json!({
        "minerid": { "enabled": false },
        "wallet": { "store": { "url": url } },
    }));
    site.keep_on_disk();
    site.set_env("BSV_LOG", "error");
    site
}

/// Starts a server. Its answers are not compared with the OpenAPI file, since that would take time.
fn start(site: &Site) -> Server {
    let server = site.server();
    openapi::forget(server.wallet().address());
    server
}

/// Creates invoices at servers, over 64 connections together, and answers how many per second.
fn create_at<const N: usize>(servers: [&Server; N], duration: Duration) -> f64 {
    let connections = CREATORS / N;
    thread::scope(|scope| {
        let create = |server: &Server| {
            let address = server.wallet().address().to_owned();
            scope.spawn(move || create(&address, connections, duration).rate)
        };
        servers.map(create).map(|rate| rate.join().unwrap()).iter().sum()
    })
}
