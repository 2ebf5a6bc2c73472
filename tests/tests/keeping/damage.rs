use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use bsv_tests::faults::{Fault, Faults};
use bsv_tests::{Client, Done, Reply, Server, Site, repetitions};
use serde_json::{Value, json};

use crate::keeping::scene::{begun_site, member, quickly_sealed_site};

/// One of four ways to damage a file, at a random place.
fn damage(contents: &[u8], way: usize, random: u64) -> Vec<u8> {
    let mut damaged = contents.to_vec();
    // redb's used pages are most of the time before this place.
    let used = contents.iter().rposition(|byte| *byte != 0).unwrap_or_default() + 1;
    let place = (random >> 8) as usize % used;
    match way % 4 {
        0 => damaged.truncate(place),
        1 => {
            let end = damaged.len().min(place + 512);
            damaged[place..end].fill(0);
        }
        _ => damaged[place] ^= 1 << (random >> 4 & 7),
    }
    damaged
}

/// Whether a command has reported damage. If not, it must have printed the same as before.
fn has_told(done: &Done, before: &str) -> bool {
    if done.code == 0 {
        assert_eq!(done.stdout, before);
        return false;
    }
    assert_eq!(done.code, 1, "{}{}", done.stdout, done.stderr);
    assert!(done.stderr.contains("bsv-cli: "), "{}", done.stderr);
    true
}

fn random() -> u64 {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).unwrap();
    u64::from_le_bytes(bytes)
}

/// Damages a file again and again, and runs the commands each time. Answers how often damage was
/// reported.
fn count_reports(site: &Site, path: &Path, commands: &[&[&str]]) -> usize {
    let count = repetitions("damaged stores", 400, 8);
    let right = fs::read(path).unwrap();
    let before: Vec<_> = commands.iter().map(|command| site.cli(command).stdout).collect();
    let mut told = 0;
    for number in 0..count {
        let damaged = damage(&right, number, random());
        for (command, before) in commands.iter().zip(&before) {
            fs::write(path, &damaged).unwrap();
            told += usize::from(has_told(&site.cli(command), before));
        }
    }
    fs::write(path, &right).unwrap();
    for (command, before) in commands.iter().zip(&before) {
        assert!(!has_told(&site.cli(command), before));
    }
    told
}

#[test]
fn a_damaged_store_of_the_wallet_never_answers_wrongly() {
    let site = begun_site();
    for number in 0..20 {
        let text = format!("number {number} with a description");
        site.cli_ok(&["invoice", "create", "--satoshis", "7", "--description", &text]);
    }
    let path = site.network_dir().join("wallet.redb");
    let commands: [&[&str]; 2] = [&["invoice", "list"], &["books", "verify"]];
    let told = count_reports(&site, &path, &commands);
    assert!(told > 0);
}

#[test]
fn a_damaged_store_of_identities_never_answers_wrongly() {
    let site = quickly_sealed_site(None);
    site.cli_ok(&["generateminerid", "--name", "pool"]);
    site.cli_ok(&["rotateminerid", "--name", "pool"]);
    let path = site.network_dir().join("minerid/minerid.redb");
    let told = count_reports(&site, &path, &[&["miner", "list"]]);
    assert!(told > 0);
}

/// Creates so many invoices that the store is too long for a check of its checksums when it is
/// opened. Gives the id of the last one.
fn fill_beyond_checks(wallet: &Client) -> String {
    let body = json!({ "satoshis": 7, "description": "x".repeat(1000) }).to_string();
    let headers = [("Content-Type", "application/json")];
    let create = || wallet.send("POST", "/api/v1/invoices", &headers, body.as_bytes());
    thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| (0..300).for_each(|_| assert_eq!(create().status, 201)));
        }
    });
    let last = json!({ "satoshis": 7, "description": "the last cup of coffee" }).to_string();
    member(&wallet.send("POST", "/api/v1/invoices", &headers, last.as_bytes()).body, "id")
}

/// Waits for a line of a log that holds this text.
fn wait_for_line(log: &Path, text: &str) -> String {
    let started = Instant::now();
    loop {
        let lines = fs::read_to_string(log).unwrap();
        if let Some(line) = lines.lines().find(|line| line.contains(text)) {
            return line.to_owned();
        }
        assert!(started.elapsed() < Duration::from_secs(30), "{lines}");
        thread::sleep(Duration::from_millis(50));
    }
}

fn readiness(listener: &Client) -> (u16, Value) {
    let reply = listener.get("/readyz");
    (reply.status, serde_json::from_str(&reply.body).unwrap())
}

fn assert_refused(reply: &Reply) {
    assert_eq!((reply.status, member(&reply.body, "code").as_str()), (503, "store-damaged"));
}

/// A long store is not read as a whole when it is opened, but a moment after the start.
#[test]
fn a_flipped_bit_in_a_long_store_is_found_by_a_server_that_runs() {
    let mut site = quickly_sealed_site(None);
    site.set_env("BSV_LOG", "info");
    let faults = Faults::install(&mut site);
    site.cli_ok(&["generateminerid", "--name", "pool"]);
    // A directory that the faults do not affect.
    let logs = tempfile::tempdir().unwrap();
    let (path, log) = (site.network_dir().join("wallet.redb"), logs.path().join("log"));
    let start = || site.server_logging_to(&log);
    let server = start();
    let id = fill_beyond_checks(server.wallet());
    assert_eq!(server.stop(), 0);
    let right = fs::read(&path).unwrap();
    assert!(right.len() > 4 << 20, "{}", right.len());

    let server = start();
    wait_for_line(&log, "the wallet store of");
    assert_eq!(readiness(server.wallet()).0, 200);
    assert_eq!(server.stop(), 0);

    let server = start();
    faults.begin(Fault::FULL);
    wait_for_line(&log, "the wallet store cannot be checked, and will be checked again");
    faults.end();
    assert_eq!(server.wallet().get(&format!("/api/v1/invoices/{id}")).status, 200);
    assert_eq!(server.stop(), 0);

    let mut damaged = right.clone();
    let places = right.windows(22).enumerate();
    for (place, _) in places.filter(|(_, part)| *part == b"the last cup of coffee") {
        damaged[place + 4] ^= 0x40;
    }
    let token = site.cli_json(&["token", "create", "--scope", "wallet:read"]);
    fs::write(&path, &damaged).unwrap();
    let server = start();
    let line = wait_for_line(&log, "wallet.redb is damaged");
    assert!(line.contains("ERROR") && line.contains("bsv-cli restore"), "{line}");
    refuses_all_but_identities(&server, &id);
    let told = site.cli(&["books", "verify"]);
    assert!(told.code == 1 && told.stderr.contains("damaged"), "{told:?}");
    // While no log can be written, no token is made, and tokens are revoked all the same.
    assert_eq!(site.cli(&["token", "create", "--scope", "wallet:read"]).code, 1);
    site.cli_ok(&["token", "revoke", "--yes", token["id"].as_str().unwrap()]);
    assert_eq!(site.cli_json(&["token", "list"]), json!([]));
    assert_eq!(server.stop(), 0);
    assert!(!fs::exists(path.with_extension("redb.copy")).unwrap());

    fs::write(&path, &right).unwrap();
    let server = start();
    let invoice = server.wallet().get(&format!("/api/v1/invoices/{id}"));
    assert_eq!(member(&invoice.body, "description"), "the last cup of coffee");
    assert_eq!(readiness(server.wallet()).0, 200);
}

fn refuses_all_but_identities(server: &Server, id: &str) {
    let wallet = server.wallet();
    let headers = [("Content-Type", "application/json")];
    let invoice = json!({ "satoshis": 7 }).to_string();
    assert_refused(&wallet.send("POST", "/api/v1/invoices", &headers, invoice.as_bytes()));
    assert_refused(&wallet.get(&format!("/api/v1/invoices/{id}")));
    assert_refused(&wallet.get("/api/v1/balance"));
    assert_refused(&server.payments().get(&format!("/api/v1/payment/{id}")));
    for listener in [wallet, server.payments()] {
        let (status, told) = readiness(listener);
        assert_eq!((status, &told["ready"]), (503, &json!(false)), "{told}");
    }
    assert_eq!(readiness(wallet).1["damaged"], json!(["wallet"]));
    let (status, told) = readiness(&Client::new(server.address()));
    assert_eq!((status, &told["damaged"]), (200, &json!(["wallet"])), "{told}");
    assert_eq!(server.text("/opreturn/pool/rotate"), "OK");
    assert_eq!(server.get("/healthz").status, 200);
}

/// A site with both services, keys and an invoice. Answers the id of the invoice too.
fn begun_with_both() -> (Site, String) {
    let mut site = begun_site();
    site.set_env("BSV_BACKUP_PASSPHRASE", "of the backup alone");
    site.cli_ok(&["generateminerid", "--name", "pool"]);
    let invoice = site.cli_json(&["invoice", "create", "--satoshis", "7"]);
    (site, invoice["id"].as_str().unwrap().to_owned())
}

/// Replaces a store by something else. Answers its old contents.
fn spoil(path: &Path) -> Vec<u8> {
    let right = fs::read(path).unwrap();
    fs::write(path, b"this is no store").unwrap();
    right
}

/// Checks that commands which concern both services are refused, and that no incomplete result is
/// taken for a complete one.
fn refuses_what_concerns_both(site: &Site, path: &Path) {
    let name = path.file_name().unwrap().to_str().unwrap();
    let backup = site.network_dir().join("incomplete.backup");
    for command in [
        &["token", "create", "--scope", "wallet:read"][..],
        &["backup", backup.to_str().unwrap()],
        &["keystore", "verify"],
    ] {
        let told = site.cli(command);
        assert!(told.code == 1 && (told.stderr + &told.stdout).contains(name), "{command:?}");
    }
    assert!(!backup.exists());
    let status = site.cli(&["status"]);
    assert!(status.code == 1 && status.stdout.contains(name), "{status:?}");
}

#[test]
fn a_wallet_that_cannot_be_opened_does_not_stop_the_pool() {
    let (site, invoice) = begun_with_both();
    let path = site.network_dir().join("wallet.redb");
    let right = spoil(&path);
    let server = site.server();
    assert_eq!(server.text("/opreturn/pool/rotate"), "OK");
    assert!(site.cli_ok(&["miner", "list"]).contains("pool"));
    let pool = Client::new(server.address());
    for (listener, status) in [(&pool, 200), (server.wallet(), 503)] {
        let (told_status, told) = readiness(listener);
        assert_eq!((told_status, &told["damaged"]), (status, &json!(["wallet"])), "{told}");
    }
    let refused = server.wallet().get("/api/v1/balance");
    assert!(refused.status == 503 && refused.body.contains("wallet.redb"), "{}", refused.body);
    let refused = server.payments().get(&format!("/api/v1/payment/{invoice}"));
    assert_eq!((refused.status, readiness(server.payments()).0), (503, 503));
    assert!(!refused.body.contains("redb"), "{}", refused.body);
    refuses_what_concerns_both(&site, &path);
    assert_eq!(server.stop(), 0);

    fs::write(&path, right).unwrap();
    let server = site.server();
    let found = server.wallet().get(&format!("/api/v1/invoices/{invoice}"));
    assert_eq!(found.status, 200);
}

#[test]
fn identities_that_cannot_be_opened_do_not_stop_the_shop() {
    let (site, invoice) = begun_with_both();
    let path = site.network_dir().join("minerid/minerid.redb");
    let right = spoil(&path);
    let server = site.server();
    let found = server.wallet().get(&format!("/api/v1/invoices/{invoice}"));
    assert_eq!(found.status, 200);
    assert_eq!(server.payments().get(&format!("/api/v1/payment/{invoice}")).status, 200);
    let pool = Client::new(server.address());
    assert_eq!((readiness(&pool).0, readiness(server.wallet()).0), (503, 200));
    let refused = pool.get("/opreturn/pool/7");
    assert!(refused.status == 503 && refused.body.contains("minerid.redb"), "{}", refused.body);
    refuses_what_concerns_both(&site, &path);
    assert_eq!(server.stop(), 0);

    // Without the wallet, too, the server has no service left.
    spoil(&site.network_dir().join("wallet.redb"));
    let failed = site.try_server().unwrap_err();
    assert!(failed.code == 1 && failed.stderr.contains("redb"), "{failed:?}");
    fs::write(&path, right).unwrap();
    assert!(site.server().text("/minerid/pool").len() == 66);
}
