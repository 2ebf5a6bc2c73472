//! The log of events on the command line.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use serde_json::Value;

use crate::events::{EVENTS, Shop, log};

#[test]
fn the_command_line_lists_events_and_follows_new_ones() {
    let shop = Shop::start();
    let count = shop.fill(3);
    let all = log(shop.client());
    let listed = |arguments: &[&str]| -> Vec<Value> {
        let arguments = [&["event", "list", "--json"], arguments].concat();
        let lines = shop.site.cli_ok(&arguments);
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    assert_eq!(listed(&[]), all);
    // They have the form of the API.
    let lines = shop.site.cli_ok(&["event", "list", "--json"]);
    assert!(shop.client().get(EVENTS).body.contains(lines.lines().next().unwrap()));
    assert_eq!(listed(&["--after", "2"]), all[2..]);
    assert_eq!(listed(&["--after", "latest"]), [] as [Value; 0]);
    let text = shop.site.cli_ok(&["event", "list"]);
    assert_eq!(text.lines().count(), count);
    let first = text.lines().last().unwrap();
    let id = all[0]["data"]["invoiceId"].as_str().unwrap();
    for part in ["1  2", "  invoice.created", "  reference order 0", &format!("  invoiceId {id}")] {
        assert!(first.contains(part), "{part} in {first}");
    }
    let in_order = shop.site.cli_ok(&["event", "list", "--after", "0"]);
    assert!(in_order.lines().map(str::trim).eq(text.lines().rev().map(str::trim)), "{text}");
    let ahead = shop.site.cli(&["event", "list", "--after", "999"]);
    assert_eq!(ahead.code, 1);
    assert!(ahead.stderr.contains("there is no event 999"), "{}", ahead.stderr);
    assert_eq!(shop.site.cli(&["event", "list", "--after", "-1"]).code, 2);

    let mut command =
        shop.site.cli_command(&["event", "list", "--after", "1", "--follow", "--json"]);
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut following = command.spawn().unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines();
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    for event in &all[1..] {
        assert_eq!(next(), *event);
    }
    for reference in ["one", "two"] {
        shop.create_invoice(reference);
        assert_eq!(next()["data"]["reference"], reference);
    }
    assert_eq!(shop.server.stop(), 0);
    assert_eq!(following.wait().unwrap().code(), Some(1));
    let mut said = String::new();
    following.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(said.contains("\"code\":\"server-stopped\""), "{said}");
}

#[test]
fn without_a_server_events_are_listed_but_not_followed() {
    let shop = Shop::start();
    let count = shop.fill(2);
    let Shop { site, server } = shop;
    assert_eq!(server.stop(), 0);
    assert_eq!(site.cli_ok(&["event", "list"]).lines().count(), count);
    let refused = site.cli(&["event", "list", "--follow"]);
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.contains("no server runs"), "{}", refused.stderr);
}
