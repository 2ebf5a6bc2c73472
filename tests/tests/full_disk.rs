//! A disk that is full or fails while identities are changed.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use bsv_tests::faults::{ENOSPC, Fault, Faults, Operations, limit_file_size};
use bsv_tests::identities::{self, Histories};
use bsv_tests::{Server, Site, vectors};

/// A site with the identities of the golden home directory, which have VCTxs.
fn site() -> Site {
    let mut site = Site::new();
    site.set_env("BSV_LOG", "off");
    let home = vectors::write_home(&vectors::minerid_0_2(), site.data_dir());
    site.cli_ok(&["importminerid", "--from", home.to_str().unwrap()]);
    site
}

/// A change to identities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Generate,
    Rotate,
}

/// The outcome of a change. A refusal has its reason.
type Outcome = Result<(), String>;

/// An interface for changes.
#[derive(Clone, Copy, Debug)]
enum Surface<'a> {
    /// In the process of the command line.
    InProcess,
    /// Over HTTP if there is a route, or else over the control socket.
    Server(&'a Server),
}

impl Surface<'_> {
    fn change(self, site: &Site, change: Change, alias: &str) -> Outcome {
        let command = match (self, change) {
            (Self::Server(server), Change::Rotate) => {
                let reply = server.post(&format!("/opreturn/{alias}/rotate"), "");
                assert!([200, 503].contains(&reply.status), "{reply:?}");
                return if reply.status == 200 { Ok(()) } else { Err(reply.body) };
            }
            (_, Change::Generate) => "generateminerid",
            (_, Change::Rotate) => "rotateminerid",
        };
        let done = site.cli(&[command, "--name", alias]);
        assert!([0, 1].contains(&done.code), "{done:?}");
        if done.code == 0 { Ok(()) } else { Err(done.stderr) }
    }

    /// Checks that reading and signing work while the disk fails.
    fn check_service(self, site: &Site, before: &Histories, alias: &str) {
        let Self::Server(server) = self else { return };
        let memory = identities::histories(site);
        identities::check_answers(server, &memory);
        assert_eq!(server.get("/opreturn/first/1").status, 200);
        check_step(before, &memory, alias, memory.get(alias) != before.get(alias));
    }
}

/// Checks that `now` equals `before`, or has one more key of `alias` if the change is done.
fn check_step(before: &Histories, now: &Histories, alias: &str, is_done: bool) {
    let mut expected = before.clone();
    if is_done {
        let keys = now.get(alias).unwrap_or_else(|| panic!("{alias} is missing"));
        expected.entry(alias.to_owned()).or_default().extend(keys.last().cloned());
    }
    assert_eq!(*now, expected, "{alias}");
}

/// The contents on the disk, as a start after a crash finds them.
fn on_disk(site: &Site) -> Histories {
    identities::histories(&site.copy())
}

/// Makes the change once for each of its operations, which fails, and checks the result. Returns
/// the number of operations.
fn sweep(site: &Site, faults: &Faults, surface: Surface, change: Change, kind: Fault) -> u64 {
    let mut disk = on_disk(site);
    for first in 0.. {
        let alias = match change {
            Change::Generate => format!("pool-{}", disk.len()),
            Change::Rotate => "rot".to_owned(),
        };
        let fault = Fault { first, ..kind };
        let before = disk;
        faults.begin(fault);
        let outcome = surface.change(site, change, &alias);
        let is_hit = faults.count(kind.operations) > first;
        surface.check_service(site, &before, &alias);
        faults.end();

        disk = on_disk(site);
        let is_done = disk.get(&alias) != before.get(&alias);
        check_step(&before, &disk, &alias, is_done);
        check_outcome(&outcome, is_done, fault);
        if !is_hit {
            assert_eq!(outcome, Ok(()), "{fault:?}");
            return first;
        }

        let before = disk;
        let again = surface.change(site, change, &alias);
        disk = on_disk(site);
        if change == Change::Generate && is_done {
            let refused = again.unwrap_err();
            assert!(refused.contains("exists already"), "{fault:?}: {refused}");
            assert_eq!(disk, before);
        } else {
            assert_eq!(again, Ok(()), "{fault:?}");
            check_step(&before, &disk, &alias, true);
        }
        if let Surface::Server(server) = surface {
            assert_eq!(identities::histories(site), disk, "{fault:?}");
            identities::check_answers(server, &disk);
        }
    }
    unreachable!("a change has an end");
}

/// Checks that an acknowledged change is on the disk. A refused change is not, unless the answer
/// leaves that open.
fn check_outcome(outcome: &Outcome, is_done: bool, fault: Fault) {
    let Err(reason) = outcome else {
        assert!(is_done, "{fault:?} lost what was acknowledged");
        return;
    };
    assert!(!is_done || !reason.contains("nothing was changed"), "{fault:?}: {reason}");
    let is_clear = match fault.error {
        ENOSPC => reason.contains("No space left on"),
        _ => reason.contains("disk cannot be written") || reason.contains("Input/output error"),
    };
    assert!(is_clear, "{fault:?}: {reason}");
}

/// The least number of operations of a change to a key and to a record. The test fails if the
/// faults no longer reach them.
const LEAST_OPERATIONS: u64 = 4;

#[test]
fn a_change_that_fails_in_a_server_is_refused_and_works_later() {
    let mut site = site();
    let faults = Faults::install(&mut site);
    let server = site.server();
    for &kind in Fault::some_kinds("kinds of faults in a server") {
        for change in [Change::Generate, Change::Rotate] {
            let count = sweep(&site, &faults, Surface::Server(&server), change, kind);
            println!("{change:?} in the server: {count} operations, each with {kind:?}");
            assert!(count >= LEAST_OPERATIONS, "{change:?}: {count}");
        }
    }
    server.kill();
    let histories = identities::histories(&site);
    identities::check_keystore(&site, &histories);
    identities::check_answers(&site.server(), &histories);
}

#[test]
fn a_change_that_fails_in_the_command_line_is_refused_and_works_later() {
    let mut site = site();
    let faults = Faults::install(&mut site);
    for &kind in Fault::some_kinds("kinds of faults in the command line") {
        for change in [Change::Generate, Change::Rotate] {
            let count = sweep(&site, &faults, Surface::InProcess, change, kind);
            println!("{change:?} in process: {count} operations, each with {kind:?}");
            assert!(count >= LEAST_OPERATIONS, "{change:?}: {count}");
        }
    }
    let histories = identities::histories(&site);
    identities::check_keystore(&site, &histories);
    identities::check_answers(&site.server(), &histories);
}

#[test]
fn a_first_start_on_a_full_disk_fails_and_does_not_block_the_next_one() {
    for &kind in Fault::some_kinds("kinds of faults at the first start") {
        for first in 0.. {
            let mut site = Site::new();
            site.set_env("BSV_LOG", "off");
            let faults = Faults::install(&mut site);
            let fault = Fault { first, ..kind };
            faults.begin(fault);
            match site.try_server() {
                Ok(server) => server.kill(),
                Err(done) => {
                    assert_eq!(done.code, 1, "{fault:?}: {done:?}");
                    let is_clear = ["No space left on device", "Input/output error"]
                        .iter()
                        .any(|cause| done.stderr.contains(cause));
                    assert!(is_clear, "{fault:?}: {done:?}");
                }
            }
            let is_hit = faults.count(kind.operations) > first;
            faults.end();
            let server = site.server();
            site.cli_ok(&["generateminerid", "--name", "pool"]);
            identities::check_answers(&server, &identities::histories(&site));
            if !is_hit {
                println!("first start: {first} operations, each with {kind:?}");
                assert!(first >= LEAST_OPERATIONS, "{first}");
                break;
            }
        }
    }
}

/// Whether a start after a crash finds that a document of `rot` was handed out.
fn is_hand_out_noted(site: &Site) -> bool {
    site.copy().server().text("/opreturn/rot/isvalid") == "true"
}

/// Asks for documents of `rot` until the disk says that one was handed out.
fn await_note(site: &Site, server: &Server) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_hand_out_noted(site) {
        assert!(Instant::now() < deadline, "nothing is noted");
        assert_eq!(server.get("/opreturn/rot/1").status, 200);
    }
}

#[test]
fn a_document_is_answered_although_it_cannot_be_noted_and_noted_later() {
    let mut site = site();
    site.set_env("BSV_LOG", "info");
    let faults = Faults::install(&mut site);
    let logs = tempfile::tempdir().unwrap();
    let log = logs.path().join("log");
    let server = site.server_logging_to(&log);
    let coinbase2 =
        r#"{"blockHeight":1,"alias":"rot","coinbase2":"ffffffff0100f2052a01000000015100000000"}"#;
    for fault in [Fault::FULL, Fault::BROKEN] {
        let told = fs::read_to_string(&log).unwrap().len();
        assert_eq!(Surface::Server(&server).change(&site, Change::Rotate, "rot"), Ok(()));
        faults.begin(fault);
        for _ in 0..3 {
            assert_eq!(server.get("/opreturn/rot/1").status, 200, "{fault:?}");
            assert_eq!(server.post("/coinbase2", coinbase2).status, 200, "{fault:?}");
        }
        let log = fs::read_to_string(&log).unwrap();
        let error = "cannot note that a document of alias rot is handed out";
        assert!(log[told..].contains(error), "{fault:?}: {log}");
        faults.end();
        await_note(&site, &server);
    }
}

#[test]
fn a_disk_that_hangs_stops_rotations_and_nothing_else() {
    let mut site = site();
    let faults = Faults::install(&mut site);
    let server = site.server();
    assert_eq!(Surface::Server(&server).change(&site, Change::Rotate, "rot"), Ok(()));
    faults.begin(Fault::HANGING);
    let statuses = thread::scope(|scope| {
        let _ends = EndOfFaults(&faults);
        let rotate = || server.post("/opreturn/first/rotate", "").status;
        // These are more than the server has threads of any kind.
        let rotations: Vec<_> = (0..16).map(|_| scope.spawn(rotate)).collect();
        let deadline = Instant::now() + Duration::from_secs(30);
        while faults.count(Operations::Syncing) == 0 {
            assert!(Instant::now() < deadline, "no rotation reaches the disk");
            thread::sleep(Duration::from_millis(5));
        }
        let ask = |height| server.get(&format!("/opreturn/rot/{height}")).status;
        let documents: Vec<_> = (1..=32).map(|height| scope.spawn(move || ask(height))).collect();
        for document in documents {
            assert_eq!(document.join().unwrap(), 200);
        }
        assert_eq!(server.get("/opreturn/first/1").status, 200);
        identities::check_answers(&server, &identities::histories(&site));
        faults.end();
        rotations.into_iter().map(|rotation| rotation.join().unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(statuses, [200; 16]);
    await_note(&site, &server);
}

/// Ends faults when dropped, so that a test that fails does not hang.
struct EndOfFaults<'a>(&'a Faults);

impl Drop for EndOfFaults<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// In this test the operating system itself refuses, and sends a signal that would end the process.
#[test]
fn a_limit_on_the_size_of_files_counts_as_a_full_disk() {
    let mut site = site();
    site.run_under(&["sh", "-c", r#"ulimit -S -f unlimited; exec "$@""#, "sh"]);
    let server = site.server();
    // The first limit allows not even a part of a key. The second one allows a key, but only the
    // first page of the store.
    for bytes in [0, 64, 1024] {
        let before = on_disk(&site);
        limit_file_size(&server, Some(bytes));
        let alias = format!("pool-{bytes}");
        for (change, alias) in [(Change::Rotate, "rot"), (Change::Generate, alias.as_str())] {
            let refused = Surface::Server(&server).change(&site, change, alias).unwrap_err();
            assert!(refused.contains("No space left on the disk"), "{bytes}: {refused}");
            Surface::Server(&server).check_service(&site, &before, alias);
        }
        assert_eq!(on_disk(&site), before);
        limit_file_size(&server, None);
        for (change, alias) in [(Change::Rotate, "rot"), (Change::Generate, alias.as_str())] {
            assert_eq!(Surface::Server(&server).change(&site, change, alias), Ok(()));
        }
    }
    server.kill();
    identities::check_answers(&site.server(), &identities::histories(&site));
}

#[test]
fn the_command_line_survives_a_limit_on_the_size_of_files() {
    let mut site = site();
    let before = on_disk(&site);
    site.run_under(&["sh", "-c", r#"ulimit -S -f 0; exec "$@""#, "sh"]);
    for (change, alias) in [(Change::Rotate, "rot"), (Change::Generate, "new")] {
        let refused = Surface::InProcess.change(&site, change, alias).unwrap_err();
        assert!(refused.contains("File too large") || refused.contains("No space"), "{refused}");
    }
    assert_eq!(on_disk(&site), before);
    site.run_under(&[]);
    assert_eq!(Surface::InProcess.change(&site, Change::Rotate, "rot"), Ok(()));
}
