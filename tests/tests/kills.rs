//! Programs that are killed at random moments while they change identities.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Stdio;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use bsv_tests::identities::{self, Histories};
use bsv_tests::{Server, Site, build, http, repetitions};
use bsv_tx::sha256;
use serde_json::Value;

/// The initial value of the longest delay before a kill.
const LONGEST_DELAY: Duration = Duration::from_millis(30);

/// Random numbers from a seed that `BSV_TEST_SEED` can repeat. The order in which programs run
/// still depends on the system.
struct Dice {
    seed: u64,
    count: u64,
    longest_delay: Duration,
}

impl Dice {
    fn new(what: &str) -> Self {
        let seed = match std::env::var("BSV_TEST_SEED") {
            Ok(seed) => seed.parse().unwrap(),
            Err(_) => u64::from(std::process::id()),
        };
        eprintln!("{what}: BSV_TEST_SEED={seed}");
        Self { seed, count: 0, longest_delay: LONGEST_DELAY }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.count += 1;
        let hash = sha256(format!("{} {}", self.seed, self.count).as_bytes());
        u64::from_le_bytes(hash[..8].try_into().unwrap()) % bound
    }

    fn delay(&mut self) -> Duration {
        let longest = self.longest_delay.as_micros().try_into().unwrap();
        Duration::from_micros(self.below(longest))
    }

    /// Adapts the longest delay so that it is a little longer than the work that is to be killed.
    /// Then kills hit every moment of the work, and few come too late.
    fn learn(&mut self, came_too_late: bool) {
        let (times, of) = if came_too_late { (4, 5) } else { (20, 19) };
        let longest = self.longest_delay * times / of;
        self.longest_delay = longest.clamp(LONGEST_DELAY / 10, LONGEST_DELAY * 10);
    }
}

/// What callers asked for, and the answers they got, between a start and a kill.
#[derive(Default)]
struct Told {
    /// How many changes of an alias were asked for, and how many of them acknowledged.
    changes: BTreeMap<String, (usize, usize)>,
    /// For each caller: an alias, and the keys in its answers, in order.
    keys: Vec<(String, Vec<String>)>,
}

impl Told {
    fn count(&mut self, alias: &str, is_acknowledged: bool) {
        let (asked, acknowledged) = self.changes.entry(alias.to_owned()).or_default();
        *asked += 1;
        *acknowledged += usize::from(is_acknowledged);
    }

    /// Checks that `now` is `before` with every acknowledged change, and with no change that nobody
    /// asked for. Checks, too, that it has every key of the answers, in the same order.
    fn check(&self, before: &Histories, now: &Histories) {
        let aliases: BTreeSet<_> =
            before.keys().chain(now.keys()).chain(self.changes.keys()).collect();
        for alias in aliases {
            let old = before.get(alias).map(Vec::as_slice).unwrap_or_default();
            let new = now.get(alias).map(Vec::as_slice).unwrap_or_default();
            let added = new.strip_prefix(old).unwrap_or_else(|| panic!("{alias}: {old:?} {new:?}"));
            let (asked, acknowledged) = self.changes.get(alias).copied().unwrap_or_default();
            assert!(
                (acknowledged..=asked).contains(&added.len()),
                "{alias}: {asked} asked, {acknowledged} acknowledged, {} made",
                added.len()
            );
        }
        for (alias, keys) in &self.keys {
            let mut history = now[alias].iter();
            for key in keys {
                assert!(history.any(|made| made == key), "{alias}: {key} is lost or out of order");
            }
        }
    }
}

/// Checks what is there after a kill: as the command line finds it without a server, and as a new
/// server answers it. Both must agree. Answers the server.
fn check_restart(site: &Site, told: &Told, before: &mut Histories) -> Server {
    let now = identities::histories(site);
    told.check(before, &now);
    for alias in told.changes.keys().filter(|alias| now.contains_key(*alias)).take(2) {
        identities::check_cli(site, alias, &now[alias]);
    }
    identities::check_key_files(site, &now);
    let server = site.server();
    assert_eq!(identities::histories(site), now, "the second start");
    let changed: Histories = now
        .iter()
        .filter(|(alias, _)| told.changes.contains_key(*alias))
        .map(|(alias, keys)| (alias.clone(), keys.clone()))
        .collect();
    identities::check_answers(&server, &changed);
    for alias in changed.keys().take(2) {
        identities::check_cli(site, alias, &now[alias]);
    }
    *before = now;
    server
}

fn site() -> Site {
    let mut site = Site::new();
    site.keep_on_disk();
    site.set_env("BSV_LOG", "off");
    site
}

/// Checks everything once more at the end.
fn check_end(site: &Site, server: Server, histories: &Histories) {
    identities::check_answers(&server, histories);
    server.kill();
    identities::check_keystore(site, histories);
    let keys: usize = histories.values().map(Vec::len).sum();
    eprintln!("{} aliases with {keys} keys in the end", histories.len());
}

const POOLS: [&str; 3] = ["pool-0", "pool-1", "pool-2"];

#[test]
fn a_server_killed_at_any_moment_has_lost_nothing_that_it_acknowledged() {
    let rounds = repetitions("kills of a server", 200, 20);
    let mut dice = Dice::new("kills of a server");
    let site = site();
    for alias in POOLS {
        site.cli_ok(&["generateminerid", "--name", alias]);
    }
    let mut histories = identities::histories(&site);
    let mut server = site.server();
    let (mut acknowledged, mut broken_off) = (0, 0);
    for round in 0..rounds {
        let told = disturb(&site, server, round, dice.delay());
        acknowledged += told.changes.values().map(|(_, acknowledged)| acknowledged).sum::<usize>();
        broken_off += told.changes.values().map(|(asked, done)| asked - done).sum::<usize>();
        server = check_restart(&site, &told, &mut histories);
    }
    eprintln!("{acknowledged} changes acknowledged, {broken_off} broken off");
    check_end(&site, server, &histories);
}

/// Asks `server` for changes from all sides, and kills it after `delay`.
fn disturb(site: &Site, server: Server, round: usize, delay: Duration) -> Told {
    let told = Mutex::new(Told::default());
    let is_over = AtomicBool::new(false);
    let address = server.address().to_owned();
    thread::scope(|scope| {
        // Two rotate the same alias.
        for alias in [POOLS[0], POOLS[0], POOLS[1]] {
            scope.spawn(|| rotate_until_it_ends(&address, alias, &told));
        }
        for alias in [POOLS[0], POOLS[1], POOLS[2]] {
            scope.spawn(|| watch_until_it_ends(&address, alias, &told));
        }
        scope.spawn(|| {
            for count in 0.. {
                let made = format!("made-{round}-{count}");
                change_by_cli(site, &["generateminerid", "--name", &made], &made, &told);
                change_by_cli(site, &["rotateminerid", "--name", POOLS[2]], POOLS[2], &told);
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        thread::sleep(delay);
        server.kill();
        is_over.store(true, Ordering::Relaxed);
    });
    told.into_inner().unwrap()
}

fn rotate_until_it_ends(address: &str, alias: &str, told: &Mutex<Told>) {
    loop {
        let reply = http::request(address, "POST", &format!("/opreturn/{alias}/rotate"), b"");
        let is_acknowledged = reply.as_ref().is_ok_and(|reply| reply.status == 200);
        told.lock().unwrap().count(alias, is_acknowledged);
        match reply {
            Ok(reply) => assert_eq!((reply.status, reply.body.as_str()), (200, "OK")),
            Err(_) => break,
        }
    }
}

fn watch_until_it_ends(address: &str, alias: &str, told: &Mutex<Told>) {
    let mut keys: Vec<String> = Vec::new();
    let path = format!("/minerid/{alias}/pksign/{}", "11".repeat(32));
    while let Ok(reply) = http::request(address, "GET", &path, b"") {
        assert_eq!(reply.status, 200, "{}", reply.body);
        let reply: Value = serde_json::from_str(&reply.body).unwrap();
        let key = reply["publicKey"].as_str().unwrap();
        if keys.last().is_none_or(|last| last != key) {
            keys.push(key.to_owned());
        }
    }
    told.lock().unwrap().keys.push((alias.to_owned(), keys));
}

/// Runs a command, which asks the server, or does the work itself if the server was killed.
fn change_by_cli(site: &Site, arguments: &[&str], alias: &str, told: &Mutex<Told>) {
    let done = site.cli(&[arguments, &["--json"]].concat());
    let is_acknowledged = done.code == 0;
    told.lock().unwrap().count(alias, is_acknowledged);
    if is_acknowledged {
        let identity: Value = serde_json::from_str(&done.stdout).unwrap();
        let key = identity["minerId"].as_str().unwrap().to_owned();
        told.lock().unwrap().keys.push((alias.to_owned(), vec![key]));
    } else {
        assert_eq!(done.code, 1, "{done:?}");
        assert!(
            done.stderr.contains("the server broke off") || done.stderr.contains("cannot ask"),
            "{done:?}"
        );
    }
}

#[test]
fn a_command_line_killed_at_any_moment_leaves_everything_in_order() {
    let rounds = repetitions("kills of the command line", 200, 20);
    let mut dice = Dice::new("kills of the command line");
    let site = site();
    site.cli_ok(&["generateminerid", "--name", "pool-0"]);
    let mut histories = identities::histories(&site);
    let mut server = None;
    let mut finished = 0;
    for round in 0..rounds {
        let made = format!("made-{round}");
        let (command, alias) = match dice.below(2) {
            0 => ("generateminerid", made.as_str()),
            _ => ("rotateminerid", "pool-0"),
        };
        // Every fourth time a server does the work. It continues after the command was killed.
        if round % 4 != 3 {
            server = None;
        }
        let mut told = Told::default();
        let mut command = site.cli_command(&[command, "--name", alias]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        thread::sleep(dice.delay());
        child.kill().unwrap();
        let is_acknowledged = child.wait().unwrap().success();
        finished += usize::from(is_acknowledged);
        dice.learn(is_acknowledged);
        told.count(alias, is_acknowledged);
        drop(server.take());
        server = Some(check_restart(&site, &told, &mut histories));
    }
    eprintln!("{finished} of {rounds} had finished before");
    check_end(&site, server.unwrap(), &histories);
}

#[test]
fn a_first_change_killed_at_any_moment_can_be_made_again() {
    let rounds = repetitions("kills of the first command", 200, 20);
    let mut dice = Dice::new("kills of the first command");
    // Builds the program now, so that the first round does not wait for it.
    build::cli_program();
    let mut finished = 0;
    for _ in 0..rounds {
        let site = site();
        let mut command = site.cli_command(&["generateminerid", "--name", "pool"]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        thread::sleep(dice.delay());
        child.kill().unwrap();
        let is_acknowledged = child.wait().unwrap().success();
        finished += usize::from(is_acknowledged);
        dice.learn(is_acknowledged);
        let mut told = Told::default();
        told.count("pool", is_acknowledged);
        let mut histories = Histories::new();
        let server = check_restart(&site, &told, &mut histories);
        if histories.is_empty() {
            site.cli_ok(&["generateminerid", "--name", "pool"]);
        } else {
            site.cli_ok(&["rotateminerid", "--name", "pool"]);
        }
        identities::check_answers(&server, &identities::histories(&site));
    }
    eprintln!("{finished} of {rounds} had finished before");
}
