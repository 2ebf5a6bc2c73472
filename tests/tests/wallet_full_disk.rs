//! A disk that is full, or fails when it is written to, while the wallet is in use.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use bsv_invoicing::Timestamp;
use bsv_store::DatabaseOptions;
use bsv_tests::faults::{ENOSPC, Fault, Faults, limit_file_size};
use bsv_tests::wallet::{StoredWallet, Wish};
use bsv_tests::{Client, Done, Reply, Server, Site};
use serde_json::Value;

/// A wallet that has an invoice and a user.
struct Owner {
    server: Server,
    first: Reply,
    site: Site,
}

impl Owner {
    fn start_on(site: Site) -> Self {
        let server = site.server();
        let first = Wish::invoice("first").ask(server.wallet()).unwrap();
        let user = Wish::user("first").ask(server.wallet()).unwrap();
        assert_eq!((first.status, user.status), (201, 201));
        Self { server, first, site }
    }

    /// A wallet on a disk that the test can make fail.
    fn with_faults() -> (Self, Faults) {
        let mut site = site();
        let faults = Faults::install(&mut site);
        (Self::start_on(site), faults)
    }

    fn client(&self) -> &Client {
        self.server.wallet()
    }

    fn ask(&self, wish: &Wish) -> Reply {
        wish.ask(self.client()).unwrap()
    }

    /// Repeats a request until the disk does not fail any more. After many failures, this may take
    /// a while.
    fn ask_at_last(&self, wish: &Wish) -> Reply {
        let started = Instant::now();
        loop {
            let reply = self.ask(wish);
            if reply.status != 503 {
                return reply;
            }
            assert!(started.elapsed() < Duration::from_secs(20), "it does not recover");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Creates an invoice. Gives its id.
    fn create(&self, reference: &str, expires_at: Option<Timestamp>) -> String {
        let reply =
            self.ask_at_last(&Wish::Invoice { reference: reference.to_owned(), expires_at });
        assert_eq!(reply.status, 201, "{}", reply.body);
        member(&reply, "id")
    }

    /// Checks that requests which write nothing are answered.
    fn check_reads(&self) {
        let reply = self.client().get(&format!("/api/v1/invoices/{}", member(&self.first, "id")));
        assert_eq!((reply.status, &reply.body), (200, &self.first.body));
        for path in ["/api/v1/balance", "/api/v1/invoices?limit=1", "/api/v1/users/1"] {
            assert_eq!(self.client().get(path).status, 200, "{path}");
        }
    }

    fn stored(&self) -> StoredWallet {
        StoredWallet::of(&self.site)
    }
}

fn site() -> Site {
    let mut site = Site::new();
    site.set_env("BSV_LOG", "off");
    site
}

/// A member of a JSON answer.
fn member(reply: &Reply, name: &str) -> String {
    let body: Value = serde_json::from_str(&reply.body).unwrap();
    body[name].as_str().unwrap().to_owned()
}

/// Checks that a refusal names the right failure of the disk, and that it does not deny a wish that
/// was done.
fn check_refusal(reply: &Reply, error: i32, is_done: bool) {
    assert_eq!(reply.status, 503, "{}", reply.body);
    let code = if error == ENOSPC { "disk-full" } else { "disk-failed" };
    assert_eq!(member(reply, "code"), code, "{}", reply.body);
    let detail = member(reply, "detail");
    assert!(!is_done || detail.contains("may or may not"), "done, but: {detail}");
}

/// Makes a new wish with this reference.
type NewWish = fn(&Owner, &str) -> Wish;

const WISHES: [NewWish; 3] = [new_invoice, new_deletion, new_user];

fn new_invoice(_: &Owner, reference: &str) -> Wish {
    Wish::invoice(reference)
}

fn new_deletion(owner: &Owner, reference: &str) -> Wish {
    Wish::Deletion { id: owner.create(&format!("deletable {reference}"), None) }
}

fn new_user(_: &Owner, reference: &str) -> Wish {
    Wish::user(reference)
}

#[test]
fn a_failure_while_an_invoice_is_created_is_reported_and_a_later_request_creates_it() {
    check_each_failure(new_invoice);
}

#[test]
fn a_failure_while_an_invoice_is_deleted_is_reported_and_a_later_request_deletes_it() {
    check_each_failure(new_deletion);
}

#[test]
fn a_failure_while_a_user_is_created_is_reported_and_a_later_request_creates_it() {
    check_each_failure(new_user);
}

/// Makes each disk operation of the wish fail in every way, one at a time.
fn check_each_failure(new_wish: NewWish) {
    let (owner, faults) = Owner::with_faults();
    for (kind_number, kind) in Fault::KINDS.into_iter().enumerate() {
        let mut hits = 0;
        loop {
            let wish = new_wish(&owner, &format!("{kind_number}-{hits}"));
            if !is_hit(&owner, &faults, Fault { first: hits, ..kind }, &wish) {
                break;
            }
            hits += 1;
        }
        println!("{hits} operations, each with {kind:?}");
        assert!(hits >= 2, "the faults do not reach the wallet any more: {hits}");
    }
    let Owner { server, site, first } = owner;
    server.kill();
    let stored = StoredWallet::of(&site);
    assert!(stored.with_reference("first").is_some());
    Owner { server: site.server(), site, first }.check_reads();
}

/// Asks while a fault is set, and checks the outcome. Answers whether the fault hit.
fn is_hit(owner: &Owner, faults: &Faults, fault: Fault, wish: &Wish) -> bool {
    faults.begin(fault);
    let reply = owner.ask(wish);
    let is_hit = faults.count(fault.operations) > fault.first;
    owner.check_reads();
    faults.end();

    let is_done = wish.is_done(&owner.stored());
    if reply.status == wish.success() {
        assert!(is_done, "{fault:?} lost what was acknowledged");
    } else {
        check_refusal(&reply, fault.error, is_done);
    }
    let again = owner.ask_at_last(wish);
    if is_done && matches!(wish, Wish::Deletion { .. }) {
        assert_eq!(again.status, 404, "{fault:?}");
    } else {
        assert_eq!(again.status, wish.success(), "{fault:?}: {}", again.body);
        assert!(is_hit || again.body == reply.body, "{fault:?}: {} {}", reply.body, again.body);
    }
    assert!(wish.is_done(&owner.stored()), "{fault:?}");
    is_hit
}

#[test]
fn after_failures_while_invoices_expire_the_event_log_has_each_expiry_once() {
    let (owner, faults) = Owner::with_faults();
    for &kind in Fault::some_kinds("kinds of faults while invoices expire") {
        let mut ids = Vec::new();
        loop {
            let fault = Fault { first: ids.len() as u64, ..kind };
            let expires_at = Timestamp::of_system().after(Duration::from_millis(400));
            ids.push(owner.create(&format!("{fault:?}"), Some(expires_at)));
            if !is_sweep_hit(&owner, &faults, fault, expires_at) {
                break;
            }
        }
        println!("{} operations, each with {kind:?}", ids.len() - 1);
        assert!(ids.len() > 2, "the faults do not reach the sweep any more: {}", ids.len());
        let stored = owner.stored();
        let has_expired = |id: &String| stored.lives[id].expired_at.is_some();
        assert!(ids.iter().all(has_expired), "{kind:?}");
    }
}

/// Lets an invoice expire while a fault is set for the sweep that records it, and checks the
/// outcome. Answers whether the fault hit.
fn is_sweep_hit(owner: &Owner, faults: &Faults, fault: Fault, expires_at: Timestamp) -> bool {
    let path = "/api/v1/invoices?limit=1&order=desc";
    let started = Instant::now();
    faults.begin(fault);
    let mut count = 0;
    // Before that time, no write belongs to the sweep.
    let is_early = || Timestamp::of_system() <= expires_at;
    while is_early() || count == 0 || count < faults.count(fault.operations) {
        assert!(started.elapsed() < Duration::from_secs(20), "nothing is swept");
        count = faults.count(fault.operations);
        // Longer than the time between two operations of a sweep.
        thread::sleep(Duration::from_millis(100));
    }
    owner.check_reads();
    assert!(owner.client().get(path).body.contains(r#""state":"expired""#), "{fault:?}");
    faults.end();
    owner.stored();
    count > fault.first
}

#[test]
fn writing_works_again_as_soon_as_a_full_disk_has_room() {
    let (owner, faults) = Owner::with_faults();
    let wishes = WISHES.map(|new_wish| new_wish(&owner, "full"));
    faults.begin(Fault::FULL);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for wish in wishes.iter().cycle().take(50) {
                    check_refusal(&owner.ask(wish), ENOSPC, false);
                    owner.check_reads();
                }
            });
        }
    });
    faults.end();
    owner.create("room", None);
    let stored = owner.stored();
    assert!(wishes.iter().all(|wish| !wish.is_done(&stored)));
    for wish in &wishes {
        assert_eq!(owner.ask(wish).status, wish.success());
    }
}

/// A site on a small disk of its own, which is soon full. `None` if the operating system lets only
/// its administrator make one.
fn site_on_small_disk() -> Option<Site> {
    const NAMESPACE: [&str; 3] = ["unshare", "--map-root-user", "--mount"];
    let is_possible =
        Done::of(Command::new(NAMESPACE[0]).args(&NAMESPACE[1..]).arg("true")).code == 0;
    let mut site = site();
    let dir = site.data_dir().to_str().unwrap().to_owned();
    let mount = r#"mount -t tmpfs -o size=32m tmpfs "$0" && exec "$@""#;
    site.run_under(&[&NAMESPACE[..], &["sh", "-c", mount, &dir]].concat());
    is_possible.then_some(site)
}

/// Fills a disk so that this many bytes are left free.
fn leave_free(disk: &Path, bytes: u64) {
    let filler = disk.join("filler");
    fs::write(&filler, "").unwrap();
    let space = rustix::fs::statvfs(disk).unwrap();
    let len = space.f_bavail * space.f_frsize - bytes;
    fs::write(&filler, vec![0; len.try_into().unwrap()]).unwrap();
}

#[test]
fn a_reserve_of_free_space_is_left_alone() {
    let Some(site) = site_on_small_disk() else {
        return eprintln!("not tested, since no file system can be mounted: the reserve");
    };
    let owner = Owner::start_on(site);
    let root = PathBuf::from(format!("/proc/{}/root", owner.server.id()));
    let disk = root.join(owner.site.data_dir().strip_prefix("/").unwrap());
    let reserve = DatabaseOptions::default().free_space_reserve;
    for round in 0..3 {
        let wishes = WISHES.map(|new_wish| new_wish(&owner, &format!("wish {round}")));
        let list = owner.client().get("/api/v1/invoices").body;
        leave_free(&disk, reserve - 4096);
        for wish in &wishes {
            check_refusal(&owner.ask(wish), ENOSPC, false);
            owner.check_reads();
        }
        assert_eq!(owner.client().get("/api/v1/invoices").body, list);
        leave_free(&disk, reserve + (1 << 20));
        for wish in &wishes {
            assert_eq!(owner.ask(wish).status, wish.success(), "{wish:?}");
        }
        leave_free(&disk, 2 * reserve);
    }
    assert_eq!(owner.server.stop(), 0);
}

#[test]
fn the_wallet_survives_a_limit_on_the_size_of_files() {
    let owner = Owner::start_on(site());
    for bytes in [0, 4096, 1 << 16] {
        let wishes = WISHES.map(|new_wish| new_wish(&owner, &format!("{bytes}")));
        limit_file_size(&owner.server, Some(bytes));
        for wish in &wishes {
            check_refusal(&owner.ask(wish), ENOSPC, false);
            owner.check_reads();
        }
        limit_file_size(&owner.server, None);
        owner.create(&format!("unlimited {bytes}"), None);
        let stored = owner.stored();
        assert!(wishes.iter().all(|wish| !wish.is_done(&stored)), "{bytes}");
        for wish in &wishes {
            assert_eq!(owner.ask(wish).status, wish.success(), "{bytes}");
        }
    }
}

#[test]
fn a_server_that_cannot_write_its_log_keeps_running() {
    let mut site = Site::new();
    site.run_under(&["sh", "-c", r#"exec "$@" 2>/dev/full"#, "sh"]);
    let owner = Owner::start_on(site);
    limit_file_size(&owner.server, Some(0));
    for count in 0..3 {
        let refused = owner.ask(&Wish::invoice(&format!("limited {count}")));
        check_refusal(&refused, ENOSPC, false);
        owner.check_reads();
        // Meanwhile, the sweep fails and logs it.
        thread::sleep(Duration::from_millis(600));
    }
    limit_file_size(&owner.server, None);
    owner.create("unlimited", None);
    assert_eq!(owner.server.stop(), 0);
}
