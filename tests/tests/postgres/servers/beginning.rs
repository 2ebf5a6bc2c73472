//! Servers that start at the same moment, on a database that has no wallet yet.

use std::fs;
use std::thread;

use bsv_tests::{Node, Server, Site, Till};
use serde_json::json;

use super::{PRICE, check_books};
use crate::postgres::SERVER;

/// Starts both at the same moment, and waits until both listen.
fn start_at_once(tills: &[Till; 2]) {
    thread::scope(|scope| {
        for till in tills {
            scope.spawn(|| till.start());
        }
    });
}

#[test]
fn two_servers_with_one_seed_make_one_wallet_and_both_serve_it() {
    let node = Node::start();
    let first = Till::on(&node, &SERVER.url("seed_only"));
    first.start();
    for round in 0..3 {
        let schema = format!("begun_by_two_{round}");
        let tills = [(); 2].map(|()| Till::on(&node, &SERVER.url(&schema)));
        for till in &tills {
            till.site.take_keystore_of(&first.site);
            // It says that the seed is in use with another store.
            fs::remove_file(till.site.network_dir().join("keystore/wallet.adopted.key")).unwrap();
        }
        start_at_once(&tills);
        let ids = tills.each_ref().map(|till| till.invoice(PRICE));
        for till in &tills {
            assert_eq!(ids.each_ref().map(|id| till.state(id)), ["pending", "pending"]);
        }
        let rows = |table: &str| SERVER.query(&format!("SELECT count(*) FROM {schema}.{table}"));
        assert_eq!(["meta", "processes"].map(rows), ["1", "2"]);
        tills.iter().for_each(check_books);
        assert_eq!(tills.each_ref().map(Till::stop), [0, 0]);
        assert_eq!(rows("processes"), "0");
        start_at_once(&tills);
        assert_eq!(rows("processes"), "2");
    }
}

/// Each makes a seed of its own. The wallet has one, and the other server is told what it lacks.
#[test]
fn of_two_servers_without_a_seed_one_serves_and_the_other_says_what_it_lacks() {
    let url = SERVER.url("two_seeds");
    let sites = [(); 2].map(|()| {
        let mut site = Site::with(json!({
            "minerid": { "enabled": false }, "wallet": { "store": { "url": url } },
        }));
        site.set_env("BSV_LOG", "error");
        site
    });
    let started = thread::scope(|scope| {
        let started = sites.each_ref().map(|site| scope.spawn(|| site.try_server()));
        started.map(|it| it.join().unwrap())
    });
    let (serving, refused): (Vec<_>, Vec<_>) = started.into_iter().partition(Result::is_ok);
    let [server]: [Server; 1] =
        serving.into_iter().flatten().collect::<Vec<_>>().try_into().expect("one serves");
    let refused = refused.into_iter().find_map(Result::err).expect("the other one is refused");
    assert!(refused.stderr.contains("seed"), "{}", refused.stderr);
    assert_eq!(server.wallet().post("/api/v1/invoices", r#"{"satoshis":1}"#).status, 201);
    assert_eq!(SERVER.query("SELECT count(*) FROM two_seeds.meta"), "1");
}
