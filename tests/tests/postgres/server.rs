//! The server with its wallet in a database.

use std::thread;
use std::time::{Duration, Instant};

use bsv_tests::faults::Fault;
use bsv_tests::{Client, Postgres, Site};
use serde_json::{Value, json};

use crate::postgres::SERVER;

const INVOICES: &str = "/api/v1/invoices";

pub(crate) fn site(url: &str) -> Site {
    let mut site = Site::with(json!({
        "minerid": { "enabled": false },
        "wallet": { "store": { "url": url } },
    }));
    site.set_env("BSV_LOG", "error");
    site
}

/// A site with the same seed, as its operator copies that to another machine.
pub(crate) fn second_site(first: &Site, url: &str) -> Site {
    let second = site(url);
    second.take_keystore_of(first);
    second
}

pub(crate) fn create_invoice(client: &Client) -> String {
    let reply = client.post(INVOICES, r#"{"satoshis":1000}"#);
    assert_eq!(reply.status, 201, "{}", reply.body);
    let invoice: Value = serde_json::from_str(&reply.body).unwrap();
    invoice["id"].as_str().unwrap().to_owned()
}

fn count_invoices(client: &Client) -> usize {
    let invoices: Value = serde_json::from_str(&client.get(INVOICES).body).unwrap();
    invoices.as_array().unwrap().len()
}

#[test]
fn a_wallet_lies_in_a_database_and_no_file() {
    let site = site(&SERVER.url("served"));
    let server = site.server();
    let id = create_invoice(server.wallet());
    assert_eq!(SERVER.query("SELECT count(*) FROM served.invoices"), "1");
    assert!(!site.network_dir().join("wallet.redb").exists());
    assert_eq!(server.wallet().get("/readyz").status, 200);
    server.kill();
    let server = site.server();
    assert_eq!(server.wallet().get(&format!("{INVOICES}/{id}")).status, 200);
    drop(server);
    let listed = site.cli_json(&["invoice", "list"]);
    assert_eq!(listed.as_array().unwrap().len(), 1, "the command line has the same store");
}

#[test]
fn two_servers_have_one_wallet() {
    let url = SERVER.url("shared");
    let first = site(&url);
    let server = first.server();
    let second = second_site(&first, &url);
    let servers = [server, second.server()];
    for server in &servers {
        create_invoice(server.wallet());
    }
    assert_eq!(servers.each_ref().map(|server| count_invoices(server.wallet())), [2, 2]);
}

/// A server that stood still for so long that another one has taken over what it did changes nothing any more, and ends.
#[test]
fn a_server_that_was_overtaken_changes_nothing() {
    let url = SERVER.url("overtaken");
    let first = site(&url);
    let server = first.server();
    create_invoice(server.wallet());
    let second = second_site(&first, &url);
    let successor = second.server();
    let process = rustix::process::Pid::from_raw(i32::try_from(server.id()).unwrap()).unwrap();
    rustix::process::kill_process(process, rustix::process::Signal::STOP).unwrap();
    while SERVER.query("SELECT count(*) FROM overtaken.processes") != "1" {
        thread::sleep(Duration::from_millis(100));
    }
    create_invoice(successor.wallet());
    rustix::process::kill_process(process, rustix::process::Signal::CONT).unwrap();
    let body = br#"{"satoshis":1000}"#;
    // It may have ended by then.
    if let Ok(refused) = server.wallet().try_request("POST", INVOICES, body) {
        assert_eq!(refused.status, 503, "{}", refused.body);
    }
    assert_eq!(server.wait(), 1);
    create_invoice(successor.wallet());
    assert_eq!(count_invoices(successor.wallet()), 3);
}

#[test]
fn a_server_outlives_its_database() {
    let mut database = Postgres::start();
    let site = site(&database.fresh_url());
    let server = site.server();
    let id = create_invoice(server.wallet());
    database.kill();
    let payments = server.payments();
    for refused in [
        server.wallet().post(INVOICES, r#"{"satoshis":1000}"#),
        server.wallet().get("/api/v1/balance"),
        server.wallet().get(&format!("{INVOICES}/{id}")),
        payments.get(&format!("/api/v1/payment/{id}")),
        payments.get(&format!("/pay/{id}")),
    ] {
        assert_eq!(refused.status, 503, "{}", refused.body);
        let problem: Value = serde_json::from_str(&refused.body).unwrap();
        assert_eq!(problem["code"], "store-away", "{problem}");
        assert!(!refused.body.contains("disk"), "{problem}");
    }
    let page = payments.send("GET", &format!("/pay/{id}"), &[("Accept", "text/html")], b"");
    assert_eq!((page.status, page.header("retry-after")), (503, Some("5")));
    assert!(page.body.contains("http-equiv=\"refresh\" content=\"5\""), "{}", page.body);
    for command in [&["wallet", "balance"][..], &["token", "create", "--scope", "wallet:read"]] {
        let done = site.cli(&[command, &["--json"]].concat());
        assert_eq!(done.code, 1);
        let error: Value = serde_json::from_str(&done.stderr).unwrap();
        assert_eq!(error["code"], "store-away", "{error}");
    }
    assert_eq!(server.wallet().get("/readyz").status, 503);
    database.launch();
    while server.wallet().get("/readyz").status != 200 {
        thread::sleep(Duration::from_millis(100));
    }
    create_invoice(server.wallet());
    assert_eq!(count_invoices(server.wallet()), 2);
}

#[test]
fn identities_are_ready_without_the_database_of_the_wallet() {
    let mut database = Postgres::start();
    let mut site = Site::with(json!({ "wallet": { "store": { "url": database.fresh_url() } } }));
    site.set_env("BSV_LOG", "off");
    let server = site.server();
    database.kill();
    let ready = server.wallet().get("/readyz");
    assert_eq!(ready.status, 503, "{}", ready.body);
    let ready = server.minerid().get("/readyz");
    assert_eq!(ready.status, 200, "{}", ready.body);
    assert!(ready.body.contains(r#""store":"writable""#), "{}", ready.body);
}

/// The disk of the database is full. Owners are told so, reading goes on, and what was acknowledged stays.
#[test]
fn a_full_disk_of_the_database_refuses_changes_and_loses_nothing() {
    let (database, faults) = Postgres::start_with_faults();
    let site = site(&database.fresh_url());
    let server = site.server();
    let first = create_invoice(server.wallet());
    faults.begin(Fault::FULL);
    let body = json!({ "satoshis": 1000, "description": "x".repeat(900) }).to_string();
    let mut acknowledged = 1;
    // The pages that the tables have take some more rows.
    let refused = loop {
        let reply = server.wallet().post(INVOICES, &body);
        if reply.status != 201 {
            break reply;
        }
        acknowledged += 1;
        assert!(acknowledged < 1000, "the disk is full");
    };
    assert_eq!(refused.status, 503, "{}", refused.body);
    let problem: Value = serde_json::from_str(&refused.body).unwrap();
    assert_eq!(problem["code"], "disk-full", "{problem}");
    assert_eq!(server.wallet().get(&format!("{INVOICES}/{first}")).status, 200);
    assert_eq!(count_invoices(server.wallet()), acknowledged);
    faults.end();
    let deadline = Instant::now() + Duration::from_secs(30);
    while server.wallet().post(INVOICES, &body).status != 201 {
        assert!(Instant::now() < deadline, "the disk has room again");
        thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(count_invoices(server.wallet()), acknowledged + 1);
}

#[test]
fn a_server_waits_for_a_database_that_is_about_to_start() {
    let mut database = Postgres::start();
    let site = site(&database.fresh_url());
    drop(site.server());
    database.kill();
    let launched = thread::spawn(move || {
        thread::sleep(Duration::from_millis(500));
        database.launch();
        database
    });
    create_invoice(site.server().wallet());
    drop(launched.join().unwrap());
}

#[test]
fn a_password_stands_in_a_file_and_not_in_the_url() {
    let site = site("postgresql://user:secret@localhost/db");
    let refused = site.try_server().err().unwrap();
    assert!(refused.stderr.contains("wallet.store.passwordFile"), "{}", refused.stderr);
    assert!(!refused.stderr.contains("secret"), "{}", refused.stderr);
}

/// A site whose wallet lies in the file.
pub(crate) fn file_site() -> Site {
    let mut site = site("");
    set_store(&mut site, None);
    site
}

/// Puts the wallet into the database of this URL, or into the file.
pub(crate) fn set_store(site: &mut Site, url: Option<&str>) {
    let mut wallet = json!({ "port": 0 });
    if let Some(url) = url {
        wallet["store"] = json!({ "url": url });
    }
    site.set("wallet", wallet);
}

#[test]
fn a_wallet_is_moved_to_a_database_and_back() {
    let url = SERVER.url("moved");
    let mut site = file_site();
    let server = site.server();
    let id = create_invoice(server.wallet());
    let held = site.cli(&["store", "move", "--yes", "--to", &url]);
    assert!(held.stderr.contains("nothing was changed"), "{}", held.stderr);
    server.kill();
    site.cli_ok(&["store", "move", "--yes", "--to", &url]);
    assert!(!site.network_dir().join("wallet.redb").exists());
    set_store(&mut site, Some(&url));
    let server = site.server();
    assert_eq!(server.wallet().get(&format!("{INVOICES}/{id}")).status, 200);
    create_invoice(server.wallet());
    server.kill();
    site.cli_ok(&["books", "verify"]);
    site.cli_ok(&["audit", "verify"]);
    site.cli_ok(&["store", "move", "--yes", "--to", "file"]);
    let refused = site.try_server().err().unwrap();
    assert!(refused.stderr.contains("is not a bsv-wallet store"), "{}", refused.stderr);
    set_store(&mut site, None);
    let server = site.server();
    assert_eq!(count_invoices(server.wallet()), 2);
    drop(server);
    site.cli_ok(&["books", "verify"]);
    site.cli_ok(&["audit", "verify"]);
}

#[test]
fn a_wallet_that_others_take_over_while_it_is_moved_stays_in_the_database() {
    let site = site(&SERVER.url("silent"));
    let server = site.server();
    create_invoice(server.wallet());
    assert_eq!(server.stop(), 0);
    // A process that opens the wallet is taken for dead at once.
    SERVER.query(
        "CREATE FUNCTION silent.take_over() RETURNS trigger LANGUAGE plpgsql AS \
         $$ BEGIN DELETE FROM silent.processes; RETURN NULL; END $$; \
         CREATE CONSTRAINT TRIGGER taken_over AFTER INSERT ON silent.processes \
         DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION silent.take_over()",
    );
    let refused = site.cli(&["store", "move", "--yes", "--to", "file"]);
    assert!(refused.stderr.contains("other servers have taken over"), "{}", refused.stderr);
    assert!(!site.network_dir().join("wallet.redb").exists());
    SERVER.query("DROP TRIGGER taken_over ON silent.processes");
    let server = site.server();
    assert_eq!(count_invoices(server.wallet()), 1);
}

#[test]
fn a_loss_is_accepted_by_hand() {
    let site = site(&SERVER.url("lost"));
    let server = site.server();
    create_invoice(server.wallet());
    server.kill();
    drop(site.server());
    SERVER.query("UPDATE lost.step SET writer = 'another'");
    let refused = site.try_server().err().unwrap();
    assert!(refused.stderr.contains("does not know step"), "{}", refused.stderr);
    site.cli_ok(&["store", "accept-loss", "--yes"]);
    drop(site.server());
}

/// The log may be long: each invoice that is marked has an entry.
#[test]
fn an_overview_reads_only_the_end_of_the_audit_log() {
    let site = site(&SERVER.url("long_log"));
    let _server = site.server();
    let add = |event: &str, count: u32| {
        SERVER.query(&format!(
            "INSERT INTO long_log.audit SELECT last + n, n, '{event}', '', previous \
             FROM (SELECT number AS last, previous FROM long_log.audit ORDER BY 1 DESC LIMIT 1) a, \
             generate_series(1, {count}) n"
        ));
    };
    add("backed-up", 1);
    add("token-made", 1500);
    assert_eq!(site.cli_json(&["status"])["lastBackup"]["at"], "1970-01-01T00:00:00.000001Z");
    // An entry that cannot be read.
    SERVER.query("UPDATE long_log.audit SET event = '\\xff' WHERE number = 1");
    add("backed-up", 2);
    assert_eq!(site.cli_json(&["status"])["lastBackup"]["at"], "1970-01-01T00:00:00.000002Z");
}
